//! Packets on their way into datagrams: whole ones wait here, fragments on the link.
//!
//! Whoever drafts packets in place needs a queue of whole packets, and one for each peer where
//! several share a UDP socket. They are fragmented one by one while there is room on the link, so
//! that a long queue stays one of packets and can be marked, moved or dropped as such.

use byname_io::{AnswerLimiter, Connection, DatagramSocket, IoError, UdpPeer};
use byname_link::{DropReason, LinkService, Received};
use byname_packet::lp::LpPacket;

use crate::frame_len;

/// Octets of fragments handed to a link at a time.
const LINK_BYTES_MAX: usize = 64 << 10;

/// The link of a peer that takes datagrams, behind a queue of whole packets.
#[derive(Debug)]
pub struct Fragmenter {
    /// Whole packets with their headers.
    packets: Connection,
    link: LinkService,
}

impl Fragmenter {
    /// A queue in front of `link`.
    ///
    /// # Errors
    /// [`IoError`] if descriptors have run out.
    pub fn new(link: LinkService) -> Result<Self, IoError> {
        Ok(Self { packets: Connection::held()?, link })
    }

    /// The queue that packets are written into.
    pub fn packets(&mut self) -> &mut Connection {
        &mut self.packets
    }

    /// Octets of packets that wait for room on the link.
    pub fn queued_bytes(&self) -> usize {
        self.packets.queued_bytes()
    }

    /// Takes a frame of the peer.
    ///
    /// # Errors
    /// [`DropReason`]; the link goes on.
    pub fn receive<'a>(
        &'a mut self,
        frame: &'a [u8],
        now_ns: u64,
    ) -> Result<Option<Received<'a>>, DropReason> {
        self.link.receive(frame, now_ns)
    }

    /// Takes the token that the peer has returned, see
    /// [`LinkSender::take_returned_token`](byname_link::LinkSender::take_returned_token).
    pub fn take_returned_token(&mut self) -> Option<u64> {
        self.link.take_returned_token()
    }

    /// Sends what waits over the peer's own connection, as far as the kernel takes it.
    ///
    /// # Errors
    /// [`IoError`] of the connection.
    pub fn send_over(&mut self, connection: &mut Connection) -> Result<(), IoError> {
        loop {
            self.fragment(connection)?;
            let before = connection.queued_bytes();
            connection.flush()?;
            if before == connection.queued_bytes() || self.queued_bytes() == 0 {
                return Ok(());
            }
        }
    }

    /// Queues what waits for one peer of a socket that others share; flush the socket afterwards.
    ///
    /// # Errors
    /// [`IoError`] if the queue holds something that is no packet.
    pub fn send_to(&mut self, queue: &mut PeerQueue<'_>) -> Result<(), IoError> {
        self.fragment(queue)
    }

    /// Fragments packets while less than [`LINK_BYTES_MAX`] wait on the link.
    fn fragment(&mut self, queue: &mut impl FrameQueue) -> Result<(), IoError> {
        let link = &mut self.link;
        while queue.queued_bytes() < LINK_BYTES_MAX {
            let taken = self.packets.take_held(frame_len, &mut |frame| {
                let Ok(packet) = LpPacket::decode(frame) else { return };
                let Some(fragment) = packet.fragment else { return };
                // What the link refuses for its size or for want of room is lost, as on the path.
                let sent = link.send(&packet.header, fragment, 0, |head, part| {
                    queue.queue([head, part]);
                });
                if let Err(error) = sent {
                    tracing::debug!(%error, "a packet does not fit the link");
                }
            })?;
            if !taken {
                break;
            }
        }
        Ok(())
    }
}

/// Where frames wait for the kernel.
trait FrameQueue {
    fn queued_bytes(&self) -> usize;
    fn queue(&mut self, parts: [&[u8]; 2]);
}

impl FrameQueue for Connection {
    fn queued_bytes(&self) -> usize {
        Connection::queued_bytes(self)
    }

    fn queue(&mut self, parts: [&[u8]; 2]) {
        let _ = Connection::queue(self, &parts);
    }
}

/// The way to one peer of a UDP socket that others share.
#[derive(Debug)]
pub struct PeerQueue<'a> {
    /// The socket, and its number for the limiter.
    pub socket: (usize, &'a mut DatagramSocket),
    /// The peer.
    pub peer: &'a mut UdpPeer,
    /// Bounds what the peer gets.
    pub limiter: &'a mut AnswerLimiter,
    /// The time.
    pub now_ns: u64,
}

impl FrameQueue for PeerQueue<'_> {
    fn queued_bytes(&self) -> usize {
        self.socket.1.queued_bytes()
    }

    fn queue(&mut self, parts: [&[u8]; 2]) {
        let socket = (self.socket.0, &mut *self.socket.1);
        // What finds no room is lost, as on the path.
        let _ = self.limiter.queue(socket, self.peer, &parts, self.now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_over;
    use byname_link::ReassemblyLimits;
    use byname_packet::{DataBuilder, Name, NullSigner};

    #[test]
    fn no_more_is_fragmented_than_the_link_has_room_for_and_nothing_is_lost() {
        let link = || link_over(Some(1420), ReassemblyLimits::default());
        let mut fragmenter = Fragmenter::new(link()).unwrap();
        let (mut wire, name) = (Vec::new(), "/a".parse::<Name>().unwrap());
        DataBuilder::new(name.view()).encode(&[7; 8000], &NullSigner, &mut wire).unwrap();
        for _ in 0..100 {
            fragmenter.packets().queue(&[&wire]).unwrap();
        }
        let mut far = link();
        // A queue in the place of a connection that takes nothing by itself.
        let (mut connection, mut packets) = (Connection::held().unwrap(), 0);
        while fragmenter.queued_bytes() > 0 {
            let before = fragmenter.queued_bytes();
            fragmenter.send_over(&mut connection).unwrap();
            assert!(fragmenter.queued_bytes() < before);
            assert!(connection.queued_bytes() < LINK_BYTES_MAX + 9000);
            connection
                .recv_burst(frame_len, &mut |frame| {
                    if let Some(received) = far.receive(frame, 0).unwrap() {
                        assert_eq!(received.packet, wire);
                        packets += 1;
                    }
                })
                .unwrap();
        }
        assert_eq!(packets, 100);
    }
}
