//! Shared UDP sockets: a face for each peer that sends Interests, until it falls silent.

use std::net::SocketAddr;

use byname_forwarder::{FaceId, FaceInfo, LinkType, Persistency};
use byname_io::{Event, Interest, Token, UdpPeer};
use byname_packet::types;
use tracing::{debug, warn};

use super::Node;
use super::connections::Delivery;
use super::lasting::udp_link;
use crate::links::{Carrier, Link};

/// Interval at which silent peers are looked for.
const SWEEP_NS: u64 = 10_000_000_000;

impl Node {
    pub(super) fn on_shared_event(&mut self, index: usize, event: &Event) {
        if event.writable {
            self.flush_shared(index);
        }
        if !event.readable {
            return;
        }
        let Some(socket) = &mut self.links.shared.sockets[index].socket else { return };
        let local_uri = socket.local_uri();
        // Sending goes on over the socket meanwhile.
        let Some(mut receiver) = socket.lend_receiver() else { return };
        let now_ns = self.clock.now_ns();
        self.links.now_ns = now_ns;
        let at = Origin { index, now_ns };
        // Mostly the next datagram is of the same peer.
        let mut last = None;
        let result = receiver.recv_burst(&mut |peer, frame| {
            let known = last.filter(|(of, _)| *of == peer).map(|(_, face)| face);
            let Some(face) = known.or_else(|| self.face_of(peer, frame, at, &local_uri)) else {
                return;
            };
            last = Some((peer, face));
            self.receive_datagram(face, frame, now_ns);
        });
        if let Some(socket) = &mut self.links.shared.sockets[index].socket {
            socket.return_receiver(receiver);
        }
        match result {
            Ok(status) => self.turn_packets += status.frames,
            Err(error) => warn!(%error, "receiving datagrams failed"),
        }
    }

    /// The face of a peer. Only an Interest makes a new one: Data from a stranger answers nothing.
    fn face_of(
        &mut self,
        peer: SocketAddr,
        frame: &[u8],
        at: Origin,
        local_uri: &str,
    ) -> Option<FaceId> {
        if let Some(face) = self.peers.get(&(at.index, peer)) {
            return Some(*face);
        }
        let may_ask = frame
            .first()
            .is_some_and(|first| matches!(u32::from(*first), types::INTEREST | types::LP_PACKET));
        if !may_ask || self.config.udp_faces_max == 0 {
            return None;
        }
        if self.peers.len() >= self.config.udp_faces_max && !self.drop_idlest_peers() {
            return None;
        }
        let mtu_bytes = self.config.udp_mtu_to(Some(peer));
        let info = FaceInfo {
            local: false,
            link_type: LinkType::PointToPoint,
            persistency: Persistency::OnDemand,
            remote_uri: byname_io::peer_uri("udp", peer),
            local_uri: local_uri.to_owned(),
            mtu_bytes: Some(mtu_bytes),
            ..FaceInfo::default()
        };
        debug!(peer = info.remote_uri, "face made");
        let face = self.forwarder.add_face(info);
        let carrier = Carrier::Peer { socket: at.index, peer: UdpPeer::unknown(peer) };
        let mut link = Link::new(carrier, udp_link(), 0);
        link.last_active_ns = at.now_ns;
        self.links.faces.insert(face, link);
        self.peers.insert((at.index, peer), face);
        self.start_options(face);
        self.next_sweep_ns = self.next_sweep_ns.max(at.now_ns.saturating_add(1));
        Some(face)
    }

    fn receive_datagram(&mut self, face: FaceId, frame: &[u8], now_ns: u64) {
        let Some(link) = self.links.faces.get_mut(&face) else { return };
        link.last_active_ns = now_ns;
        let Some(mut receiver) = link.receiver.take() else { return };
        self.links.on_datagram(face, frame.len());
        let (forwarder, links) = (&mut self.forwarder, &mut self.links);
        Delivery { forwarder, links, face, receiver: receiver.as_mut(), now_ns }.deliver(frame);
        if let Some(link) = self.links.faces.get_mut(&face) {
            link.receiver = Some(receiver);
        }
    }

    pub(super) fn flush_shared(&mut self, index: usize) {
        let waits = match self.links.flush_shared(index) {
            Ok(waits) => waits,
            Err(error) => {
                warn!(%error, "sending datagrams failed");
                return;
            }
        };
        let shared = &mut self.links.shared.sockets[index];
        let Some(socket) = &shared.socket else { return };
        if shared.is_watching_write == waits {
            return;
        }
        let interest = if waits { Interest::READ_WRITE } else { Interest::READ };
        match self.poller.modify(socket, Token(shared.token), interest) {
            Ok(()) => shared.is_watching_write = waits,
            Err(error) => warn!(%error, "cannot watch a UDP socket"),
        }
    }

    /// Ends the faces of peers that have sent nothing for long and are not meant to last.
    pub(super) fn sweep_idle_peers(&mut self, now_ns: u64) {
        self.next_sweep_ns = now_ns.saturating_add(SWEEP_NS.min(self.config.udp_idle_ns));
        let idle_ns = self.config.udp_idle_ns;
        let is_idle = |face: &FaceId| {
            let link = self.links.faces.get(face);
            link.is_none_or(|link| now_ns.saturating_sub(link.last_active_ns) >= idle_ns)
                && self.is_on_demand(*face)
        };
        let idle: Vec<(usize, SocketAddr)> =
            self.peers.iter().filter(|(_, face)| is_idle(face)).map(|(peer, _)| *peer).collect();
        for peer in idle {
            self.drop_peer(peer);
        }
    }

    /// Makes room for new peers, for several at a time: a flood of senders costs one look at all
    /// faces for each sixteenth of them. False when all are meant to last.
    fn drop_idlest_peers(&mut self) -> bool {
        let last_active_ns =
            |face: &FaceId| self.links.faces.get(face).map_or(0, |link| link.last_active_ns);
        let mut peers: Vec<_> = (self.peers.iter())
            .filter(|(_, face)| self.is_on_demand(**face))
            .map(|(peer, face)| (last_active_ns(face), *peer))
            .collect();
        if peers.is_empty() {
            return false;
        }
        let surplus = peers.len() / 16;
        peers.select_nth_unstable_by_key(surplus, |(at_ns, _)| *at_ns);
        for (_, peer) in peers.into_iter().take(surplus.max(1)) {
            self.drop_peer(peer);
        }
        true
    }

    fn is_on_demand(&self, face: FaceId) -> bool {
        let info = self.forwarder.face_info(face);
        info.is_none_or(|info| info.persistency == Persistency::OnDemand)
    }

    pub(super) fn drop_peer(&mut self, peer: (usize, SocketAddr)) {
        let Some(face) = self.peers.remove(&peer) else { return };
        debug!(face = face.0, peer = %peer.1, "UDP face ended");
        self.links.faces.remove(&face);
        self.forwarder.remove_face(face);
    }
}

/// The socket a datagram came from, and when.
#[derive(Debug, Clone, Copy)]
struct Origin {
    index: usize,
    now_ns: u64,
}
