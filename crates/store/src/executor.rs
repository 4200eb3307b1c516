//! Carries out the engine's operations: what is quick at once, the rest through the workers.

mod ahead;
mod helpers;
mod reading;
mod sending;

use std::collections::HashMap;
use std::fs::File;
use std::io::IoSliceMut;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use byname_io::{Attachments, Connection, Waker, files};
use byname_transfer::server::{
    Completion, FaceId, FileState, Handle, Hashed, KeptOf, Located, Op, OpId, SegmentBurst,
    SegmentSent, SignSegment, SignedSegment,
};

use ahead::Ahead;
pub(crate) use helpers::Framed;
use helpers::Helpers;
pub(crate) use reading::{ReadBurst, Reading};
use sending::{AtOnce, Stored, send_cached, send_levels};

use crate::beneath::{Found, Root, WalkError};
use crate::error::StoreError;
use crate::hashing::{LargeFile, is_same, small_tree};
use crate::made::Source;
use crate::snapshot::manifest;
use crate::state::{RootRecord, is_small};
use crate::workers::{Done, Job, KeptOrder, OpenedTree, Sought, Workers, flat};

/// Files up to this size are hashed at once: waking a thread would take as long.
const INLINE_BYTES_MAX: u64 = 128 << 10;

/// What a handle stands for.
enum Open {
    File { file: Arc<File>, identity: FileState },
    Tree(Arc<File>),
    Levels(Arc<Vec<u8>>),
}

pub(crate) struct Executor {
    roots: Vec<Arc<Root>>,
    workers: Workers,
    reading: Reading,
    open: HashMap<Handle, Open>,
    /// Of files that had to be fetched from the disk.
    ahead: HashMap<Handle, Ahead>,
    /// Large files being hashed.
    hashing: HashMap<FileState, Weak<LargeFile>>,
    next_handle: u64,
    /// Where packets of copies lie; for mirrors.
    attachments: Option<Attachments>,
    helpers: Option<Helpers>,
}

impl Executor {
    pub(crate) fn new(roots: Vec<Arc<Root>>, workers: Workers, reading: Reading) -> Self {
        Self {
            roots,
            workers,
            reading,
            open: HashMap::new(),
            ahead: HashMap::new(),
            hashing: HashMap::new(),
            next_handle: 0,
            attachments: None,
            helpers: None,
        }
    }

    /// Carries out an operation. The completion comes at once or later from
    /// [`Executor::take_done`].
    pub(crate) fn execute(&mut self, id: OpId, op: Op) -> Option<Completion> {
        match op {
            Op::Locate { mount, path } => {
                let root = self.roots[mount].clone();
                if !root.is_cached(&path) {
                    self.workers.push(Job::Locate { op: id, root, path });
                    return None;
                }
                let found = root.find(&path);
                Some(Completion::Located(self.located(Sought { root, path, found })))
            }
            Op::List { mount, path, bytes_max } => {
                let root = self.roots[mount].clone();
                self.workers.push(Job::List { op: id, root, path, bytes_max });
                None
            }
            Op::Manifest { mount, path, name, bytes_max, quiet, signature_bytes } => {
                let root = self.roots[mount].clone();
                let attributes = self.workers.uses_attributes();
                let order = manifest::Order {
                    root,
                    path,
                    name,
                    bytes_max,
                    quiet,
                    signature_bytes,
                    attributes,
                };
                self.workers.push(Job::Manifest { op: id, order: Box::new(order) });
                None
            }
            Op::ReadKept { mount, path, of, bytes_max } => {
                self.read_kept(id, (mount, path), of, bytes_max)
            }
            Op::Recall { key, state } => {
                self.workers.push(Job::Recall { op: id, key, state });
                None
            }
            Op::Announce { key, record } => {
                self.workers.announce(id, key, record);
                None
            }
            Op::Hash { file, state } => self.hash(id, file, state).map(Completion::Hashed),
            Op::OpenTree { file, state } => self.open_tree(id, file, state),
            Op::SignSegment(order) => self.make_segment(id, order),
            Op::Close { handle } => {
                let closed = self.open.remove(&handle);
                self.ahead.remove(&handle);
                if let Some(Open::File { file, identity }) = closed {
                    self.mark_closed(file, identity);
                }
                None
            }
        }
    }

    /// Reads what was kept with copies from now on.
    pub(crate) fn mirror(&mut self, copies: PathBuf) {
        self.attachments = Some(Attachments::new(copies));
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
        let Some(attachments) = &self.attachments else { return Some(Completion::Kept(None)) };
        let is_manifest = match of {
            KeptOf::File(handle) => {
                let Some(file) = self.file(handle) else { return Some(Completion::Kept(None)) };
                let attachments = attachments.clone();
                self.workers.push(Job::KeptFile { op, file, attachments, bytes_max });
                return None;
            }
            KeptOf::Listing => false,
            KeptOf::Manifest => true,
        };
        let (root, attachments) = (self.roots[mount].clone(), attachments.clone());
        let order = Box::new(KeptOrder { root, path, is_manifest, attachments, bytes_max });
        self.workers.push(Job::Kept { op, order });
        None
    }

    /// Completions of operations that took longer.
    pub(crate) fn take_done(&mut self) -> Vec<(OpId, Completion)> {
        let mut completions = Vec::new();
        for done in self.workers.take_done() {
            completions.push(match done {
                Done::Completion(id, completion) => (id, completion),
                Done::Located(id, sought) => (id, Completion::Located(self.located(*sought))),
                Done::Hashing(identity, large) => {
                    self.hashing.retain(|_, hashing| hashing.strong_count() > 0);
                    self.hashing.insert(identity, large);
                    continue;
                }
                Done::Tree(id, tree) => {
                    let handle = tree.map(|tree| {
                        self.keep(match tree {
                            OpenedTree::File(tree) => Open::Tree(Arc::new(tree.file)),
                            OpenedTree::Memory(levels) => Open::Levels(Arc::new(levels)),
                        })
                    });
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

    fn located(&mut self, sought: Sought) -> Located {
        match sought.found {
            Ok(Found::File { file, stat }) => {
                let open = Open::File { file: Arc::new(file), identity: stat.state };
                Located::File { stat, handle: self.keep(open) }
            }
            Ok(Found::Directory(found)) => Located::Directory { stat: found.stat },
            Err(WalkError::NotFound) => Located::NotFound,
            Err(WalkError::NoPermission) => Located::NoPermission,
            Err(WalkError::Failed(error)) => {
                let path = sought.root.path().join(String::from_utf8_lossy(&sought.path).as_ref());
                tracing::warn!(path = %path.display(), %error, "cannot look up");
                Located::Failed
            }
        }
    }

    fn file(&self, handle: Handle) -> Option<Arc<File>> {
        match self.open.get(&handle)? {
            Open::File { file, .. } => Some(file.clone()),
            _ => None,
        }
    }

    fn hash(&mut self, op: OpId, handle: Handle, identity: FileState) -> Option<Hashed> {
        let Some(file) = self.file(handle) else { return Some(Hashed::Changed) };
        if !is_same(&file, &identity) {
            return Some(Hashed::Changed);
        }
        let is_quick = identity.size <= INLINE_BYTES_MAX && !self.workers.uses_attributes();
        if is_quick && is_in_memory(&file, identity.size) {
            let tree = match small_tree(&file, &identity) {
                Ok(tree) => tree,
                Err(hashed) => return Some(hashed),
            };
            let root = *tree.root.as_bytes();
            self.workers.keep_root(RootRecord { fingerprint: identity.fingerprint, root });
            return Some(Hashed::Root(root));
        }
        if is_small(identity.size) {
            self.workers.push(Job::HashSmall { op, file, identity });
            return None;
        }
        let parts = self.workers.count();
        self.workers.push(Job::BeginHash { op, file, identity, parts });
        None
    }

    fn make_segment(&self, op: OpId, order: SignSegment) -> Option<Completion> {
        let source = match self.open.get(&order.source) {
            Some(Open::File { file, .. }) => {
                let hashing = self.hashing.get(&order.state).cloned().unwrap_or_default();
                Source::File(file.clone(), hashing)
            }
            Some(Open::Tree(tree)) => Source::Tree(tree.clone()),
            Some(Open::Levels(levels)) => Source::Levels(levels.clone()),
            None => return Some(Completion::Signed(SignedSegment::Failed)),
        };
        self.workers.push(Job::Make { op, source, order: Box::new(order) });
        None
    }

    fn open_tree(&mut self, op: OpId, handle: Handle, identity: FileState) -> Option<Completion> {
        let Some(file) = self.file(handle) else { return Some(Completion::TreeOpened(None)) };
        if identity.size > INLINE_BYTES_MAX || !is_in_memory(&file, identity.size) {
            self.workers.push(Job::OpenTree { op, file, identity });
            return None;
        }
        let tree = small_tree(&file, &identity).ok();
        let handle = tree.map(|tree| self.keep(Open::Levels(Arc::new(flat(tree)))));
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
        let source = burst.source();
        let stored = match self.open.get(&source) {
            Some(Open::Levels(levels)) => {
                let sent = send_levels(levels, &burst, connection);
                return done.push((burst, sent));
            }
            Some(open) => open.stored(),
            None => None,
        };
        let Some(stored) = stored else { return done.push((burst, SegmentSent::Failed)) };
        let at_once = send_cached(&stored, &burst, connection);
        self.settle(&stored, burst, at_once, done);
    }

    /// Gives a burst to another thread, if there is one with time for it.
    pub(crate) fn hand_over(&mut self, burst: SegmentBurst) -> Option<SegmentBurst> {
        let Some(helpers) = &mut self.helpers else { return Some(burst) };
        let stored = self.open.get(&burst.source()).and_then(Open::stored);
        let Some(stored) = stored else { return Some(burst) };
        helpers.take(stored, burst)
    }

    /// Has the root of a file that nobody reads any more written to it, if that is wanted. It
    /// changes the file's state, so it would end the version for those who read.
    fn mark_closed(&self, file: Arc<File>, identity: FileState) {
        let is_it =
            |open: &Open| matches!(open, Open::File { identity: it, .. } if *it == identity);
        if self.workers.uses_attributes() && !self.open.values().any(is_it) {
            self.workers.push(Job::Mark { file, identity });
        }
    }

    /// Writes the roots of files that are open to them, if that is wanted. To be called when
    /// nobody reads any more.
    pub(crate) fn mark_open(&self) {
        if !self.workers.uses_attributes() {
            return;
        }
        for open in self.open.values() {
            if let Open::File { file, identity } = open {
                self.workers.mark(file, identity);
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
        let Framed { stored, burst, at_once, packets } = framed;
        if let Some(helpers) = &mut self.helpers {
            helpers.recycle(packets);
        }
        self.settle(&stored, burst, at_once, done);
    }

    /// What was in memory is on its way; the rest has to wait for the disk.
    fn settle(
        &mut self,
        stored: &Stored,
        mut burst: SegmentBurst,
        at_once: AtOnce,
        done: &mut Vec<(SegmentBurst, SegmentSent)>,
    ) {
        if at_once.has_changed {
            return done.push((burst, SegmentSent::Changed));
        }
        self.read_ahead(burst.source(), stored, &burst, !at_once.cold.is_empty());
        // From behind, so that places stay right.
        let (mut cold, mut failed) = (at_once.cold, at_once.failed);
        while let Some(last) =
            cold.last().map(|run| run.start).max(failed.last().map(|run| run.start))
        {
            if cold.last().is_some_and(|run| run.start == last) {
                let run = cold.pop().expect("it was just seen");
                self.reading.push(stored.clone(), burst.take_out(run));
            } else {
                let run = failed.pop().expect("it was just seen");
                done.push((burst.take_out(run), SegmentSent::Failed));
            }
        }
        if !burst.is_empty() {
            done.push((burst, SegmentSent::Sent));
        }
    }

    fn read_ahead(&mut self, source: Handle, stored: &Stored, burst: &SegmentBurst, is_cold: bool) {
        if !is_cold && !self.ahead.contains_key(&source) {
            return;
        }
        let Some(size) = stored.identity.map(|identity| identity.size) else { return };
        let offsets = burst.segments().map(|segment| segment.offset);
        let ends = burst.segments().map(|segment| segment.offset + segment.len as u64);
        let (Some(start), Some(end)) = (offsets.min(), ends.max()) else { return };
        // Segments from all over the file are no stream.
        let is_run = end - start <= 2 * burst.segments().map(|it| it.len as u64).sum::<u64>();
        let ahead = self.ahead.entry(source).or_default();
        if is_run && let Some(part) = ahead.on_request(start..end, is_cold, size) {
            self.reading.advise(stored, part);
        }
    }

    /// Begins reads for faces that have room. To be called when something was sent or has come.
    pub(crate) fn begin_reads(&mut self, has_room: &dyn Fn(FaceId) -> bool) {
        self.reading.begin(has_room);
    }

    /// Whether so much has to be read for a face that its requests should wait.
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

/// Whether reading a small file would not have to wait for the disk.
fn is_in_memory(file: &File, size: u64) -> bool {
    // One octet of each page says it: what is looked at is not copied twice.
    const PAGE_BYTES: u64 = 4096;
    (0..size).step_by(PAGE_BYTES as usize).all(|at| {
        let mut octet = [0];
        files::read_cached(file, &mut [IoSliceMut::new(&mut octet)], at).is_ok()
    })
}
