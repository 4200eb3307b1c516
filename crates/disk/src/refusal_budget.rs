//! Signatures that are spent on refusing: each asker has some, and gets more as time passes.
//!
//! Anyone may send what is refused, and a signature costs more than sending does. What goes beyond
//! the budget is answered without one.

use std::collections::HashMap;

use byname_transfer::server::Asker;

/// Refusals in a row that one asker gets signed.
const BURST: u32 = 32;
/// Time for one more.
const REFILL_NS: u64 = 50_000_000;
/// Askers that are remembered. Whoever has his whole budget need not be.
const ASKERS_MAX: usize = 1024;

/// Budgets by asker.
#[derive(Debug, Default)]
pub(crate) struct RefusalBudget {
    /// When each will have his whole budget again.
    full_at_ns: HashMap<Asker, u64>,
}

impl RefusalBudget {
    /// True if one more refusal may be signed for him.
    pub(crate) fn has(&self, asker: Asker, now_ns: u64) -> bool {
        let Some(full_at_ns) = self.full_at_ns.get(&asker) else {
            let is_remembered = |full_at_ns: &&u64| **full_at_ns > now_ns;
            return self.full_at_ns.len() < ASKERS_MAX
                || self.full_at_ns.values().filter(is_remembered).count() < ASKERS_MAX;
        };
        let spent_ns = full_at_ns.saturating_sub(now_ns);
        spent_ns <= u64::from(BURST - 1) * REFILL_NS
    }

    /// One was signed for him.
    pub(crate) fn spend(&mut self, asker: Asker, now_ns: u64) {
        if self.full_at_ns.len() >= ASKERS_MAX {
            self.full_at_ns.retain(|_, full_at_ns| *full_at_ns > now_ns);
        }
        let full_at_ns = self.full_at_ns.entry(asker).or_default();
        *full_at_ns = (*full_at_ns).max(now_ns).saturating_add(REFILL_NS);
    }
}

#[cfg(test)]
mod tests {
    use byname_transfer::server::FaceId;

    use super::*;

    fn asker(behind: usize) -> Asker {
        Asker { face: FaceId(1), behind: Some(behind as u64) }
    }

    fn spent(budget: &mut RefusalBudget, asker: Asker, now_ns: u64) -> u32 {
        (0..1000)
            .map_while(|_| budget.has(asker, now_ns).then(|| budget.spend(asker, now_ns)))
            .count() as u32
    }

    #[test]
    fn an_asker_has_a_budget_of_his_own_that_comes_back() {
        let mut budget = RefusalBudget::default();
        assert_eq!(spent(&mut budget, asker(1), 0), BURST);
        assert_eq!(spent(&mut budget, asker(2), 0), BURST, "another one has his own");
        assert_eq!(spent(&mut budget, asker(1), 3 * REFILL_NS), 3);
        assert_eq!(spent(&mut budget, asker(1), 3600 * 1_000_000_000), BURST, "and no more");
    }

    #[test]
    fn askers_that_are_remembered_are_bounded() {
        let mut budget = RefusalBudget::default();
        for behind in 0..ASKERS_MAX {
            assert!(budget.has(asker(behind), 0));
            budget.spend(asker(behind), 0);
        }
        assert!(!budget.has(asker(ASKERS_MAX), 0), "all places are taken");
        let later_ns = REFILL_NS + 1;
        assert!(budget.has(asker(ASKERS_MAX), later_ns), "they have their budgets again");
        budget.spend(asker(ASKERS_MAX), later_ns);
        assert_eq!(budget.full_at_ns.len(), 1);
    }
}
