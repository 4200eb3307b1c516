//! Sites that take files, with real processes: a forwarder, a head, disks, a writer.

use crate::harness::{Daemon, Finished, Home, noise, wait_for};
use byname_catalog::{Create, Place, PolicyChanges, Publish};
use byname_io::{Connection, Endpoint};
use byname_keychain::Keychain;
use byname_packet::Name;
use byname_security::trust::TrustPolicy;
use byname_site::{SiteName, SpeaksFor};
use byname_writer::{Next, Put, PutEvent, Source, Writer, WriterConfig, WriterError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The head of the site in this home.
pub(crate) fn start_head(home: &Home, socket: &str) -> Daemon {
    let args = ["catalog", "--dir", "site", "--keep-versions", "1s", "--connect", socket];
    home.start(&args, "byname:/lab")
}

/// Writes a file, whether there is one or not, through a local one.
pub(crate) fn put_from(
    local: &Path,
    writer: &mut Writer,
    path: &str,
    octets: &[u8],
) -> Result<(), WriterError> {
    std::fs::write(local, octets).unwrap();
    let create = Create {
        place: Place::path(path.as_bytes()).unwrap(),
        mode: 0o644,
        size_max: octets.len() as u64,
        publish: Publish::AtCommit,
        exclusive: false,
        policy: PolicyChanges::default(),
    };
    let source = Arc::new(Source::open(local, &|| false).unwrap());
    let mut files = vec![(0, Put { create, keep_time: false, source })];
    let mut outcome = None;
    writer.put_all(
        &mut || files.pop().map_or(Next::End, |(number, put)| Next::Put(number, put)),
        &mut |event| {
            if let PutEvent::Done { result, .. } = event {
                outcome = Some(result.map(drop));
            }
        },
        &|| false,
    )?;
    outcome.expect("each file ends")
}

pub(crate) fn site_name() -> SiteName {
    SiteName::new("/lab".parse().unwrap()).unwrap()
}

/// A writer with the key of this namespace, a user's or a door's for a user. The homes are that of
/// the key, and that of the site.
pub(crate) fn writer_as(
    (home, site_home): (&Home, &Home),
    (namespace, speaks_for): (Name, Option<SpeaksFor>),
    socket: &str,
) -> Writer {
    let keys = |home: &Home| Keychain::open(&home.path().join("home/data/keys")).unwrap();
    let site = site_name();
    let of_site = keys(site_home).identity(site.view()).unwrap().unwrap();
    let identity = keys(home).identity(namespace.view()).unwrap().unwrap();
    let mut trust = TrustPolicy::default();
    trust.add_anchor(site.view().to_name(), of_site.certificate.key_id());
    let config = WriterConfig {
        namespace,
        speaks_for,
        site,
        signer: identity.signer,
        trust,
        waits_for_head: false,
    };
    let endpoint: Endpoint = socket.parse().unwrap();
    let connection = Connection::connect(&endpoint, Duration::from_secs(5)).unwrap();
    Writer::connect(connection, config, &|| false).unwrap()
}

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
        Self::in_home(Home::new(), disks, replicas)
    }

    /// The same by the program of a home.
    pub(crate) fn in_home(home: Home, disks: usize, replicas: usize) -> Self {
        let socket = format!("unix://{}", home.work("run").join("f.sock").display());
        let forwarder = home.start(&["forward", "--listen", &socket], "listening");
        let replicas = replicas.to_string();
        let init = ["site", "init", "/lab", "--operator", "op", "--dir", "site", "--replicas"];
        home.run(&[&init[..], &[&replicas]].concat()).ok();
        let mut site = Self { head: None, disks: Vec::new(), _forwarder: forwarder, socket, home };
        site.head = Some(site.start_head());
        for index in 0..disks {
            site.add_disk(index);
            let disk = site.start_disk(index);
            site.disks.push(Some(disk));
        }
        site
    }

    /// The site's link, as its head prints it.
    pub(crate) fn link(&self) -> String {
        self.head.as_ref().unwrap().link()
    }

    pub(crate) fn start_head(&self) -> Daemon {
        start_head(&self.home, &self.socket)
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
    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        let args = [&["site"], args, &["--connect", &self.socket]].concat();
        self.home.run(&args)
    }

    /// The verified content of a file.
    pub(crate) fn read(&self, path: &str) -> Finished {
        self.home.run(&["cat", &format!("/lab/{path}"), "--connect", &self.socket])
    }

    /// A writer of the operator's.
    pub(crate) fn writer(&self) -> Writer {
        let op = site_name().user("op");
        writer_as((&self.home, &self.home), (op, None), &self.socket)
    }

    /// Writes a file, whether there is one or not.
    pub(crate) fn put(&self, path: &str, octets: &[u8]) -> Result<(), WriterError> {
        self.put_by(&mut self.writer(), path, octets)
    }

    /// The same by a writer that is there.
    pub(crate) fn put_by(
        &self,
        writer: &mut Writer,
        path: &str,
        octets: &[u8],
    ) -> Result<(), WriterError> {
        put_from(&self.home.path().join("local"), writer, path, octets)
    }

    /// Contents in the place where a disk serves them from.
    pub(crate) fn contents(&self, disk: usize) -> Vec<PathBuf> {
        let objects = self.home.path().join(format!("d{disk}/objects"));
        let shards = std::fs::read_dir(objects).unwrap();
        let files = shards.flat_map(|shard| std::fs::read_dir(shard.unwrap().path()).unwrap());
        files.map(|file| file.unwrap().path()).collect()
    }

    /// Disks that have some content.
    pub(crate) fn holders(&self) -> Vec<usize> {
        (0..self.disks.len()).filter(|disk| !self.contents(*disk).is_empty()).collect()
    }

    pub(crate) fn log_of(&self, disk: usize) -> String {
        self.disks[disk].as_ref().map(Daemon::log).unwrap_or_default()
    }

    /// Waits until the last line of the site's status begins so.
    pub(crate) fn await_status(&self, wanted: &str) {
        let status = || self.run(&["status"]).stdout();
        let is_wanted = || status().lines().last().is_some_and(|line| line.contains(wanted));
        wait_for(&format!("status {wanted:?}"), is_wanted, status);
    }

    /// Ends the head, and compares everything in the catalog.
    pub(crate) fn check(&mut self) {
        self.head.take().unwrap().interrupt();
        self.home.run(&["site", "fsck", "--dir", "site"]).ok();
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

#[test]
fn a_file_is_on_as_many_disks_as_wanted_and_is_read_by_its_name() {
    let mut site = Site::new(3, 2);
    for (path, len) in [("empty", 0), ("one", 1), ("unit", 8192), ("large", 3 << 20)] {
        let octets = noise(len, 7);
        site.put(path, &octets).unwrap();
        assert!(site.read(path).ok().bytes() == octets, "{path}");
    }
    let counts: Vec<usize> = (0..3).map(|disk| site.contents(disk).len()).collect();
    assert_eq!(counts.iter().sum::<usize>(), 6, "two replicas of each: {counts:?}");
    site.await_status("OK");
    site.check();
}

/// Scenario 12: a dead replica blocks neither reading nor rewriting, and is cleaned on return.
#[test]
fn a_dead_disk_blocks_nobody_and_is_cleaned_when_it_is_back() {
    let mut site = Site::new(3, 2);
    let (first, second) = (noise(300_000, 1), noise(400_000, 2));
    site.put("f", &first).unwrap();
    let dead = site.holders()[0];
    let old = site.contents(dead);
    site.disks[dead].take().unwrap().kill();
    assert!(site.read("f").ok().bytes() == first, "read from the other replica");
    site.put("f", &second).unwrap();
    assert!(site.read("f").ok().bytes() == second);
    assert!(!site.holders().iter().any(|disk| *disk != dead && site.contents(*disk).is_empty()));
    site.await_status("does not answer");
    assert_eq!(site.contents(dead), old, "nobody has told it");
    site.disks[dead] = Some(site.start_disk(dead));
    wait_for("the old version to go", || site.contents(dead).is_empty(), || site.log_of(dead));
    assert!(site.read("f").ok().bytes() == second);
    site.await_status("OK");
    site.check();
}

#[test]
fn a_disk_that_has_nothing_is_removed_and_its_server_commands_nothing_more() {
    let mut site = Site::new(2, 1);
    let listed = site.run(&["disk", "ls", "--json"]).ok().stdout();
    let of_second = listed.lines().find(|line| line.contains("\"server\":\"s1\"")).unwrap();
    let row: serde_json::Value = serde_json::from_str(of_second).unwrap();
    let number = row["disk"].to_string();
    site.run(&["disk", "rm", "9999", "--yes"]).fails_with(3, "no disk 9999");
    site.run(&["disk", "rm", &number, "--yes"]).fails_with(2, "it is not off");
    site.run(&["disk", "set", &number, "--state", "off"]).ok();
    site.run(&["disk", "rm", &number]).fails_with(2, "it was not removed");
    site.run(&["disk", "rm", &number, "--yes"]).ok();
    assert_eq!(site.run(&["disk", "ls", "--json"]).ok().stdout().lines().count(), 1);
    site.put("f", b"on the other").unwrap();
    assert_eq!(site.holders(), [0]);
    site.await_status("OK");
    // One that has a file stays.
    let listed = site.run(&["disk", "ls", "--json"]).ok().stdout();
    let row: serde_json::Value = serde_json::from_str(listed.trim()).unwrap();
    let number = row["disk"].to_string();
    site.run(&["disk", "set", &number, "--state", "off"]).ok();
    site.run(&["disk", "rm", &number, "--yes"]).fails_with(1, "still has replicas");
    site.check();
}

#[test]
fn a_whole_site_runs_in_one_process_and_starts_again_after_a_kill() {
    let home = Home::new();
    let up = ["site", "up", "d0", "d1", "--name", "/lab", "--capacity", "1G", "--replicas", "2"];
    let mut daemon = home.start(&up, "byname:/lab");
    home.run(&["mkdir", "/lab/dir"]).ok();
    daemon.kill();
    let mut daemon = home.start(&up, "byname:/lab");
    let listed = home.run(&["ls", "/lab"]).ok().stdout();
    assert!(listed.contains("dir"), "{listed}");
    let status = home.run(&["site", "status", "--site", "/lab"]).ok().stdout();
    assert!(status.ends_with("OK\n") && status.contains("disks     2"), "{status}");
    assert_eq!(daemon.interrupt(), Some(0));
    std::fs::write(home.work("other").join("file"), b"x").unwrap();
    home.run(&["site", "up", "other", "--name", "/lab"]).fails_with(7, "no disk of a site");
    // Its catalog is elsewhere, or lost: no empty one takes its place.
    let elsewhere = [&up[..], &["--dir", "new"]].concat();
    let refused = home.run(&elsewhere).fails_with(2, "no catalog that knows of it");
    assert!(refused.stderr().contains("site rebuild"), "{}", refused.stderr());
    assert!(!home.path().join("new").exists());
}
