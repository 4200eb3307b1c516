//! Of what a scenario is made: hosts, links, sites, readers, and what troubles them.

use byname_transfer::congestion::Congestion;

use crate::line::Faults;
use crate::programs::DiskFaults;
use crate::world::LinkConfig;

/// Topology of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// So many in a row.
    Chain(usize),
    /// So many in a ring.
    Ring(usize),
    /// Each but the leaves has so many below it, so many levels down.
    Tree(usize, u32),
    /// So many on each side of one link.
    Dumbbell(usize, usize),
    /// So many around one.
    Star(usize),
    /// So many, each joined to one before it, and so many joined besides.
    Mesh(usize, usize),
}

/// A link of the scenario.
#[derive(Clone, Copy, Debug)]
pub struct LinkPlan {
    /// Numbers of its hosts.
    pub ends: (usize, usize),
    /// Kind.
    pub config: LinkConfig,
    /// Lost frames are sent again by the link itself.
    pub is_reliable: bool,
}

/// One state of a file.
#[derive(Clone, Copy, Debug)]
pub struct VersionPlan {
    /// When it is put in place; the first is there from the start.
    pub at_ns: u64,
    /// Seed of its octets.
    pub seed: u64,
    /// Octets.
    pub size: u64,
}

/// A directory of files that stay as they are.
#[derive(Clone, Debug)]
pub struct TreePlan {
    /// Paths, what the octets are made from, and how many there are.
    pub files: Vec<(String, u64, u64)>,
}

/// A prefix with one file, on one host or several.
#[derive(Clone, Debug)]
pub struct SitePlan {
    /// Where it is published, and how much later than planned each holder gets a new version.
    pub holders: Vec<(usize, u64)>,
    /// The states of its file, in the order of time.
    pub versions: Vec<VersionPlan>,
    /// Further content.
    pub tree: Option<TreePlan>,
    /// Records and trees are in a directory of the real disk, as in production.
    pub has_state_directory: bool,
}

/// A reader.
#[derive(Clone, Copy, Debug)]
pub struct ReaderPlan {
    /// Where.
    pub host: usize,
    /// Of which site's file.
    pub site: usize,
    /// When it begins.
    pub start_ns: u64,
    /// Its congestion control.
    pub congestion: Congestion,
    /// Number of times it reads the file while there is trouble.
    pub times: u32,
}

/// A client: the production download, over a directory that is there after it crashes.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// Where.
    pub host: usize,
    /// Of which site's file.
    pub site: usize,
    /// When it begins.
    pub start_ns: u64,
    /// From when to when it is gone, and whether the power failed.
    pub crashes: Vec<(u64, u64, bool)>,
    /// Faults of its disk until the storm is over.
    pub disk: DiskFaults,
    /// True if what is in place must survive a power cut.
    pub sync: bool,
    /// It fetches the site's tree and not its file.
    pub is_tree: bool,
}

/// Something bad, for a time.
#[derive(Clone, Copy, Debug)]
pub enum Trouble {
    /// Frames of a link are harmed.
    Faults(usize, Faults),
    /// A link is cut; the hosts notice or not.
    Cut(usize, bool),
    /// A forwarder is down.
    Crash(usize),
    /// The first holder of a site has the first state of its file again, and its records are gone:
    /// somebody has brought back an old backup.
    Backup(usize),
    /// A link is cut and restored again and again; the hosts notice or not.
    Flap {
        /// Which.
        link: usize,
        /// For how long it is down, and then up.
        down_ns: u64,
        /// See `down_ns`.
        up_ns: u64,
        /// True if the faces go down.
        is_noticed: bool,
    },
    /// All links are cut between the hosts with a one here and those with a zero.
    Partition {
        /// One bit a host.
        hosts: u64,
        /// True if the faces go down.
        is_noticed: bool,
    },
    /// The server of the first holder of a site is killed, and starts again over what is on disk.
    Kill(usize),
}

impl Trouble {
    pub(super) fn spare_content(&mut self) {
        if let Trouble::Faults(_, faults) = self {
            faults.corruption = 0.0;
        }
    }
}

/// A trouble and its time.
#[derive(Clone, Copy, Debug)]
pub struct TroublePlan {
    /// From here.
    pub from_ns: u64,
    /// To here; never after the storm.
    pub until_ns: u64,
    /// The fact.
    pub trouble: Trouble,
}
