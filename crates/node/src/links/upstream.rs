//! The way out of the forwarder. Interests for a peer that does not keep up wait in turns of the
//! faces they came from.
//!
//! The signal is the link itself: Interests that the peer has not read fill its queue. So the queue
//! of a link gets no more than [`DIRECT_BYTES_MAX`] octets of Interests at a time; what is beyond
//! waits in a `FairQueue` and follows as the link takes it. Data and Nacks do not wait there, and
//! while some may lie in the link's queue Interests do not either. One of a face that has its share
//! waiting is refused: the forwarder hears of it as of a congestion Nack of that peer, and may try
//! another.

use byname_forwarder::{FaceId, Tx};
use byname_io::IoError;
use byname_packet::lp::{LpHeader, nack_reason};

use super::pieces::PieceNotes;
use super::{Carrier, Link, Links, Outcome, is_lent, note, queue};

/// Octets of Interests that a link is given before others wait for their turn.
const DIRECT_BYTES_MAX: usize = 64 << 10;
/// Octets of Interests that wait for one link.
const WAITING_BYTES_MAX: usize = 2 << 20;
/// Octets moved from turns to the link at a time.
const CHUNK_BYTES: usize = 16 << 10;
/// Room for what the link layer puts before an Interest, mostly enough.
const HEAD_BYTES: usize = 64;
/// Octets that the kernel keeps of a Unix stream to a peer that is asked: those are first in, first
/// out.
const KERNEL_BYTES: usize = 64 << 10;

/// An Interest that was not sent.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Whereto.
    pub(crate) face: FaceId,
    pub(crate) interest: Vec<u8>,
    pit_token: Option<Vec<u8>>,
}

impl Refused {
    /// The header of the Nack that it is answered with.
    pub(crate) fn header(&self) -> LpHeader<'_> {
        LpHeader {
            pit_token: self.pit_token.as_deref(),
            nack: Some(nack_reason::CONGESTION),
            ..LpHeader::default()
        }
    }
}

impl Link {
    /// True if an Interest of `bytes` octets has to wait for its turn.
    fn is_behind(&mut self, bytes: usize) -> bool {
        if !matches!(self.carrier, Carrier::Connection(_)) {
            return false;
        }
        // Among Data and Nacks nobody can tell how many Interests lie in the queue.
        let ahead_bytes = self.marking.queued_bytes + self.direct_bytes + bytes;
        if self.is_mixed || self.waiting.is_empty() && ahead_bytes <= DIRECT_BYTES_MAX {
            self.direct_bytes += bytes;
            return false;
        }
        true
    }
}

impl Links {
    /// Lets an Interest wait for its turn, or refuses it; false if it can be sent at once. What is
    /// refused is not encoded: a flood costs little.
    pub(super) fn holds_back(
        &mut self,
        (face, from): (FaceId, FaceId),
        header: &LpHeader<'_>,
        packet: &[u8],
    ) -> bool {
        let Some(link) = self.faces.get_mut(&face) else { return false };
        if let (false, Carrier::Connection(Some(connection))) = (link.is_upstream, &link.carrier) {
            link.is_upstream = true;
            connection.limit_kernel_queue(KERNEL_BYTES);
        }
        if !link.is_behind(packet.len()) {
            return false;
        }
        let waiting = &mut link.waiting;
        let bytes_max = self.send_bytes_max.min(WAITING_BYTES_MAX);
        if !waiting.has_room(from, packet.len(), bytes_max) {
            let pit_token = header.pit_token.map(<[u8]>::to_vec);
            self.refused.push(Refused { face, interest: packet.to_vec(), pit_token });
            return true;
        }
        let mut frame = Vec::with_capacity(packet.len() + HEAD_BYTES);
        let sent = link.sender.send(header, packet, self.now_ns, |head, body| {
            frame.clear();
            frame.extend_from_slice(head);
            frame.extend_from_slice(body);
            waiting.push(from, &frame);
        });
        self.dropped_other += u64::from(sent.is_err());
        note(&mut self.dirty, &mut self.shared, link, face);
        true
    }

    /// Interests that were refused since the last call.
    pub(crate) fn take_refused(&mut self) -> Vec<Refused> {
        std::mem::take(&mut self.refused)
    }
}

impl Link {
    /// Flushes, and hands on what the link takes of what waits; how many frames found no room.
    pub(super) fn flush_waiting(&mut self) -> Result<u64, IoError> {
        let Carrier::Connection(Some(connection)) = &mut self.carrier else { return Ok(0) };
        let mut lost = 0;
        connection.flush()?;
        while !self.waiting.is_empty() && (self.is_mixed || connection.queued_bytes() == 0) {
            let mut bytes = 0;
            while bytes < CHUNK_BYTES
                && let Some(frame) = self.waiting.pop()
            {
                bytes += frame.len();
                lost += u64::from(connection.queue(&[&frame]).is_err());
            }
            connection.flush()?;
        }
        self.marking.queued_bytes = connection.queued_bytes();
        self.is_mixed &= self.marking.queued_bytes > 0;
        self.direct_bytes = 0;
        Ok(lost)
    }
}

impl Tx for Links {
    fn send_interest(
        &mut self,
        (face, from): (FaceId, FaceId),
        header: &LpHeader<'_>,
        packet: &[u8],
    ) {
        if !self.holds_back((face, from), header, packet) {
            self.pass_on(face, header, packet, true);
        }
    }

    fn send(&mut self, face: FaceId, header: &LpHeader<'_>, packet: &[u8]) {
        self.pass_on(face, header, packet, false);
    }
}

impl Links {
    /// Hands a packet to the link of a face.
    fn pass_on(&mut self, face: FaceId, header: &LpHeader<'_>, packet: &[u8], is_interest: bool) {
        let Some(link) = self.faces.get_mut(&face) else { return };
        link.is_mixed |= !is_interest;
        let Link { carrier, sender, marking, pieces, .. } = link;
        let queued_bytes = match carrier {
            Carrier::Peer { socket, .. } => self.shared.sockets[*socket].queued_bytes,
            _ => marking.queued_bytes,
        };
        let marked = marking.mark(header, queued_bytes, self.now_ns);
        let header = marked.as_ref().unwrap_or(header);
        let (shared, deferred) = (&mut self.shared, &mut self.deferred);
        let (scratch, burst, bytes_max) = (&mut self.scratch, self.burst, self.send_bytes_max);
        let now_ns = self.now_ns;
        let mut outcome = Outcome::Queued;
        let sent = sender.send(header, packet, now_ns, |head, body| {
            // Fragments behind one that was dropped are of no use.
            if !matches!(outcome, Outcome::Queued) {
                return;
            }
            outcome = match (&*carrier, burst) {
                _ if is_lent(carrier) => deferred.take(face, [head, body], bytes_max),
                (Carrier::Connection(_), Some(burst)) => {
                    let scratch_max = bytes_max;
                    let mut notes = PieceNotes { pieces, scratch, scratch_max, burst };
                    match notes.take(head, body) {
                        true => Outcome::Queued,
                        false => Outcome::Full,
                    }
                }
                _ => queue(carrier, shared, &[head, body], now_ns),
            };
        });
        if sent.is_err() {
            outcome = Outcome::Absent;
        }
        match outcome {
            Outcome::Queued => {}
            Outcome::Full => self.dropped_full += 1,
            // Counted where it is decided.
            Outcome::Limited => return,
            Outcome::Absent => {
                self.dropped_other += 1;
                return;
            }
        }
        note(&mut self.dirty, &mut self.shared, link, face);
    }
}
