//! A bound of all versions announced, in a small file beside the records.
//!
//! Records can be lost whole: emptied, removed, or broken so that they are set aside. This file
//! shows that there were some, and where later versions must begin even if the clock was set back
//! or a version lay in the future. The bound is rounded up, so that it is written once a minute or
//! so and not with every version.
//!
//! Invariant: no version is announced that is above the bound on disk.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::{StateError, at};

/// Versions are nanoseconds in general: 69 s of them.
const STEP: u64 = 1 << 36;
/// Octets of the number, and of the checksum after it.
const NUMBER_BYTES: usize = 8;

#[derive(Debug)]
pub(super) struct HighestVersion {
    path: PathBuf,
    bound: Mutex<u64>,
    was_there: bool,
}

fn encode(bound: u64) -> [u8; 2 * NUMBER_BYTES] {
    let mut octets = [0; 2 * NUMBER_BYTES];
    octets[..NUMBER_BYTES].copy_from_slice(&bound.to_be_bytes());
    let check = blake3::hash(&bound.to_be_bytes());
    octets[NUMBER_BYTES..].copy_from_slice(&check.as_bytes()[..NUMBER_BYTES]);
    octets
}

fn decode(octets: &[u8]) -> Option<u64> {
    let bound = u64::from_be_bytes(*octets.first_chunk()?);
    (octets == encode(bound)).then_some(bound)
}

impl HighestVersion {
    pub(super) fn open(path: PathBuf) -> Result<Self, StateError> {
        let found = match fs::read(&path) {
            Ok(octets) => Some(decode(&octets)),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(at(&path)(error)),
        };
        if found == Some(None) {
            tracing::error!(path = %path.display(), "the bound of versions is broken");
        }
        let (was_there, bound) = (found.is_some(), found.flatten().unwrap_or(0));
        Ok(Self { path, bound: Mutex::new(bound), was_there })
    }

    /// True if versions were announced before this was opened, as far as the file shows it.
    pub(super) fn was_there(&self) -> bool {
        self.was_there
    }

    /// No version above it was ever announced.
    pub(super) fn bound(&self) -> u64 {
        *self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for a version that is about to be announced.
    pub(super) fn raise(&self, version: u64) -> Result<(), StateError> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if version <= *bound {
            return Ok(());
        }
        let raised = version.checked_next_multiple_of(STEP).unwrap_or(u64::MAX);
        write(&self.path, &encode(raised)).map_err(at(&self.path))?;
        *bound = raised;
        Ok(())
    }
}

/// The whole file or none of it, on disk when this returns.
fn write(path: &Path, octets: &[u8]) -> std::io::Result<()> {
    let temporary = path.with_extension("part");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(octets)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}
