//! Content for readers who send no hint: the head asks for it in their place, at a disk that has
//! it.
//!
//! Software that knows versions and segments, but not where replicas lie, follows the name of a
//! content to the head, whose prefix it is below. The same Interest goes out again, with one
//! delegation and a nonce of its own, by the face that it came by; what comes back answers all who
//! wait for it. After a Nack or a second of silence the next replica is asked, each once.
//!
//! It is meant for few readers: what goes this way passes the head's machine twice. So there is a
//! bound to what is asked for in a second and at a time, and whoever asks more than his share of
//! what is free is told to ask again later. Nothing is verified: who reads by a root does that, and
//! others believe whom they ask. Without I/O.

use std::collections::{BTreeMap, HashMap, VecDeque};

use byname_catalog::id::ContentId;
use byname_packet::lp::{self, LpHeader, nack_reason};
use byname_packet::{Data, Interest, InterestBuilder, Name, NameRef};
use byname_security::tree::Hash;
use byname_site::SiteName;
use byname_transfer::delegations::preferred;
use byname_transfer::naming;
use byname_transfer::server::{Arrival, Asker, Echo, Outgoing};

const MS_NS: u64 = 1_000_000;
/// Segments in flight.
const PENDING_MAX: usize = 512;
/// Those who wait for one segment.
const WAITING_MAX: usize = 32;
/// Segments that are asked for in a row, and the time for one more: 2000 a second.
const BURST: u64 = 512;
const REFILL_NS: u64 = 500_000;
/// Time after which the next replica is asked.
const PATIENCE_NS: u64 = 1000 * MS_NS;
/// Longest that anybody's Interest is taken to live.
const LIFETIME_MS_MAX: u64 = 4000;
/// Longest Interest that waits here: whoever pads them would fill memory.
const INTEREST_BYTES_MAX: usize = 1024;

/// A segment that was asked for.
struct Pending {
    waiting: Vec<(Echo, Vec<u8>)>,
    asker: Asker,
    /// Replicas that are left to ask.
    left: VecDeque<Name>,
    /// When the next is asked.
    next_ns: u64,
    /// When nobody waits any more.
    end_ns: u64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Gateway {
    pending: BTreeMap<Vec<u8>, Pending>,
    by_asker: HashMap<Asker, usize>,
    /// When the whole burst may be asked for again.
    full_at_ns: u64,
    asked: u64,
    out: VecDeque<Outgoing>,
}

/// The content and segment that an Interest is for, of a tree object too.
pub(crate) fn segment_of(site: &SiteName, name: NameRef<'_>) -> Option<(ContentId, u64)> {
    let segment = name.last()?.segment()?;
    let object = name.without_last(1);
    let content = match object.last() {
        Some(last) if naming::tree_level(last).is_some() => object.without_last(1),
        _ => object,
    };
    Some((site.parse_content(content)?, segment))
}

impl Gateway {
    /// Takes an Interest for a segment of a content that is on these disks.
    pub(crate) fn handle_interest(
        &mut self,
        arrival: &Arrival<'_>,
        (content, segment): (ContentId, u64),
        disks: Vec<Name>,
        now_ns: u64,
    ) {
        let (echo, interest) = (Echo::of(arrival), arrival.interest);
        // One that has a hint has been led here by it: nobody has the content there.
        let first = preferred(content.inode.0, segment, disks.len());
        let is_plain =
            interest.forwarding_hint.is_none() && interest.wire().len() <= INTEREST_BYTES_MAX;
        let Some(first) = first.filter(|_| is_plain) else {
            return self.out.push_back(echo.nack(interest.wire(), nack_reason::NO_ROUTE));
        };
        let key = interest.name.value().to_vec();
        let lifetime_ns = interest.lifetime_ms.unwrap_or(LIFETIME_MS_MAX).min(LIFETIME_MS_MAX);
        let end_ns = now_ns.saturating_add(lifetime_ns * MS_NS);
        if let Some(pending) = self.pending.get_mut(&key) {
            let is_same = |(other, _): &(Echo, _)| other.asker() == echo.asker();
            // Who asks again is answered once.
            if let Some(again) = pending.waiting.iter_mut().find(|waiting| is_same(waiting)) {
                *again = (echo, interest.wire().to_vec());
            } else if pending.waiting.len() < WAITING_MAX {
                pending.waiting.push((echo, interest.wire().to_vec()));
            } else {
                return self.out.push_back(echo.nack(interest.wire(), nack_reason::CONGESTION));
            }
            pending.end_ns = pending.end_ns.max(end_ns);
            return;
        }
        if !self.may_ask(echo.asker(), now_ns) {
            return self.out.push_back(echo.nack(interest.wire(), nack_reason::CONGESTION));
        }
        let mut left = VecDeque::from(disks);
        left.rotate_left(first);
        *self.by_asker.entry(echo.asker()).or_default() += 1;
        let (asker, waiting) = (echo.asker(), vec![(echo, interest.wire().to_vec())]);
        self.pending.insert(key.clone(), Pending { waiting, asker, left, next_ns: 0, end_ns });
        self.ask_next(&key, now_ns);
    }

    /// There is room, in this second and among what is in flight, and he has no more of it than is
    /// free for others.
    fn may_ask(&self, asker: Asker, now_ns: u64) -> bool {
        let has = self.by_asker.get(&asker).copied().unwrap_or_default();
        let is_over = has >= PENDING_MAX.saturating_sub(self.pending.len());
        let spent_ns = self.full_at_ns.saturating_sub(now_ns);
        if is_over || spent_ns > (BURST - 1) * REFILL_NS {
            return false;
        }
        true
    }

    /// Asks the next replica, or tells who waits that there is none.
    fn ask_next(&mut self, key: &[u8], now_ns: u64) {
        let Some(pending) = self.pending.get_mut(key) else { return };
        let hint = pending.left.pop_front().filter(|_| pending.end_ns > now_ns);
        let (Some(hint), Some((echo, wire))) = (hint, pending.waiting.first()) else {
            return self.give_up(key);
        };
        let Ok(asked) = Interest::decode(wire) else { return self.give_up(key) };
        pending.next_ns = now_ns.saturating_add(PATIENCE_NS).min(pending.end_ns);
        // Replicas that are asked after others count too.
        self.full_at_ns = self.full_at_ns.max(now_ns) + REFILL_NS;
        self.asked += 1;
        let seed = [key, &self.asked.to_be_bytes(), &now_ns.to_be_bytes()].concat();
        let [a, b, c, d, ..] = Hash::of(&seed).0;
        let mut interest = Vec::new();
        InterestBuilder::new(asked.name)
            .forwarding_hint(std::slice::from_ref(&hint))
            .nonce([a, b, c, d])
            .lifetime_ms((pending.end_ns - now_ns) / MS_NS)
            .encode(&mut interest);
        let mut out = Vec::new();
        lp::encode_header(&LpHeader::default(), None, interest.len(), &mut out);
        out.extend_from_slice(&interest);
        self.out.push_back(Outgoing { face: echo.asker().face, wire: out });
    }

    fn give_up(&mut self, key: &[u8]) {
        for (echo, wire) in self.take(key) {
            self.out.push_back(echo.nack(&wire, nack_reason::NO_ROUTE));
        }
    }

    /// Those who wait for a segment, which nobody does any more.
    fn take(&mut self, key: &[u8]) -> Vec<(Echo, Vec<u8>)> {
        let Some(Pending { waiting, asker, .. }) = self.pending.remove(key) else {
            return Vec::new();
        };
        if let Some(count) = self.by_asker.get_mut(&asker) {
            *count -= 1;
            if *count == 0 {
                self.by_asker.remove(&asker);
            }
        }
        waiting
    }

    /// Takes an answer to what was asked for.
    pub(crate) fn handle_data(&mut self, data: &Data<'_>) {
        for (echo, _) in self.take(data.name.value()) {
            self.out.push_back(echo.wrap(data.wire()));
        }
    }

    /// Takes a Nack for what was asked for.
    pub(crate) fn handle_nack(&mut self, name: NameRef<'_>, now_ns: u64) {
        self.ask_next(name.value(), now_ns);
    }

    /// Asks others where nobody has answered.
    pub(crate) fn handle_timeout(&mut self, now_ns: u64) {
        let due = self.pending.iter().filter(|(_, pending)| pending.next_ns <= now_ns);
        let due: Vec<Vec<u8>> = due.map(|(key, _)| key.clone()).collect();
        due.iter().for_each(|key| self.ask_next(key, now_ns));
    }

    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        self.pending.values().map(|pending| pending.next_ns).min()
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.out.pop_front()
    }
}

#[cfg(test)]
mod tests;
