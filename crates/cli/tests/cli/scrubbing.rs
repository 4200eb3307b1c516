//! Disks that read what they have by themselves, with real processes: rot is found, made good from
//! another replica, and gone.

use serde_json::Value;

use crate::disks::Site;
use crate::harness::{noise, wait_for};

impl Site {
    /// A disk that is through with what it has within seconds.
    fn start_scrubbing(&mut self, index: usize) {
        self.disks[index] = None;
        let dir = format!("d{index}");
        let args = ["disk", &dir, "--scrub-every", "1s", "--connect", &self.socket];
        self.disks[index] = Some(self.home.start(&args, "serving d"));
    }

    /// Lines of `site disk ls`, in the order of the disks.
    fn scrubs(&self) -> Vec<Value> {
        let listed = self.run(&["disk", "ls", "--json"]).ok().stdout();
        let line = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        listed.lines().map(|text| line(text)["scrub"].clone()).collect()
    }

    fn await_scrub(&self, what: &str, disk: usize, is_so: impl Fn(&Value) -> bool) {
        wait_for(what, || is_so(&self.scrubs()[disk]), || self.log_of(disk));
    }

    fn spoil(&self, disk: usize) {
        let [path] = &self.contents(disk)[..] else { panic!("one content") };
        let mut octets = std::fs::read(path).unwrap();
        octets[30_000] ^= 1;
        std::fs::write(path, octets).unwrap();
    }
}

#[test]
fn rot_is_found_and_made_good_elsewhere_by_itself() {
    let mut site = Site::new(3, 2);
    let octets = noise(100_000, 1);
    site.put("f", &octets).unwrap();
    let before = site.holders();
    let bad = before[0];
    let free = (0..3).find(|disk| !before.contains(disk)).unwrap();
    site.start_scrubbing(bad);
    site.await_scrub("a whole pass", bad, |scrub| scrub["ended_s"].as_u64().is_some());
    assert_eq!(site.scrubs()[bad]["rotten"], 0);
    site.spoil(bad);
    let is_elsewhere = || {
        let after = site.holders();
        after.contains(&free) && !after.contains(&bad)
    };
    wait_for("replica elsewhere", is_elsewhere, || site.log_of(free));
    site.await_scrub("disk without rot", bad, |scrub| scrub["rotten"] == 0);
    assert_eq!(site.read("f").ok().bytes(), octets);
    let found = site.run(&["fsck", "--disks", "--content"]).ok().stdout();
    assert!(!found.contains("different"), "{found}");
    let listed = site.run(&["replica", "ls", "/lab/f", "--json"]).ok().stdout();
    assert_eq!(listed.lines().count(), 2);
    site.check();
}

#[test]
fn rot_that_nobody_can_make_good_is_told_and_kept() {
    let mut site = Site::new(1, 1);
    site.put("f", &noise(100_000, 2)).unwrap();
    site.spoil(0);
    site.start_scrubbing(0);
    site.await_scrub("rot", 0, |scrub| scrub["rotten"] == 1);
    let status = site.run(&["status"]).fails_with(1, "").stdout();
    assert!(status.contains("has 1 content that has rotted"), "{status}");
    let listed = site.run(&["disk", "ls"]).ok().stdout();
    assert!(listed.contains("1 rotten"), "{listed}");
    assert_eq!(site.contents(0).len(), 1, "the last replica stays, whatever it is like");
    // The next start knows of it at once.
    site.disks[0] = None;
    let args = ["disk", "d0", "--scrub-rate", "0", "--connect", &site.socket];
    site.disks[0] = Some(site.home.start(&args, "serving d"));
    site.run(&["status"]).fails_with(1, "");
    site.await_scrub("word of it", 0, |scrub| scrub["rotten"] == 1);
}
