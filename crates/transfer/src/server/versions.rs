//! When a state of a file may get a version, and which.

use super::state::{FileStat, Recalled};

const SECOND_NS: u64 = 1_000_000_000;

/// Time that a file must have been as it is before it gets a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiet {
    /// Nanoseconds, usually.
    pub quiet_ns: u64,
    /// Nanoseconds where the file system keeps whole seconds only.
    pub quiet_coarse_ns: u64,
}

/// Which version a state not announced before gets.
///
/// Never below one announced under the name, whatever the clock of the file says.
pub fn next_version(mtime_ns: u64, recalled: &Recalled) -> u64 {
    let after_last = recalled.record.map_or(0, |record| record.version.saturating_add(1));
    mtime_ns.max(after_last).max(recalled.version_floor)
}

impl Quiet {
    /// Time that a file must stay as it is before its state counts as settled; 0 when it
    /// does.
    ///
    /// `seen_for_ns` is how long this server has seen it in this state.
    pub fn unsettled_ns(&self, stat: &FileStat, unix_ns: u64, seen_for_ns: u64) -> u64 {
        let Some(ctime_ns) = stat.ctime_ns else { return 0 };
        // Nobody can choose ctime, so whole seconds there mean that the file system keeps no more.
        let is_coarse = ctime_ns.is_multiple_of(SECOND_NS);
        let quiet_ns = if is_coarse { self.quiet_coarse_ns } else { self.quiet_ns };
        if ctime_ns > unix_ns {
            // The clock was set back or belongs to another machine: only watching helps.
            return quiet_ns.saturating_sub(seen_for_ns);
        }
        // An mtime in the future was set by hand; ctime then tells when.
        let past_mtime_ns = if stat.mtime_ns > unix_ns { 0 } else { stat.mtime_ns };
        let changed_ns = ctime_ns.max(past_mtime_ns);
        changed_ns.saturating_add(quiet_ns).saturating_sub(unix_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::{FileState, Fingerprint, Record, Subject};
    use super::*;

    fn at(mtime_ns: u64, ctime_ns: u64) -> FileStat {
        let fingerprint = Fingerprint::new([1; 16], [2; 24]);
        let state = FileState { fingerprint, size: 3 };
        FileStat { state, mode: 0o100_644, mtime_ns, ctime_ns: Some(ctime_ns) }
    }

    #[test]
    fn versions_never_go_back() {
        let announced = |version| Recalled {
            record: Some(Record { subject: Subject::Listing([0; 32]), version }),
            ..Recalled::default()
        };
        assert_eq!(next_version(50, &Recalled::default()), 50);
        assert_eq!(next_version(50, &announced(40)), 50);
        assert_eq!(next_version(50, &announced(50)), 51);
        assert_eq!(next_version(50, &announced(90)), 91);
        let lost = Recalled { version_floor: 1000, ..Recalled::default() };
        assert_eq!(next_version(50, &lost), 1000);
    }

    #[test]
    fn a_file_settles_a_while_after_its_last_change() {
        let quiet = Quiet { quiet_ns: 100, quiet_coarse_ns: 3000 };
        let wait = |stat, unix_ns| quiet.unsettled_ns(&stat, unix_ns, 0);
        assert_eq!(wait(at(1001, 1001), 1001), 100);
        assert_eq!(wait(at(1001, 1001), 1101), 0);
        assert_eq!(wait(at(5, 1001), 1050), 51, "a restored mtime does not hide the change");
        assert_eq!(wait(at(9_999_999, 1001), 1101), 0, "an mtime in the future is no change");
        assert_eq!(wait(at(1050, 1001), 1050), 100, "one of this moment is one");
        assert_eq!(quiet.unsettled_ns(&at(1001, 1001), 1001, 60), 100, "its own time says it");
        assert_eq!(wait(at(SECOND_NS, SECOND_NS), SECOND_NS + 1), 2999, "whole seconds");
    }

    #[test]
    fn a_ctime_in_the_future_is_watched_instead() {
        let quiet = Quiet { quiet_ns: 100, quiet_coarse_ns: 3000 };
        let wait = |seen_for_ns| quiet.unsettled_ns(&at(5, 9001), 1000, seen_for_ns);
        assert_eq!((wait(0), wait(60), wait(100)), (100, 40, 0));
    }

    #[test]
    fn what_is_only_replaced_whole_is_settled_when_it_is_seen() {
        let quiet = Quiet { quiet_ns: 100, quiet_coarse_ns: 3000 };
        let stat = FileStat { ctime_ns: None, ..at(1001, 0) };
        assert_eq!(quiet.unsettled_ns(&stat, 1001, 0), 0);
    }
}
