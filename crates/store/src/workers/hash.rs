//! What workers do about roots: small files and large ones, trees, and roots kept on files.

use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use byname_security::tree::Tree;
use byname_transfer::server::{Completion, FileState, Hashed, OpId};

use super::{Commit, Done, Job, OpenedTree, Shared, locked};
use crate::attributes;
use crate::hashing::{LargeFile, Turn, small_tree};
use crate::state::{RootRecord, StateDir, is_small};

pub(super) fn hash_small(
    shared: &Shared,
    commits: &SyncSender<Commit>,
    file: &File,
    identity: FileState,
) -> Hashed {
    if let Some(hashed) = attached(shared, commits, file, identity) {
        return hashed;
    }
    match small_tree(file, &identity) {
        Ok(tree) => keep_root(shared, commits, (identity, *tree.root.as_bytes())),
        Err(hashed) => hashed,
    }
}

fn keep_root(
    shared: &Shared,
    commits: &SyncSender<Commit>,
    (identity, root): (FileState, [u8; 32]),
) -> Hashed {
    let record = RootRecord { fingerprint: identity.fingerprint, root };
    shared.state.remember(record);
    let _ = commits.send(Commit::Root(record));
    Hashed::Root(root)
}

/// The root that came with a file.
fn attached(
    shared: &Shared,
    commits: &SyncSender<Commit>,
    file: &File,
    identity: FileState,
) -> Option<Hashed> {
    let found =
        shared.attributes.then(|| attributes::root_with_tree(file, &identity, &shared.state));
    found.flatten().map(|root| keep_root(shared, commits, (identity, root)))
}

/// Writes a file's root to it.
pub(super) fn mark(
    shared: &Shared,
    commits: &SyncSender<Commit>,
    file: &File,
    identity: &FileState,
) {
    if let Some(record) = attributes::write(file, identity, &shared.state) {
        let _ = commits.send(Commit::Root(record));
    }
}

/// Shares a large file between the threads that hash.
pub(super) fn begin_hash(
    shared: &Shared,
    commits: &SyncSender<Commit>,
    (op, file, identity): (OpId, Arc<File>, FileState),
    parts: usize,
) {
    if let Some(hashed) = attached(shared, commits, &file, identity) {
        return shared.finish(Done::Completion(op, Completion::Hashed(hashed)));
    }
    let tree = match shared.state.create_tree(&identity) {
        Ok(tree) => tree,
        Err(error) => {
            tracing::error!(%error, "cannot write a hash tree");
            let failed = Completion::Hashed(Hashed::Failed);
            return shared.finish(Done::Completion(op, failed));
        }
    };
    let large = Arc::new(LargeFile::new(op, file, identity, tree, parts));
    // Told before any part can be done.
    shared.finish(Done::Hashing(identity, Arc::downgrade(&large)));
    for _ in 0..parts {
        shared.push(Job::HashLarge(large.clone()));
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
            locked(&shared.background.jobs).push_back(Job::HashLarge(large));
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
            shared.finish(Done::Completion(op, Completion::Hashed(hashed)));
        }
    }
}

/// The levels of a tree, one after the other, as they lie in a tree's file.
pub(crate) fn flat(tree: Tree) -> Vec<u8> {
    tree.levels.concat()
}

pub(super) fn open_tree(state: &StateDir, file: &File, identity: &FileState) -> Option<OpenedTree> {
    if is_small(identity.size) {
        return small_tree(file, identity).ok().map(|tree| OpenedTree::Memory(flat(tree)));
    }
    state.open_tree(identity).map(OpenedTree::File)
}
