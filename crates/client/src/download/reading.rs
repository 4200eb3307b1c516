//! One version of a file on its way to the disk: from the network, from what an earlier run has
//! left, and from the older version that stands at the target.
//!
//! Whatever the source, bytes are written when the tree proves them and not before. A unit of the
//! older version is taken if it is what the new version has at the same place, so of a large file
//! in which little has changed only that little travels.

use std::fs::File;

use byname_security::tree::UNIT_BYTES;
use byname_transfer::discovery::Discovered;
use byname_transfer::fetch::FetchConfig;
use byname_transfer::naming::Part;
use byname_transfer::reader::{ObjectPlan, Reader, Refused, Selection};
use byname_transfer::verify::{Output, UnitSet};

use crate::download::part_file::{PartFile, Target, read_unit};
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
    pub(crate) part: PartFile,
    pub(crate) discovered: Discovered,
    older: Option<Older>,
    /// Units that an earlier run may have left in the part file.
    claimed: UnitSet,
    written_bytes: u64,
    reported_bytes: u64,
    reported_units: u64,
}

/// The version that is to be replaced.
struct Older {
    file: File,
    trials: u64,
}

impl HasReader for Reading {
    fn reader(&mut self) -> &mut Reader {
        &mut self.reader
    }
}

impl Reading {
    pub(crate) fn begin(
        target: &Target,
        plan: ObjectPlan,
        discovered: Discovered,
        config: FetchConfig,
    ) -> Result<Self, ClientError> {
        let part = PartFile::open(target.clone(), plan.size)?;
        let (mut older, mut claimed) = (None, UnitSet::default());
        let selection = match plan.tree() {
            Some((size, _)) => {
                claimed = part.claimed_units(size);
                let mut there = claimed.clone();
                if let Some((file, units)) = older_version(target, size) {
                    there.insert_run(0..units);
                    older = Some(Older { file, trials: 0 });
                }
                Selection::Resume(there)
            }
            None => Selection::All,
        };
        let mut reader = Reader::new(plan, selection, config);
        reader.buffer_spans();
        let (written_bytes, reported_bytes, reported_units) = (0, 0, 0);
        Ok(Reading {
            reader,
            part,
            discovered,
            older,
            claimed,
            written_bytes,
            reported_bytes,
            reported_units,
        })
    }

    /// Goes on with a reader that has asked ahead for the same, if nothing is here yet. What it
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

    /// Lets the reader hand out what is verified; it is written at once.
    pub(crate) fn write<R>(&mut self, act: impl FnOnce(&mut Reader, &mut Output<'_>) -> R) -> R {
        let Reading { reader, part, written_bytes, .. } = self;
        act(reader, &mut |offset, bytes| {
            part.write(offset, bytes);
            *written_bytes += bytes.len() as u64;
        })
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

    /// The next piece that did not verify, in words.
    pub(crate) fn poll_refused(&mut self) -> Option<String> {
        self.reader.poll_refused().map(|refused| in_words(&refused))
    }

    /// Checks some of what is on the disk.
    pub(crate) fn look_at_local_units(&mut self, now_ns: u64) {
        let mut buffer = [0; UNIT_BYTES];
        let size = self.reader.size().unwrap_or(0);
        for _ in 0..LOCAL_BURST {
            let Some(unit) = self.reader.poll_local() else { return };
            let left = size.saturating_sub(unit * UNIT_BYTES as u64);
            let length = usize::try_from(left).unwrap_or(UNIT_BYTES).min(UNIT_BYTES);
            let room = &mut buffer[..length];
            if self.claimed.contains(unit) {
                let bytes = read_unit(self.part.target(), self.part.file(), unit, room);
                self.reader.handle_local(unit, bytes, now_ns);
                continue;
            }
            self.give_up_older();
            let bytes = match &mut self.older {
                Some(older) => {
                    older.trials += 1;
                    read_unit(self.part.target(), &older.file, unit, room)
                }
                None => &[],
            };
            self.write(|reader, out| reader.handle_candidate(unit, bytes, now_ns, out));
        }
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
