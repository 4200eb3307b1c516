//! Incidents of a network: cuts, crashes, and their ends.

use super::{GroupId, HostId, LinkId, ProgramId};
use crate::program::Crash;

/// Something that happens to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// A link loses everything from now on; the hosts notice at once, or not at all.
    Cut {
        /// Which.
        link: LinkId,
        /// True if the faces go down.
        is_noticed: bool,
    },
    /// A link works again.
    Restore {
        /// Which.
        link: LinkId,
    },
    /// Many links are cut at once: see [`World::add_group`].
    Part {
        /// Which.
        group: GroupId,
        /// True if the faces go down.
        is_noticed: bool,
    },
    /// They all work again.
    Heal {
        /// Which.
        group: GroupId,
    },
    /// A link is cut and restored again and again.
    Flap {
        /// Which.
        link: LinkId,
        /// For how long it is down, and then up.
        down_ns: u64,
        /// See `down_ns`.
        up_ns: u64,
        /// No cut begins later.
        until_ns: u64,
        /// True if the faces go down.
        is_noticed: bool,
    },
    /// A forwarder ends without a word.
    Crash {
        /// Whose.
        host: HostId,
    },
    /// It starts again, with its configuration and nothing else.
    Restart {
        /// Whose.
        host: HostId,
    },
    /// A program ends without a word.
    CrashProgram {
        /// Which.
        program: ProgramId,
        /// With what is lost.
        how: Crash,
    },
    /// It starts again over what it has on its disk.
    RestartProgram {
        /// Which.
        program: ProgramId,
    },
}
