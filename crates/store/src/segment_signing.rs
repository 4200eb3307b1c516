//! Segment signing: reading or computing the content of single segments, and signing them. For
//! workers.
//!
//! While a file's root is being computed, the values of level 1 that a reader asks for are
//! computed at once and count towards the root ([`LargeFile::values`]), so asking for nodes makes
//! nothing be read twice. Whatever was read belongs to the state that is seen after reading.

use std::io::{Error, ErrorKind};
use std::sync::{Arc, Weak};

use byname_security::tree::{GROUP_BYTES, HASH_BYTES, NODE_BYTES, Shape, UNIT_BYTES};
use byname_transfer::server::{Octets, SignSegment, SignedSegment, sign_segment};

use crate::backend::BackendFile;
use crate::content::Content;
use crate::hashing::LargeFile;

/// Origin of the octets of a segment.
#[derive(Debug, Clone)]
pub(crate) enum SegmentSource {
    /// A published file; if it is being hashed, that work.
    File(Arc<dyn BackendFile>, Weak<LargeFile>),
    /// A tree.
    Tree(Arc<dyn Content>),
}

impl SegmentSource {
    fn content(&self) -> &dyn Content {
        match self {
            Self::File(file, _) => &**file,
            Self::Tree(tree) => &**tree,
        }
    }
}

/// Makes the packet.
pub(crate) fn sign(source: &SegmentSource, order: &SignSegment) -> SignedSegment {
    let content = match content(source, order) {
        Ok(content) => content,
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return SignedSegment::Changed,
        Err(error) => {
            tracing::warn!(%error, "cannot read a segment");
            return SignedSegment::Failed;
        }
    };
    if !source.content().is_unchanged() {
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

fn content(source: &SegmentSource, order: &SignSegment) -> std::io::Result<Vec<u8>> {
    match (order.octets, source) {
        (Octets::Stored { offset, len }, source) => read(source.content(), offset, len),
        (Octets::Values { offset, len }, SegmentSource::File(file, hashing)) => {
            values(&**file, hashing, (offset, len))
        }
        (Octets::Values { .. }, SegmentSource::Tree(_)) => Err(ErrorKind::InvalidInput.into()),
    }
}

fn read(content: &dyn Content, offset: u64, len: usize) -> std::io::Result<Vec<u8>> {
    // A segment's length: the engine derives it, nobody asks for more.
    let mut octets = vec![0; len];
    content.read_exact_at(&mut octets, offset)?;
    Ok(octets)
}

/// Values of level 1 that lie within one node.
fn values(
    file: &dyn BackendFile,
    hashing: &Weak<LargeFile>,
    (offset, len): (u64, usize),
) -> std::io::Result<Vec<u8>> {
    let (node, within) = (offset / NODE_BYTES as u64, (offset % NODE_BYTES as u64) as usize);
    if let Some(hashing) = hashing.upgrade() {
        let node = hashing.values(node)?;
        let found = node.get(within..).and_then(|rest| rest.get(..len));
        return Ok(found.ok_or(ErrorKind::InvalidInput)?.to_vec());
    }
    let size = file.stat().state.size;
    let first_unit = offset / HASH_BYTES as u64;
    let start = first_unit * UNIT_BYTES as u64;
    let bytes = (len / HASH_BYTES * UNIT_BYTES).min(GROUP_BYTES) as u64;
    let content = read(file, start, bytes.min(size.saturating_sub(start)) as usize)?;
    let mut values = Vec::with_capacity(len);
    Shape::new(size)
        .hash_units(first_unit, &content, &mut values)
        .map_err(|error| Error::new(ErrorKind::InvalidData, error))?;
    Ok(values)
}
