//! The one connection to a forwarder or server: requests out, packets in, reconnecting when it
//! breaks.
//!
//! If others may be asked too, the next one is when this one is gone, says nothing for
//! [`SILENCE_NS`], refuses a request or sends what is not genuine. Requests under way are then
//! repeated by whoever made them, when their time is over.

use std::collections::VecDeque;
use std::time::Duration;

use byname_io::{
    Connection, Endpoint, FrameError, Interest as Watch, IoError, Poller, Token, Waker,
};
use byname_link::{LinkService, ReassemblyLimits, stream_frame_len};
use byname_packet::lp::LpHeader;
use byname_packet::{Data, Interest, InterestBuilder};
use byname_transfer::request::{INTEREST_LIFETIME_MS, Request};

use crate::error::ClientError;

const TOKEN: Token = Token(0);
/// Another thread has something to say; see [`Net::waker`].
const WAKE_TOKEN: Token = Token(1);
/// Interests are small; this fits every path and is what most forwarders use.
const DATAGRAM_MTU_BYTES: usize = 1420;
/// Unsent bytes above which no further request is made.
const QUEUE_BYTES_MAX: usize = 256 << 10;
/// Unfinished fragmented packets: a window of large segments may arrive interleaved.
const REASSEMBLY: ReassemblyLimits = ReassemblyLimits {
    messages_max: 64,
    bytes_max: 1 << 20,
    fragments_max: 400,
    lifetime_ns: 500_000_000,
};

/// Silence after which another source is asked, if there is one.
const SILENCE_NS: u64 = 2_000_000_000;
/// How long another source may take to be connected to.
const SWITCH_TIMEOUT: Duration = Duration::from_millis(500);

/// What came in.
pub(crate) enum Incoming<'a> {
    Data { data: &'a Data<'a>, is_marked: bool },
    Nack { interest: &'a Interest<'a>, reason: u64 },
}

/// The connection. Its endpoint is kept for reconnecting, unless it was handed in ready-made.
pub(crate) struct Net {
    connection: Option<Connection>,
    endpoint: Option<Endpoint>,
    /// Who else may be asked, the next one first.
    others: VecDeque<Endpoint>,
    /// Changes of source since the last Data.
    switches: usize,
    /// Something was asked since something was heard, and from when on that counts.
    is_asked: bool,
    silent_since_ns: Option<u64>,
    label: String,
    link: LinkService,
    poller: Poller,
    events: Vec<byname_io::Event>,
    is_write_watched: bool,
    /// Something came over this connection.
    is_answered: bool,
    random: NonceSource,
    wire: Vec<u8>,
}

impl Net {
    pub(crate) fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Self, ConnectFailed> {
        let connection = Connection::connect(endpoint, timeout).map_err(ConnectFailed::Connect)?;
        let mut net = Net::new(connection).map_err(ConnectFailed::Io)?;
        net.endpoint = Some(endpoint.clone());
        net.label = endpoint.to_string();
        Ok(net)
    }

    /// Takes a connection that exists already; there is no reconnecting then.
    pub(crate) fn new(connection: Connection) -> Result<Self, IoError> {
        let mut random = NonceSource::new();
        let link = link_for(&connection, &mut random);
        let poller = Poller::new()?;
        poller.add(&connection, TOKEN, Watch::READ)?;
        Ok(Net {
            label: connection.remote_uri().to_owned(),
            connection: Some(connection),
            endpoint: None,
            others: VecDeque::new(),
            switches: 0,
            is_asked: false,
            silent_since_ns: None,
            link,
            poller,
            events: Vec::new(),
            is_write_watched: false,
            is_answered: false,
            random,
            wire: Vec::new(),
        })
    }

    /// Names others that may be asked for the same.
    pub(crate) fn set_others(&mut self, others: impl Iterator<Item = Endpoint>) {
        self.others = others.collect();
    }

    /// Whether there is anybody else who was not asked since the last Data.
    pub(crate) fn has_others(&self) -> bool {
        self.switches < self.others.len()
    }

    /// Goes over to the next source that can be connected to; false if there is none.
    pub(crate) fn switch(&mut self) -> bool {
        self.switches += 1;
        for _ in 0..self.others.len() {
            let Some(next) = self.others.pop_front() else { return false };
            let connected = Connection::connect(&next, SWITCH_TIMEOUT);
            if let Ok(connection) = connected
                && self.use_connection(connection).is_ok()
            {
                tracing::info!(from = %self.label, to = %next, "another source is asked");
                self.label = next.to_string();
                self.others.extend(self.endpoint.replace(next));
                return true;
            }
            self.others.push_back(next);
        }
        false
    }

    /// Goes over to the next source for good: this one is not asked again. What it has sent may
    /// still be found out to be wrong, and must not count against the next.
    pub(crate) fn leave(&mut self) -> bool {
        let is_left = self.switch();
        if is_left {
            self.others.pop_back();
        }
        is_left
    }

    /// Goes over to the next source if this one owes an answer for too long.
    pub(crate) fn check_silence(&mut self, now_ns: u64) {
        if self.others.is_empty() || !self.is_asked {
            return;
        }
        let since_ns = *self.silent_since_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) >= SILENCE_NS {
            self.silent_since_ns = None;
            self.switch();
        }
    }

    fn use_connection(&mut self, connection: Connection) -> Result<(), IoError> {
        self.link = link_for(&connection, &mut self.random);
        self.poller.add(&connection, TOKEN, Watch::READ)?;
        self.is_write_watched = false;
        self.is_answered = false;
        (self.is_asked, self.silent_since_ns) = (false, None);
        self.connection = Some(connection);
        Ok(())
    }

    /// The endpoint, for messages.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// Ends [`Net::receive`] from any thread, also before it begins.
    pub(crate) fn waker(&mut self) -> Result<Waker, IoError> {
        self.poller.waker(WAKE_TOKEN)
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Tries to get the connection back. False if that is not possible now.
    pub(crate) fn reconnect(&mut self, timeout: Duration) -> Result<bool, ClientError> {
        let Some(endpoint) = &self.endpoint else { return Ok(false) };
        match Connection::connect(endpoint, timeout) {
            Ok(connection) => self.use_connection(connection).map(|()| true).map_err(Into::into),
            Err(_) => Ok(self.switch()),
        }
    }

    pub(crate) fn can_reconnect(&self) -> bool {
        self.endpoint.is_some()
    }

    /// Whether another request should be made now.
    pub(crate) fn has_room(&self) -> bool {
        self.connection.as_ref().is_some_and(|it| it.queued_bytes() < QUEUE_BYTES_MAX)
    }

    /// Queues an Interest. What finds no room is lost; retransmission repairs that.
    pub(crate) fn send(&mut self, request: &Request) {
        self.wire.clear();
        InterestBuilder::new(request.name.view())
            .can_be_prefix(request.can_be_prefix)
            .must_be_fresh(request.must_be_fresh)
            .nonce(self.random.next_nonce())
            .lifetime_ms(INTEREST_LIFETIME_MS)
            .encode(&mut self.wire);
        let wire = std::mem::take(&mut self.wire);
        self.send_wire(&wire);
        self.wire = wire;
    }

    /// Queues an Interest that is there already.
    pub(crate) fn send_wire(&mut self, wire: &[u8]) {
        let Some(connection) = &mut self.connection else { return };
        self.is_asked = true;
        let sent = self.link.send(&LpHeader::default(), wire, 0, |head, packet| {
            if let Err(error) = connection.queue(&[head, packet]) {
                tracing::debug!(%error, "an Interest found no room");
            }
        });
        if let Err(error) = sent {
            tracing::debug!(%error, "an Interest does not fit the link");
        }
    }

    /// Hands queued Interests to the kernel.
    pub(crate) fn flush(&mut self) -> Result<(), ClientError> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        if let Err(error) = connection.flush() {
            return self.lose(Some(error));
        }
        let wants_write = connection.wants_write();
        if wants_write != self.is_write_watched {
            let watch = if wants_write { Watch::READ_WRITE } else { Watch::READ };
            self.poller.modify(connection, TOKEN, watch)?;
            self.is_write_watched = wants_write;
        }
        Ok(())
    }

    /// Waits for packets, at most `timeout`, and hands in one burst of them.
    pub(crate) fn receive(
        &mut self,
        timeout: Duration,
        now_ns: &dyn Fn() -> u64,
        take: &mut dyn FnMut(Incoming<'_>),
    ) -> Result<(), ClientError> {
        let mut events = std::mem::take(&mut self.events);
        let waited = self.poller.wait(&mut events, Some(timeout));
        let is_readable = events.iter().any(|event| event.readable && event.token == TOKEN);
        self.events = events;
        waited?;
        let Some(connection) = self.connection.as_mut().filter(|_| is_readable) else {
            return Ok(());
        };
        let (link, now_ns, heard) = (&mut self.link, now_ns(), &mut self.is_answered);
        let (is_asked, switches) = (&mut self.is_asked, &mut self.switches);
        let status = connection.recv_burst(frame_len, &mut |frame| {
            (*heard, *is_asked) = (true, false);
            match link.receive(frame, now_ns) {
                Ok(Some(received)) => {
                    if received.header.nack.is_none() {
                        *switches = 0;
                    }
                    decode(&received.header, received.packet, take);
                }
                Ok(None) => {}
                Err(reason) => tracing::debug!(?reason, "a frame was dropped"),
            }
        });
        if !self.is_asked {
            self.silent_since_ns = None;
        }
        match status {
            Ok(status) if status.closed => self.lose(None),
            // Later it may be a forwarder that restarts; before the first packet nobody is there.
            Ok(status) if status.unreachable > 0 && !self.is_answered => {
                if self.has_others() && self.switch() {
                    return Ok(());
                }
                Err(ClientError::Unreachable { endpoint: self.label.clone() })
            }
            Ok(_) => Ok(()),
            Err(error) => self.lose(Some(error)),
        }
    }

    /// The connection is gone. An error only if it cannot come back.
    fn lose(&mut self, source: Option<IoError>) -> Result<(), ClientError> {
        if let Some(connection) = self.connection.take() {
            // A descriptor that is closed leaves the poller by itself.
            drop(connection);
        }
        tracing::debug!(endpoint = %self.label, "the connection was lost");
        if self.endpoint.is_some() {
            return Ok(());
        }
        Err(ClientError::Disconnected { endpoint: self.label.clone(), source })
    }
}

/// Why a connection could not be made.
pub(crate) enum ConnectFailed {
    Connect(byname_io::ConnectError),
    Io(IoError),
}

fn link_for(connection: &Connection, random: &mut NonceSource) -> LinkService {
    if connection.is_datagram() {
        LinkService::datagram(DATAGRAM_MTU_BYTES, random.next_u64(), REASSEMBLY)
    } else {
        LinkService::stream()
    }
}

fn frame_len(bytes: &[u8]) -> Result<Option<usize>, FrameError> {
    stream_frame_len(bytes).map_err(|_| FrameError("this is no NDN packet"))
}

fn decode(header: &LpHeader<'_>, packet: &[u8], take: &mut dyn FnMut(Incoming<'_>)) {
    if let Some(reason) = header.nack {
        match Interest::decode(packet) {
            Ok(interest) => take(Incoming::Nack { interest: &interest, reason }),
            Err(error) => tracing::debug!(%error, "a Nack was dropped"),
        }
        return;
    }
    match Data::decode(packet) {
        Ok(data) => {
            take(Incoming::Data { data: &data, is_marked: header.congestion_mark > Some(0) })
        }
        Err(error) => tracing::debug!(%error, "a packet was dropped"),
    }
}

/// Numbers nobody can guess in advance, so that Nonces of two clients do not collide.
struct NonceSource {
    state: std::collections::hash_map::RandomState,
    count: u64,
}

impl NonceSource {
    fn new() -> Self {
        NonceSource { state: std::collections::hash_map::RandomState::new(), count: 0 }
    }

    fn next_u64(&mut self) -> u64 {
        use std::hash::BuildHasher;
        self.count += 1;
        self.state.hash_one(self.count)
    }

    fn next_nonce(&mut self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.next_u64().to_ne_bytes();
        [a, b, c, d]
    }
}
