//! Who is at the other end of a Unix socket, as the kernel noted it when they connected.
#![allow(unsafe_code)]

use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd};

/// The process at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Its effective user.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
    /// Its number; `None` if it lives in a process namespace that we cannot see.
    pub pid: Option<u32>,
}

/// The peer of a connected Unix socket; for a client, the process that called `listen`.
pub(crate) fn peer_credentials(socket: &impl AsFd) -> Option<PeerCredentials> {
    // SAFETY: `ucred` is three integers, for which all zeroes is a value.
    let mut found: libc::ucred = unsafe { zeroed() };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open for the duration of the borrow; the pointers are to live
    // locals, and `length` is the size of the one the kernel writes to.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    // A socket that has no peer reports no user.
    if result != 0 || length as usize != size_of::<libc::ucred>() || found.uid == u32::MAX {
        return None;
    }
    let pid = u32::try_from(found.pid).ok().filter(|pid| *pid != 0);
    Some(PeerCredentials { uid: found.uid, gid: found.gid, pid })
}
