//! Reading of one version of a file to the disk: from the network, from what an earlier run has
//! left, and from the older version that stands at the target.
//!
//! Whatever the source, bytes are written when the tree proves them and not before. A unit of the
//! older version is taken if it is what the new version has at the same place, so of a large file
//! in which little has changed only that little travels.

use std::fs::File;
use std::sync::Arc;

use byname_security::tree::UNIT_BYTES;
use byname_transfer::discovery::Discovered;
use byname_transfer::fetch::FetchConfig;
use byname_transfer::naming::Part;
use byname_transfer::reader::{ObjectPlan, Reader, Refused, Selection};
use byname_transfer::verify::{Output, UnitSet};

use crate::download::disk_queue::{DiskQueue, DiskTask};
use crate::download::part_file::{PartFile, Target};
use crate::download::part_writer::{LocalOrigin, LocalUnits, PartWriter};
use crate::error::ClientError;
use crate::lookup::stage::HasReader;

/// Local units looked at before the network gets its turn.
const LOCAL_BURST: usize = 64;
/// Units of the older version looked at before it may be given up.
const TRIALS_MIN: u64 = 2048;
/// It is given up if fewer than one in so many were of use.
const TRIALS_PER_HIT: u64 = 16;

pub(crate) struct Reading {
    pub(crate) reader: Reader,
    pub(crate) writer: PartWriter,
    pub(crate) discovered: Discovered,
    older: Option<Older>,
    /// Units that an earlier run may have left in the part file.
    claimed: UnitSet,
    local: LocalReading,
    written_bytes: u64,
    reported_bytes: u64,
    reported_units: u64,
}

/// State of the units that are on the disk.
enum LocalReading {
    /// Memory for the next.
    Idle(LocalUnits),
    Reading(DiskTask<LocalUnits>),
    /// Read, and taken up to this place.
    Read(LocalUnits, usize),
}

/// The version that is to be replaced.
struct Older {
    file: Arc<File>,
    trials: u64,
}

/// A part file that is open, and what there is on the disk of the version to be read.
pub(crate) struct Prepared {
    part: PartFile,
    claimed: UnitSet,
    older: Option<(File, u64)>,
}

impl Prepared {
    /// Opens the part file, and looks for what may be of use.
    pub(crate) fn open(target: &Target, plan: &ObjectPlan) -> Result<Self, ClientError> {
        let part = PartFile::open(target.clone(), plan.size)?;
        let (claimed, older) = match plan.tree() {
            Some((size, _)) => (part.claimed_units(size), older_version(target, size)),
            None => (UnitSet::default(), None),
        };
        Ok(Prepared { part, claimed, older })
    }
}

impl HasReader for Reading {
    fn reader(&mut self) -> &mut Reader {
        &mut self.reader
    }
}

impl Reading {
    pub(crate) fn begin(
        prepared: Prepared,
        (plan, discovered): (ObjectPlan, Discovered),
        disk: DiskQueue,
        config: FetchConfig,
    ) -> Self {
        let Prepared { part, claimed, older } = prepared;
        let selection = match plan.tree() {
            Some(_) => {
                let mut there = claimed.clone();
                if let Some((_, units)) = &older {
                    there.insert_run(0..*units);
                }
                Selection::Resume(there)
            }
            None => Selection::All,
        };
        let mut reader = Reader::new(plan, selection, config);
        reader.buffer_spans();
        Reading {
            reader,
            writer: PartWriter::new(part, disk),
            discovered,
            older: older.map(|(file, _)| Older { file: Arc::new(file), trials: 0 }),
            claimed,
            local: LocalReading::Idle(LocalUnits::default()),
            written_bytes: 0,
            reported_bytes: 0,
            reported_units: 0,
        }
    }

    /// Goes on with a speculative reader of the same, if nothing is here yet. What it
    /// could not get while the certificate was waited for is worth another attempt.
    pub(crate) fn go_on_with(&mut self, speculative: &mut Option<Box<Reader>>) {
        if !self.reader.wants_local()
            && let Some(reader) = speculative.take_if(|speculative| {
                speculative.failure().is_none() && speculative.plan() == self.reader.plan()
            })
        {
            self.reader = *reader;
            self.reader.buffer_spans();
        }
    }

    /// Lets the reader hand out what is verified, which goes to the disk.
    pub(crate) fn write<R>(&mut self, act: impl FnOnce(&mut Reader, &mut Output<'_>) -> R) -> R {
        let Reading { reader, writer, written_bytes, .. } = self;
        act(reader, &mut |offset, bytes| {
            writer.write(offset, bytes);
            *written_bytes += bytes.len() as u64;
        })
    }

    /// True when everything is verified and handed to the disk.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.local, LocalReading::Idle(_)) && self.reader.is_finished()
    }

    /// Bytes that came from the network.
    pub(crate) fn fetched_bytes(&self) -> u64 {
        self.written_bytes - self.reader.candidate_bytes()
    }

    /// Bytes of the file that were there already.
    pub(crate) fn reused_bytes(&self) -> u64 {
        // Only the last unit may be shorter, and then the file has come to its end.
        let size = self.reader.size().unwrap_or(0);
        (self.reader.local_count() * UNIT_BYTES as u64).min(size)
    }

    /// Bytes fetched since the last call.
    pub(crate) fn poll_fetched(&mut self) -> u64 {
        let fetched_bytes = self.fetched_bytes();
        fetched_bytes - std::mem::replace(&mut self.reported_bytes, fetched_bytes)
    }

    /// Bytes found on the disk since the last call.
    pub(crate) fn poll_reused(&mut self) -> u64 {
        let reused_bytes = self.reused_bytes();
        reused_bytes - std::mem::replace(&mut self.reported_units, reused_bytes)
    }

    /// The next piece that did not verify, in words, and the number of the source that sent it.
    pub(crate) fn poll_refused(&mut self) -> Option<(String, usize)> {
        self.reader.poll_refused().map(|refused| (in_words(&refused), refused.source))
    }

    /// True if [`check_local_units`](Reading::check_local_units) has something to do.
    pub(crate) fn wants_local(&mut self) -> bool {
        match &mut self.local {
            LocalReading::Idle(_) => self.reader.wants_local(),
            LocalReading::Reading(task) => task.is_ready(),
            LocalReading::Read(..) => self.reader.takes_local(),
        }
    }

    /// Checks some of what is on the disk, or has it read.
    pub(crate) fn check_local_units(&mut self, now_ns: u64) -> Result<(), ClientError> {
        let idle = LocalReading::Idle(LocalUnits::default());
        let mut local = std::mem::replace(&mut self.local, idle);
        if let LocalReading::Idle(units) = local {
            local = self.read_local_units(units);
        }
        if let LocalReading::Reading(task) = &mut local
            && let Some(units) = task.take()
        {
            local = LocalReading::Read(units?, 0);
        }
        if let LocalReading::Read(units, place) = local {
            local = self.take_local_units(units, place, now_ns);
        }
        self.local = local;
        Ok(())
    }

    /// Has the next units read.
    fn read_local_units(&mut self, mut units: LocalUnits) -> LocalReading {
        self.give_up_older();
        units.clear();
        units.older = self.older.as_ref().map(|older| Arc::clone(&older.file));
        let size = self.reader.size().unwrap_or(0);
        for _ in 0..LOCAL_BURST {
            let Some(unit) = self.reader.poll_local() else { break };
            let left = size.saturating_sub(unit * UNIT_BYTES as u64);
            let origin = match &mut self.older {
                _ if self.claimed.contains(unit) => LocalOrigin::Part,
                Some(older) => {
                    older.trials += 1;
                    LocalOrigin::Older
                }
                None => LocalOrigin::Nowhere,
            };
            units.push(unit, usize::try_from(left).unwrap_or(UNIT_BYTES), origin);
        }
        match units.is_empty() {
            true => LocalReading::Idle(units),
            false => LocalReading::Reading(self.writer.read(units)),
        }
    }

    /// Checks what was read, as far as there is room for what cannot be checked yet.
    fn take_local_units(
        &mut self,
        units: LocalUnits,
        mut place: usize,
        now_ns: u64,
    ) -> LocalReading {
        while self.reader.takes_local() {
            let Some((unit, origin, bytes)) = units.get(place) else {
                return LocalReading::Idle(units);
            };
            match origin {
                LocalOrigin::Part => self.reader.handle_local(unit, bytes, now_ns),
                LocalOrigin::Older | LocalOrigin::Nowhere => {
                    self.write(|reader, out| reader.handle_candidate(unit, bytes, now_ns, out));
                }
            }
            place += 1;
        }
        LocalReading::Read(units, place)
    }

    /// A version that has next to nothing in common with the new one is not read to its end.
    fn give_up_older(&mut self) {
        let hits = self.reader.local_count();
        let is_useless = |older: &mut Older| {
            older.trials >= TRIALS_MIN && hits.saturating_mul(TRIALS_PER_HIT) < older.trials
        };
        drop(self.older.take_if(is_useless));
    }
}

/// Name of a piece that did not verify, for messages.
pub(crate) fn in_words(refused: &Refused) -> String {
    let index = refused.index;
    match refused.part {
        _ if refused.is_segment => format!("segment {index} has a length it cannot have"),
        Part::Content => format!("unit {index} is not what was signed"),
        Part::Tree(level) => {
            format!("node {index} of tree level {level} is not what was signed")
        }
    }
}

/// The file at the target, and how many units it has that a file of `size` bytes may have too.
fn older_version(target: &Target, size: u64) -> Option<(File, u64)> {
    let file = target.open().ok()?;
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let unit_bytes = UNIT_BYTES as u64;
    let units = match metadata.len() {
        older_size if older_size >= size => size.div_ceil(unit_bytes),
        older_size => older_size / unit_bytes,
    };
    (units > 0).then_some((file, units))
}
