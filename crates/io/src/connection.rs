//! One peer, whatever the transport: frames come in bursts, frames go out through a bounded queue.
//!
//! A burst is handed out in place: the slices point into the connection's receive buffer and are
//! valid during the callback only. Sending never blocks and never drops silently: `queue` says
//! when there is no room, `flush` writes what the kernel takes, `wants_write` says whether to ask
//! the poller for a writable event.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use socket2::{SockRef, Socket};

use crate::address::{canonical, is_loopback, peer_uri};
use crate::admission;
use crate::budget::MemoryBudget;
use crate::datagram::{DatagramCounters, DatagramIo};
use crate::endpoint::Endpoint;
use crate::error::{IoError, QueueFull};
use crate::limits::Limits;
use crate::memif::{self, Channel};
use crate::websocket::WebSocket;
use crate::{FrameFn, FrameSink};

mod credentials;
mod draft;
mod frame_list;
mod held;
mod receive;
mod recv_status;
mod send;
mod stream;

pub use credentials::PeerCredentials;
pub(crate) use credentials::peer_credentials;
pub use draft::Draft;
pub use frame_list::FRAMES_MAX;
pub(crate) use frame_list::FrameList;
pub use recv_status::RecvStatus;

use held::Held;
use stream::Stream;
pub(crate) use stream::prepare_tcp;

/// A stream over Unix or TCP, UDP with one peer, or shared memory.
#[derive(Debug)]
pub struct Connection {
    inner: Inner,
    local: String,
    remote: String,
    is_local: bool,
}

#[derive(Debug)]
enum Inner {
    Stream(Stream),
    Datagram(Box<DatagramIo>),
    Memif(Box<Channel>),
    WebSocket(Box<WebSocket>),
    Held(Held),
}

impl Connection {
    /// Two connected ends within this process.
    pub fn pair() -> Result<(Self, Self), IoError> {
        Self::pair_with(Limits::default())
    }

    /// Two connected ends with other limits.
    pub fn pair_with(limits: Limits) -> Result<(Self, Self), IoError> {
        let kind = socket2::Type::STREAM.nonblocking();
        let end = |socket: Socket| Self::unix(socket.into(), None, None, limits);
        let (one, other) = Socket::pair(socket2::Domain::UNIX, kind, None)
            .map_err(|e| IoError::new("socketpair", e))?;
        let failed = |e| IoError::new("setsockopt", e);
        Ok((end(one).map_err(failed)?, end(other).map_err(failed)?))
    }

    /// Two connected ends within this process that share memory (memif). The first writes drafts
    /// straight into that memory, so it is the one for whoever sends more.
    pub fn pair_in_memory() -> Result<(Self, Self), IoError> {
        let (one, other) = memif::pair(Limits::default())?;
        let end = |channel: Channel| {
            let name = format!("fd://{}", channel.control().as_raw_fd());
            let inner = Inner::Memif(Box::new(channel));
            Connection { inner, local: name.clone(), remote: name, is_local: true }
        };
        Ok((end(one), end(other)))
    }

    /// A queue with the face of a connection: what is sent is received from this same end, and
    /// flushing does nothing. For frames that are written in place and then taken apart.
    pub fn held() -> Result<Self, IoError> {
        let inner = Inner::Held(Held::new(Limits::default())?);
        Ok(Connection { inner, local: String::new(), remote: String::new(), is_local: true })
    }

    /// Takes the first frame that a [`Connection::held`] holds; false if there is none, as with
    /// every other connection.
    pub fn take_held(
        &mut self,
        framer: FrameFn,
        on_frame: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, IoError> {
        match &mut self.inner {
            Inner::Held(held) => held.take_first(framer, on_frame),
            _ => Ok(false),
        }
    }

    /// A connection that a listener at `endpoint` took.
    pub(crate) fn accepted(
        socket: Socket,
        endpoint: &Endpoint,
        limits: Limits,
    ) -> Result<Self, IoError> {
        let accepted = match endpoint {
            Endpoint::Unix(_) => {
                Self::unix(socket.into(), Some(endpoint.to_string()), None, limits)
            }
            _ => Self::tcp(socket, limits),
        };
        accepted.map_err(|e| IoError::new("accept", e))
    }

    pub(crate) fn unix(
        fd: OwnedFd,
        local: Option<String>,
        remote: Option<String>,
        limits: Limits,
    ) -> std::io::Result<Self> {
        // NFD names an end that has no path by its descriptor.
        let unnamed = format!("fd://{}", fd.as_raw_fd());
        Ok(Connection {
            inner: Inner::Stream(Stream::unix(fd, limits)?),
            local: local.unwrap_or_else(|| unnamed.clone()),
            remote: remote.unwrap_or(unnamed),
            is_local: true,
        })
    }

    /// A memif connection that was accepted, or made, at `endpoint`.
    pub(crate) fn memif(channel: Channel, endpoint: &Endpoint, is_accepted: bool) -> Self {
        let unnamed = format!("fd://{}", channel.control().as_raw_fd());
        let named = endpoint.to_string();
        let (local, remote) = if is_accepted { (named, unnamed) } else { (unnamed, named) };
        Connection { inner: Inner::Memif(Box::new(channel)), local, remote, is_local: true }
    }

    /// A multicast group as a face: what is sent goes to all members but ourselves.
    pub(crate) fn multicast(
        socket: Socket,
        (group, port): (IpAddr, u16),
        device: &str,
        limits: Limits,
    ) -> Self {
        let address = SocketAddr::new(group, port);
        let family = if group.is_ipv4() { 4 } else { 6 };
        let inner = DatagramIo::to_group(socket.into(), limits, address);
        Connection {
            inner: Inner::Datagram(Box::new(inner)),
            local: format!("udp{family}+dev://{device}:{port}"),
            remote: peer_uri("udp", address),
            is_local: false,
        }
    }

    /// A WebSocket whose handshake is done. As NFD, whoever accepted is `ws` and the other end
    /// `wsclient`. It is never local: any web page may be behind it.
    pub(crate) fn websocket(socket: WebSocket, is_accepted: bool) -> std::io::Result<Self> {
        let (local, remote) = addresses(&SockRef::from(&socket))?;
        let schemes = if is_accepted { ["ws", "wsclient"] } else { ["wsclient", "ws"] };
        Ok(Connection {
            inner: Inner::WebSocket(Box::new(socket)),
            local: format!("{}://{local}", schemes[0]),
            remote: format!("{}://{remote}", schemes[1]),
            is_local: false,
        })
    }

    pub(crate) fn tcp(socket: Socket, limits: Limits) -> std::io::Result<Self> {
        let (local, remote) = addresses(&SockRef::from(&socket))?;
        let inner = Inner::Stream(Stream::tcp(socket, limits)?);
        Ok(Self::internet("tcp", inner, local, remote))
    }

    /// UDP with one peer.
    pub(crate) fn udp(socket: Socket, limits: Limits) -> std::io::Result<Self> {
        let (local, remote) = addresses(&SockRef::from(&socket))?;
        let inner = Inner::Datagram(Box::new(DatagramIo::new(socket.into(), limits)));
        Ok(Self::internet("udp", inner, local, remote))
    }

    fn internet(transport: &str, inner: Inner, local: SocketAddr, remote: SocketAddr) -> Self {
        Connection {
            inner,
            local: peer_uri(transport, local),
            remote: peer_uri(transport, remote),
            is_local: is_loopback(local) && is_loopback(remote),
        }
    }

    /// Hands every whole frame that has come to `on_frame`, up to a bounded amount of reading.
    ///
    /// After an error the connection is of no further use; frames before it have been handed out.
    /// Of UDP, a datagram that is not exactly one frame is counted as dropped.
    pub fn recv_burst(
        &mut self,
        framer: FrameFn,
        mut on_frame: &mut dyn FnMut(&[u8]),
    ) -> Result<RecvStatus, IoError> {
        self.recv_into(framer, &mut on_frame)
    }

    /// [`Connection::recv_burst`] into a sink that also learns where the frames of each read lie.
    pub fn recv_into(
        &mut self,
        framer: FrameFn,
        sink: &mut dyn FrameSink,
    ) -> Result<RecvStatus, IoError> {
        let datagram = match &mut self.inner {
            Inner::Stream(stream) => return stream.recv_burst(framer, sink),
            Inner::Memif(channel) => return channel.recv_burst(framer, sink),
            Inner::WebSocket(socket) => return socket.recv_burst(framer, sink),
            Inner::Held(held) => return held.recv_burst(framer, sink),
            Inner::Datagram(datagram) => datagram,
        };
        let mut malformed = 0;
        let mut status = datagram.recv_burst(&mut |_, frame| match framer(frame) {
            Ok(Some(length)) if length == frame.len() && length > 0 => sink.frame(frame),
            _ => malformed += 1,
        })?;
        datagram.on_malformed(malformed);
        status.frames -= malformed;
        status.dropped += malformed;
        Ok(status)
    }

    /// Appends one frame, gathered from `parts`, to the send buffer. Nothing is sent before
    /// [`Connection::flush`]; of a frame that does not fit, nothing is queued.
    pub fn queue(&mut self, parts: &[&[u8]]) -> Result<(), QueueFull> {
        match &mut self.inner {
            Inner::Stream(stream) => stream.queue(parts),
            Inner::Datagram(datagram) => datagram.queue(None, parts),
            Inner::Memif(channel) => channel.queue(parts),
            Inner::WebSocket(socket) => socket.queue(parts),
            Inner::Held(held) => held.queue(parts),
        }
    }

    /// Sends frames of two parts each from where they lie. What the kernel does not take now is
    /// copied and queued; says how many frames found no room there and are lost.
    ///
    /// Frames queued before go first. Transports that cannot send from several places queue all.
    pub fn send_frames(&mut self, frames: &[[&[u8]; 2]]) -> Result<usize, IoError> {
        if let Inner::Stream(stream) = &mut self.inner {
            return stream.send_frames(frames);
        }
        Ok(frames.iter().filter(|parts| self.queue(&parts[..]).is_err()).count())
    }

    /// Sends everything that a [`Connection::held`] holds, after what is queued here; streams send
    /// it from where it lies. Says how many frames found no room and are lost; a stream loses none
    /// and queues what the kernel does not take, so look at [`Connection::queued_bytes`] before.
    pub fn send_held(&mut self, held: &mut Connection, framer: FrameFn) -> Result<usize, IoError> {
        if let (Inner::Stream(stream), Inner::Held(held)) = (&mut self.inner, &mut held.inner) {
            return held.take_all(|frames| stream.send_run(frames)).map(|()| 0);
        }
        let mut lost = 0;
        held.recv_burst(framer, &mut |frame| lost += usize::from(self.queue(&[frame]).is_err()))?;
        Ok(lost)
    }

    /// True if [`Connection::send_held`] sends without copying.
    pub fn sends_from_place(&self) -> bool {
        matches!(self.inner, Inner::Stream(_))
    }

    /// Begins frames that are written in place, without a copy, and queued together.
    pub fn draft(&mut self) -> Draft<'_> {
        Draft::new(&mut self.inner)
    }

    /// Writes as much as the kernel takes now, over UDP up to [`crate::limits::FLUSH_BYTES`].
    /// The rest stays queued.
    pub fn flush(&mut self) -> Result<(), IoError> {
        match &mut self.inner {
            Inner::Stream(stream) => stream.flush(),
            Inner::Datagram(datagram) => datagram.flush(),
            Inner::Memif(channel) => channel.flush(),
            Inner::WebSocket(socket) => socket.flush(),
            Inner::Held(_) => Ok(()),
        }
    }

    /// Counts the buffers towards a budget from now on; a send queue then keeps within its share.
    /// Of UDP and memif, whose sockets and rings are few, nothing is counted.
    pub fn set_budget(&mut self, budget: &MemoryBudget) {
        match &mut self.inner {
            Inner::Stream(stream) => stream.set_budget(budget),
            Inner::WebSocket(socket) => socket.set_budget(budget),
            Inner::Held(held) => held.set_budget(budget),
            Inner::Datagram(_) | Inner::Memif(_) => {}
        }
    }

    /// Frees memory that was not needed since the last call, to be called about once a second; says
    /// for how many nanoseconds bytes have waited of which the peer has taken none.
    pub fn trim(&mut self, now_ns: u64) -> u64 {
        match &mut self.inner {
            Inner::Stream(stream) => stream.trim(now_ns),
            Inner::WebSocket(socket) => socket.trim(now_ns),
            Inner::Held(held) => held.trim(now_ns),
            Inner::Datagram(_) | Inner::Memif(_) => 0,
        }
    }

    /// True while queued bytes wait: watch for a writable event, then `flush`.
    pub fn wants_write(&self) -> bool {
        self.queued_bytes() > 0
    }

    /// Lets the kernel hold at most about so many octets that the peer of a Unix stream has not
    /// read, so that whoever sends notices soon that it does not keep up. Other connections stay
    /// as they are.
    pub fn limit_kernel_queue(&self, bytes: usize) {
        if let Inner::Stream(stream) = &self.inner {
            stream.limit_kernel_queue(bytes);
        }
    }

    /// Bytes that wait to be sent (datagrams count a little more than their length).
    pub fn queued_bytes(&self) -> usize {
        match &self.inner {
            Inner::Stream(stream) => stream.queued_bytes(),
            Inner::Datagram(datagram) => datagram.queued_bytes(),
            Inner::Memif(channel) => channel.queued_bytes(),
            Inner::WebSocket(socket) => socket.queued_bytes(),
            Inner::Held(held) => held.queued_bytes(),
        }
    }

    /// Datagrams that the kernel refused since the beginning; always 0 for streams.
    pub fn send_dropped(&self) -> u64 {
        match &self.inner {
            Inner::Stream(_) | Inner::WebSocket(_) | Inner::Held(_) => 0,
            Inner::Datagram(datagram) => datagram.send_dropped(),
            Inner::Memif(channel) => channel.send_dropped(),
        }
    }

    /// Counters of a UDP connection, and its buffers; `None` for other transports. Costs system
    /// calls: not for every packet.
    pub fn datagram_counters(&self) -> Option<DatagramCounters> {
        match &self.inner {
            Inner::Datagram(datagram) => Some(datagram.counters()),
            _ => None,
        }
    }

    /// When [`Connection::tick`] is due, on the clock of [`crate::Clock::now_ns`]; `None` for
    /// transports that need none. Until the first call it is due at once.
    pub fn tick_due_ns(&self) -> Option<u64> {
        match &self.inner {
            Inner::WebSocket(socket) => Some(socket.tick_due_ns()),
            _ => None,
        }
    }

    /// Does what is due by then: a WebSocket is pinged every 10 s, and is lost after three such
    /// intervals without a byte from the peer.
    ///
    /// For drivers: after connecting or accepting, and whenever the time of
    /// [`Connection::tick_due_ns`] has come, call this; an error ends the connection as one of
    /// `flush` does. Too early it does nothing, so calling it for every connection every few
    /// seconds is as good. A driver that never does only misses peers that vanish silently.
    pub fn tick(&mut self, now_ns: u64) -> Result<(), IoError> {
        match &mut self.inner {
            Inner::WebSocket(socket) => socket.tick(now_ns),
            _ => Ok(()),
        }
    }

    /// Tells the peer that nothing more will come; receiving goes on. Flush before. No effect on
    /// UDP, memif and WebSocket, which has no half-closed state.
    pub fn shutdown_write(&self) -> Result<(), IoError> {
        match &self.inner {
            Inner::Stream(stream) => stream.shutdown_write(),
            Inner::Datagram(_) | Inner::Memif(_) | Inner::WebSocket(_) | Inner::Held(_) => Ok(()),
        }
    }

    /// Who is at the other end of a Unix socket or of shared memory.
    pub fn peer_credentials(&self) -> Option<PeerCredentials> {
        match &self.inner {
            Inner::Stream(stream) if stream.is_unix() => peer_credentials(stream),
            Inner::Memif(channel) => peer_credentials(&channel.control()),
            _ => None,
        }
    }

    /// The machine that the peer is, see [`admission::machine_of`]; `None` for Unix and memif.
    pub fn machine(&self) -> Option<IpAddr> {
        let (_, authority) = self.remote.split_once("://")?;
        let address: SocketAddr = authority.parse().ok()?;
        Some(admission::machine_of(address.ip()))
    }

    /// True if packets never leave the machine: a Unix socket, memory, or loopback at both ends.
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    /// True if one frame is one datagram, so that frames can be lost and have a maximum length.
    pub fn is_datagram(&self) -> bool {
        matches!(self.inner, Inner::Datagram(_) | Inner::Memif(_))
    }

    /// True if a frame that is sent may reach any number of peers, and any number may send: a
    /// multicast group.
    pub fn is_multi_access(&self) -> bool {
        matches!(&self.inner, Inner::Datagram(datagram) if datagram.is_multi_access())
    }

    /// The longest frame that goes through, where the transport itself sets a limit.
    pub fn frame_bytes_max(&self) -> Option<usize> {
        match &self.inner {
            Inner::Memif(channel) => Some(channel.frame_bytes_max()),
            _ => None,
        }
    }

    /// The FaceUri of this end: `unix:///path`, `fd://N`, `tcp4://127.0.0.1:6363`, ….
    pub fn local_uri(&self) -> &str {
        &self.local
    }

    /// The FaceUri of the peer.
    pub fn remote_uri(&self) -> &str {
        &self.remote
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.inner {
            Inner::Stream(stream) => stream.as_fd(),
            Inner::Datagram(datagram) => datagram.as_fd(),
            Inner::Memif(channel) => channel.as_fd(),
            Inner::WebSocket(socket) => socket.as_fd(),
            Inner::Held(held) => held.as_fd(),
        }
    }
}

fn addresses(socket: &SockRef<'_>) -> std::io::Result<(SocketAddr, SocketAddr)> {
    let missing = || std::io::Error::from(std::io::ErrorKind::NotConnected);
    let local = socket.local_addr()?.as_socket().ok_or_else(missing)?;
    let remote = socket.peer_addr()?.as_socket().ok_or_else(missing)?;
    Ok((canonical(local), canonical(remote)))
}
