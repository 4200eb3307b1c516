//! Where a listener keeps clients until their handshakes are done: bounded in number and time.
//!
//! The listener's one descriptor is an epoll instance with the listening socket, the sockets of
//! unfinished handshakes and a timer for the oldest of them.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::accepting::Handshake;
use super::channel::Channel;
use super::error::MemifError;
use crate::error::IoError;
use crate::limits::Limits;

/// Handshakes under way; the oldest gives way to a new one.
pub(crate) const HANDSHAKES_MAX: usize = 64;

/// How long a handshake may take. It is a dozen messages between processes of one machine.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);

/// Numbers for epoll; handshakes have the others.
const LISTENER: u64 = 0;
const TIMER: u64 = 1;
const FIRST_HANDSHAKE: u64 = 2;

/// Handshakes taken care of in one call.
const EVENTS_MAX: usize = 32;

#[derive(Debug)]
pub(crate) struct Lobby {
    epoll: OwnedFd,
    timer: OwnedFd,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The oldest first.
    handshakes: VecDeque<Guest>,
    guests_ever: u64,
}

#[derive(Debug)]
struct Guest {
    number: u64,
    deadline: Instant,
    handshake: Handshake,
}

impl Lobby {
    /// A lobby for the clients of a listening socket.
    pub(crate) fn new(listener: &impl AsFd) -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        Ok(Lobby { epoll, timer, waiting: Mutex::default() })
    }

    /// Goes on with whatever has moved; a connection if one is ready. `accept` takes the next
    /// client from the listening socket.
    pub(crate) fn next(
        &self,
        limits: Limits,
        mut accept: impl FnMut() -> Result<Option<OwnedFd>, IoError>,
    ) -> Result<Option<Channel>, IoError> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.expire(&mut waiting);
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS_MAX];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let events = match epoll::wait(&self.epoll, &mut events[..], Some(&now)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(None),
            Err(errno) => return Err(IoError::new("epoll_wait", errno)),
        };
        for event in events {
            match event.data.u64() {
                LISTENER => self.admit(&mut waiting, &mut accept)?,
                // The one it was for may have ended in time.
                TIMER => self.set_timer(&waiting),
                number => {
                    if let Some(channel) = self.serve(&mut waiting, number, limits) {
                        return Ok(Some(channel));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Takes new clients in. Their first messages come later: each waits for our greeting.
    fn admit(
        &self,
        waiting: &mut Waiting,
        accept: &mut impl FnMut() -> Result<Option<OwnedFd>, IoError>,
    ) -> Result<(), IoError> {
        for _ in 0..EVENTS_MAX {
            let Some(control) = accept()? else { return Ok(()) };
            // Whoever is gone already, or does not read, is no loss.
            let Ok(handshake) = Handshake::begin(control) else { continue };
            if waiting.handshakes.len() >= HANDSHAKES_MAX
                && let Some(oldest) = waiting.handshakes.pop_front()
            {
                oldest.handshake.refuse(&MemifError::TimedOut);
            }
            let number = FIRST_HANDSHAKE + waiting.guests_ever;
            waiting.guests_ever += 1;
            let events = EventFlags::IN | EventFlags::RDHUP;
            epoll::add(&self.epoll, &handshake, EventData::new_u64(number), events)
                .map_err(|e| IoError::new("epoll_ctl(ADD)", e))?;
            let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
            waiting.handshakes.push_back(Guest { number, deadline, handshake });
            if waiting.handshakes.len() == 1 {
                self.set_timer(waiting);
            }
        }
        Ok(())
    }

    /// Goes on with one handshake.
    fn serve(&self, waiting: &mut Waiting, number: u64, limits: Limits) -> Option<Channel> {
        let at = waiting.handshakes.binary_search_by_key(&number, |guest| guest.number).ok()?;
        let advanced = waiting.handshakes[at].handshake.advance();
        if matches!(advanced, Ok(false)) {
            return None;
        }
        let guest = waiting.handshakes.remove(at)?;
        let _ = epoll::delete(&self.epoll, &guest.handshake);
        match advanced {
            Ok(_) => guest.handshake.finish(limits),
            Err(error) => {
                guest.handshake.refuse(&error);
                None
            }
        }
    }

    fn expire(&self, waiting: &mut Waiting) {
        let now = Instant::now();
        let before = waiting.handshakes.len();
        while waiting.handshakes.front().is_some_and(|guest| guest.deadline <= now) {
            if let Some(guest) = waiting.handshakes.pop_front() {
                guest.handshake.refuse(&MemifError::TimedOut);
            }
        }
        if waiting.handshakes.len() != before {
            self.set_timer(waiting);
        }
    }

    /// For the oldest handshake, if there is one.
    fn set_timer(&self, waiting: &Waiting) {
        let Some(oldest) = waiting.handshakes.front() else { return };
        let left = oldest.deadline.saturating_duration_since(Instant::now());
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let at = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos().max(1)),
        };
        let once = Itimerspec { it_interval: never, it_value: at };
        // Cannot fail with a timer and a time of ours.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
    }
}

impl AsFd for Lobby {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
