//! One peer: what came in and waits, what may go out, and the registration of prefixes.
//!
//! Answers are written into the *outlet*. On streams that is the connection itself. Where packets
//! may have to be fragmented (UDP; shared memory with small buffers) it is the queue of a
//! [`Fragmenter`]: so each peer of one UDP socket has a queue of its own.

use std::net::{IpAddr, SocketAddr};

use byname_face::{
    Fragmenter, PeerQueue, RegisterError, Registrar, frame_len, link_over, move_marked, mtu,
    random_u64,
};
use byname_io::admission::machine_of;
use byname_io::{
    AnswerLimiter, Charge, Connection, DatagramSocket, Interest, IoError, MemoryBudget, UdpPeer,
};
use byname_link::congestion::marked_frame;
use byname_link::{CongestionMarker, ReassemblyLimits};
use byname_packet::lp::{LpPacket, encode_header};
use byname_packet::{MAX_PACKET_BYTES, Packet};
use byname_transfer::server::{Arrival, FaceId, Now};

use super::StoreError;
use super::service::Recipients;

/// Octets of requests that may wait before reading stops. One burst of reading comes on top.
const WAITING_BYTES_MAX: usize = 256 << 10;
/// The same of a forwarder of this machine, which lets its readers take turns for the rest.
const WAITING_BYTES_MAX_FORWARDER: usize = 32 << 10;
/// The same while memory is short.
const WAITING_BYTES_MAX_SHORT: usize = 16 << 10;
/// Octets of answers that may wait before requests do. One burst of segments comes on top.
pub(super) const SEND_BYTES_MAX: usize = 1 << 20;
/// Room for any packet with its link header.
const PACKET_ROOM_BYTES: usize = 2 * MAX_PACKET_BYTES;
/// Room for any packet in one frame.
const WHOLE_FRAME_BYTES: usize = MAX_PACKET_BYTES + 256;
/// Interests that come in pieces; they are small.
const REASSEMBLY: ReassemblyLimits = ReassemblyLimits {
    messages_max: 16,
    bytes_max: 64 << 10,
    fragments_max: 16,
    lifetime_ns: 500_000_000,
};

/// Silence of a forwarder that is reached by datagrams after which prefixes are registered again.
const REFRESH_NS: u64 = 800_000_000;

/// Transport to the peer.
pub(super) enum Carrier {
    Connection(Connection),
    /// One peer of the UDP socket with this number.
    Peer {
        socket: usize,
        peer: UdpPeer,
    },
}

pub(super) struct Face {
    pub(super) id: FaceId,
    pub(super) carrier: Carrier,
    pub(super) is_closed: bool,
    /// True if the peer came to us; false for the forwarder at which prefixes are registered.
    pub(super) is_client: bool,
    /// Interest registered with the poller.
    pub(super) watched: Interest,
    /// Time of the last receipt.
    pub(super) heard_ns: u64,
    /// Where packets may have to be fragmented.
    fragmenter: Option<Box<Fragmenter>>,
    marker: CongestionMarker,
    /// Frames received, one after the other, and where the next one starts.
    waiting: Vec<u8>,
    next: usize,
    /// Memory of `waiting`.
    charge: Charge,
    registrar: Option<Registrar>,
    /// True if the peer is a forwarder that is believed about who asks.
    tells_askers: bool,
}

impl Face {
    /// A face for a connection.
    pub(super) fn new(
        id: FaceId,
        connection: Connection,
        registrar: Option<Registrar>,
    ) -> Result<Self, IoError> {
        let whole = |max: usize| max >= WHOLE_FRAME_BYTES;
        let fragments =
            connection.is_datagram() && !connection.frame_bytes_max().is_some_and(whole);
        let mtu_bytes = mtu::of_connection(&connection).filter(|_| fragments);
        Self::with_carrier(id, Carrier::Connection(connection), mtu_bytes, registrar)
    }

    /// A face for a peer of a UDP socket.
    pub(super) fn of_peer(id: FaceId, socket: usize, address: SocketAddr) -> Result<Self, IoError> {
        let mtu_bytes = Some(mtu::to_peer(Some(address)));
        let peer = UdpPeer::unknown(address);
        Self::with_carrier(id, Carrier::Peer { socket, peer }, mtu_bytes, None)
    }

    fn with_carrier(
        id: FaceId,
        carrier: Carrier,
        mtu_bytes: Option<usize>,
        registrar: Option<Registrar>,
    ) -> Result<Self, IoError> {
        let fragmenter = match mtu_bytes {
            Some(_) => Some(Box::new(Fragmenter::new(link_over(mtu_bytes, REASSEMBLY))?)),
            None => None,
        };
        let mut face = Self {
            id,
            carrier,
            is_closed: false,
            is_client: registrar.is_none(),
            watched: Interest::READ,
            heard_ns: 0,
            fragmenter,
            marker: CongestionMarker::default(),
            waiting: Vec::new(),
            next: 0,
            charge: Charge::default(),
            registrar,
            tells_askers: false,
        };
        face.tells_askers = face.is_local_forwarder();
        Ok(face)
    }

    /// Counts its memory towards `budget`.
    pub(super) fn set_budget(&mut self, budget: &MemoryBudget) {
        self.charge = Charge::of(budget);
        if let Some(fragmenter) = &mut self.fragmenter {
            fragmenter.packets().set_budget(budget);
        }
        if let Carrier::Connection(connection) = &mut self.carrier {
            connection.set_budget(budget);
        }
    }

    /// Frees memory that is not needed; says for how long the peer has taken nothing of what waits.
    pub(super) fn trim(&mut self, now_ns: u64) -> u64 {
        if self.waiting.is_empty() {
            self.waiting = Vec::new();
        }
        self.charge.set(self.waiting.capacity());
        if let Some(fragmenter) = &mut self.fragmenter {
            fragmenter.packets().trim(now_ns);
        }
        match &mut self.carrier {
            Carrier::Connection(connection) => connection.trim(now_ns),
            Carrier::Peer { .. } => 0,
        }
    }

    /// Octets of requests that may wait now.
    fn waiting_bytes_max(&self) -> usize {
        match self.charge.is_short() {
            true => WAITING_BYTES_MAX_SHORT,
            false if self.tells_askers => WAITING_BYTES_MAX_FORWARDER,
            false => WAITING_BYTES_MAX,
        }
    }

    /// The machine of the peer, if it is on a network.
    pub(super) fn machine(&self) -> Option<IpAddr> {
        match &self.carrier {
            Carrier::Connection(connection) => connection.machine(),
            Carrier::Peer { peer, .. } => Some(machine_of(peer.address().ip())),
        }
    }

    /// Requests for whose answers there is room.
    pub(super) fn requests_max(&self, send_bytes_max: usize) -> usize {
        send_bytes_max.saturating_sub(self.queued_bytes()) / MAX_PACKET_BYTES
    }

    /// Where answers are written to.
    pub(super) fn outlet(&mut self) -> Option<&mut Connection> {
        match (&mut self.fragmenter, &mut self.carrier) {
            (Some(fragmenter), _) => Some(fragmenter.packets()),
            (None, Carrier::Connection(connection)) => Some(connection),
            (None, Carrier::Peer { .. }) => None,
        }
    }

    /// True if packets framed by others can be sent from where they lie. Where they would have to
    /// be copied, reading them right into their place costs no more than that.
    pub(super) fn sends_from_place(&self) -> bool {
        match (&self.fragmenter, &self.carrier) {
            (None, Carrier::Connection(connection)) => connection.sends_from_place(),
            _ => false,
        }
    }

    /// Events to watch for: requests only while there is room for them.
    pub(super) fn interest(&self) -> Interest {
        let read = self.waiting.len() < self.waiting_bytes_max();
        Interest { read, write: self.wants_write() }
    }

    /// True if answers wait for room that no event announces: shared memory has no writable event,
    /// and its own timer shows as something to read, which is not watched while requests wait.
    pub(super) fn must_be_retried(&self) -> bool {
        let Carrier::Connection(connection) = &self.carrier else { return false };
        let is_memory = connection.is_datagram() && connection.frame_bytes_max().is_some();
        is_memory && !self.interest().read && self.wants_write()
    }

    fn wants_write(&self) -> bool {
        match &self.carrier {
            Carrier::Connection(connection) => connection.wants_write() || self.has_unfragmented(),
            Carrier::Peer { .. } => self.has_unfragmented(),
        }
    }

    /// True if packets wait to be fragmented.
    pub(super) fn has_unfragmented(&self) -> bool {
        self.fragmenter.as_ref().is_some_and(|fragmenter| fragmenter.queued_bytes() > 0)
    }

    /// True if the peer is a forwarder of this machine, which is believed about who asks.
    pub(super) fn is_local_forwarder(&self) -> bool {
        match &self.carrier {
            Carrier::Connection(connection) => {
                // Anybody of this machine can forge a UDP peer.
                let is_forgeable =
                    connection.is_datagram() && connection.peer_credentials().is_none();
                !self.is_client && connection.is_local() && !is_forgeable
            }
            Carrier::Peer { .. } => false,
        }
    }

    /// True if something can be done without waiting.
    pub(super) fn is_busy(&self, send_bytes_max: usize) -> bool {
        let is_registered = self.registrar.as_ref().is_some_and(Registrar::is_done);
        is_registered || self.next < self.waiting.len() && self.has_room(send_bytes_max)
    }

    fn queued_bytes(&self) -> usize {
        let framed = match &self.carrier {
            Carrier::Connection(connection) => connection.queued_bytes(),
            Carrier::Peer { .. } => 0,
        };
        framed + self.fragmenter.as_ref().map_or(0, |fragmenter| fragmenter.queued_bytes())
    }

    /// True if there is room for another burst of answers.
    pub(super) fn has_room(&self, send_bytes_max: usize) -> bool {
        self.queued_bytes() + PACKET_ROOM_BYTES <= send_bytes_max
    }

    /// Takes what a connection has received.
    pub(super) fn receive(&mut self, now_ns: u64) -> Result<(), IoError> {
        if self.waiting.len() >= self.waiting_bytes_max() {
            return Ok(());
        }
        self.heard_ns = now_ns;
        let Carrier::Connection(connection) = &mut self.carrier else { return Ok(()) };
        let (waiting, fragmenter) = (&mut self.waiting, &mut self.fragmenter);
        let status = connection.recv_burst(frame_len, &mut |frame| match fragmenter {
            Some(fragmenter) => keep_whole(fragmenter, frame, now_ns, waiting),
            None => waiting.extend_from_slice(frame),
        })?;
        self.is_closed |= status.closed;
        self.charge.set(self.waiting.capacity());
        Ok(())
    }

    /// Takes a datagram of the peer; gives the token that is to be sent to it, if any. Beyond the
    /// bound it is lost, as it might have been before.
    pub(super) fn receive_datagram(
        &mut self,
        frame: &[u8],
        limiter: &mut AnswerLimiter,
        now_ns: u64,
    ) -> Option<u64> {
        self.heard_ns = now_ns;
        let max = self.waiting_bytes_max();
        let Carrier::Peer { peer, .. } = &mut self.carrier else { return None };
        let token = limiter.on_received(peer, frame.len(), now_ns);
        if let Some(fragmenter) = &mut self.fragmenter
            && self.waiting.len() < max
        {
            keep_whole(fragmenter, frame, now_ns, &mut self.waiting);
            self.charge.set(self.waiting.capacity());
            if let Some(returned) = fragmenter.take_returned_token() {
                limiter.on_returned(peer, returned, now_ns);
            }
        }
        token
    }

    /// Hands the next frame to the engine; false if there is none.
    pub(super) fn next_request(
        &mut self,
        to: &mut Recipients<'_>,
        now: Now,
    ) -> Result<bool, RegisterError> {
        let rest = &self.waiting[self.next..];
        let len = frame_len(rest).ok().flatten().filter(|len| *len <= rest.len());
        let Some(len) = len else {
            self.waiting.clear();
            self.next = 0;
            return Ok(false);
        };
        self.next += len;
        let origin = Origin { face: self.id, is_believed: self.tells_askers };
        let registrar = self.registrar.as_mut();
        let taken = take_frame((origin, &rest[..len]), to, registrar, now);
        if self.next >= self.waiting.len() {
            // At once: a buffer that only seems full would not be read into any more.
            self.waiting.clear();
            self.next = 0;
        }
        taken.map(|()| true)
    }

    /// Queues a packet with its link header; false if there is no room.
    pub(super) fn send(&mut self, wire: &[u8], now_ns: u64) -> bool {
        let is_due = self.is_mark_due(now_ns);
        let Some(outlet) = self.outlet() else { return false };
        let marked = is_due.then(|| marked_frame(wire)).flatten();
        outlet.queue(&[marked.as_deref().unwrap_or(wire)]).is_ok()
    }

    /// Queues, or sends, packets that were framed elsewhere; `packets` is empty afterwards.
    pub(super) fn send_all(&mut self, packets: &mut Connection, now_ns: u64) {
        let is_due = self.is_mark_due(now_ns);
        let Some(outlet) = self.outlet() else { return };
        if is_due {
            return move_marked(packets, outlet);
        }
        match outlet.send_held(packets, frame_len) {
            Ok(0) => {}
            Ok(lost) => tracing::debug!(face = self.id.0, lost, "answers found no room"),
            // The next flush meets the same error and ends the face.
            Err(error) => tracing::debug!(face = self.id.0, %error, "answers cannot be sent"),
        }
    }

    /// True if the packet about to be queued is due a congestion mark, as the queue has been long.
    pub(super) fn is_mark_due(&mut self, now_ns: u64) -> bool {
        let queued_bytes = self.queued_bytes();
        self.marker.take_due(queued_bytes, now_ns)
    }

    /// Number of packets marked.
    pub(super) fn marked_count(&self) -> u64 {
        self.marker.marked_count()
    }

    /// Hands on what waits, as far as the link takes it.
    pub(super) fn flush(
        &mut self,
        (sockets, limiter): (&mut [DatagramSocket], &mut AnswerLimiter),
        now_ns: u64,
    ) -> Result<(), IoError> {
        let queued_bytes = self.queued_bytes();
        self.marker.note_queue(queued_bytes, now_ns);
        match (&mut self.carrier, &mut self.fragmenter) {
            (Carrier::Connection(connection), Some(fragmenter)) => fragmenter.send_over(connection),
            (Carrier::Connection(connection), None) => connection.flush(),
            (Carrier::Peer { socket, peer }, Some(fragmenter)) => {
                let socket = (*socket, &mut sockets[*socket]);
                fragmenter.send_to(&mut PeerQueue { socket, peer, limiter, now_ns })
            }
            (Carrier::Peer { .. }, None) => Ok(()),
        }
    }

    /// Sends commands that are due; calls `on_ready` once all prefixes are registered.
    pub(super) fn register(
        &mut self,
        now: Now,
        on_ready: &mut dyn FnMut(),
    ) -> Result<(), StoreError> {
        let Some(registrar) = &mut self.registrar else { return Ok(()) };
        if registrar.is_done() {
            self.registrar = None;
            on_ready();
            return Ok(());
        }
        registrar.handle_timeout(now.now_ns, &mut random_u64)?;
        while let Some(registrar) = &mut self.registrar {
            let at = (now.now_ns, now.unix_ns);
            let Some(command) = registrar.poll_command(at, &mut random_u64)? else { break };
            // A full buffer delays the command by its time-out.
            if !self.send(&command, now.now_ns) {
                break;
            }
        }
        Ok(())
    }

    /// When a forwarder that is reached by datagrams has been silent for so long that it may have
    /// forgotten what was registered.
    pub(super) fn refresh_due_ns(&self) -> Option<u64> {
        let Carrier::Connection(connection) = &self.carrier else { return None };
        let is_upstream = !self.is_client && connection.remote_uri().starts_with("udp");
        let is_idle = is_upstream && self.registrar.is_none();
        is_idle.then_some(self.heard_ns.saturating_add(REFRESH_NS))
    }

    /// Registers once more.
    pub(super) fn register_again(&mut self, registrar: Registrar) {
        self.registrar = Some(registrar);
    }

    pub(super) fn poll_timeout(&self) -> Option<u64> {
        self.registrar.as_ref().and_then(Registrar::poll_timeout)
    }
}

/// Appends what a frame completes to `waiting`, as one frame.
fn keep_whole(fragmenter: &mut Fragmenter, frame: &[u8], now_ns: u64, waiting: &mut Vec<u8>) {
    match fragmenter.receive(frame, now_ns) {
        Ok(Some(received)) => {
            encode_header(&received.header, None, received.packet.len(), waiting);
            waiting.extend_from_slice(received.packet);
        }
        Ok(None) => {}
        Err(reason) => tracing::debug!(?reason, "a frame was dropped"),
    }
}

/// Face that a frame came from.
#[derive(Clone, Copy)]
struct Origin {
    face: FaceId,
    /// True if what it says about who asks counts.
    is_believed: bool,
}

fn take_frame(
    (origin, frame): (Origin, &[u8]),
    to: &mut Recipients<'_>,
    registrar: Option<&mut Registrar>,
    now: Now,
) -> Result<(), RegisterError> {
    let Ok(link) = LpPacket::decode(frame) else { return Ok(()) };
    let Some(packet) = link.fragment.filter(|_| link.frag_count == 1) else { return Ok(()) };
    match (Packet::decode(packet), link.header.nack) {
        (Ok(Packet::Interest(interest)), None) => {
            let pit_token = link.header.pit_token;
            let congestion_mark = link.header.congestion_mark;
            let incoming_face_id = link.header.incoming_face_id.filter(|_| origin.is_believed);
            let arrival = Arrival {
                interest: &interest,
                pit_token,
                congestion_mark,
                face: origin.face,
                incoming_face_id,
                path_trace: link.header.path_trace.map(|_| to.path_trace),
            };
            to.handle_interest(&arrival, now);
            Ok(())
        }
        (Ok(Packet::Interest(interest)), Some(reason)) => {
            to.handle_nack(interest.name, now);
            registrar.map_or(Ok(()), |registrar| registrar.handle_nack(interest.name, reason))
        }
        (Ok(Packet::Data(data)), _) => {
            to.handle_data(&data, now);
            registrar.map_or(Ok(()), |registrar| registrar.handle_data(&data))
        }
        (Err(_), _) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
