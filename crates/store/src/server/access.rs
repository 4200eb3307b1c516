//! Access records: what a peer got of an object, for whoever keeps an access log.
//!
//! What leaves is looked at, not what is asked. Packets of one object to one peer are added up to
//! one record, which is handed on when nothing more has left for a second, after a minute in any
//! case, or when there are too many. Without a sink nothing is looked at.
//!
//! Anybody can ask for names that are not there, as many as he likes. [`EMPTY_PER_S`] of them have
//! records of their own; what a peer did not get beyond is one record, named `/`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use byname_packet::lp::LpPacket;
use byname_packet::{ContentType, Data, Interest, Name, NameRef};
use byname_transfer::naming::{self, Request};
use byname_transfer::numbers::METADATA_KEYWORD;
use byname_transfer::server::{FaceId, Now, SegmentBurst, SegmentSent};

use super::face::{Carrier, Face};

/// Silence after which a record is over.
const IDLE_NS: u64 = 1_000_000_000;
/// Longest time that a record is about.
const LASTS_NS: u64 = 60_000_000_000;
/// Records in the making.
const RECORDS_MAX: usize = 4096;
/// Records that begin in a second with something that a peer did not get.
const EMPTY_PER_S: u32 = 256;
const SECOND_NS: u64 = 1_000_000_000;
/// Components behind a described name: keyword, version, segment.
const BEHIND_DESCRIBED: usize = 3;

/// Packets of one object that left for one peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRecord {
    /// Address of the peer: a reader, or the forwarder through which readers come.
    pub peer: String,
    /// The file or directory; `/` for the sum of what was not got under many names.
    pub name: Name,
    /// When the first packet left, nanoseconds since the Unix epoch.
    pub unix_ns: u64,
    /// Time until the last one left.
    pub lasted_ns: u64,
    /// Descriptions: of the current version, or of a directory's list.
    pub lookups: u64,
    /// Signed statements that there is nothing, or nothing yet.
    pub absences: u64,
    /// Nacks.
    pub refusals: u64,
    /// Segments of content, hash trees and lists.
    pub segments: u64,
    /// Octets of all these packets.
    pub bytes: u64,
}

/// Takes records; called on the serving thread.
pub trait AccessSink: Send + Sync {
    /// One of so many objects is recorded; 0 records none. A peer's reading of an object is
    /// recorded whole or not at all.
    fn one_in(&self) -> u64;

    /// Takes one that is over.
    fn record(&self, record: &AccessRecord);
}

/// A record in the making.
struct Open {
    record: AccessRecord,
    began_ns: u64,
    last_ns: u64,
}

impl Open {
    fn due_ns(&self) -> u64 {
        self.last_ns.saturating_add(IDLE_NS).min(self.began_ns.saturating_add(LASTS_NS))
    }
}

/// Kind of packet that left.
#[derive(Clone, Copy)]
enum Kind {
    Lookup,
    Absence,
    Refusal,
    Segments(u64),
}

impl Kind {
    /// True if the peer got nothing of an object.
    fn is_empty(self) -> bool {
        matches!(self, Self::Absence | Self::Refusal)
    }
}

/// How many records may still begin in this second.
#[derive(Default)]
struct Budget {
    since_ns: u64,
    used: u32,
}

impl Budget {
    fn take(&mut self, now_ns: u64) -> bool {
        if now_ns.saturating_sub(self.since_ns) >= SECOND_NS {
            *self = Self { since_ns: now_ns, used: 0 };
        }
        self.used = self.used.saturating_add(1);
        self.used <= EMPTY_PER_S
    }
}

/// Whom packets leave for.
#[derive(Clone, Copy)]
pub(super) struct Peer<'a> {
    pub(super) face: FaceId,
    pub(super) uri: &'a str,
}

/// Packets of one kind, and their octets.
#[derive(Clone, Copy)]
struct Packets {
    kind: Kind,
    bytes: u64,
}

/// Address of a peer.
pub(super) fn peer_uri(face: &Face) -> Cow<'_, str> {
    match &face.carrier {
        Carrier::Connection(connection) => connection.remote_uri().into(),
        Carrier::Peer { peer, .. } => byname_io::peer_uri("udp", peer.address()).into(),
    }
}

/// Adds up what leaves.
pub(super) struct Accesses {
    sink: Arc<dyn AccessSink>,
    open: HashMap<(FaceId, Vec<u8>), Open>,
    /// No record is due before.
    due_ns: Option<u64>,
    empty: Budget,
    hasher: RandomState,
}

impl Accesses {
    pub(super) fn new(sink: Arc<dyn AccessSink>) -> Self {
        let (empty, hasher) = (Budget::default(), RandomState::new());
        Self { sink, open: HashMap::new(), due_ns: None, empty, hasher }
    }

    /// A packet leaves, with its link header.
    pub(super) fn note_packet(&mut self, peer: Peer<'_>, wire: &[u8], now: Now) {
        let Ok(link) = LpPacket::decode(wire) else { return };
        let Some(packet) = link.fragment else { return };
        let bytes = packet.len() as u64;
        if link.header.nack.is_some() {
            let Ok(interest) = Interest::decode(packet) else { return };
            let path = naming::parse(interest.name).map_or(interest.name, |parsed| parsed.path);
            return self.note(peer, path, Packets { kind: Kind::Refusal, bytes }, now);
        }
        let Ok(data) = Data::decode(packet) else { return };
        let described = data.name.count().checked_sub(BEHIND_DESCRIBED);
        let keyword = described.and_then(|at| data.name.components().nth(at));
        let (path, kind) = if keyword.is_some_and(|it| it.is_keyword(METADATA_KEYWORD)) {
            let question = data.name.without_last(BEHIND_DESCRIBED - 1);
            let path = naming::parse(question).map_or(data.name, |parsed| parsed.path);
            let is_absence = data.meta.content_type == ContentType::NACK;
            (path, if is_absence { Kind::Absence } else { Kind::Lookup })
        } else {
            match naming::parse(data.name) {
                Some(parsed) if matches!(parsed.request, Request::Segment { .. }) => {
                    (parsed.path, Kind::Segments(1))
                }
                // A certificate, for instance.
                _ => (data.name, Kind::Lookup),
            }
        };
        self.note(peer, path, Packets { kind, bytes }, now);
    }

    /// Segments have left, or not.
    pub(super) fn note_burst(
        &mut self,
        uri: &str,
        burst: &SegmentBurst,
        sent: SegmentSent,
        now: Now,
    ) {
        let Some(parsed) = burst.name().and_then(naming::parse) else { return };
        let (kind, bytes) = match sent {
            SegmentSent::Sent => {
                let bytes = burst.segments().map(|segment| segment.packet_len() as u64).sum();
                (Kind::Segments(burst.len() as u64), bytes)
            }
            SegmentSent::Changed | SegmentSent::Failed => (Kind::Refusal, 0),
        };
        let peer = Peer { face: burst.face(), uri };
        self.note(peer, parsed.path, Packets { kind, bytes }, now);
    }

    fn note(&mut self, peer: Peer<'_>, path: NameRef<'_>, packets: Packets, now: Now) {
        let (Peer { face, uri }, Packets { kind, bytes }) = (peer, packets);
        let (mut key, mut path) = ((face, path.value().to_vec()), path);
        let is_new = !self.open.contains_key(&key);
        if is_new && kind.is_empty() && !self.empty.take(now.now_ns) {
            (key, path) = ((face, Vec::new()), NameRef::default());
        }
        if !self.open.contains_key(&key) {
            let one_in = self.sink.one_in();
            if one_in == 0 || !self.hasher.hash_one(&key).is_multiple_of(one_in) {
                return;
            }
            if self.open.len() >= RECORDS_MAX {
                self.hand_on(|_| true);
            }
        }
        let open = self.open.entry(key).or_insert_with(|| Open {
            record: AccessRecord {
                peer: uri.to_owned(),
                name: path.to_name(),
                unix_ns: now.unix_ns,
                lasted_ns: 0,
                lookups: 0,
                absences: 0,
                refusals: 0,
                segments: 0,
                bytes: 0,
            },
            began_ns: now.now_ns,
            last_ns: now.now_ns,
        });
        let record = &mut open.record;
        match kind {
            Kind::Lookup => record.lookups += 1,
            Kind::Absence => record.absences += 1,
            Kind::Refusal => record.refusals += 1,
            Kind::Segments(count) => record.segments += count,
        }
        record.bytes += bytes;
        record.lasted_ns = now.now_ns.saturating_sub(open.began_ns);
        open.last_ns = now.now_ns;
        self.due_ns = Some(self.due_ns.map_or(open.due_ns(), |due_ns| due_ns.min(open.due_ns())));
    }

    /// Hands on what is over.
    pub(super) fn handle_timeout(&mut self, now_ns: u64) {
        if self.due_ns.is_none_or(|due_ns| due_ns > now_ns) {
            return;
        }
        self.hand_on(|open| open.due_ns() <= now_ns);
        self.due_ns = self.open.values().map(Open::due_ns).min();
    }

    /// When [`Accesses::handle_timeout`] has something to do.
    pub(super) fn poll_timeout(&self) -> Option<u64> {
        self.due_ns
    }

    fn hand_on(&mut self, is_over: impl Fn(&Open) -> bool) {
        for (_, open) in self.open.extract_if(|_, open| is_over(open)) {
            self.sink.record(&open.record);
        }
    }
}

impl Drop for Accesses {
    fn drop(&mut self) {
        self.hand_on(|_| true);
    }
}

#[cfg(test)]
mod tests;
