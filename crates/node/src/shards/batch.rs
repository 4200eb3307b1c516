//! Batches of packets, and the queues between shard 0 and the others.

use std::sync::mpsc::{Receiver, SyncSender};

use byname_forwarder::{Change, FaceId, Figures, Tx};
use byname_io::Waker;
use byname_packet::lp::{self, LpHeader, LpPacket};

/// Batches that wait for a shard, and that wait to be sent from one.
pub(super) const BATCHES_MAX: usize = 64;

/// Empty batches kept on each side.
const SPARE_MAX: usize = 8;

/// Packets with their headers, one after the other.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    /// Place where each came from or goes to, and where it ends.
    pub(super) frames: Vec<(FaceId, usize)>,
    pub(super) now_ns: u64,
}

impl Batch {
    pub(super) fn push(&mut self, face: FaceId, header: &LpHeader<'_>, packet: &[u8]) {
        lp::encode_header(header, None, packet.len(), &mut self.bytes);
        self.bytes.extend_from_slice(packet);
        self.frames.push((face, self.bytes.len()));
    }

    pub(super) fn for_each(&self, mut take: impl FnMut(FaceId, &LpHeader<'_>, &[u8])) {
        let mut start = 0;
        for (face, end) in &self.frames {
            // Made by `push`, so neither undecodable nor without a packet.
            if let Ok(LpPacket { header, fragment: Some(packet), .. }) =
                LpPacket::decode(&self.bytes[start..*end])
            {
                take(*face, &header, packet);
            }
            start = *end;
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
