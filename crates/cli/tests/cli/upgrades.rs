//! A site that runs is upgraded: its heads and disks are those of an older program and are replaced
//! by this one's, one after the other, while clients of both programs go on. Then back, where the
//! tables are of a version that the older program knows.
//!
//! The older program is built by `scripts/upgrade-site`, which runs these tests; no other run does.

use crate::cluster::Cluster;
use crate::disks::Site;
use crate::harness::{Daemon, Finished, Home, THIS, noise, wait_for};
use crate::head_outages::{Ending, assert_disks_agree, write_on};
use crate::histories::{explain, history_during, writers};
use crate::several_heads::{head_command, moved_to};
use byname_writer::Writer;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

const HEADS: usize = 2;
const DISKS: usize = 3;
/// Files that a client writes with one command.
const FILES: usize = 12;

/// The program that is upgraded from.
fn old_program() -> PathBuf {
    let path = std::env::var_os("BYNAME_OLD").expect("BYNAME_OLD, as scripts/upgrade-site has it");
    PathBuf::from(path)
}

/// What is replaced.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Head(usize),
    Disk(usize),
}

/// Octets of a client's file.
fn octets(seed: u64) -> Vec<u8> {
    let len = [0, 1, 8192, 8193, 40_000, 700_000][usize::try_from(seed % 6).unwrap()];
    noise(len, seed)
}

/// A client that runs one command after the other, by a program of one of both versions.
struct Commands<'a> {
    site: &'a Site,
    program: &'a Path,
    /// Its name, and that of what it writes.
    name: &'a str,
    /// Directories that are there by what it was told, and seeds of their files.
    told: &'a Mutex<Vec<(String, u64)>>,
}

impl Commands<'_> {
    fn run(&self, args: &[&str]) -> Finished {
        let mut command = self.site.home.byname_of(self.program);
        command.args(args).args(["--timeout", "60", "--connect", &self.site.socket]);
        Finished::of(command.output().unwrap())
    }

    fn assert_reads(&self, path: &str, seed: u64) {
        let read = self.run(&["cat", path, "--fresh"]).ok();
        assert!(read.bytes() == octets(seed), "{} reads {path} otherwise", self.name);
    }

    /// Writes a directory, renames it, replaces and reads files of it, removes one.
    fn step(&self, number: u64) {
        let local = self.site.home.work(&format!("{}-local", self.name));
        let seed = number * 100;
        for (index, seed) in (seed..).take(FILES).enumerate() {
            std::fs::write(local.join(format!("f{index}")), octets(seed)).unwrap();
        }
        let local = local.to_str().unwrap();
        let made = format!("/lab/{}-new{number}", self.name);
        self.run(&["put", "-r", local, &made]).ok();
        let path = format!("/lab/{}-{number}", self.name);
        self.run(&["mv", "-T", &made, &path]).ok();
        self.assert_reads(&format!("{path}/f3"), seed + 3);
        let removed = format!("{path}/gone");
        self.run(&["put", &format!("{local}/f4"), &removed]).ok();
        self.run(&["rm", &removed]).ok();
        self.told.lock().unwrap().push((path, seed));
    }

    fn go_on(&self, over: &AtomicBool) {
        (0..).take_while(|_| !over.load(Ordering::Relaxed)).for_each(|number| self.step(number));
    }
}

/// A site whose heads and disks are replaced.
struct Stage<'a> {
    site: &'a Site,
    heads: [Option<Daemon>; HEADS],
    disks: [Option<Daemon>; DISKS],
    acknowledged: &'a AtomicU64,
    told: &'a Mutex<Vec<(String, u64)>>,
    /// Parts that were replaced.
    replaced: usize,
}

impl Stage<'_> {
    fn logs(&self) -> String {
        let heads = self.heads.iter().enumerate().map(|(number, it)| ("head", number, it));
        let disks = self.disks.iter().enumerate().map(|(number, it)| ("disk", number, it));
        let log = |(what, number, daemon): (&str, usize, &Option<Daemon>)| {
            let log = daemon.as_ref().map(Daemon::log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(40)..].join("\n");
            format!("--- {what} {number}\n{last}\n")
        };
        heads.chain(disks).map(log).collect()
    }

    /// Starts a head or a disk by a program, in the place of the one that is there.
    fn put_in(&mut self, part: Part, program: &Path) {
        let home = &self.site.home;
        let byname = home.byname_of(program);
        let place = self.place(part);
        if let Some(mut before) = place.take() {
            assert_eq!(before.terminate(), Some(0), "{part:?}: {}", before.log());
        }
        let started = match part {
            Part::Head(number) => {
                home.start_command(head_command(self.site, byname, number), "byname:/lab")
            }
            Part::Disk(number) => {
                let mut byname = byname;
                byname.args(["disk", &format!("d{number}"), "--connect", &self.site.socket]);
                home.start_command(byname, "serving d")
            }
        };
        *self.place(part) = Some(started);
    }

    fn place(&mut self, part: Part) -> &mut Option<Daemon> {
        match part {
            Part::Head(number) => &mut self.heads[number],
            Part::Disk(number) => &mut self.disks[number],
        }
    }

    /// Waits until files are acknowledged, and clients have been told the ends of all they do,
    /// that began after this.
    fn await_clients(&self) {
        let files = || self.acknowledged.load(Ordering::Relaxed);
        let directories = || self.told.lock().unwrap().len();
        let before = (files(), directories());
        // One command of each client may be in flight.
        let go_on = || files() > before.0 + 2 && directories() > before.1 + 2;
        wait_for("clients that go on", go_on, || self.logs());
    }

    /// Replaces one part after the other; one order of events explains what clients are told.
    fn replace(&mut self, order: &[Part], program: &Path, clients: &mut [Writer]) {
        for part in order {
            let began = Instant::now();
            self.replaced += 1;
            let prefix = format!("replaced{}-", self.replaced);
            let of = (&self.site.home, self.site.socket.as_str());
            let told = history_during(of, clients, &prefix, || {
                self.put_in(*part, program);
                self.await_clients();
            });
            explain(&told);
            let file = program.file_name().unwrap().display();
            println!("{part:?} by {file}, {} ms", began.elapsed().as_millis());
        }
    }
}

/// What went wrong is seen in what they all have said last.
impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.logs());
        }
    }
}

/// The version of the tables.
fn tables(cluster: &Cluster, site: &Site) -> String {
    let engine = std::fs::read_to_string(site.home.path().join("site/engine")).unwrap();
    let database = engine.trim().trim_start_matches("postgres:");
    cluster.psql(database, "SELECT version FROM byname_schema")
}

/// A head of the older program says that it does not know these tables, and does nothing.
fn assert_refuses(site: &Site, old: &Path) {
    let mut command = head_command(site, site.home.byname_of(old), HEADS);
    let refused = Finished::of(command.output().unwrap());
    println!("the older program: {}", refused.stderr().trim());
    refused.fails_with(7, "use a later one");
}

/// All that clients were told is there.
fn assert_kept(reader: &Commands) {
    for (path, seed) in reader.told.lock().unwrap().iter() {
        let there = reader.run(&["ls", path, "--fresh"]).ok().stdout();
        assert_eq!(there.lines().count(), FILES, "{path}: {there}");
        for (index, seed) in (*seed..).take(FILES).enumerate() {
            reader.assert_reads(&format!("{path}/f{index}"), seed);
        }
    }
}

fn upgrade(order: &[Part]) {
    let (old, new) = (old_program(), PathBuf::from(THIS));
    let cluster = Cluster::start();
    let mut site = moved_to(&cluster, Site::in_home(Home::with_program(&old), DISKS, 2));
    let mut disks = site.disks.iter_mut().map(Option::take);
    let disks = [(); DISKS].map(|()| disks.next().flatten());
    let site = &site;
    let (acknowledged, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let heads = [None, None];
    let told = Mutex::new(Vec::new());
    let mut stage =
        Stage { site, heads, disks, acknowledged: &acknowledged, told: &told, replaced: 0 };
    (0..HEADS).for_each(|head| stage.put_in(Part::Head(head), &old));
    site.await_status("OK");
    let before = tables(&cluster, site);
    let (steady, mut clients) = (site.writer(), writers(site));
    let of = |name, program| Commands { site, program, name, told: &told };
    let commands = [of("old", old.as_path()), of("new", new.as_path())];
    std::thread::scope(|scope| {
        let _ending = Ending(&over);
        let over = &over;
        let acknowledged = &acknowledged;
        scope.spawn(move || write_on(site, steady, (acknowledged, over)));
        commands.iter().for_each(|client| drop(scope.spawn(|| client.go_on(over))));
        stage.await_clients();
        stage.replace(order, &new, &mut clients);
        let after = tables(&cluster, site);
        println!("tables of version {before} are of version {after}");
        if after == before {
            stage.replace(order, &old, &mut clients);
            stage.replace(order, &new, &mut clients);
        } else {
            assert_refuses(site, &old);
        }
    });
    site.home.upgrade(&new);
    let files = acknowledged.load(Ordering::Relaxed);
    println!("{files} files one by one, {} directories", told.lock().unwrap().len());
    commands.iter().for_each(assert_kept);
    assert_disks_agree(site);
    (0..HEADS).for_each(|head| drop(stage.heads[head].take()));
    site.home.run(&["site", "fsck", "--dir", "site"]).ok();
}

#[test]
#[ignore = "wants an older program: scripts/upgrade-site"]
fn heads_then_disks_are_upgraded_while_clients_go_on() {
    use Part::{Disk, Head};
    upgrade(&[Head(0), Head(1), Disk(0), Disk(1), Disk(2)]);
}

#[test]
#[ignore = "wants an older program: scripts/upgrade-site"]
fn disks_then_heads_are_upgraded_while_clients_go_on() {
    use Part::{Disk, Head};
    upgrade(&[Disk(2), Disk(0), Disk(1), Head(1), Head(0)]);
}
