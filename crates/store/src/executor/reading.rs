//! Segments that have to wait for the disk: read in the background, fairly, and then sent.
//!
//! What waits takes turns by face and source, a burst a turn, so that neither a large cold file nor
//! a busy client keeps the others waiting. A read begins only while its face has room, and a face
//! has at most [`FACE_BYTES_MAX`] under way: what comes from the disk can leave at once, and a slow
//! client ties up nothing that others need.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use byname_io::files::{FileRead, Reader, ReaderKind};
use byname_io::{Connection, IoError, Waker};
use byname_transfer::server::{FaceId, Handle, SegmentBurst, SegmentSent};

use super::sending::{Stored, around};

/// Octets under way for one face.
const FACE_BYTES_MAX: usize = 2 << 20;
/// Segments that may wait for their turn before requests do: shared by the faces for which any do,
/// because all clients of a forwarder are one face.
const WAITING_MAX: usize = 8192;
/// The least that any face may have of it.
const FACE_WAITING_MIN: usize = 128;
/// Octets under way for all.
const BYTES_MAX: usize = 32 << 20;
/// Buffers kept for being used again.
const SPARE_MAX: usize = 8;
/// A buffer that has grown larger is not kept.
const SPARE_BYTES_MAX: usize = 1 << 20;

/// A burst, or a part of one, that is being read.
#[derive(Debug)]
pub(super) struct Pending {
    stored: Stored,
    burst: SegmentBurst,
}

/// A burst that was read, with the packets.
#[derive(Debug)]
pub(crate) struct ReadBurst {
    read: FileRead<Pending>,
    result: std::io::Result<()>,
}

impl ReadBurst {
    /// To whom it goes.
    pub(crate) fn face(&self) -> FaceId {
        self.read.tag.burst.face()
    }
}

/// Whose turn it is.
#[derive(Debug)]
struct Line {
    key: (FaceId, Handle),
    waiting: VecDeque<Pending>,
}

/// What is there of one face; forgotten when it is nothing.
#[derive(Debug, Default)]
struct Load {
    /// Octets under way.
    bytes: usize,
    /// Segments that wait for their turn.
    waiting: usize,
}

#[derive(Debug)]
pub(crate) struct Reading {
    reader: Reader<Pending>,
    lines: VecDeque<Line>,
    faces: HashMap<FaceId, Load>,
    bytes: usize,
    spare: Vec<Vec<u8>>,
}

impl Reading {
    pub(crate) fn new(kind: ReaderKind, waker: Waker) -> Result<Self, IoError> {
        let (reader, refusal) = Reader::new(kind, waker)?;
        if let Some(refusal) = refusal {
            tracing::info!(%refusal, "threads read what is not in memory");
        }
        let (lines, faces, spare) = (VecDeque::new(), HashMap::new(), Vec::new());
        Ok(Self { reader, lines, faces, bytes: 0, spare })
    }

    /// Lets a burst wait for its turn. Its segments follow one another.
    pub(super) fn push(&mut self, stored: Stored, burst: SegmentBurst) {
        let key = (burst.face(), burst.source());
        self.faces.entry(key.0).or_default().waiting += burst.len();
        let pending = Pending { stored, burst };
        match self.lines.iter_mut().find(|line| line.key == key) {
            Some(line) => line.waiting.push_back(pending),
            None => self.lines.push_back(Line { key, waiting: VecDeque::from([pending]) }),
        }
    }

    /// Begins reads, in turn, for faces that have room.
    pub(super) fn begin(&mut self, has_room: &dyn Fn(FaceId) -> bool) {
        let mut passed = 0;
        while passed < self.lines.len() && self.reader.has_room() && self.bytes < BYTES_MAX {
            let Some(mut line) = self.lines.pop_front() else { break };
            let face = line.key.0;
            let is_full = self.faces.get(&face).is_some_and(|load| load.bytes >= FACE_BYTES_MAX);
            if is_full || !has_room(face) {
                passed += 1;
                self.lines.push_back(line);
                continue;
            }
            passed = 0;
            if let Some(pending) = line.waiting.pop_front() {
                self.start(pending);
            }
            if !line.waiting.is_empty() {
                self.lines.push_back(line);
            }
        }
        self.reader.submit();
    }

    fn start(&mut self, pending: Pending) {
        let mut buffer = self.spare.pop().unwrap_or_default();
        let (burst, mut at) = (&pending.burst, 0);
        let mut gaps = Vec::with_capacity(burst.len());
        let len = burst.segments().map(|segment| segment.packet_len()).sum();
        buffer.resize(len, 0);
        for segment in burst.segments() {
            let (end, from) = (at + segment.packet_len(), at + segment.header.len());
            around(&mut buffer[at..end], &segment);
            gaps.push(from..from + segment.len);
            at = end;
        }
        let load = self.faces.entry(burst.face()).or_default();
        load.bytes += len;
        load.waiting -= burst.len().min(load.waiting);
        self.bytes += len;
        let offset = pending.stored.base + burst.segment(0).offset;
        let file = pending.stored.file.clone();
        self.reader.start(FileRead { file, offset, buffer, gaps, tag: pending });
    }

    /// A burst that was read, or could not be.
    pub(super) fn take_done(&mut self) -> Option<ReadBurst> {
        let (read, result) = self.reader.take_done()?;
        let (face, len) = (read.tag.burst.face(), read.buffer.len());
        self.bytes -= len;
        if let Some(load) = self.faces.get_mut(&face) {
            load.bytes -= len;
            if load.bytes == 0 && load.waiting == 0 {
                self.faces.remove(&face);
            }
        }
        Some(ReadBurst { read, result })
    }

    /// Sends a burst that was read if its file is still the same.
    pub(super) fn finish(
        &mut self,
        done: ReadBurst,
        connection: Option<&mut Connection>,
    ) -> (SegmentBurst, SegmentSent) {
        let ReadBurst { read: FileRead { buffer, tag, offset, .. }, result } = done;
        let Pending { stored, burst } = tag;
        let is_same = stored.is_same();
        if let Err(error) = &result
            && is_same
        {
            tracing::warn!(%error, offset, "cannot read a segment");
        }
        let sent = match (result, connection) {
            _ if !is_same => SegmentSent::Changed,
            (Ok(()), Some(connection)) => queue(&burst, &buffer, connection),
            // Nobody is there any more to whom it could be sent.
            (Ok(()), None) => SegmentSent::Sent,
            (Err(_), _) => SegmentSent::Failed,
        };
        if self.spare.len() < SPARE_MAX && buffer.capacity() <= SPARE_BYTES_MAX {
            self.spare.push(buffer);
        }
        (burst, sent)
    }

    pub(super) fn advise(&mut self, stored: &Stored, part: std::ops::Range<u64>) {
        let part = stored.base + part.start..stored.base + part.end;
        self.reader.advise(Arc::clone(&stored.file), part);
    }

    /// Whether so much waits for a face that its requests should.
    pub(super) fn is_behind(&self, face: FaceId) -> bool {
        let share = (WAITING_MAX / self.faces.len().max(1)).max(FACE_WAITING_MIN);
        self.faces.get(&face).is_some_and(|load| load.waiting >= share)
    }
}

/// All of the packets or none.
fn queue(burst: &SegmentBurst, mut packets: &[u8], connection: &mut Connection) -> SegmentSent {
    let mut draft = connection.draft();
    for segment in burst.segments() {
        let (packet, rest) = packets.split_at(segment.packet_len());
        packets = rest;
        let drafted = draft.frame(packet.len(), |frame| {
            frame.copy_from_slice(packet);
            true
        });
        if drafted.is_err() {
            return SegmentSent::Failed;
        }
    }
    draft.commit();
    SegmentSent::Sent
}
