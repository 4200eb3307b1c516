//! All peers: the forwarder, clients that connected, and those of UDP sockets.
//!
//! Each has its queue; requests are taken in turn, a burst from each, and only from those with room
//! for the answers. A peer that does not read thus stops being heard and costs the others nothing.
//!
//! Invariants: at most [`CLIENTS_MAX`] faces; together they are asked to queue no more than
//! [`ALL_SEND_BYTES_MAX`] (or 64 KiB each, if there are very many). Their buffers take no more than
//! their budget; while most of it is taken, clients that do not read are closed.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use byname_face::{RegisterError, Registrar, random_u64};
use byname_io::admission::{gives_way, machine_of};
use byname_io::{
    Connection, Endpoint, Interest, IoError, Listener, MemoryBudget, Poller, Token,
    UnvalidatedRates, descriptors,
};
use byname_retry::jittered;
use byname_transfer::server::{FaceId, Now};

use super::datagrams::{Datagrams, SOCKET_BASE};
use super::face::{Carrier, Face, SEND_BYTES_MAX};
use super::service::Recipients;
use crate::error::StoreError;

/// Faces at the same time; a silent one gives way to a new one.
pub(super) const CLIENTS_MAX: usize = 512;
/// Answers that may wait for all together before requests do.
const ALL_SEND_BYTES_MAX: usize = 64 << 20;
/// However many there are, each may have so much.
const SEND_BYTES_MIN: usize = 64 << 10;
/// Places kept for peers that the kernel vouches for.
const RESERVED: usize = 64;
/// Time between two looks at memory that is not needed.
const TRIM_NS: u64 = 1_000_000_000;
/// While memory is short, a client whose queue has not moved for so long is closed.
const STALLED_NS: u64 = 5_000_000_000;
/// Connections taken at a time.
const ACCEPT_MAX: usize = 32;
/// Octets of datagrams from new peers looked at in one burst.
const STRANGE_BYTES_MAX: usize = 256 << 10;
/// When room in shared memory is looked for again.
const RETRY_NS: u64 = 500_000;
/// Longest pause of a listener when descriptors have run out.
const EXHAUSTED_NS: u64 = 200_000_000;

/// Numbers of listeners for the poller are above those of faces, and below those of sockets.
const LISTENER_BASE: u64 = 1 << 62;

/// Bounds of what peers take, as configured.
pub(super) struct PeerBounds {
    pub(super) connection_bytes_max: usize,
    pub(super) silent_ns: u64,
    pub(super) unvalidated: UnvalidatedRates,
}

struct Entrance {
    listener: Listener,
    /// Not watched before then.
    closed_until_ns: Option<u64>,
}

#[derive(Default)]
pub(super) struct Faces {
    faces: BTreeMap<FaceId, Face>,
    next_id: u64,
    /// Whose turn comes after this.
    turn: FaceId,
    entrances: Vec<Entrance>,
    datagrams: Datagrams,
    /// Silence after which a face may give way.
    silent_ns: u64,
    /// Faces that ended since they were asked for, with why.
    ended: Vec<(FaceId, Option<StoreError>)>,
    /// Memory of their buffers, and when what is not needed is looked for.
    memory: MemoryBudget,
    next_trim_ns: u64,
    /// Clients closed because they did not read while memory was short.
    stalled: u64,
    /// Marks of faces that are gone.
    marked_before: u64,
}

impl Faces {
    /// None yet.
    pub(super) fn new(bounds: &PeerBounds) -> Self {
        Self {
            memory: MemoryBudget::new(bounds.connection_bytes_max),
            datagrams: Datagrams::new(bounds.unvalidated),
            silent_ns: bounds.silent_ns,
            ..Self::default()
        }
    }

    /// Datagrams not sent because their peer had not shown that it receives.
    pub(super) fn unvalidated(&self) -> u64 {
        self.datagrams.limiter.dropped()
    }

    /// Octets that buffers take, and clients that were closed because they did not read.
    pub(super) fn memory(&self) -> (usize, u64) {
        (self.memory.taken_bytes(), self.stalled)
    }

    /// Listens; says where.
    pub(super) fn listen(
        &mut self,
        endpoint: &Endpoint,
        poller: &Poller,
    ) -> Result<Endpoint, StoreError> {
        if let Endpoint::Udp { .. } = endpoint {
            return self.datagrams.bind(endpoint, poller);
        }
        let listener = Listener::bind(endpoint).map_err(StoreError::Bind)?;
        let at = listener.local_endpoint().clone();
        let token = Token(LISTENER_BASE + self.entrances.len() as u64);
        poller.add(&listener, token, Interest::READ)?;
        self.entrances.push(Entrance { listener, closed_until_ns: None });
        Ok(at)
    }

    /// Takes a connection as a new face.
    pub(super) fn add(
        &mut self,
        connection: Connection,
        registrar: Option<Registrar>,
        poller: &Poller,
        now_ns: u64,
    ) -> Result<FaceId, IoError> {
        let id = self.new_id();
        let mut face = Face::new(id, connection, registrar)?;
        face.heard_ns = now_ns;
        face.set_budget(&self.memory);
        if let Carrier::Connection(connection) = &face.carrier {
            poller.add(connection, Token(id.0), face.watched)?;
        }
        self.faces.insert(id, face);
        Ok(id)
    }

    fn new_id(&mut self) -> FaceId {
        // The poller's first numbers are the server's own.
        self.next_id = self.next_id.max(super::OWN_TOKENS) + 1;
        FaceId(self.next_id)
    }

    pub(super) fn has(&self, id: FaceId) -> bool {
        self.faces.contains_key(&id)
    }

    pub(super) fn get(&self, id: FaceId) -> Option<&Face> {
        self.faces.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: FaceId) -> Option<&mut Face> {
        self.faces.get_mut(&id)
    }

    /// Octets that may wait for each.
    fn send_bytes_max(&self) -> usize {
        let each = ALL_SEND_BYTES_MAX / self.faces.len().max(1);
        each.clamp(SEND_BYTES_MIN, SEND_BYTES_MAX).min(self.memory.share_bytes())
    }

    pub(super) fn has_room(&self, id: FaceId) -> bool {
        let max = self.send_bytes_max();
        self.faces.get(&id).is_none_or(|face| face.has_room(max))
    }

    /// Takes what an event of the poller is about.
    pub(super) fn on_event(&mut self, token: Token, poller: &Poller, now_ns: u64) {
        if let Some(socket) = token.0.checked_sub(SOCKET_BASE) {
            return self.receive_datagrams(socket as usize, now_ns);
        }
        if let Some(entrance) = token.0.checked_sub(LISTENER_BASE) {
            return self.accept(entrance as usize, poller, now_ns);
        }
        let id = FaceId(token.0);
        let Some(face) = self.faces.get_mut(&id) else { return };
        match face.receive(now_ns) {
            Ok(()) if face.is_closed => self.remove(id, None),
            Ok(()) => {}
            Err(error) => self.remove(id, Some(error.into())),
        }
    }

    fn accept(&mut self, entrance: usize, poller: &Poller, now_ns: u64) {
        for _ in 0..ACCEPT_MAX {
            let Some(from) = self.entrances.get(entrance) else { return };
            let accepted = match from.listener.accept() {
                Ok(Some(connection)) => {
                    let is_vouched = connection.peer_credentials().is_some();
                    if !self.make_room((connection.machine(), is_vouched), now_ns) {
                        tracing::warn!(max = CLIENTS_MAX, "too many clients: one was turned away");
                        continue;
                    }
                    self.add(connection, None, poller, now_ns).map(|_| ())
                }
                Ok(None) => return,
                Err(error) => Err(error),
            };
            if let Err(error) = accepted {
                tracing::warn!(%error, "cannot take a client");
                let pause_ns = jittered(EXHAUSTED_NS, random_u64());
                self.close_entrance(entrance, poller, now_ns + pause_ns);
                return;
            }
        }
    }

    /// Stops accepting for a while; otherwise the poller would report the same at once.
    fn close_entrance(&mut self, entrance: usize, poller: &Poller, until_ns: u64) {
        let Some(from) = self.entrances.get_mut(entrance) else { return };
        let nothing = Interest { read: false, write: false };
        let token = Token(LISTENER_BASE + entrance as u64);
        if poller.modify(&from.listener, token, nothing).is_ok() {
            from.closed_until_ns = Some(until_ns);
        }
    }

    pub(super) fn open_entrances(&mut self, poller: &Poller, now_ns: u64) {
        for (entrance, from) in self.entrances.iter_mut().enumerate() {
            let token = Token(LISTENER_BASE + entrance as u64);
            if from.closed_until_ns.is_some_and(|until_ns| until_ns <= now_ns)
                && poller.modify(&from.listener, token, Interest::READ).is_ok()
            {
                from.closed_until_ns = None;
            }
        }
    }

    /// False if there are too many faces and none of them is idle.
    fn make_room(&mut self, (machine, is_vouched): (Option<IpAddr>, bool), now_ns: u64) -> bool {
        let reserved = if is_vouched { RESERVED } else { 0 };
        if self.faces.len() < CLIENTS_MAX.min(descriptors::connections_max()) + reserved {
            return true;
        }
        let clients = self.faces.values().filter(|face| face.poll_timeout().is_none());
        let peers: Vec<(FaceId, IpAddr, Option<u64>)> = clients
            .filter_map(|face| {
                let is_idle = now_ns.saturating_sub(face.heard_ns) > self.silent_ns;
                Some((face.id, face.machine()?, is_idle.then_some(face.heard_ns)))
            })
            .collect();
        let Some(id) = gives_way(&peers, machine) else { return false };
        self.remove(id, None);
        true
    }

    fn trim_due_ns(&self) -> Option<u64> {
        self.memory.needs_sweep().then_some(self.next_trim_ns)
    }

    /// Frees memory that is not needed; closes clients that do not read if it is short.
    pub(super) fn trim(&mut self, now_ns: u64) {
        if self.trim_due_ns().is_none_or(|due_ns| due_ns > now_ns) {
            return;
        }
        self.next_trim_ns = now_ns + TRIM_NS;
        let mut stalled = Vec::new();
        for face in self.faces.values_mut() {
            let waited_ns = face.trim(now_ns);
            if waited_ns >= STALLED_NS && face.is_client {
                stalled.push((waited_ns, face.id));
            }
        }
        stalled.sort_unstable();
        while self.memory.is_short()
            && let Some((_, id)) = stalled.pop()
        {
            self.stalled += 1;
            if self.stalled.is_power_of_two() {
                let count = self.stalled;
                tracing::warn!(count, "memory is short and a client does not read: closed");
            }
            self.remove(id, None);
        }
        self.memory.return_freed();
    }

    fn receive_datagrams(&mut self, socket: usize, now_ns: u64) {
        let Datagrams { sockets, peers, limiter, .. } = &mut self.datagrams;
        let Some(from) = sockets.get_mut(socket) else { return };
        let faces = &mut self.faces;
        let mut tokens = Vec::new();
        let mut strangers: Vec<(SocketAddr, Vec<u8>)> = Vec::new();
        let mut strange_bytes = 0;
        let received = from.recv_burst(&mut |peer, frame| {
            let known = peers.get(&(socket, peer)).and_then(|id| faces.get_mut(id));
            match known {
                Some(face) => {
                    let token = face.receive_datagram(frame, limiter, now_ns);
                    tokens.extend(token.map(|token| (peer, token)));
                }
                None if strange_bytes < STRANGE_BYTES_MAX => {
                    strange_bytes += frame.len();
                    strangers.push((peer, frame.to_vec()));
                }
                None => {}
            }
        });
        if let Err(error) = received {
            tracing::warn!(%error, "cannot receive datagrams");
        }
        for (peer, token) in tokens {
            self.datagrams.send_token(socket, peer, token);
        }
        for (peer, frame) in strangers {
            self.meet(socket, peer, &frame, now_ns);
        }
    }

    /// A datagram of somebody new makes a face if it looks like one of ours.
    fn meet(&mut self, socket: usize, peer: SocketAddr, frame: &[u8], now_ns: u64) {
        let known = self.datagrams.peers.get(&(socket, peer)).copied();
        let id = match known {
            Some(id) => id,
            None => {
                let is_frame = byname_packet::lp::LpPacket::decode(frame).is_ok();
                if !is_frame || !self.make_room((Some(machine_of(peer.ip())), false), now_ns) {
                    return;
                }
                let id = self.new_id();
                let Ok(mut face) = Face::of_peer(id, socket, peer) else { return };
                face.set_budget(&self.memory);
                self.faces.insert(id, face);
                self.datagrams.peers.insert((socket, peer), id);
                id
            }
        };
        let Some(face) = self.faces.get_mut(&id) else { return };
        let token = face.receive_datagram(frame, &mut self.datagrams.limiter, now_ns);
        if let Some(token) = token {
            self.datagrams.send_token(socket, peer, token);
        }
    }

    /// Forgets a face.
    pub(super) fn remove(&mut self, id: FaceId, why: Option<StoreError>) {
        let Some(face) = self.faces.remove(&id) else { return };
        self.marked_before += face.marked_count();
        if let Carrier::Peer { socket, peer } = &face.carrier {
            self.datagrams.peers.remove(&(*socket, peer.address()));
        }
        self.ended.push((id, why));
    }

    /// Takes the faces that ended since the last call, with the error if there was one.
    pub(super) fn take_ended(&mut self) -> Vec<(FaceId, Option<StoreError>)> {
        std::mem::take(&mut self.ended)
    }

    /// Faces in the order of their turns, beginning behind whoever was first the last time.
    pub(super) fn round(&mut self, order: &mut Vec<FaceId>) {
        order.clear();
        let turn = self.turn;
        let behind = (std::ops::Bound::Excluded(turn), std::ops::Bound::Unbounded);
        order.extend(self.faces.range(behind).map(|(id, _)| *id));
        order.extend(self.faces.range(..=turn).map(|(id, _)| *id));
        self.turn = order.first().copied().unwrap_or_default();
    }

    /// Hands up to `max` requests of a face on, if there is room for the answers; says
    /// how many.
    pub(super) fn take_requests(
        &mut self,
        (id, max): (FaceId, usize),
        to: &mut Recipients<'_>,
        now: Now,
    ) -> Result<usize, RegisterError> {
        let send_bytes_max = self.send_bytes_max();
        let Some(face) = self.faces.get_mut(&id) else { return Ok(0) };
        if !face.has_room(send_bytes_max) {
            return Ok(0);
        }
        let max = max.min(face.requests_max(send_bytes_max));
        for taken in 0..max {
            if !face.next_request(to, now)? {
                return Ok(taken);
            }
        }
        Ok(max)
    }

    pub(super) fn flush(&mut self, id: FaceId, now_ns: u64) {
        let Some(face) = self.faces.get_mut(&id) else { return };
        let Datagrams { sockets, limiter, .. } = &mut self.datagrams;
        if let Err(error) = face.flush((sockets, limiter), now_ns) {
            self.remove(id, Some(error.into()));
        }
    }

    /// Hands everything on that can leave now, and watches for what cannot.
    pub(super) fn flush_all(&mut self, poller: &Poller, now_ns: u64) -> Result<(), IoError> {
        let mut order = Vec::new();
        self.round(&mut order);
        for id in &order {
            self.flush(*id, now_ns);
        }
        self.datagrams.release(now_ns);
        for index in 0..self.datagrams.sockets.len() {
            let mut waiting = self.faces.values().filter(
                |face| matches!(face.carrier, Carrier::Peer { socket, .. } if socket == index),
            );
            let has_more = waiting.any(Face::has_unfragmented);
            self.datagrams.flush(index, has_more, poller)?;
        }
        for face in self.faces.values_mut() {
            let interest = face.interest();
            let Carrier::Connection(connection) = &face.carrier else { continue };
            if interest != face.watched {
                poller.modify(connection, Token(face.id.0), interest)?;
                face.watched = interest;
            }
        }
        Ok(())
    }

    /// True if something can be done without waiting, for faces that need not wait for the disk.
    pub(super) fn is_busy(&self, is_behind: &dyn Fn(FaceId) -> bool) -> bool {
        let max = self.send_bytes_max();
        self.faces.values().any(|face| face.is_busy(max) && !is_behind(face.id))
    }

    pub(super) fn poll_timeout(&self, now_ns: u64) -> Option<u64> {
        let faces = self.faces.values().filter_map(|face| match face.must_be_retried() {
            true => Some(now_ns + RETRY_NS),
            false => face.poll_timeout(),
        });
        let entrances = self.entrances.iter().filter_map(|from| from.closed_until_ns);
        let delayed = self.datagrams.limiter.poll_timeout();
        faces.chain(entrances).chain(self.trim_due_ns()).chain(delayed).min()
    }

    /// Congestion marks sent.
    pub(super) fn marked(&self) -> u64 {
        self.marked_before + self.faces.values().map(Face::marked_count).sum::<u64>()
    }

    /// Number of faces.
    pub(super) fn len(&self) -> usize {
        self.faces.len()
    }
}
