//! What carries each face: a connection of its own, a peer of a shared UDP socket, or nothing now.
//!
//! While a socket's burst is being delivered, the socket is lent to the caller. Packets that the
//! forwarder sends over it meanwhile (an answer from the content store goes back where the Interest
//! came from) are kept in `deferred` and queued when it is back. Everything else is queued at once
//! and flushed after the burst.

use std::collections::HashMap;
use std::net::SocketAddr;

use byname_forwarder::{FaceId, Tx};
use byname_io::{Connection, DatagramSocket, IoError, QueueFull};
use byname_link::LinkService;
use byname_packet::lp::LpHeader;
use tracing::debug;

/// What carries the frames of a face.
#[derive(Debug)]
pub(crate) enum Carrier {
    /// Its own connection; `None` while lent.
    Connection(Option<Connection>),
    /// A peer of a shared UDP socket.
    Peer { socket: usize, address: SocketAddr },
    /// A persistent face waits for its link.
    Down,
}

/// The link of one face.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) carrier: Carrier,
    /// Receiving half; `None` while lent.
    pub(crate) receiver: Option<Box<LinkService>>,
    pub(crate) sender: LinkService,
    /// The poller's token of its own connection.
    pub(crate) token: u64,
    pub(crate) is_watching_write: bool,
    pub(crate) last_active_ns: u64,
    is_dirty: bool,
}

impl Link {
    pub(crate) fn new(carrier: Carrier, services: [LinkService; 2], token: u64) -> Self {
        let [receiver, sender] = services;
        Self {
            carrier,
            receiver: Some(Box::new(receiver)),
            sender,
            token,
            is_watching_write: false,
            last_active_ns: 0,
            is_dirty: false,
        }
    }
}

/// A shared UDP socket; `None` while lent.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) socket: Option<DatagramSocket>,
    pub(crate) token: u64,
    pub(crate) is_watching_write: bool,
    is_dirty: bool,
}

impl Shared {
    pub(crate) fn new(socket: DatagramSocket, token: u64) -> Self {
        Self { socket: Some(socket), token, is_watching_write: false, is_dirty: false }
    }
}

/// Frames for the socket that is lent.
#[derive(Debug, Default)]
struct Deferred {
    bytes: Vec<u8>,
    frames: Vec<(FaceId, usize)>,
}

/// What has to be flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dirty {
    Face(FaceId),
    Shared(usize),
}

/// All links.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(crate) faces: HashMap<FaceId, Link>,
    pub(crate) shared: Vec<Shared>,
    send_bytes_max: usize,
    /// Packets dropped because a queue was full.
    pub(crate) dropped_full: u64,
    /// Packets dropped because the face had no link, or they did not fit it.
    pub(crate) dropped_other: u64,
    deferred: Deferred,
    dirty: Vec<Dirty>,
}

impl Links {
    /// No links; at most that many octets wait for a socket that is lent.
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
                Dirty::Shared(index) => self.shared[*index].is_dirty = false,
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
    pub(crate) fn lend(&mut self, face: FaceId) -> Option<(Connection, Box<LinkService>)> {
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
        receiver: Box<LinkService>,
    ) {
        if let Some(link) = self.faces.get_mut(&face) {
            link.carrier = Carrier::Connection(Some(connection));
            link.receiver = Some(receiver);
        }
        self.queue_deferred();
    }

    /// Lends a shared socket.
    pub(crate) fn lend_shared(&mut self, index: usize) -> Option<DatagramSocket> {
        self.shared.get_mut(index)?.socket.take()
    }

    /// Takes a lent socket back and queues what was deferred.
    pub(crate) fn give_back_shared(&mut self, index: usize, socket: DatagramSocket) {
        self.shared[index].socket = Some(socket);
        self.queue_deferred();
    }

    fn queue_deferred(&mut self) {
        let mut deferred = std::mem::take(&mut self.deferred);
        let mut start = 0;
        for (face, end) in &deferred.frames {
            let frame = &deferred.bytes[start..*end];
            start = *end;
            if let Some(link) = self.faces.get_mut(face) {
                let outcome = queue(&mut link.carrier, &mut self.shared, &[frame]);
                self.note(*face, outcome);
            }
        }
        deferred.bytes.clear();
        deferred.frames.clear();
        self.deferred = deferred;
    }

    fn note(&mut self, face: FaceId, outcome: Outcome) {
        match outcome {
            Outcome::Queued => self.mark_dirty(face),
            Outcome::Full => {
                if self.dropped_full.is_power_of_two() || self.dropped_full == 0 {
                    debug!(face = face.0, dropped = self.dropped_full, "send queue full");
                }
                self.dropped_full += 1;
                self.mark_dirty(face);
            }
            Outcome::Absent => self.dropped_other += 1,
        }
    }

    fn mark_dirty(&mut self, face: FaceId) {
        let Some(link) = self.faces.get_mut(&face) else { return };
        match link.carrier {
            Carrier::Peer { socket, .. } => {
                if !std::mem::replace(&mut self.shared[socket].is_dirty, true) {
                    self.dirty.push(Dirty::Shared(socket));
                }
            }
            _ => {
                if !std::mem::replace(&mut link.is_dirty, true) {
                    self.dirty.push(Dirty::Face(face));
                }
            }
        }
    }

    /// Flushes a connection; whether bytes still wait.
    pub(crate) fn flush_face(&mut self, face: FaceId) -> Result<bool, IoError> {
        match self.faces.get_mut(&face).map(|link| &mut link.carrier) {
            Some(Carrier::Connection(Some(connection))) => {
                connection.flush()?;
                Ok(connection.wants_write())
            }
            _ => Ok(false),
        }
    }

    /// Flushes a shared socket; whether datagrams still wait.
    pub(crate) fn flush_shared(&mut self, index: usize) -> Result<bool, IoError> {
        match &mut self.shared[index].socket {
            Some(socket) => {
                socket.flush()?;
                Ok(socket.wants_write())
            }
            None => Ok(false),
        }
    }
}

enum Outcome {
    Queued,
    Full,
    /// The socket is lent, or there is none.
    Absent,
}

impl From<Result<(), QueueFull>> for Outcome {
    fn from(result: Result<(), QueueFull>) -> Self {
        match result {
            Ok(()) => Self::Queued,
            Err(_) => Self::Full,
        }
    }
}

fn queue(carrier: &mut Carrier, shared: &mut [Shared], parts: &[&[u8]]) -> Outcome {
    match carrier {
        Carrier::Connection(Some(connection)) => connection.queue(parts).into(),
        Carrier::Peer { socket, address } => match &mut shared[*socket].socket {
            Some(socket) => socket.queue(*address, parts).into(),
            None => Outcome::Absent,
        },
        Carrier::Connection(None) | Carrier::Down => Outcome::Absent,
    }
}

fn is_lent(carrier: &Carrier, shared: &[Shared]) -> bool {
    match carrier {
        Carrier::Connection(connection) => connection.is_none(),
        Carrier::Peer { socket, .. } => shared[*socket].socket.is_none(),
        Carrier::Down => false,
    }
}

impl Tx for Links {
    fn send(&mut self, face: FaceId, header: &LpHeader<'_>, packet: &[u8]) {
        let Some(link) = self.faces.get_mut(&face) else { return };
        let (carrier, shared) = (&mut link.carrier, &mut self.shared);
        let (deferred, bytes_max) = (&mut self.deferred, self.send_bytes_max);
        let mut outcome = Outcome::Queued;
        let sent = link.sender.send(header, packet, |head, body| {
            if !is_lent(carrier, shared) {
                // Fragments behind one that was dropped are of no use.
                if matches!(outcome, Outcome::Queued) {
                    outcome = queue(carrier, shared, &[head, body]);
                }
            } else if deferred.bytes.len() + head.len() + body.len() > bytes_max {
                outcome = Outcome::Full;
            } else {
                deferred.bytes.extend_from_slice(head);
                deferred.bytes.extend_from_slice(body);
                deferred.frames.push((face, deferred.bytes.len()));
            }
        });
        if sent.is_err() {
            outcome = Outcome::Absent;
        }
        self.note(face, outcome);
    }
}
