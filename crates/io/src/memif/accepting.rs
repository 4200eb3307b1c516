//! The server's half of a handshake: the client offers regions and rings one by one, each is
//! checked and acknowledged, and CONNECT makes a [`Channel`] of them.
//!
//! Nothing here waits; how many handshakes there may be is the business of [`crate::pending`], how
//! many messages one may have is ours.
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::geteuid;

use super::buffers::Buffers;
use super::channel::{Channel, Ends, farewell};
use super::consumer::Consumer;
use super::control::{self, Received};
use super::error::{MemifError, RegionRefusal, RingRefusal};
use super::kick::{Kick, is_eventfd};
use super::producer::Producer;
use super::region::Region;
use super::ring::{COOKIE, LOG2_RANGE, Ring, Side};
use super::seats::{Seat, Seats};
use super::wake::Wake;
use super::wire::{
    AddRegion, AddRing, Hello, Init, MODE_ETHERNET, Message, RING_TO_SERVER, VERSION,
};
use crate::connection::peer_credentials;
use crate::limits::Limits;
use crate::pending::{self, Progress};

/// Regions of one client. Without zero-copy there is one or two.
const REGIONS_MAX: usize = 16;

/// Bytes that an untrusted peer may have mapped in all: pages we touch may be counted as our
/// memory. Enough for two rings of 4096 slots with buffers of 16 KiB.
const STRANGER_BYTES_MAX: u64 = 160 << 20;

/// Messages of one handshake: INIT, the regions, two rings, CONNECT.
const MESSAGES_MAX: usize = REGIONS_MAX + 4;

/// Messages that are read and forgotten when a client is refused.
const UNREAD_MAX: usize = 64;

/// A connection that is being made.
#[derive(Debug)]
pub(crate) struct Handshake {
    control: OwnedFd,
    limits: Limits,
    seat: Seat,
    is_trusted: bool,
    messages: usize,
    has_begun: bool,
    regions: Vec<Arc<Region>>,
    mapped_bytes: u64,
    to_server: Option<(AddRing, OwnedFd)>,
    to_client: Option<(AddRing, OwnedFd)>,
}

impl Handshake {
    /// Greets a client that has just connected.
    pub(crate) fn begin(
        control: OwnedFd,
        limits: Limits,
        seats: &Seats,
    ) -> Result<Self, MemifError> {
        let hello = Hello {
            version_min: VERSION,
            version_max: VERSION,
            region_index_max: REGIONS_MAX as u16 - 1,
            to_client_index_max: 0,
            to_server_index_max: 0,
            ring_log2_max: seats.ring_log2_max(),
            is_byname: true,
        };
        control::send(&control, &Message::Hello(hello), None)?;
        let is_trusted = is_trusted(&control);
        Ok(Handshake {
            control,
            limits,
            seat: seats.take(),
            is_trusted,
            messages: 0,
            has_begun: false,
            regions: Vec::new(),
            mapped_bytes: 0,
            to_server: None,
            to_client: None,
        })
    }

    /// Handles what has come; true when the client has asked to be connected.
    fn take_messages(&mut self) -> Result<bool, MemifError> {
        while let Some(received) = control::receive(&self.control)? {
            self.messages += 1;
            if self.messages > MESSAGES_MAX {
                return Err(MemifError::TooManyMessages { max: MESSAGES_MAX });
            }
            if self.handle(received)? {
                return Ok(true);
            }
            control::send(&self.control, &Message::Ack, None)?;
        }
        Ok(false)
    }

    fn handle(&mut self, mut received: Received) -> Result<bool, MemifError> {
        let message = received.message.clone();
        match message {
            Message::Init(init) if !self.has_begun => {
                received.no_descriptor()?;
                self.on_init(init)?;
            }
            Message::AddRegion(region) if self.has_begun => {
                let memory = received.descriptor()?;
                self.on_region(region, &memory)?;
            }
            Message::AddRing(ring) if self.has_begun => {
                let eventfd = received.descriptor()?;
                self.on_ring(ring, eventfd)?;
            }
            Message::Connect if self.has_begun => {
                received.no_descriptor()?;
                return Ok(true);
            }
            Message::Disconnect { reason } => return Err(MemifError::Refused { reason }),
            other => return Err(MemifError::UnexpectedMessage { message: other.label() }),
        }
        Ok(false)
    }

    /// Any number of clients may give the same id: connections are told apart by their sockets.
    fn on_init(&mut self, init: Init) -> Result<(), MemifError> {
        if init.version != VERSION {
            return Err(MemifError::Version { min: init.version, max: init.version });
        }
        if init.mode != MODE_ETHERNET {
            return Err(MemifError::Mode { mode: init.mode });
        }
        self.has_begun = true;
        Ok(())
    }

    fn on_region(&mut self, offer: AddRegion, memory: &OwnedFd) -> Result<(), MemifError> {
        let index = offer.index;
        if usize::from(index) != self.regions.len() || self.regions.len() >= REGIONS_MAX {
            return Err(MemifError::Region { index, reason: RegionRefusal::Index });
        }
        let region = Region::of_peer(memory, index, offer.bytes, self.is_trusted)?;
        self.mapped_bytes += offer.bytes;
        if !self.is_trusted && self.mapped_bytes > STRANGER_BYTES_MAX {
            return Err(MemifError::Region { index, reason: RegionRefusal::TooMuch });
        }
        self.regions.push(Arc::new(region));
        Ok(())
    }

    fn on_ring(&mut self, offer: AddRing, eventfd: OwnedFd) -> Result<(), MemifError> {
        let refused = |reason| Err(MemifError::Ring { index: offer.index, reason });
        if offer.index != 0 {
            return refused(RingRefusal::Index);
        }
        if offer.private_header_bytes != 0 {
            return refused(RingRefusal::PrivateHeader);
        }
        if !LOG2_RANGE.contains(&offer.ring_log2) {
            return refused(RingRefusal::Size { log2: offer.ring_log2 });
        }
        let is_to_server = offer.flags & RING_TO_SERVER != 0;
        let ring = if is_to_server { &mut self.to_server } else { &mut self.to_client };
        if ring.is_some() {
            return refused(RingRefusal::Twice);
        }
        if !is_eventfd(&eventfd) {
            return refused(RingRefusal::NotAnEventfd);
        }
        *ring = Some((offer, eventfd));
        Ok(())
    }

    /// Makes the connection, or tells the client why there is none.
    fn finish(mut self) -> Option<Channel> {
        let ends = self.ends().and_then(|ends| {
            control::send(&self.control, &Message::Connected, None)?;
            Ok(ends)
        });
        match ends {
            Ok(ends) => Some(Channel::new(self.control, ends, self.limits).seated(self.seat)),
            Err(error) => {
                self.refuse(&error);
                None
            }
        }
    }

    fn ends(&mut self) -> Result<Ends, MemifError> {
        let limits = self.limits;
        let (Some(to_server), Some(to_client)) = (self.to_server.take(), self.to_client.take())
        else {
            return Err(MemifError::MissingRing);
        };
        let regions: Arc<[Arc<Region>]> = std::mem::take(&mut self.regions).into();
        let receiving = open_ring(&regions, to_server.0)?;
        let sending = open_ring(&regions, to_client.0)?;
        // A client that has not yet offered buffers leaves this open; it is but a hint.
        let offered = sending.descriptor(sending.own_index()).bytes as usize;
        let frame_bytes_max =
            if offered == 0 { limits.frame_bytes_max } else { offered.min(limits.frame_bytes_max) };
        Ok(Ends {
            consumer: Consumer::new(
                receiving,
                Buffers::Peer(Arc::clone(&regions)),
                limits.frame_bytes_max,
            ),
            producer: Producer::new(sending, Buffers::Peer(regions)),
            kick: Kick::new(to_client.1, self.is_trusted)?,
            wake: Wake::new(&self.control, to_server.1)?,
            is_in_place: self.is_trusted,
            frame_bytes_max,
        })
    }

    /// Tells the client why there is no connection.
    fn refuse(self, error: &MemifError) {
        // What is left unread when a socket is closed makes the kernel report an error to the
        // other side before our words.
        for _ in 0..UNREAD_MAX {
            if matches!(control::receive(&self.control), Ok(None) | Err(MemifError::Gone)) {
                break;
            }
        }
        let _ = control::send(&self.control, &farewell(error.to_string()), None);
    }
}

impl pending::Handshake for Handshake {
    type Connection = Channel;

    /// It is a dozen messages between processes of one machine.
    const TIMEOUT: Duration = Duration::from_secs(2);

    fn socket(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    fn socket_of(channel: &Channel) -> BorrowedFd<'_> {
        channel.control()
    }

    fn advance(mut self) -> Progress<Self> {
        match self.take_messages() {
            Ok(false) => Progress::Waits(self),
            Ok(true) => self.finish().map_or(Progress::Failed, Progress::Done),
            Err(error) => {
                self.refuse(&error);
                Progress::Failed
            }
        }
    }

    fn give_up(self) {
        self.refuse(&MemifError::TimedOut);
    }
}

/// The server's half for a caller that waits.
pub(super) fn accept(
    control: OwnedFd,
    limits: Limits,
    timeout: Duration,
) -> Result<Channel, MemifError> {
    let deadline = Instant::now() + timeout;
    let mut handshake = Handshake::begin(control, limits, &Seats::default())?;
    loop {
        control::wait(&handshake.control, deadline)?;
        handshake = match pending::Handshake::advance(handshake) {
            Progress::Waits(handshake) => handshake,
            Progress::Done(channel) => return Ok(channel),
            Progress::Failed => return Err(MemifError::Gone),
        };
    }
}

fn open_ring(regions: &[Arc<Region>], offer: AddRing) -> Result<Ring, MemifError> {
    let refused = |reason| MemifError::Ring { index: offer.index, reason };
    let region = regions.get(usize::from(offer.region)).ok_or(refused(RingRefusal::Place))?;
    let ring =
        Ring::new(region, offer.offset as usize, offer.ring_log2, Side::Server).map_err(refused)?;
    let found = ring.cookie();
    if found != COOKIE {
        return Err(refused(RingRefusal::Cookie { found }));
    }
    Ok(ring)
}

/// True for processes of our own user and of root: they can do us any harm in simpler ways.
pub(super) fn is_trusted(control: &OwnedFd) -> bool {
    let peer = peer_credentials(control);
    peer.is_some_and(|peer| peer.uid == 0 || peer.uid == geteuid().as_raw())
}
