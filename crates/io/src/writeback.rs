//! Writing what a file has in memory to its disk while more of it comes, so that the sync at the
//! end finds little left to do.

#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;

/// Begins to write a part of a file to its disk. Waits only if the disk has as much to do as it
/// takes.
///
/// Nothing is durable by it, and no failure is told or taken away: only a sync says what came of
/// it. File systems that know no such call do nothing.
pub fn begin_writeback(file: &File, offset: u64, bytes: u64) {
    let (offset, bytes) = (offset.cast_signed(), bytes.cast_signed());
    // SAFETY: takes no pointer; the descriptor is open as long as the file is borrowed.
    unsafe { libc::sync_file_range(file.as_raw_fd(), offset, bytes, libc::SYNC_FILE_RANGE_WRITE) };
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn a_part_that_is_not_there_is_no_error_and_nothing_changes() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 100_000]).unwrap();
        for (offset, bytes) in [(0, 50_000), (50_000, 50_000), (90_000, u64::MAX), (1 << 40, 0)] {
            begin_writeback(&file, offset, bytes);
        }
        file.sync_all().unwrap();
        let mut octets = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut octets).unwrap();
        assert!(octets == [7; 100_000]);
    }
}
