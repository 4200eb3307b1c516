//! A face with a poller and a precise timer.

use std::os::fd::OwnedFd;
use std::time::Duration;

use byname_face::Face;
use byname_io::{Connection, Event, Interest as Watch, Poller, Token};
use byname_link::ReassemblyLimits;
use byname_packet::lp::LpHeader;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::error::TrafficError;
use crate::producer::Reply;

const FACE: Token = Token(0);
const TIMER: Token = Token(1);
/// Octets queued above which nothing more is added before some of it has left.
const QUEUE_BYTES_MAX: usize = 1 << 20;
/// A whole window of large packets may arrive in fragments.
const REASSEMBLY: ReassemblyLimits = ReassemblyLimits {
    messages_max: 256,
    bytes_max: 4 << 20,
    fragments_max: 400,
    lifetime_ns: 500_000_000,
};
/// Waits longer than this need no timer: the poller counts in milliseconds.
const PRECISE_NS: u64 = 20_000_000;

pub(super) struct Port {
    face: Face,
    poller: Poller,
    events: Vec<Event>,
    timer: OwnedFd,
    watch: Watch,
    watched: Watch,
    scratch: Vec<u8>,
}

impl Port {
    pub(super) fn new(connection: Connection) -> Result<Self, TrafficError> {
        let poller = Poller::new()?;
        poller.add(&connection, FACE, Watch::READ)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(timer_failed)?;
        poller.add(&timer, TIMER, Watch::READ)?;
        Ok(Self {
            face: Face::new(connection, REASSEMBLY),
            poller,
            events: Vec::new(),
            timer,
            watch: Watch::READ,
            watched: Watch::READ,
            scratch: Vec::new(),
        })
    }

    /// The face, to register over.
    pub(super) fn face(&mut self) -> &mut Face {
        &mut self.face
    }

    /// True if there is room for another burst.
    pub(super) fn has_room(&self) -> bool {
        self.face.connection().queued_bytes() < QUEUE_BYTES_MAX
    }

    /// Lets the port read from now on, or not.
    pub(super) fn reads(&mut self, on: bool) {
        self.watch.read = on;
    }

    /// Queues a frame that fits every link. Room was looked for before, so one that finds none
    /// anyway is as good as lost on the way.
    #[inline]
    pub(super) fn queue_frame(&mut self, frame: &[u8]) {
        let _ = self.face.connection_mut().queue(&[frame]);
    }

    /// Queues an answer, written where it is sent from; false if there is no room for it.
    pub(super) fn queue_reply(&mut self, reply: &Reply<'_>, now_ns: u64) -> bool {
        let len = reply.frame_len();
        if self.face.mtu_bytes().is_some_and(|mtu_bytes| len > mtu_bytes) {
            self.queue_fragments(reply, now_ns);
            return true;
        }
        let mut draft = self.face.connection_mut().draft();
        let drafted = draft.frame(len, |frame| {
            reply.write(frame);
            true
        });
        let is_drafted = drafted.is_ok();
        draft.commit();
        is_drafted
    }

    /// An answer that fits no datagram, whole or not at all: the asker notices what is missing.
    fn queue_fragments(&mut self, reply: &Reply<'_>, now_ns: u64) {
        self.scratch.resize(reply.frame_len(), 0);
        reply.write(&mut self.scratch);
        let packet = &self.scratch[reply.packet_at()..];
        let _ = self.face.send(&reply.header(), packet, now_ns);
    }

    pub(super) fn flush(&mut self) -> Result<(), TrafficError> {
        Ok(self.face.flush()?)
    }

    /// Waits until there is something to read, room to write, or `deadline_ns`.
    pub(super) fn wait(&mut self, deadline_ns: u64, now_ns: u64) -> Result<(), TrafficError> {
        self.watch.write = self.face.connection().wants_write();
        if self.watch != self.watched {
            self.poller.modify(self.face.connection(), FACE, self.watch)?;
            self.watched = self.watch;
        }
        let left_ns = deadline_ns.saturating_sub(now_ns);
        if left_ns > 0 && left_ns < PRECISE_NS {
            self.set_timer(left_ns)?;
        }
        self.poller.wait(&mut self.events, Some(Duration::from_nanos(left_ns)))?;
        if self.events.iter().any(|event| event.token == TIMER) {
            let mut expirations = [0; 8];
            let _ = rustix::io::read(&self.timer, &mut expirations);
        }
        if self.events.iter().any(|event| event.token == FACE && event.writable) {
            self.flush()?;
        }
        Ok(())
    }

    fn set_timer(&self, left_ns: u64) -> Result<(), TrafficError> {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Below PRECISE_NS, so it fits.
        let it_value = Timespec { tv_sec: 0, tv_nsec: left_ns as i64 };
        let setting = Itimerspec { it_interval: zero, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting)
            .map_err(timer_failed)
            .map(|_| ())
    }

    /// Hands out what has come; false when nothing more will.
    pub(super) fn receive(
        &mut self,
        now_ns: u64,
        mut take: impl FnMut(&LpHeader<'_>, &[u8]),
    ) -> Result<bool, TrafficError> {
        if !self.events.iter().any(|event| event.token == FACE && event.readable) {
            return Ok(true);
        }
        let status =
            self.face.receive(now_ns, |received| take(&received.header, received.packet))?;
        Ok(!status.closed)
    }
}

fn timer_failed(errno: rustix::io::Errno) -> TrafficError {
    TrafficError::Timer(errno.into())
}
