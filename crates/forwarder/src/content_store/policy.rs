//! Replacement policies: which packet goes when the content store is full.
//!
//! A policy learns what happens to packets, by their numbers, and names the next to go. It holds
//! nothing but an order of numbers: bounds, buffers and names are the store's affair. To add one:
//! implement [`Policy`] in a file of its own below `policy/` and give it a [`CsPolicy`].

mod fifo;
mod list;
mod lru;
mod order;

use fifo::Fifo;
use lru::Lru;

pub(super) use order::Policy;

/// A choice of policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CsPolicy {
    /// The packet goes that was asked for longest ago.
    #[default]
    Lru,
    /// The packet goes that came first. Hits cost less, and are worth less.
    Fifo,
}

impl CsPolicy {
    /// The name that configurations use.
    pub fn label(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::Fifo => "fifo",
        }
    }

    /// The policy of that name.
    pub fn by_label(label: &str) -> Option<Self> {
        [Self::Lru, Self::Fifo].into_iter().find(|policy| policy.label() == label)
    }

    pub(super) fn build(self) -> Box<dyn Policy> {
        match self {
            Self::Lru => Box::new(Lru::default()),
            Self::Fifo => Box::new(Fifo::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(policy: CsPolicy) -> Vec<u32> {
        let mut order = policy.build();
        (0..5).for_each(|index| order.on_insert(index));
        order.on_hit(1);
        order.on_remove(3);
        order.on_insert(3);
        order.on_hit(0);
        std::iter::from_fn(|| order.victim().inspect(|index| order.on_remove(*index))).collect()
    }

    #[test]
    fn packets_go_in_the_order_of_the_policy() {
        assert_eq!(order(CsPolicy::Lru), [2, 4, 1, 3, 0]);
        assert_eq!(order(CsPolicy::Fifo), [0, 1, 2, 4, 3]);
    }

    #[test]
    fn policies_have_names() {
        for policy in [CsPolicy::Lru, CsPolicy::Fifo] {
            assert_eq!(CsPolicy::by_label(policy.label()), Some(policy));
        }
        assert_eq!(CsPolicy::by_label("mru"), None);
    }
}
