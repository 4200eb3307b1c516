//! Measurements of the paths to parts of the name space: round-trip times and time-outs.
//!
//! One [`Namespace`] for each route prefix, or object, under which a strategy measures, found by
//! the hash of the prefix (two prefixes of one hash would share what is known, which does no harm).
//! Bounded by number; one that is not used for [`LIFETIME_NS`] is forgotten. When the table is full
//! strategies go on without measurements.

use hashbrown::HashTable;
use smallvec::SmallVec;

use super::liveness::Liveness;
use crate::face::FaceId;
use crate::slab::Slab;
use crate::wheel::Wheel;

/// Parts of the name space that are measured.
pub const NAMESPACES_MAX: usize = 16_384;

/// Of them, single objects: routes, which are fewer and serve for longer, always find room.
pub(crate) const OBJECTS_MAX: usize = NAMESPACES_MAX / 4 * 3;

/// Paths remembered for one of them; the one not used for longest makes room.
const PATHS_MAX: usize = 16;

/// For how long something unused is remembered (NFD: measurements-lifetime).
const LIFETIME_NS: u64 = 300_000_000_000;

/// The shortest time-out: timers are no finer than a millisecond.
const TIMEOUT_MIN_NS: u64 = 3_000_000;

/// The longest, and the first one of a path never measured.
const TIMEOUT_MAX_NS: u64 = 1_000_000_000;
const TIMEOUT_FIRST_NS: u64 = 250_000_000;

/// Measurements of one path.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    face: FaceId,
    used_ns: u64,
    /// The smoothed round-trip time; `None` before the first answer.
    pub srtt_ns: Option<u64>,
    rttvar_ns: u64,
    /// Time-outs since the last answer.
    pub timeouts: u32,
    /// The evidence that nobody is there any more.
    pub liveness: Liveness,
}

impl Path {
    fn new(face: FaceId, now_ns: u64) -> Self {
        let (srtt_ns, rttvar_ns, timeouts) = (None, 0, 0);
        let liveness = Liveness::default();
        Self { face, used_ns: now_ns, srtt_ns, rttvar_ns, timeouts, liveness }
    }

    /// An answer has come. (Smoothing: RFC 6298.)
    pub fn on_answer(&mut self, rtt_ns: u64) {
        self.timeouts = 0;
        self.liveness.on_answer();
        match self.srtt_ns {
            None => {
                self.srtt_ns = Some(rtt_ns);
                self.rttvar_ns = rtt_ns / 2;
            }
            Some(srtt_ns) => {
                self.rttvar_ns = (3 * self.rttvar_ns + srtt_ns.abs_diff(rtt_ns)) / 4;
                self.srtt_ns = Some((7 * srtt_ns + rtt_ns) / 8);
            }
        }
    }

    /// An answer is overdue.
    pub fn on_timeout(&mut self) {
        self.timeouts = self.timeouts.saturating_add(1);
    }

    /// Time at which an answer is overdue.
    pub fn timeout_ns(&self) -> u64 {
        self.srtt_ns.map_or(TIMEOUT_FIRST_NS, |srtt_ns| {
            (srtt_ns + 4 * self.rttvar_ns).clamp(TIMEOUT_MIN_NS, TIMEOUT_MAX_NS)
        })
    }
}

/// Measurements of one part of the name space.
#[derive(Debug, Default)]
pub struct Namespace {
    /// Time at which the next probe is due; `None` before the first Interest.
    pub probe_due_ns: Option<u64>,
    /// The face that answered last, as far as a strategy notes it.
    pub last_working: Option<FaceId>,
    paths: SmallVec<[Path; 2]>,
    hash: u64,
    used_ns: u64,
}

impl Namespace {
    /// Measurements of the path over `face`.
    pub fn path(&self, face: FaceId) -> Option<&Path> {
        self.paths.iter().find(|path| path.face == face)
    }

    /// The same, to note something; it is used now.
    pub fn path_mut(&mut self, face: FaceId, now_ns: u64) -> &mut Path {
        let known = self.paths.iter().position(|path| path.face == face);
        let at = known.unwrap_or_else(|| {
            let path = Path::new(face, now_ns);
            if self.paths.len() < PATHS_MAX {
                self.paths.push(path);
                return self.paths.len() - 1;
            }
            let used = |at: &usize| self.paths[*at].used_ns;
            let oldest = (0..PATHS_MAX).min_by_key(used).unwrap_or(0);
            self.paths[oldest] = path;
            oldest
        });
        self.paths[at].used_ns = now_ns;
        &mut self.paths[at]
    }

    /// Returns whether the path over `face` is to be used only if there is no other.
    pub fn is_suspended(&self, face: FaceId) -> bool {
        self.path(face).is_some_and(|path| path.liveness.is_suspended())
    }

    /// Data below the prefix has come over `face`, for an Interest that is no longer pending.
    pub(crate) fn on_late_answer(&mut self, face: FaceId) {
        if let Some(path) = self.paths.iter_mut().find(|path| path.face == face) {
            path.liveness.on_answer();
        }
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct Measurements {
    namespaces: Slab<Namespace>,
    by_hash: HashTable<(u64, u32)>,
    lifetimes: Wheel,
}

impl Measurements {
    pub(crate) fn new() -> Self {
        Self { namespaces: Slab::default(), by_hash: HashTable::new(), lifetimes: Wheel::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_hash.len()
    }

    /// Returns whether an object of this hash has a place or may get one.
    pub(crate) fn has_room_for_object(&self, hash: u64) -> bool {
        self.by_hash.len() < OBJECTS_MAX
            || self.by_hash.find(hash, |(found, _)| *found == hash).is_some()
    }

    /// Measurements at the prefix of this hash; `None` when it is new and the table is full.
    pub(crate) fn at(&mut self, hash: u64, now_ns: u64) -> Option<&mut Namespace> {
        let known = self.by_hash.find(hash, |(found, _)| *found == hash).map(|(_, index)| *index);
        let index = match known {
            Some(index) => index,
            None => self.add(hash, now_ns)?,
        };
        let namespace = self.namespaces.get_mut(index)?;
        namespace.used_ns = now_ns;
        Some(namespace)
    }

    /// Measurements at the prefix of this hash, if there are any.
    pub(crate) fn known(&mut self, hash: u64) -> Option<&mut Namespace> {
        let (_, index) = *self.by_hash.find(hash, |(found, _)| *found == hash)?;
        self.namespaces.get_mut(index)
    }

    fn add(&mut self, hash: u64, now_ns: u64) -> Option<u32> {
        if self.by_hash.len() >= NAMESPACES_MAX {
            return None;
        }
        let index = self.namespaces.take();
        *self.namespaces.get_mut(index)? = Namespace { hash, ..Namespace::default() };
        self.by_hash.insert_unique(hash, (hash, index), |(hash, _)| *hash);
        self.lifetimes.set(index, now_ns + LIFETIME_NS);
        Some(index)
    }

    /// Forgets what was not used for long.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        while let Some(index) = self.lifetimes.pop_due(now_ns) {
            let Some(namespace) = self.namespaces.get_mut(index) else { continue };
            let due_ns = namespace.used_ns + LIFETIME_NS;
            if due_ns > now_ns {
                self.lifetimes.set(index, due_ns);
                continue;
            }
            let hash = namespace.hash;
            *namespace = Namespace::default();
            if let Ok(found) = self.by_hash.find_entry(hash, |(_, at)| *at == index) {
                found.remove();
            }
            self.namespaces.give_back(index);
        }
    }

    /// Time at which [`Measurements::expire`] has something to do next.
    pub(crate) fn next_expiry_ns(&self) -> Option<u64> {
        self.lifetimes.next_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_bounded_and_forgets_what_is_not_used() {
        let mut table = Measurements::new();
        for hash in 0..NAMESPACES_MAX as u64 {
            assert!(table.at(hash, 0).is_some());
        }
        assert!(table.at(u64::MAX, 0).is_none(), "full");
        table.at(7, LIFETIME_NS).unwrap().path_mut(FaceId(256), 0).on_answer(5);
        table.expire(LIFETIME_NS + 2_000_000);
        assert!(table.at(u64::MAX, LIFETIME_NS + 2_000_000).is_some());
        let known = table.at(7, LIFETIME_NS + 2_000_000).unwrap();
        assert_eq!(known.path(FaceId(256)).and_then(|path| path.srtt_ns), Some(5));
        table.expire(4 * LIFETIME_NS);
        assert_eq!((table.by_hash.len(), table.next_expiry_ns()), (0, None));
    }

    #[test]
    fn a_namespace_remembers_the_paths_used_last() {
        let mut namespace = Namespace::default();
        for number in 0..100 {
            namespace.path_mut(FaceId(256), number).on_answer(1);
            namespace.path_mut(FaceId(300 + number), number).on_timeout();
        }
        assert_eq!(namespace.paths.len(), PATHS_MAX);
        assert!(namespace.path(FaceId(256)).is_some() && namespace.path(FaceId(399)).is_some());
        assert!(namespace.path(FaceId(300)).is_none());
    }

    #[test]
    fn the_time_out_follows_the_round_trips() {
        let mut namespace = Namespace::default();
        let path = namespace.path_mut(FaceId(256), 0);
        assert_eq!(path.timeout_ns(), TIMEOUT_FIRST_NS);
        (0..40).for_each(|_| path.on_answer(20_000_000));
        assert!(path.timeout_ns() < 40_000_000, "two round trips");
        path.on_timeout();
        assert_eq!(path.timeouts, 1);
        path.on_answer(2_000_000_000);
        assert_eq!((path.timeouts, path.timeout_ns()), (0, TIMEOUT_MAX_NS));
    }
}
