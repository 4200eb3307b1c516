//! Required age of a description, and which publishers are known not to answer.
//!
//! A reader asks its publisher first (MustBeFresh). Only when nobody answers may it take what a
//! cache or a mirror still has. Waiting for a dead publisher anew for each of ten thousand files
//! would take hours, so for a while after one wait its other names are given little time.

use byname_packet::{Name, NameRef};

const MS: u64 = 1_000_000;

/// Time that a publisher may take before older answers will do; half of the silence if that is
/// less.
pub const FRESH_PATIENCE_NS: u64 = 3_000 * MS;
/// The same while it is known not to answer.
pub(crate) const SHORT_PATIENCE_NS: u64 = 300 * MS;
/// An answer that was signed longer ago is not taken for a fresh one, whoever says so. Clocks of
/// publisher and reader may differ by this much before that does harm.
pub const FRESH_AGE_MAX_NS: u64 = 60_000 * MS;
/// Time for which it is remembered that a publisher did not answer.
const REMEMBERED_NS: u64 = 10_000 * MS;
/// Publishers that are remembered.
const PUBLISHERS_MAX: usize = 64;

/// True if an older description will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Freshness {
    /// If the publisher does not answer.
    #[default]
    Preferred,
    /// Never.
    Required,
    /// Always: the publisher is not asked.
    Offline,
}

/// The publishers that did not answer lately, by the namespace of their key.
#[derive(Debug, Default)]
pub struct Unreachable {
    seen: Vec<(Name, u64)>,
}

impl Unreachable {
    /// The publisher of names under `identity` did not answer.
    pub fn note(&mut self, identity: Name, now_ns: u64) {
        self.forget_old(now_ns);
        if self.seen.iter().any(|(known, _)| *known == identity) {
            return;
        }
        if self.seen.len() >= PUBLISHERS_MAX {
            self.seen.remove(0);
        }
        self.seen.push((identity, now_ns));
    }

    /// The publisher of `name` answers.
    pub fn forget(&mut self, name: NameRef<'_>) {
        self.seen.retain(|(identity, _)| !identity.view().is_prefix_of(name));
    }

    /// True if the publisher of `name` did not answer lately.
    pub fn contains(&mut self, name: NameRef<'_>, now_ns: u64) -> bool {
        self.forget_old(now_ns);
        self.seen.iter().any(|(identity, _)| identity.view().is_prefix_of(name))
    }

    /// Noted once and not renewed, so that every now and then a publisher gets its full time.
    fn forget_old(&mut self, now_ns: u64) {
        self.seen.retain(|(_, noted_ns)| now_ns.saturating_sub(*noted_ns) < REMEMBERED_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publisher_is_remembered_for_a_while_and_not_longer() {
        let mut unreachable = Unreachable::default();
        let lab: Name = "/lab".parse().unwrap();
        let file: Name = "/lab/a/b".parse().unwrap();
        let other: Name = "/other/a".parse().unwrap();
        unreachable.note(lab.clone(), 5);
        assert!(unreachable.contains(file.view(), 6));
        assert!(!unreachable.contains(other.view(), 6));
        unreachable.note(lab.clone(), REMEMBERED_NS);
        assert!(!unreachable.contains(file.view(), 5 + REMEMBERED_NS), "not renewed");
        unreachable.note(lab, 7);
        unreachable.forget(file.view());
        assert!(!unreachable.contains(file.view(), 8), "it answered");
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut unreachable = Unreachable::default();
        for number in 0..1000u64 {
            unreachable.note(Name::new().with_generic(&number.to_be_bytes()), 1);
        }
        assert_eq!(unreachable.seen.len(), PUBLISHERS_MAX);
    }
}
