//! Contents that grow: a new version that is an older one with more behind it costs what is new.
//!
//! Of the latest version of a file that was rewritten here the disk remembers the right edge of its
//! tree and the checksums of its whole units ([`Growth`]). If the next version begins with the same
//! octets, that edge and the units behind it give the root that the writer has signed; so only
//! these units are asked for and hashed. The octets before them are taken from the older version's
//! file: shared with it where the file system can do that (XFS, Btrfs), copied by the kernel where
//! it cannot. They were verified when they came, and are not read again.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use byname_catalog::Checksums;
use byname_catalog::id::ContentId;
use byname_security::tree::{Folder, Frontier, Hash, Shape, UNIT_BYTES};
use byname_transfer::attributes::Algorithm;
use byname_transfer::checksums::Summing;

/// Files of which an edge is remembered. One has 56 KiB at most, mostly 16.
const FILES_MAX: usize = 256;

/// Root and checksums of content that has come so far, in a way that can go on.
#[derive(Debug, Clone)]
pub(crate) struct Growth {
    frontier: Frontier,
    /// Of whole units.
    summing: Summing,
    /// The beginning of a unit.
    partial: Vec<u8>,
}

impl Default for Growth {
    fn default() -> Self {
        let summing = Summing::new(&[Algorithm::Adler32, Algorithm::Crc32c]);
        Self { frontier: Frontier::default(), summing, partial: Vec::new() }
    }
}

impl Growth {
    /// Octets in whole units.
    pub(crate) fn whole_bytes(&self) -> u64 {
        self.frontier.bytes()
    }

    /// What it is without the beginning of a unit.
    pub(crate) fn whole(&self) -> Self {
        let Self { frontier, summing, .. } = self;
        Self { frontier: frontier.clone(), summing: summing.clone(), partial: Vec::new() }
    }

    /// True if these octets are its last whole unit.
    pub(crate) fn ends_with(&self, unit: &[u8]) -> bool {
        unit.try_into().is_ok_and(|unit| self.frontier.ends_with(unit))
    }

    /// Takes the next octets.
    pub(crate) fn update(&mut self, mut octets: &[u8]) {
        if !self.partial.is_empty() {
            let (head, rest) = octets.split_at(octets.len().min(UNIT_BYTES - self.partial.len()));
            self.partial.extend_from_slice(head);
            octets = rest;
            if self.partial.len() < UNIT_BYTES {
                return;
            }
            let unit = std::mem::take(&mut self.partial);
            self.take_units(&unit);
        }
        let (units, rest) = octets.split_at(octets.len() / UNIT_BYTES * UNIT_BYTES);
        self.take_units(units);
        self.partial.extend_from_slice(rest);
    }

    fn take_units(&mut self, units: &[u8]) {
        self.frontier.push(units, |_, _| {});
        self.summing.update(units);
    }

    /// The root of all that it has taken; `None` if that is one unit at most.
    pub(crate) fn root(&self) -> Option<Hash> {
        let shape = Shape::new(self.frontier.bytes() + self.partial.len() as u64);
        let mut folder = Folder::resume(shape, &self.frontier, |_, _| {})?;
        if !self.partial.is_empty() {
            let mut value = Vec::new();
            shape.hash_units(self.frontier.units(), &self.partial, &mut value).ok()?;
            folder.push_values(&value, |_, _| {}).ok()?;
        }
        folder.finish().ok()
    }

    /// Checksums of all that it has taken.
    pub(crate) fn checksums(&self) -> Checksums {
        let mut summing = self.summing.clone();
        summing.update(&self.partial);
        checksums(summing)
    }
}

/// The two that receipts have.
pub(crate) fn checksums(summing: Summing) -> Checksums {
    let sums = summing.finish();
    let number = |sum: Option<[u8; 4]>| sum.map_or(0, u32::from_be_bytes);
    Checksums { adler32: number(sums.adler32), crc32c: number(sums.crc32c) }
}

/// What is remembered of files that are rewritten, the latest last.
#[derive(Debug, Default)]
pub(crate) struct Growths(Mutex<VecDeque<(ContentId, Growth)>>);

impl Growths {
    /// That of a version.
    pub(crate) fn of(&self, content: ContentId) -> Option<Growth> {
        let growths = self.lock();
        growths.iter().find(|(of, _)| *of == content).map(|(_, growth)| growth.whole())
    }

    /// Remembers a version in place of those before it.
    pub(crate) fn keep(&self, content: ContentId, growth: Growth) {
        let mut growths = self.lock();
        growths.retain(|(of, _)| of.inode != content.inode);
        if growths.len() >= FILES_MAX {
            growths.pop_front();
        }
        growths.push_back((content, growth));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(ContentId, Growth)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use byname_catalog::id::{InodeId, Version};

    use super::*;

    fn octets(count: usize) -> Vec<u8> {
        (0..count as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
    }

    fn sums(content: &[u8]) -> Checksums {
        let mut summing = Summing::new(&[Algorithm::Adler32, Algorithm::Crc32c]);
        summing.update(content);
        checksums(summing)
    }

    #[test]
    fn root_and_checksums_go_on_wherever_it_was_cut() {
        let content = octets(260 * UNIT_BYTES + 5);
        for cut in [0, 1, UNIT_BYTES - 1, UNIT_BYTES, UNIT_BYTES + 1, 256 * UNIT_BYTES] {
            let mut growth = Growth::default();
            content[..cut].chunks(5000).for_each(|piece| growth.update(piece));
            let mut longer = growth.whole();
            let from = longer.whole_bytes() as usize;
            assert_eq!(from, cut / UNIT_BYTES * UNIT_BYTES);
            for end in [cut.max(UNIT_BYTES + 3), content.len()] {
                let mut longer = longer.clone();
                longer.update(&content[from..end]);
                assert_eq!(longer.root(), Some(Hash::of(&content[..end])), "{cut} to {end}");
                assert_eq!(longer.checksums(), sums(&content[..end]), "{cut} to {end}");
            }
            longer.update(&content[from..]);
            assert_eq!(longer.root(), Some(Hash::of(&content)));
        }
    }

    #[test]
    fn what_is_remembered_is_bounded_and_of_the_latest_version() {
        let (growths, one) =
            (Growths::default(), ContentId { inode: InodeId(1), version: Version(1) });
        growths.keep(one, Growth::default());
        let two = ContentId { version: Version(2), ..one };
        growths.keep(two, Growth::default());
        assert!(growths.of(one).is_none() && growths.of(two).is_some());
        for inode in 2..2 + FILES_MAX as u64 {
            growths.keep(ContentId { inode: InodeId(inode), ..one }, Growth::default());
        }
        assert!(growths.of(two).is_none());
        assert_eq!(growths.lock().len(), FILES_MAX);
    }
}
