//! Writers, disks and the head of a site are killed at any moment while files are written.
//! `scripts/kill-site` plays more rounds than CI does.

use crate::disks::Site;
use crate::harness::{Daemon, noise, wait_for, write};
use byname_writer::Writer;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Disks of the site.
const DISKS: usize = 3;
/// A file that is not there.
const ABSENT: u64 = 0;
/// Contents of writers that are killed have numbers above this one.
const KILLED: u64 = 1 << 32;

/// What may be in a file: what was acknowledged last, or what was tried after that.
type Expected = BTreeMap<String, Vec<u64>>;

fn round_content(number: u64) -> Vec<u8> {
    noise(1000 + (number as usize * 7919) % 300_000, number)
}

fn tries(expected: &Mutex<Expected>, path: &str, number: u64) {
    let mut expected = expected.lock().unwrap();
    expected.entry(path.to_owned()).or_insert_with(|| vec![ABSENT]).push(number);
}

fn is_told(expected: &Mutex<Expected>, path: &str, number: u64) {
    expected.lock().unwrap().insert(path.to_owned(), vec![number]);
}

/// Writes files until it is told to stop, whatever is killed meanwhile.
fn write_on(
    (site, mut writer): (&Site, Writer),
    (expected, acknowledged, over): (&Mutex<Expected>, &AtomicU64, &AtomicBool),
) {
    for number in 1.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let path = format!("f{}", number % 8);
        tries(expected, &path, number);
        if site.put_by(&mut writer, &path, &round_content(number)).is_ok() {
            is_told(expected, &path, number);
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Another writer begins, and is killed after a while unless it has ended.
fn kill_a_writer(site: &Site, expected: &Mutex<Expected>, number: u64, life: Duration) {
    let (path, local) = (format!("w{}", number % 4), site.home.path().join("killed"));
    write(&local, &round_content(number));
    tries(expected, &path, number);
    let mut put = site.home.byname();
    put.arg("put").arg(&local).arg(format!("/lab/{path}")).args(["--connect", &site.socket]);
    let mut writer = put.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(life);
    match writer.try_wait().unwrap() {
        Some(status) if status.success() => is_told(expected, &path, number),
        Some(_) => {}
        None => {
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
    }
}

/// Ends the writing, also when a check fails: the scope waits for it.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Octets on a disk, by the number that the site has for it.
fn stored_bytes(site: &Site, number: &Value) -> u64 {
    let listed = site.run(&["disk", "ls", "--json"]).stdout();
    let rows = listed.lines().map(|row| serde_json::from_str::<Value>(row).unwrap());
    let of_disk = rows.into_iter().find(|row| row["disk"] == *number).unwrap_or_default();
    let server = of_disk["server"].as_str().unwrap_or_default();
    let Some(Ok(index)) = server.strip_prefix('s').map(str::parse) else { return u64::MAX };
    let lengths = site.contents(index).into_iter().filter_map(|path| path.metadata().ok());
    lengths.map(|it| it.len()).sum()
}

/// True if the catalog and the disks agree, and no octet is on a disk that it does not list.
fn agree(site: &Site) -> (bool, String) {
    let compared = site.run(&["fsck", "--disks", "--json"]).stdout();
    let lines = compared.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let (findings, disks): (Vec<Value>, Vec<Value>) =
        lines.partition(|line| line["problem"].is_string());
    let is_exact = |disk: &Value| disk["listed_bytes"] == stored_bytes(site, &disk["disk"]);
    let is_fine = findings.iter().all(|finding| finding["problem"] == "leaving");
    (is_fine && disks.len() == DISKS && disks.iter().all(is_exact), compared)
}

/// Reads every file: nothing acknowledged is lost, nothing is half there.
fn check_contents(site: &Site, expected: Expected, seed: u64) {
    for (path, candidates) in expected {
        let found = site.read(&path);
        let is_one = |number: &u64| match *number {
            ABSENT => found.stderr().contains("not found") && found.bytes().is_empty(),
            number => found.bytes() == round_content(number),
        };
        let said = found.stderr();
        assert!(
            candidates.iter().any(is_one),
            "{path}: none of {candidates:?}, seed {seed}: {said}"
        );
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_writers_disks_and_the_head_are_killed() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(default)
    };
    let (rounds, seed) = (number("KILL_ROUNDS", 20), number("KILL_SEED", 1));
    let mut site = Site::new(DISKS, 2);
    let mut daemons: Vec<Daemon> =
        site.disks.iter_mut().chain([&mut site.head]).map(|it| it.take().unwrap()).collect();
    let (expected, acknowledged) = (Mutex::new(Expected::new()), AtomicU64::new(0));
    let (over, mut kills, mut longest) = (AtomicBool::new(false), [0; DISKS + 2], Duration::ZERO);
    std::thread::scope(|scope| {
        // It has a session before anything is killed: without one there may be nobody to open it.
        let (by, told) = ((&site, site.writer()), (&expected, &acknowledged, &over));
        scope.spawn(move || write_on(by, told));
        let _ending = Ending(&over);
        for (draw, round) in noise(rounds as usize * 2, seed).chunks(2).zip(1..) {
            let moment = Duration::from_millis(20 + u64::from(draw[1]));
            let victim = usize::from(draw[0]) % (DISKS + 2);
            kills[victim] += 1;
            if victim > DISKS {
                kill_a_writer(&site, &expected, KILLED + round, moment * 3);
                continue;
            }
            std::thread::sleep(moment);
            let before = acknowledged.load(Ordering::Relaxed);
            daemons[victim].kill();
            let is_head = victim == DISKS;
            daemons[victim] = if is_head { site.start_head() } else { site.start_disk(victim) };
            let back = Instant::now();
            let goes_on = || acknowledged.load(Ordering::Relaxed) > before;
            wait_for("file after the kill", goes_on, || format!("round {round}, {victim}"));
            longest = longest.max(back.elapsed());
        }
    });
    // For the campaign's report.
    println!("killed {kills:?}, next file after at most {} ms", longest.as_millis());
    check_contents(&site, expected.into_inner().unwrap(), seed);
    // A disk asks at its start about what it had no answer for.
    for (disk, daemon) in daemons.iter_mut().enumerate().take(DISKS) {
        daemon.kill();
        *daemon = site.start_disk(disk);
    }
    wait_for("catalog and disks to agree", || agree(&site).0, || agree(&site).1);
    site.head = daemons.pop();
    site.check();
}
