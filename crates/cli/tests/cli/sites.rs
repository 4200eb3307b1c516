//! Sites with real processes: a forwarder, the head, operators and users.

use crate::harness::{Daemon, Home, free_port, write};
use byname_catalog::engine::EmbeddedEngine;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A forwarder, and the head of a new site.
pub(crate) struct Site {
    pub(crate) head: Option<Daemon>,
    _forwarder: Daemon,
    pub(crate) socket: String,
    pub(crate) link: String,
    pub(crate) home: Home,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::in_engine("embedded")
    }

    pub(crate) fn in_engine(engine: &str) -> Self {
        let home = Home::new();
        let socket = format!("unix://{}", home.work("run").join("f.sock").display());
        let forwarder = home.start(&["forward", "--listen", &socket], "listening");
        let made = home
            .run(&["site", "init", "/lab", "--operator", "op", "--dir", "site", "--engine", engine])
            .ok();
        let link = made.stdout().trim().to_owned();
        let mut site = Self { head: None, _forwarder: forwarder, socket, link, home };
        site.head = Some(site.start_head());
        site
    }

    pub(crate) fn start_head(&self) -> Daemon {
        let args = ["catalog", "--dir", "site", "--connect", &self.socket];
        self.home.start(&args, "byname:/lab")
    }

    /// An operator's command.
    pub(crate) fn run(&self, args: &[&str]) -> crate::harness::Finished {
        let args = [&["site"], args, &["--connect", &self.socket]].concat();
        self.home.run(&args)
    }

    /// A reader's or somebody else's command, who has the link.
    pub(crate) fn read(&self, home: &Home, args: &[&str]) -> crate::harness::Finished {
        home.run(&[args, &["--connect", &self.socket]].concat())
    }
}

#[test]
fn a_site_is_made_served_read_and_administered_by_name() {
    let mut site = Site::new();
    site.home.run(&["site", "init", "/lab", "--dir", "site"]).fails_with(7, "already");
    let status = site.run(&["status"]).fails_with(1, "").stdout();
    assert!(status.ends_with("no disk takes new content\n"), "{status}");
    site.run(&["disk", "add", "d1", "--capacity", "1T", "--server", "s1"]).ok();
    let status = site.run(&["status"]).ok().stdout();
    assert!(status.ends_with("OK\n"), "{status}");
    let disks = site.run(&["disk", "ls", "--json"]).ok().stdout();
    assert!(disks.contains("\"server\":\"s1\""), "{disks}");

    // What reads any publisher reads the site, with its link alone.
    let reader = Home::new();
    let stat = site.read(&reader, &["stat", &site.link, "--json"]).ok().stdout();
    assert!(stat.contains("\"directory\""), "{stat}");
    assert_eq!(site.read(&reader, &["ls", &site.link]).ok().stdout(), "");
    let missing = site.link.replacen("/lab", "/lab/missing", 1);
    site.read(&reader, &["stat", &missing]).fails_with(3, "");

    // A user with a key of her own: unknown, then added, then revoked.
    let anna = Home::new();
    let link = site.link.clone();
    let as_anna = ["--site", &link, "--user", "anna"];
    let key = anna.run(&[&["site", "user", "key"], &as_anna[..]].concat()).ok().stdout();
    let list = [&["site", "user", "ls"], &as_anna[..]].concat();
    site.read(&anna, &list).fails_with(6, "does not know the key");
    let file = site.home.path().join("anna.cert");
    write(&file, key.as_bytes());
    let file = file.to_str().unwrap();
    site.run(&["user", "add", "anna", "--group", "physics", "--key", file]).ok();
    site.run(&["user", "add", "bert", "--key", file]).fails_with(2, "not for bert");
    let users = site.read(&anna, &list).ok().stdout();
    assert!(users.contains("anna") && users.contains("physics"), "{users}");
    let add = [&["site", "user", "add", "eve"], &as_anna[..]].concat();
    site.read(&anna, &add).fails_with(7, "operator");
    let log = site.run(&["log"]).ok().stdout();
    assert!(log.contains("\"command\":\"add-key\""), "{log}");
    site.run(&["user", "revoke", file]).fails_with(2, "was not taken from its user");
    site.read(&anna, &list).ok();
    site.run(&["user", "revoke", file, "--yes"]).ok();
    site.read(&anna, &list).fails_with(6, "does not know the key");

    // One head at a time; without one nobody answers.
    site.home.run(&["site", "fsck", "--dir", "site"]).fails_with(7, "cannot be used");
    assert_eq!(site.head.take().unwrap().interrupt(), Some(0));
    let engine = EmbeddedEngine::open(&site.home.path().join("site/catalog.redb")).unwrap();
    assert!(engine.was_at_rest(), "a head that ends spares the next one from reading all of it");
    drop(engine);
    let checked = site.home.run(&["site", "fsck", "--dir", "site"]).ok().stdout();
    assert_eq!(checked, "/lab: OK\n");
    site.run(&["status", "--timeout", "1"]).fails_with(4, "does not answer");
}

#[test]
fn a_head_that_a_forwarder_elsewhere_refuses_says_what_lets_it_in() {
    let (home, there) = (Home::new(), Home::new());
    let made = home.run(&["site", "init", "/lab", "--operator", "op", "--dir", "site"]).ok();
    let key = made.stdout().trim().split_once("key=").unwrap().1.to_owned();
    // What comes over UDP may be from another machine, also here.
    let uri = format!("udp://127.0.0.1:{}", free_port());
    let _forwarder = there.start(&["forward", "--listen", &uri], "listening");
    let flag = format!("byname forward --allow-register '/lab={key}'");
    home.run(&["catalog", "--dir", "site", "--connect", &uri]).fails_with(4, &flag);
}

/// Operators add users while the head is killed again and again: whoever was told that a user is
/// there finds him, and the catalog contradicts itself nowhere.
#[test]
fn nothing_acknowledged_is_lost_when_the_head_is_killed() {
    const KILLS: u32 = 3;
    let mut site = Site::new();
    let mut head = site.head.take().unwrap();
    let (acknowledged, is_over) = (Mutex::new(BTreeSet::new()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (site, acknowledged, is_over) = (&site, &acknowledged, &is_over);
            scope.spawn(move || {
                for number in 0.. {
                    let user = format!("user-{thread}-{number}");
                    site.run(&["user", "add", &user, "--group", "load", "--timeout", "30"]).ok();
                    acknowledged.lock().unwrap().insert(user);
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        for round in 1..=KILLS {
            let wanted = acknowledged.lock().unwrap().len() + 3;
            while acknowledged.lock().unwrap().len() < wanted {
                std::thread::sleep(Duration::from_millis(u64::from(round)));
            }
            head.kill();
            head = site.start_head();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let listed = site.run(&["user", "ls", "--json"]).ok().stdout();
    for user in acknowledged.into_inner().unwrap() {
        assert!(listed.contains(&format!("\"{user}\"")), "{user} was acknowledged:\n{listed}");
    }
    drop(head);
    site.home.run(&["site", "fsck", "--dir", "site"]).ok();
}
