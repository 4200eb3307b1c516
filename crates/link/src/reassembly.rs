//! Putting fragments together again.
//!
//! Fragments mostly come in order, so each is copied to where it belongs, behind the one before;
//! one that comes early is kept until its turn. No space is set aside for what FragCount announces.
//! The first frame is kept whole, for its header is that of the packet: what it carries is its end,
//! and the packet goes on behind it. A message is identified by the sequence number its first
//! fragment has. What is over a limit pushes out the oldest unfinished message.
//!
//! spec: NDNLPv2 "Indexed Fragmentation".

use std::collections::VecDeque;

use byname_packet::MAX_PACKET_BYTES;
use byname_packet::lp::LpPacket;

use crate::drop_reason::DropReason;
use crate::recent::MEMORY_NS;

/// Estimated octets of bookkeeping for one fragment.
const FRAGMENT_OVERHEAD_BYTES: usize = 64;

/// Buffers kept for messages to come: one is enough where nothing is lost.
const SPARE_MAX: usize = 2;

/// Bounds of the unfinished messages of one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReassemblyLimits {
    /// Unfinished messages.
    pub messages_max: usize,
    /// Octets of their fragments, bookkeeping included.
    pub bytes_max: usize,
    /// Fragments of one message.
    pub fragments_max: u64,
    /// Time after its first fragment at which a message is given up.
    pub lifetime_ns: u64,
}

impl Default for ReassemblyLimits {
    fn default() -> Self {
        Self { messages_max: 16, bytes_max: 64 << 10, fragments_max: 400, lifetime_ns: 500_000_000 }
    }
}

impl ReassemblyLimits {
    /// The limits while lost fragments are sent again: they come late, and more messages are
    /// unfinished meanwhile.
    pub(crate) fn with_reliability(self) -> Self {
        const TIMES_MORE: usize = 8;
        Self {
            messages_max: self.messages_max.saturating_mul(TIMES_MORE),
            bytes_max: self.bytes_max.saturating_mul(TIMES_MORE),
            lifetime_ns: self.lifetime_ns.max(MEMORY_NS),
            ..self
        }
    }
}

#[derive(Debug)]
struct Partial {
    id: u64,
    count: u64,
    started_ns: u64,
    /// The fragments up to `next`.
    whole: Whole,
    next: u64,
    /// Index and payload of those that came early, ascending.
    early: Vec<(u64, Box<[u8]>)>,
    payload_bytes: usize,
}

impl Partial {
    fn held_bytes(&self) -> usize {
        let fragments = self.next as usize + self.early.len();
        self.payload_bytes + self.whole.packet_at + fragments * FRAGMENT_OVERHEAD_BYTES
    }

    /// Where an index stands among those that came early; an error if it is there already.
    fn place(&self, index: u64) -> Result<usize, DropReason> {
        let search = self.early.binary_search_by_key(&index, |(early, _)| *early);
        match search {
            Err(place) if index >= self.next => Ok(place),
            _ => Err(DropReason::DuplicateFragment),
        }
    }

    fn add(&mut self, (index, place): (u64, usize), payload: &[u8], frame: &[u8]) {
        self.payload_bytes += payload.len();
        if index != self.next {
            return self.early.insert(place, (index, payload.into()));
        }
        self.whole.append(index == 0, payload, frame);
        self.next += 1;
        let in_turn = |((index, _), next): &(&(u64, _), u64)| index == next;
        let count = self.early.iter().zip(self.next..).take_while(in_turn).count();
        for (_, payload) in self.early.drain(..count) {
            self.whole.octets.extend_from_slice(&payload);
        }
        self.next += count as u64;
    }

    fn is_whole(&self) -> bool {
        self.next == self.count
    }
}

/// A message put together: its first frame, which has the header, and the rest of the packet.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    octets: Vec<u8>,
    frame_bytes: usize,
    packet_at: usize,
}

impl Whole {
    /// The frame with the header of the packet.
    pub(crate) fn first_frame(&self) -> &[u8] {
        &self.octets[..self.frame_bytes]
    }

    pub(crate) fn packet(&self) -> &[u8] {
        &self.octets[self.packet_at..]
    }

    fn append(&mut self, is_first: bool, payload: &[u8], frame: &[u8]) {
        if is_first {
            self.octets.extend_from_slice(frame);
            (self.frame_bytes, self.packet_at) = (frame.len(), frame.len());
            // Fields that nobody knows may stand behind the fragment.
            if frame.ends_with(payload) {
                self.packet_at -= payload.len();
                return;
            }
        }
        self.octets.extend_from_slice(payload);
    }
}

/// The unfinished messages of one link, oldest first.
#[derive(Debug)]
pub(crate) struct Reassembler {
    limits: ReassemblyLimits,
    partials: VecDeque<Partial>,
    held_bytes: usize,
    evicted: u64,
    /// Memory of messages that are done with.
    spare: Vec<Vec<u8>>,
}

impl Reassembler {
    pub(crate) fn new(limits: ReassemblyLimits) -> Self {
        let (partials, spare) = (VecDeque::new(), Vec::new());
        Self { limits, partials, held_bytes: 0, evicted: 0, spare }
    }

    pub(crate) fn set_limits(&mut self, limits: ReassemblyLimits) {
        self.limits = limits;
    }

    /// Unfinished messages given up so far.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Octets held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Takes one fragment; hands out the message when it is complete.
    pub(crate) fn add(
        &mut self,
        packet: &LpPacket<'_>,
        frame: &[u8],
        now_ns: u64,
    ) -> Result<Option<Whole>, DropReason> {
        self.expire(now_ns);
        let count = packet.frag_count;
        if count > self.limits.fragments_max {
            return Err(DropReason::TooManyFragments { count });
        }
        let payload = packet.fragment.ok_or(DropReason::Idle)?;
        let sequence = packet.sequence.ok_or(DropReason::Inconsistent)?;
        let id = sequence.wrapping_sub(packet.frag_index);
        // Mostly it goes on with the newest.
        let at = match self.partials.iter().rposition(|partial| partial.id == id) {
            Some(at) => at,
            None => self.start(id, count, now_ns),
        };
        let partial = &mut self.partials[at];
        if partial.count != count {
            return Err(DropReason::Inconsistent);
        }
        let place = partial.place(packet.frag_index)?;
        if partial.payload_bytes + payload.len() > MAX_PACKET_BYTES {
            self.remove(at);
            return Err(DropReason::TooLarge);
        }
        let before = partial.held_bytes();
        partial.add((packet.frag_index, place), payload, frame);
        self.held_bytes += partial.held_bytes() - before;
        if partial.is_whole() {
            return Ok(self.remove(at).map(|partial| partial.whole));
        }
        self.make_room(id);
        Ok(None)
    }

    /// Gives back a message that was handed out.
    pub(crate) fn recycle(&mut self, whole: Whole) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(whole.octets);
        }
    }

    fn start(&mut self, id: u64, count: u64, now_ns: u64) -> usize {
        while self.partials.len() >= self.limits.messages_max.max(1) {
            self.evict_at(0);
        }
        let mut octets = self.spare.pop().unwrap_or_default();
        octets.clear();
        self.partials.push_back(Partial {
            id,
            count,
            started_ns: now_ns,
            whole: Whole { octets, ..Whole::default() },
            next: 0,
            early: Vec::new(),
            payload_bytes: 0,
        });
        self.partials.len() - 1
    }

    /// Gives up the oldest messages, the one just added to last.
    fn make_room(&mut self, keep_id: u64) {
        while self.held_bytes > self.limits.bytes_max {
            let oldest = self.partials.iter().position(|partial| partial.id != keep_id);
            self.evict_at(oldest.unwrap_or(0));
        }
    }

    fn expire(&mut self, now_ns: u64) {
        let lifetime_ns = self.limits.lifetime_ns;
        let is_over = |p: &Partial| now_ns.saturating_sub(p.started_ns) >= lifetime_ns;
        while self.partials.front().is_some_and(is_over) {
            self.evict_at(0);
        }
    }

    fn evict_at(&mut self, at: usize) {
        self.remove(at);
        self.evicted += 1;
    }

    fn remove(&mut self, at: usize) -> Option<Partial> {
        let partial = self.partials.remove(at)?;
        self.held_bytes -= partial.held_bytes();
        Some(partial)
    }
}
