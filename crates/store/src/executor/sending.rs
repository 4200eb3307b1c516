//! Segments: from the page cache, or a back-end's memory, straight into the packets that leave.
//!
//! Neighbours are read by one call, each between the header and the trailer of its packet, into the
//! connection's send buffer. Nothing leaves before the file's state has been compared, once for
//! all: whatever was read belongs to the state that is seen after it. What would have to be
//! waited for is left to [`super::reading`].

use std::io::{ErrorKind, IoSliceMut};
use std::ops::Range;

use byname_io::Connection;
use byname_io::connection::{Draft, FRAMES_MAX};
use byname_transfer::server::{SegmentBurst, SegmentPlan};
use smallvec::SmallVec;

use crate::content::Content;

/// Result of sending what can be had without waiting.
#[derive(Debug, Default)]
pub(super) struct AtOnce {
    /// Runs that have to wait for the disk.
    pub(super) cold: Vec<Range<usize>>,
    /// Runs that cannot be read.
    pub(super) failed: Vec<Range<usize>>,
    /// The file changed; nothing was sent.
    pub(super) has_changed: bool,
}

/// Sends what can be had without waiting.
pub(super) fn send_ready(
    content: &dyn Content,
    burst: &SegmentBurst,
    connection: &mut Connection,
) -> AtOnce {
    let mut at_once = AtOnce::default();
    let mut draft = connection.draft();
    let mut at = 0;
    while at < burst.len() {
        let run = burst.run_from(at);
        at = run.end;
        match draft_run(&mut draft, content, burst, run.clone()) {
            Ok(end) if end == run.end => {}
            Ok(end) => at_once.cold.push(end..run.end),
            Err(error) => {
                let offset = burst.segment(run.start).offset;
                tracing::warn!(%error, offset, "cannot read a segment");
                at_once.failed.push(run);
            }
        }
    }
    if content.is_unchanged() {
        draft.commit();
    } else {
        at_once.has_changed = true;
    }
    at_once
}

/// Drafts the packets of a run; says up to which segment there was something to be had.
fn draft_run(
    draft: &mut Draft<'_>,
    content: &dyn Content,
    burst: &SegmentBurst,
    run: Range<usize>,
) -> std::io::Result<usize> {
    let lengths: SmallVec<[usize; FRAMES_MAX]> =
        run.clone().map(|index| burst.segment(index).packet_len()).collect();
    let mut at = run.start;
    while at < run.end {
        let mut failure = None;
        let drafted = draft.frames(&lengths[at - run.start..], |frames| {
            fill(frames, burst, at, content).unwrap_or_else(|error| {
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
    content: &dyn Content,
) -> std::io::Result<usize> {
    let mut places: SmallVec<[IoSliceMut<'_>; FRAMES_MAX]> = SmallVec::new();
    for (frame, index) in frames.iter_mut().zip(first..) {
        places.push(IoSliceMut::new(around(frame, &burst.segment(index))));
    }
    let mut bytes = content.read_ready(&mut places, burst.segment(first).offset)?;
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
