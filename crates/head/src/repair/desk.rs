//! What operators ask of whoever moves replicas, and what there is to tell them.
//!
//! A wish lasts as long as somebody asks for it again and again: who is gone wants nothing more, so
//! interrupting the command is how balancing pauses. Nothing of it is kept: what was moved is in
//! the catalog.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use byname_catalog::id::{ContentId, DiskId};

const SECOND_NS: u64 = 1_000_000_000;
/// Wishes for single replicas, at most.
const WISHES_MAX: usize = 4096;
/// Time after which a wish is over that nobody has asked for again.
const WISH_NS: u64 = 15 * SECOND_NS;

/// A replica that somebody wants to be elsewhere, or in addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wish {
    pub(crate) content: ContentId,
    /// The disk that it leaves.
    pub(crate) from: Option<DiskId>,
    /// The disk that gets it; the head chooses one otherwise.
    pub(crate) to: Option<DiskId>,
    /// Replicas that there were when somebody began to ask.
    pub(crate) had: u64,
    /// The disk that it leaves has something else by now: it is no source.
    pub(crate) is_rotten: bool,
}

impl Wish {
    /// A replica that its disk has found to be something else.
    pub(crate) fn rotten(content: ContentId, from: DiskId) -> Self {
        Self { content, from: Some(from), to: None, had: 0, is_rotten: true }
    }
}

/// Disks of a space that shall be as full as each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BalanceWish {
    pub(crate) space: String,
    /// Hundredths of its capacity by which a disk may be fuller or emptier than all together.
    pub(crate) within_percent: u64,
    /// Octets a second, no more than for everything.
    pub(crate) bytes_per_s: Option<u64>,
}

/// What replicas are moved, since the term began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RepairReport {
    pub(crate) in_flight: usize,
    pub(crate) moved: u64,
    pub(crate) moved_bytes: u64,
    /// What of this was moved to balance disks.
    pub(crate) balanced_bytes: u64,
    /// Nothing more can be moved to balance disks.
    pub(crate) is_balance_stuck: bool,
    /// The last look at all files, if there was one.
    pub(crate) files: Option<FilesReport>,
}

/// Files that lack replicas, as of the last look at all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FilesReport {
    /// They have fewer replicas than their policy wants.
    pub(crate) short: u64,
    /// Disks that answer have some of their replicas, and fewer than their policy wants.
    pub(crate) thin: u64,
    /// No disk that answers has them.
    pub(crate) out_of_reach: u64,
    /// No disk has them.
    pub(crate) lost: u64,
}

/// State of a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Since the last look.
    Anew,
    Until(u64),
}

#[derive(Debug, Default)]
struct Shared {
    wishes: BTreeMap<Wish, (Asked, Option<&'static str>)>,
    balance: Option<(BalanceWish, Asked)>,
    report: RepairReport,
    /// Replicas that a disk was told to take and did not, by disk.
    failed_pulls: BTreeMap<DiskId, u64>,
}

/// Wishes and report, between who moves and who is asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct RepairDesk(Arc<Mutex<Shared>>);

impl RepairDesk {
    fn with<T>(&self, work: impl FnOnce(&mut Shared) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks for something, or asks again: why it could not be done, if it was tried in vain; it is
    /// tried once more then. `None` if there are too many wishes.
    pub(crate) fn ask(&self, wish: Wish) -> Option<Option<&'static str>> {
        self.with(|shared| {
            if shared.wishes.len() >= WISHES_MAX && !shared.wishes.contains_key(&wish) {
                return None;
            }
            let (asked, failure) = shared.wishes.entry(wish).or_insert((Asked::Anew, None));
            *asked = Asked::Anew;
            Some(failure.take())
        })
    }

    /// Asks for balance; another wish for it takes its place.
    pub(crate) fn ask_balance(&self, wish: BalanceWish) {
        self.with(|shared| {
            let is_new = shared.balance.as_ref().is_none_or(|(old, _)| *old != wish);
            shared.report.is_balance_stuck &= !is_new;
            shared.balance = Some((wish, Asked::Anew));
        });
    }

    /// Wishes that nothing is known against; those are forgotten that nobody repeats.
    pub(super) fn wishes(&self, now_ns: u64) -> Vec<Wish> {
        self.with(|shared| {
            shared.wishes.retain(|_, (asked, _)| is_asked(asked, now_ns));
            let open = shared.wishes.iter().filter(|(_, (_, failure))| failure.is_none());
            open.map(|(wish, _)| *wish).collect()
        })
    }

    /// The wish for balance, while somebody repeats it.
    pub(super) fn balance(&self, now_ns: u64) -> Option<BalanceWish> {
        self.with(|shared| {
            shared.balance.take_if(|(_, asked)| !is_asked(asked, now_ns));
            shared.balance.as_ref().map(|(wish, _)| wish.clone())
        })
    }

    /// A wish cannot be done.
    pub(super) fn fail(&self, wish: &Wish, why: &'static str) {
        self.with(|shared| {
            if let Some((_, failure)) = shared.wishes.get_mut(wish) {
                *failure = Some(why);
            }
        });
    }

    /// A wish is done, or void.
    pub(super) fn end(&self, wish: &Wish) {
        self.with(|shared| shared.wishes.remove(wish));
    }

    /// Wishes that nobody has let go, nor done.
    pub(crate) fn wish_count(&self) -> usize {
        self.with(|shared| shared.wishes.len())
    }

    /// A disk was told to take a replica, and did not, or not in time.
    pub(super) fn count_failure(&self, disk: DiskId) {
        self.with(|shared| *shared.failed_pulls.entry(disk).or_default() += 1);
    }

    /// How often that was.
    pub(crate) fn failed_pulls(&self, disk: DiskId) -> u64 {
        self.with(|shared| shared.failed_pulls.get(&disk).copied().unwrap_or_default())
    }

    pub(crate) fn report(&self) -> RepairReport {
        self.with(|shared| shared.report)
    }

    pub(super) fn tell(&self, change: impl FnOnce(&mut RepairReport)) {
        self.with(|shared| change(&mut shared.report));
    }
}

/// True while somebody asks.
fn is_asked(asked: &mut Asked, now_ns: u64) -> bool {
    match *asked {
        Asked::Anew => {
            *asked = Asked::Until(now_ns.saturating_add(WISH_NS));
            true
        }
        Asked::Until(until_ns) => until_ns > now_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_catalog::id::{InodeId, Version};

    #[test]
    fn who_asks_no_more_wants_nothing_more() {
        let desk = RepairDesk::default();
        let content = ContentId { inode: InodeId(7), version: Version(8) };
        let wish = Wish { content, from: None, to: None, had: 2, is_rotten: false };
        assert_eq!(desk.ask(wish), Some(None));
        assert_eq!(desk.wishes(5), [wish]);
        assert_eq!(desk.wishes(WISH_NS), [wish]);
        desk.fail(&wish, "no");
        assert_eq!(desk.wishes(WISH_NS), [], "it is not tried again before somebody hears of it");
        assert_eq!(desk.ask(wish), Some(Some("no")));
        assert_eq!((desk.ask(wish), desk.wishes(WISH_NS).len()), (Some(None), 1));
        assert_eq!(desk.wishes(3 * WISH_NS), []);
        let balance = BalanceWish { space: "main".into(), within_percent: 5, bytes_per_s: None };
        desk.ask_balance(balance.clone());
        assert_eq!(desk.balance(9), Some(balance));
        assert_eq!(desk.balance(9 + WISH_NS), None);
    }

    #[test]
    fn wishes_are_bounded() {
        let desk = RepairDesk::default();
        let wish = |n| Wish {
            content: ContentId { inode: InodeId(n), version: Version(1) },
            from: None,
            to: None,
            had: 2,
            is_rotten: false,
        };
        for n in 0..WISHES_MAX as u64 {
            assert!(desk.ask(wish(n)).is_some());
        }
        assert_eq!(desk.ask(wish(u64::MAX)), None);
        assert!(desk.ask(wish(3)).is_some(), "what is known may be repeated");
    }
}
