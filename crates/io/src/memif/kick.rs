//! Waking the peer through the eventfd of the ring it receives from.

use std::os::fd::OwnedFd;

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
