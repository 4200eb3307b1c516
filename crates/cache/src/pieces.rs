//! Pieces of a content that are read ahead into memory of this process, past the kernel's.
//!
//! Who reads a large file from one end to the other reads each byte once, so there is no use in
//! the kernel keeping it: it would take the kernel a page for each 4 KiB, and this process a copy
//! more. A piece is read straight from the disk (`O_DIRECT`) where the file system can do that, and
//! handed to whoever comes for it. Its memory is bounded for all contents of a process together.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use byname_io::memory::{HALF_BYTES, HugeHalf};
use byname_security::tree::UNIT_BYTES;

use crate::entry::BLOCK_BYTES;

/// Units of the longest piece: 1 MiB.
pub(crate) const PIECE_UNITS_MAX: u64 = 128;
/// Pieces that are in memory at once, for all readers of a process.
const BUFFERS_MAX: usize = 64;
/// Octets of the longest piece, and up to which one has a buffer of its own length.
const LONG_BYTES: usize = PIECE_UNITS_MAX as usize * UNIT_BYTES;
const SHORT_BYTES: usize = LONG_BYTES / 2;
const _: () = assert!(LONG_BYTES <= HALF_BYTES);
/// Long buffers kept for further pieces: new ones have to be zeroed by the kernel. Each may keep a
/// page of twice its length.
const SPARES_MAX: usize = 16;

/// What is protected is whole after each change, also by a thread that panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory for pieces.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    spares: Mutex<Vec<HugeHalf>>,
    taken: AtomicUsize,
    /// Pieces by age: the oldest that nobody has come for leaves where there is no more memory.
    pieces: Mutex<VecDeque<Weak<Piece>>>,
}

impl Buffers {
    /// Memory for a piece of so many octets, and what alignment takes; `None` if there is no more.
    pub(crate) fn take(self: &Arc<Self>, length: usize, piece: &Arc<Piece>) -> Option<Buffer> {
        let mut pieces = lock(&self.pieces);
        for _ in 0..pieces.len() {
            if self.taken.load(Ordering::Relaxed) < BUFFERS_MAX {
                break;
            }
            if let Some(oldest) = pieces.pop_front().and_then(|oldest| oldest.upgrade())
                && !oldest.let_go()
            {
                pieces.push_back(Arc::downgrade(&oldest));
            }
        }
        if self.taken.load(Ordering::Relaxed) >= BUFFERS_MAX {
            return None;
        }
        self.taken.fetch_add(1, Ordering::Relaxed);
        pieces.retain(|piece| piece.strong_count() > 0);
        pieces.push_back(Arc::downgrade(piece));
        drop(pieces);
        let memory = match length > SHORT_BYTES {
            true => self.long().map(Memory::Long),
            false => None,
        };
        let memory = memory.unwrap_or_else(|| Memory::short(length));
        Some(Buffer { memory: Some(memory), length, owner: Arc::clone(self) })
    }

    /// A long buffer that was used before, or half of a new page. The other half is kept.
    fn long(&self) -> Option<HugeHalf> {
        let mut spares = lock(&self.spares);
        if spares.is_empty() {
            spares.extend(HugeHalf::pair().into_iter().flatten());
        }
        spares.pop()
    }
}

#[derive(Debug)]
enum Memory {
    Long(HugeHalf),
    /// Octets, and where the first whole block begins.
    Short(Vec<u8>, usize),
}

impl Memory {
    fn short(length: usize) -> Self {
        let octets = vec![0; length.next_multiple_of(BLOCK_BYTES) + BLOCK_BYTES];
        let start = octets.as_ptr().align_offset(BLOCK_BYTES).min(BLOCK_BYTES);
        Memory::Short(octets, start)
    }
}

/// Memory that a disk may write to directly.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// `None` when it is given back.
    memory: Option<Memory>,
    length: usize,
    owner: Arc<Buffers>,
}

impl Buffer {
    /// The place to be filled: a whole number of blocks.
    fn place(&mut self) -> &mut [u8] {
        let end = self.length.next_multiple_of(BLOCK_BYTES);
        match &mut self.memory {
            Some(Memory::Long(octets)) => &mut octets[..end],
            Some(Memory::Short(octets, start)) => &mut octets[*start..*start + end],
            None => &mut [],
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.memory {
            Some(Memory::Long(octets)) => &octets[..self.length],
            Some(Memory::Short(octets, start)) => &octets[*start..*start + self.length],
            None => &[],
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.owner.taken.fetch_sub(1, Ordering::Relaxed);
        if let Some(Memory::Long(octets)) = self.memory.take() {
            let mut spares = lock(&self.owner.spares);
            if spares.len() < SPARES_MAX {
                spares.push(octets);
            }
        }
    }
}

#[derive(Debug)]
enum State {
    Reading(Vec<Waker>),
    Here(Arc<Buffer>),
    Failed,
}

/// Neighbouring units that are being read, or were.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) units: Range<u64>,
    state: Mutex<State>,
}

impl Piece {
    pub(crate) fn new(units: Range<u64>) -> Self {
        Piece { units, state: Mutex::new(State::Reading(Vec::new())) }
    }

    /// Fills the piece by `read`, which says how much of its place it has filled, and tells whoever
    /// waits.
    pub(crate) fn fill(
        &self,
        mut buffer: Buffer,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<()> {
        let done = read(buffer.place());
        let is_full = done.as_ref().is_ok_and(|count| *count >= buffer.length);
        self.settle(is_full.then(|| Arc::new(buffer)));
        done.map(drop)
    }

    /// Its memory is needed by others: whoever comes for it later has to ask elsewhere. False if it
    /// is in use.
    fn let_go(&self) -> bool {
        let mut state = lock(&self.state);
        match &*state {
            State::Here(buffer) if Arc::strong_count(buffer) == 1 => {
                let gone = std::mem::replace(&mut *state, State::Failed);
                drop(state);
                drop(gone);
                true
            }
            State::Failed => true,
            _ => false,
        }
    }

    /// Nothing comes of it.
    pub(crate) fn fail(&self) {
        self.settle(None);
    }

    fn settle(&self, buffer: Option<Arc<Buffer>>) {
        let mut state = lock(&self.state);
        let State::Reading(waiting) = &mut *state else { return };
        let waiting = std::mem::take(waiting);
        *state = buffer.map_or(State::Failed, State::Here);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Arc<Buffer>>> {
        match &mut *lock(&self.state) {
            State::Here(buffer) => Poll::Ready(Some(Arc::clone(buffer))),
            State::Failed => Poll::Ready(None),
            State::Reading(waiting) => {
                if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                    waiting.push(context.waker().clone());
                }
                Poll::Pending
            }
        }
    }
}

/// Units of a piece.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) piece: Arc<Piece>,
    pub(crate) units: Range<u64>,
}

/// Units that come from the disk.
#[must_use]
#[derive(Debug)]
pub struct ComingUnits {
    pub(crate) parts: Vec<Part>,
    pub(crate) unit_bytes: usize,
}

impl Future for ComingUnits {
    type Output = Option<Vec<FoundUnits>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut found = Vec::with_capacity(self.parts.len());
        for Part { piece, units } in &self.parts {
            match piece.poll(context) {
                Poll::Ready(Some(buffer)) => {
                    let start = (units.start - piece.units.start) as usize * self.unit_bytes;
                    let end = (units.end - piece.units.start) as usize * self.unit_bytes;
                    let range = start..end.min(buffer.length);
                    found.push(FoundUnits { first: units.start, buffer, range });
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Some(found))
    }
}

/// Neighbouring units as they were found on the disk. Nothing about them is verified.
#[derive(Debug)]
pub struct FoundUnits {
    /// Index of the first.
    pub first: u64,
    buffer: Arc<Buffer>,
    range: Range<usize>,
}

impl FoundUnits {
    /// Their bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer.bytes()[self.range.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coming(piece: &Arc<Piece>, units: Range<u64>) -> ComingUnits {
        let parts = vec![Part { piece: Arc::clone(piece), units }];
        ComingUnits { parts, unit_bytes: 10 }
    }

    fn polled(coming: &mut ComingUnits) -> Poll<Option<Vec<FoundUnits>>> {
        Pin::new(coming).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn who_comes_for_a_piece_gets_the_units_asked_for() {
        let (buffers, piece) = (Arc::<Buffers>::default(), Arc::new(Piece::new(5..9)));
        let mut waiting = coming(&piece, 6..9);
        assert!(polled(&mut waiting).is_pending());
        let buffer = buffers.take(35, &piece).expect("memory");
        let filled = piece.fill(buffer, |place| {
            assert!(place.len() == BLOCK_BYTES && place.as_ptr().align_offset(BLOCK_BYTES) == 0);
            place[..35].fill(7);
            place[12] = 8;
            Ok(35)
        });
        filled.expect("read");
        let Poll::Ready(Some(found)) = polled(&mut waiting) else { panic!("it is there") };
        assert_eq!((found[0].first, found[0].bytes().len(), found[0].bytes()[2]), (6, 25, 8));
    }

    #[test]
    fn what_is_short_or_fails_is_said_to_whoever_waits() {
        let buffers = Arc::<Buffers>::default();
        for read in [Ok(34), Err(io::ErrorKind::Other.into())] {
            let piece = Arc::new(Piece::new(0..4));
            let mut waiting = coming(&piece, 0..4);
            assert!(polled(&mut waiting).is_pending());
            let _ = piece.fill(buffers.take(35, &piece).expect("memory"), |_| read);
            assert!(matches!(polled(&mut waiting), Poll::Ready(None)));
        }
    }

    #[test]
    fn there_is_so_much_memory_and_the_oldest_that_nobody_wants_leaves() {
        let buffers = Arc::<Buffers>::default();
        let piece = || Arc::new(Piece::new(0..PIECE_UNITS_MAX));
        let take = |piece: &Arc<Piece>| buffers.take(LONG_BYTES, piece);
        let held: Vec<_> = (0..BUFFERS_MAX).map(|_| piece()).collect();
        for piece in &held {
            piece.fill(take(piece).expect("memory"), |_| Ok(LONG_BYTES)).expect("read");
        }
        let Poll::Ready(wanted) = polled(&mut coming(&held[0], 0..1)) else { panic!("there") };
        let late = piece();
        let one_more = take(&late).expect("that of the second");
        assert!(matches!(polled(&mut coming(&held[1], 0..1)), Poll::Ready(None)));
        assert!(matches!(polled(&mut coming(&held[2], 0..1)), Poll::Ready(Some(_))));
        assert!(wanted.is_some(), "who has it keeps it");
        drop((wanted, one_more, held));
        assert_eq!(lock(&buffers.spares).len(), SPARES_MAX);
        assert_eq!(buffers.taken.load(Ordering::Relaxed), 0);
    }
}
