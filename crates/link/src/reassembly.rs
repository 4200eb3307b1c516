//! Putting fragments together again.
//!
//! Fragments are kept as they arrive, in order of index, and joined when the last one is there: no
//! space is set aside for what FragCount announces. A message is identified by the sequence number
//! its first fragment has. What is over a limit pushes out the oldest unfinished message.
//!
//! spec: NDNLPv2 "Indexed Fragmentation".

use std::collections::VecDeque;

use byname_packet::MAX_PACKET_BYTES;
use byname_packet::lp::LpPacket;

use crate::receiver::DropReason;
use crate::recent::MEMORY_NS;

/// Estimated octets of bookkeeping for one fragment.
const FRAGMENT_OVERHEAD_BYTES: usize = 64;

/// What one link may hold of unfinished messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReassemblyLimits {
    /// Unfinished messages.
    pub messages_max: usize,
    /// Octets of their fragments, bookkeeping included.
    pub bytes_max: usize,
    /// Fragments of one message.
    pub fragments_max: u64,
    /// How long after its first fragment a message is given up.
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
    /// Index and payload, ascending.
    fragments: Vec<(u64, Box<[u8]>)>,
    /// The frame of fragment 0, which carries the header of the whole packet.
    first_frame: Box<[u8]>,
    payload_bytes: usize,
}

impl Partial {
    fn held_bytes(&self) -> usize {
        let overhead = self.fragments.len() * FRAGMENT_OVERHEAD_BYTES;
        self.payload_bytes + self.first_frame.len() + overhead
    }
}

/// A message put together: the frame with its header, and the packet.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) first_frame: Box<[u8]>,
    pub(crate) packet: Vec<u8>,
}

/// The unfinished messages of one link, oldest first.
#[derive(Debug)]
pub(crate) struct Reassembler {
    limits: ReassemblyLimits,
    partials: VecDeque<Partial>,
    held_bytes: usize,
    evicted: u64,
}

impl Reassembler {
    pub(crate) fn new(limits: ReassemblyLimits) -> Self {
        Self { limits, partials: VecDeque::new(), held_bytes: 0, evicted: 0 }
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
        let at = match self.partials.iter().position(|partial| partial.id == id) {
            Some(at) => at,
            None => self.start(id, count, now_ns),
        };
        let partial = &mut self.partials[at];
        if partial.count != count {
            return Err(DropReason::Inconsistent);
        }
        let search = partial.fragments.binary_search_by_key(&packet.frag_index, |(i, _)| *i);
        let Err(place) = search else { return Err(DropReason::DuplicateFragment) };
        if partial.payload_bytes + payload.len() > MAX_PACKET_BYTES {
            self.remove(at);
            return Err(DropReason::TooLarge);
        }
        let before = partial.held_bytes();
        partial.payload_bytes += payload.len();
        partial.fragments.insert(place, (packet.frag_index, payload.into()));
        if packet.frag_index == 0 {
            // Only the header is wanted, but it is not worth a second representation.
            partial.first_frame = frame.into();
        }
        self.held_bytes += partial.held_bytes() - before;
        if partial.fragments.len() as u64 == count {
            return Ok(self.remove(at).map(join));
        }
        self.make_room(id);
        Ok(None)
    }

    fn start(&mut self, id: u64, count: u64, now_ns: u64) -> usize {
        while self.partials.len() >= self.limits.messages_max.max(1) {
            self.evict_at(0);
        }
        self.partials.push_back(Partial {
            id,
            count,
            started_ns: now_ns,
            fragments: Vec::new(),
            first_frame: Box::default(),
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

fn join(partial: Partial) -> Whole {
    let mut packet = Vec::with_capacity(partial.payload_bytes);
    for (_, payload) in &partial.fragments {
        packet.extend_from_slice(payload);
    }
    Whole { first_frame: partial.first_frame, packet }
}
