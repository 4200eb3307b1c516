//! Content that has no file: it is kept in one without a name until it is written.

use crate::exit::{Code, Failure, Outcome};
use byname_client::Stop;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};

const PIECE_BYTES: usize = 256 << 10;

/// An empty file that nobody else sees, and that goes with its descriptor.
pub(super) fn empty() -> Outcome<File> {
    let directory = std::env::temp_dir();
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(&directory, flags, Mode::RUSR | Mode::WUSR);
    file.map(File::from).map_err(|error| Failure::disk(&directory, std::io::Error::from(error)))
}

/// A failure to write to such a file.
pub(super) fn failed(error: std::io::Error) -> Failure {
    Failure::disk(&std::env::temp_dir(), error)
}

/// Such a file with all that can be read.
pub(super) fn spooled(mut from: impl Read, stop: &Stop) -> Outcome<File> {
    let mut file = empty()?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        if stop.is_requested() {
            return Err(Failure::new(Code::Interrupted, "interrupted"));
        }
        match from.read(&mut piece) {
            Ok(0) => return Ok(file),
            Ok(count) => file.write_all(&piece[..count]).map_err(failed)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::new(Code::LocalDisk, format!("stdin: {error}"))),
        }
    }
}
