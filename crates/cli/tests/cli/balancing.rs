//! Replicas that operators move by name or to balance disks, and those that files lack.

use crate::disks::Site;
use crate::harness::{noise, wait_for};

/// Disks that a file is on, by the catalog's word.
pub(crate) fn disks_of(site: &Site, path: &str) -> Vec<String> {
    let listed = site.run(&["replica", "ls", &format!("/lab/{path}"), "--json"]).ok().stdout();
    let rows = listed.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap());
    rows.map(|row| row["disk"].to_string()).collect()
}

fn repairing(disks: usize, replicas: usize) -> Site {
    let mut site = Site::new(disks, replicas);
    site.head.as_mut().unwrap().kill();
    site.head = Some(site.start_repairing_head());
    site
}

#[test]
fn replicas_are_added_moved_and_dropped_by_name() {
    let mut site = repairing(4, 2);
    site.put("a", &noise(50_000, 1)).unwrap();
    let before = disks_of(&site, "a");
    let all: Vec<String> = (0..4).map(|index| site.number(index)).collect();
    let free = all.iter().find(|disk| !before.contains(disk)).unwrap().clone();
    let (gone, stays) = (&before[0], &before[1]);

    let replica = |args: &[&str]| site.run(&[&["replica"], args].concat());
    let moved = replica(&["move", "/lab/a", "--from", gone, "--to", &free]).ok().stderr();
    assert!(moved.contains(&format!("on disk {free} in place of disk {gone}")), "{moved}");
    let mut now = disks_of(&site, "a");
    now.sort();
    let mut wanted = vec![free.clone(), stays.clone()];
    wanted.sort();
    assert_eq!(now, wanted);

    replica(&["move", "/lab/a", "--from", gone]).fails_with(2, "not on disk");
    replica(&["add", "/lab/a", "--to", stays]).fails_with(2, "already");
    // A disk that has dropped a version does not take it again; the head finds another one.
    let added = replica(&["add", "/lab/a"]).ok().stderr();
    assert!(added.contains("on disk") && !added.contains(&format!("on disk {gone}")), "{added}");
    assert_eq!(disks_of(&site, "a").len(), 3);
    let fsck = site.run(&["fsck", "--disks"]).fails_with(1, "").stdout();
    assert!(fsck.contains("over-replicated") && fsck.contains("/lab/a"), "{fsck}");

    replica(&["drop", "/lab/a", "--from", &free]).fails_with(2, "say --yes");
    assert_eq!(disks_of(&site, "a").len(), 3, "nothing was changed");
    replica(&["drop", "/lab/a", "--from", &free, "--yes"]).ok();
    assert!(!disks_of(&site, "a").contains(&free));
    assert!(site.read("a").ok().bytes() == noise(50_000, 1));
    site.await_agreement();
    site.check();
}

#[test]
fn a_file_that_lacks_replicas_gets_them_and_what_is_lost_is_named() {
    let mut site = repairing(2, 1);
    site.put("a", &noise(50_000, 1)).unwrap();
    assert_eq!(disks_of(&site, "a").len(), 1);
    site.run(&["policy", "set", "/lab/a", "--replicas", "2"]).ok();
    let log = || site.head.as_ref().unwrap().log();
    wait_for("second replica", || disks_of(&site, "a").len() == 2, log);
    site.await_agreement();
    // The last one is not dropped, whoever says so.
    site.put("b", &noise(50_000, 2)).unwrap();
    let holder = disks_of(&site, "b")[0].clone();
    let drop_it = ["replica", "drop", "/lab/b", "--from", &holder, "--yes"];
    site.run(&drop_it).fails_with(1, "no other disk that answers");
    let index = (0..2).find(|index| site.number(*index) == holder).unwrap();
    site.disks[index].take().unwrap().kill();
    site.await_status("no disk that answers has 1 file");
    let fsck = site.run(&["fsck", "--disks", "--json"]).fails_with(1, "").stdout();
    let is_it = |line: &str| line.contains("out-of-reach") && line.contains("/lab/b");
    let line = fsck.lines().find(|line| is_it(line)).unwrap();
    assert!(line.contains("\"owner\":\"op\""), "{line}");
    assert!(site.read("a").ok().bytes() == noise(50_000, 1));
}

#[test]
fn disks_are_balanced_and_a_command_that_was_interrupted_goes_on() {
    let mut site = repairing(2, 1);
    let mut writer = site.writer();
    for number in 0..40 {
        site.put_by(&mut writer, &format!("f{number}"), &noise(50_000, number)).unwrap();
    }
    site.add_disk(2);
    let disk = site.start_disk(2);
    site.disks.push(Some(disk));
    for index in 0..3 {
        site.run(&["disk", "set", &site.number(index), "--capacity", "4M"]).ok();
    }
    site.await_status("OK");
    assert!(site.contents(2).is_empty());
    let dry = site.run(&["disk", "balance", "--dry-run"]).ok().stdout();
    assert!(dry.starts_with("disks are 0 to "), "{dry}");
    assert!(site.contents(2).is_empty(), "nothing was moved");

    // Slowly, and interrupted.
    let slow = ["site", "disk", "balance", "--rate", "100k", "--connect", &site.socket];
    let mut child = site.home.byname().args(slow).spawn().unwrap();
    let log = || site.head.as_ref().unwrap().log();
    wait_for("first replica to move", || !site.contents(2).is_empty(), log);
    crate::harness::signal(child.id(), "INT");
    child.wait().unwrap();
    let balanced = site.run(&["disk", "balance", "--timeout", "60"]).ok().stderr();
    assert!(balanced.contains("balanced: disks are "), "{balanced}");
    let counts: Vec<usize> = (0..3).map(|index| site.contents(index).len()).collect();
    assert!(counts[2] >= 8, "{counts:?}");
    for number in 0..40 {
        let read = site.read(&format!("f{number}")).ok();
        assert!(read.bytes() == noise(50_000, number), "f{number}");
    }
    let again = site.run(&["disk", "balance"]).ok().stderr();
    assert!(again.contains("; 0 B moved"), "{again}");
    site.await_agreement();
    site.check();
}
