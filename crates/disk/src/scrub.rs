//! Contents that a disk reads anew by itself, all of them in turn, so that what has rotted is found
//! while other replicas are good. Without I/O: what to read next out, what was read in.
//!
//! A pass goes through all contents in the order of their numbers. Its place is kept on the disk
//! every now and then, so the next start goes on there. Each read is compared with what the record
//! says, which is what the writer signed; the head hears of what differs until it is gone.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use byname_catalog::id::{ContentId, InodeId, Version};
use byname_site::{Listed, ROTTEN_MAX, ScrubState};

use crate::machine::Machine;

/// Contents that are read for one look at what is stored.
const PAGE_CONTENTS: usize = 64;
/// Rotten contents that are remembered.
const REMEMBERED_MAX: usize = 4096;
/// Pause between two times that the place is kept, in seconds.
const KEEP_S: u64 = 10;
/// Pauses between two looks whether a pass is due, at least and at most.
const LOOK_NS: (u64, u64) = (1_000_000_000, 60_000_000_000);
/// Slowest pace of a pass that has a time to end in: a small disk does not take all of it.
const PACE_MIN: u64 = 1 << 20;

/// How fast a disk reads its contents anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScrubConfig {
    /// Octets a second, at most; 0 for never.
    pub bytes_per_s: u64,
    /// Time from the beginning of a pass to that of the next one. It is read as slowly as that
    /// allows.
    pub every: Duration,
}

impl Default for ScrubConfig {
    fn default() -> Self {
        Self { bytes_per_s: 20 << 20, every: Duration::from_secs(30 * 24 * 3600) }
    }
}

/// A pass over all contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pass {
    began_s: u64,
    /// The last content that was read.
    after: Option<ContentId>,
    done_bytes: u64,
    total_bytes: u64,
}

/// What is kept over a restart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Standing {
    pass: Option<Pass>,
    /// Beginning and end of the last whole pass.
    last: Option<(u64, u64)>,
    rotten: BTreeSet<ContentId>,
}

impl Standing {
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |args: std::fmt::Arguments<'_>| {
            // A string takes all of it.
            let _ = writeln!(text, "{args}");
        };
        if let Some((began_s, ended_s)) = self.last {
            line(format_args!("last {began_s} {ended_s}"));
        }
        if let Some(Pass { began_s, after, done_bytes, total_bytes }) = self.pass {
            line(format_args!("pass {began_s} {done_bytes} {total_bytes}"));
            if let Some(ContentId { inode, version }) = after {
                line(format_args!("after {} {}", inode.0, version.0));
            }
        }
        for ContentId { inode, version } in &self.rotten {
            line(format_args!("rotten {} {}", inode.0, version.0));
        }
        text
    }

    /// What was kept. A line that is none is passed over: the worst that comes of it is that
    /// something is read once more.
    pub(crate) fn of_text(text: &str) -> Self {
        let mut standing = Self::default();
        for line in text.lines() {
            let mut words = line.split(' ');
            let kind = words.next().unwrap_or_default();
            let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
            let content =
                |inode, version| ContentId { inode: InodeId(inode), version: Version(version) };
            match (kind, numbers.as_slice()) {
                ("last", [began_s, ended_s]) => standing.last = Some((*began_s, *ended_s)),
                ("pass", [began_s, done_bytes, total_bytes]) => {
                    let (done_bytes, total_bytes) = (*done_bytes, *total_bytes);
                    let pass = Pass { began_s: *began_s, after: None, done_bytes, total_bytes };
                    standing.pass = Some(pass);
                }
                ("after", [inode, version]) => {
                    if let Some(pass) = &mut standing.pass {
                        pass.after = Some(content(*inode, *version));
                    }
                }
                ("rotten", [inode, version]) if standing.rotten.len() < REMEMBERED_MAX => {
                    standing.rotten.insert(content(*inode, *version));
                }
                _ => {}
            }
        }
        standing
    }
}

/// Contents to read, and how fast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScrubWork {
    /// The contents as they should be.
    pub contents: Vec<Listed>,
    /// Octets a second.
    pub bytes_per_s: u64,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scrubbed {
    /// What was to be read.
    pub contents: Vec<Listed>,
    /// Those of it that are something else.
    pub rotten: Vec<ContentId>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Scrub {
    config: ScrubConfig,
    standing: Standing,
    is_reading: bool,
    kept_s: u64,
    is_changed: bool,
    read_bytes: u64,
}

impl Scrub {
    pub(crate) fn new(config: ScrubConfig, standing: Standing) -> Self {
        Self { config, standing, is_reading: false, kept_s: 0, is_changed: false, read_bytes: 0 }
    }

    /// What is to be read now; its outcome goes to [`Scrub::handle`].
    pub(crate) fn poll_work(&mut self, machine: &Machine, unix_s: u64) -> Option<ScrubWork> {
        if self.is_reading || self.config.bytes_per_s == 0 {
            return None;
        }
        let pass = match self.standing.pass {
            Some(pass) => pass,
            None => self.begin_pass(machine, unix_s)?,
        };
        let (contents, _) = machine.list(pass.after, PAGE_CONTENTS);
        if contents.is_empty() {
            self.end_pass(&pass, unix_s);
            return None;
        }
        self.standing.pass = Some(pass);
        self.is_reading = true;
        let bytes_per_s = pace(&self.config, pass.total_bytes);
        Some(ScrubWork { contents, bytes_per_s })
    }

    fn begin_pass(&mut self, machine: &Machine, unix_s: u64) -> Option<Pass> {
        let is_due = self.standing.last.is_none_or(|(began_s, _)| {
            // Also if the clock was set back.
            unix_s.abs_diff(began_s) >= self.config.every.as_secs().max(1)
        });
        if !is_due || machine.list(None, 1).0.is_empty() {
            return None;
        }
        let total_bytes = machine.stored_bytes();
        Some(Pass { began_s: unix_s, after: None, done_bytes: 0, total_bytes })
    }

    fn end_pass(&mut self, pass: &Pass, unix_s: u64) {
        self.standing.last = Some((pass.began_s, unix_s));
        self.standing.pass = None;
        self.is_changed = true;
        self.kept_s = 0;
    }

    /// What was read. A content that is not stored any more is not missed.
    pub(crate) fn handle(&mut self, scrubbed: &Scrubbed, machine: &Machine) {
        self.is_reading = false;
        self.is_changed = true;
        let Some(pass) = &mut self.standing.pass else { return };
        let read_bytes: u64 = scrubbed.contents.iter().map(|it| it.size).sum();
        pass.done_bytes += read_bytes;
        self.read_bytes += read_bytes;
        pass.after = scrubbed.contents.last().map(|it| it.content).or(pass.after);
        for Listed { content, .. } in &scrubbed.contents {
            let is_rotten = scrubbed.rotten.contains(content) && machine.has_stored(*content);
            if !is_rotten {
                self.standing.rotten.remove(content);
            } else if self.standing.rotten.len() < REMEMBERED_MAX
                && self.standing.rotten.insert(*content)
            {
                let name = format!("{}-{}", content.inode.0, content.version.0);
                tracing::warn!(content = name, "a content is not what its writer signed");
                self.kept_s = 0;
            }
        }
    }

    /// What is to be kept, if it is time for that.
    pub(crate) fn poll_keep(&mut self, unix_s: u64) -> Option<String> {
        let is_time = self.is_changed && unix_s.abs_diff(self.kept_s) >= KEEP_S;
        if !is_time {
            return None;
        }
        self.is_changed = false;
        self.kept_s = unix_s;
        Some(self.standing.to_text())
    }

    /// What the head is told.
    pub(crate) fn state(&mut self, machine: &Machine) -> ScrubState {
        let known = self.standing.rotten.len();
        self.standing.rotten.retain(|content| machine.has_stored(*content));
        self.is_changed |= self.standing.rotten.len() != known;
        let pass = self.standing.pass;
        ScrubState {
            done_bytes: pass.map_or(0, |pass| pass.done_bytes),
            total_bytes: pass.map_or(0, |pass| pass.total_bytes),
            ended_s: self.standing.last.map(|(_, ended_s)| ended_s),
            rotten_count: self.standing.rotten.len() as u64,
            rotten: self.standing.rotten.iter().take(ROTTEN_MAX).copied().collect(),
        }
    }

    /// Pause until it may be time for the next pass.
    pub(crate) fn pause_ns(&self) -> u64 {
        let every_ns = u64::try_from(self.config.every.as_nanos()).unwrap_or(u64::MAX);
        if self.config.bytes_per_s == 0 { u64::MAX } else { every_ns.clamp(LOOK_NS.0, LOOK_NS.1) }
    }

    /// Octets that were read since the start.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }
}

/// Octets a second: as few as it takes to be through in time, and never more than may be.
fn pace(config: &ScrubConfig, total_bytes: u64) -> u64 {
    let in_time = total_bytes.div_ceil(config.every.as_secs().max(1));
    in_time.max(PACE_MIN).min(config.bytes_per_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Limits;
    use crate::record::Record;
    use crate::scan::Scan;

    const DAY_S: u64 = 24 * 3600;
    const NOW_S: u64 = 1_700_000_000;

    fn content(inode: u64) -> ContentId {
        ContentId { inode: InodeId(inode), version: Version(1) }
    }

    fn machine(inodes: std::ops::RangeInclusive<u64>) -> Machine {
        let mut scan = Scan::default();
        for inode in inodes {
            let checksums = byname_catalog::Checksums { adler32: 1, crc32c: 2 };
            let (root, ticket, claim) = ([0; 32], Vec::new(), Vec::new());
            let record = Record { size: 10, root, checksums, is_settled: true, ticket, claim };
            scan.replicas.insert(content(inode), record);
        }
        Machine::new(Limits::default(), &scan, 0)
    }

    fn scrubbed(work: ScrubWork, rotten: &[u64]) -> Scrubbed {
        let rotten = rotten.iter().map(|inode| content(*inode)).collect();
        Scrubbed { contents: work.contents, rotten }
    }

    #[test]
    fn a_pass_reads_everything_once_and_the_next_one_waits_for_its_time() {
        let machine = machine(1..=100);
        let mut scrub = Scrub::new(ScrubConfig::default(), Standing::default());
        let first = scrub.poll_work(&machine, NOW_S).unwrap();
        assert_eq!((first.contents.len(), first.bytes_per_s), (PAGE_CONTENTS, PACE_MIN));
        assert_eq!(scrub.poll_work(&machine, NOW_S), None, "one page at a time");
        scrub.handle(&scrubbed(first, &[]), &machine);
        let second = scrub.poll_work(&machine, NOW_S).unwrap();
        assert_eq!(second.contents[0].content, content(65));
        scrub.handle(&scrubbed(second, &[]), &machine);
        assert_eq!(scrub.state(&machine).done_bytes, 1000);
        assert_eq!(scrub.poll_work(&machine, NOW_S + 5), None);
        let state = scrub.state(&machine);
        assert_eq!((state.total_bytes, state.ended_s), (0, Some(NOW_S + 5)));
        assert_eq!(scrub.poll_work(&machine, NOW_S + 30 * DAY_S - 1), None);
        assert!(scrub.poll_work(&machine, NOW_S + 30 * DAY_S).is_some());
    }

    #[test]
    fn a_restart_goes_on_where_it_was_and_knows_what_has_rotted() {
        let machine = machine(1..=100);
        let mut scrub = Scrub::new(ScrubConfig::default(), Standing::default());
        let work = scrub.poll_work(&machine, NOW_S).unwrap();
        scrub.handle(&scrubbed(work, &[7, 9]), &machine);
        let kept = scrub.poll_keep(NOW_S).unwrap();
        assert_eq!(scrub.poll_keep(NOW_S + 1), None);
        let mut again = Scrub::new(ScrubConfig::default(), Standing::of_text(&kept));
        assert_eq!(again.standing, scrub.standing);
        assert_eq!(again.poll_work(&machine, NOW_S).unwrap().contents[0].content, content(65));
        let state = again.state(&machine);
        assert_eq!((state.rotten_count, state.rotten), (2, vec![content(7), content(9)]));
        assert_eq!(
            Standing::of_text("last 1\npass x\nrotten 1 2 3\nafter 1 2\n"),
            Standing::default()
        );
    }

    #[test]
    fn what_is_gone_or_good_again_is_not_rotten() {
        let all = machine(1..=3);
        let config = ScrubConfig { every: Duration::from_secs(1), ..ScrubConfig::default() };
        let mut scrub = Scrub::new(config, Standing::default());
        let work = scrub.poll_work(&all, NOW_S).unwrap();
        // The third was dropped while it was read.
        let left = machine(1..=2);
        scrub.handle(&scrubbed(work, &[1, 2, 3]), &left);
        assert_eq!(scrub.state(&left).rotten_count, 2);
        assert_eq!(scrub.state(&machine(2..=2)).rotten, [content(2)]);
        assert_eq!(scrub.poll_work(&left, NOW_S), None);
        let work = scrub.poll_work(&left, NOW_S + 1).unwrap();
        scrub.handle(&scrubbed(work, &[]), &left);
        assert_eq!(scrub.state(&left).rotten_count, 0);
    }

    #[test]
    fn the_pace_is_what_the_time_asks_for_within_the_rate() {
        let config = ScrubConfig { bytes_per_s: 50 << 20, every: Duration::from_secs(1000) };
        assert_eq!(pace(&config, 1 << 20), PACE_MIN);
        assert_eq!(pace(&config, 10_000 << 20), 10 << 20);
        assert_eq!(pace(&config, 1 << 50), 50 << 20);
        assert_eq!(pace(&ScrubConfig { bytes_per_s: 1000, ..config }, 1 << 50), 1000);
        let never = ScrubConfig { bytes_per_s: 0, ..config };
        let mut scrub = Scrub::new(never, Standing::default());
        assert_eq!(scrub.poll_work(&machine(1..=1), NOW_S), None);
    }
}
