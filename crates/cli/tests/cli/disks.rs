//! Disks of sites with real processes: what a disk's directory lets serve, and what not.

use crate::harness::{Daemon, Home};
use std::path::Path;

/// A forwarder, a head, and disks that are registered there.
pub(crate) struct Site {
    pub(crate) head: Option<Daemon>,
    pub(crate) disks: Vec<Option<Daemon>>,
    _forwarder: Daemon,
    pub(crate) socket: String,
    pub(crate) home: Home,
}

impl Site {
    /// So many disks, each said to be in a server of its own, and so many replicas of a file.
    pub(crate) fn new(disks: usize, replicas: usize) -> Self {
        let home = Home::new();
        let socket = format!("unix://{}", home.work("run").join("f.sock").display());
        let forwarder = home.start(&["forward", "--listen", &socket], "listening");
        let replicas = replicas.to_string();
        let init = ["site", "init", "/lab", "--operator", "op", "--dir", "site", "--replicas"];
        home.run(&[&init[..], &[&replicas]].concat()).ok();
        let disks_served = Vec::new();
        let mut site =
            Self { head: None, disks: disks_served, _forwarder: forwarder, socket, home };
        site.head = Some(site.start_head());
        for index in 0..disks {
            site.add_disk(index);
            let disk = site.start_disk(index);
            site.disks.push(Some(disk));
        }
        site
    }

    pub(crate) fn start_head(&self) -> Daemon {
        let args = ["catalog", "--dir", "site", "--connect", &self.socket];
        self.home.start(&args, "byname:/lab")
    }

    pub(crate) fn add_disk(&self, index: usize) {
        let (dir, server) = (format!("d{index}"), format!("s{index}"));
        self.run(&["disk", "add", &dir, "--capacity", "1G", "--server", &server]).ok();
    }

    pub(crate) fn start_disk(&self, index: usize) -> Daemon {
        let dir = format!("d{index}");
        self.home.start(&["disk", &dir, "--connect", &self.socket], "serving d")
    }

    /// An operator's command.
    pub(crate) fn run(&self, args: &[&str]) -> crate::harness::Finished {
        let args = [&["site"], args, &["--connect", &self.socket]].concat();
        self.home.run(&args)
    }
}

fn copy_tree(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

#[test]
fn a_disk_is_served_once_from_its_own_directory_by_who_has_its_key() {
    let mut site = Site::new(1, 1);
    let home = &site.home;
    home.run(&["disk", "d0"]).fails_with(7, "another process serves this disk");
    copy_tree(&home.path().join("d0"), &home.path().join("copy"));
    home.run(&["disk", "copy"]).fails_with(7, "this is a copy of disk");
    home.work("empty");
    home.run(&["disk", "empty"]).fails_with(7, "byname site disk add");
    site.run(&["disk", "add", "d0"]).fails_with(7, "not empty");
    let mut disk = site.disks[0].take().unwrap();
    disk.kill();
    let stranger = Home::new();
    let dir = site.home.path().join("d0");
    stranger.run(&["disk", dir.to_str().unwrap()]).fails_with(6, "the key of");
    // What a crash left is no obstacle, and one that is stopped ends well.
    let mut disk = site.start_disk(0);
    assert_eq!(disk.interrupt(), Some(0));
}
