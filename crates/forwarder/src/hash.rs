//! Keyed hashes of names and of all their prefixes, computed once per packet.
//!
//! A peer chooses names, and must not be able to choose them so that they fall into one bucket.
//! That takes a guarantee for names chosen without knowledge of the key: a polynomial over
//! the field of 2^61 - 1 elements gives it. A name is read as a sequence of 7-octet numbers (each
//! component from a number of its own on, so that every prefix has a hash; TYPE and LENGTH make the
//! sequence of one name different from that of any other), and these are the coefficients of a
//! polynomial that is evaluated at a secret point. Two polynomials of degree n agree in at most n
//! points: two names of up to 7n octets have the same value with probability n / 2^61 at most, less
//! than 2^-50 for the longest name that fits into a packet, whoever chose them. SipHash promises
//! more (a peer who *sees* hashes could still not make collisions) and costs eight times as much
//! for all prefixes of a name; hashes are never shown to anybody here, are not sent and order
//! nothing that is sent. Faster hashes for general use promise nothing that could be checked.
//!
//! The value is then mixed, one to one, because tables use its lowest and its highest bits. The key
//! comes from [`crate::Config::seed`]. Tables keyed by whole names and by prefixes share one pass
//! over the name.

use byname_packet::{NameRef, tlv};

use crate::rng::Rng;

/// 2^61 - 1, a prime.
const PRIME: u64 = (1 << 61) - 1;

/// Octets in one coefficient.
const COEFFICIENT_BYTES: usize = 7;

/// Before the first coefficient: prefixes of different lengths are polynomials of different degree.
const START: u64 = 1;

/// Hash and end offset of one prefix of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PrefixHash {
    pub(crate) hash: u64,
    /// Octets of the name's value that belong to the prefix.
    pub(crate) end: usize,
}

/// Hashes of the prefixes of one name: index n belongs to the first n components.
#[derive(Debug, Default)]
pub(crate) struct Prefixes {
    hashes: Vec<PrefixHash>,
}

impl Prefixes {
    /// The prefix of `count` components, `None` beyond the whole name.
    pub(crate) fn get(&self, count: usize) -> Option<PrefixHash> {
        self.hashes.get(count).copied()
    }

    /// Components of the whole name.
    pub(crate) fn component_count(&self) -> usize {
        self.hashes.len().saturating_sub(1)
    }

    /// The hash of the whole name.
    pub(crate) fn whole(&self) -> u64 {
        self.hashes.last().map_or(0, |last| last.hash)
    }

    /// The prefix without the last component.
    pub(crate) fn parent(&self) -> Option<PrefixHash> {
        self.get(self.hashes.len().checked_sub(2)?)
    }
}

/// Makes hashes; all tables of one forwarder share one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameHasher {
    point: u64,
    mask: u64,
}

impl NameHasher {
    pub(crate) fn new(key: [u64; 2]) -> Self {
        let mask = Rng::new(key[1]).next_u64();
        // Uniform but for a bias of 2^-58: 0 is no point, and the field has PRIME elements.
        let point = (Rng::new(key[0]).next_u64() ^ mask.rotate_left(23)) % (PRIME - 1) + 1;
        Self { point, mask }
    }

    /// The hash of a name's value; equals what [`NameHasher::prefixes`] finds for it.
    pub(crate) fn hash(&self, value: &[u8]) -> u64 {
        let mut reader = tlv::Reader::new(value);
        let mut sum = START;
        let mut start = 0;
        while let Ok(Some(_)) = reader.read() {
            sum = self.absorb(sum, value, start, reader.position());
            start = reader.position();
        }
        self.mix(sum)
    }

    /// Replaces `out` by the hashes of all prefixes of `name`, the empty one first.
    pub(crate) fn prefixes(&self, name: NameRef<'_>, out: &mut Prefixes) {
        let value = name.value();
        let mut reader = tlv::Reader::new(value);
        let mut sum = START;
        let mut start = 0;
        out.hashes.clear();
        out.hashes.push(PrefixHash { hash: self.mix(sum), end: 0 });
        while let Ok(Some(_)) = reader.read() {
            let end = reader.position();
            sum = self.absorb(sum, value, start, end);
            out.hashes.push(PrefixHash { hash: self.mix(sum), end });
            start = end;
        }
    }

    /// The hash of a name and a nonce.
    pub(crate) fn with_nonce(&self, name_hash: u64, nonce: [u8; 4]) -> u64 {
        let nonce = u64::from(u32::from_le_bytes(nonce));
        self.mix(self.step(name_hash >> 3, nonce))
    }

    /// The hash of two hashes.
    pub(crate) fn combine(&self, one: u64, other: u64) -> u64 {
        self.mix(self.step(self.step(one >> 3, other & 0xFFFF_FFFF), other >> 32))
    }

    /// Adds the component `value[start..end]`.
    #[inline]
    fn absorb(&self, mut sum: u64, value: &[u8], start: usize, end: usize) -> u64 {
        let mut at = start;
        while at < end {
            let len = (end - at).min(COEFFICIENT_BYTES);
            sum = self.step(sum, load(value, at) & (u64::MAX >> (64 - 8 * len)));
            at += len;
        }
        sum
    }

    /// One step of Horner's rule. `sum` is below 2^61 + 8, before and after, and not always reduced
    /// in full: what matters is that equal inputs give equal results.
    #[inline]
    fn step(&self, sum: u64, coefficient: u64) -> u64 {
        let product = u128::from(sum + coefficient) * u128::from(self.point);
        let folded = (product as u64 & PRIME) + (product >> 61) as u64;
        (folded & PRIME) + (folded >> 61)
    }

    #[inline]
    fn mix(&self, sum: u64) -> u64 {
        let mut mixed = (sum ^ self.mask).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        mixed ^ mixed >> 29
    }
}

/// Eight octets from `at` on, as far as there are any; there is one at least.
#[inline]
fn load(value: &[u8], at: usize) -> u64 {
    let left = &value[at..];
    if let Some(octets) = left.first_chunk() {
        return u64::from_le_bytes(*octets);
    }
    match value.last_chunk() {
        Some(octets) => u64::from_le_bytes(*octets) >> (64 - 8 * left.len()),
        None => left.iter().rev().fold(0, |number, octet| number << 8 | u64::from(*octet)),
    }
}

/// A fast hash for numbers that no peer chooses, such as those of faces.
pub(crate) fn of_number(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_packet::Name;
    use std::collections::HashSet;

    #[test]
    fn prefix_hashes_equal_the_hashes_of_the_prefixes() {
        let hasher = NameHasher::new([1, 2]);
        let name: Name = "/a/longer-component/v=7/seg=3".parse().unwrap();
        let mut prefixes = Prefixes::default();
        hasher.prefixes(name.view(), &mut prefixes);
        assert_eq!(prefixes.component_count(), 4);
        for count in 0..=4 {
            let prefix = name.view().prefix(count);
            let found = prefixes.get(count).unwrap();
            assert_eq!(found.hash, hasher.hash(prefix.value()));
            assert_eq!(found.end, prefix.value().len());
        }
        assert_eq!(prefixes.get(5), None);
        assert_eq!(prefixes.parent(), prefixes.get(3));
        assert_eq!(prefixes.whole(), hasher.hash(name.view().value()));
    }

    #[test]
    fn the_key_changes_the_hash() {
        let value = [8, 1, b'x'];
        let hash = |key| NameHasher::new(key).hash(&value);
        assert_ne!(hash([1, 2]), hash([1, 3]));
        assert_ne!(hash([1, 2]), hash([2, 2]));
    }

    /// Names that differ in one octet, in length, or in where components end.
    #[test]
    fn similar_names_have_different_hashes_in_every_part() {
        let hasher = NameHasher::new([5, 6]);
        let mut names = vec![Name::new()];
        for octet in 0..=255 {
            for len in 0..20 {
                let mut component = vec![0; len + 1];
                component[len] = octet;
                names.push(Name::new().with_generic(&component));
                names.push(Name::new().with_generic(&component[..len]).with_generic(&[octet]));
            }
        }
        for number in 0..100_000 {
            names.push(Name::new().with_generic(b"file").with_segment(number));
        }
        let distinct: HashSet<&[u8]> = names.iter().map(|name| name.view().value()).collect();
        let hashes: Vec<u64> = distinct.iter().map(|value| hasher.hash(value)).collect();
        let count = hashes.len() as f64;
        assert_eq!(hashes.iter().collect::<HashSet<_>>().len(), hashes.len());
        for shift in [0, 20, 47] {
            let mut buckets = vec![0u32; 1 << 17];
            hashes.iter().for_each(|hash| buckets[(hash >> shift) as usize & 0x1_FFFF] += 1);
            let empty = buckets.iter().filter(|n| **n == 0).count() as f64;
            let expected = 131_072.0 * (-count / 131_072.0).exp();
            assert!((empty - expected).abs() < 2000.0, "{empty} {expected}");
            assert!(buckets.iter().all(|n| *n < 20));
        }
    }

    #[test]
    fn nonces_of_one_name_spread() {
        let hasher = NameHasher::new([7, 8]);
        // Equal low bits are what a peer would choose.
        let hashes = (0..65_536u32).map(|n| hasher.with_nonce(42, (n << 16).to_le_bytes()));
        let low: HashSet<u64> = hashes.map(|hash| hash & 0xFFFF).collect();
        assert!(low.len() > 38_000, "{}", low.len());
    }
}
