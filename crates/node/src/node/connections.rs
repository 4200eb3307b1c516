//! Listeners and faces with a connection of their own.

use byname_face::{frame_len, random_u64};
use byname_forwarder::{FaceId, FaceInfo, LinkType, Persistency};
use byname_io::{Connection, Event, FrameSink, Interest, IoError, Token};
use byname_link::LinkReceiver;
use byname_retry::jittered;
use tracing::{debug, info, warn};

use super::lasting::link_of;
use super::{Node, Source};
use crate::links::{Carrier, Link, Links};
use crate::shards::Core;

/// Connections taken from one listener before others have their turn.
const ACCEPTS_MAX: usize = 64;

/// Longest time for which listeners rest when descriptors have run out.
const LISTENER_PAUSE_NS: u64 = 1_000_000_000;

impl Node {
    pub(super) fn accept(&mut self, index: usize) -> Result<(), IoError> {
        for _ in 0..ACCEPTS_MAX {
            let connection = match self.listeners[&index].accept() {
                Ok(Some(connection)) => connection,
                Ok(None) => break,
                Err(error @ IoError::Exhausted { .. }) => {
                    warn!(%error, "cannot accept connections for now");
                    self.pause_listeners();
                    break;
                }
                Err(error) => {
                    warn!(%error, "accepting a connection failed");
                    break;
                }
            };
            if !self.admit(&connection) {
                self.on_surplus_connection(&connection);
                continue;
            }
            self.add_connection(connection)?;
        }
        Ok(())
    }

    /// Logged at the first, second, fourth, … so that nobody can fill a disk with it.
    fn on_surplus_connection(&mut self, connection: &Connection) {
        self.surplus_count += 1;
        if self.surplus_count.is_power_of_two() {
            let (peer, count, max) =
                (connection.remote_uri(), self.surplus_count, self.faces_max());
            warn!(peer, count, max, "too many faces, connection closed");
        }
    }

    fn pause_listeners(&mut self) {
        for listener in self.listeners.values() {
            // Already paused ones are not in the set; nothing is lost.
            let _ = self.poller.remove(listener);
        }
        let pause_ns = jittered(LISTENER_PAUSE_NS, random_u64());
        let until_ns = self.clock.now_ns().saturating_add(pause_ns);
        self.listeners_paused_until_ns = Some(until_ns);
    }

    pub(super) fn resume_listeners(&mut self) {
        self.listeners_paused_until_ns = None;
        self.sources.retain(|_, source| !matches!(source, Source::Listener(_)));
        let indices: Vec<usize> = self.listeners.keys().copied().collect();
        for index in indices {
            let token = self.token(Source::Listener(index));
            let listener = &self.listeners[&index];
            if let Err(error) = self.poller.add(listener, Token(token), Interest::READ) {
                warn!(%error, "a listener could not be watched again");
            }
        }
    }

    /// Makes a face of a connection that a peer or this process opened.
    pub(super) fn add_connection(&mut self, connection: Connection) -> Result<FaceId, IoError> {
        let mut info = describe(&connection);
        let peer = connection.peer_credentials();
        (info.peer_uid, info.peer_gid) = (peer.map(|it| it.uid), peer.map(|it| it.gid));
        info!(peer = info.remote_uri, local = info.local, "face made");
        let face = self.forwarder.add_face(info);
        if let Err(error) = self.attach(face, connection) {
            self.drop_face(face);
            return Err(error);
        }
        self.start_options(face);
        Ok(face)
    }

    /// Lets `connection` carry a face from now on.
    pub(super) fn attach(
        &mut self,
        face: FaceId,
        mut connection: Connection,
    ) -> Result<(), IoError> {
        connection.set_budget(&self.memory);
        let service = link_of(&connection);
        let token = self.token(Source::Face(face));
        let added = self.poller.add(&connection, Token(token), Interest::READ);
        self.watch_time(face, &connection);
        let mut link = Link::new(Carrier::Down, service, token);
        (link.origin, link.last_active_ns) = (connection.machine(), self.clock.now_ns());
        link.carrier = Carrier::Connection(Some(connection));
        self.links.faces.insert(face, link);
        self.apply_options(face);
        added
    }

    pub(super) fn on_face_event(&mut self, face: FaceId, event: &Event) {
        if event.writable {
            self.flush_face(face);
        }
        if event.readable {
            self.receive(face);
        }
    }

    fn receive(&mut self, face: FaceId) {
        let Some((mut connection, mut receiver)) = self.links.lend(face) else { return };
        let now_ns = self.clock.now_ns();
        self.links.now_ns = now_ns;
        let mut delivery = Delivery {
            forwarder: &mut self.forwarder,
            links: &mut self.links,
            face,
            receiver: &mut receiver,
            now_ns,
        };
        let result = connection.recv_into(frame_len, &mut delivery);
        self.turn_packets += result.as_ref().map_or(0, |status| status.frames);
        let end = match result {
            Ok(status) if status.closed && status.partial_bytes > 0 => {
                Some(format!("closed in the middle of a packet ({} octets)", status.partial_bytes))
            }
            Ok(status) if status.closed => Some(String::from("closed by the peer")),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        self.links.give_back(face, connection, receiver);
        if let Some(reason) = end {
            self.close_face(face, &reason);
        }
    }

    pub(super) fn flush_face(&mut self, face: FaceId) {
        match self.links.flush_face(face) {
            Ok(waits) => self.watch_write(face, waits),
            Err(error) => self.close_face(face, &error.to_string()),
        }
    }

    fn watch_write(&mut self, face: FaceId, wanted: bool) {
        let Some(link) = self.links.faces.get_mut(&face) else { return };
        let Carrier::Connection(Some(connection)) = &link.carrier else { return };
        if link.is_watching_write == wanted {
            return;
        }
        let interest = if wanted { Interest::READ_WRITE } else { Interest::READ };
        match self.poller.modify(connection, Token(link.token), interest) {
            Ok(()) => link.is_watching_write = wanted,
            Err(error) => warn!(face = face.0, %error, "cannot watch a face"),
        }
    }

    /// A connection has ended: a lasting face waits and tries again, any other is gone.
    pub(super) fn close_face(&mut self, face: FaceId, reason: &str) {
        if self.lasting_face_lost(face, reason) {
            return;
        }
        info!(face = face.0, reason, "face closed");
        self.drop_face(face);
    }

    pub(super) fn drop_face(&mut self, face: FaceId) {
        self.detach(face);
        self.links.faces.remove(&face);
        self.forwarder.remove_face(face);
    }

    /// Closes a face's connection; the poller forgets a descriptor that is closed.
    pub(super) fn detach(&mut self, face: FaceId) {
        if let Some(link) = self.links.faces.get_mut(&face) {
            self.sources.remove(&link.token);
            link.carrier = Carrier::Down;
            link.is_watching_write = false;
        }
    }
}

/// Facts about the face of a connection. UDP is never local: anybody on the machine can forge it.
/// Shared memory is, for the kernel says who is at its other end.
pub(super) fn describe(connection: &Connection) -> FaceInfo {
    let is_forgeable = connection.is_datagram() && connection.peer_credentials().is_none();
    FaceInfo {
        local: connection.is_local() && !is_forgeable,
        link_type: match connection.is_multi_access() {
            true => LinkType::MultiAccess,
            false => LinkType::PointToPoint,
        },
        persistency: Persistency::OnDemand,
        remote_uri: connection.remote_uri().to_owned(),
        local_uri: connection.local_uri().to_owned(),
        peer_uid: None,
        peer_gid: None,
        mtu_bytes: connection.frame_bytes_max(),
    }
}

/// Takes what comes over one link to the forwarder.
pub(super) struct Delivery<'a> {
    pub(super) forwarder: &'a mut Core,
    pub(super) links: &'a mut Links,
    pub(super) face: FaceId,
    pub(super) receiver: &'a mut LinkReceiver,
    pub(super) now_ns: u64,
}

impl FrameSink for Delivery<'_> {
    fn begin(&mut self, burst: &[u8]) {
        self.links.begin_burst(burst);
    }

    fn frame(&mut self, frame: &[u8]) {
        self.deliver(frame);
    }

    fn end(&mut self, burst: &[u8]) {
        self.links.end_burst(burst);
    }
}

impl Delivery<'_> {
    /// Hands one frame through the link layer to the forwarder.
    pub(super) fn deliver(&mut self, frame: &[u8]) {
        let Self { forwarder, links, face, receiver, now_ns } = self;
        let (face, now_ns) = (*face, *now_ns);
        let result = receiver.receive(frame, now_ns, &mut links.feedback);
        if !links.feedback.is_empty() {
            links.settle(face);
        }
        match result {
            Ok(Some(received)) => {
                let (header, packet) = (received.header, received.packet);
                if let Some(reason) = forwarder.handle_packet(face, &header, packet, now_ns, links)
                {
                    debug!(face = face.0, ?reason, "packet dropped");
                }
            }
            Ok(None) => {}
            Err(reason) => debug!(face = face.0, %reason, "frame dropped"),
        }
    }
}
