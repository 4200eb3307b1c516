//! Pulling one content from its writer into a disk.
//!
//! The client everyone reads with brings it: each unit is verified by the root that the writer has
//! signed before it is written, and the checksums are computed on the way. [`pull`] blocks until it
//! is stored or has failed; [`Receiving`] is that without the network.

use byname_catalog::Checksums;
use byname_catalog::id::ContentId;
use byname_client::{Client, ClientError};
use byname_packet::Name;
use byname_security::key::KeyId;
use byname_security::tree::Hash;
use byname_transfer::attributes::Algorithm;
use byname_transfer::checksums::Summing;
use byname_transfer::error::ReadError;
use byname_transfer::naming::last_segment;
use byname_transfer::reader::{ObjectPlan, Proof};

use crate::directory::DiskDirectory;
use crate::error::StoreFailure;
use crate::incoming::{Incoming, Step};
use crate::record::Record;

/// A content to pull.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pull {
    /// The content.
    pub content: ContentId,
    /// Its versioned name.
    pub name: Name,
    /// Octets, as claimed.
    pub size: u64,
    /// Root of its hash tree, as claimed.
    pub root: [u8; 32],
    /// Octets in every segment but the last.
    pub segment_size: u64,
    /// Leads to the writer.
    pub hint: Name,
    /// The writer's key: whose turn it is.
    pub writer: KeyId,
    /// The ticket, to be kept.
    pub ticket: Vec<u8>,
    /// The claim, to be kept.
    pub claim: Vec<u8>,
    /// An older version that is stored here: what did not change is taken from it.
    pub older: Option<ContentId>,
}

/// A content that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Octets.
    pub size: u64,
    /// Root of its hash tree.
    pub root: [u8; 32],
    /// Checksums of the whole.
    pub checksums: Checksums,
}

impl Pull {
    /// What a reader needs to fetch it.
    pub fn plan(&self) -> ObjectPlan {
        let (size, segment_bytes) = (self.size, self.segment_size);
        ObjectPlan {
            name: self.name.clone(),
            size: Some(size),
            segment_bytes: Some(segment_bytes),
            last_segment: Some(last_segment(size, segment_bytes)),
            proof: Proof::Root { root: Hash(self.root), size, segment_bytes },
            hints: vec![self.hint.clone()],
        }
    }
}

/// Who is told how a pull goes.
pub trait Watch {
    /// So many octets are verified and written.
    fn on_bytes(&mut self, bytes: u64);
    /// A step towards stable storage was taken.
    fn on_step(&mut self, _step: Step) {}
    /// Something that waits for the file system begins, or has ended.
    fn on_waiting(&mut self, _is_begin: bool) {}
}

/// Brings the content and stores it.
///
/// # Errors
/// [`StoreFailure`]; nothing of it is left then.
pub fn pull(
    pull: &Pull,
    directory: &DiskDirectory,
    client: &mut Client,
    watch: &mut dyn Watch,
) -> Result<Kept, StoreFailure> {
    let mut receiving = waiting(watch, |_| Receiving::begin(pull, directory))?;
    let mut sink = |_, octets: &[u8]| {
        waiting(watch, |_| receiving.write(octets))?;
        watch.on_bytes(octets.len() as u64);
        Ok(())
    };
    let older = pull.older.and_then(|older| directory.object(older));
    match client.fetch(pull.plan(), older, &mut sink) {
        Ok(_) => waiting(watch, |watch| receiving.finish(pull, &mut |step| watch.on_step(step))),
        Err(error) => Err(receiving.give_up(failure_of(&error))),
    }
}

/// Does something that waits for the file system.
fn waiting<T>(watch: &mut dyn Watch, work: impl FnOnce(&mut dyn Watch) -> T) -> T {
    watch.on_waiting(true);
    let done = work(watch);
    watch.on_waiting(false);
    done
}

/// A content that comes in, octet by octet.
pub struct Receiving {
    incoming: Incoming,
    summing: Summing,
    bytes: u64,
}

impl Receiving {
    /// Begins to take a content.
    ///
    /// # Errors
    /// [`StoreFailure`]; the room is asked for now.
    pub fn begin(pull: &Pull, directory: &DiskDirectory) -> Result<Self, StoreFailure> {
        // An empty content has nothing that a reader would ask for.
        if pull.size == 0 && Hash::of(&[]) != Hash(pull.root) {
            return Err(StoreFailure::Mismatch);
        }
        let incoming = directory.begin(pull.content, pull.size)?;
        let summing = Summing::new(&[Algorithm::Adler32, Algorithm::Crc32c]);
        Ok(Self { incoming, summing, bytes: 0 })
    }

    /// Takes the next octets, which are verified.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&mut self, octets: &[u8]) -> std::io::Result<()> {
        self.incoming.write(octets)?;
        self.summing.update(octets);
        self.bytes += octets.len() as u64;
        Ok(())
    }

    /// All of it has come: makes a replica of it, which is stored when this returns.
    ///
    /// # Errors
    /// [`StoreFailure`]; nothing of it is left then.
    pub fn finish(self, pull: &Pull, on_step: &mut dyn FnMut(Step)) -> Result<Kept, StoreFailure> {
        let Self { incoming, summing, bytes } = self;
        if bytes != pull.size {
            return Err(incoming.give_up(StoreFailure::Mismatch));
        }
        let sums = summing.finish();
        let number = |sum: Option<[u8; 4]>| sum.map_or(0, u32::from_be_bytes);
        let checksums = Checksums { adler32: number(sums.adler32), crc32c: number(sums.crc32c) };
        let record = Record {
            size: pull.size,
            root: pull.root,
            checksums,
            is_settled: false,
            ticket: pull.ticket.clone(),
            claim: pull.claim.clone(),
        };
        incoming.keep(&record, on_step)?;
        Ok(Kept { size: pull.size, root: pull.root, checksums })
    }

    /// Removes what has come.
    pub fn give_up(self, why: StoreFailure) -> StoreFailure {
        self.incoming.give_up(why)
    }
}

fn failure_of(error: &ClientError) -> StoreFailure {
    tracing::debug!(%error, "pull failed");
    match error {
        ClientError::Output(error) => StoreFailure::of(error),
        ClientError::Interrupted => StoreFailure::Stopped,
        ClientError::Read(error) => failure_of_read(error),
        _ => StoreFailure::Unreachable,
    }
}

/// Why content could not be stored that could not be read.
pub fn failure_of_read(error: &ReadError) -> StoreFailure {
    match error {
        ReadError::BadUnit { .. } | ReadError::BadNode { .. } | ReadError::Protocol { .. } => {
            StoreFailure::Mismatch
        }
        _ => StoreFailure::Unreachable,
    }
}
