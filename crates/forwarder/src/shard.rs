//! Which of several forwarders on one machine a packet belongs to.
//!
//! Each *shard* is a [`Forwarder`](crate::Forwarder) with a PIT and a content store of its own; all
//! have the same faces, FIB and strategies. An Interest belongs to the shard that the hash of its
//! whole name chooses, so that one busy prefix spreads over all of them. Data has to find the
//! shards where somebody may wait for it: the Interests that shards send carry a PIT token that
//! names the shard, and most peers return it. Data without one goes to the shard of its name, and,
//! while an Interest that would take a longer name may be pending, to that of each shorter prefix
//! of such a length. So an exact Interest always meets its Data, whoever sent it.
//!
//! Shard 0 is the one with the RIB and with management; the others learn what changes, as
//! [`Change`]s. What follows from the split: a CanBePrefix Interest finds in the content store only
//! what its own shard holds (the Data may lie in another) and is then sent on; and two Interests
//! for one name of which one is a prefix of the other's are never aggregated, which they are not in
//! one shard either.

use std::sync::Arc;

use byname_packet::lp::LpHeader;
use byname_packet::{Data, Interest, Name, NameRef, Packet, types};

use crate::counters::Counters;
use crate::face::{FaceCounters, FaceId, FaceInfo, FaceOptions};
use crate::hash::{NameHasher, Prefixes};
use crate::pit::LIFETIME_MAX_MS;
use crate::rib::NextHop;
use crate::scope;
use crate::strategy::Chosen;
use crate::trace::TracePolicy;

/// The most shards there can be.
pub const SHARDS_MAX: usize = 64;

/// Octets of a shard's token. NDNd's forwarder ends when it has to return one of another length.
pub(crate) const SHARD_TOKEN_BYTES: usize = 6;

/// A shard's place among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardPlace {
    /// Which it is, from 0.
    pub index: u16,
    /// Number of them.
    pub count: u16,
}

impl ShardPlace {
    /// The token on Interests that this shard sends; `seed` is that of all shards.
    pub(crate) fn token(self, seed: [u64; 3]) -> [u8; SHARD_TOKEN_BYTES] {
        let [high, low] = self.index.to_be_bytes();
        let [a, b, c, d, ..] = mark(seed);
        [high, low, a, b, c, d]
    }
}

/// Mark of our tokens: those that a peer made up do not have it.
fn mark(seed: [u64; 3]) -> [u8; 8] {
    crate::rng::Rng::new(seed[1] ^ seed[2]).next_u64().to_be_bytes()
}

/// A set of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shards(u64);

impl Shards {
    fn one(index: usize) -> Self {
        Self(1 << index)
    }

    /// Returns whether it is in the set.
    pub fn contains(self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }

    /// Those in the set, in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..SHARDS_MAX).filter(move |index| self.contains(*index))
    }
}

/// Finds the shards of packets. Belongs to the thread that reads the faces.
#[derive(Debug)]
pub struct Dispatcher {
    hasher: NameHasher,
    mark: [u8; 8],
    count: usize,
    prefixes: Prefixes,
    /// Until when a CanBePrefix Interest of n components may be pending.
    prefix_until_ns: Vec<u64>,
}

impl Dispatcher {
    /// For `count` shards (at most [`SHARDS_MAX`]) with the same `seed`.
    pub fn new(seed: [u64; 3], count: usize) -> Self {
        Self {
            hasher: NameHasher::new([seed[0], seed[1]]),
            mark: mark(seed),
            count: count.clamp(1, SHARDS_MAX),
            prefixes: Prefixes::default(),
            prefix_until_ns: Vec::new(),
        }
    }

    /// Shards that a packet has to go to. What is no packet goes to shard 0, which counts it.
    pub fn shards_of(&mut self, header: &LpHeader<'_>, packet: &[u8], now_ns: u64) -> Shards {
        match Packet::decode(packet) {
            Ok(Packet::Interest(interest)) if header.nack.is_none() => {
                self.of_interest(&interest, now_ns)
            }
            Ok(Packet::Interest(interest)) => self.of_name(interest.name),
            Ok(Packet::Data(data)) => match self.of_token(header.pit_token) {
                Some(index) => Shards::one(index),
                None => self.of_data(&data, now_ns),
            },
            Err(_) => Shards::one(0),
        }
    }

    fn of_interest(&mut self, interest: &Interest<'_>, now_ns: u64) -> Shards {
        if scope::is_management(interest.name) {
            return Shards::one(0);
        }
        if interest.can_be_prefix {
            let count = interest.name.count();
            if self.prefix_until_ns.len() <= count {
                self.prefix_until_ns.resize(count + 1, 0);
            }
            let lifetime_ms = interest.lifetime_ms_or_default().min(LIFETIME_MAX_MS);
            let until_ns = now_ns.saturating_add(lifetime_ms * 1_000_000);
            self.prefix_until_ns[count] = self.prefix_until_ns[count].max(until_ns);
        }
        self.of_name(interest.name)
    }

    /// An implicit digest does not count: Data does not carry it.
    fn of_name(&self, name: NameRef<'_>) -> Shards {
        let has_digest = name.last().is_some_and(|last| last.typ == types::IMPLICIT_SHA256_DIGEST);
        let name = if has_digest { name.without_last(1) } else { name };
        Shards::one(self.index(self.hasher.hash(name.value())))
    }

    fn of_token(&self, token: Option<&[u8]>) -> Option<usize> {
        let token: &[u8; SHARD_TOKEN_BYTES] = token?.try_into().ok()?;
        let index = usize::from(u16::from_be_bytes([token[0], token[1]]));
        (token[2..] == self.mark[..4] && index < self.count).then_some(index)
    }

    fn of_data(&mut self, data: &Data<'_>, now_ns: u64) -> Shards {
        self.hasher.prefixes(data.name, &mut self.prefixes);
        let mut shards = Shards::one(self.index(self.prefixes.whole()));
        for (count, until_ns) in self.prefix_until_ns.iter().enumerate() {
            if *until_ns < now_ns {
                continue;
            }
            let Some(prefix) = self.prefixes.get(count) else { break };
            shards.0 |= Shards::one(self.index(prefix.hash)).0;
        }
        shards
    }

    /// From bits that the tables of one shard use least: names of one shard must not collide there.
    fn index(&self, hash: u64) -> usize {
        ((hash >> 32 & 0xFFFF) as usize * self.count) >> 16
    }
}

/// Change in shard 0 that the other shards follow.
#[derive(Clone)]
pub enum Change {
    /// A face is there, or is other than before.
    Face {
        /// Which.
        face: FaceId,
        /// Facts that the driver reported.
        info: Arc<FaceInfo>,
        /// Options set by command.
        options: FaceOptions,
        /// True if it has a link.
        up: bool,
    },
    /// A face is gone.
    FaceGone(FaceId),
    /// The next hops of exactly this prefix; none any more if empty.
    Hops(Name, Vec<NextHop>),
    /// The strategy of exactly this prefix; that of the next shorter one if `None`.
    Strategy(Name, Option<Chosen>),
    /// The content store.
    Store {
        /// Packets it may hold.
        entries_max: usize,
        /// True if it takes packets.
        admits: bool,
        /// True if it answers.
        serves: bool,
    },
    /// Octets that the content store may hold.
    StoreBytes(usize),
    /// So many packets below a prefix are to be forgotten.
    Erase(Name, usize),
    /// Regions in which the forwarder stands.
    Regions(Vec<Name>),
    /// Whom the forwarder tells where answers come from.
    Trace(TracePolicy),
}

/// Figures of one shard, for the totals.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Totals.
    pub counters: Counters,
    /// Pending Interests.
    pub pending: usize,
    /// Packets in the content store.
    pub cs_entries: usize,
    /// Counts of each face.
    pub faces: Vec<(FaceId, FaceCounters)>,
}

#[cfg(test)]
mod tests;
