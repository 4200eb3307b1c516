//! Unit cache: verified units and tree nodes, kept for whoever reads the same content next.
//!
//! A unit is known by the content that it belongs to, not by the open file that brought it, so a
//! second open, under this name or another, finds it there. [`memory`] keeps it in memory; a disk
//! can come behind the same trait.
//!
//! Invariants: only verified bytes go in, or what an `Insecure` policy lets through, under keys
//! that no verifying reader has; units of one key are always the same bytes.

pub(crate) mod memory;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use byname_packet::Name;
use byname_security::tree::{Hash, NodeId};
use byname_transfer::naming::Part;
use byname_transfer::reader::ObjectPlan;

/// Identity of content: equal ones have the same bytes at every offset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ContentId {
    basis: Basis,
    /// Shapes the tree, which is part of the proof.
    size: Option<u64>,
    is_insecure: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Basis {
    /// The root says it all, whatever the name and the segments.
    Root(Hash),
    /// Without a root, nothing but the versioned name; units are segments of this size.
    Version { name: Name, segment_bytes: Option<u64> },
}

impl ContentId {
    /// The content that a plan reads; `is_insecure` if nobody vouches for the plan.
    pub(crate) fn of(plan: &ObjectPlan, is_insecure: bool) -> Self {
        let basis = match plan.root() {
            Some(root) => Basis::Root(root),
            None => Basis::Version { name: plan.name.clone(), segment_bytes: plan.segment_bytes },
        };
        ContentId { basis, size: plan.size, is_insecure }
    }
}

/// Key of a unit of content or of a node of a tree level.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UnitKey {
    pub(crate) content: Rc<ContentId>,
    pub(crate) part: Part,
    pub(crate) index: u64,
}

/// Cache of units, bounded for a whole session.
pub(crate) trait UnitCache {
    /// Keeps a copy, unless the unit is there. `is_unread` marks what nobody has asked for yet.
    fn insert(&mut self, key: UnitKey, bytes: &[u8], is_unread: bool);

    /// True if a unit is there; does not count as use.
    fn contains(&self, key: &UnitKey) -> bool;

    /// The bytes of a unit.
    fn get(&mut self, key: &UnitKey) -> Option<&[u8]>;
}

/// View of a session's cache: the units of one content.
#[derive(Clone)]
pub(crate) struct ContentCache {
    units: Rc<RefCell<dyn UnitCache>>,
    content: Rc<ContentId>,
}

impl ContentCache {
    pub(crate) fn new(units: Rc<RefCell<dyn UnitCache>>, content: ContentId) -> Self {
        ContentCache { units, content: Rc::new(content) }
    }

    /// A cache of its own.
    #[cfg(test)]
    pub(crate) fn in_memory(bytes_max: usize) -> Self {
        let name = Name::default();
        let basis = Basis::Version { name, segment_bytes: None };
        let content = ContentId { basis, size: None, is_insecure: false };
        Self::new(Rc::new(RefCell::new(memory::MemoryCache::new(bytes_max))), content)
    }

    pub(crate) fn insert(&self, unit: u64, bytes: &[u8], is_unread: bool) {
        self.units.borrow_mut().insert(self.key(Part::Content, unit), bytes, is_unread);
    }

    pub(crate) fn contains(&self, unit: u64) -> bool {
        self.units.borrow().contains(&self.key(Part::Content, unit))
    }

    /// Hands the bytes of a unit to `out`; `None` if it is not there.
    pub(crate) fn read<T>(&self, unit: u64, out: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.units.borrow_mut().get(&self.key(Part::Content, unit)).map(out)
    }

    /// True if nodes may be shared: they belong to a root.
    pub(crate) fn has_tree(&self) -> bool {
        matches!(self.content.basis, Basis::Root(_))
    }

    pub(crate) fn insert_node(&self, node: NodeId, bytes: &[u8]) {
        let key = self.key(Part::Tree(node.level), node.index);
        self.units.borrow_mut().insert(key, bytes, false);
    }

    /// Hands the bytes of a node to `out`; `None` if it is not there.
    pub(crate) fn read_node<T>(&self, node: NodeId, out: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let key = self.key(Part::Tree(node.level), node.index);
        self.units.borrow_mut().get(&key).map(out)
    }

    fn key(&self, part: Part, index: u64) -> UnitKey {
        UnitKey { content: Rc::clone(&self.content), part, index }
    }
}

impl fmt::Debug for ContentCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ContentCache").field(&self.content).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_transfer::reader::Proof;

    fn plan(name: &str, proof: Proof) -> ObjectPlan {
        let name = name.parse().expect("a name");
        let (size, segment_bytes) = (Some(9000), Some(8192));
        ObjectPlan { name, size, segment_bytes, last_segment: Some(1), proof, hints: Vec::new() }
    }

    fn rooted(name: &str, root: u8, segment_bytes: u64) -> ObjectPlan {
        plan(name, Proof::Root { root: Hash([root; 32]), size: 9000, segment_bytes })
    }

    #[test]
    fn a_root_is_shared_by_all_names_and_a_version_by_none() {
        let id = |plan: &ObjectPlan| ContentId::of(plan, false);
        assert_eq!(id(&rooted("/a", 1, 8192)), id(&rooted("/b", 1, 4096)));
        assert_ne!(id(&rooted("/a", 1, 8192)), id(&rooted("/a", 2, 8192)));
        let longer = ObjectPlan { size: Some(9001), ..rooted("/a", 1, 8192) };
        assert_ne!(id(&rooted("/a", 1, 8192)), id(&longer));
        let version = plan("/a", Proof::Packets);
        assert_eq!(id(&version), id(&version.clone()));
        assert_ne!(id(&version), id(&plan("/b", Proof::Packets)));
        let other = ObjectPlan { segment_bytes: Some(4096), ..version.clone() };
        assert_ne!(id(&version), id(&other), "unit numbers mean other offsets");
    }

    #[test]
    fn insecure_content_is_not_given_to_a_verifying_open() {
        for plan in [rooted("/a", 1, 8192), plan("/a", Proof::Packets)] {
            let units: Rc<RefCell<dyn UnitCache>> =
                Rc::new(RefCell::new(memory::MemoryCache::new(1 << 20)));
            let open = |is_insecure| {
                ContentCache::new(Rc::clone(&units), ContentId::of(&plan, is_insecure))
            };
            let node = NodeId { level: 1, index: 0 };
            open(true).insert(0, b"whatever came", false);
            open(true).insert_node(node, b"hashes of it");
            assert!(open(true).contains(0), "another insecure open may have it");
            assert!(!open(false).contains(0));
            assert_eq!(open(false).read(0, <[u8]>::len), None);
            assert_eq!(open(false).read_node(node, <[u8]>::len), None);
            open(false).insert(0, b"verified", false);
            assert_eq!(open(false).read(0, <[u8]>::to_vec), Some(b"verified".to_vec()));
            assert_eq!(open(true).read(0, <[u8]>::len), Some(13));
        }
    }
}
