//! Changes of routes that have not reached the FIB yet.

use std::collections::VecDeque;

use byname_packet::Name;

use crate::face::FaceId;

/// Subtrees that wait; more are taken together into one, the whole table.
const SUBTREES_MAX: usize = 64;

/// Work that is left.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// Faces that are gone and still have routes.
    pub(crate) faces: VecDeque<FaceId>,
    pub(crate) subtrees: VecDeque<Subtree>,
}

/// FIB entries to be computed anew: those below `prefix`, from `next` on.
#[derive(Debug)]
pub(crate) struct Subtree {
    pub(crate) prefix: Name,
    pub(crate) next: Name,
}

impl Backlog {
    pub(crate) fn is_empty(&self) -> bool {
        self.faces.is_empty() && self.subtrees.is_empty()
    }

    pub(crate) fn push(&mut self, subtree: Subtree) {
        let covers = |known: &Subtree| {
            known.prefix.view().is_prefix_of(subtree.prefix.view()) && known.next <= subtree.next
        };
        if self.subtrees.iter().any(covers) {
            return;
        }
        if self.subtrees.len() >= SUBTREES_MAX {
            self.subtrees.clear();
            self.subtrees.push_back(Subtree { prefix: Name::new(), next: Name::new() });
            return;
        }
        self.subtrees.push_back(subtree);
    }
}
