//! Signed segments: read or computed, checked against the file's state, signed. For workers.
//!
//! While a file's root is being computed, the values of level 1 that a reader asks for are
//! computed at once and count towards the root ([`LargeFile::values`]), so asking for nodes makes
//! nothing be read twice. Whatever was read belongs to the state that is seen after reading.

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Weak};

use byname_security::tree::{GROUP_BYTES, HASH_BYTES, NODE_BYTES, Shape, UNIT_BYTES};
use byname_transfer::server::{FileState, Octets, SignSegment, SignedSegment, sign_segment};

use crate::hashing::{LargeFile, is_same};
use crate::state::TREE_HEADER_BYTES;

/// Where the octets of a segment come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A published file; if it is being hashed, the work under way.
    File(Arc<File>, Weak<LargeFile>),
    /// A tree's file.
    Tree(Arc<File>),
    /// The levels of a small tree.
    Levels(Arc<Vec<u8>>),
}

/// Makes the packet.
pub(crate) fn make(source: &Source, order: &SignSegment) -> SignedSegment {
    let content = match content(source, order) {
        Ok(content) => content,
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return SignedSegment::Changed,
        Err(error) => {
            tracing::warn!(%error, "cannot read a segment");
            return SignedSegment::Failed;
        }
    };
    if let Source::File(file, _) = source
        && !is_same(file, &order.state)
    {
        return SignedSegment::Changed;
    }
    match sign_segment(order, &content) {
        Ok(packet) => SignedSegment::Packet(packet),
        Err(error) => {
            tracing::error!(%error, "cannot sign a segment");
            SignedSegment::Failed
        }
    }
}

fn content(source: &Source, order: &SignSegment) -> std::io::Result<Vec<u8>> {
    match (order.octets, source) {
        (Octets::Stored { offset, len }, Source::File(file, _)) => read(file, offset, len),
        (Octets::Stored { offset, len }, Source::Tree(tree)) => {
            read(tree, TREE_HEADER_BYTES + offset, len)
        }
        (Octets::Stored { offset, len }, Source::Levels(levels)) => {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let found = levels.get(start..).and_then(|rest| rest.get(..len));
            Ok(found.ok_or(ErrorKind::UnexpectedEof)?.to_vec())
        }
        (Octets::Values { offset, len }, Source::File(file, hashing)) => {
            values(file, hashing, &order.state, (offset, len))
        }
        (Octets::Values { .. }, _) => Err(ErrorKind::InvalidInput.into()),
    }
}

fn read(file: &File, offset: u64, len: usize) -> std::io::Result<Vec<u8>> {
    // A segment's length: the engine derives it, nobody asks for more.
    let mut content = vec![0; len];
    file.read_exact_at(&mut content, offset)?;
    Ok(content)
}

/// Values of level 1 that lie within one node.
fn values(
    file: &File,
    hashing: &Weak<LargeFile>,
    identity: &FileState,
    (offset, len): (u64, usize),
) -> std::io::Result<Vec<u8>> {
    let (node, within) = (offset / NODE_BYTES as u64, (offset % NODE_BYTES as u64) as usize);
    if let Some(hashing) = hashing.upgrade() {
        let node = hashing.values(node)?;
        let found = node.get(within..).and_then(|rest| rest.get(..len));
        return Ok(found.ok_or(ErrorKind::InvalidInput)?.to_vec());
    }
    let first_unit = offset / HASH_BYTES as u64;
    let start = first_unit * UNIT_BYTES as u64;
    let bytes = (len / HASH_BYTES * UNIT_BYTES).min(GROUP_BYTES) as u64;
    let content = read(file, start, bytes.min(identity.size.saturating_sub(start)) as usize)?;
    let mut values = Vec::with_capacity(len);
    Shape::new(identity.size)
        .hash_units(first_unit, &content, &mut values)
        .map_err(|error| Error::new(ErrorKind::InvalidData, error))?;
    Ok(values)
}
