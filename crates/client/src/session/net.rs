//! The one connection to a forwarder or server: frames out and in. Who is connected to, and when
//! another one is, decides the [`machine`](crate::engine::machine).

use std::sync::Arc;
use std::time::Duration;

use byname_face::frame_len;
use byname_io::{Connection, Endpoint, Interest as Watch, IoError, Poller, Token, Waker};

use crate::engine::machine::{Channel, Outlet};
use crate::engine::source_names::SourceNames;
use crate::error::ClientError;

const TOKEN: Token = Token(0);
/// Another thread has something to say; see [`Net::waker`].
const WAKE_TOKEN: Token = Token(1);
/// Unsent bytes above which no further request is made.
const QUEUE_BYTES_MAX: usize = 256 << 10;

/// State of the connection after a wait.
pub(crate) enum Status {
    Open,
    /// Nobody listens at the other end.
    Unreachable,
    Closed(Option<IoError>),
}

/// The connection. Its endpoint is kept for reconnecting, unless it was handed in ready-made.
pub(crate) struct Net {
    connection: Option<Connection>,
    /// Endpoints that may be asked, by number.
    endpoints: Vec<Endpoint>,
    label: String,
    /// For who looks on while this is in use.
    source_names: Arc<SourceNames>,
    poller: Poller,
    events: Vec<byname_io::Event>,
    is_write_watched: bool,
}

impl Net {
    /// Takes a connection that exists already: to the first of the endpoints, or if there are
    /// none, one that cannot come back.
    pub(crate) fn new(connection: Connection, endpoints: Vec<Endpoint>) -> Result<Self, IoError> {
        let poller = Poller::new()?;
        poller.add(&connection, TOKEN, Watch::READ)?;
        let label = match endpoints.first() {
            Some(endpoint) => endpoint.to_string(),
            None => connection.remote_uri().to_owned(),
        };
        let names = endpoints.iter().map(Endpoint::to_string).collect();
        Ok(Net {
            source_names: Arc::new(SourceNames::new(names, &label)),
            label,
            connection: Some(connection),
            endpoints,
            poller,
            events: Vec::new(),
            is_write_watched: false,
        })
    }

    /// Goes over to another endpoint if it can be connected to, or comes back to this one.
    pub(crate) fn connect(&mut self, source: usize, timeout: Duration) -> Option<Channel> {
        let endpoint = self.endpoints.get(source)?;
        let connection = Connection::connect(endpoint, timeout).ok()?;
        self.poller.add(&connection, TOKEN, Watch::READ).ok()?;
        let label = endpoint.to_string();
        if label != self.label {
            tracing::info!(from = %self.label, to = %label, "another source is asked");
            self.label = label;
        }
        self.source_names.set_current(source);
        self.is_write_watched = false;
        let channel = channel(&connection);
        self.connection = Some(connection);
        Some(channel)
    }

    /// Kind of frames that the connection delivers.
    pub(crate) fn channel(&self) -> Channel {
        self.connection.as_ref().map_or(Channel::Stream, channel)
    }

    /// The endpoint, for messages.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// All that may be asked, for messages.
    pub(crate) fn source_list(&self) -> String {
        match &self.endpoints[..] {
            [] => self.label.clone(),
            several => several.iter().map(Endpoint::to_string).collect::<Vec<_>>().join(", "),
        }
    }

    /// The endpoints by number, and the one in use at any moment, for whoever looks on.
    pub(crate) fn source_names(&self) -> Arc<SourceNames> {
        Arc::clone(&self.source_names)
    }

    /// Who may be asked.
    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Ends [`Net::receive`] from any thread, also before it begins.
    pub(crate) fn waker(&mut self) -> Result<Waker, IoError> {
        self.poller.waker(WAKE_TOKEN)
    }

    /// True if another request should be made now.
    pub(crate) fn is_roomy(&self) -> bool {
        self.connection.as_ref().is_some_and(|it| it.queued_bytes() < QUEUE_BYTES_MAX)
    }

    /// False from a loss to the next connection.
    pub(crate) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Hands queued frames to the kernel; the inner error is that of the connection.
    pub(crate) fn flush(&mut self) -> Result<Result<(), IoError>, ClientError> {
        let Some(connection) = &mut self.connection else { return Ok(Ok(())) };
        if let Err(error) = connection.flush() {
            return Ok(Err(error));
        }
        let wants_write = connection.wants_write();
        if wants_write != self.is_write_watched {
            let watch = if wants_write { Watch::READ_WRITE } else { Watch::READ };
            self.poller.modify(connection, TOKEN, watch)?;
            self.is_write_watched = wants_write;
        }
        Ok(Ok(()))
    }

    /// Waits for frames, at most `timeout`, and hands in one burst of them.
    pub(crate) fn receive(
        &mut self,
        timeout: Duration,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<Status, ClientError> {
        let mut events = std::mem::take(&mut self.events);
        let waited = self.poller.wait(&mut events, Some(timeout));
        let is_readable = events.iter().any(|event| event.readable && event.token == TOKEN);
        self.events = events;
        waited?;
        let Some(connection) = self.connection.as_mut().filter(|_| is_readable) else {
            return Ok(Status::Open);
        };
        Ok(match connection.recv_burst(frame_len, take) {
            Ok(status) if status.closed => Status::Closed(None),
            Ok(status) if status.unreachable > 0 => Status::Unreachable,
            Ok(_) => Status::Open,
            Err(error) => Status::Closed(Some(error)),
        })
    }

    /// The connection is gone.
    pub(crate) fn lose(&mut self) {
        // A descriptor that is closed leaves the poller by itself.
        self.connection = None;
        tracing::debug!(endpoint = %self.label, "the connection was lost");
    }

    /// The error for a connection that does not come back.
    pub(crate) fn disconnected(&self, source: Option<IoError>) -> ClientError {
        ClientError::Disconnected { endpoint: self.source_list(), source }
    }

    /// The error if nobody listens.
    pub(crate) fn unreachable(&self) -> ClientError {
        ClientError::Unreachable { endpoint: self.source_list() }
    }
}

impl Outlet for Net {
    fn has_room(&self) -> bool {
        self.is_roomy()
    }

    fn queue(&mut self, parts: &[&[u8]]) {
        let Some(connection) = &mut self.connection else { return };
        if let Err(error) = connection.queue(parts) {
            tracing::debug!(%error, "an Interest found no room");
        }
    }
}

fn channel(connection: &Connection) -> Channel {
    if connection.is_datagram() { Channel::Datagram } else { Channel::Stream }
}
