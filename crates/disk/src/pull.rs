//! Pulling one content from its writer into a disk.
//!
//! A content that is an older version with more behind it is made from that (`growth`).
//!
//! The client everyone reads with brings it: each unit is verified by the root that the writer has
//! signed before it is written, and the checksums are computed on the way. [`pull`] blocks until it
//! is stored or has failed; [`Receiving`] is that without the network.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;

use byname_catalog::Checksums;
use byname_catalog::id::ContentId;
use byname_client::{Client, ClientError, Extent};
use byname_packet::Name;
use byname_security::key::KeyId;
use byname_security::tree::{Hash, NodeId, UNIT_BYTES};
use byname_transfer::attributes::Algorithm;
use byname_transfer::checksums::Summing;
use byname_transfer::error::ReadError;
use byname_transfer::naming::last_segment;
use byname_transfer::reader::{ObjectPlan, Proof};

use crate::directory::DiskDirectory;
use crate::error::StoreFailure;
use crate::growth::{self, Growth, Growths};
use crate::incoming::{Incoming, OnBytes, Step};
use crate::record::Record;

/// Less than that is pulled as a whole.
const GROWN_BYTES_MIN: u64 = 64 << 10;

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
    /// What was written is of no use: all of it is brought anew.
    fn on_again(&mut self);
    /// A verified node of the content's tree came.
    fn on_node(&mut self, _node: NodeId, _values: &[u8]) {}
    /// A step towards stable storage was taken.
    fn on_step(&mut self, _step: Step) {}
    /// True if it is to end.
    fn is_stopped(&self) -> bool {
        false
    }
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
    let receiving = waiting(watch, |_| Receiving::begin(pull, directory))?;
    match receive(pull, receiving, directory, client, watch) {
        Err(Unkept::NotGrown) => watch.on_again(),
        outcome => return outcome.map_err(StoreFailure::from),
    }
    let receiving = waiting(watch, |_| Receiving::begin_whole(pull, directory))?;
    Ok(receive(pull, receiving, directory, client, watch)?)
}

fn receive(
    pull: &Pull,
    mut receiving: Receiving,
    directory: &DiskDirectory,
    client: &mut Client,
    watch: &mut dyn Watch,
) -> Result<Kept, Unkept> {
    let extent = match receiving.range(pull) {
        Some(range) => Extent::Range(range),
        None => {
            let older = pull.older.and_then(|older| directory.object(older));
            Extent::Whole { older }
        }
    };
    let told = RefCell::new(watch);
    let mut nodes = |node, values: &[u8]| told.borrow_mut().on_node(node, values);
    let mut sink = |_, octets: &[u8]| {
        waiting(&mut **told.borrow_mut(), |watch| {
            receiving.write(octets, &mut |bytes| {
                watch.on_bytes(bytes);
                match watch.is_stopped() {
                    true => Err(ErrorKind::Interrupted.into()),
                    false => Ok(()),
                }
            })
        })
    };
    let fetched = client.fetch(pull.plan(), extent, (&mut sink, &mut nodes));
    let watch = told.into_inner();
    match fetched {
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

/// Reason for which what has come is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unkept {
    /// It does not begin as the older version does that it was to be made from.
    NotGrown,
    /// It failed.
    Failed(StoreFailure),
}

impl From<Unkept> for StoreFailure {
    fn from(unkept: Unkept) -> Self {
        match unkept {
            // Whoever takes a content as a whole is not told so.
            Unkept::NotGrown => StoreFailure::Mismatch,
            Unkept::Failed(failure) => failure,
        }
    }
}

/// A content that comes in, octet by octet.
pub struct Receiving {
    incoming: Incoming,
    sums: Sums,
    bytes: u64,
    beginning: Option<Beginning>,
    growths: Arc<Growths>,
}

/// Checksums on the way; with the edge of the tree if the file may go on growing.
enum Sums {
    Of(Summing),
    Growing(Box<Growth>),
}

/// An older version that is the beginning of what comes, as it seems.
struct Beginning {
    older: ContentId,
    /// Octets in its whole units.
    bytes: u64,
    /// The last of these units, as far as it has come: it has to be the same.
    unit: Vec<u8>,
    is_other: bool,
}

impl Receiving {
    /// Begins to take a content; what is behind an older version of it, if it can be that only.
    ///
    /// # Errors
    /// [`StoreFailure`]; the room is asked for now.
    pub fn begin(pull: &Pull, directory: &DiskDirectory) -> Result<Self, StoreFailure> {
        let found = pull.older.and_then(|older| Some((older, directory.growths().of(older)?)));
        let is_longer = |bytes: u64| bytes >= GROWN_BYTES_MIN && bytes < pull.size;
        let Some((older, growth)) = found.filter(|(_, growth)| is_longer(growth.whole_bytes()))
        else {
            return Self::begin_whole(pull, directory);
        };
        let bytes = growth.whole_bytes();
        let incoming = directory.begin_grown(pull.content, pull.size - bytes)?;
        let beginning = Beginning { older, bytes, unit: Vec::new(), is_other: false };
        Ok(Self {
            incoming,
            sums: Sums::Growing(Box::new(growth)),
            bytes: 0,
            beginning: Some(beginning),
            growths: directory.growths().clone(),
        })
    }

    /// Begins to take all of a content.
    ///
    /// # Errors
    /// As [`Receiving::begin`].
    pub fn begin_whole(pull: &Pull, directory: &DiskDirectory) -> Result<Self, StoreFailure> {
        // An empty content has nothing that a reader would ask for.
        if pull.size == 0 && Hash::of(&[]) != Hash(pull.root) {
            return Err(StoreFailure::Mismatch);
        }
        let incoming = directory.begin(pull.content, pull.size)?;
        let sums = match pull.older {
            Some(_) => Sums::Growing(Box::default()),
            None => Sums::Of(Summing::new(&[Algorithm::Adler32, Algorithm::Crc32c])),
        };
        let growths = directory.growths().clone();
        Ok(Self { incoming, sums, bytes: 0, beginning: None, growths })
    }

    /// The part of it that has to come; `None` if that is all.
    pub fn range(&self, pull: &Pull) -> Option<Range<u64>> {
        let beginning = self.beginning.as_ref()?;
        Some(beginning.bytes - UNIT_BYTES as u64..pull.size)
    }

    /// Takes the next octets, which are verified, and tells of those that are written.
    ///
    /// # Errors
    /// What the system says, or `on_bytes`.
    pub fn write(&mut self, octets: &[u8], on_bytes: &mut OnBytes<'_>) -> io::Result<()> {
        let rest = self.begin_as_older(octets, on_bytes)?;
        if rest.is_empty() {
            return Ok(());
        }
        self.incoming.write(rest)?;
        match &mut self.sums {
            Sums::Of(summing) => summing.update(rest),
            Sums::Growing(growth) => growth.update(rest),
        }
        self.bytes += rest.len() as u64;
        on_bytes(rest.len() as u64)
    }

    /// Takes what is before these octets from the older version once its last unit has come.
    fn begin_as_older<'a>(
        &mut self,
        octets: &'a [u8],
        on_bytes: &mut OnBytes<'_>,
    ) -> io::Result<&'a [u8]> {
        let (Some(beginning), Sums::Growing(growth)) = (&mut self.beginning, &self.sums) else {
            return Ok(octets);
        };
        if beginning.unit.len() == UNIT_BYTES {
            return Ok(octets);
        }
        let missing = UNIT_BYTES - beginning.unit.len();
        let (head, rest) = octets.split_at(missing.min(octets.len()));
        beginning.unit.extend_from_slice(head);
        if beginning.unit.len() < UNIT_BYTES {
            return Ok(rest);
        }
        beginning.is_other = !growth.ends_with(&beginning.unit);
        if beginning.is_other {
            return Err(io::Error::other("the older version is no beginning of it"));
        }
        let taken = self.incoming.take(beginning.older, beginning.bytes, on_bytes);
        // It was dropped meanwhile, or is not what it was.
        let gone = [ErrorKind::NotFound, ErrorKind::UnexpectedEof];
        beginning.is_other = taken.as_ref().is_err_and(|error| gone.contains(&error.kind()));
        self.bytes = beginning.bytes;
        taken.map(|()| rest)
    }

    /// All of it has come: makes a replica of it, which is stored when this returns.
    ///
    /// # Errors
    /// [`Unkept`]; nothing of it is left then.
    pub fn finish(self, pull: &Pull, on_step: &mut dyn FnMut(Step)) -> Result<Kept, Unkept> {
        if self.bytes != pull.size {
            return Err(self.give_up(StoreFailure::Mismatch));
        }
        let is_grown = self.beginning.is_some();
        let checksums = match &self.sums {
            Sums::Of(summing) => growth::checksums(summing.clone()),
            // What came is verified, and with what was there before it is what the writer signed.
            Sums::Growing(growth) if is_grown && growth.root() != Some(Hash(pull.root)) => {
                self.incoming.give_up(StoreFailure::Mismatch);
                return Err(Unkept::NotGrown);
            }
            Sums::Growing(growth) => growth.checksums(),
        };
        let record = Record {
            size: pull.size,
            root: pull.root,
            checksums,
            is_settled: false,
            ticket: pull.ticket.clone(),
            claim: pull.claim.clone(),
        };
        self.incoming.keep(&record, on_step).map_err(Unkept::Failed)?;
        if let Sums::Growing(growth) = self.sums {
            self.growths.keep(pull.content, *growth);
        }
        Ok(Kept { size: pull.size, root: pull.root, checksums })
    }

    /// Removes what has come.
    pub fn give_up(self, why: StoreFailure) -> Unkept {
        let failure = self.incoming.give_up(why);
        match self.beginning {
            Some(Beginning { is_other: true, .. }) => Unkept::NotGrown,
            _ => Unkept::Failed(failure),
        }
    }
}

fn failure_of(error: &ClientError) -> StoreFailure {
    tracing::debug!(%error, "pull failed");
    match error {
        ClientError::Output(error) if error.kind() == ErrorKind::Interrupted => {
            StoreFailure::Stopped
        }
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
