//! Whose Interests fill the table, so that one face cannot keep the others out.
//!
//! A face may add an entry as long as it holds no more than is still free. So a single face gets
//! half of the table, n greedy ones together n parts of n + 1, and whoever comes next always finds
//! room. Entries are charged to the face that made them, and listed for it, so that they can end
//! with the face: else one peer that comes back under new names would fill the rest bit by bit.

use std::collections::HashMap;

use super::PitIndex;
use crate::face::FaceId;

/// Where an entry stands in its face's list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner {
    pub(super) face: FaceId,
    at: u32,
}

/// What one face holds.
#[derive(Debug, Default)]
struct Share {
    entries: Vec<PitIndex>,
    bytes: usize,
}

/// What each face holds.
#[derive(Debug, Default)]
pub(super) struct Shares {
    faces: HashMap<FaceId, Share>,
}

impl Shares {
    /// Whether `face` may have another entry of `bytes` octets, with that much free for all.
    pub(super) fn allows(
        &self,
        face: FaceId,
        bytes: usize,
        (entries_free, bytes_free): (usize, usize),
    ) -> bool {
        if entries_free == 0 || bytes > bytes_free {
            return false;
        }
        let held = self.faces.get(&face);
        held.is_none_or(|share| share.entries.len() <= entries_free && share.bytes <= bytes_free)
    }

    /// Charges an entry to `face`.
    pub(super) fn add(&mut self, face: FaceId, index: PitIndex, bytes: usize) -> Owner {
        let share = self.faces.entry(face).or_default();
        share.entries.push(index);
        share.bytes += bytes;
        Owner { face, at: (share.entries.len() - 1) as u32 }
    }

    /// Takes an entry back; the entry that stands in its place now, if one does, is returned with
    /// its new owner.
    pub(super) fn remove(&mut self, owner: Owner, bytes: usize) -> Option<(PitIndex, Owner)> {
        let share = self.faces.get_mut(&owner.face)?;
        share.entries.swap_remove(owner.at as usize);
        share.bytes -= bytes;
        let moved = share.entries.get(owner.at as usize).copied();
        if share.entries.is_empty() {
            self.faces.remove(&owner.face);
        }
        moved.map(|index| (index, owner))
    }

    /// One of the entries that `face` is charged for.
    pub(super) fn last_of(&self, face: FaceId) -> Option<PitIndex> {
        self.faces.get(&face)?.entries.last().copied()
    }
}
