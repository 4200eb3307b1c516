//! Batches of packets, and the queues between shard 0 and the others.

use std::sync::mpsc::{Receiver, SyncSender};

use byname_forwarder::{Change, FaceId, Figures, Tx};
use byname_io::Waker;
use byname_packet::lp::{self, LpHeader, LpPacket};

/// Batches that wait for a shard, and that wait to be sent from one.
pub(super) const BATCHES_MAX: usize = 64;

/// Empty batches kept on each side.
const SPARE_MAX: usize = 8;

/// One packet of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    /// Face that it came from or goes to.
    pub(super) face: FaceId,
    /// Face for which an Interest is sent.
    pub(super) from: Option<FaceId>,
    /// Place where it ends.
    end: usize,
}

/// Packets with their headers, one after the other.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) frames: Vec<Frame>,
    pub(super) now_ns: u64,
}

impl Batch {
    pub(super) fn push(&mut self, face: FaceId, header: &LpHeader<'_>, packet: &[u8]) {
        self.push_from((face, None), header, packet);
    }

    fn push_from(
        &mut self,
        (face, from): (FaceId, Option<FaceId>),
        header: &LpHeader<'_>,
        packet: &[u8],
    ) {
        lp::encode_header(header, None, packet.len(), &mut self.bytes);
        self.bytes.extend_from_slice(packet);
        self.frames.push(Frame { face, from, end: self.bytes.len() });
    }

    pub(super) fn for_each(&self, mut take: impl FnMut(Frame, &LpHeader<'_>, &[u8])) {
        let mut start = 0;
        for frame in &self.frames {
            // Made by `push`, so neither undecodable nor without a packet.
            if let Ok(LpPacket { header, fragment: Some(packet), .. }) =
                LpPacket::decode(&self.bytes[start..frame.end])
            {
                take(*frame, &header, packet);
            }
            start = frame.end;
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }
}

impl Tx for Batch {
    fn send(&mut self, face: FaceId, header: &LpHeader<'_>, packet: &[u8]) {
        self.push(face, header, packet);
    }

    fn send_interest(
        &mut self,
        (face, from): (FaceId, FaceId),
        header: &LpHeader<'_>,
        packet: &[u8],
    ) {
        self.push_from((face, Some(from)), header, packet);
    }
}

/// Message of shard 0 to another.
pub(super) enum Message {
    Packets(Batch),
    Changes(Vec<Change>),
}

/// Message of a shard to shard 0.
pub(super) enum Output {
    Packets(Batch),
    /// With the packets dropped in the queue back.
    Figures(Box<Figures>, u64),
}

/// Another shard, seen from shard 0.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) messages: Option<SyncSender<Message>>,
    pub(super) output: Receiver<Output>,
    pub(super) waker: Waker,
    pub(super) thread: Option<std::thread::JoinHandle<()>>,
    pub(super) batch: Batch,
    pub(super) spare: Vec<Batch>,
    /// Packets dropped in the queue back, as last reported.
    pub(super) dropped: u64,
}

/// Keeps an empty batch to be filled again.
pub(super) fn keep(spare: &mut Vec<Batch>, batch: Batch) {
    if spare.len() < SPARE_MAX {
        spare.push(batch);
    }
}
