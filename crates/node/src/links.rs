//! Links that carry the faces: a connection of its own, a peer of a shared UDP socket, or nothing
//! now.
//!
//! Packets mostly leave as they came, so they are not copied to be sent: while a burst is handed
//! out, what the forwarder sends is only noted, as a *piece* with a new head and a place in the
//! burst, and at the burst's end each connection gets its pieces in one vectored call. What does
//! not lie in the burst (an answer from the content store, an Interest with a changed hop limit)
//! is copied to `scratch` until then.
//!
//! The connection a burst comes from is lent to the caller; of a UDP socket only the receiving half
//! is. Packets for a connection that is lent (an answer from the content
//! store goes back where the Interest came from) are kept in `deferred` until it is back.

mod fair_queue;
mod pieces;
mod shared;
mod upstream;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::net::IpAddr;

use byname_forwarder::FaceId;
use byname_io::{Connection, IoError, QueueFull, UdpPeer};
use byname_link::{Feedback, LinkOptions, LinkReceiver, LinkSender, LinkService};

use crate::marking::Marking;
use fair_queue::FairQueue;
use pieces::{Burst, Piece};
pub(crate) use shared::Shared;
use shared::SharedSockets;
use upstream::Refused;

/// Pieces handed to a connection in one call.
const PIECES_PER_CALL_MAX: usize = 64;

/// Carrier of the frames of a face.
#[derive(Debug)]
pub(crate) enum Carrier {
    /// Its own connection; `None` while lent.
    Connection(Option<Connection>),
    /// A peer of a shared UDP socket.
    Peer { socket: usize, peer: UdpPeer },
    /// A persistent face waits for its link.
    Down,
}

/// The numbers of faces are our own: nobody chooses them so that they collide.
#[derive(Debug, Default)]
pub(crate) struct FaceHasher(u64);

impl Hasher for FaceHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        for octet in octets {
            self.write_u64(self.0 ^ u64::from(*octet));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) carrier: Carrier,
    /// Receiving half; `None` while lent.
    pub(crate) receiver: Option<Box<LinkReceiver>>,
    pub(crate) sender: LinkSender,
    pub(crate) marking: Marking,
    /// The poller's token of its own connection.
    pub(crate) token: u64,
    pub(crate) is_watching_write: bool,
    /// Time at which something came from the peer last.
    pub(crate) last_active_ns: u64,
    /// The machine that a connection comes from, if it is one of the network.
    pub(crate) origin: Option<IpAddr>,
    is_dirty: bool,
    /// Interests that wait for others to have their turn, see `upstream`.
    waiting: FairQueue,
    /// Octets of Interests handed to the connection since the last flush.
    direct_bytes: usize,
    /// True once an Interest was sent over it.
    is_upstream: bool,
    /// True if other packets than Interests may lie in its queue.
    is_mixed: bool,
    pieces: Vec<Piece>,
    /// Reason why a burst could not be sent; the next flush reports it.
    error: Option<IoError>,
}

impl Link {
    pub(crate) fn new(carrier: Carrier, service: LinkService, token: u64) -> Self {
        let (receiver, sender) = service.split();
        Self {
            carrier,
            receiver: Some(Box::new(receiver)),
            sender,
            marking: Marking::default(),
            token,
            is_watching_write: false,
            last_active_ns: 0,
            origin: None,
            is_dirty: false,
            waiting: FairQueue::default(),
            direct_bytes: 0,
            is_upstream: false,
            is_mixed: false,
            pieces: Vec::new(),
            error: None,
        }
    }
}

/// Frames for the connection that is lent.
#[derive(Debug, Default)]
struct Deferred {
    bytes: Vec<u8>,
    frames: Vec<(FaceId, usize)>,
}

impl Deferred {
    fn take(&mut self, face: FaceId, parts: [&[u8]; 2], bytes_max: usize) -> Outcome {
        if self.bytes.len() + parts[0].len() + parts[1].len() > bytes_max {
            return Outcome::Full;
        }
        self.bytes.extend_from_slice(parts[0]);
        self.bytes.extend_from_slice(parts[1]);
        self.frames.push((face, self.bytes.len()));
        Outcome::Queued
    }
}

/// Queue that has to be flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dirty {
    Face(FaceId),
    Shared(usize),
}

/// All links.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(crate) faces: HashMap<FaceId, Link, BuildHasherDefault<FaceHasher>>,
    pub(crate) shared: SharedSockets,
    send_bytes_max: usize,
    /// Packets dropped because a queue was full.
    pub(crate) dropped_full: u64,
    /// Packets dropped because the face had no link, or they did not fit it.
    pub(crate) dropped_other: u64,
    /// Interests that found no place in their face's turns; the next flush answers them.
    refused: Vec<Refused>,
    deferred: Deferred,
    dirty: Vec<Dirty>,
    /// Place where the burst that is handed out lies.
    burst: Option<Burst>,
    scratch: Vec<u8>,
    /// Feedback of the receiver at work for the sender of the same link; empty in between.
    pub(crate) feedback: Feedback,
    /// Faces whose links have timers: those with reliability.
    timed: Vec<FaceId>,
    /// The time, as last reported.
    pub(crate) now_ns: u64,
}

impl Links {
    /// No links; at most that many octets wait for a connection that is lent.
    pub(crate) fn new(send_bytes_max: usize) -> Self {
        Self { send_bytes_max, ..Self::default() }
    }

    /// Takes what has to be flushed; give the list back with [`Links::recycle`].
    pub(crate) fn take_dirty(&mut self) -> Vec<Dirty> {
        let dirty = std::mem::take(&mut self.dirty);
        for entry in &dirty {
            match entry {
                Dirty::Face(face) => {
                    if let Some(link) = self.faces.get_mut(face) {
                        link.is_dirty = false;
                    }
                }
                Dirty::Shared(index) => self.shared.sockets[*index].is_dirty = false,
            }
        }
        dirty
    }

    pub(crate) fn recycle(&mut self, mut list: Vec<Dirty>) {
        if self.dirty.is_empty() {
            list.clear();
            self.dirty = list;
        }
    }

    /// Lends the connection of a face.
    pub(crate) fn lend(&mut self, face: FaceId) -> Option<(Connection, Box<LinkReceiver>)> {
        let link = self.faces.get_mut(&face)?;
        let Carrier::Connection(connection) = &mut link.carrier else { return None };
        let connection = connection.take()?;
        let receiver = link.receiver.take()?;
        Some((connection, receiver))
    }

    /// Takes a lent connection back and queues what was deferred.
    pub(crate) fn give_back(
        &mut self,
        face: FaceId,
        connection: Connection,
        receiver: Box<LinkReceiver>,
    ) {
        if let Some(link) = self.faces.get_mut(&face) {
            link.carrier = Carrier::Connection(Some(connection));
            link.receiver = Some(receiver);
            link.last_active_ns = self.now_ns;
            if !link.waiting.is_empty() {
                // Shared memory has no event for room: something that came is a sign of it.
                note(&mut self.dirty, &mut self.shared, link, face);
            }
        }
        self.queue_deferred();
    }

    fn queue_deferred(&mut self) {
        let mut deferred = std::mem::take(&mut self.deferred);
        let mut start = 0;
        let mut frames = deferred.frames.as_slice();
        while let Some((face, _)) = frames.first() {
            let run = frames.iter().take_while(|(other, _)| other == face);
            let run = &frames[..run.take(PIECES_PER_CALL_MAX).count()];
            frames = &frames[run.len()..];
            let mut parts = [[&b""[..]; 2]; PIECES_PER_CALL_MAX];
            for (slot, (_, end)) in parts.iter_mut().zip(run) {
                slot[0] = &deferred.bytes[start..*end];
                start = *end;
            }
            self.send_now(*face, &parts[..run.len()]);
        }
        deferred.bytes.clear();
        deferred.frames.clear();
        self.deferred = deferred;
    }

    /// Sends frames over the face's connection, or queues them on its shared socket.
    fn send_now(&mut self, face: FaceId, frames: &[[&[u8]; 2]]) {
        let Some(link) = self.faces.get_mut(&face) else { return };
        let lost = match &mut link.carrier {
            Carrier::Connection(Some(connection)) => match connection.send_frames(frames) {
                Ok(lost) => lost,
                Err(error) => {
                    link.error = Some(error);
                    0
                }
            },
            carrier => {
                let now_ns = self.now_ns;
                let full = |parts: &&[&[u8]; 2]| {
                    matches!(queue(carrier, &mut self.shared, &parts[..], now_ns), Outcome::Full)
                };
                frames.iter().filter(full).count()
            }
        };
        self.dropped_full += lost as u64;
        note(&mut self.dirty, &mut self.shared, link, face);
    }

    /// A burst is handed out from now on.
    pub(crate) fn begin_burst(&mut self, burst: &[u8]) {
        self.burst = Some(Burst::of(burst));
    }

    /// The burst has been handed out: sends what it led to.
    pub(crate) fn end_burst(&mut self, burst: &[u8]) {
        self.burst = None;
        let scratch = std::mem::take(&mut self.scratch);
        for index in 0..self.dirty.len() {
            let Dirty::Face(face) = self.dirty[index] else { continue };
            let Some(link) = self.faces.get_mut(&face) else { continue };
            let mut pieces = std::mem::take(&mut link.pieces);
            for chunk in pieces.chunks(PIECES_PER_CALL_MAX) {
                let mut parts = [[&b""[..]; 2]; PIECES_PER_CALL_MAX];
                for (slot, piece) in parts.iter_mut().zip(chunk) {
                    *slot = piece.parts(&scratch, burst);
                }
                self.send_now(face, &parts[..chunk.len()]);
            }
            pieces.clear();
            if let Some(link) = self.faces.get_mut(&face) {
                link.pieces = pieces;
            }
        }
        self.scratch = scratch;
        self.scratch.clear();
    }

    /// Gives the sending half of a link what its receiving half learned.
    #[cold]
    pub(crate) fn settle(&mut self, face: FaceId) {
        match self.faces.get_mut(&face) {
            Some(link) => {
                link.sender.handle_feedback(&mut self.feedback, self.now_ns);
                if let Some(token) = link.sender.take_returned_token()
                    && let Carrier::Peer { peer, .. } = &mut link.carrier
                {
                    self.shared.limiter.on_returned(peer, token, self.now_ns);
                }
            }
            None => self.feedback = Feedback::default(),
        }
    }

    /// Changes what a link does.
    pub(crate) fn set_options(&mut self, face: FaceId, options: &LinkOptions) {
        let Some(link) = self.faces.get_mut(&face) else { return };
        link.sender.set_options(options);
        if let Some(receiver) = &mut link.receiver {
            receiver.set_options(options);
        }
        self.timed.retain(|other| *other != face);
        if options.reliability {
            self.timed.push(face);
        }
    }

    /// Time at which [`Links::handle_timeout`] has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        let timed =
            self.timed.iter().filter_map(|face| self.faces.get(face)?.sender.poll_timeout());
        timed.chain(self.shared.limiter.poll_timeout()).min()
    }

    /// Lets reliable links send what is due, and UDP peers get what has waited.
    pub(crate) fn handle_timeout(&mut self) {
        self.release_delayed();
        let mut timed = std::mem::take(&mut self.timed);
        timed.retain(|face| {
            let Some(link) = self.faces.get_mut(face) else { return false };
            if link.sender.poll_timeout().is_none_or(|due_ns| due_ns > self.now_ns) {
                return true;
            }
            let (carrier, shared) = (&mut link.carrier, &mut self.shared);
            let now_ns = self.now_ns;
            link.sender.handle_timeout(now_ns, |head, body| {
                // What finds no room is lost, and found to be so later.
                let _ = queue(carrier, shared, &[head, body], now_ns);
            });
            note(&mut self.dirty, &mut self.shared, link, *face);
            true
        });
        self.timed = timed;
    }

    fn release_delayed(&mut self) {
        let (touched, lost) = self.shared.release(self.now_ns);
        self.dropped_full += lost;
        for index in touched {
            if !std::mem::replace(&mut self.shared.sockets[index].is_dirty, true) {
                self.dirty.push(Dirty::Shared(index));
            }
        }
    }

    /// Flushes a connection; whether bytes still wait.
    pub(crate) fn flush_face(&mut self, face: FaceId) -> Result<bool, IoError> {
        let Some(link) = self.faces.get_mut(&face) else { return Ok(false) };
        if let Some(error) = link.error.take() {
            return Err(error);
        }
        self.dropped_full += link.flush_waiting()?;
        let Carrier::Connection(Some(connection)) = &link.carrier else { return Ok(false) };
        Ok(connection.wants_write())
    }

    /// Flushes a shared socket; whether datagrams still wait.
    pub(crate) fn flush_shared(&mut self, index: usize) -> Result<bool, IoError> {
        self.shared.flush(index)
    }

    /// Counts a datagram of a peer, which may have to show that it receives.
    pub(crate) fn on_datagram(&mut self, face: FaceId, bytes: usize) {
        let Some(link) = self.faces.get_mut(&face) else { return };
        let Carrier::Peer { socket, peer } = &mut link.carrier else { return };
        if self.shared.on_received(*socket, peer, bytes, self.now_ns) {
            note(&mut self.dirty, &mut self.shared, link, face);
        }
    }
}

enum Outcome {
    Queued,
    Full,
    /// The connection is lent, or there is none.
    Absent,
    /// The peer may get no more for now.
    Limited,
}

impl From<Result<(), QueueFull>> for Outcome {
    fn from(result: Result<(), QueueFull>) -> Self {
        match result {
            Ok(()) => Self::Queued,
            Err(_) => Self::Full,
        }
    }
}

fn queue(
    carrier: &mut Carrier,
    shared: &mut SharedSockets,
    parts: &[&[u8]],
    now_ns: u64,
) -> Outcome {
    match carrier {
        Carrier::Connection(Some(connection)) => connection.queue(parts).into(),
        Carrier::Peer { socket, peer } => shared.queue(*socket, peer, parts, now_ns),
        Carrier::Connection(None) | Carrier::Down => Outcome::Absent,
    }
}

fn is_lent(carrier: &Carrier) -> bool {
    matches!(carrier, Carrier::Connection(None))
}

/// Says that the link has something to flush.
fn note(dirty: &mut Vec<Dirty>, shared: &mut SharedSockets, link: &mut Link, face: FaceId) {
    let (is_dirty, entry) = match link.carrier {
        Carrier::Peer { socket, .. } => {
            (&mut shared.sockets[socket].is_dirty, Dirty::Shared(socket))
        }
        _ => (&mut link.is_dirty, Dirty::Face(face)),
    };
    if !std::mem::replace(is_dirty, true) {
        dirty.push(entry);
    }
}

#[cfg(test)]
mod tests;
