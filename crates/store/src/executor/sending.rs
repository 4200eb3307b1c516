//! Segments: from the page cache straight into the packets that leave.
//!
//! Neighbours are read by one call, each between the header and the trailer of its packet, into the
//! connection's send buffer. Nothing leaves before the file's state has been compared, once for
//! all: whatever was read belongs to the state that is seen after it. What is not in the page cache
//! is left to [`super::reading`], so nothing here waits for a disk.

use std::fs::File;
use std::io::{ErrorKind, IoSliceMut};
use std::ops::Range;
use std::sync::Arc;

use byname_io::connection::{Draft, FRAMES_MAX};
use byname_io::{Connection, files};
use byname_transfer::server::{FileState, SegmentBurst, SegmentPlan, SegmentSent};
use smallvec::SmallVec;

use super::Open;
use crate::hashing::is_same;
use crate::state::TREE_HEADER_BYTES;

/// Something on disk that segments are read from.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) file: Arc<File>,
    /// Where its segments begin.
    pub(super) base: u64,
    /// The state in which it must still be.
    pub(super) identity: Option<FileState>,
}

impl Stored {
    /// Whether what was read before this call may leave.
    pub(super) fn is_same(&self) -> bool {
        self.identity.is_none_or(|identity| is_same(&self.file, &identity))
    }
}

impl Open {
    pub(super) fn stored(&self) -> Option<Stored> {
        match self {
            Self::File { file, identity } => {
                Some(Stored { file: file.clone(), base: 0, identity: Some(*identity) })
            }
            Self::Tree(file) => {
                Some(Stored { file: file.clone(), base: TREE_HEADER_BYTES, identity: None })
            }
            Self::Levels(_) => None,
        }
    }
}

/// What became of a burst at once.
#[derive(Debug, Default)]
pub(super) struct AtOnce {
    /// Runs that have to wait for the disk.
    pub(super) cold: Vec<Range<usize>>,
    /// Runs that cannot be read.
    pub(super) failed: Vec<Range<usize>>,
    /// The file changed; nothing was sent.
    pub(super) has_changed: bool,
}

/// Sends what is in the page cache.
pub(super) fn send_cached(
    stored: &Stored,
    burst: &SegmentBurst,
    connection: &mut Connection,
) -> AtOnce {
    let mut at_once = AtOnce::default();
    let mut draft = connection.draft();
    let mut at = 0;
    while at < burst.len() {
        let run = burst.run_from(at);
        at = run.end;
        match draft_run(&mut draft, stored, burst, run.clone()) {
            Ok(end) if end == run.end => {}
            Ok(end) => at_once.cold.push(end..run.end),
            Err(error) => {
                let offset = burst.segment(run.start).offset;
                tracing::warn!(%error, offset, "cannot read a segment");
                at_once.failed.push(run);
            }
        }
    }
    if stored.is_same() {
        draft.commit();
    } else {
        at_once.has_changed = true;
    }
    at_once
}

/// Drafts the packets of a run; says up to which segment there was something to be had.
fn draft_run(
    draft: &mut Draft<'_>,
    stored: &Stored,
    burst: &SegmentBurst,
    run: Range<usize>,
) -> std::io::Result<usize> {
    let lengths: SmallVec<[usize; FRAMES_MAX]> =
        run.clone().map(|index| burst.segment(index).packet_len()).collect();
    let mut at = run.start;
    while at < run.end {
        let mut failure = None;
        let drafted = draft.frames(&lengths[at - run.start..], |frames| {
            fill(frames, burst, at, stored).unwrap_or_else(|error| {
                failure = Some(error);
                0
            })
        });
        // The queue holds a burst more than what it is asked to hold; if not, nothing was sent.
        let (lent, kept) = drafted.map_err(|_| ErrorKind::OutOfMemory)?;
        at += kept;
        match failure {
            Some(error) if error.kind() == ErrorKind::WouldBlock => break,
            Some(error) => return Err(error),
            None if kept < lent => break,
            None => {}
        }
    }
    Ok(at)
}

/// Writes the packets from the segment `first` on; says how many are whole.
fn fill(
    frames: &mut [&mut [u8]],
    burst: &SegmentBurst,
    first: usize,
    stored: &Stored,
) -> std::io::Result<usize> {
    let mut places: SmallVec<[IoSliceMut<'_>; FRAMES_MAX]> = SmallVec::new();
    for (frame, index) in frames.iter_mut().zip(first..) {
        places.push(IoSliceMut::new(around(frame, &burst.segment(index))));
    }
    let offset = stored.base + burst.segment(first).offset;
    let mut bytes = files::read_cached(&stored.file, &mut places, offset)?;
    let mut whole = 0;
    for index in first..first + places.len() {
        let len = burst.segment(index).len;
        if bytes < len {
            break;
        }
        bytes -= len;
        whole += 1;
    }
    Ok(whole)
}

/// Writes what stands around the content and gives the content's place.
pub(super) fn around<'f>(frame: &'f mut [u8], segment: &SegmentPlan<'_>) -> &'f mut [u8] {
    let (header, rest) = frame.split_at_mut(segment.header.len());
    let (content, trailer) = rest.split_at_mut(segment.len);
    header.copy_from_slice(segment.header);
    trailer.copy_from_slice(segment.trailer);
    content
}

/// Sends segments of a tree that is kept in memory.
pub(super) fn send_levels(
    levels: &[u8],
    burst: &SegmentBurst,
    connection: &mut Connection,
) -> SegmentSent {
    let mut draft = connection.draft();
    for segment in burst.segments() {
        let start = usize::try_from(segment.offset).unwrap_or(usize::MAX);
        let content = levels.get(start..).and_then(|rest| rest.get(..segment.len));
        let Some(content) = content else { return SegmentSent::Failed };
        let drafted = draft.frame(segment.packet_len(), |frame| {
            around(frame, &segment).copy_from_slice(content);
            true
        });
        if drafted.is_err() {
            return SegmentSent::Failed;
        }
    }
    draft.commit();
    SegmentSent::Sent
}
