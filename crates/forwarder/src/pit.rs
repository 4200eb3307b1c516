//! The pending Interest table: who waits for what, and whom it was asked of.
//!
//! Entries live in a slab and are found through one hash table keyed by the hash of the name;
//! Interests for one name that differ in CanBePrefix, MustBeFresh, forwarding hint or in whether
//! caches may answer have entries of their own. For an arriving Data every prefix of its name may
//! have a CanBePrefix entry, so the table counts those per number of components and probes only
//! lengths that occur. In the same way a digest is only computed when an entry asks for one below
//! just this name. Expiry is in a timer wheel; entries, their packets and their records are reused
//! in place: nothing is allocated for an Interest of common size and nothing is sorted.
//!
//! Each entry keeps one copy of the Interest as forwarded, from which Nacks and second tries are
//! made. Bounds: number of entries and octets of those copies. What each face may have of them is
//! up to `shares`. A face that has its share gets room for a new Interest only by giving up its own
//! oldest one, and that only after [`PATIENCE_NS`]: what is answered in time is not disturbed
//! (giving up the oldest at once would be the end of a consumer whose answers take longer than its
//! share lasts: each would come just too late), and what nobody answers does not block the face for
//! a lifetime that a peer may have chosen very long.
//!
//! All entries of a name have one hash, so there are [`HINTS_PER_NAME_MAX`] with hints at most: the
//! next one takes the place of the oldest of the face that has most of them.

mod entry;
mod shares;
mod table;

pub(crate) use entry::{Measured, PitEntry, PitIndex, Request, Selectors};
pub(crate) use table::{Arrived, Pit, Shed};

/// Entries of one name that have a hint. Those of a name are found one after the other, and whoever
/// asks chooses the hint.
pub(crate) const HINTS_PER_NAME_MAX: usize = 32;
/// Longer lifetimes are cut: an entry must end some day.
pub(crate) const LIFETIME_MAX_MS: u64 = 600_000;
