//! Jobs about roots: small files and large ones, trees, and roots stored with files.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use byname_transfer::server::{Completion, Hashed, OpId};

use super::{Commit, Shared, WorkerJob, WorkerResult, locked};
use crate::backend::BackendFile;
use crate::content::{Content, InMemory};
use crate::hashing::{LargeFile, Turn, flat, small_tree};
use crate::state::{RootRecord, StateDir, is_small};
use crate::stored_roots;

pub(super) fn hash_small(
    shared: &Shared,
    commits: &SyncSender<Commit>,
    file: &dyn BackendFile,
) -> Hashed {
    if let Some(hashed) = stored(shared, commits, file) {
        return hashed;
    }
    match small_tree(file) {
        Ok(tree) => keep_root(shared, commits, file, *tree.root.as_bytes()),
        Err(hashed) => hashed,
    }
}

fn keep_root(
    shared: &Shared,
    commits: &SyncSender<Commit>,
    file: &dyn BackendFile,
    root: [u8; 32],
) -> Hashed {
    let record = RootRecord { fingerprint: file.stat().state.fingerprint, root };
    shared.state.remember(record);
    let _ = commits.send(Commit::Root(record));
    Hashed::Root(root)
}

/// The root that is stored with the file.
fn stored(shared: &Shared, commits: &SyncSender<Commit>, file: &dyn BackendFile) -> Option<Hashed> {
    let found = shared.attributes.then(|| stored_roots::root_with_tree(file, &shared.state));
    found.flatten().map(|root| keep_root(shared, commits, file, root))
}

/// Stores a file's root with it.
pub(super) fn store_root(shared: &Shared, commits: &SyncSender<Commit>, file: &dyn BackendFile) {
    if let Some(record) = stored_roots::store(file, &shared.state) {
        let _ = commits.send(Commit::Root(record));
    }
}

/// Shares a large file between the threads that hash.
pub(super) fn begin_hash(
    shared: &Shared,
    commits: &SyncSender<Commit>,
    (op, file): (OpId, Arc<dyn BackendFile>),
    parts: usize,
) {
    if let Some(hashed) = stored(shared, commits, &*file) {
        return shared.finish(WorkerResult::Completion(op, Completion::Hashed(hashed)));
    }
    let state = file.stat().state;
    let tree = match shared.state.create_tree(&state) {
        Ok(tree) => tree,
        Err(error) => {
            tracing::error!(%error, "cannot write a hash tree");
            let failed = Completion::Hashed(Hashed::Failed);
            return shared.finish(WorkerResult::Completion(op, failed));
        }
    };
    let large = Arc::new(LargeFile::new(op, file, tree, parts));
    // Reported before any part can be done.
    shared.finish(WorkerResult::Hashing(state, Arc::downgrade(&large)));
    for _ in 0..parts {
        shared.push(WorkerJob::HashLarge(large.clone()));
    }
}

pub(super) fn hash_large(
    shared: &Shared,
    commits: &SyncSender<Commit>,
    large: Arc<LargeFile>,
    buffer: &mut Vec<u8>,
) {
    match large.turn(buffer) {
        Turn::More => {
            locked(&shared.background.jobs).push_back(WorkerJob::HashLarge(large));
            shared.background.ready.notify_one();
        }
        Turn::PartDone => {}
        Turn::AllDone => {
            let op = large.op;
            // The other parts are done, but their threads may be about to let go of it.
            let mut large = large;
            let large = loop {
                match Arc::try_unwrap(large) {
                    Ok(large) => break large,
                    Err(shared) => large = shared,
                }
                std::thread::yield_now();
            };
            let (hashed, root) = large.finish(&shared.state);
            if let Some(root) = root {
                let _ = commits.send(Commit::Root(root));
            }
            shared.finish(WorkerResult::Completion(op, Completion::Hashed(hashed)));
        }
    }
}

pub(super) fn open_tree(state: &StateDir, file: &dyn BackendFile) -> Option<Arc<dyn Content>> {
    let of = file.stat().state;
    if is_small(of.size) {
        let tree = small_tree(file).ok()?;
        return Some(Arc::new(InMemory(flat(tree))));
    }
    Some(Arc::new(state.open_tree(&of)?))
}
