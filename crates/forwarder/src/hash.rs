//! Keyed hashes of names and of all their prefixes, computed once per packet.
//!
//! The key comes from [`crate::Config::seed`], so that a peer cannot choose names that fall into
//! one bucket. The hash of a prefix depends only on its octets: tables keyed by whole names and by
//! prefixes share one pass over the name.

use std::hash::{DefaultHasher, Hasher};

use byname_packet::{NameRef, tlv};

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
}

/// Makes hashes; all tables of one forwarder share one.
#[derive(Debug, Clone)]
pub(crate) struct NameHasher {
    keyed: DefaultHasher,
}

impl NameHasher {
    pub(crate) fn new(key: [u64; 2]) -> Self {
        let mut keyed = DefaultHasher::new();
        keyed.write_u64(key[0]);
        keyed.write_u64(key[1]);
        Self { keyed }
    }

    /// The hash of a name's value; equals what [`NameHasher::prefixes`] finds for it.
    pub(crate) fn hash(&self, value: &[u8]) -> u64 {
        let mut hasher = self.keyed.clone();
        hasher.write(value);
        hasher.finish()
    }

    /// Replaces `out` by the hashes of all prefixes of `name`, the empty one first.
    pub(crate) fn prefixes(&self, name: NameRef<'_>, out: &mut Prefixes) {
        let mut hasher = self.keyed.clone();
        let mut reader = tlv::Reader::new(name.value());
        out.hashes.clear();
        out.hashes.push(PrefixHash { hash: hasher.finish(), end: 0 });
        while let Ok(Some(component)) = reader.read() {
            hasher.write(component.wire);
            out.hashes.push(PrefixHash { hash: hasher.finish(), end: reader.position() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_packet::Name;

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
        assert_eq!(prefixes.whole(), hasher.hash(name.view().value()));
    }

    #[test]
    fn the_key_changes_the_hash() {
        assert_ne!(NameHasher::new([1, 2]).hash(b"x"), NameHasher::new([1, 3]).hash(b"x"));
    }
}
