//! Orders about copies of the catalog's rows while they are being carried out: what is to be done
//! with the directory, and whom to answer. That waits for the file system, so another thread does
//! it.

use std::collections::BTreeMap;

use byname_catalog::id::ContentId;
use byname_packet::Name;
use byname_transfer::server::Echo;

use crate::copies::{Editions, KeepOrder};
use crate::directory::DiskDirectory;
use crate::error::StoreFailure;
use crate::record::Record;

/// Orders that are being carried out, at most.
const ORDERS_MAX: usize = 256;
/// Orders to keep rows that are made durable together.
pub(crate) const KEPT_TOGETHER: usize = 64;

/// Something to be done with the copies, or a record to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyWork {
    /// Keep rows.
    Keep(Box<KeepOrder>),
    /// Say what there is.
    Look,
    /// Read a copy from a place in it.
    Read {
        /// The copy.
        edition: u64,
        /// The place.
        offset: u64,
    },
    /// Read the record of a content.
    Record(ContentId),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Copied {
    /// The copies that are there now.
    Editions(Editions),
    /// Octets of a copy.
    Octets(Vec<u8>),
    /// A record; `None` if there is no such content.
    Record(Option<Box<Record>>),
    /// It failed.
    Failed(StoreFailure),
}

impl CopyWork {
    /// Does it, and waits for the file system.
    pub(crate) fn carry_out(self, directory: &DiskDirectory) -> Copied {
        match self {
            Self::Keep(order) => match directory.keep_rows(&[*order]) {
                Ok(()) => Copied::Editions(directory.editions()),
                Err(failure) => Copied::Failed(failure),
            },
            Self::Look => Copied::Editions(directory.editions()),
            Self::Read { edition, offset } => match directory.read_copy(edition, offset) {
                Ok(octets) => Copied::Octets(octets),
                Err(failure) => Copied::Failed(failure),
            },
            Self::Record(content) => Copied::Record(directory.record(content).map(Box::new)),
        }
    }
}

/// Whom to answer.
#[derive(Default)]
pub(crate) struct Copying {
    waiting: BTreeMap<u64, (Name, Echo)>,
    next: u64,
}

impl Copying {
    /// Notes whom to answer; `None` if there are too many already.
    pub(crate) fn begin(&mut self, name: Name, echo: Echo) -> Option<u64> {
        if self.waiting.len() >= ORDERS_MAX {
            return None;
        }
        self.next += 1;
        self.waiting.insert(self.next, (name, echo));
        Some(self.next)
    }

    /// Whom to answer now that it is done.
    pub(crate) fn finish(&mut self, number: u64) -> Option<(Name, Echo)> {
        self.waiting.remove(&number)
    }
}
