//! Two heads of one site over a database while writers and readers go on: the one that leads is
//! killed, stopped, cut off from the database or from the forwarder, or the database is killed and
//! started again, or its standby is promoted in its place. One order of events explains what
//! clients were told. `scripts/head-outages` plays more rounds.

use crate::cluster::Cluster;
use crate::cuts::Cut;
use crate::disks::{Site, put_from};
use crate::harness::{Daemon, noise, signal, wait_for};
use crate::histories::{explain, history_during, writers};
use crate::several_heads::{LEADS, site_in};
use byname_writer::Writer;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a head says when it takes the lease, and when it has it no more.
const ROLE: &str = "this head ";
/// Faults, by the names that the campaign's report has for them.
const FAULTS: [&str; 7] = [
    "killed",
    "stopped",
    "cut-from-database",
    "cut-off",
    "database-killed",
    "standby-promoted",
    "restarted",
];
/// Lease of the heads.
const LEASE: Duration = Duration::from_secs(2);
/// Time in which clients go on once there is somebody to lead, or the lease is over: many times
/// what it takes (bench/reports/2026-11-28-head-outages.md), and less than a time-out of anybody's.
const RECOVERY_MAX: Duration = Duration::from_secs(30);
/// Length of the file that is read.
const KEPT_BYTES: usize = 100_000;
/// Socket of a database server in its directory.
const DATABASE_SOCKET: &str = ".s.PGSQL.5432";

/// A database of two servers: commits on the one wait for the other.
struct Pair {
    servers: [Cluster; 2],
    /// Which one can be written to.
    primary: usize,
}

impl Pair {
    /// Gives the database of a site a standby, and the site both addresses.
    fn of(primary: Cluster, site: &Site) -> Self {
        let standby = Cluster::standby_of(&primary);
        primary.wait_for_standby();
        let pair = Self { servers: [primary, standby], primary: 0 };
        let file = site.home.path().join("site/engine");
        let alone = format!("host={}", pair.primary().path().display());
        let engine = std::fs::read_to_string(&file).unwrap().replace(&alone, &pair.hosts());
        std::fs::write(file, engine).unwrap();
        pair
    }

    fn hosts(&self) -> String {
        let [one, other] = [0, 1].map(|server| self.servers[server].path().display());
        format!("host={one},{other}")
    }

    fn primary(&self) -> &Cluster {
        &self.servers[self.primary]
    }

    /// The standby takes the place of the primary, which is killed.
    fn promote(&mut self) {
        self.primary().kill();
        self.primary = 1 - self.primary;
        self.primary().promote();
    }

    /// The one that was killed follows the other.
    fn mend(&self) {
        self.servers[1 - self.primary].follow(self.primary());
        self.primary().wait_for_standby();
    }
}

/// A head with paths to the database and to the forwarder that can be cut.
struct Head {
    number: usize,
    daemon: Option<Daemon>,
    to_database: [Cut; 2],
    to_forwarder: Cut,
    engine: String,
    socket: PathBuf,
}

impl Head {
    fn new(site: &Site, database: &Pair, number: usize) -> Self {
        let there = |uri: &str| PathBuf::from(uri.strip_prefix("unix://").unwrap());
        let dirs = [0, 1].map(|server| site.home.work(&format!("paths{number}-{server}")));
        let to_database = [0, 1].map(|server| {
            let there = database.servers[server].path().join(DATABASE_SOCKET);
            Cut::between(&dirs[server].join(DATABASE_SOCKET), there)
        });
        let socket = dirs[0].join("f.sock");
        let to_forwarder = Cut::between(&socket, there(&site.socket));
        let engine = std::fs::read_to_string(site.home.path().join("site/engine")).unwrap();
        let through = format!("host={},{}", dirs[0].display(), dirs[1].display());
        let engine = engine.trim().replace(&database.hosts(), &through);
        let mut head = Self { number, daemon: None, to_database, to_forwarder, engine, socket };
        head.start(site);
        head
    }

    fn cut_from_database(&self, is_cut: bool) {
        self.to_database.iter().for_each(|path| path.set(is_cut));
    }

    fn start(&mut self, site: &Site) {
        let (dir, socket) = (format!("head-{}", self.number), self.socket.display());
        let mut command = site.home.byname();
        let lease = format!("{}s", LEASE.as_secs());
        command.args(["catalog", "--dir", &dir, "--lease", &lease, "--keep-versions", "1s"]);
        command.args(["--connect", &format!("unix://{socket}")]).env("BYNAME_ENGINE", &self.engine);
        self.daemon = Some(site.home.start_command(command, "byname:/lab"));
    }

    fn pid(&self) -> u32 {
        self.daemon.as_ref().unwrap().pid()
    }

    /// True if it has the lease by its own word.
    fn leads(&self) -> bool {
        let log = self.daemon.as_ref().unwrap().log();
        log.lines().rev().find(|line| line.contains(ROLE)).is_some_and(|it| it.contains(LEADS))
    }
}

/// Writes one small file after the other; counts those that it was told are there.
pub(crate) fn write_on(
    site: &Site,
    mut writer: Writer,
    (acknowledged, over): (&AtomicU64, &AtomicBool),
) {
    let local = site.home.path().join("steady");
    for number in 1u64.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let path = format!("steady{}", number % 16);
        put_from(&local, &mut writer, &path, &number.to_be_bytes()).unwrap();
        acknowledged.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads a file again and again, from no memory of its reader.
fn read_on(site: &Site, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let read = ["cat", "/lab/kept", "--fresh", "--timeout", "60", "--connect", &site.socket];
        assert!(site.home.run(&read).ok().bytes() == noise(KEPT_BYTES, 5));
    }
}

/// Ends the writing, also when a check fails: the scope waits for it.
pub(crate) struct Ending<'a>(pub(crate) &'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Terms of the heads that a disk has obeyed, in their order, by its log.
fn obeyed(log: &str) -> Vec<u64> {
    let of_head = log.lines().filter(|line| line.contains("a head is obeyed"));
    let term = |line: &str| {
        let digits = line.split("term=").nth(1)?;
        digits.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    };
    of_head.map(|line| term(line).unwrap_or_else(|| panic!("no term: {line}"))).collect()
}

/// No disk has done anything for a head after it had heard of a later one.
fn assert_obeys_none_of_before(site: &Site) {
    for disk in 0..site.disks.len() {
        let terms = obeyed(&site.log_of(disk));
        assert!(!terms.is_empty() && terms.is_sorted(), "disk {disk}: {terms:?}");
    }
}

/// Two heads, and what happens to them.
struct Stage<'a> {
    site: &'a Site,
    database: Pair,
    heads: [Head; 2],
    acknowledged: &'a AtomicU64,
}

impl Stage<'_> {
    fn leader(&self) -> usize {
        let leads = || self.heads.iter().position(|head| head.leads());
        wait_for("head that leads", || leads().is_some(), || self.logs());
        leads().unwrap()
    }

    fn logs(&self) -> String {
        let logs = self.heads.iter().filter_map(|head| head.daemon.as_ref());
        logs.map(Daemon::log).collect()
    }

    /// Time since then until a file is acknowledged that is written after this.
    fn recovery(&self, begin: Instant) -> Duration {
        // The first one may have been on its way before.
        let before = self.acknowledged.load(Ordering::Relaxed);
        let goes_on = || self.acknowledged.load(Ordering::Relaxed) > before + 1;
        wait_for("file that is written", goes_on, || self.logs());
        begin.elapsed()
    }

    /// Plays one fault, and mends it when clients have gone on.
    fn play(&mut self, fault: usize) -> Duration {
        let leader = self.leader();
        let pid = self.heads[leader].pid();
        let begin = Instant::now();
        match FAULTS[fault] {
            "killed" => self.heads[leader].daemon.as_mut().unwrap().kill(),
            "stopped" => signal(pid, "STOP"),
            "cut-from-database" => self.heads[leader].cut_from_database(true),
            "cut-off" => self.heads[leader].to_forwarder.set(true),
            "database-killed" => {
                self.database.primary().kill();
                std::thread::sleep(Duration::from_millis(number("OUTAGE_AWAY_MS", 0)));
                self.database.primary().start_again();
            }
            "standby-promoted" => self.database.promote(),
            _ => {
                let ended = self.heads[leader].daemon.as_mut().unwrap().terminate();
                assert_eq!(ended, Some(0), "{}", self.logs());
            }
        }
        // The time that a database takes for its own start is no head's.
        let acted = Instant::now();
        let took = self.recovery(begin);
        let (name, waited, most) = (FAULTS[fault], acted.elapsed(), recovery_max(fault));
        assert!(waited <= most, "{name}: clients went on after {waited:?}, {most:?} at most");
        let lives_on = (1..4).contains(&fault);
        if lives_on {
            // Two files may have been acknowledged before the fault had set in.
            let other = &self.heads[1 - leader];
            wait_for("head in its place", || other.leads(), || self.logs());
        }
        match FAULTS[fault] {
            "killed" | "restarted" => self.heads[leader].start(self.site),
            "stopped" => signal(pid, "CONT"),
            "cut-from-database" => self.heads[leader].cut_from_database(false),
            "cut-off" => self.heads[leader].to_forwarder.set(false),
            "standby-promoted" => {
                self.database.mend();
                // One that is promoted before any commit has waited for it begins a new epoch, in
                // which nobody has a session.
                self.recovery(Instant::now());
            }
            _ => {}
        }
        if lives_on {
            // It learns that another one leads, and does nothing by itself any more.
            let knows = || !self.heads[leader].leads();
            wait_for("old head that stands down", knows, || self.logs());
            self.recovery(Instant::now());
            assert_obeys_none_of_before(self.site);
        }
        took
    }
}

/// The longest that clients wait after a fault: a head that is gone is seen to be gone, by its
/// connection to the database, and a lease that nobody renews is waited for.
fn recovery_max(fault: usize) -> Duration {
    match FAULTS[fault] {
        "killed" | "restarted" => RECOVERY_MAX,
        _ => LEASE + RECOVERY_MAX,
    }
}

/// What went wrong is seen in what they all have said last.
impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let last = |text: &str| {
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(80)..].join("\n")
        };
        for head in &self.heads {
            let log = head.daemon.as_ref().map(Daemon::log).unwrap_or_default();
            eprintln!("--- head {}\n{}", head.number, last(&log));
        }
        // What the forwarder has dropped, and why.
        let seen = self.site.home.run(&["status", "--json", "--connect", &self.site.socket]);
        eprintln!("--- forwarder\n{}", seen.stdout());
        for (number, server) in self.database.servers.iter().enumerate() {
            let log = std::fs::read(server.path().join("log")).unwrap_or_default();
            eprintln!("--- database {number}\n{}", last(&String::from_utf8_lossy(&log)));
        }
    }
}

/// Whatever heads of former terms wanted, disks have what the catalog says, all of it. Of who came
/// second with a file there is what nobody has committed, and it goes: disks ask after a minute.
pub(crate) fn assert_disks_agree(site: &Site) {
    let began = Instant::now();
    let settled_s = number("OUTAGE_SETTLED_S", 0);
    loop {
        let compared = site.run(&["fsck", "--disks", "--content"]).stdout();
        // What leaves is nothing wrong: its disk is told to drop it.
        let is_well = |line: &str| {
            let begins = ["PROBLEM", "orphaned", "leaving", "/lab:"];
            begins.iter().any(|it| line.starts_with(it)) || line.contains(" leaving: nothing to do")
        };
        assert!(compared.contains("/lab:") && compared.lines().all(is_well), "{compared}");
        let orphaned = compared.lines().filter(|line| line.starts_with("orphaned")).count();
        println!("orphaned {orphaned} after {} s", began.elapsed().as_secs());
        if settled_s == 0 || orphaned == 0 {
            return;
        }
        let logs = || [0, 1].map(|disk| site.log_of(disk)).join("--- disk\n");
        assert!(began.elapsed().as_secs() < settled_s, "{compared}{}", logs());
        std::thread::sleep(Duration::from_secs(5));
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(default)
}

/// Plays faults drawn from a seed; prints for the campaign how long clients waited.
fn play(rounds: usize, seed: u64, faults: &[usize]) {
    let cluster = Cluster::start();
    let mut site = site_in(&cluster, 2);
    for disk in 0..2 {
        site.disks[disk] = None;
        let (dir, mut command) = (format!("d{disk}"), site.home.byname());
        command.args(["disk", &dir, "--connect", &site.socket]);
        command.env("BYNAME_LOG", "byname_disk=debug");
        site.disks[disk] = Some(site.home.start_command(command, "serving d"));
    }
    let site = &site;
    let database = Pair::of(cluster, site);
    let heads = [0, 1].map(|number| Head::new(site, &database, number));
    let (acknowledged, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut stage = Stage { site, database, heads, acknowledged: &acknowledged };
    stage.leader();
    let (steady, mut clients) = (site.writer(), writers(site));
    site.put("kept", &noise(KEPT_BYTES, 5)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| write_on(site, steady, (&acknowledged, &over)));
        scope.spawn(|| read_on(site, &over));
        let _ending = Ending(&over);
        for (draw, round) in noise(rounds * 2, seed).chunks(2).zip(0..) {
            let fault = faults[(usize::from(draw[0]) + round) % faults.len()];
            let pause = Duration::from_millis(u64::from(draw[1]));
            let mut took = Duration::ZERO;
            let of = (&site.home, site.socket.as_str());
            let told = history_during(of, &mut clients, &format!("r{round}-"), || {
                std::thread::sleep(pause);
                took = stage.play(fault);
            });
            // For the campaign's report.
            println!("outage {} {} ms", FAULTS[fault], took.as_millis());
            explain(&told);
        }
    });
    assert_disks_agree(site);
    stage.heads.iter_mut().for_each(|head| drop(head.daemon.take()));
    site.home.run(&["site", "fsck", "--dir", "site"]).ok();
}

#[test]
fn clients_go_on_and_nothing_acknowledged_is_lost_whatever_befalls_the_head_that_leads() {
    let rounds = usize::try_from(number("OUTAGE_ROUNDS", 20)).unwrap();
    let all = [0, 1, 2, 3, 4, 5, 6];
    let only = number("OUTAGE_FAULT", u64::MAX);
    let chosen: Vec<usize> =
        all.into_iter().filter(|it| only == u64::MAX || *it as u64 == only).collect();
    play(rounds, number("OUTAGE_SEED", 1), &chosen);
}

/// As for an upgrade: each head in turn is ended and started again.
#[test]
fn heads_are_restarted_one_after_the_other_and_no_client_meets_an_error() {
    play(6, 2, &[6]);
}
