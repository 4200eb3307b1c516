//! Events of a memif connection in one descriptor, and waking of the peer.
//!
//! The epoll instance holds the control socket, the eventfd of the ring we receive from, a timer
//! and an eventfd of our own. The ring's is edge-triggered and never read: it may be a peer's, who
//! can make reading block, and an edge is all we need. The timer runs only while frames wait for
//! room in a ring, of which memif tells nobody. Our own eventfd is always readable, and watched
//! while we have left frames in the ring we receive from: a timer that is due at once would cost
//! an interrupt.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::error::{MemifError, RingRefusal};

const CONTROL: u64 = 0;
const RING: u64 = 1;
const TIMER: u64 = 2;
const REST: u64 = 3;

#[derive(Debug)]
pub(super) struct Wake {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// Delay that the timer is armed with.
    delay: Option<Duration>,
    rest: OwnedFd,
    is_rest_watched: bool,
    /// Held, so that it stays in the set.
    _ring: OwnedFd,
}

/// Events since the last poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Seen {
    pub(super) control: bool,
    pub(super) timer: bool,
}

impl Wake {
    pub(super) fn new(control: &OwnedFd, ring: OwnedFd) -> Result<Self, MemifError> {
        let failed = MemifError::failed;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(failed("epoll_create"))?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, flags).map_err(failed("timerfd_create"))?;
        let rest = eventfd(1, EventfdFlags::CLOEXEC).map_err(failed("eventfd"))?;
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(
            &epoll,
            control,
            EventData::new_u64(CONTROL),
            EventFlags::IN | EventFlags::RDHUP,
        )
        .map_err(failed("epoll_ctl(ADD)"))?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), edge)
            .map_err(failed("epoll_ctl(ADD)"))?;
        epoll::add(&epoll, &rest, EventData::new_u64(REST), EventFlags::empty())
            .map_err(failed("epoll_ctl(ADD)"))?;
        match epoll::add(&epoll, &ring, EventData::new_u64(RING), edge) {
            Ok(()) => {}
            // A regular file, or this very epoll instance.
            Err(Errno::PERM | Errno::INVAL | Errno::LOOP) => {
                return Err(MemifError::Ring { index: 0, reason: RingRefusal::NotAnEventfd });
            }
            Err(errno) => return Err(failed("epoll_ctl(ADD)")(errno)),
        }
        Ok(Wake { epoll, timer, delay: None, rest, is_rest_watched: false, _ring: ring })
    }

    /// Takes note of what has happened; the descriptor is quiet afterwards, except for a control
    /// message that is yet to be read.
    pub(super) fn look(&mut self) -> Result<Seen, MemifError> {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; 4];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let events = match epoll::wait(&self.epoll, &mut events[..], Some(&now)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(Seen::default()),
            Err(errno) => return Err(MemifError::failed("epoll_wait")(errno)),
        };
        let mut seen = Seen::default();
        for event in events {
            match event.data.u64() {
                CONTROL => seen.control = true,
                TIMER => {
                    seen.timer = true;
                    self.delay = None;
                }
                _ => {}
            }
        }
        Ok(seen)
    }

    /// Records if frames were left in the ring: the descriptor stays readable until there are none.
    pub(super) fn set_rest(&mut self, has_rest: bool) -> Result<(), MemifError> {
        if has_rest == self.is_rest_watched {
            return Ok(());
        }
        let flags = if has_rest { EventFlags::IN } else { EventFlags::empty() };
        epoll::modify(&self.epoll, &self.rest, EventData::new_u64(REST), flags)
            .map_err(MemifError::failed("epoll_ctl(MOD)"))?;
        self.is_rest_watched = has_rest;
        Ok(())
    }

    /// Makes the descriptor readable after `delay`, less than a second, if not sooner anyway.
    pub(super) fn call_back(&mut self, delay: Duration) -> Result<(), MemifError> {
        if self.delay.is_some_and(|running| running <= delay) {
            return Ok(());
        }
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let nanoseconds = i64::from(delay.subsec_nanos().max(1));
        let at = Timespec { tv_sec: 0, tv_nsec: nanoseconds };
        let once = Itimerspec { it_interval: never, it_value: at };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)
            .map_err(MemifError::failed("timerfd_settime"))?;
        self.delay = Some(delay);
        Ok(())
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
