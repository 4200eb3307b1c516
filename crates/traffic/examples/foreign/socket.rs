//! A Unix or TCP socket, used packet by packet.

use std::collections::VecDeque;
use std::error::Error;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use byname_face::frame_len;
use byname_io::{Connection, Endpoint, Interest, Poller, Token};
use byname_packet::Name;
use byname_packet::lp::{LpHeader, LpPacket};
use byname_traffic::{Routes, Stop};
use rustix::io::Errno;

/// Room for one packet of any length: what ndn-cxx reads at a time.
const READ_BYTES: usize = 8800;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// See the module.
pub(crate) struct Socket {
    fd: OwnedFd,
    poller: Poller,
    is_watching_write: bool,
    /// What has come and was not yet handed out.
    received: Vec<u8>,
    /// Packets that the kernel has not taken; each is sent by itself.
    waiting: VecDeque<Vec<u8>>,
}

impl Socket {
    /// Connects; with a prefix, registers it for this connection.
    pub(crate) fn connect(uri: &str, prefix: Option<Name>) -> Result<Self, Box<dyn Error>> {
        let endpoint: Endpoint = uri.parse()?;
        let connection = Connection::connect(&endpoint, CONNECT_TIMEOUT)?;
        // The connection ends with its last descriptor, and this one stays.
        let fd = connection.as_fd().try_clone_to_owned()?;
        if let Some(prefix) = prefix {
            let routes = Routes { prefixes: vec![prefix], spread: None, face: None };
            byname_traffic::register(connection, routes, &Stop::new())?;
        }
        let poller = Poller::new()?;
        poller.add(&fd, Token(0), Interest::READ)?;
        Ok(Self {
            fd,
            poller,
            is_watching_write: false,
            received: Vec::with_capacity(2 * READ_BYTES),
            waiting: VecDeque::new(),
        })
    }

    /// Sends one packet with a call of its own, now or when there is room.
    pub(crate) fn send(&mut self, packet: &[u8]) -> Result<(), Box<dyn Error>> {
        if !self.waiting.is_empty() || !self.write(packet)? {
            self.waiting.push_back(packet.to_vec());
        }
        Ok(())
    }

    /// False if the kernel had no room for any of it.
    fn write(&self, packet: &[u8]) -> Result<bool, Box<dyn Error>> {
        let mut rest = packet;
        while !rest.is_empty() {
            match rustix::io::write(&self.fd, rest) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::AGAIN) if rest.len() == packet.len() => return Ok(false),
                // A packet once begun has to be ended.
                Err(Errno::AGAIN | Errno::INTR) => std::thread::yield_now(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Takes one read's packets, waiting for them up to `timeout_ms`; false at the end.
    pub(crate) fn receive(
        &mut self,
        timeout_ms: u64,
        mut take: impl FnMut(&mut Self, &LpHeader<'_>, &[u8]) -> Result<(), Box<dyn Error>>,
    ) -> Result<bool, Box<dyn Error>> {
        self.send_waiting()?;
        let mut space = [0; READ_BYTES];
        let room = READ_BYTES.saturating_sub(self.received.len()).max(1);
        let count = match rustix::io::read(&self.fd, &mut space[..room]) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(Errno::AGAIN) => {
                self.wait(timeout_ms)?;
                return Ok(true);
            }
            Err(Errno::INTR) => return Ok(true),
            Err(error) if std::io::Error::from(error).kind() == ErrorKind::ConnectionReset => {
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        self.received.extend_from_slice(&space[..count]);
        let received = std::mem::take(&mut self.received);
        let mut rest = received.as_slice();
        while let Some(length) = frame_len(rest)?.filter(|length| *length <= rest.len()) {
            let packet = LpPacket::decode(&rest[..length])?;
            if let Some(fragment) = packet.fragment {
                take(self, &packet.header, fragment)?;
            }
            rest = &rest[length..];
        }
        let left = rest.len();
        self.received = received;
        self.received.drain(..self.received.len() - left);
        Ok(true)
    }

    fn send_waiting(&mut self) -> Result<(), Box<dyn Error>> {
        while let Some(packet) = self.waiting.front() {
            if !self.write(packet)? {
                break;
            }
            self.waiting.pop_front();
        }
        Ok(())
    }

    fn wait(&mut self, timeout_ms: u64) -> Result<(), Box<dyn Error>> {
        let waits = !self.waiting.is_empty();
        if waits != self.is_watching_write {
            let interest = if waits { Interest::READ_WRITE } else { Interest::READ };
            self.poller.modify(&self.fd, Token(0), interest)?;
            self.is_watching_write = waits;
        }
        Ok(self.poller.wait(&mut Vec::new(), Some(Duration::from_millis(timeout_ms)))?)
    }
}
