//! Whose Interests fill the table, so that one face cannot keep the others out.
//!
//! A face may add an entry as long as it holds no more than is still free. So a single face gets
//! half of the table, n greedy ones together n parts of n + 1, and whoever comes next always finds
//! room. Entries are charged to the face that made them and linked in the order in which it did, so
//! that they can end with the face (else one peer that comes back under new names would fill the
//! rest bit by bit), and the oldest one can make room.

use hashbrown::HashTable;

use super::entry::PitIndex;
use crate::face::FaceId;
use crate::hash;
use crate::slab::Slab;

const NONE: u32 = u32::MAX;

/// An entry among those of its face.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// [`NONE`] while the entry is charged to nobody.
    share: u32,
    older: PitIndex,
    newer: PitIndex,
}

const UNLINKED: Link = Link { share: NONE, older: NONE, newer: NONE };

/// Entries of one face.
#[derive(Debug)]
struct Share {
    entries: usize,
    bytes: usize,
    oldest: PitIndex,
    newest: PitIndex,
}

impl Default for Share {
    fn default() -> Self {
        Self { entries: 0, bytes: 0, oldest: NONE, newest: NONE }
    }
}

/// Entries of each face.
#[derive(Debug, Default)]
pub(super) struct Shares {
    shares: Slab<Share>,
    by_face: HashTable<(FaceId, u32)>,
    links: Vec<Link>,
}

impl Shares {
    /// Returns whether `face` may have another entry of `bytes` octets, with that much free for
    /// all.
    pub(super) fn allows(
        &self,
        face: FaceId,
        bytes: usize,
        (entries_free, bytes_free): (usize, usize),
    ) -> bool {
        if entries_free == 0 || bytes > bytes_free {
            return false;
        }
        let held = self.of(face).and_then(|share| self.shares.get(share));
        held.is_none_or(|share| share.entries <= entries_free && share.bytes <= bytes_free)
    }

    fn of(&self, face: FaceId) -> Option<u32> {
        let found = self.by_face.find(hash::of_number(face.0), |(known, _)| *known == face);
        found.map(|(_, share)| *share)
    }

    /// Charges an entry to `face`.
    pub(super) fn add(&mut self, face: FaceId, index: PitIndex, bytes: usize) {
        let at = self.of(face).unwrap_or_else(|| self.open(face));
        if self.links.len() <= index as usize {
            self.links.resize(index as usize + 1, UNLINKED);
        }
        let Some(share) = self.shares.get_mut(at) else { return };
        share.entries += 1;
        share.bytes += bytes;
        let older = std::mem::replace(&mut share.newest, index);
        self.links[index as usize] = Link { share: at, older, newer: NONE };
        match self.links.get_mut(older as usize) {
            Some(link) => link.newer = index,
            None => share.oldest = index,
        }
    }

    fn open(&mut self, face: FaceId) -> u32 {
        let at = self.shares.take();
        if let Some(share) = self.shares.get_mut(at) {
            *share = Share::default();
        }
        let hash = |(face, _): &(FaceId, u32)| hash::of_number(face.0);
        self.by_face.insert_unique(hash::of_number(face.0), (face, at), hash);
        at
    }

    /// Charges an entry to nobody any more.
    pub(super) fn remove(&mut self, index: PitIndex, bytes: usize) {
        let Some(link) = self.links.get_mut(index as usize) else { return };
        let Link { share: at, older, newer } = std::mem::replace(link, UNLINKED);
        let Some(share) = self.shares.get_mut(at) else { return };
        share.entries -= 1;
        share.bytes -= bytes;
        match self.links.get_mut(older as usize) {
            Some(link) => link.newer = newer,
            None => share.oldest = newer,
        }
        match self.links.get_mut(newer as usize) {
            Some(link) => link.older = older,
            None => share.newest = older,
        }
    }

    /// The entry that `face` has been charged for longest.
    pub(super) fn oldest_of(&self, face: FaceId) -> Option<PitIndex> {
        let share = self.shares.get(self.of(face)?)?;
        (share.oldest != NONE).then_some(share.oldest)
    }

    /// Forgets a face that holds nothing any more.
    pub(super) fn close(&mut self, face: FaceId) {
        let found = self.by_face.find_entry(hash::of_number(face.0), |(known, _)| *known == face);
        if let Ok(found) = found {
            let ((_, at), _) = found.remove();
            self.shares.give_back(at);
        }
    }

    /// Number of entries a face is charged for.
    #[cfg(test)]
    fn held_by(&self, face: FaceId) -> usize {
        self.of(face).and_then(|at| self.shares.get(at)).map_or(0, |share| share.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_listed_by_age_whatever_is_taken_out() {
        let mut shares = Shares::default();
        let (one, other) = (FaceId(256), FaceId(257));
        for index in 0..6 {
            shares.add(if index == 3 { other } else { one }, index, 10);
        }
        assert_eq!((shares.held_by(one), shares.held_by(other)), (5, 1));
        for (taken, oldest) in [(2, Some(0)), (0, Some(1)), (5, Some(1)), (1, Some(4)), (4, None)] {
            shares.remove(taken, 10);
            assert_eq!(shares.oldest_of(one), oldest);
        }
        assert_eq!(shares.oldest_of(other), Some(3));
        shares.close(one);
        assert_eq!(shares.by_face.len(), 1, "nothing is remembered of who is gone");
        assert_eq!((shares.of(one), shares.held_by(other)), (None, 1));
        shares.add(one, 0, 10);
        assert_eq!(shares.oldest_of(one), Some(0));
    }

    #[test]
    fn nobody_may_hold_more_than_is_free() {
        let mut shares = Shares::default();
        let face = FaceId(256);
        assert!(shares.allows(face, 10, (1, 10)));
        assert!(!shares.allows(face, 10, (0, 10)));
        assert!(!shares.allows(face, 10, (1, 9)));
        shares.add(face, 0, 20);
        shares.add(face, 1, 20);
        assert!(shares.allows(face, 10, (2, 40)));
        assert!(!shares.allows(face, 10, (1, 40)));
        assert!(!shares.allows(face, 10, (2, 39)));
        shares.remove(0, 20);
        assert!(shares.allows(face, 10, (1, 20)));
        assert!(!shares.allows(face, 10, (1, 19)));
    }
}
