//! Segments that have to wait for the disk: read in the background, fairly, and then sent.
//!
//! Reads take turns by face and source, a burst a turn, so that neither a large cold file nor
//! a busy client keeps the others waiting. A read begins only while its face has room, and a face
//! has at most [`FACE_BYTES_MAX`] in flight: what comes from the disk can leave at once, and a slow
//! client ties up nothing that others need.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use byname_io::files::{FileRead, Reader, ReaderKind};
use byname_io::{Connection, IoError, Waker};
use byname_transfer::server::{FaceId, Handle, SegmentBurst, SegmentSent};

use super::blocking::{BlockingRead, BlockingReader};
use super::sending::around;
use crate::content::Content;

/// Octets in flight for one face.
const FACE_BYTES_MAX: usize = 2 << 20;
/// Segments that may wait for their turn before requests do: shared by the faces for which any do,
/// because all clients of a forwarder are one face.
const WAITING_MAX: usize = 8192;
/// The least that any face may have of it.
const FACE_WAITING_MIN: usize = 128;
/// Octets in flight for all.
const BYTES_MAX: usize = 32 << 20;
/// Buffers kept for being used again.
const SPARE_MAX: usize = 8;
/// A buffer that has grown larger is not kept.
const SPARE_BYTES_MAX: usize = 1 << 20;

/// A burst, or a part of one, that is being read.
#[derive(Debug)]
pub(super) struct Pending {
    content: Arc<dyn Content>,
    burst: SegmentBurst,
}

/// A burst that was read, with the packets.
#[derive(Debug)]
pub(crate) struct ReadBurst {
    pending: Pending,
    buffer: Vec<u8>,
    result: std::io::Result<()>,
}

impl ReadBurst {
    /// To whom it goes.
    pub(crate) fn face(&self) -> FaceId {
        self.pending.burst.face()
    }
}

/// Whose turn it is.
#[derive(Debug)]
struct Line {
    key: (FaceId, Handle),
    waiting: VecDeque<Pending>,
}

/// Load of one face; forgotten when it is nothing.
#[derive(Debug, Default)]
struct Load {
    /// Octets in flight.
    bytes: usize,
    /// Segments that wait for their turn.
    waiting: usize,
}

#[derive(Debug)]
pub(crate) struct Reading {
    /// Of files of this system.
    reader: Reader<Pending>,
    /// Of everything else.
    blocking: BlockingReader<Pending>,
    lines: VecDeque<Line>,
    faces: HashMap<FaceId, Load>,
    bytes: usize,
    spare: Vec<Vec<u8>>,
}

impl Reading {
    pub(crate) fn new(kind: ReaderKind, waker: Waker) -> Result<Self, IoError> {
        let (reader, refusal) = Reader::new(kind, waker.clone())?;
        let blocking = BlockingReader::new(waker);
        if let Some(refusal) = refusal {
            tracing::info!(%refusal, "threads read what is not in memory");
        }
        let (lines, faces, spare) = (VecDeque::new(), HashMap::new(), Vec::new());
        Ok(Self { reader, blocking, lines, faces, bytes: 0, spare })
    }

    /// Lets a burst wait for its turn. Its segments follow one another.
    pub(super) fn push(&mut self, content: Arc<dyn Content>, burst: SegmentBurst) {
        let key = (burst.face(), burst.source());
        self.faces.entry(key.0).or_default().waiting += burst.len();
        let pending = Pending { content, burst };
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
        let (offset, content) = (burst.segment(0).offset, pending.content.clone());
        match content.system_file() {
            Some((file, base)) => {
                let (file, offset) = (file.clone(), base + offset);
                self.reader.start(FileRead { file, offset, buffer, gaps, tag: pending });
            }
            None => {
                let content = pending.content.clone();
                self.blocking.start(BlockingRead { content, offset, buffer, gaps, tag: pending });
            }
        }
    }

    /// A burst that was read, or could not be.
    pub(super) fn take_done(&mut self) -> Option<ReadBurst> {
        let read = match self.reader.take_done() {
            Some((FileRead { buffer, tag, .. }, result)) => Some((buffer, tag, result)),
            None => self
                .blocking
                .take_done()
                .map(|(BlockingRead { buffer, tag, .. }, result)| (buffer, tag, result)),
        };
        let (buffer, pending, result) = read?;
        let (face, len) = (pending.burst.face(), buffer.len());
        self.bytes -= len;
        if let Some(load) = self.faces.get_mut(&face) {
            load.bytes -= len;
            if load.bytes == 0 && load.waiting == 0 {
                self.faces.remove(&face);
            }
        }
        Some(ReadBurst { pending, buffer, result })
    }

    /// Sends a burst that was read if its file is still the same.
    pub(super) fn finish(
        &mut self,
        done: ReadBurst,
        connection: Option<&mut Connection>,
    ) -> (SegmentBurst, SegmentSent) {
        let ReadBurst { pending: Pending { content, burst }, buffer, result } = done;
        let result = result.and_then(|()| accept(&*content, &burst, &buffer));
        let is_same = content.is_unchanged();
        if let Err(error) = &result
            && is_same
        {
            let offset = burst.segment(0).offset;
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

    /// Has a part read ahead of its reader, if the kernel can.
    pub(super) fn advise(&mut self, content: &dyn Content, part: std::ops::Range<u64>) {
        if let Some((file, base)) = content.system_file() {
            self.reader.advise(Arc::clone(file), base + part.start..base + part.end);
        }
    }

    /// True if so much waits for a face that its requests should.
    pub(super) fn is_behind(&self, face: FaceId) -> bool {
        let share = (WAITING_MAX / self.faces.len().max(1)).max(FACE_WAITING_MIN);
        self.faces.get(&face).is_some_and(|load| load.waiting >= share)
    }
}

/// Has the contents of packets looked at by what they were read from.
fn accept(content: &dyn Content, burst: &SegmentBurst, packets: &[u8]) -> std::io::Result<()> {
    let mut at = 0;
    for segment in burst.segments() {
        let from = at + segment.header.len();
        content.accept(&packets[from..from + segment.len], segment.offset)?;
        at += segment.packet_len();
    }
    Ok(())
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
