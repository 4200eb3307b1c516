//! Content that has no file: it is kept in one without a name until it is written.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use byname_client::Stop;
use rustix::fs::{Mode, OFlags};

use crate::error::AccessError;

const PIECE_BYTES: usize = 256 << 10;

/// The directory where such files are made.
pub fn directory() -> PathBuf {
    std::env::temp_dir()
}

/// An empty file that nobody else sees, and that goes with its descriptor.
///
/// # Errors
/// [`AccessError::Spool`].
pub fn empty() -> Result<File, AccessError> {
    let directory = directory();
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(&directory, flags, Mode::RUSR | Mode::WUSR);
    file.map(File::from).map_err(|error| failed(error.into()))
}

/// A failure to write to such a file.
pub fn failed(source: std::io::Error) -> AccessError {
    AccessError::Spool { path: directory(), source }
}

/// Such a file with all that can be read; `path` is the name of what is read, in messages.
///
/// # Errors
/// [`AccessError::Spool`], [`AccessError::Stopped`].
pub fn spooled(path: &Path, mut from: impl Read, stop: &Stop) -> Result<File, AccessError> {
    let mut file = empty()?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        if stop.is_requested() {
            return Err(AccessError::Stopped);
        }
        match from.read(&mut piece) {
            Ok(0) => return Ok(file),
            Ok(count) => file.write_all(&piece[..count]).map_err(failed)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(source) => return Err(AccessError::Spool { path: path.to_owned(), source }),
        }
    }
}
