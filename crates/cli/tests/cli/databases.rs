//! Sites whose catalog is in PostgreSQL.

use crate::cluster::Cluster;
use crate::harness::{Daemon, Home, wait_for};
use crate::sites::Site;

/// The engine's address of a new database.
fn engine(cluster: &Cluster) -> String {
    format!("postgres:{}", cluster.database())
}

#[test]
fn a_site_in_a_database_is_served_and_goes_on_when_the_server_is_killed() {
    let cluster = Cluster::start();
    let engine = engine(&cluster);
    let mut site = Site::in_engine(&engine);
    site.home
        .run(&["site", "init", "/lab", "--dir", "site", "--engine", &engine])
        .fails_with(7, "another process has this catalog open");
    site.run(&["user", "add", "anna", "--group", "physics"]).ok();
    cluster.kill();
    cluster.start_again();
    // The command waits for the server, or is repeated until it is back.
    site.run(&["user", "add", "bert", "--group", "physics", "--timeout", "60"]).ok();
    let users = site.run(&["user", "ls", "--timeout", "60"]).ok().stdout();
    assert!(users.contains("anna") && users.contains("bert"), "{users}");

    let head: Daemon = site.head.take().unwrap();
    drop(head);
    site.home.run(&["site", "fsck", "--dir", "site"]).ok();
    site.home.run(&["site", "init", "/lab", "--dir", "site"]).fails_with(7, "already");
    let elsewhere = Home::new();
    let from_here = ["site", "init", "/lab", "--dir", "other", "--engine", &engine];
    elsewhere.run(&from_here).fails_with(7, "already");
}

#[test]
fn an_engine_that_is_none_is_named() {
    let home = Home::new();
    let init =
        |engine: &str| home.run(&["site", "init", "/lab", "--dir", "site", "--engine", engine]);
    init("mysql:lab").fails_with(2, "an engine is `embedded` or `postgres:`");
    init("postgres:host").fails_with(7, "does not say where a database is");
    init("postgres:host=/nowhere dbname=lab").fails_with(7, "cannot be used");
}

/// All names of the site and the log of its changes, as its operator sees them.
fn says(site: &Site) -> (String, String) {
    let tree = site.home.run(&["find", "/lab", "--connect", &site.socket]).ok().stdout();
    (tree, site.run(&["log"]).ok().stdout())
}

#[test]
fn a_catalog_is_moved_to_a_database_and_back_and_says_the_same() {
    let cluster = Cluster::shared();
    let (engine, other) = (engine(&cluster), engine(&cluster));
    let mut site = Site::new();
    site.run(&["user", "add", "anna", "--group", "physics"]).ok();
    for name in ["/lab/a", "/lab/a/b", "/lab/c"] {
        site.home.run(&["mkdir", name, "--connect", &site.socket]).ok();
    }
    let before = says(&site);
    let moves = |site: &Site, to: &str| {
        site.home.run(&["site", "move-engine", "/lab", to, "--dir", "site", "--json"])
    };
    moves(&site, &engine).fails_with(7, "is another `byname catalog` running?");
    site.head = None;
    let there = moves(&site, &engine).ok().stdout();
    assert!(there.contains("\"engine\":\"postgres\"") && there.contains("\"digest\":"), "{there}");
    moves(&site, &engine).fails_with(2, "in that engine already");
    site.head = Some(site.start_head());
    assert_eq!(says(&site), before);
    moves(&site, "embedded").fails_with(7, "another process has this catalog open");
    site.home.run(&["mkdir", "/lab/d", "--connect", &site.socket]).ok();
    // Forwarders may say for a second what was there before.
    wait_for("new directory", || says(&site).0.contains("/lab/d"), || says(&site).0);
    let later = says(&site);
    site.head = None;

    // What was left behind is no catalog, and is none for a new site either.
    let init = ["site", "init", "/lab", "--dir", "site"];
    site.home.run(&init).fails_with(7, "already");
    // A copy that was begun from an older state is brought up to date.
    moves(&site, "embedded").ok();
    moves(&site, &other).ok();
    moves(&site, "embedded").ok();
    site.home.run(&["site", "fsck", "--dir", "site"]).ok();
    site.head = Some(site.start_head());
    assert_eq!(says(&site), later);
}

#[test]
fn a_backup_of_a_catalog_in_a_database_is_restored_in_either_engine() {
    let cluster = Cluster::shared();
    let (engine, other) = (engine(&cluster), engine(&cluster));
    let mut site = Site::in_engine(&engine);
    site.run(&["user", "add", "anna", "--group", "physics"]).ok();
    site.home.run(&["mkdir", "/lab/a", "--connect", &site.socket]).ok();
    let to = site.home.path().join("backup");
    let to = to.to_str().unwrap();
    site.run(&["backup", to]).ok();
    let head: Daemon = site.head.take().unwrap();
    drop(head);
    let restore = |engine: &str, dir: &str| -> serde_json::Value {
        let args = ["site", "restore", to, "--no-disks", "--dir", dir, "--engine", engine];
        let made = site.home.run(&[&args[..], &["--yes", "--json"]].concat()).ok().stdout();
        site.home.run(&["site", "fsck", "--dir", dir]).ok();
        serde_json::from_str(made.lines().last().unwrap()).unwrap()
    };
    let (file, database) = (restore("embedded", "file"), restore(&other, "database"));
    assert_eq!(file["digest"], database["digest"]);
    assert_eq!((&file["inodes"], &database["inodes"]), (&2.into(), &2.into()));
    // One that has a catalog already stays as it is, and what was made is where it was made.
    let args = ["site", "restore", to, "--no-disks", "--dir", "third", "--engine", &engine];
    site.home.run(&[&args[..], &["--yes"]].concat()).fails_with(7, "there is a site");
    assert!(!site.home.path().join("third/catalog.redb").exists(), "nothing was made");
    let moved = site.home.run(&["site", "move-engine", "/lab", "--dir", "database", "embedded"]);
    assert!(moved.ok().stdout().contains("digest of both"));
}
