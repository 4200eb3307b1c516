//! Use of a network of names: catalogues of files, and who asks for what when.
//!
//! A workload is a list of [`Request`]s, made from a seed before the world begins; a [`Consumer`]
//! carries out its list and keeps a [`Record`] of each. The makers ([`make`]) know kinds of
//! work: whole files, many small ones, sparse vector reads, popularity after Zipf, a crowd. The
//! [`Scene`] puts a catalogue, its publisher and consumers on a topology and says afterwards what
//! crossed which link.
//!
//! Invariants: requests begin in the order of their start; at most `parallel_max` are in flight at
//! a consumer; every octet that a consumer is handed is compared with what was published.

mod account;
mod consumer;
pub mod ideal;
pub mod make;
mod routing;
mod scene;

use std::ops::Range;

use byname_packet::Name;
use byname_transfer::error::ReadError;

use crate::disk::Disk;

pub use account::{Account, LinkBytes, tree_links};
pub use consumer::Consumer;
pub use routing::{hop_counts, shortest_path};
pub use scene::{Scene, plain_link};

/// A file that somebody publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its name.
    pub name: Name,
    /// Where it lies on the publisher's disk.
    pub path: String,
    /// Seed of its octets.
    pub seed: u64,
    /// Octets.
    pub size: u64,
}

/// Files under one prefix.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// Where they are published.
    pub prefix: Name,
    /// The most popular first, where it matters.
    pub files: Vec<Published>,
}

impl Catalogue {
    /// Files of the given sizes: `/prefix/f0`, `/prefix/f1` and so on.
    pub fn new(prefix: &Name, sizes: impl IntoIterator<Item = u64>) -> Self {
        let file = |(number, size)| {
            let path = format!("f{number}");
            let name = prefix.with_generic(path.as_bytes());
            Published { name, path, seed: 0x5EED + number as u64, size }
        };
        let files = sizes.into_iter().enumerate().map(file).collect();
        Catalogue { prefix: prefix.clone(), files }
    }

    /// Octets of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// A disk with all of it, written at one time.
    pub fn disk(&self, unix_ns: u64) -> Disk {
        let mut disk = Disk::default();
        for file in &self.files {
            disk.put(&file.path, file.seed, file.size, unix_ns);
        }
        disk
    }
}

/// Parts of a file that are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// Vectors of ranges: the ranges of one are asked for at once, the next when all have come.
    Vectors(Vec<Vec<Range<u64>>>),
}

/// Something to read, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it is wanted, monotonic. A consumer that is busy begins later.
    pub start_ns: u64,
    /// Of which file.
    pub file: Published,
    /// Parts of it.
    pub part: Part,
}

/// The outcome of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// When it was begun.
    pub begun_ns: Option<u64>,
    /// When the first octets were handed out.
    pub first_ns: Option<u64>,
    /// When it ended, well or not.
    pub ended_ns: Option<u64>,
    /// Octets handed out; whole units count although less was wanted.
    pub bytes: u64,
    /// Why it failed, if it did.
    pub error: Option<ReadError>,
}

impl Record {
    /// True if everything came.
    pub fn is_complete(&self) -> bool {
        self.ended_ns.is_some() && self.error.is_none()
    }

    /// From the first Interest to the last octet.
    pub fn took_ns(&self) -> Option<u64> {
        Some(self.ended_ns? - self.begun_ns?)
    }
}
