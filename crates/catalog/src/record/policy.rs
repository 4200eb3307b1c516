//! Where the content of files goes.

use crate::codec::{Decoder, Encoder, Malformed};
use crate::engine::Table;
use crate::name::check_label;
use crate::refusal::Refusal;
use crate::view::Record;

/// Most replicas of one file.
const REPLICAS_MAX: u8 = 16;
/// Longest pattern of a policy, in octets.
const PATTERN_BYTES_MAX: usize = 255;

/// Where new content goes. Inherited by what is made in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Space whose disks take the replicas.
    pub space: String,
    /// Replicas that are asked for.
    pub replica_count: u8,
    /// Receipts that a commit needs, at most the replicas.
    pub receipt_count: u8,
}

impl Policy {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_label(&self.space)?;
        let receipts = 1..=self.replica_count;
        match self.replica_count <= REPLICAS_MAX && receipts.contains(&self.receipt_count) {
            true => Ok(()),
            false => Err(Refusal::BadPolicy),
        }
    }

    pub(crate) fn encode(&self, encoder: &mut Encoder) {
        encoder.octets(self.space.as_bytes());
        encoder.octet(self.replica_count);
        encoder.octet(self.receipt_count);
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            space: decoder.text()?,
            replica_count: decoder.octet()?,
            receipt_count: decoder.octet()?,
        })
    }
}

/// A policy as far as it differs from another; what is absent stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyChanges {
    /// Space whose disks take the replicas.
    pub space: Option<String>,
    /// Replicas that are asked for. Without a number of receipts as many are needed, or fewer if
    /// the other policy needed fewer than all.
    pub replica_count: Option<u8>,
    /// Receipts that a commit needs; all replicas if there are fewer.
    pub receipt_count: Option<u8>,
}

impl PolicyChanges {
    /// Checks that these make a good policy of any.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let receipt_count = self.receipt_count.unwrap_or(1);
        let replica_count = self.replica_count.unwrap_or(receipt_count);
        let space = self.space.clone().unwrap_or_else(|| "any".to_owned());
        Policy { space, replica_count, receipt_count }.check()
    }

    /// True if everything stays.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The other policy with these changes.
    pub fn of(&self, other: &Policy) -> Policy {
        let replica_count = self.replica_count.unwrap_or(other.replica_count);
        let wants_all = other.receipt_count == other.replica_count;
        let receipts = if wants_all { replica_count } else { other.receipt_count };
        Policy {
            space: self.space.clone().unwrap_or_else(|| other.space.clone()),
            replica_count,
            receipt_count: self.receipt_count.unwrap_or(receipts).min(replica_count),
        }
    }
}

/// What holds for new files whose names fit a pattern, which is the row's key.
impl Record for PolicyChanges {
    const TABLE: Table = Table::Pattern;

    fn encode(&self, encoder: &mut Encoder) {
        // A label is never empty, a policy has one replica at least.
        encoder.octets(self.space.as_deref().unwrap_or_default().as_bytes());
        encoder.octet(self.replica_count.unwrap_or_default());
        encoder.octet(self.receipt_count.unwrap_or_default());
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            space: Some(decoder.text()?).filter(|space| !space.is_empty()),
            replica_count: Some(decoder.octet()?).filter(|count| *count > 0),
            receipt_count: Some(decoder.octet()?).filter(|count| *count > 0),
        })
    }
}

/// Checks a pattern of names: 1 to 255 octets without control characters and slashes.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), Refusal> {
    let is_allowed = |char: char| !char.is_control() && char != '/';
    match (1..=PATTERN_BYTES_MAX).contains(&pattern.len()) && pattern.chars().all(is_allowed) {
        true => Ok(()),
        false => Err(Refusal::BadPattern),
    }
}

/// True if a name fits a pattern: `*` is any octets, `?` one, all others are themselves.
pub(crate) fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Where the last star was, and how far it had to reach.
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(octet) if *octet == b'?' || *octet == name[read] => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((position, reach)) = star else { return false };
                star = Some((position, reach + 1));
                at = position + 1;
                read = reach + 1;
            }
        }
    }
    pattern[at..].iter().all(|octet| *octet == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        for (pattern, name, is_fit) in [
            ("*.root", "a.root", true),
            ("*.root", ".root", true),
            ("*.root", "a.root.tmp", false),
            ("*", "", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "ab_ab_a", false),
            ("a*", "ba", false),
            ("run-*-final", "run-1-final-final", true),
            ("", "a", false),
            ("[a]", "[a]", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), is_fit, "{pattern} {name}");
        }
        // No pattern takes long, whatever the name.
        assert!(!fits("*a".repeat(127).as_bytes(), "a".repeat(126).as_bytes()));
    }

    #[test]
    fn receipts_follow_the_replicas_unless_they_are_told() {
        let all = Policy { space: "main".into(), replica_count: 2, receipt_count: 2 };
        let some = Policy { receipt_count: 1, ..all.clone() };
        let of = |replica_count, receipt_count, policy: &Policy| {
            let changes = PolicyChanges { space: None, replica_count, receipt_count };
            let policy = changes.of(policy);
            (policy.replica_count, policy.receipt_count)
        };
        assert_eq!(of(Some(3), None, &all), (3, 3));
        assert_eq!(of(Some(3), None, &some), (3, 1));
        assert_eq!(of(Some(1), None, &all), (1, 1));
        assert_eq!(of(Some(3), Some(2), &all), (3, 2));
        assert_eq!(of(None, Some(1), &all), (2, 1));
        assert_eq!(PolicyChanges::default().of(&all), all);
    }
}
