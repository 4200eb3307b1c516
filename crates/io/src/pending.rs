//! The pending handshakes of a listener: bounded in number and time. The oldest is dropped for a
//! new one, so that those who never finish keep nobody out.
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

use crate::error::IoError;

/// Pending handshakes of one listener.
const HANDSHAKES_MAX: usize = 64;

/// Numbers for epoll; handshakes have the others.
const LISTENER: u64 = 0;
const TIMER: u64 = 1;
const FIRST_HANDSHAKE: u64 = 2;

/// Handshakes and clients taken care of in one call.
const EVENTS_MAX: usize = 32;

/// State of a handshake.
pub(crate) enum Progress<H: Handshake> {
    /// The client has to say more.
    Waits(H),
    /// Done.
    Done(H::Connection),
    /// It has failed; the client has been answered where that is possible.
    Failed,
}

/// The exchange of a client and a listener before there is a connection.
pub(crate) trait Handshake: Sized {
    /// Its result.
    type Connection;

    /// Longest duration.
    const TIMEOUT: Duration;

    /// The socket that says when it can go on.
    fn socket(&self) -> BorrowedFd<'_>;

    /// The same socket, once it is the connection's.
    fn socket_of(connection: &Self::Connection) -> BorrowedFd<'_>;

    /// Goes on as far as it can.
    fn advance(self) -> Progress<Self>;

    /// It takes too long, or there are too many.
    fn give_up(self) {}
}

#[derive(Debug)]
pub(crate) struct PendingHandshakes<H> {
    epoll: OwnedFd,
    timer: OwnedFd,
    waiting: Mutex<Waiting<H>>,
}

#[derive(Debug)]
struct Waiting<H> {
    /// The oldest first.
    pending: VecDeque<Pending<H>>,
    begun_count: u64,
}

#[derive(Debug)]
struct Pending<H> {
    number: u64,
    deadline: Instant,
    /// Taken while it goes on.
    handshake: Option<H>,
}

impl<H: Handshake> Waiting<H> {
    fn give_up_oldest(&mut self) {
        if let Some(handshake) = self.pending.pop_front().and_then(|it| it.handshake) {
            handshake.give_up();
        }
    }
}

impl<H: Handshake> PendingHandshakes<H> {
    /// No handshakes yet, with the clients of a listening socket.
    pub(crate) fn new(listener: &impl AsFd) -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        let waiting = Mutex::new(Waiting { pending: VecDeque::new(), begun_count: 0 });
        Ok(PendingHandshakes { epoll, timer, waiting })
    }

    /// Goes on with whatever has moved; a connection if one is ready. `accept` takes the next
    /// client from the listening socket and begins its handshake: `Some(None)` if that failed.
    pub(crate) fn next(
        &self,
        mut accept: impl FnMut() -> Result<Option<Option<H>>, IoError>,
    ) -> Result<Option<H::Connection>, IoError> {
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
                    if let Some(connection) = self.advance(&mut waiting, number) {
                        return Ok(Some(connection));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Takes new clients in; their requests are read when they come.
    fn admit(
        &self,
        waiting: &mut Waiting<H>,
        accept: &mut impl FnMut() -> Result<Option<Option<H>>, IoError>,
    ) -> Result<(), IoError> {
        for _ in 0..EVENTS_MAX {
            let Some(begun) = accept()? else { return Ok(()) };
            // Whoever is gone already is no loss.
            let Some(handshake) = begun else { continue };
            if waiting.pending.len() >= HANDSHAKES_MAX {
                waiting.give_up_oldest();
            }
            let number = FIRST_HANDSHAKE + waiting.begun_count;
            waiting.begun_count += 1;
            let events = EventFlags::IN | EventFlags::RDHUP;
            epoll::add(&self.epoll, handshake.socket(), EventData::new_u64(number), events)
                .map_err(|e| IoError::new("epoll_ctl(ADD)", e))?;
            let deadline = Instant::now() + H::TIMEOUT;
            waiting.pending.push_back(Pending { number, deadline, handshake: Some(handshake) });
            if waiting.pending.len() == 1 {
                self.set_timer(waiting);
            }
        }
        Ok(())
    }

    /// Goes on with one handshake.
    fn advance(&self, waiting: &mut Waiting<H>, number: u64) -> Option<H::Connection> {
        let at = waiting.pending.binary_search_by_key(&number, |it| it.number).ok()?;
        match waiting.pending[at].handshake.take()?.advance() {
            Progress::Waits(handshake) => {
                waiting.pending[at].handshake = Some(handshake);
                None
            }
            Progress::Done(connection) => {
                waiting.pending.remove(at);
                // From now on it is the caller's poller that watches it.
                let _ = epoll::delete(&self.epoll, H::socket_of(&connection));
                Some(connection)
            }
            Progress::Failed => {
                waiting.pending.remove(at);
                None
            }
        }
    }

    fn expire(&self, waiting: &mut Waiting<H>) {
        let now = Instant::now();
        let before = waiting.pending.len();
        while waiting.pending.front().is_some_and(|it| it.deadline <= now) {
            waiting.give_up_oldest();
        }
        if waiting.pending.len() != before {
            self.set_timer(waiting);
        }
    }

    /// For the oldest handshake, if there is one.
    fn set_timer(&self, waiting: &Waiting<H>) {
        let Some(oldest) = waiting.pending.front() else { return };
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

impl<H> AsFd for PendingHandshakes<H> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
