//! Notice of an outage: something is wanted, and nothing has come for a while.
//!
//! A refusal is no answer: whether a connection is lost, a route is gone, or somebody is silent,
//! what a caller sees is that nothing comes. Reported once, and once when it is over.

/// Silence worth a line.
const WORTH_REPORTING_NS: u64 = 2_000_000_000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// From when on something is owed.
    owed_ns: Option<u64>,
    is_reported: bool,
}

/// A line for whoever waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// Nothing comes.
    Begun,
    /// Something came after so many seconds.
    Over { lasted_s: u64 },
}

impl Outage {
    /// Something is asked.
    pub(crate) fn ask(&mut self, now_ns: u64) {
        self.owed_ns.get_or_insert(now_ns);
    }

    /// Data came.
    pub(crate) fn hear_data(&mut self, now_ns: u64) -> Option<Notice> {
        let owed_ns = self.owed_ns.take()?;
        let was_reported = std::mem::take(&mut self.is_reported);
        let lasted_s = now_ns.saturating_sub(owed_ns) / 1_000_000_000;
        was_reported.then_some(Notice::Over { lasted_s })
    }

    /// Nothing is wanted any more.
    pub(crate) fn forget(&mut self) {
        *self = Outage::default();
    }

    /// Reports a silence that has lasted.
    pub(crate) fn check(&mut self, now_ns: u64) -> Option<Notice> {
        let is_long =
            self.owed_ns.is_some_and(|at| now_ns.saturating_sub(at) >= WORTH_REPORTING_NS);
        if !is_long || self.is_reported {
            return None;
        }
        self.is_reported = true;
        Some(Notice::Begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn an_outage_is_reported_once_and_so_is_its_end() {
        let mut outage = Outage::default();
        outage.ask(S);
        outage.ask(2 * S);
        assert_eq!(outage.check(2 * S), None);
        assert_eq!(outage.check(3 * S), Some(Notice::Begun));
        assert_eq!(outage.check(4 * S), None);
        assert_eq!(outage.hear_data(6 * S), Some(Notice::Over { lasted_s: 5 }));
        assert_eq!(outage.hear_data(6 * S), None);
        outage.ask(7 * S);
        assert_eq!(outage.hear_data(8 * S), None, "not worth a line");
    }

    #[test]
    fn who_wants_nothing_misses_nothing() {
        let mut outage = Outage::default();
        outage.ask(S);
        outage.forget();
        assert_eq!(outage.check(9 * S), None);
        outage.ask(10 * S);
        assert_eq!(outage.check(11 * S), None);
    }
}
