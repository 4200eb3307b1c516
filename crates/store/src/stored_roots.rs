//! Roots that are stored with files: taken into the state directory, and written from there.
//!
//! Only where the operator asked for it. How a root is stored, and when it is to be believed, is
//! the back-end's business.

use byname_transfer::attributes::Checksums;

use crate::backend::BackendFile;
use crate::state::{ChecksumRecord, Digests, RootRecord, StateDir, is_small};

/// The root stored with a file, if the tree of a large one can be had without reading the file.
pub(crate) fn root_with_tree(file: &dyn BackendFile, state: &StateDir) -> Option<[u8; 32]> {
    let root = file.stored_root()?;
    let of = file.stat().state;
    (is_small(of.size) || state.adopt_tree(&of, &root)).then_some(root)
}

/// Stores the root of a file with it, if it is known. Gives what belongs to the file's new state,
/// to be made durable.
pub(crate) fn store(file: &dyn BackendFile, state: &StateDir) -> Option<RootRecord> {
    let Digests { root, checksums } = state.digests(&file.stat().state)?;
    let now = file.store_root(&root)?;
    if checksums != Checksums::default() {
        // The content is the same; if this fails they are computed again.
        let _ = state.keep_checksums(&[ChecksumRecord { fingerprint: now.fingerprint, checksums }]);
    }
    if !is_small(now.size) && !state.adopt_tree(&now, &root) {
        return None;
    }
    let record = RootRecord { fingerprint: now.fingerprint, root };
    state.remember(record);
    Some(record)
}
