//! What is removed from a site with a trash, with real processes: it comes back, whoever dies.

use crate::harness::{noise, wait_for, write};
use crate::puts::{expect, json, run};
use crate::sites::Site;
use crate::writing::{User, site_with_directory};

fn trash(user: &User<'_>) -> Vec<serde_json::Value> {
    let shown = user.run(&["site", "trash", "ls", "--json"]).ok().stdout();
    shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn who_removed_something_brings_it_back_and_others_do_not_see_it() {
    let site: Site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    let bert = User::new(&site, "bert", "physics");
    anna.run(&["site", "trash", "set", "--keep", "1h"]).fails_with(7, "only an operator");
    site.run(&["trash", "set", "--keep", "5s"]).fails_with(2, "a time of a minute");
    site.run(&["trash", "set", "/lab/physics", "--off"]).fails_with(1, "no quota of its own");
    anna.run(&["mkdir", "-p", "/lab/physics/run/a/b"]).ok();
    anna.run(&["touch", "/lab/physics/run/a/f", "/lab/physics/g"]).ok();
    anna.run(&["rm", "/lab/physics/g"]).ok();
    assert_eq!(trash(&anna).len(), 0, "there is no trash yet");

    site.run(&["trash", "set", "--keep", "2h", "--max", "1G"]).ok();
    let shown = anna.run(&["site", "trash", "show", "/lab/physics", "--json"]).ok().stdout();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["on"], &shown["keep_s"]), (&true.into(), &7200.into()), "{shown}");
    anna.run(&["rm", "-r", "/lab/physics/run"]).ok();
    anna.lists("/lab/physics", &[]);
    let measured = || trash(&anna).first().is_some_and(|item| item["entries"] == 4);
    wait_for("a measure", measured, || format!("{:?}", trash(&anna)));
    let item = trash(&anna).remove(0);
    assert_eq!(item["name"], "/lab/physics/run");
    assert_eq!((&item["type"], &item["removed_by"]), (&"directory".into(), &"anna".into()));
    let until = item["until_ns"].as_u64().unwrap() - item["removed_ns"].as_u64().unwrap();
    assert_eq!(until, 7_200_000_000_000);
    assert_eq!(trash(&bert).len(), 0);
    assert!(site.run(&["trash", "ls"]).ok().stdout().contains("/lab/physics/run"));

    let restore =
        |user: &User<'_>, what: &[&str]| user.run(&[&["site", "trash", "restore"], what].concat());
    restore(&bert, &["/lab/physics/run"]).fails_with(3, "nothing of yours in the trash");
    anna.run(&["touch", "/lab/physics/run"]).ok();
    restore(&anna, &["/lab/physics/run"]).fails_with(1, "there is something of this name");
    restore(&anna, &["/lab/physics/run", "--to", "/lab/run"]).fails_with(7, "modes");
    let number = item["number"].to_string();
    restore(&anna, &[&number, "--to", "/lab/physics/back"]).ok();
    anna.lists("/lab/physics", &["back/", "run"]);
    anna.lists("/lab/physics/back/a", &["b/", "f"]);
    restore(&anna, &[&number]).fails_with(3, "nothing of yours");

    anna.run(&["rm", "-r", "/lab/physics/back"]).ok();
    let purge = ["site", "trash", "purge", "/lab/physics/back"];
    anna.run(&purge).fails_with(2, "--yes");
    assert_eq!(trash(&anna).len(), 1);
    anna.run(&[&purge[..], &["--yes"]].concat()).ok();
    assert_eq!(trash(&anna).len(), 0);
    anna.run(&["rm", "/lab/physics/run"]).ok();
    site.run(&["trash", "purge", "--all", "--yes"]).ok();
    assert_eq!(trash(&anna).len(), 0);
    let log = site.run(&["log"]).ok().stdout();
    for command in ["set-trash", "restore-trash", "purge-trash", "measured-trash"] {
        assert!(log.contains(command), "{command}: {log}");
    }
}

#[test]
fn what_is_in_the_trash_counts_and_who_is_at_a_limit_is_told_so() {
    let site = crate::disks::Site::new(1, 1);
    run(&site, &["site", "quota", "set", "user:op", "--bytes", "1500k"]).ok();
    run(&site, &["site", "trash", "set", "--keep", "1d"]).ok();
    let file = site.home.path().join("a");
    write(&file, &noise(1_000_000, 1));
    let put = |to: &str| run(&site, &["put", file.to_str().unwrap(), to]);
    put("/lab/a").ok();
    run(&site, &["rm", "/lab/a"]).ok();
    put("/lab/b").fails_with(1, "byname site trash purge");
    run(&site, &["site", "trash", "purge", "--all", "--yes"]).ok();
    put("/lab/b").ok();
}

/// The head is killed after each step; octets come back as they were, and the catalog agrees with
/// itself and with its disks.
#[test]
fn what_was_removed_comes_back_though_the_head_is_killed() {
    let mut site = crate::disks::Site::new(2, 2);
    let octets = noise(1_000_000, 1);
    let file = site.home.path().join("a");
    write(&file, &octets);
    run(&site, &["put", "-p", file.to_str().unwrap(), "/lab/d/e/a"]).ok();
    run(&site, &["site", "trash", "set", "--keep", "1d"]).ok();
    let before = json(&site, &["site", "status"])["state"]["bytes"].clone();
    run(&site, &["rm", "-r", "/lab/d"]).ok();
    kill_head(&mut site);
    assert_eq!(json(&site, &["site", "status"])["state"]["bytes"], before);
    let problems = run(&site, &["site", "fsck", "--disks", "--json"]).ok().stdout();
    assert!(!problems.contains("orphaned"), "{problems}");
    run(&site, &["site", "trash", "restore", "/lab/d", "--to", "/lab/back"]).ok();
    kill_head(&mut site);
    expect(&site, "/lab/back/e/a", &octets);
    run(&site, &["rm", "/lab/back/e/a"]).ok();
    run(&site, &["site", "trash", "purge", "/lab/back/e/a", "--yes"]).ok();
    kill_head(&mut site);
    let bytes = || json(&site, &["site", "status"])["state"]["bytes"] == 0;
    wait_for("nothing that counts", bytes, String::new);
    run(&site, &["site", "trash", "restore", "/lab/back/e/a"]).fails_with(3, "nothing of yours");
}

fn kill_head(site: &mut crate::disks::Site) {
    site.head.take().expect("a head").kill();
    site.head = Some(site.start_head());
}
