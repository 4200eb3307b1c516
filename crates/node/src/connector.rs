//! Resolving names and connecting, which may block, on short-lived helper threads.
//!
//! Results come back through a channel, and a waker ends the node's wait. Invariant: at most
//! [`ATTEMPTS_MAX`] threads at a time.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use byname_forwarder::{FaceId, RequestId};
use byname_io::{ConnectError, Connection, Endpoint, Limits, Waker};

/// Attempts in flight at a time. Those that find no room are tried again later, or fail.
const ATTEMPTS_MAX: usize = 32;

/// Purpose of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// A lasting face that has none at present.
    Face(FaceId),
    /// A face that was asked for and is not made yet.
    Request(RequestId),
}

/// Result of an attempt.
#[derive(Debug)]
pub(crate) enum Reached {
    /// A link of its own.
    Connection(Box<Connection>),
    /// The address of a peer that is to be reached over a shared UDP socket if there is one.
    Address(SocketAddr),
}

/// Outcome of an attempt.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) purpose: Purpose,
    pub(crate) endpoint: Endpoint,
    pub(crate) result: Result<Reached, ConnectError>,
}

/// Starts attempts and collects their results.
pub(crate) struct Connector {
    waker: Waker,
    sender: Sender<Attempt>,
    receiver: Receiver<Attempt>,
    running: usize,
}

impl Connector {
    pub(crate) fn new(waker: Waker) -> Self {
        let (sender, receiver) = channel();
        Self { waker, sender, receiver, running: 0 }
    }

    /// Starts an attempt; false when there are too many, or the system gives no thread.
    pub(crate) fn start(
        &mut self,
        purpose: Purpose,
        endpoint: Endpoint,
        timeout_ns: u64,
        limits: Limits,
    ) -> bool {
        // An address that needs no name server is there at once.
        if let Some(address) = literal_peer(&endpoint) {
            let attempt = Attempt { purpose, endpoint, result: Ok(Reached::Address(address)) };
            self.running += 1;
            self.waker.wake();
            return self.sender.send(attempt).is_ok();
        }
        if self.running >= ATTEMPTS_MAX {
            return false;
        }
        let (sender, waker) = (self.sender.clone(), self.waker.clone());
        let attempt = move || {
            let result = reach(&endpoint, Duration::from_nanos(timeout_ns), limits);
            // When the node is gone, so is the need for the connection.
            if sender.send(Attempt { purpose, endpoint, result }).is_ok() {
                waker.wake();
            }
        };
        let thread = std::thread::Builder::new().name("byname-connect".into()).spawn(attempt);
        self.running += usize::from(thread.is_ok());
        thread.is_ok()
    }

    /// An attempt that has ended.
    pub(crate) fn poll(&mut self) -> Option<Attempt> {
        let attempt = self.receiver.try_recv().ok()?;
        self.running -= 1;
        Some(attempt)
    }
}

fn reach(endpoint: &Endpoint, timeout: Duration, limits: Limits) -> Result<Reached, ConnectError> {
    if let Endpoint::Udp { .. } = endpoint {
        let found = endpoint.resolve()?;
        let first = found.first().expect("resolving yields at least one address");
        return Ok(Reached::Address(*first));
    }
    Connection::connect_with(endpoint, timeout, limits)
        .map(|connection| Reached::Connection(Box::new(connection)))
}

/// The address of a UDP peer whose host is a number.
fn literal_peer(endpoint: &Endpoint) -> Option<SocketAddr> {
    match endpoint {
        Endpoint::Udp { host, port } => Some(SocketAddr::new(host.address()?, *port)),
        _ => None,
    }
}
