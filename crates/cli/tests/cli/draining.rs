//! Disks that are emptied while everybody goes on: because people want it, or as they are gone.

use crate::disks::Site;
use crate::harness::{Daemon, noise, wait_for};
use byname_catalog::{Command, Place, Rename};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Octets of each file, about.
const FILE_BYTES: usize = 20_000;

fn content(number: u64) -> Vec<u8> {
    noise(FILE_BYTES + (number as usize * 997) % FILE_BYTES, number)
}

fn place(path: &str) -> Place {
    Place::path(path.as_bytes()).unwrap()
}

impl Site {
    pub(crate) fn start_repairing_head(&self) -> Daemon {
        let args = ["catalog", "--dir", "site", "--keep-versions", "1s", "--repair-after", "1s"];
        let args = [&args[..], &["--repair-rate", "50M", "--connect", &self.socket]].concat();
        self.home.start(&args, "byname:/lab")
    }

    /// Number of a disk, by its place among those of this test.
    pub(crate) fn number(&self, index: usize) -> String {
        let listed = self.run(&["disk", "ls", "--json", "--timeout", "60"]).ok().stdout();
        let rows =
            listed.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap());
        let server = format!("s{index}");
        rows.into_iter().find(|row| row["server"] == *server).unwrap()["disk"].to_string()
    }

    /// Octets of contents on a disk.
    pub(crate) fn bytes_on(&self, disk: usize) -> u64 {
        let files = self.contents(disk).into_iter().filter_map(|path| path.metadata().ok());
        files.map(|file| file.len()).sum()
    }

    pub(crate) fn compared(&self) -> String {
        self.run(&["fsck", "--disks", "--json", "--timeout", "60"]).stdout()
    }

    /// Waits until the catalog and its disks agree.
    pub(crate) fn await_agreement(&self) {
        let is_fine = || {
            let compared = self.compared();
            let rows = compared.lines().map(|it| serde_json::from_str(it).unwrap());
            let (problems, disks): (Vec<serde_json::Value>, Vec<_>) =
                rows.partition(|row: &serde_json::Value| row["problem"].is_string());
            !disks.is_empty() && problems.iter().all(|it| it["problem"] == "leaving")
        };
        wait_for("catalog and disks to agree", is_fine, || self.compared());
    }
}

/// Writes, renames and reads until it is told to stop; what each file is at the end.
fn go_on(site: &Site, over: &AtomicBool, files: &Mutex<BTreeMap<String, u64>>) {
    let mut writer = site.writer();
    for number in 1000u64.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let (path, to) = (format!("w{}", number % 5), format!("m{}", number % 5));
        site.put_by(&mut writer, &path, &content(number)).unwrap();
        let rename = Rename { from: place(&path), to: place(&to), no_replace: false };
        writer.execute(Command::Rename(rename), &|| false).unwrap();
        files.lock().unwrap().insert(to, number);
        let old = number % 20;
        // There is nobody to ask while the only head is killed and started again.
        let read = || site.read(&format!("f{old}"));
        let what = format!("f{old} while its disk is emptied");
        wait_for(&what, || read().bytes() == content(old), || read().stderr());
    }
}

/// Ends the clients, also when a check fails: the scope waits for them.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_disk_is_drained_while_clients_go_on_and_the_head_is_killed() {
    let mut site = Site::new(3, 2);
    site.head.as_mut().unwrap().kill();
    let head = Mutex::new(site.start_repairing_head());
    let mut writer = site.writer();
    for number in 0..60 {
        site.put_by(&mut writer, &format!("f{number}"), &content(number)).unwrap();
    }
    let number = site.number(0);
    let before = site.contents(0).len();
    assert!(before > 10, "{before} files say little");
    let (over, files) = (AtomicBool::new(false), Mutex::new(BTreeMap::new()));
    let shared = &site;
    std::thread::scope(|scope| {
        scope.spawn(|| go_on(shared, &over, &files));
        let _ending = Ending(&over);
        let drain = ["disk", "drain", &number, "--timeout", "60"];
        shared.run(&[&drain[..], &["--no-wait"]].concat()).ok();
        wait_for(
            "first replica to leave",
            || shared.contents(0).len() < before,
            || head.lock().unwrap().log(),
        );
        // What is left to do is in the catalog: the next head goes on.
        head.lock().unwrap().kill();
        *head.lock().unwrap() = shared.start_repairing_head();
        let drained = shared.run(&drain).ok().stderr();
        assert!(drained.contains("empty"), "{drained}");
    });
    wait_for("disk to be empty", || site.contents(0).is_empty(), || site.log_of(0));
    for (path, number) in
        (0..60).map(|it| (format!("f{it}"), it)).chain(files.into_inner().unwrap())
    {
        assert!(site.read(&path).ok().bytes() == content(number), "{path}");
    }
    site.await_agreement();
    site.run(&["disk", "set", &number, "--state", "off"]).ok();
    site.run(&["disk", "rm", &number, "--yes"]).ok();
    site.head = Some(head.into_inner().unwrap());
    site.check();
}

/// A rate bounds from above, so that a slow machine says nothing; `bench/drain` measures it.
#[test]
fn a_drain_waits_while_it_is_paused_and_goes_no_faster_than_it_may() {
    let site = Site::new(2, 1);
    let mut writer = site.writer();
    for number in 0..40 {
        site.put_by(&mut writer, &format!("f{number}"), &content(number)).unwrap();
    }
    let number = site.number(0);
    let bytes = site.bytes_on(0);
    let drain = |words: &[&str]| {
        site.run(&[&["disk", "drain", &number, "--timeout", "60"], words].concat())
    };
    drain(&["--pause"]).ok();
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(site.bytes_on(0), bytes, "it is paused");
    let said = site.run(&["disk", "ls", "--json"]).ok().stdout();
    assert!(said.contains("\"drain_bytes_per_s\":0"), "{said}");
    let began = Instant::now();
    let rate = (bytes / 4).to_string();
    let drained = drain(&["--rate", &rate]).ok().stderr();
    assert!(drained.contains("empty"), "{drained}");
    // What has gathered within a second goes at once, and one file more.
    assert!(began.elapsed() >= Duration::from_millis(2400), "{:?}", began.elapsed());
    for number in 0..40 {
        assert!(site.read(&format!("f{number}")).ok().bytes() == content(number), "f{number}");
    }
    drain(&["--rate", "1M", "--pause"]).fails_with(2, "--pause");
    site.await_agreement();
}

#[test]
fn a_disk_that_is_pulled_for_good_is_made_up_for_and_no_more_is_moved_than_was_lost() {
    let mut site = Site::new(3, 2);
    site.head.as_mut().unwrap().kill();
    site.head = Some(site.start_repairing_head());
    let mut writer = site.writer();
    let mut bytes = 0;
    for number in 0..40 {
        bytes += content(number).len() as u64;
        site.put_by(&mut writer, &format!("f{number}"), &content(number)).unwrap();
    }
    site.await_agreement();
    let lost = site.bytes_on(0);
    assert!(lost > 0, "nothing was on it");
    let before = site.bytes_on(1) + site.bytes_on(2);
    site.disks[0].take().unwrap().kill();
    let rest = || site.bytes_on(1) + site.bytes_on(2);
    wait_for("replicas elsewhere", || rest() >= 2 * bytes, || site.head.as_ref().unwrap().log());
    site.await_status("does not answer");
    let moved = rest() - before;
    assert!(moved * 100 <= lost * 105, "{moved} octets were moved for {lost} that were lost");
    // It is gone from the catalog, too, and can be removed.
    let number = site.number(0);
    site.run(&["disk", "set", &number, "--state", "off"]).ok();
    let is_removed =
        || site.run(&["disk", "rm", &number, "--yes"]).stderr().contains("removed disk");
    wait_for("disk to be removed", is_removed, || site.run(&["disk", "ls"]).stdout());
    site.await_agreement();
    for number in 0..40 {
        assert!(site.read(&format!("f{number}")).ok().bytes() == content(number), "f{number}");
    }
    site.check();
}
