//! Waking the peer through the eventfd of the ring it receives from.
//!
//! The eventfd is the client's. A hostile one can make writing to it block, by filling the counter
//! and taking O_NONBLOCK away, at the worst moment. So what a stranger gave us is never written to:
//! the kernel signals it when an asynchronous request of ours completes, which never waits.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use rustix::event::{EventfdFlags, eventfd};

use super::error::MemifError;

/// Completions that the kernel keeps until they are taken.
const COMPLETIONS: usize = 64;

/// The request "tell when this is readable", and the flag "signal an eventfd then".
const COMMAND_POLL: u16 = 5;
const FLAG_RESULT_FD: u32 = 1;

/// The eventfd of the ring that we fill.
#[derive(Debug)]
pub(super) enum Kick {
    /// Of a friend.
    Direct(OwnedFd),
    /// Of anybody.
    Signal(Signal),
}

/// A context of asynchronous requests that complete at once and signal an eventfd.
#[derive(Debug)]
pub(super) struct Signal {
    context: usize,
    /// Always readable.
    ready: OwnedFd,
    target: OwnedFd,
}

/// A request, as the kernel knows it (`struct iocb` on little-endian machines).
#[repr(C)]
#[derive(Default)]
struct Request {
    data: u64,
    key: u32,
    read_write_flags: u32,
    command: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    result_fd: u32,
}

/// A completion (`struct io_event`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Completion {
    data: u64,
    object: u64,
    result: [i64; 2],
}

impl Kick {
    pub(super) fn new(fd: OwnedFd, is_trusted: bool) -> Result<Self, MemifError> {
        if is_trusted { Ok(Kick::Direct(fd)) } else { Ok(Kick::Signal(Signal::new(fd)?)) }
    }

    /// Wakes the peer. If that cannot be done it was woken before, or is in its own way.
    pub(super) fn kick(&self) {
        match self {
            Kick::Direct(fd) => {
                let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
            }
            Kick::Signal(signal) => {
                if signal.submit().is_err() {
                    signal.forget_completions();
                    let _ = signal.submit();
                }
            }
        }
    }
}

impl Signal {
    fn new(target: OwnedFd) -> Result<Self, MemifError> {
        let ready = eventfd(1, EventfdFlags::CLOEXEC).map_err(MemifError::failed("eventfd"))?;
        let mut context = 0usize;
        // SAFETY: the kernel writes one word, the context's number, to `context`.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, COMPLETIONS, &raw mut context) };
        if result != 0 {
            let source = io::Error::last_os_error();
            return Err(MemifError::Failed { operation: "io_setup", source });
        }
        Ok(Signal { context, ready, target })
    }

    fn submit(&self) -> io::Result<()> {
        let mut request = Request {
            command: COMMAND_POLL,
            fd: self.ready.as_raw_fd() as u32,
            buffer: libc::POLLIN as u64,
            flags: FLAG_RESULT_FD,
            result_fd: self.target.as_raw_fd() as u32,
            ..Request::default()
        };
        let mut requests = [&raw mut request];
        // SAFETY: one valid request, which the kernel copies; it names no memory of ours. Both
        // descriptors are open as long as `self` lives.
        let result = unsafe {
            libc::syscall(libc::SYS_io_submit, self.context, 1usize, requests.as_mut_ptr())
        };
        if result == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Makes room for further completions.
    fn forget_completions(&self) {
        let mut completions = [Completion::default(); COMPLETIONS];
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes at most COMPLETIONS completions to an array of that length, and
        // only reads the time; both live until the call returns.
        unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                0usize,
                COMPLETIONS,
                completions.as_mut_ptr(),
                ptr::from_ref(&at_once),
            )
        };
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        // SAFETY: the context is ours and is not used again.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

/// True if a descriptor of a peer is what it should be. Anything else could block, or end this
/// process with a signal, when it is written to.
pub(super) fn is_eventfd(fd: &OwnedFd) -> bool {
    // There is no system call that tells.
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    link.is_ok_and(|target| target.as_os_str() == "anon_inode:[eventfd]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(fd: &OwnedFd) -> u64 {
        let mut bytes = [0; 8];
        rustix::io::read(fd, &mut bytes).map_or(0, |_| u64::from_ne_bytes(bytes))
    }

    #[test]
    fn friends_and_strangers_are_woken_each_time() {
        for is_trusted in [true, false] {
            let fd = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
            let kick = Kick::new(fd.try_clone().unwrap(), is_trusted).unwrap();
            assert_eq!(count(&fd), 0);
            for _ in 0..10 * COMPLETIONS {
                kick.kick();
                assert_eq!(count(&fd), 1);
            }
        }
    }

    /// Without the detour this would wait for ever.
    #[test]
    fn a_stranger_cannot_make_us_wait() {
        let fd = eventfd(0, EventfdFlags::empty()).unwrap();
        rustix::io::write(&fd, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        let kick = Kick::new(fd.try_clone().unwrap(), false).unwrap();
        for _ in 0..10 * COMPLETIONS {
            kick.kick();
        }
        assert!(count(&fd) >= u64::MAX - 1);
    }
}
