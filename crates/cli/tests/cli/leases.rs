//! Write leases and removed trees with real processes.

use crate::disks::Site;
use crate::harness::{noise, signal, wait_for, write};
use crate::puts::{expect, run};
use std::process::Stdio;

/// Scenario 5, with a lease: one writer has the file, and everybody else knows at once.
#[test]
fn one_writer_has_a_file_and_the_others_know_at_once() {
    let site = Site::new(1, 1);
    let file = site.home.path().join("a");
    let path = file.to_str().unwrap();
    write(&file, &noise(300_000, 1));
    // What is not there yet needs no lease.
    run(&site, &["put", path, "/lab/a", "--lease"]).ok();
    let none = run(&site, &["site", "lease", "ls", "/lab/a", "--json"]).ok();
    assert_eq!(none.stdout(), "", "it has ended with the command");

    // A writer whose disk has stopped holds the lease meanwhile.
    signal(site.disks[0].as_ref().unwrap().pid(), "STOP");
    write(&file, &noise(300_000, 2));
    let mut command = site.home.byname();
    command.args(["put", path, "/lab/a", "--lease", "--connect", &site.socket]);
    let held = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let listed = || run(&site, &["site", "lease", "ls", "/lab/a", "--json"]).stdout();
    wait_for("the lease", || listed().contains("\"user\":\"op\""), listed);
    let other = run(&site, &["put", path, "/lab/a"]);
    other.fails_with(1, "/lab/a: somebody else has the file for writing");
    run(&site, &["truncate", "/lab/a"]).fails_with(1, "somebody else has the file");
    run(&site, &["put", path, "/lab/a", "--lease"]).fails_with(1, "byname site lease ls /lab/a");

    // Its owner ends it: the first one loses, and says so.
    let end = ["site", "lease", "end", "/lab/a", "--yes"];
    run(&site, &end[..4]).fails_with(2, "/lab/a: the lease of op was not ended");
    run(&site, &end).ok();
    assert_eq!(listed(), "");
    signal(site.disks[0].as_ref().unwrap().pid(), "CONT");
    let lost = crate::harness::Finished::of(held.wait_with_output().unwrap());
    lost.fails_with(1, "the lease of the file has ended");
    expect(&site, "/lab/a", &noise(300_000, 1));
    run(&site, &["put", path, "/lab/a", "--lease"]).ok();
    expect(&site, "/lab/a", &noise(300_000, 2));
}

#[test]
fn a_tree_is_removed_in_one_command_and_its_quota_and_disks_are_free() {
    let mut site = Site::new(1, 1);
    for number in 0..30 {
        let file = site.home.work(&format!("tree/d{}/below", number % 3)).join("f");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        write(&file.with_extension(number.to_string()), &noise(2000, number));
    }
    run(&site, &["put", "-r", "tree", "/lab/tree"]).ok();
    run(&site, &["rm", "/lab/tree"]).fails_with(1, "byname rm -r");
    run(&site, &["rm", "-r", "/lab/tree"]).ok();
    run(&site, &["rm", "-r", "/lab/tree"]).fails_with(3, "no such file");
    run(&site, &["rm", "-r", "-f", "/lab/tree"]).ok();
    let log = run(&site, &["site", "log"]).ok().stdout();
    assert_eq!(log.matches("\"remove-all\"").count(), 1, "{log}");
    let used = || run(&site, &["site", "status", "--json"]).ok().stdout();
    wait_for("the quota", || used().contains("\"inodes\":1,"), used);
    wait_for("the disk", || site.contents(0).is_empty(), || site.log_of(0));
    site.check();
}
