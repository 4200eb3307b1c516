//! Bounds on what addresses get over UDP that have not shown that they receive.
//!
//! Anybody can write another's address as the sender of a datagram, and answers are larger than
//! requests. So an address is *validated* (RFC 9000 §8 has the same for QUIC): it is sent a token,
//! which comes back only if something at that address receives and takes part. Until then it gets
//! three times the octets that it has sent, and beyond that what two token buckets allow: one of
//! its machine and one of all that are not validated. So who does not know of tokens is served, at
//! a bounded rate; what is over waits for a while ([`delay`]). Peers on this machine, and those
//! that somebody here has named, are validated from the beginning: the kernel takes no datagram
//! from outside with a loopback address. Others get a new token each second while they ask, so that
//! nobody goes on in the name of a reader that has left.
//!
//! Tokens are a keyed hash of the address and the time, so nothing is kept for those who never
//! return theirs. Invariants: at most [`MACHINES_MAX`] buckets; beyond, whoever has none shares the
//! bucket of all.

mod delay;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

use crate::address::is_loopback;
use crate::admission::machine_of;
use crate::datagram::DatagramSocket;
use crate::error::QueueFull;
use delay::{DelayQueue, Delayed, Grant};

/// Octets sent for each one received, whatever the buckets hold.
const FACTOR: u64 = 3;
/// Most octets that such a credit may grow to.
const CREDIT_BYTES_MAX: u64 = 64 << 10;
/// Buckets at a time.
const MACHINES_MAX: usize = 4096;
/// Time for which tokens stay the same. Each is taken until the end of the next such time.
const EPOCH_NS: u64 = 5_000_000_000;
/// A returned token counts for so long,
const VALID_NS: u64 = 60_000_000_000;
/// unless the address goes on asking and does not return the next one within this time.
const GRACE_NS: u64 = 3_000_000_000;
/// Pause between tokens to an address that returns them.
const RENEWAL_NS: u64 = 1_000_000_000;
/// Pauses between tokens to an address that does not, doubled from one to the next.
const PAUSE_MIN_NS: u64 = 10_000_000;
const PAUSE_MAX_NS: u64 = 1_000_000_000;
/// Pause between looks at what waits.
const RELEASE_PAUSE_NS: u64 = 1_000_000;
/// A bucket holds what comes in this part of a second,
const DEPTH_DIVISOR: u64 = 8;
/// and at least some datagrams, if anything comes at all.
const DEPTH_BYTES_MIN: u64 = 32 << 10;
/// Octets that sending a token takes, its frame included.
pub const TOKEN_FRAME_BYTES: usize = 14;

/// Octets a second that addresses get which are not validated, beyond three times what they sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnvalidatedRates {
    /// Each machine.
    pub machine_bytes_s: u64,
    /// All together.
    pub all_bytes_s: u64,
}

impl Default for UnvalidatedRates {
    fn default() -> Self {
        Self { machine_bytes_s: 4 << 20, all_bytes_s: 64 << 20 }
    }
}

/// A peer of a UDP socket.
#[derive(Debug)]
pub struct UdpPeer {
    address: SocketAddr,
    validated_until_ns: u64,
    /// When the first token was sent that is still to come back.
    awaited_since_ns: Option<u64>,
    credit_bytes: u64,
    next_token_ns: u64,
    pause_ns: u64,
}

impl UdpPeer {
    /// A peer that has sent something.
    pub fn unknown(address: SocketAddr) -> Self {
        let validated_until_ns = if is_loopback(address) { u64::MAX } else { 0 };
        Self {
            address,
            validated_until_ns,
            awaited_since_ns: None,
            credit_bytes: 0,
            next_token_ns: 0,
            pause_ns: PAUSE_MIN_NS,
        }
    }

    /// A peer that somebody of this machine has named.
    pub fn named(address: SocketAddr) -> Self {
        Self { validated_until_ns: u64::MAX, ..Self::unknown(address) }
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// True if it has returned a token lately.
    pub fn is_validated(&self, now_ns: u64) -> bool {
        let is_late = |since_ns| now_ns.saturating_sub(since_ns) > GRACE_NS;
        now_ns < self.validated_until_ns && !self.awaited_since_ns.is_some_and(is_late)
    }
}

/// See the module. One for all UDP sockets of a server.
#[derive(Debug)]
pub struct AnswerLimiter {
    rates: UnvalidatedRates,
    key: RandomState,
    machines: HashMap<IpAddr, Bucket>,
    all: Bucket,
    delayed: DelayQueue,
    /// Time of the next look at what waits.
    next_release_ns: u64,
    dropped: u64,
}

impl Default for AnswerLimiter {
    fn default() -> Self {
        Self::new(UnvalidatedRates::default())
    }
}

impl AnswerLimiter {
    /// A limiter with a key of its own.
    pub fn new(rates: UnvalidatedRates) -> Self {
        Self {
            rates,
            key: RandomState::new(),
            machines: HashMap::new(),
            all: Bucket::default(),
            delayed: DelayQueue::default(),
            next_release_ns: 0,
            dropped: 0,
        }
    }

    /// Changes the rates.
    pub fn set_rates(&mut self, rates: UnvalidatedRates) {
        self.rates = rates;
    }

    /// Datagrams that were not sent.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Counts what a peer has sent; gives the token that it should be sent now, if any. Sending it
    /// takes [`TOKEN_FRAME_BYTES`], which are counted here.
    pub fn on_received(&self, peer: &mut UdpPeer, bytes: usize, now_ns: u64) -> Option<u64> {
        if peer.validated_until_ns == u64::MAX {
            return None;
        }
        let credit_bytes = peer.credit_bytes + FACTOR * bytes as u64;
        peer.credit_bytes = credit_bytes.min(CREDIT_BYTES_MAX);
        if now_ns < peer.next_token_ns || peer.credit_bytes < TOKEN_FRAME_BYTES as u64 {
            return None;
        }
        peer.credit_bytes -= TOKEN_FRAME_BYTES as u64;
        if peer.is_validated(now_ns) {
            peer.next_token_ns = now_ns.saturating_add(RENEWAL_NS);
        } else {
            peer.next_token_ns = now_ns.saturating_add(peer.pause_ns);
            peer.pause_ns = (peer.pause_ns * 2).min(PAUSE_MAX_NS);
        }
        peer.awaited_since_ns.get_or_insert(now_ns);
        Some(self.token(peer.address, now_ns / EPOCH_NS))
    }

    /// Validates a peer that has returned the right token.
    pub fn on_returned(&self, peer: &mut UdpPeer, token: u64, now_ns: u64) {
        let epoch = now_ns / EPOCH_NS;
        let is_ours = |epoch| token == self.token(peer.address, epoch);
        if is_ours(epoch) || epoch.checked_sub(1).is_some_and(is_ours) {
            let until_ns = now_ns.saturating_add(VALID_NS);
            peer.validated_until_ns = peer.validated_until_ns.max(until_ns);
            peer.next_token_ns = now_ns.saturating_add(RENEWAL_NS);
            (peer.awaited_since_ns, peer.pause_ns) = (None, PAUSE_MIN_NS);
        }
    }

    /// Queues a datagram for a peer of the socket with this number. One that the peer may not get
    /// now waits for [`AnswerLimiter::release`], or is dropped and counted. Returns whether the
    /// socket has something to flush.
    ///
    /// # Errors
    /// [`QueueFull`] when the socket has no room.
    pub fn queue(
        &mut self,
        (number, socket): (usize, &mut DatagramSocket),
        peer: &mut UdpPeer,
        parts: &[&[u8]],
        now_ns: u64,
    ) -> Result<bool, QueueFull> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        if self.admit(peer, bytes, now_ns) {
            return socket.queue(peer.address, parts).map(|()| true);
        }
        let UnvalidatedRates { machine_bytes_s, all_bytes_s } = self.rates;
        let delayed = Delayed::new((number, peer.address), parts, now_ns);
        if machine_bytes_s.min(all_bytes_s) == 0
            || !self.delayed.push(machine_of(peer.address.ip()), delayed)
        {
            self.dropped += 1;
        }
        Ok(false)
    }

    /// When [`AnswerLimiter::release`] has something to do.
    pub fn poll_timeout(&self) -> Option<u64> {
        (!self.delayed.is_empty()).then_some(self.next_release_ns)
    }

    /// Hands out datagrams that waited and may be sent now, with the numbers of their sockets.
    pub fn release(&mut self, now_ns: u64, mut send: impl FnMut(usize, SocketAddr, &[u8])) {
        if self.poll_timeout().is_none_or(|due_ns| due_ns > now_ns) {
            return;
        }
        self.next_release_ns = now_ns.saturating_add(RELEASE_PAUSE_NS);
        let mut delayed = std::mem::take(&mut self.delayed);
        self.dropped += delayed.release(
            now_ns,
            |machine, bytes| self.take(machine, bytes as u64, now_ns),
            |datagram| send(datagram.socket, datagram.address, &datagram.octets),
        );
        self.delayed = delayed;
    }

    /// Returns whether a datagram may be sent to a peer now.
    fn admit(&mut self, peer: &mut UdpPeer, bytes: usize, now_ns: u64) -> bool {
        if peer.is_validated(now_ns) {
            return true;
        }
        let bytes = bytes as u64;
        if let Some(rest) = peer.credit_bytes.checked_sub(bytes) {
            peer.credit_bytes = rest;
            return true;
        }
        let machine = machine_of(peer.address.ip());
        !self.delayed.holds(machine) && self.take(machine, bytes, now_ns) == Grant::Granted
    }

    fn take(&mut self, machine: IpAddr, bytes: u64, now_ns: u64) -> Grant {
        let UnvalidatedRates { machine_bytes_s, all_bytes_s } = self.rates;
        if self.all.fill(all_bytes_s, now_ns) < bytes {
            return Grant::Nobody;
        }
        if self.machines.len() >= MACHINES_MAX && !self.machines.contains_key(&machine) {
            // A full bucket is as good as none.
            self.machines
                .retain(|_, bucket| bucket.fill(machine_bytes_s, now_ns) < depth(machine_bytes_s));
        }
        if self.machines.len() < MACHINES_MAX || self.machines.contains_key(&machine) {
            let bucket = self.machines.entry(machine).or_default();
            if bucket.fill(machine_bytes_s, now_ns) < bytes {
                return Grant::NotThisMachine;
            }
            bucket.left_bytes -= bytes;
        }
        self.all.left_bytes -= bytes;
        Grant::Granted
    }

    fn token(&self, address: SocketAddr, epoch: u64) -> u64 {
        self.key.hash_one((address, epoch))
    }
}

/// Octets that a bucket holds at most.
fn depth(bytes_s: u64) -> u64 {
    if bytes_s == 0 { 0 } else { (bytes_s / DEPTH_DIVISOR).max(DEPTH_BYTES_MIN) }
}

/// Octets that may still be sent.
#[derive(Debug, Default)]
struct Bucket {
    left_bytes: u64,
    /// Time of the last look; `None`: full.
    filled_ns: Option<u64>,
}

impl Bucket {
    /// Fills it up to now; says what it holds.
    fn fill(&mut self, bytes_s: u64, now_ns: u64) -> u64 {
        const SECOND_NS: u128 = 1_000_000_000;
        let come = self.filled_ns.map_or(u64::MAX, |at_ns| {
            let passed_ns = u128::from(now_ns.saturating_sub(at_ns)).min(SECOND_NS);
            let come = u128::from(bytes_s) * passed_ns / SECOND_NS;
            u64::try_from(come).expect("at most what comes in a second")
        });
        // What is less than an octet is not lost: the time stays as it was.
        if come > 0 {
            self.left_bytes = self.left_bytes.saturating_add(come).min(depth(bytes_s));
            self.filled_ns = Some(now_ns);
        }
        self.left_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    const REQUEST_BYTES: usize = 29;
    const ANSWER_BYTES: usize = 8242;
    const SECOND_NS: u64 = 1_000_000_000;
    const RATES: UnvalidatedRates =
        UnvalidatedRates { machine_bytes_s: 100_000, all_bytes_s: 250_000 };

    fn peer(text: &str) -> UdpPeer {
        UdpPeer::unknown(text.parse().unwrap())
    }

    fn socket() -> DatagramSocket {
        let limits = Limits { send_bytes_max: 1 << 30, ..Limits::default() };
        DatagramSocket::bind_with(&"udp://127.0.0.1:0".parse().unwrap(), limits).unwrap()
    }

    /// Octets that all of `peers` get, which ask 20 000 times a second and never return a token.
    fn flood(limiter: &mut AnswerLimiter, peers: &mut [UdpPeer], seconds: u64) -> u64 {
        let (mut socket, mut sent) = (socket(), 0);
        for step in 0..20_000 * seconds {
            let now_ns = SECOND_NS + step * 50_000;
            limiter.release(now_ns, |_, _, octets| sent += octets.len() as u64);
            for peer in &mut *peers {
                let token = limiter.on_received(peer, REQUEST_BYTES, now_ns);
                sent += token.map_or(0, |_| TOKEN_FRAME_BYTES as u64);
                let is_sent =
                    limiter.queue((0, &mut socket), peer, &[&[7; ANSWER_BYTES]], now_ns).unwrap();
                sent += u64::from(is_sent) * ANSWER_BYTES as u64;
            }
        }
        sent
    }

    #[test]
    fn a_forged_sender_gets_three_times_what_it_sent_and_a_bounded_rate_beside() {
        let mut limiter = AnswerLimiter::new(RATES);
        let sent = flood(&mut limiter, &mut [peer("192.0.2.1:6363")], 10);
        let asked = 10 * 20_000 * REQUEST_BYTES as u64;
        assert!(sent <= 3 * asked + 11 * RATES.machine_bytes_s, "{sent} for {asked}");
        assert!(limiter.dropped() > 0);
    }

    #[test]
    fn with_rates_of_zero_a_forged_sender_gets_three_times_what_it_sent() {
        let asked = 10 * 20_000 * REQUEST_BYTES as u64;
        let none = UnvalidatedRates { machine_bytes_s: 0, all_bytes_s: 0 };
        let sent = flood(&mut AnswerLimiter::new(none), &mut [peer("192.0.2.1:6363")], 10);
        assert!(sent <= 3 * asked && sent > asked, "{sent} for {asked}");
    }

    #[test]
    fn all_forged_senders_together_get_a_bounded_rate() {
        let mut limiter = AnswerLimiter::new(RATES);
        let mut peers: Vec<_> = (1..=50).map(|i| peer(&format!("192.0.2.{i}:6363"))).collect();
        let sent = flood(&mut limiter, &mut peers, 1);
        let asked = 50 * 20_000 * REQUEST_BYTES as u64;
        assert!(sent <= 3 * asked + 2 * RATES.all_bytes_s, "{sent} for {asked}");
    }

    #[test]
    fn what_is_over_waits_and_follows_at_the_rate_in_its_order() {
        let mut limiter = AnswerLimiter::new(RATES);
        let (mut reader, mut socket) = (peer("192.0.2.1:6363"), socket());
        let at_once = (0..20u8)
            .filter(|number| {
                let answer = vec![*number; ANSWER_BYTES];
                limiter.queue((3, &mut socket), &mut reader, &[&answer], SECOND_NS).unwrap()
            })
            .count();
        assert_eq!(at_once, 3, "what the bucket holds");
        let mut came = Vec::new();
        let mut now_ns = SECOND_NS;
        while let Some(due_ns) = limiter.poll_timeout() {
            assert!(due_ns > now_ns || now_ns == SECOND_NS);
            now_ns = due_ns.max(now_ns);
            limiter.release(now_ns, |socket, address, octets| {
                assert_eq!((socket, address), (3, reader.address()));
                came.push(octets[0]);
            });
            let bytes = (came.len() + at_once) as u64 * ANSWER_BYTES as u64;
            let passed_ns = now_ns - SECOND_NS;
            assert!(bytes <= depth(100_000) + 100_000 * passed_ns / SECOND_NS, "too early");
        }
        assert_eq!(came, (3..20).collect::<Vec<u8>>());
        assert_eq!(limiter.dropped(), 0);
    }

    #[test]
    fn the_ports_of_a_machine_share_its_rate() {
        let mut limiter = AnswerLimiter::new(RATES);
        let mut peers: Vec<_> = (1..=50).map(|port| peer(&format!("192.0.2.1:{port}"))).collect();
        let sent = flood(&mut limiter, &mut peers, 1);
        let asked = 50 * 20_000 * REQUEST_BYTES as u64;
        assert!(sent <= 3 * asked + 2 * RATES.machine_bytes_s, "{sent} for {asked}");
    }

    #[test]
    fn who_returns_the_token_gets_everything_while_it_goes_on_returning_them() {
        let mut limiter = AnswerLimiter::new(RATES);
        let mut reader = peer("192.0.2.1:6363");
        let mut given = None;
        for step in 0..1_000_000u64 {
            let now_ns = 7 * SECOND_NS + step * 50_000;
            if let Some(token) = given.take() {
                limiter.on_returned(&mut reader, token, now_ns);
            }
            given = limiter.on_received(&mut reader, REQUEST_BYTES, now_ns);
            assert!(limiter.admit(&mut reader, ANSWER_BYTES, now_ns), "at step {step}");
        }
        assert_eq!(limiter.dropped(), 0);
        let end_ns = 57 * SECOND_NS;
        assert!(!reader.is_validated(end_ns + VALID_NS));
        // It has left, and somebody asks in its name.
        assert!(limiter.on_received(&mut reader, REQUEST_BYTES, end_ns + SECOND_NS).is_some());
        assert!(reader.is_validated(end_ns + SECOND_NS + GRACE_NS));
        assert!(!reader.is_validated(end_ns + SECOND_NS + GRACE_NS + 1));
    }

    #[test]
    fn a_token_is_of_one_address_and_grows_old() {
        let limiter = AnswerLimiter::default();
        let (mut one, mut other) = (peer("192.0.2.1:1"), peer("192.0.2.1:2"));
        let token = limiter.on_received(&mut one, REQUEST_BYTES, SECOND_NS).unwrap();
        limiter.on_returned(&mut other, token, SECOND_NS);
        assert!(!other.is_validated(SECOND_NS));
        limiter.on_returned(&mut one, token ^ 1, SECOND_NS);
        limiter.on_returned(&mut one, token, SECOND_NS + 2 * EPOCH_NS);
        assert!(!one.is_validated(SECOND_NS));
        AnswerLimiter::default().on_returned(&mut one, token, SECOND_NS);
        assert!(!one.is_validated(SECOND_NS), "of another server");
        limiter.on_returned(&mut one, token, SECOND_NS + EPOCH_NS);
        assert!(one.is_validated(SECOND_NS + EPOCH_NS));
    }

    #[test]
    fn tokens_are_sent_rarely_to_those_who_do_not_return_them() {
        let limiter = AnswerLimiter::default();
        let mut silent = peer("192.0.2.1:6363");
        let given = (0..200_000u64).filter(|step| {
            limiter.on_received(&mut silent, REQUEST_BYTES, step * 50_000).is_some()
        });
        assert!((2..=20).contains(&given.count()));
    }

    #[test]
    fn peers_of_this_machine_and_named_ones_need_no_token() {
        let mut limiter = AnswerLimiter::new(RATES);
        for mut known in
            [peer("127.0.0.1:9"), peer("[::1]:9"), UdpPeer::named(([192, 0, 2, 1], 9).into())]
        {
            assert_eq!(limiter.on_received(&mut known, REQUEST_BYTES, SECOND_NS), None);
            assert!((0..1000).all(|_| limiter.admit(&mut known, ANSWER_BYTES, SECOND_NS)));
        }
    }

    #[test]
    fn machines_are_bounded() {
        let mut limiter = AnswerLimiter::default();
        for i in 0..2 * MACHINES_MAX as u32 {
            let mut peer = UdpPeer::unknown((std::net::Ipv4Addr::from(0x0a00_0000 + i), 9).into());
            limiter.admit(&mut peer, 100, SECOND_NS);
        }
        assert_eq!(limiter.machines.len(), MACHINES_MAX);
        let mut peer = UdpPeer::unknown(([192, 0, 2, 1], 9).into());
        assert!(limiter.admit(&mut peer, 100, 3 * SECOND_NS));
        assert_eq!(limiter.machines.len(), 1, "full ones are forgotten");
    }
}
