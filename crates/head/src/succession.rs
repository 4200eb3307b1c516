//! When a head may take the lease. Sans-I/O.
//!
//! The row of the lease says who leads; whoever leads writes it anew every second. A head that
//! waits looks at the row, and counts the time in which it stays as it is by a clock of its own: no
//! two clocks have to agree. If the engine knows that whoever leads has no connection to it any
//! more, there is nothing to wait for.
//!
//! Taking the lease is safe at any time: each transaction and each order to a disk carries its
//! epoch. Waiting only keeps heads from taking it from each other in turns.

use byname_catalog::Lease;

/// Looks at the lease for a head that does not lead.
#[derive(Debug)]
pub struct Succession {
    lease_ns: u64,
    /// The row, and since when it is so.
    seen: Option<(Option<Lease>, u64)>,
}

impl Succession {
    /// Waits for a lease that has not been renewed for so long.
    pub fn new(lease_ns: u64) -> Self {
        Self { lease_ns, seen: None }
    }

    /// True if the lease, as it is in the engine now, may be taken. `has_claim` says that nobody
    /// who is connected to the engine has it; `now_ns` never goes back.
    pub fn handle(&mut self, lease: Option<Lease>, has_claim: bool, now_ns: u64) -> bool {
        let since_ns = match &self.seen {
            Some((seen, since_ns)) if *seen == lease => *since_ns,
            _ => now_ns,
        };
        let is_first = lease.is_none();
        self.seen = Some((lease, since_ns));
        has_claim || is_first || now_ns.saturating_sub(since_ns) >= self.lease_ns
    }
}

#[cfg(test)]
mod tests {
    use super::Succession;
    use byname_catalog::Lease;
    use byname_catalog::id::LeaseEpoch;

    const SECOND: u64 = 1_000_000_000;

    fn lease(until_ns: u64) -> Option<Lease> {
        Some(Lease { epoch: LeaseEpoch(1), head: "a".to_owned(), until_ns })
    }

    #[test]
    fn a_lease_is_taken_when_it_has_not_been_renewed_for_its_time() {
        let mut succession = Succession::new(5 * SECOND);
        assert!(!succession.handle(lease(1), false, 0));
        assert!(!succession.handle(lease(1), false, 4 * SECOND));
        assert!(!succession.handle(lease(2), false, 6 * SECOND), "it was renewed");
        assert!(!succession.handle(lease(2), false, 10 * SECOND));
        assert!(succession.handle(lease(2), false, 11 * SECOND));
    }

    #[test]
    fn nobody_waits_where_nobody_leads() {
        assert!(Succession::new(5 * SECOND).handle(None, false, 0));
        let mut succession = Succession::new(5 * SECOND);
        assert!(!succession.handle(lease(1), false, 0));
        assert!(succession.handle(lease(1), true, 1), "whoever had it is gone");
    }
}
