//! The bitmap of an entry: which units are in its sparse file.
//!
//! A header that names the content, and one bit per unit. It is a hint: readers verify what they
//! read. Several processes set bits; they do so under a lock of the file, so that none loses
//! another's. A header that is not the entry's makes the map an empty one.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use byname_security::tree::Shape;
use byname_transfer::verify::UnitSet;
use rustix::fs::{FlockOperation, SeekFrom, flock};

use crate::layout::ContentKey;

const MAGIC: &[u8; 16] = b"byname units 1\n\0";
/// Magic, root, size.
const HEADER_BYTES: usize = 16 + 32 + 8;
/// Octets of the map read at once.
const CHUNK_BYTES: usize = 256 << 10;

fn header(key: &ContentKey) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..16].copy_from_slice(MAGIC);
    header[16..48].copy_from_slice(key.root.as_bytes());
    header[48..].copy_from_slice(&key.size.to_be_bytes());
    header
}

/// Holds the lock of a map until it is dropped.
pub(crate) struct Locked<'a>(&'a File);

impl<'a> Locked<'a> {
    pub(crate) fn new(file: &'a File) -> io::Result<Self> {
        flock(file, FlockOperation::LockExclusive)?;
        Ok(Locked(file))
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Closing the file ends the lock in any case.
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

/// Begins a map that is new, or is not that of this content.
pub(crate) fn begin(file: &File, key: &ContentKey) -> io::Result<()> {
    let _locked = Locked::new(file)?;
    if is_of(file, key) {
        return Ok(());
    }
    file.set_len(0)?;
    file.write_all_at(&header(key), 0)
}

/// True if the header is that of this content.
pub(crate) fn is_of(file: &File, key: &ContentKey) -> bool {
    let mut found = [0; HEADER_BYTES];
    file.read_exact_at(&mut found, 0).is_ok() && found == header(key)
}

/// The units that the map has; none if it is not that of this content.
pub(crate) fn load(file: &File, key: &ContentKey) -> io::Result<UnitSet> {
    let mut units = UnitSet::default();
    if !is_of(file, key) {
        return Ok(units);
    }
    let unit_count = Shape::new(key.size).unit_count();
    let mut chunk = vec![0; CHUNK_BYTES];
    let (mut at, end) = (0, unit_count.div_ceil(8));
    while at < end {
        // Holes are passed over: a huge file with a few units has a map as quick as a short one.
        match rustix::fs::seek(file, SeekFrom::Data(HEADER_BYTES as u64 + at)) {
            Ok(data) => at = at.max(data.saturating_sub(HEADER_BYTES as u64)),
            Err(rustix::io::Errno::NXIO) => break,
            // A file system that does not know of holes.
            Err(_) => {}
        }
        if at >= end {
            break;
        }
        let length = chunk.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
        let read = file.read_at(&mut chunk[..length], HEADER_BYTES as u64 + at)?;
        if read == 0 {
            break;
        }
        add_bits(&mut units, &chunk[..read], at * 8, unit_count);
        at += read as u64;
    }
    Ok(units)
}

/// Adds the units whose bits are set in `octets`, the first of which is that of `first`.
pub(crate) fn add_bits(units: &mut UnitSet, octets: &[u8], first: u64, unit_count: u64) {
    let mut run: Option<Range<u64>> = None;
    let mut flush = |run: &mut Option<Range<u64>>| {
        if let Some(run) = run.take() {
            units.insert_run(run);
        }
    };
    for (index, octet) in octets.iter().enumerate() {
        let base = first + index as u64 * 8;
        match (octet, &mut run) {
            (0, run) => {
                flush(run);
                continue;
            }
            (0xff, Some(run)) if base + 8 <= unit_count => {
                run.end = base + 8;
                continue;
            }
            _ => {}
        }
        for bit in 0..8 {
            let unit = base + bit;
            let is_set = octet >> bit & 1 == 1 && unit < unit_count;
            match &mut run {
                Some(run) if is_set => run.end = unit + 1,
                None if is_set => run = Some(unit..unit + 1),
                _ => flush(&mut run),
            }
        }
    }
    flush(&mut run);
}

/// Sets or clears the bits of some runs of units.
pub(crate) fn change(file: &File, runs: &[Range<u64>], is_present: bool) -> io::Result<()> {
    let _locked = Locked::new(file)?;
    change_locked(file, runs, is_present)
}

/// Clears the bits of those units that are still wrong, while nobody sets any: who has written a
/// unit anew has done so before, and it is not wrong, or sets its bit afterwards.
pub(crate) fn clear_wrong(
    file: &File,
    units: &UnitSet,
    mut is_wrong: impl FnMut(u64) -> io::Result<bool>,
) -> io::Result<()> {
    let _locked = Locked::new(file)?;
    for unit in units.iter() {
        if is_wrong(unit)? {
            change_locked(file, std::slice::from_ref(&(unit..unit + 1)), false)?;
        }
    }
    Ok(())
}

fn change_locked(file: &File, runs: &[Range<u64>], is_present: bool) -> io::Result<()> {
    for run in runs.iter().filter(|run| run.start < run.end) {
        let (start, end) = (run.start / 8, run.end.div_ceil(8));
        let mut octets = vec![0; usize::try_from(end - start).unwrap_or(usize::MAX)];
        let offset = HEADER_BYTES as u64 + start;
        read_what_is_there(file, &mut octets, offset)?;
        for unit in run.clone() {
            let octet = &mut octets[(unit / 8 - start) as usize];
            let bit = 1 << (unit % 8);
            *octet = if is_present { *octet | bit } else { *octet & !bit };
        }
        file.write_all_at(&octets, offset)?;
    }
    Ok(())
}

/// What lies beyond the end of the file stays zero.
fn read_what_is_there(file: &File, mut octets: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !octets.is_empty() {
        let count = file.read_at(octets, offset)?;
        if count == 0 {
            return Ok(());
        }
        octets = &mut octets[count..];
        offset += count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_security::tree::Hash;
    use proptest::prelude::*;

    fn scene(size: u64) -> (File, ContentKey) {
        let key = ContentKey { root: Hash([7; 32]), size };
        let file = tempfile::tempfile().expect("a file");
        begin(&file, &key).expect("a map");
        (file, key)
    }

    proptest! {
        #[test]
        fn bits_come_back_as_they_were_set(
            changes in prop::collection::vec((0u64..3000, 1u64..300, any::<bool>()), 1..20),
        ) {
            let (file, key) = scene(3000 * 8192 - 5);
            let mut model = UnitSet::default();
            for (start, length, is_present) in changes {
                let run = start..(start + length).min(3000);
                change(&file, std::slice::from_ref(&run), is_present).expect("it is changed");
                for unit in run {
                    if is_present { model.insert(unit); } else { model.remove(unit); }
                }
            }
            let loaded = load(&file, &key).expect("it is read");
            prop_assert!(loaded.iter().eq(model.iter()));
        }
    }

    #[test]
    fn the_map_of_a_huge_file_is_read_where_something_is() {
        let (file, key) = scene(15 << 40);
        let unit_count = Shape::new(key.size).unit_count();
        let runs = [7..8, 900_000_000..900_000_031, unit_count - 1..unit_count];
        change(&file, &runs, true).expect("it is changed");
        assert!(file.metadata().expect("a file").len() > 200 << 20);
        let loaded = load(&file, &key).expect("it is read");
        assert!(loaded.iter().eq(runs.into_iter().flatten()));
    }

    #[test]
    fn a_map_of_other_content_is_empty_and_is_begun_anew() {
        let (file, key) = scene(1 << 20);
        change(&file, &[3..9, 100..101], true).expect("it is changed");
        let other = ContentKey { size: key.size + 1, ..key };
        assert_eq!(load(&file, &other).expect("it is read").count(), 0);
        begin(&file, &key).expect("the same");
        assert_eq!(load(&file, &key).expect("it is read").count(), 7);
        begin(&file, &other).expect("anew");
        assert_eq!(load(&file, &other).expect("it is read").count(), 0);
    }

    #[test]
    fn bits_beyond_the_end_of_the_content_do_not_count() {
        let (file, key) = scene(8192 * 3);
        file.write_all_at(&[0xff; 64], HEADER_BYTES as u64).expect("garbage");
        let units: Vec<u64> = load(&file, &key).expect("it is read").iter().collect();
        assert_eq!(units, [0, 1, 2]);
    }

    #[test]
    fn a_unit_that_was_written_anew_meanwhile_keeps_its_bit() {
        let file = tempfile::tempfile().expect("a file");
        let key = ContentKey { root: Hash([7; 32]), size: 1 << 20 };
        begin(&file, &key).expect("begun");
        change(&file, std::slice::from_ref(&(0..10)), true).expect("set");
        let mut rotten = UnitSet::default();
        rotten.insert_run(3..6);
        clear_wrong(&file, &rotten, |unit| Ok(unit != 4)).expect("cleared");
        assert!(load(&file, &key).expect("loaded").iter().eq([0, 1, 2, 4, 6, 7, 8, 9]));
    }
}
