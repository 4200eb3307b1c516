//! An older version of what a stream reads, in a file here: units that stayed the same do not
//! travel. They are verified like any others.

use std::fs::File;
use std::os::unix::fs::FileExt;

use byname_security::tree::UNIT_BYTES;
use byname_transfer::reader::{HELD_MAX, Reader};
use byname_transfer::verify::{Output, UnitSet};

/// Units looked at before the network gets its turn.
const BURST: usize = 64;
/// Units looked at before the older version may be given up.
const TRIALS_MIN: u64 = 2048;
/// It is given up if fewer than one in so many were of use.
const TRIALS_PER_HIT: u64 = 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct OlderVersion {
    /// `None` once it has turned out to be of no use.
    file: Option<File>,
    size: u64,
    trials: u64,
    unit: Box<[u8; UNIT_BYTES]>,
}

impl OlderVersion {
    /// An older version of content of `size` octets.
    pub(crate) fn new(file: File, size: u64) -> Self {
        OlderVersion { file: Some(file), size, trials: 0, unit: Box::new([0; UNIT_BYTES]) }
    }

    /// Units that may be in it.
    pub(crate) fn units(&self) -> UnitSet {
        let older_bytes = self.file.as_ref().and_then(|file| file.metadata().ok());
        let bytes = older_bytes.map_or(0, |metadata| metadata.len()).min(self.size);
        let mut units = UnitSet::default();
        units.insert_run(0..bytes.div_ceil(UNIT_BYTES as u64));
        units
    }

    /// True if a unit can be offered without any packet coming.
    pub(crate) fn has_turn(&self, reader: &Reader, held_bytes: usize) -> bool {
        held_bytes < HELD_MAX / 2 * UNIT_BYTES && reader.wants_local()
    }

    /// Offers the reader some units of it, in ascending order.
    pub(crate) fn offer(&mut self, reader: &mut Reader, now_ns: u64, out: &mut Output<'_>) {
        for _ in 0..BURST {
            let Some(unit) = reader.poll_local() else { break };
            let hits = reader.candidate_bytes() / UNIT_BYTES as u64;
            if self.trials >= TRIALS_MIN && hits.saturating_mul(TRIALS_PER_HIT) < self.trials {
                self.file = None;
            }
            self.trials += 1;
            let filled = self.read(unit);
            reader.handle_candidate(unit, &self.unit[..filled], now_ns, out);
        }
    }

    /// The octets in the place of a unit; none if they cannot be read.
    fn read(&mut self, unit: u64) -> usize {
        let Some(file) = &self.file else { return 0 };
        let offset = unit * UNIT_BYTES as u64;
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(UNIT_BYTES);
        let filled = left.min(UNIT_BYTES);
        let read = file.read_exact_at(&mut self.unit[..filled], offset);
        if read.is_ok() { filled } else { 0 }
    }
}
