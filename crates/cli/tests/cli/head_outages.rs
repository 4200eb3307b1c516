//! Two heads of one site over a database while writers and readers go on: the one that leads is
//! killed, stopped, cut off from the database or from the forwarder, or the database is killed. One
//! order of events explains what clients were told. `scripts/head-outages` plays more rounds.

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
const FAULTS: [&str; 5] = ["killed", "stopped", "cut-from-database", "cut-off", "database-killed"];

/// A head with paths to the database and to the forwarder that can be cut.
struct Head {
    number: usize,
    daemon: Option<Daemon>,
    to_database: Cut,
    to_forwarder: Cut,
    engine: String,
    socket: PathBuf,
}

impl Head {
    fn new(site: &Site, cluster: &Cluster, number: usize) -> Self {
        let dir = site.home.work(&format!("paths{number}"));
        let there = |uri: &str| PathBuf::from(uri.strip_prefix("unix://").unwrap());
        let to_database =
            Cut::between(&dir.join(".s.PGSQL.5432"), cluster.path().join(".s.PGSQL.5432"));
        let socket = dir.join("f.sock");
        let to_forwarder = Cut::between(&socket, there(&site.socket));
        let engine = std::fs::read_to_string(site.home.path().join("site/engine")).unwrap();
        let engine = engine.trim().replace(
            &format!("host={}", cluster.path().display()),
            &format!("host={}", dir.display()),
        );
        let mut head = Self { number, daemon: None, to_database, to_forwarder, engine, socket };
        head.start(site);
        head
    }

    fn start(&mut self, site: &Site) {
        let (dir, socket) = (format!("head-{}", self.number), self.socket.display());
        let mut command = site.home.byname();
        command.args(["catalog", "--dir", &dir, "--lease", "2s", "--keep-versions", "1s"]);
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
fn write_on(site: &Site, mut writer: Writer, (acknowledged, over): (&AtomicU64, &AtomicBool)) {
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

/// Ends the writing, also when a check fails: the scope waits for it.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Two heads, and what happens to them.
struct Stage<'a> {
    site: &'a Site,
    cluster: &'a Cluster,
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

    /// Time until a file is acknowledged that was written after this.
    fn recovery(&self) -> Duration {
        let begin = Instant::now();
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
        match FAULTS[fault] {
            "killed" => self.heads[leader].daemon.as_mut().unwrap().kill(),
            "stopped" => signal(pid, "STOP"),
            "cut-from-database" => self.heads[leader].to_database.set(true),
            "cut-off" => self.heads[leader].to_forwarder.set(true),
            _ => {
                self.cluster.kill();
                self.cluster.start_again();
            }
        }
        let took = self.recovery();
        let lives_on = (1..4).contains(&fault);
        if lives_on {
            // Two files may have been acknowledged before the fault had set in.
            let other = &self.heads[1 - leader];
            wait_for("head in its place", || other.leads(), || self.logs());
        }
        match FAULTS[fault] {
            "killed" => self.heads[leader].start(self.site),
            "stopped" => signal(pid, "CONT"),
            "cut-from-database" => self.heads[leader].to_database.set(false),
            "cut-off" => self.heads[leader].to_forwarder.set(false),
            _ => {}
        }
        if lives_on {
            // It learns that another one leads, and does nothing by itself any more.
            let knows = || !self.heads[leader].leads();
            wait_for("old head that stands down", knows, || self.logs());
            self.recovery();
        }
        took
    }
}

/// Plays faults drawn from a seed; prints for the campaign how long clients waited.
fn play(rounds: usize, seed: u64, faults: &[usize]) {
    let cluster = Cluster::start();
    let site = &site_in(&cluster, 2);
    let heads = [Head::new(site, &cluster, 0), Head::new(site, &cluster, 1)];
    let (acknowledged, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut stage = Stage { site, cluster: &cluster, heads, acknowledged: &acknowledged };
    stage.leader();
    let (steady, mut clients) = (site.writer(), writers(site));
    std::thread::scope(|scope| {
        scope.spawn(|| write_on(site, steady, (&acknowledged, &over)));
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
    stage.heads.iter_mut().for_each(|head| drop(head.daemon.take()));
    site.home.run(&["site", "fsck", "--dir", "site"]).ok();
}

#[test]
fn clients_go_on_and_nothing_acknowledged_is_lost_whatever_befalls_the_head_that_leads() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(default)
    };
    let rounds = usize::try_from(number("OUTAGE_ROUNDS", 20)).unwrap();
    play(rounds, number("OUTAGE_SEED", 1), &[0, 1, 2, 3, 4]);
}
