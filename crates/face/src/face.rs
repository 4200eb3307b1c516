//! One connection with its link.

use byname_io::{Connection, IoError, RecvStatus};
use byname_link::{LinkService, ReassemblyLimits, Received};
use byname_packet::lp::LpHeader;

use crate::error::FaceError;
use crate::{frame_len, mtu, random_u64};

/// The link of a connection: of a stream, or of datagrams with frames up to `mtu_bytes`.
///
/// Its first sequence number is random: no fragment of an earlier life has it.
pub fn link_over(mtu_bytes: Option<usize>, reassembly: ReassemblyLimits) -> LinkService {
    match mtu_bytes {
        Some(mtu_bytes) => LinkService::datagram(mtu_bytes, random_u64(), reassembly),
        None => LinkService::stream(),
    }
}

/// A connection with its link: packets in, packets out.
///
/// Sending only queues; [`Face::flush`] hands over what the kernel takes. Watch the connection
/// ([`Face::connection`]) with a poller as any other.
#[derive(Debug)]
pub struct Face {
    connection: Connection,
    link: LinkService,
    mtu_bytes: Option<usize>,
}

impl Face {
    /// Takes over a connection. Packets that come in fragments are kept within `reassembly`.
    pub fn new(connection: Connection, reassembly: ReassemblyLimits) -> Self {
        let mtu_bytes = mtu::of_connection(&connection);
        let link = link_over(mtu_bytes, reassembly);
        Self { connection, link, mtu_bytes }
    }

    /// Longest frame; `None` on streams, where every packet is one frame.
    pub fn mtu_bytes(&self) -> Option<usize> {
        self.mtu_bytes
    }

    /// The connection, to be watched and asked.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The connection, for frames that are made elsewhere.
    pub fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Queues a packet, in as many frames as it needs.
    ///
    /// # Errors
    /// [`FaceError::Link`] if no fragments are small enough, with nothing queued;
    /// [`FaceError::Full`] if there is no room, with the packet's first fragments queued perhaps.
    pub fn send(
        &mut self,
        header: &LpHeader<'_>,
        packet: &[u8],
        now_ns: u64,
    ) -> Result<(), FaceError> {
        let connection = &mut self.connection;
        let mut queued = Ok(());
        self.link.send(header, packet, now_ns, |head, body| {
            // Fragments behind one that was dropped are of no use.
            if queued.is_ok() {
                queued = connection.queue(&[head, body]);
            }
        })?;
        Ok(queued?)
    }

    /// Hands out the packets of one burst of frames. What makes no packet (acknowledgements,
    /// unfinished and malformed ones) is left out.
    ///
    /// # Errors
    /// [`IoError`]; the connection is of no further use.
    pub fn receive(
        &mut self,
        now_ns: u64,
        mut on_packet: impl FnMut(&Received<'_>),
    ) -> Result<RecvStatus, IoError> {
        let link = &mut self.link;
        self.connection.recv_burst(frame_len, &mut |frame| match link.receive(frame, now_ns) {
            Ok(Some(received)) => on_packet(&received),
            Ok(None) => {}
            Err(reason) => tracing::trace!(%reason, "a frame made no packet"),
        })
    }

    /// Hands the kernel what it takes now; the rest stays queued.
    ///
    /// # Errors
    /// [`IoError`]; the connection is of no further use.
    pub fn flush(&mut self) -> Result<(), IoError> {
        self.connection.flush()
    }
}

#[cfg(test)]
mod tests;
