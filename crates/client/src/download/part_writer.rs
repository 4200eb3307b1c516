//! Part writer: verified bytes go to a part file through its [`DiskQueue`].
//!
//! Where the queue is on another thread, bytes are copied once into a buffer that is handed over
//! and comes back for reuse. A job asks for no more content while [`PartWriter::has_room`] says no,
//! so what waits is bounded by [`QUEUED_BYTES_MAX`] and what was in flight then.
//!
//! Invariants: bytes are written in the order of their coming; after an error nothing more is
//! written, and the file cannot be finished; it is closed, and so unlocked, behind the last write.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use byname_security::tree::UNIT_BYTES;

use crate::download::disk_queue::{DiskQueue, DiskTask, Wake};
use crate::download::part_file::{PartFile, Target, read_unit};
use crate::error::ClientError;

/// Bytes that wait for the disk, above which no more are asked for.
pub(crate) const QUEUED_BYTES_MAX: usize = 8 << 20;
/// Buffers that are kept for reuse.
const SPARE_MAX: usize = 16;

/// Shared with the steps.
struct WriteState {
    queued_bytes: AtomicUsize,
    /// `None` when the file is closed or was taken out. Only steps lock it.
    part: Mutex<Option<PartFile>>,
    failure: Mutex<Failure>,
    spare: Mutex<Vec<Vec<u8>>>,
}

#[derive(Default)]
struct Failure {
    is_broken: bool,
    /// Until it is reported.
    error: Option<io::Error>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WriteState {
    fn write(&self, offset: u64, bytes: &[u8]) {
        if lock(&self.failure).is_broken {
            return;
        }
        let Some(part) = &mut *lock(&self.part) else { return };
        if let Err(error) = part.write(offset, bytes) {
            *lock(&self.failure) = Failure { is_broken: true, error: Some(error) };
        }
    }

    /// The step of a buffer.
    fn write_buffer(&self, offset: u64, mut buffer: Vec<u8>, engine: &Wake<'_>) {
        self.write(offset, &buffer);
        let length = buffer.len();
        buffer.clear();
        let mut spare = lock(&self.spare);
        if spare.len() < SPARE_MAX {
            spare.push(buffer);
        }
        drop(spare);
        let before = self.queued_bytes.fetch_sub(length, Ordering::AcqRel);
        let has_room_again = before >= QUEUED_BYTES_MAX && before - length < QUEUED_BYTES_MAX;
        if has_room_again || lock(&self.failure).error.is_some() {
            engine.wake();
        }
    }
}

/// The part file of a download. It is closed when this is dropped.
pub(crate) struct PartWriter {
    disk: DiskQueue,
    target: Target,
    state: Arc<WriteState>,
}

impl PartWriter {
    pub(crate) fn new(part: PartFile, disk: DiskQueue) -> Self {
        let target = part.target().clone();
        let state = WriteState {
            queued_bytes: AtomicUsize::new(0),
            part: Mutex::new(Some(part)),
            failure: Mutex::default(),
            spare: Mutex::default(),
        };
        PartWriter { disk, target, state: Arc::new(state) }
    }

    /// True if more bytes should be asked for.
    pub(crate) fn has_room(&self) -> bool {
        self.state.queued_bytes.load(Ordering::Acquire) < QUEUED_BYTES_MAX
    }

    /// Writes verified bytes.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) {
        if self.disk.is_immediate() {
            return self.state.write(offset, bytes);
        }
        let mut buffer = lock(&self.state.spare).pop().unwrap_or_default();
        buffer.extend_from_slice(bytes);
        self.state.queued_bytes.fetch_add(buffer.len(), Ordering::AcqRel);
        let state = Arc::clone(&self.state);
        self.disk.post(move |engine| state.write_buffer(offset, buffer, &engine));
    }

    /// The error that ended the writing, once.
    pub(crate) fn take_error(&self) -> Option<ClientError> {
        let source = lock(&self.state.failure).error.take()?;
        Some(self.target.error(source))
    }

    /// Reads units of the part file, or of the file that stands at the target.
    pub(crate) fn read(&self, mut units: LocalUnits) -> DiskTask<LocalUnits> {
        let (state, target) = (Arc::clone(&self.state), self.target.clone());
        self.disk.submit(move || {
            if let Some(part) = &*lock(&state.part) {
                units.read(&target, part.file());
            }
            Ok(units)
        })
    }

    /// Does the last that is to be done with the file, behind all writes.
    pub(crate) fn finish<T: Send + 'static>(
        self,
        act: impl FnOnce(PartFile) -> Result<T, ClientError> + Send + 'static,
    ) -> DiskTask<T> {
        let (state, target) = (Arc::clone(&self.state), self.target.clone());
        self.disk.submit(move || {
            let failure = std::mem::take(&mut *lock(&state.failure));
            let part = lock(&state.part).take().filter(|_| !failure.is_broken);
            let error = failure.error.unwrap_or_else(|| io::ErrorKind::Other.into());
            act(part.ok_or_else(|| target.error(error))?)
        })
    }

    /// Removes the file: nothing in it is worth keeping.
    pub(crate) fn discard(self) {
        let state = Arc::clone(&self.state);
        self.disk.post(move |_| {
            let part = lock(&state.part).take();
            part.into_iter().for_each(PartFile::discard);
        });
    }
}

impl Drop for PartWriter {
    fn drop(&mut self) {
        let state = Arc::clone(&self.state);
        // Closing may take its time as well.
        self.disk.post(move |_| drop(lock(&state.part).take()));
    }
}

/// Origin of a unit on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalOrigin {
    /// An earlier run may have left it in the part file.
    Part,
    /// The older version that stands at the target may have the same.
    Older,
    /// It is not looked for.
    Nowhere,
}

/// Some units on the disk, with their bytes once they were read.
#[derive(Default)]
pub(crate) struct LocalUnits {
    pub(crate) older: Option<Arc<File>>,
    /// Number, length as a whole, and origin.
    units: Vec<(u64, usize, LocalOrigin)>,
    /// Bytes that were found of each.
    found: Vec<usize>,
    buffer: Vec<u8>,
}

impl LocalUnits {
    /// The same memory for others.
    pub(crate) fn clear(&mut self) {
        self.older = None;
        self.units.clear();
        self.found.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    pub(crate) fn push(&mut self, unit: u64, length: usize, origin: LocalOrigin) {
        self.units.push((unit, length.min(UNIT_BYTES), origin));
    }

    fn read(&mut self, target: &Target, part: &File) {
        let LocalUnits { older, units, found, buffer } = self;
        buffer.resize(units.len() * UNIT_BYTES, 0);
        for ((unit, length, origin), room) in units.iter().zip(buffer.chunks_mut(UNIT_BYTES)) {
            let file = match origin {
                LocalOrigin::Part => Some(part),
                LocalOrigin::Older => older.as_deref(),
                LocalOrigin::Nowhere => None,
            };
            let room = &mut room[..*length];
            found.push(file.map_or(0, |file| read_unit(target, file, *unit, room).len()));
        }
    }

    /// Takes the unit number `place`: its number, origin, and what was found of it.
    pub(crate) fn get(&self, place: usize) -> Option<(u64, LocalOrigin, &[u8])> {
        let (unit, _, origin) = *self.units.get(place)?;
        let found = self.found.get(place).copied().unwrap_or(0);
        let start = place * UNIT_BYTES;
        Some((unit, origin, self.buffer.get(start..start + found)?))
    }
}
