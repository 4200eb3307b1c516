//! A site's catalog beside what its disks have, with real processes.

use crate::balancing::disks_of;
use crate::disks::Site;
use crate::harness::{noise, wait_for};
use std::path::PathBuf;

/// The objects of a disk, by their names.
fn objects(site: &Site, disk: usize) -> Vec<PathBuf> {
    let mut objects = site.contents(disk);
    objects.sort();
    objects
}

/// Ends a disk, does something to it, and starts it again.
fn behind_its_back(site: &mut Site, disk: usize, work: impl FnOnce()) {
    site.disks[disk].take().unwrap().kill();
    work();
    // What it finds by reading anew by itself would be made good before it is compared.
    let dir = format!("d{disk}");
    let args = ["disk", &dir, "--scrub-rate", "0", "--connect", &site.socket];
    site.disks[disk] = Some(site.home.start(&args, "serving d"));
}

#[test]
fn fsck_finds_what_was_removed_or_altered_on_a_disk_while_the_site_goes_on() {
    let mut site = Site::new(2, 2);
    for (path, seed) in [("a", 1), ("b", 2), ("c", 3)] {
        site.put(path, &noise(100_000, seed)).unwrap();
    }
    let fine = site.run(&["fsck", "--disks", "--content"]).ok().stdout();
    assert_eq!(fine, "/lab: 3 files, 6 replicas: OK\n");

    // The first is removed from one disk, the second altered on the other.
    let (first, second) = (objects(&site, 0)[0].clone(), objects(&site, 1)[1].clone());
    behind_its_back(&mut site, 0, || std::fs::remove_file(first).unwrap());
    let mut octets = std::fs::read(&second).unwrap();
    octets[50_000] ^= 1;
    std::fs::write(&second, octets).unwrap();
    site.await_status("OK");

    let listed = site.run(&["fsck", "--disks"]).fails_with(1, "").stdout();
    let has = |listed: &str, problem: &str, name: &str| {
        listed.lines().any(|line| line.starts_with(problem) && line.ends_with(name))
    };
    assert!(has(&listed, "missing", "/lab/a") && has(&listed, "under-replicated", "/lab/a"));
    assert!(!listed.contains("different"), "what the disk keeps beside it is as it was: {listed}");
    let read = site.run(&["fsck", "--disks", "--content"]).fails_with(1, "").stdout();
    assert!(has(&read, "different-content", "/lab/b"), "{read}");
    assert!(has(&read, "under-replicated", "/lab/b") && !has(&read, "lost", "/lab/b"), "{read}");

    // Putting it again makes it whole; what the disks have too much is on its way.
    for (path, seed) in [("a", 4), ("b", 5)] {
        site.put(path, &noise(100_000, seed)).unwrap();
    }
    let compared = || site.run(&["fsck", "--disks", "--content"]).stdout();
    let is_whole = || compared().ends_with("OK\n");
    wait_for("nothing but what leaves", is_whole, compared);
    assert!(site.read("b").ok().bytes() == noise(100_000, 5));
    site.check();
}

#[test]
fn what_disks_have_lost_or_altered_is_repaired_and_a_second_look_finds_nothing() {
    let mut site = Site::new(3, 2);
    site.head.as_mut().unwrap().kill();
    site.head = Some(site.start_repairing_head());
    let mut writer = site.writer();
    let mut files = 0;
    // One of them is not on the disk that is damaged, and has more replicas than are wanted.
    let elsewhere = loop {
        let path = format!("f{files}");
        site.put_by(&mut writer, &path, &noise(30_000, files)).unwrap();
        files += 1;
        if site.contents(0).len() >= 3 && !disks_of(&site, &path).contains(&site.number(0)) {
            break path;
        }
        assert!(files < 200, "all are on one disk");
    };
    site.run(&["policy", "set", &format!("/lab/{elsewhere}"), "--replicas", "1"]).ok();
    // Another damage for each replica of a disk: removed, cut short, altered.
    let damaged: Vec<PathBuf> = objects(&site, 0);
    behind_its_back(&mut site, 0, || std::fs::remove_file(&damaged[0]).unwrap());
    for (index, path) in damaged.iter().enumerate().skip(1) {
        let mut octets = std::fs::read(path).unwrap();
        match index % 2 {
            0 => octets.truncate(10_000),
            _ => octets[20_000] ^= 1,
        }
        std::fs::write(path, octets).unwrap();
    }
    site.await_status("OK");
    let repair = |args: &[&str]| {
        let args = [&["fsck", "--disks", "--content", "--repair"], args].concat();
        site.run(&[&args[..], &["--timeout", "60"]].concat())
    };
    let dry = repair(&[]).fails_with(1, "nothing was changed").stdout();
    for words in ["missing", "different-content", "over-replicated", "made again", "too much"] {
        assert!(dry.contains(words), "{words}: {dry}");
    }
    let of_replicas = ["missing", "different-"];
    let is_one = |line: &&str| of_replicas.iter().any(|problem| line.starts_with(problem));
    assert_eq!(dry.lines().filter(is_one).count(), damaged.len(), "{dry}");
    let again = repair(&[]).fails_with(1, "nothing was changed").stdout();
    assert_eq!(again, dry, "nothing was changed");

    repair(&["--yes"]).fails_with(1, "being mended");
    let compared = || site.run(&["fsck", "--disks", "--content", "--timeout", "60"]).stdout();
    let is_whole = || compared().ends_with("OK\n");
    wait_for("nothing but what leaves", is_whole, compared);
    for seed in 0..files {
        assert!(site.read(&format!("f{seed}")).ok().bytes() == noise(30_000, seed), "f{seed}");
    }
    site.check();
    let nothing = site.home.run(&["site", "fsck", "--dir", "site", "--repair"]).ok();
    assert!(nothing.stderr().contains("nothing to mend"), "{}", nothing.stderr());
}

#[test]
fn fsck_says_which_disk_was_not_compared() {
    let mut site = Site::new(2, 1);
    site.put("a", &noise(10, 1)).unwrap();
    let holder = site.holders()[0];
    site.disks[holder].take().unwrap().kill();
    let lines = site.run(&["fsck", "--disks", "--json"]).fails_with(1, "").stdout();
    assert!(lines.contains("\"out-of-reach\"") && lines.contains("/lab/a"), "{lines}");
    assert!(lines.contains("it does not answer"), "{lines}");
}

#[test]
fn replicas_of_files_and_room_in_spaces_are_listed() {
    let mut site = Site::new(3, 2);
    site.put("a", &noise(1000, 1)).unwrap();
    let names = ["/lab/a", "/lab/none"];
    let listed = site.run(&["replica", "ls", names[0], "--json"]).ok().stdout();
    let rows: Vec<serde_json::Value> =
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let servers = rows.iter().map(|row| row["server"].as_str().unwrap());
    let servers: std::collections::BTreeSet<&str> = servers.collect();
    let holders: Vec<String> = site.holders().iter().map(|disk| format!("s{disk}")).collect();
    assert!(rows.len() == 2 && servers.iter().eq(holders.iter()), "{servers:?} {holders:?}");
    assert!(rows.iter().all(|row| row["wanted"] == 2 && row["bytes"] == 1000));
    let table = site.run(&["replica", "ls", names[0]]).ok().stdout();
    assert!(table.lines().count() == 3 && table.contains("/lab/a"), "{table}");
    site.run(&["replica", "ls", names[1]]).fails_with(3, "/lab/none");
    site.run(&["replica", "ls", "/lab"]).fails_with(1, "directory");

    let space = |site: &Site| -> serde_json::Value {
        serde_json::from_str(&site.run(&["space", "ls", "--json"]).ok().stdout()).unwrap()
    };
    let whole = space(&site);
    let number = |value: &serde_json::Value, key: &str| value[key].as_u64().unwrap();
    assert_eq!((number(&whole, "disks"), number(&whole, "writable")), (3, 3));
    assert_eq!(number(&whole, "used_bytes"), 2000);
    site.run(&["disk", "set", &rows[0]["disk"].to_string(), "--state", "ro"]).ok();
    let less = space(&site);
    assert_eq!(number(&less, "writable"), 2);
    assert!(number(&less, "free_bytes") < number(&whole, "free_bytes"));
    site.check();
}
