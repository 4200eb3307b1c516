//! Waking the peer through the eventfd of the ring it receives from.

use std::os::fd::{AsRawFd, OwnedFd};

/// The eventfd of the ring that we fill.
#[derive(Debug)]
pub(super) struct Kick {
    fd: OwnedFd,
}

impl Kick {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Kick { fd }
    }

    /// Wakes the peer. A counter that is full has woken it before.
    pub(super) fn kick(&self) {
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }
}

/// True if a descriptor of a peer is what it should be. Anything else could block, or end this
/// process with a signal, when it is written to.
pub(super) fn is_eventfd(fd: &OwnedFd) -> bool {
    // There is no system call that tells.
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    link.is_ok_and(|target| target.as_os_str() == "anon_inode:[eventfd]")
}
