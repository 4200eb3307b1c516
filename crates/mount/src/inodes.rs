//! Inode numbers, and what the kernel holds a reference to.
//!
//! A number is made from what it stands for: the name alone of a directory, name and version of a
//! file, name and target of a link. So it is the same after a restart, and a new version of a file
//! is a new inode. Two names whose numbers collide (a publisher can look for such names) get
//! different numbers: who comes second is displaced, and the same number is found for it as long as
//! the kernel holds it.
//!
//! Invariant: an inode is here exactly as long as the kernel holds references to it, and the root
//! always.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use blake3::hazmat::{ContextKey, HasherExt, hash_derive_key_context};
use byname_packet::Name;

use crate::attributes::{Attributes, Kind};

/// The number of the root, by the protocol.
pub(crate) const ROOT: u64 = 1;
/// Context of the hash that makes numbers. A change changes all numbers.
const CONTEXT: &str = "byname mount 2026-11 inode number";
static CONTEXT_KEY: LazyLock<ContextKey> = LazyLock::new(|| hash_derive_key_context(CONTEXT));

/// The object that a number stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    name: Name,
    /// As [`Attributes::identity`] has it.
    number: Option<u64>,
}

/// One inode.
#[derive(Clone, Debug)]
pub(crate) struct Inode {
    pub(crate) name: Name,
    /// The number of the directory in which it was found.
    pub(crate) parent: u64,
    pub(crate) attributes: Arc<Attributes>,
    /// Time at which it was last known to be the current version.
    pub(crate) seen_ns: u64,
    lookups: u64,
}

/// All inodes.
#[derive(Debug)]
pub(crate) struct Inodes {
    inodes: BTreeMap<u64, Inode>,
    /// Number from which on surplus ones are looked for.
    cursor: u64,
    /// Those whose own number was taken.
    displaced: HashMap<Identity, u64>,
    hash: fn(&Name, Option<u64>, u8) -> u64,
}

impl Inodes {
    /// The root alone.
    pub(crate) fn new(root: Name, attributes: Arc<Attributes>, now_ns: u64) -> Self {
        let root = Inode { name: root, parent: ROOT, attributes, seen_ns: now_ns, lookups: 1 };
        let (inodes, displaced) = (BTreeMap::from([(ROOT, root)]), HashMap::new());
        Inodes { inodes, cursor: 0, displaced, hash: number }
    }

    /// An inode that the kernel holds.
    pub(crate) fn get(&self, number: u64) -> Option<&Inode> {
        self.inodes.get(&number)
    }

    /// Count of inodes.
    pub(crate) fn count(&self) -> usize {
        self.inodes.len()
    }

    /// Directory and name of some entries that the kernel should let go of, if it holds more inodes
    /// than `held_max`: other ones each time, in the order of their numbers, which is none.
    /// Directories are not among them.
    pub(crate) fn surplus(&mut self, held_max: usize, count: usize) -> Vec<(u64, Vec<u8>)> {
        if self.inodes.len() <= held_max {
            return Vec::new();
        }
        let mut last = None;
        let looked_at = self.inodes.range(self.cursor..).take(count);
        let found = looked_at.filter_map(|(number, inode)| {
            last = Some(*number);
            let is_entry = inode.attributes.kind != Kind::Directory;
            let name = inode.name.view().last().filter(|_| is_entry)?;
            Some((inode.parent, name.value.to_vec()))
        });
        let found = found.collect();
        self.cursor = last.and_then(|last| last.checked_add(1)).unwrap_or(0);
        found
    }

    /// The number that an object has, or would get now.
    pub(crate) fn number_of(&self, name: &Name, attributes: Option<&Attributes>) -> u64 {
        if self.inodes.get(&ROOT).is_some_and(|root| root.name == *name) {
            return ROOT;
        }
        self.place(&identity(name, attributes)).0
    }

    /// The number of an identity, and whether it is displaced.
    fn place(&self, identity: &Identity) -> (u64, bool) {
        let own = (self.hash)(&identity.name, identity.number, 0);
        let is_free_for = |number: u64| {
            number > ROOT && self.inodes.get(&number).is_none_or(|inode| inode.is(identity))
        };
        if self.displaced.is_empty() && is_free_for(own) {
            return (own, false);
        }
        if let Some(number) = self.displaced.get(identity) {
            return (*number, true);
        }
        let mut attempts = (0..=u8::MAX)
            .map(|attempt| ((self.hash)(&identity.name, identity.number, attempt), attempt > 0));
        attempts.find(|(number, _)| is_free_for(*number)).unwrap_or((0, true))
    }

    /// Counts one more reference of the kernel, and returns the number. `None` if no number is
    /// left, which takes 256 collisions.
    pub(crate) fn refer(
        &mut self,
        name: &Name,
        parent: u64,
        attributes: &Arc<Attributes>,
        seen_ns: u64,
    ) -> Option<u64> {
        let identity = identity(name, Some(attributes));
        let (number, is_displaced) = self.place(&identity);
        if number == 0 {
            return None;
        }
        let inode = self.inodes.entry(number).or_insert_with(|| Inode {
            name: name.clone(),
            parent,
            attributes: Arc::clone(attributes),
            seen_ns,
            lookups: 0,
        });
        inode.lookups += 1;
        inode.parent = parent;
        inode.renew(attributes, seen_ns);
        if is_displaced {
            self.displaced.insert(identity, number);
        }
        Some(number)
    }

    /// The inode was found to be current at this time, with these attributes.
    pub(crate) fn renew(&mut self, number: u64, attributes: Arc<Attributes>, seen_ns: u64) {
        if let Some(inode) = self.inodes.get_mut(&number) {
            inode.renew(&attributes, seen_ns);
        }
    }

    /// The kernel drops references.
    pub(crate) fn forget(&mut self, number: u64, count: u64) {
        let Some(inode) = self.inodes.get_mut(&number) else { return };
        inode.lookups = inode.lookups.saturating_sub(count);
        if inode.lookups > 0 || number == ROOT {
            return;
        }
        let identity = inode.identity();
        self.inodes.remove(&number);
        self.displaced.remove(&identity);
    }
}

impl Inode {
    /// Owner, mode and the root that was pending may change without a new version. A root that is
    /// known stays: the manifest of a directory does not say that of a large file.
    fn renew(&mut self, attributes: &Arc<Attributes>, seen_ns: u64) {
        if self.seen_ns > seen_ns {
            return;
        }
        self.seen_ns = seen_ns;
        let known = self.attributes.root.filter(|_| attributes.version == self.attributes.version);
        self.attributes = match (attributes.root, known) {
            (None, Some(_)) => Arc::new(Attributes { root: known, ..(**attributes).clone() }),
            _ => Arc::clone(attributes),
        };
    }

    fn identity(&self) -> Identity {
        identity(&self.name, Some(&self.attributes))
    }

    fn is(&self, identity: &Identity) -> bool {
        self.name == identity.name && self.attributes.identity() == identity.number
    }
}

/// The identity of a name, of which nothing more may be known.
fn identity(name: &Name, attributes: Option<&Attributes>) -> Identity {
    Identity { name: name.clone(), number: attributes.and_then(Attributes::identity) }
}

fn number(name: &Name, of_identity: Option<u64>, attempt: u8) -> u64 {
    let mut hasher = blake3::Hasher::new_from_context_key(&CONTEXT_KEY);
    hasher.update(&[attempt, u8::from(of_identity.is_some())]);
    hasher.update(&of_identity.unwrap_or(0).to_be_bytes());
    hasher.update(name.view().value());
    let hash = hasher.finalize();
    let (first, _) = hash.as_bytes().split_first_chunk().expect("a hash has 32 octets");
    u64::from_be_bytes(*first)
}

#[cfg(test)]
mod tests;
