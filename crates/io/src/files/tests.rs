//! Real files, read by io_uring and by threads alike.
// A list with one gap is what is meant.
#![allow(clippy::single_range_in_vec_init)]

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::Advice;

use super::*;
use crate::poller::{Poller, Token};

const PATIENCE: Duration = Duration::from_secs(30);
const LEN: usize = 1 << 20;

fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(0x9E37_79B9) >> 13) as u8).collect()
}

/// A file that has reached the disk, in a directory that goes away with it.
fn file(content: &[u8]) -> (tempfile::TempDir, Arc<File>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let mut file = File::create(&path).unwrap();
    file.write_all(content).unwrap();
    file.sync_all().unwrap();
    (directory, Arc::new(File::open(path).unwrap()))
}

/// Drops the file from the page cache; false where that is impossible (file systems in memory).
fn make_cold(file: &File) -> bool {
    rustix::fs::fadvise(file, 0, None, Advice::DontNeed).unwrap();
    let mut octet = [0];
    let read = read_cached(file, &mut [IoSliceMut::new(&mut octet)], 0);
    let is_cold = read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    rustix::fs::fadvise(file, 0, None, Advice::DontNeed).unwrap();
    if !is_cold {
        eprintln!("skipped: this file system keeps files in memory");
    }
    is_cold
}

/// Readers of both kinds; only threads where io_uring is forbidden.
fn readers<T: Send + 'static>() -> Vec<(Reader<T>, Poller)> {
    let kinds = [ReaderKind::Auto, ReaderKind::Threads(3)];
    let start = |kind| {
        let mut poller = Poller::new().unwrap();
        let waker = poller.waker(Token(7)).unwrap();
        let (reader, refusal) = Reader::new(kind, waker).unwrap();
        assert_eq!(reader.is_ring(), kind == ReaderKind::Auto && refusal.is_none());
        (reader, poller)
    };
    kinds.into_iter().map(start).collect()
}

type Done<T> = (FileRead<T>, std::io::Result<()>);

/// Waits as the file server does: until the poller says that something is done.
fn wait<T: Send + 'static>(
    reader: &mut Reader<T>,
    poller: &mut Poller,
    count: usize,
) -> Vec<Done<T>> {
    let (mut done, mut events) = (Vec::new(), Vec::new());
    let deadline = Instant::now() + PATIENCE;
    reader.submit();
    loop {
        while let Some(read) = reader.take_done() {
            done.push(read);
        }
        if done.len() >= count {
            return done;
        }
        assert!(Instant::now() < deadline, "{} of {count} reads came back", done.len());
        poller.wait(&mut events, Some(PATIENCE)).unwrap();
        assert!(events.iter().all(|event| event.token == Token(7)));
    }
}

fn read<T>(file: &Arc<File>, offset: u64, gaps: &[Range<usize>], tag: T) -> FileRead<T> {
    let len = gaps.last().map_or(0, |gap| gap.end) + 3;
    FileRead { file: file.clone(), offset, buffer: vec![b'.'; len], gaps: gaps.to_vec(), tag }
}

#[test]
fn gaps_are_filled_and_what_stands_between_them_is_left() {
    let content = pattern(LEN);
    let (_directory, file) = file(&content);
    for (mut reader, mut poller) in readers() {
        make_cold(&file);
        reader.start(read(&file, 8192, &[2..5000, 5000..5000, 5010..9000], ()));
        let (read, result) = wait(&mut reader, &mut poller, 1).pop().unwrap();
        result.unwrap();
        assert_eq!((&read.buffer[..2], &read.buffer[5000..5010]), (&b".."[..], &[b'.'; 10][..]));
        assert!(read.buffer[2..5000] == content[8192..8192 + 4998]);
        assert!(read.buffer[5010..9000] == content[8192 + 4998..8192 + 4998 + 3990]);
        assert_eq!(read.buffer[9000..], [b'.'; 3]);
    }
}

#[test]
fn as_many_reads_as_there_may_be_come_back_each_with_its_octets() {
    let content = pattern(LEN);
    let (_directory, file) = file(&content);
    for (mut reader, mut poller) in readers() {
        make_cold(&file);
        for tag in 0..READS_MAX {
            reader.start(read(&file, tag as u64 * 4096, &[0..4096], tag));
        }
        assert!(!reader.has_room());
        let done = wait(&mut reader, &mut poller, READS_MAX);
        assert_eq!((done.len(), reader.under_way()), (READS_MAX, 0));
        for (read, result) in done {
            result.unwrap();
            assert!(read.buffer[..4096] == content[read.tag * 4096..][..4096], "{}", read.tag);
        }
    }
}

#[test]
fn a_file_that_is_too_short_is_an_end_and_not_zeros() {
    let (_directory, file) = file(&pattern(5000));
    for (mut reader, mut poller) in readers() {
        for (offset, tag) in [(4096, 'a'), (5000, 'b'), (1 << 40, 'c')] {
            reader.start(read(&file, offset, &[0..1000], tag));
        }
        for (read, result) in wait(&mut reader, &mut poller, 3) {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{}", read.tag);
        }
    }
}

#[test]
fn errors_of_the_system_are_told() {
    // Nothing is mapped at address 0, and reading it is an I/O error.
    let file = Arc::new(File::open("/proc/self/mem").unwrap());
    for (mut reader, mut poller) in readers() {
        reader.start(read(&file, 0, &[0..100], ()));
        let (_, result) = wait(&mut reader, &mut poller, 1).pop().unwrap();
        assert_eq!(result.unwrap_err().raw_os_error(), Some(5));
    }
}

#[test]
fn advice_brings_a_file_into_memory() {
    let (_directory, file) = file(&pattern(LEN));
    for (mut reader, _poller) in readers::<()>() {
        if !make_cold(&file) {
            return;
        }
        reader.advise(file.clone(), 0..LEN as u64);
        reader.submit();
        let deadline = Instant::now() + PATIENCE;
        let mut buffer = vec![0; LEN];
        while read_cached(&file, &mut [IoSliceMut::new(&mut buffer)], 0).ok() != Some(LEN) {
            assert!(Instant::now() < deadline);
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_reader_is_dropped_with_reads_under_way() {
    let (_directory, file) = file(&pattern(LEN));
    for (mut reader, _poller) in readers() {
        make_cold(&file);
        for tag in 0..READS_MAX {
            reader.start(read(&file, 0, &[0..LEN], tag));
        }
        reader.submit();
        drop(reader);
    }
    assert_eq!(Arc::strong_count(&file), 1, "every read has ended");
}

#[test]
fn what_is_cached_is_read_at_once_and_what_is_not_is_refused() {
    let content = pattern(LEN);
    let (_directory, file) = file(&content);
    if !make_cold(&file) {
        return;
    }
    let mut buffer = [0; 300];
    let cold = read_cached(&file, &mut [IoSliceMut::new(&mut buffer)], 70_000).unwrap_err();
    assert_eq!(cold.kind(), ErrorKind::WouldBlock);
    read_waiting(&file, &mut [IoSliceMut::new(&mut buffer)], 70_000).unwrap();
    let (first, second) = buffer.split_at_mut(100);
    let mut places = [IoSliceMut::new(first), IoSliceMut::new(&mut []), IoSliceMut::new(second)];
    assert_eq!(read_cached(&file, &mut places, 70_000).unwrap(), 300);
    assert!(buffer == content[70_000..70_300]);
    let end = read_cached(&file, &mut [IoSliceMut::new(&mut buffer)], LEN as u64).unwrap();
    assert_eq!(end, 0);
}

#[test]
fn a_file_system_that_cannot_tell_is_not_asked_what_it_is() {
    let memory =
        File::from(rustix::fs::memfd_create("f", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
    (&memory).write_all(b"octets").unwrap();
    let mut octets = [0; 6];
    let flags = ReadWriteFlags::NOWAIT;
    let kernel = rustix::io::preadv2(&memory, &mut [IoSliceMut::new(&mut octets)], 0, flags);
    let read = read_nowait(&memory, false, &mut [IoSliceMut::new(&mut octets)], 0);
    match kernel {
        Err(Errno::OPNOTSUPP) => assert_eq!(read.unwrap_err().kind(), ErrorKind::WouldBlock),
        told => assert_eq!(read.unwrap(), told.unwrap()),
    }
    assert!(is_in_memory(&memory));
    octets = [0; 6];
    assert_eq!(read_cached(&memory, &mut [IoSliceMut::new(&mut octets)], 0).unwrap(), 6);
    assert_eq!(&octets, b"octets");
    octets = [0; 6];
    assert_eq!(read_nowait(&memory, true, &mut [IoSliceMut::new(&mut octets)], 0).unwrap(), 6);
    assert_eq!(&octets, b"octets");
}
