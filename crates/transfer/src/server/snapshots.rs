//! Snapshots of directories: the payloads of versions that are at hand.
//!
//! The last two of a path are kept, so that running fetches finish.

use super::arrival::Now;
use super::cache::Cache;
use super::config::ServerConfig;
use super::ops::Listing;
use super::state::FileStat;

/// A directory with a payload above this is not read again for twice as long as reading it took.
const LARGE_BYTES: usize = 256 << 10;
/// A directory changed so shortly before it was read may change again within one tick of its clock.
const SETTLE_NS: u64 = 50_000_000;
/// Cost of a snapshot besides its payload.
const SNAPSHOT_BYTES: usize = 512;

/// A directory as it was found.
pub(super) struct FoundDirectory {
    pub(super) stat: FileStat,
    /// As in [`super::ops::Located::Directory`].
    pub(super) changes: Option<u64>,
}

pub(super) struct Snapshot {
    pub(super) version: u64,
    pub(super) listing: Listing,
    pub(super) segment_size: usize,
    pub(super) read: Now,
    pub(super) took_ns: u64,
}

#[derive(Default)]
pub(super) struct Pair {
    pub(super) current: Option<Snapshot>,
    pub(super) previous: Option<Snapshot>,
}

/// The snapshots of all paths.
pub(super) struct Snapshots {
    pub(super) kept: Cache<Pair>,
}

impl Snapshot {
    pub(super) fn weight(&self) -> usize {
        let levels: usize = self.listing.levels.iter().map(Vec::len).sum();
        self.listing.payload.len() + levels + SNAPSHOT_BYTES
    }

    /// True if the snapshot may stand for the directory as it was found now.
    pub(super) fn is_current(
        &self,
        found: &FoundDirectory,
        now: Now,
        config: &ServerConfig,
    ) -> bool {
        let age_ns = now.now_ns.saturating_sub(self.read.now_ns);
        let is_watched = found.changes.is_some();
        let is_large = self.listing.payload.len() > LARGE_BYTES;
        if (is_large || is_watched) && age_ns < 2 * self.took_ns {
            return true;
        }
        if let (Some(seen), Some(changes)) = (self.listing.changes, found.changes) {
            return seen == changes
                && age_ns < config.relist_watched_ns
                && self.listing.stat == found.stat;
        }
        let FileStat { mtime_ns, ctime_ns, .. } = self.listing.stat;
        let was_settled = ctime_ns.is_none_or(|ctime_ns| {
            mtime_ns.max(ctime_ns).saturating_add(SETTLE_NS) <= self.read.unix_ns
        });
        age_ns < config.relist_ns && was_settled && self.listing.stat == found.stat
    }
}

impl Snapshots {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { kept: Cache::new(bytes_max) }
    }

    pub(super) fn bytes(&self) -> usize {
        self.kept.weight()
    }

    pub(super) fn current(&self, path: &[u8]) -> Option<&Snapshot> {
        self.kept.peek(path)?.current.as_ref()
    }

    pub(super) fn version(&mut self, path: &[u8], version: u64) -> Option<&Snapshot> {
        let pair = self.kept.get(path)?;
        [&pair.current, &pair.previous].into_iter().flatten().find(|kept| kept.version == version)
    }

    pub(super) fn keep(&mut self, path: &[u8], snapshot: Snapshot) {
        let mut pair = self.kept.remove(path).unwrap_or_default();
        if pair.current.as_ref().is_some_and(|current| current.version != snapshot.version) {
            pair.previous = pair.current.take();
        }
        pair.current = Some(snapshot);
        let kept = [&pair.current, &pair.previous];
        let weight = kept.into_iter().flatten().map(Snapshot::weight).sum();
        self.kept.insert(path.to_vec(), pair, weight);
    }
}
