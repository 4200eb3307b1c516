//! Waiting for many descriptors at once: level-triggered epoll, and a way to end the wait early.
//!
//! A [`Waker`] is edge-triggered, so its event needs no acknowledgement: each `wake` since the
//! last `wait` is seen, several as one, and none is lost when nobody waits at that moment.

use std::fmt;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;

use crate::error::IoError;

/// Events taken from the kernel in one wait; the rest come with the next.
pub const EVENTS_MAX: usize = 256;

/// The caller's number for a descriptor, returned with its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// Events to be reported. Errors and hang-ups always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interest {
    /// Bytes or connections to take, or the peer closed.
    pub read: bool,
    /// Room to send.
    pub write: bool,
}

impl Interest {
    /// Only reading.
    pub const READ: Interest = Interest { read: true, write: false };
    /// Reading and writing.
    pub const READ_WRITE: Interest = Interest { read: true, write: true };

    fn flags(self) -> epoll::EventFlags {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN | epoll::EventFlags::RDHUP, self.read);
        flags.set(epoll::EventFlags::OUT, self.write);
        flags
    }
}

/// One descriptor that has work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The number given with `add`.
    pub token: Token,
    /// Reading gets somewhere: to bytes, to the end, or to the error.
    pub readable: bool,
    /// Writing gets somewhere.
    pub writable: bool,
    /// The connection is broken or closed both ways; reported whatever the interest.
    pub hangup: bool,
}

/// A set of descriptors to wait for. Closing a descriptor removes it.
pub struct Poller {
    epoll: OwnedFd,
    /// A wake must be seen even if whoever sent it dropped its waker right after.
    counters: Vec<Arc<OwnedFd>>,
}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller").field("epoll", &self.epoll).finish_non_exhaustive()
    }
}

impl Poller {
    /// An empty set.
    pub fn new() -> Result<Self, IoError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|e| IoError::new("epoll_create", e))?;
        Ok(Poller { epoll, counters: Vec::new() })
    }

    /// Starts watching a descriptor that is not yet in the set.
    pub fn add(&self, source: &impl AsFd, token: Token, interest: Interest) -> Result<(), IoError> {
        epoll::add(&self.epoll, source, epoll::EventData::new_u64(token.0), interest.flags())
            .map_err(|e| IoError::new("epoll_ctl(ADD)", e))
    }

    /// Changes the events reported of a watched descriptor.
    pub fn modify(
        &self,
        source: &impl AsFd,
        token: Token,
        interest: Interest,
    ) -> Result<(), IoError> {
        epoll::modify(&self.epoll, source, epoll::EventData::new_u64(token.0), interest.flags())
            .map_err(|e| IoError::new("epoll_ctl(MOD)", e))
    }

    /// Stops watching. Events already returned by `wait` are not taken back.
    pub fn remove(&self, source: &impl AsFd) -> Result<(), IoError> {
        epoll::delete(&self.epoll, source).map_err(|e| IoError::new("epoll_ctl(DEL)", e))
    }

    /// Replaces `events` by what is ready, waiting up to `timeout` (`None`: for ever) for the
    /// first. None at all means the time is over or a signal came; look at both.
    pub fn wait(
        &mut self,
        events: &mut Vec<Event>,
        timeout: Option<Duration>,
    ) -> Result<(), IoError> {
        events.clear();
        // On the stack: rustix's event is not `Send`, and pollers move to the thread that waits.
        let mut ready = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS_MAX];
        let timeout = timeout.map(whole_milliseconds);
        let ready = match epoll::wait(&self.epoll, &mut ready[..], timeout.as_ref()) {
            Ok((ready, _)) => ready,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(IoError::new("epoll_wait", error)),
        };
        events.extend(ready.iter().map(|ready| {
            let (flags, data) = (ready.flags, ready.data);
            let broken = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
            let incoming = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
            Event {
                token: Token(data.u64()),
                readable: broken || flags.intersects(incoming),
                writable: flags.contains(epoll::EventFlags::OUT),
                hangup: broken,
            }
        }));
        Ok(())
    }

    /// A handle with which any thread ends this poller's `wait`; the event carries `token`.
    /// It takes a descriptor until the poller is dropped: make one and clone it.
    pub fn waker(&mut self, token: Token) -> Result<Waker, IoError> {
        let counter = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| IoError::new("eventfd", e))?;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.epoll, &counter, epoll::EventData::new_u64(token.0), flags)
            .map_err(|e| IoError::new("epoll_ctl(ADD)", e))?;
        let counter = Arc::new(counter);
        self.counters.push(Arc::clone(&counter));
        Ok(Waker { counter })
    }
}

/// The kernel counts in milliseconds here; rounding down would make a short wait a busy loop.
fn whole_milliseconds(timeout: Duration) -> Timespec {
    let milliseconds = timeout.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i64;
    Timespec { tv_sec: milliseconds / 1000, tv_nsec: (milliseconds % 1000) * 1_000_000 }
}

/// Ends a [`Poller::wait`] from any thread. Clones wake the same poller.
#[derive(Debug, Clone)]
pub struct Waker {
    counter: Arc<OwnedFd>,
}

impl AsRawFd for Waker {
    fn as_raw_fd(&self) -> RawFd {
        self.counter.as_raw_fd()
    }
}

impl Waker {
    /// Makes the current or the next `wait` return. Never blocks.
    pub fn wake(&self) {
        // Fails only when 2^64 wakes have not been read: empty the counter and count this one.
        while rustix::io::write(&*self.counter, &1u64.to_ne_bytes()) == Err(Errno::AGAIN) {
            let mut count = [0u8; 8];
            let _ = rustix::io::read(&*self.counter, &mut count);
        }
    }
}
