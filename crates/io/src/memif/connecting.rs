//! The client's half of a handshake: memory is made, offered piece by piece, and used once the
//! server says that it is connected. Blocks until then, for a limited time.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use super::accepting::is_trusted;
use super::buffers::{Buffers, Pool};
use super::channel::{Channel, Ends};
use super::consumer::Consumer;
use super::control;
use super::error::MemifError;
use super::kick::Kick;
use super::producer::Producer;
use super::region::Region;
use super::ring::{LOG2_RANGE, Ring, Side, ring_bytes};
use super::wake::Wake;
use super::wire::{
    AddRegion, AddRing, Hello, Init, MODE_ETHERNET, Message, RING_TO_SERVER, VERSION,
};
use crate::limits::Limits;

/// 256 slots: the buffers of both directions stay in a second-level cache.
const RING_LOG2: u8 = 8;

/// Rings and buffers begin at a cache line of their own.
const LINE_BYTES: usize = 64;

/// Buffers begin at a page of their own.
const PAGE_BYTES: usize = 4096;

/// Smaller buffers than this are of no use to anybody.
const BUFFER_BYTES_MIN: usize = 2048;

/// Where the parts of our only region are.
#[derive(Debug, Clone, Copy)]
struct Layout {
    ring_log2: u8,
    slots: u16,
    buffer_bytes: usize,
    to_client_at: usize,
    buffers_at: usize,
    bytes: usize,
}

impl Layout {
    fn new(ring_log2: u8, limits: Limits) -> Self {
        let slots = 1u16 << ring_log2;
        let buffer_bytes =
            limits.frame_bytes_max.max(BUFFER_BYTES_MIN).next_multiple_of(LINE_BYTES);
        let to_client_at = ring_bytes(slots).next_multiple_of(LINE_BYTES);
        let rings_end = to_client_at + ring_bytes(slots);
        let buffers_at = rings_end.next_multiple_of(PAGE_BYTES);
        let bytes = buffers_at + 2 * usize::from(slots) * buffer_bytes;
        Layout { ring_log2, slots, buffer_bytes, to_client_at, buffers_at, bytes }
    }

    fn buffers(&self, region: &Arc<Region>, to_server: bool) -> Buffers {
        let skipped = if to_server { 0 } else { usize::from(self.slots) * self.buffer_bytes };
        let offset = self.buffers_at + skipped;
        Buffers::Own(Pool::new(region, offset, self.buffer_bytes, self.slots))
    }

    fn ring(&self, region: &Arc<Region>, offset: usize) -> Ring {
        let ring = Ring::new(region, offset, self.ring_log2, Side::Client)
            .expect("the layout has room for both rings");
        ring.initialise();
        ring
    }
}

/// Speaks with a server, one message at a time, until a moment.
struct Dialogue {
    control: OwnedFd,
    deadline: Instant,
}

impl Dialogue {
    fn receive(&self) -> Result<Message, MemifError> {
        loop {
            if let Some(received) = control::receive(&self.control)? {
                received.no_descriptor()?;
                return match received.message {
                    Message::Disconnect { reason } => Err(MemifError::Refused { reason }),
                    message => Ok(message),
                };
            }
            self.wait()?;
        }
    }

    fn wait(&self) -> Result<(), MemifError> {
        control::wait(&self.control, self.deadline)
    }

    /// Sends a message and takes the answer, which must be `wanted`.
    fn ask(
        &self,
        message: &Message,
        descriptor: Option<&OwnedFd>,
        wanted: &Message,
    ) -> Result<(), MemifError> {
        control::send(&self.control, message, descriptor.map(AsFd::as_fd))?;
        let answer = self.receive()?;
        if answer == *wanted {
            return Ok(());
        }
        Err(MemifError::UnexpectedMessage { message: answer.label() })
    }

    fn hello(&self) -> Result<Hello, MemifError> {
        match self.receive()? {
            Message::Hello(hello)
                if !(hello.version_min..=hello.version_max).contains(&VERSION) =>
            {
                Err(MemifError::Version { min: hello.version_min, max: hello.version_max })
            }
            Message::Hello(hello) => Ok(hello),
            other => Err(MemifError::UnexpectedMessage { message: other.label() }),
        }
    }
}

/// Makes a connection over a socket that is connected to a server.
pub(super) fn connect(
    control: OwnedFd,
    id: u32,
    timeout: Duration,
    limits: Limits,
) -> Result<Channel, MemifError> {
    let dialogue = Dialogue { control, deadline: Instant::now() + timeout };
    let hello = dialogue.hello()?;
    let ring_log2 = hello.ring_log2_max.min(RING_LOG2).max(*LOG2_RANGE.start());
    let layout = Layout::new(ring_log2, limits);
    let (region, memory) = Region::create(layout.bytes)?;
    let region = Arc::new(region);
    let (to_server, to_client) =
        (layout.ring(&region, 0), layout.ring(&region, layout.to_client_at));
    let (wakes_server, wakes_us) = (new_eventfd()?, new_eventfd()?);
    let mut consumer =
        Consumer::new(to_client, layout.buffers(&region, false), limits.frame_bytes_max);
    consumer.offer();
    if hello.is_byname {
        consumer.offer_what_is_used();
    }

    let init = Init { version: VERSION, id, mode: MODE_ETHERNET };
    dialogue.ask(&Message::Init(init), None, &Message::Ack)?;
    let offer = AddRegion { index: 0, bytes: layout.bytes as u64 };
    dialogue.ask(&Message::AddRegion(offer), Some(&memory), &Message::Ack)?;
    for (flags, offset, fd) in
        [(RING_TO_SERVER, 0, &wakes_server), (0, layout.to_client_at, &wakes_us)]
    {
        let offset = u32::try_from(offset).expect("both rings are within the first megabyte");
        let offer =
            AddRing { flags, index: 0, region: 0, offset, ring_log2, private_header_bytes: 0 };
        dialogue.ask(&Message::AddRing(offer), Some(fd), &Message::Ack)?;
    }
    dialogue.ask(&Message::Connect, None, &Message::Connected)?;
    // DPDK sets all indices to zero when it connects.
    consumer.offer();
    let is_in_place = is_trusted(&dialogue.control);
    if is_in_place {
        // SAFETY: the buffers are ours, and the server is of our own user or root.
        unsafe { consumer.hand_out_in_place() };
    }
    let ends = Ends {
        consumer,
        producer: Producer::new(to_server, layout.buffers(&region, true)),
        kick: Kick::new(wakes_server, is_in_place)?,
        wake: Wake::new(&dialogue.control, wakes_us)?,
        is_in_place,
        frame_bytes_max: layout.buffer_bytes.min(limits.frame_bytes_max),
    };
    Ok(Channel::new(dialogue.control, ends, limits))
}

fn new_eventfd() -> Result<OwnedFd, MemifError> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(MemifError::failed("eventfd"))
}
