//! Carries out the engine's operations: what is quick at once, the rest through the workers.

mod blocking;
mod helpers;
mod readahead;
mod reading;
mod sending;

use std::collections::HashMap;
use std::io::IoSliceMut;
use std::sync::{Arc, Weak};

use byname_io::{Connection, Waker};
use byname_transfer::server::{
    Completion, FaceId, FileState, Handle, Hashed, KeptOf, Located, Op, OpId, SegmentBurst,
    SegmentSent, SignSegment, SignedSegment,
};

pub(crate) use helpers::Framed;
use helpers::Helpers;
use readahead::Readahead;
pub(crate) use reading::{ReadBurst, Reading};
use sending::{AtOnce, send_ready};

use crate::backend::{Backend, BackendFile, Found, LocateError};
use crate::content::{Content, InMemory};
use crate::error::StoreError;
use crate::hashing::{FILE_BYTES_MAX, LargeFile, flat, small_tree};
use crate::segment_signing::SegmentSource;
use crate::snapshot::manifest::ManifestOrder;
use crate::state::{RootRecord, is_small};
use crate::summing::SummingThread;
use crate::workers::{KeptOrder, LocatedPath, WorkerJob, WorkerResult, Workers};

/// Files up to this size are hashed at once: waking a thread would take as long.
const INLINE_BYTES_MAX: u64 = 128 << 10;

/// An open file or tree.
enum Open {
    File(Arc<dyn BackendFile>),
    Tree(Arc<dyn Content>),
}

impl Open {
    fn content(&self) -> Arc<dyn Content> {
        match self {
            Self::File(file) => file.clone(),
            Self::Tree(tree) => tree.clone(),
        }
    }
}

pub(crate) struct Executor {
    /// Of the mounts, in their order.
    backends: Vec<Arc<dyn Backend>>,
    workers: Workers,
    reading: Reading,
    open: HashMap<Handle, Open>,
    /// Of files that had to be fetched from the disk.
    readahead: HashMap<Handle, Readahead>,
    /// Large files being hashed.
    hashing: HashMap<FileState, Weak<LargeFile>>,
    next_handle: u64,
    helpers: Option<Helpers>,
    summing: Option<SummingThread>,
}

impl Executor {
    /// `summing`: computes checksums of files that are looked up.
    pub(crate) fn new(
        backends: Vec<Arc<dyn Backend>>,
        workers: Workers,
        reading: Reading,
        summing: Option<SummingThread>,
    ) -> Self {
        Self {
            backends,
            workers,
            reading,
            open: HashMap::new(),
            readahead: HashMap::new(),
            hashing: HashMap::new(),
            next_handle: 0,
            helpers: None,
            summing,
        }
    }

    /// Carries out an operation. The completion comes at once or later from
    /// [`Executor::take_done`].
    pub(crate) fn execute(&mut self, id: OpId, op: Op) -> Option<Completion> {
        match op {
            Op::Locate { mount, path } => {
                let backend = self.backends[mount].clone();
                if !backend.is_ready(&path) {
                    self.workers.push(WorkerJob::Locate { op: id, backend, path });
                    return None;
                }
                let found = backend.locate(&path);
                Some(Completion::Located(self.located(LocatedPath { backend, path, found })))
            }
            Op::List { mount, path, bytes_max } => {
                let backend = self.backends[mount].clone();
                self.workers.push(WorkerJob::List { op: id, backend, path, bytes_max });
                None
            }
            Op::Manifest { mount, path, name, bytes_max, quiet, signature_bytes } => {
                let backend = self.backends[mount].clone();
                let attributes = self.workers.uses_attributes();
                let order = ManifestOrder {
                    backend,
                    path,
                    name,
                    bytes_max,
                    quiet,
                    signature_bytes,
                    attributes,
                };
                self.workers.push(WorkerJob::Manifest { op: id, order: Box::new(order) });
                None
            }
            Op::ReadKept { mount, path, of, bytes_max } => {
                self.read_kept(id, (mount, path), of, bytes_max)
            }
            Op::Recall { key, state } => {
                self.workers.push(WorkerJob::Recall { op: id, key, state });
                None
            }
            Op::Announce { key, record } => {
                self.workers.announce(id, key, record);
                None
            }
            Op::Hash { file, state } => self.hash(id, file, state).map(Completion::Hashed),
            Op::OpenTree { file, state } => self.open_tree(id, file, state),
            Op::SignSegment(order) => self.sign_segment(id, order),
            Op::Close { handle } => {
                let closed = self.open.remove(&handle);
                self.readahead.remove(&handle);
                if let Some(Open::File(file)) = closed {
                    self.store_root_of_closed(file);
                }
                None
            }
        }
    }

    /// From now on so many threads read for readers besides the serving one.
    pub(crate) fn help(&mut self, count: usize, waker: Waker) -> Result<(), StoreError> {
        self.helpers = Some(Helpers::start(count, waker)?);
        Ok(())
    }

    fn read_kept(
        &mut self,
        op: OpId,
        (mount, path): (usize, Vec<u8>),
        of: KeptOf,
        bytes_max: usize,
    ) -> Option<Completion> {
        let is_manifest = match of {
            KeptOf::File(handle) => {
                let Some(file) = self.file(handle) else { return Some(Completion::Kept(None)) };
                self.workers.push(WorkerJob::KeptFile { op, file, bytes_max });
                return None;
            }
            KeptOf::Listing => false,
            KeptOf::Manifest => true,
        };
        let backend = self.backends[mount].clone();
        let order = Box::new(KeptOrder { backend, path, is_manifest, bytes_max });
        self.workers.push(WorkerJob::Kept { op, order });
        None
    }

    /// Completions of operations that took longer.
    pub(crate) fn take_done(&mut self) -> Vec<(OpId, Completion)> {
        let mut completions = Vec::new();
        for done in self.workers.take_done() {
            completions.push(match done {
                WorkerResult::Completion(id, completion) => (id, completion),
                WorkerResult::Located(id, located) => {
                    (id, Completion::Located(self.located(*located)))
                }
                WorkerResult::Hashing(state, large) => {
                    self.hashing.retain(|_, hashing| hashing.strong_count() > 0);
                    self.hashing.insert(state, large);
                    continue;
                }
                WorkerResult::Tree(id, tree) => {
                    let handle = tree.map(|tree| self.keep(Open::Tree(tree)));
                    (id, Completion::TreeOpened(handle))
                }
            });
        }
        completions
    }

    fn keep(&mut self, open: Open) -> Handle {
        let handle = Handle(self.next_handle);
        self.next_handle += 1;
        self.open.insert(handle, open);
        handle
    }

    fn located(&mut self, located: LocatedPath) -> Located {
        match located.found {
            Ok(Found::File(file)) if file.stat().state.size > FILE_BYTES_MAX => {
                let path = located.backend.describe(&located.path);
                let bytes = file.stat().state.size;
                tracing::warn!(path, bytes, "larger than files that are served (1 PiB)");
                Located::Failed
            }
            Ok(Found::File(file)) => {
                if let Some(summing) = &self.summing {
                    summing.consider(&file);
                }
                Located::File { stat: file.stat(), handle: self.keep(Open::File(file)) }
            }
            Ok(Found::Directory(directory)) => {
                let (stat, changes) = (directory.stat(), directory.changes());
                Located::Directory { stat, changes }
            }
            Ok(Found::Described(described)) => Located::Described(described),
            Err(LocateError::NotFound) => Located::NotFound,
            Err(LocateError::NoPermission) => Located::NoPermission,
            Err(LocateError::Failed(error)) => {
                let path = located.backend.describe(&located.path);
                tracing::warn!(path, %error, "cannot look up");
                Located::Failed
            }
            Err(LocateError::Unavailable(error)) => {
                let path = located.backend.describe(&located.path);
                tracing::debug!(path, %error, "cannot be looked up at present");
                Located::Unavailable
            }
        }
    }

    fn file(&self, handle: Handle) -> Option<Arc<dyn BackendFile>> {
        match self.open.get(&handle)? {
            Open::File(file) => Some(file.clone()),
            Open::Tree(_) => None,
        }
    }

    /// The open file in this state.
    fn file_in(&self, handle: Handle, state: &FileState) -> Option<Arc<dyn BackendFile>> {
        self.file(handle).filter(|file| file.stat().state == *state)
    }

    fn hash(&mut self, op: OpId, handle: Handle, state: FileState) -> Option<Hashed> {
        let Some(file) = self.file_in(handle, &state) else { return Some(Hashed::Changed) };
        if !file.is_unchanged() {
            return Some(Hashed::Changed);
        }
        let is_quick = state.size <= INLINE_BYTES_MAX && !self.workers.uses_attributes();
        if is_quick && is_ready(&*file, state.size) {
            let tree = match small_tree(&*file) {
                Ok(tree) => tree,
                Err(hashed) => return Some(hashed),
            };
            let root = *tree.root.as_bytes();
            self.workers.keep_root(RootRecord { fingerprint: state.fingerprint, root });
            return Some(Hashed::Root(root));
        }
        if is_small(state.size) {
            self.workers.push(WorkerJob::HashSmall { op, file });
            return None;
        }
        let parts = self.workers.count();
        self.workers.push(WorkerJob::BeginHash { op, file, parts });
        None
    }

    fn sign_segment(&self, op: OpId, order: SignSegment) -> Option<Completion> {
        let source = match self.open.get(&order.source) {
            Some(Open::File(file)) => {
                let hashing = self.hashing.get(&order.state).cloned().unwrap_or_default();
                SegmentSource::File(file.clone(), hashing)
            }
            Some(Open::Tree(tree)) => SegmentSource::Tree(tree.clone()),
            None => return Some(Completion::Signed(SignedSegment::Failed)),
        };
        self.workers.push(WorkerJob::Sign { op, source, order: Box::new(order) });
        None
    }

    fn open_tree(&mut self, op: OpId, handle: Handle, state: FileState) -> Option<Completion> {
        let Some(file) = self.file_in(handle, &state) else {
            return Some(Completion::TreeOpened(None));
        };
        if state.size > INLINE_BYTES_MAX || !is_ready(&*file, state.size) {
            self.workers.push(WorkerJob::OpenTree { op, file });
            return None;
        }
        let tree = small_tree(&*file).ok();
        let handle = tree.map(|tree| self.keep(Open::Tree(Arc::new(InMemory(flat(tree))))));
        Some(Completion::TreeOpened(handle))
    }

    /// Sends segments of one source. What is in memory leaves at once, what became of it is added
    /// to `done`; the rest comes back with [`Executor::take_read`].
    pub(crate) fn send(
        &mut self,
        burst: SegmentBurst,
        connection: &mut Connection,
        done: &mut Vec<(SegmentBurst, SegmentSent)>,
    ) {
        let Some(content) = self.open.get(&burst.source()).map(Open::content) else {
            return done.push((burst, SegmentSent::Failed));
        };
        let at_once = send_ready(&*content, &burst, connection);
        self.settle(&content, burst, at_once, done);
    }

    /// Gives a burst to another thread, if there is one with time for it.
    pub(crate) fn hand_over(&mut self, burst: SegmentBurst) -> Option<SegmentBurst> {
        let Some(helpers) = &mut self.helpers else { return Some(burst) };
        let content = self.open.get(&burst.source()).map(Open::content);
        let Some(content) = content else { return Some(burst) };
        helpers.take(content, burst)
    }

    /// Has the root of a file that nobody reads any more stored with it, if that is wanted. It
    /// changes the file's state, so it would end the version for those who read.
    fn store_root_of_closed(&self, file: Arc<dyn BackendFile>) {
        let state = file.stat().state;
        let is_it = |open: &Open| matches!(open, Open::File(it) if it.stat().state == state);
        if self.workers.uses_attributes() && !self.open.values().any(is_it) {
            self.workers.push(WorkerJob::StoreRoot { file });
        }
    }

    /// Stores the roots of files that are open with them, if that is wanted. To be called when
    /// nobody reads any more.
    pub(crate) fn store_roots(&self) {
        if !self.workers.uses_attributes() {
            return;
        }
        for open in self.open.values() {
            if let Open::File(file) = open {
                self.workers.store_root(&**file);
            }
        }
    }

    /// Bursts that other threads than the serving one were given.
    pub(crate) fn handed_over(&self) -> u64 {
        self.helpers.as_ref().map_or(0, Helpers::taken)
    }

    /// A burst that another thread has read.
    pub(crate) fn take_framed(&mut self) -> Option<Framed> {
        self.helpers.as_mut()?.take_done()
    }

    /// Adds to `done` what became of such a burst, whose packets have been sent.
    pub(crate) fn finish_framed(
        &mut self,
        framed: Framed,
        done: &mut Vec<(SegmentBurst, SegmentSent)>,
    ) {
        let Framed { content, burst, at_once, packets } = framed;
        if let Some(helpers) = &mut self.helpers {
            helpers.recycle(packets);
        }
        self.settle(&content, burst, at_once, done);
    }

    /// Counts the segments that were sent; the others have to wait for the disk.
    fn settle(
        &mut self,
        content: &Arc<dyn Content>,
        mut burst: SegmentBurst,
        at_once: AtOnce,
        done: &mut Vec<(SegmentBurst, SegmentSent)>,
    ) {
        if at_once.has_changed {
            return done.push((burst, SegmentSent::Changed));
        }
        self.read_ahead(burst.source(), content, &burst, !at_once.cold.is_empty());
        // From behind, so that places stay right.
        let (mut cold, mut failed) = (at_once.cold, at_once.failed);
        while let Some(last) =
            cold.last().map(|run| run.start).max(failed.last().map(|run| run.start))
        {
            if cold.last().is_some_and(|run| run.start == last) {
                let run = cold.pop().expect("it was just seen");
                self.reading.push(content.clone(), burst.take_out(run));
            } else {
                let run = failed.pop().expect("it was just seen");
                done.push((burst.take_out(run), SegmentSent::Failed));
            }
        }
        if !burst.is_empty() {
            done.push((burst, SegmentSent::Sent));
        }
    }

    fn read_ahead(
        &mut self,
        source: Handle,
        content: &Arc<dyn Content>,
        burst: &SegmentBurst,
        is_cold: bool,
    ) {
        if !is_cold && !self.readahead.contains_key(&source) {
            return;
        }
        let Some(Open::File(file)) = self.open.get(&source) else { return };
        let size = file.stat().state.size;
        let offsets = burst.segments().map(|segment| segment.offset);
        let ends = burst.segments().map(|segment| segment.offset + segment.len as u64);
        let (Some(start), Some(end)) = (offsets.min(), ends.max()) else { return };
        // Segments from all over the file are no stream.
        let is_run = end - start <= 2 * burst.segments().map(|it| it.len as u64).sum::<u64>();
        let readahead = self.readahead.entry(source).or_default();
        if is_run && let Some(part) = readahead.on_request(start..end, is_cold, size) {
            self.reading.advise(&**content, part);
        }
    }

    /// Begins reads for faces that have room. To be called when something was sent or has come.
    pub(crate) fn begin_reads(&mut self, has_room: &dyn Fn(FaceId) -> bool) {
        self.reading.begin(has_room);
    }

    /// True if so much has to be read for a face that its requests should wait.
    pub(crate) fn is_behind(&self, face: FaceId) -> bool {
        self.reading.is_behind(face)
    }

    /// A burst, or a part of one, that had to wait for the disk and is there now.
    pub(crate) fn take_read(&mut self) -> Option<ReadBurst> {
        self.reading.take_done()
    }

    /// Sends such a burst, if its face is still there.
    pub(crate) fn finish_read(
        &mut self,
        read: ReadBurst,
        connection: Option<&mut Connection>,
    ) -> (SegmentBurst, SegmentSent) {
        self.reading.finish(read, connection)
    }
}

/// True if reading a small file would not have to wait.
fn is_ready(file: &dyn BackendFile, size: u64) -> bool {
    // One octet of each page says it: what is looked at is not copied twice.
    const PAGE_BYTES: u64 = 4096;
    (0..size).step_by(PAGE_BYTES as usize).all(|at| {
        let mut octet = [0];
        file.read_ready(&mut [IoSliceMut::new(&mut octet)], at).is_ok()
    })
}
