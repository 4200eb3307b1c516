//! Where a listener keeps clients until their handshakes are done: bounded in number, bytes and
//! time. The oldest gives way to a new one, so that those who never finish keep nobody out.
//!
//! The listener's one descriptor is an epoll instance with the listening socket, the sockets of
//! unfinished handshakes and a timer for the oldest of them.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use socket2::Socket;
use tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response, ServerHandshake};
use tungstenite::handshake::{HandshakeError, MidHandshake};
use tungstenite::http::StatusCode;

use super::{AllowedOrigins, WebSocket, Wire, config};
use crate::connection::prepare_tcp;
use crate::error::IoError;
use crate::limits::Limits;

/// Handshakes under way.
const HANDSHAKES_MAX: usize = 64;

/// How long one may take: a request and a response, over whatever network.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Numbers for epoll; handshakes have the others.
const LISTENER: u64 = 0;
const TIMER: u64 = 1;
const FIRST_GUEST: u64 = 2;

/// Handshakes and clients taken care of in one call.
const EVENTS_MAX: usize = 32;

type Handshake = MidHandshake<ServerHandshake<Wire, Doorkeeper>>;

#[derive(Debug)]
pub(crate) struct Lobby {
    epoll: OwnedFd,
    timer: OwnedFd,
    origins: Arc<AllowedOrigins>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The oldest first.
    guests: VecDeque<Guest>,
    guests_ever: u64,
}

#[derive(Debug)]
struct Guest {
    number: u64,
    deadline: Instant,
    /// Taken while it goes on.
    handshake: Option<Handshake>,
}

/// Looks at the request once it is complete.
#[derive(Debug)]
struct Doorkeeper(Arc<AllowedOrigins>);

impl Callback for Doorkeeper {
    // The size of the error is tungstenite's choice.
    #[allow(clippy::result_large_err)]
    fn on_request(self, request: &Request, response: Response) -> Result<Response, ErrorResponse> {
        if self.0.admit(request) {
            return Ok(response);
        }
        let mut refusal = ErrorResponse::new(Some(String::from("This page may not connect.\n")));
        *refusal.status_mut() = StatusCode::FORBIDDEN;
        Err(refusal)
    }
}

impl Lobby {
    /// A lobby for the clients of a listening socket.
    pub(crate) fn new(listener: &impl AsFd) -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        Ok(Lobby { epoll, timer, origins: Arc::default(), waiting: Mutex::default() })
    }

    /// For handshakes that begin from now on.
    pub(crate) fn set_origins(&mut self, origins: AllowedOrigins) {
        self.origins = Arc::new(origins);
    }

    /// Goes on with whatever has moved; a connection if one is ready. `accept` takes the next
    /// client from the listening socket.
    pub(crate) fn next(
        &self,
        limits: Limits,
        mut accept: impl FnMut() -> Result<Option<Socket>, IoError>,
    ) -> Result<Option<WebSocket>, IoError> {
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
                LISTENER => self.admit(&mut waiting, limits, &mut accept)?,
                // The one it was for may have ended in time.
                TIMER => self.set_timer(&waiting),
                number => {
                    if let Some(socket) = self.serve(&mut waiting, number, limits) {
                        return Ok(Some(socket));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Takes new clients in; their requests are looked at when they come.
    fn admit(
        &self,
        waiting: &mut Waiting,
        limits: Limits,
        accept: &mut impl FnMut() -> Result<Option<Socket>, IoError>,
    ) -> Result<(), IoError> {
        for _ in 0..EVENTS_MAX {
            let Some(client) = accept()? else { return Ok(()) };
            // Whoever is gone already is no loss.
            if prepare_tcp(&client).is_err() {
                continue;
            }
            if waiting.guests.len() >= HANDSHAKES_MAX {
                waiting.guests.pop_front();
            }
            let number = FIRST_GUEST + waiting.guests_ever;
            waiting.guests_ever += 1;
            let events = EventFlags::IN | EventFlags::RDHUP;
            epoll::add(&self.epoll, &client, EventData::new_u64(number), events)
                .map_err(|e| IoError::new("epoll_ctl(ADD)", e))?;
            let doorkeeper = Doorkeeper(Arc::clone(&self.origins));
            let wire = Wire::new(client.into());
            let handshake = ServerHandshake::start(wire, doorkeeper, Some(config(limits)));
            let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
            waiting.guests.push_back(Guest { number, deadline, handshake: Some(handshake) });
            if waiting.guests.len() == 1 {
                self.set_timer(waiting);
            }
        }
        Ok(())
    }

    /// Goes on with one handshake.
    fn serve(&self, waiting: &mut Waiting, number: u64, limits: Limits) -> Option<WebSocket> {
        let at = waiting.guests.binary_search_by_key(&number, |guest| guest.number).ok()?;
        match waiting.guests[at].handshake.take()?.handshake() {
            Ok(socket) => {
                waiting.guests.remove(at);
                // From now on it is the caller's poller that watches it.
                let _ = epoll::delete(&self.epoll, socket.get_ref());
                Some(WebSocket::new(socket, true, limits))
            }
            Err(HandshakeError::Interrupted(handshake)) => {
                waiting.guests[at].handshake = Some(handshake);
                None
            }
            Err(HandshakeError::Failure(_)) => {
                waiting.guests.remove(at);
                None
            }
        }
    }

    fn expire(&self, waiting: &mut Waiting) {
        let now = Instant::now();
        let before = waiting.guests.len();
        while waiting.guests.front().is_some_and(|guest| guest.deadline <= now) {
            waiting.guests.pop_front();
        }
        if waiting.guests.len() != before {
            self.set_timer(waiting);
        }
    }

    /// For the oldest handshake, if there is one.
    fn set_timer(&self, waiting: &Waiting) {
        let Some(oldest) = waiting.guests.front() else { return };
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
