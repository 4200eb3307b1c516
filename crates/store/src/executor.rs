//! Carries out the engine's operations: what is quick at once, the rest through the workers.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use byname_io::Connection;
use byname_transfer::server::{
    Completion, Handle, Hashed, Identity, Located, Op, OpId, SegmentSent, SendSegment,
};

use crate::beneath::{Found, Root, WalkError};
use crate::hashing::{LargeFile, is_same, small_tree};
use crate::state::{RootRecord, StateDir, TREE_HEADER_BYTES, is_small};
use crate::workers::{Done, Job, OpenedTree, Workers, flat};

/// Files up to this size are hashed at once: waking a thread would take as long.
const INLINE_BYTES_MAX: u64 = 128 << 10;

/// What a handle stands for.
enum Open {
    File { file: Arc<File>, identity: Identity },
    Tree(File),
    Levels(Vec<u8>),
}

pub(crate) struct Executor {
    roots: Vec<Arc<Root>>,
    state: Arc<StateDir>,
    workers: Workers,
    open: HashMap<Handle, Open>,
    next_handle: u64,
}

impl Executor {
    pub(crate) fn new(roots: Vec<Arc<Root>>, state: Arc<StateDir>, workers: Workers) -> Self {
        Self { roots, state, workers, open: HashMap::new(), next_handle: 0 }
    }

    /// Carries out an operation. The completion comes at once or later from
    /// [`Executor::take_done`].
    pub(crate) fn execute(
        &mut self,
        id: OpId,
        op: Op,
        connection: &mut Connection,
    ) -> Option<Completion> {
        match op {
            Op::Locate { mount, path } => Some(Completion::Located(self.locate(mount, &path))),
            Op::List { mount, path, bytes_max } => {
                let root = self.roots[mount].clone();
                self.workers.push(Job::List { op: id, root, path, bytes_max });
                None
            }
            Op::Recall { key, identity } => {
                Some(Completion::Recalled(self.state.recall(&key, identity.as_ref())))
            }
            Op::Announce { key, record } => {
                self.workers.announce(id, key, record);
                None
            }
            Op::Hash { file, identity } => self.hash(id, file, identity).map(Completion::Hashed),
            Op::OpenTree { file, identity } => self.open_tree(id, file, identity),
            Op::SendSegment(segment) => {
                let sent = self.send(&[(id, segment)], connection).pop();
                sent.map(Completion::Segment)
            }
            Op::Close { handle } => {
                self.open.remove(&handle);
                None
            }
        }
    }

    /// Completions of operations that took longer.
    pub(crate) fn take_done(&mut self) -> Vec<(OpId, Completion)> {
        let done = self.workers.take_done();
        done.into_iter()
            .map(|done| match done {
                Done::Completion(id, completion) => (id, completion),
                Done::Tree(id, tree) => {
                    let handle = tree.map(|tree| {
                        self.keep(match tree {
                            OpenedTree::File(tree) => Open::Tree(tree.file),
                            OpenedTree::Memory(levels) => Open::Levels(levels),
                        })
                    });
                    (id, Completion::TreeOpened(handle))
                }
            })
            .collect()
    }

    fn keep(&mut self, open: Open) -> Handle {
        let handle = Handle(self.next_handle);
        self.next_handle += 1;
        self.open.insert(handle, open);
        handle
    }

    fn locate(&mut self, mount: usize, path: &[u8]) -> Located {
        match self.roots[mount].find(path) {
            Ok(Found::File { file, stat }) => {
                let open = Open::File { file: Arc::new(file), identity: stat.identity };
                Located::File { stat, handle: self.keep(open) }
            }
            Ok(Found::Directory(found)) => Located::Directory { stat: found.stat },
            Err(WalkError::NotFound) => Located::NotFound,
            Err(WalkError::NoPermission) => Located::NoPermission,
            Err(WalkError::Failed(error)) => {
                let path = self.roots[mount].path().join(String::from_utf8_lossy(path).as_ref());
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

    fn hash(&mut self, op: OpId, handle: Handle, identity: Identity) -> Option<Hashed> {
        let Some(file) = self.file(handle) else { return Some(Hashed::Changed) };
        if !is_same(&file, &identity) {
            return Some(Hashed::Changed);
        }
        if identity.size <= INLINE_BYTES_MAX {
            let tree = match small_tree(&file, &identity) {
                Ok(tree) => tree,
                Err(hashed) => return Some(hashed),
            };
            let root = *tree.root.as_bytes();
            self.workers.keep_root(RootRecord { identity, root });
            return Some(Hashed::Root(root));
        }
        if is_small(identity.size) {
            self.workers.push(Job::HashSmall { op, file, identity });
            return None;
        }
        let tree = match self.state.create_tree(&identity) {
            Ok(tree) => tree,
            Err(error) => {
                tracing::error!(%error, "cannot write a hash tree");
                return Some(Hashed::Failed);
            }
        };
        let parts = self.workers.count();
        let large = Arc::new(LargeFile::new(op, file, identity, tree, parts));
        for _ in 0..parts {
            self.workers.push(Job::HashLarge(large.clone()));
        }
        None
    }

    fn open_tree(&mut self, op: OpId, handle: Handle, identity: Identity) -> Option<Completion> {
        let Some(file) = self.file(handle) else { return Some(Completion::TreeOpened(None)) };
        if identity.size > INLINE_BYTES_MAX {
            self.workers.push(Job::OpenTree { op, file, identity });
            return None;
        }
        let tree = small_tree(&file, &identity).ok();
        let handle = tree.map(|tree| self.keep(Open::Levels(flat(tree))));
        Some(Completion::TreeOpened(handle))
    }

    /// Sends segments of one source, in a burst, and says what became of each.
    ///
    /// They are read into the send buffer, but nothing leaves before the file's state has been
    /// compared, once for all: whatever was read belongs to the state that is seen after it.
    pub(crate) fn send(
        &self,
        burst: &[(OpId, SendSegment)],
        connection: &mut Connection,
    ) -> Vec<SegmentSent> {
        let source = burst.first().map(|(_, segment)| segment.source);
        let Some(open) = source.and_then(|source| self.open.get(&source)) else {
            return vec![SegmentSent::Failed; burst.len()];
        };
        let mut draft = connection.draft();
        let mut failure = None;
        let mut draft_segment = |(_, segment): &(OpId, SendSegment)| {
            let len = segment.header.len() + segment.len + segment.trailer.len();
            let is_drafted = draft.frame(len, |frame| match fill(frame, segment, open) {
                Ok(()) => Some(segment.source) == source,
                Err(error) => {
                    failure = Some((error, segment.offset));
                    false
                }
            });
            match is_drafted {
                Ok(true) => SegmentSent::Sent,
                Ok(false) | Err(_) => SegmentSent::Failed,
            }
        };
        let sent = burst.iter().map(&mut draft_segment).collect();
        if let Open::File { file, identity } = open
            && !is_same(file, identity)
        {
            return vec![SegmentSent::Changed; burst.len()];
        }
        if let Some((error, offset)) = failure {
            tracing::warn!(%error, offset, "cannot read a segment");
        }
        draft.commit();
        sent
    }
}

/// Writes a segment's packet.
fn fill(frame: &mut [u8], segment: &SendSegment, open: &Open) -> std::io::Result<()> {
    let (header, rest) = frame.split_at_mut(segment.header.len());
    let (content, trailer) = rest.split_at_mut(segment.len);
    header.copy_from_slice(&segment.header);
    trailer.copy_from_slice(&segment.trailer);
    match open {
        Open::File { file, .. } => file.read_exact_at(content, segment.offset),
        Open::Tree(file) => file.read_exact_at(content, TREE_HEADER_BYTES + segment.offset),
        Open::Levels(levels) => read_levels(levels, segment.offset, content),
    }
}

fn read_levels(levels: &[u8], offset: u64, content: &mut [u8]) -> std::io::Result<()> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let found = levels.get(start..).and_then(|rest| rest.get(..content.len()));
    content.copy_from_slice(found.ok_or(std::io::ErrorKind::UnexpectedEof)?);
    Ok(())
}
