//! Two reliable links and an adversary between them.
//!
//! Each transmission is delivered after [`BASE_NS`] unless the adversary loses it, delays it or
//! adds a copy. Losing and delaying use up the patience of every frame concerned: the one that
//! travels, and those whose acknowledgement travels with it. A frame's patience is as many
//! failures as there are retransmissions, so everything must arrive in the end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use byname_link::{LinkOptions, LinkService, RETRIES_MAX, ReassemblyLimits};
use byname_packet::lp::{LpHeader, LpPacket};
use byname_packet::{tlv, types};

pub(crate) const MS: u64 = 1_000_000;
const BASE_NS: u64 = 10 * MS;

/// The adversary's deed with one transmission.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fate {
    Deliver,
    Lose,
    /// Late by so many ms.
    Delay(u64),
    /// Once more, so many ms later.
    Copy(u64),
}

/// When it arrives, a number that keeps the order, at which end, and what.
type Arriving = (u64, u64, usize, Vec<u8>);

pub(crate) struct Network {
    pub(crate) ends: [LinkService; 2],
    pub(crate) now_ns: u64,
    in_flight: BinaryHeap<Reverse<Arriving>>,
    transmissions: u64,
    fates: Vec<Fate>,
    /// Failures of each frame so far, by sending end and sequence number.
    failures: HashMap<(usize, u64), u8>,
    /// Which frame a TxSequence belongs to.
    sequences: HashMap<(usize, u64), u64>,
    /// Packets that came out, by receiving end.
    pub(crate) delivered: [Vec<Vec<u8>>; 2],
}

pub(crate) fn packet(number: u64, len: usize) -> Vec<u8> {
    let mut body = number.to_be_bytes().to_vec();
    body.resize(len.max(8), number as u8);
    let mut out = Vec::new();
    tlv::write_element(&mut out, types::DATA, &body);
    out
}

impl Network {
    pub(crate) fn new(mtu_bytes: usize, fates: Vec<Fate>) -> Self {
        let end = |first_sequence| {
            let limits = ReassemblyLimits::default();
            let mut link = LinkService::datagram(mtu_bytes, first_sequence, limits);
            link.set_options(&LinkOptions { reliability: true, mtu_bytes: None });
            link
        };
        Self {
            // Wraps around in the middle of the test.
            ends: [end(u64::MAX - 20), end(7)],
            now_ns: 1_000_000 * MS,
            in_flight: BinaryHeap::new(),
            transmissions: 0,
            fates,
            failures: HashMap::new(),
            sequences: HashMap::new(),
            delivered: [Vec::new(), Vec::new()],
        }
    }

    pub(crate) fn send(&mut self, from: usize, packet: &[u8]) {
        let mut frames = Vec::new();
        let header = LpHeader { pit_token: Some(b"token"), ..LpHeader::default() };
        let emit = |head: &[u8], body: &[u8]| frames.push([head, body].concat());
        self.ends[from].send(&header, packet, self.now_ns, emit).unwrap();
        frames.into_iter().for_each(|frame| self.transmit(from, frame));
    }

    fn transmit(&mut self, from: usize, frame: Vec<u8>) {
        let lp = LpPacket::decode(&frame).unwrap();
        let mut concerned: Vec<_> = lp
            .acks()
            .filter_map(|ack| Some((1 - from, *self.sequences.get(&(1 - from, ack))?)))
            .collect();
        if let (Some(sequence), Some(tx_sequence)) = (lp.sequence, lp.tx_sequence) {
            self.sequences.insert((from, tx_sequence), sequence);
            concerned.push((from, sequence));
        }
        let fate = self.fates.get(self.transmissions as usize).copied().unwrap_or(Fate::Deliver);
        let patience = |key| self.failures.get(key).is_none_or(|n| *n < RETRIES_MAX);
        let may_fail = concerned.iter().all(patience);
        let due_ns = self.now_ns + BASE_NS;
        let arrivals = match fate {
            Fate::Lose if may_fail => vec![],
            Fate::Delay(ms) if may_fail => vec![due_ns + ms * MS],
            Fate::Copy(ms) => vec![due_ns, due_ns + ms * MS],
            _ => vec![due_ns],
        };
        if may_fail && matches!(fate, Fate::Lose | Fate::Delay(_)) {
            concerned.into_iter().for_each(|key| *self.failures.entry(key).or_default() += 1);
        }
        for at_ns in arrivals {
            self.transmissions += 1;
            self.in_flight.push(Reverse((at_ns, self.transmissions, 1 - from, frame.clone())));
        }
        self.transmissions += 1;
    }

    /// Lets time pass until `until_ns`.
    pub(crate) fn run(&mut self, until_ns: u64) {
        loop {
            let timers = self.ends.iter().filter_map(LinkService::poll_timeout);
            let arrival = self.in_flight.peek().map(|Reverse((at_ns, ..))| *at_ns);
            let Some(next_ns) = timers.chain(arrival).min().filter(|ns| *ns <= until_ns) else {
                self.now_ns = until_ns;
                return;
            };
            self.now_ns = self.now_ns.max(next_ns);
            if arrival.is_some_and(|at_ns| at_ns <= self.now_ns) {
                self.arrive();
            }
            for end in 0..2 {
                let mut frames = Vec::new();
                let emit = |head: &[u8], body: &[u8]| frames.push([head, body].concat());
                self.ends[end].handle_timeout(self.now_ns, emit);
                frames.into_iter().for_each(|frame| self.transmit(end, frame));
            }
        }
    }

    fn arrive(&mut self) {
        let Some(Reverse((_, _, to, frame))) = self.in_flight.pop() else { return };
        if let Ok(Some(received)) = self.ends[to].receive(&frame, self.now_ns) {
            assert_eq!(received.header.pit_token, Some(&b"token"[..]));
            self.delivered[to].push(received.packet.to_vec());
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.in_flight.is_empty() && self.ends.iter().all(|end| end.poll_timeout().is_none())
    }
}
