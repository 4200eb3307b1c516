//! Losses of the engine, after which numbers have to begin anew. Sans-I/O.
//!
//! The engine counts its setbacks. The first head that leads after one begins an epoch above all
//! that were; the others see that epoch in the lease, and leave it at that.

use byname_catalog::Lease;
use byname_catalog::id::LeaseEpoch;

/// What a head knows of terms, and of setbacks since.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    setbacks: u64,
    /// The highest term that was seen.
    highest: LeaseEpoch,
    /// The highest one before a setback after which no epoch has begun.
    lost: Option<LeaseEpoch>,
}

impl Losses {
    /// Takes the lease as it is now, and the setbacks that the engine counts after that was read.
    pub(crate) fn handle(&mut self, lease: Option<&Lease>, setbacks: u64) {
        let seen = lease.map_or(LeaseEpoch(0), |lease| lease.epoch);
        if setbacks != self.setbacks {
            self.setbacks = setbacks;
            // Who has seen nothing before the setback cannot tell what began after it.
            self.lost = Some(if self.highest == LeaseEpoch(0) { seen } else { self.highest });
        }
        self.highest = self.highest.max(seen);
        self.lost = self.lost.filter(|lost| seen.epoch() <= lost.epoch());
    }

    /// The highest term that was seen, if numbers have to begin above it.
    pub(crate) fn above(&self) -> Option<LeaseEpoch> {
        self.lost.map(|_| self.highest)
    }

    /// Takes a term of one's own, and the setbacks before it. False if there were more of these
    /// than were known, so that it may not be used.
    pub(crate) fn handle_term(&mut self, term: LeaseEpoch, setbacks: u64) -> bool {
        let is_whole = setbacks == self.setbacks;
        self.highest = self.highest.max(term);
        if is_whole {
            self.lost = None;
        }
        is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::Losses;
    use byname_catalog::Lease;
    use byname_catalog::id::LeaseEpoch;

    fn lease(epoch: u64, count: u64) -> Lease {
        Lease { epoch: LeaseEpoch((epoch << 48) | count), head: "a".to_owned(), until_ns: 0 }
    }

    #[test]
    fn the_first_who_leads_after_a_setback_begins_an_epoch_and_the_others_do_not() {
        let [mut one, mut other] = <[Losses; 2]>::default();
        for head in [&mut one, &mut other] {
            head.handle(Some(&lease(2, 7)), 0);
            assert_eq!(head.above(), None);
            head.handle(Some(&lease(2, 5)), 1);
            assert_eq!(head.above(), Some(lease(2, 7).epoch));
        }
        assert!(one.handle_term(lease(3, 0).epoch, 1));
        assert_eq!(one.above(), None);
        other.handle(Some(&lease(3, 0)), 1);
        assert_eq!(other.above(), None);
        other.handle(Some(&lease(3, 0)), 2);
        assert_eq!(other.above(), Some(lease(3, 0).epoch), "one more");
    }

    #[test]
    fn who_looks_when_all_is_done_does_nothing_and_who_begins_with_a_setback_does() {
        let mut late = Losses::default();
        late.handle(Some(&lease(0, 7)), 0);
        late.handle(Some(&lease(1, 0)), 1);
        assert_eq!(late.above(), None, "the new epoch is there already");
        let mut fresh = Losses::default();
        fresh.handle(Some(&lease(4, 7)), 1);
        assert_eq!(fresh.above(), Some(lease(4, 7).epoch));
        assert!(!fresh.handle_term(lease(5, 0).epoch, 2), "another one came between");
        assert!(fresh.above().is_some());
    }
}
