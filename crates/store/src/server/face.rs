//! The face: what came in and waits, what may go out, and the registration of prefixes.

use byname_io::{Connection, FrameError, Interest, IoError};
use byname_packet::lp::LpPacket;
use byname_packet::{MAX_PACKET_BYTES, Packet, tlv};
use byname_transfer::server::{Arrival, Now, Server};

use super::{RegisterError, Registrar, StoreError};

/// Octets of requests that may wait before reading stops. One burst of reading comes on top.
const WAITING_BYTES_MAX: usize = 256 << 10;
/// Octets of answers that may wait before requests do. One burst of segments comes on top.
const SEND_BYTES_MAX: usize = 1 << 20;
/// Room for any packet with its link header.
const PACKET_ROOM_BYTES: usize = 2 * MAX_PACKET_BYTES;

pub(super) struct Face {
    pub(super) connection: Connection,
    pub(super) is_closed: bool,
    /// Frames received, one after the other, and where the next one starts.
    waiting: Vec<u8>,
    next: usize,
    registrar: Option<Registrar>,
}

fn frame_len(octets: &[u8]) -> Result<Option<usize>, FrameError> {
    match tlv::first_element_len(octets) {
        Ok(len) => Ok(len.map(|len| usize::try_from(len).unwrap_or(usize::MAX))),
        Err(_) => Err(FrameError("the stream is not a sequence of TLV elements")),
    }
}

impl Face {
    pub(super) fn new(connection: Connection, registrar: Option<Registrar>) -> Self {
        Self { connection, is_closed: false, waiting: Vec::new(), next: 0, registrar }
    }

    /// What to watch for: requests only while there is room for them.
    pub(super) fn interest(&self) -> Interest {
        Interest {
            read: self.waiting.len() < WAITING_BYTES_MAX,
            write: self.connection.wants_write(),
        }
    }

    /// Whether something can be done without waiting.
    pub(super) fn is_busy(&self) -> bool {
        let is_registered = self.registrar.as_ref().is_some_and(Registrar::is_done);
        is_registered || self.next < self.waiting.len() && self.has_room()
    }

    pub(super) fn has_room(&self) -> bool {
        self.connection.queued_bytes() + PACKET_ROOM_BYTES <= SEND_BYTES_MAX
    }

    pub(super) fn receive(&mut self) -> Result<(), IoError> {
        if self.waiting.len() >= WAITING_BYTES_MAX {
            return Ok(());
        }
        let waiting = &mut self.waiting;
        let status =
            self.connection.recv_burst(frame_len, &mut |frame| waiting.extend_from_slice(frame))?;
        self.is_closed |= status.closed;
        Ok(())
    }

    /// Hands the next frame to the engine; false if there is none.
    pub(super) fn next_request(
        &mut self,
        engine: &mut Server,
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
        let registrar = self.registrar.as_mut();
        take_frame(&rest[..len], engine, registrar, now).map(|()| true)
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
        registrar.handle_timeout(now)?;
        while let Some(command) = registrar.poll_command(now, &mut random) {
            // A full buffer delays the command by its time-out.
            if self.connection.queue(&[&command]).is_err() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn poll_timeout(&self) -> Option<u64> {
        self.registrar.as_ref().and_then(Registrar::poll_timeout)
    }
}

fn random() -> u64 {
    let mut octets = [0; 8];
    // Eight octets come whole once the kernel's generator is seeded, which start-up waits for.
    let _ = rustix::rand::getrandom(&mut octets, rustix::rand::GetRandomFlags::empty());
    u64::from_be_bytes(octets)
}

fn take_frame(
    frame: &[u8],
    engine: &mut Server,
    registrar: Option<&mut Registrar>,
    now: Now,
) -> Result<(), RegisterError> {
    let Ok(link) = LpPacket::decode(frame) else { return Ok(()) };
    let Some(packet) = link.fragment.filter(|_| link.frag_count == 1) else { return Ok(()) };
    match (Packet::decode(packet), link.header.nack) {
        (Ok(Packet::Interest(interest)), None) => {
            let pit_token = link.header.pit_token;
            let congestion_mark = link.header.congestion_mark;
            let arrival = Arrival { interest: &interest, pit_token, congestion_mark };
            engine.handle_interest(&arrival, now);
            Ok(())
        }
        (Ok(Packet::Interest(interest)), Some(reason)) => {
            registrar.map_or(Ok(()), |registrar| registrar.handle_nack(interest.name, reason))
        }
        (Ok(Packet::Data(data)), _) => {
            registrar.map_or(Ok(()), |registrar| registrar.handle_data(&data))
        }
        (Err(_), _) => Ok(()),
    }
}
