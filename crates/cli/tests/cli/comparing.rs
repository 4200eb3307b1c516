//! A site's catalog beside what its disks have, with real processes.

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
    site.disks[disk] = Some(site.start_disk(disk));
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
fn fsck_says_which_disk_was_not_compared() {
    let mut site = Site::new(2, 1);
    site.put("a", &noise(10, 1)).unwrap();
    let holder = site.holders()[0];
    site.disks[holder].take().unwrap().kill();
    let lines = site.run(&["fsck", "--disks", "--json"]).fails_with(1, "").stdout();
    assert!(lines.contains("\"out-of-reach\"") && lines.contains("/lab/a"), "{lines}");
    assert!(lines.contains("it does not answer"), "{lines}");
}
