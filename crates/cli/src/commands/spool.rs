//! Content without a size: what stdin brings is kept in a file without name until it is written.

use crate::exit::{Code, Failure, Outcome};
use byname_client::Stop;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};

const PIECE_BYTES: usize = 256 << 10;

/// A file with all that can be read; nobody else sees it, and it goes with its descriptor.
pub(super) fn spooled(mut from: impl Read, stop: &Stop) -> Outcome<File> {
    let directory = std::env::temp_dir();
    let failed = |error: std::io::Error| Failure::disk(&directory, error);
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(&directory, flags, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(file.map_err(|error| failed(error.into()))?);
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
