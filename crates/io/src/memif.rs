//! memif: frames through memory that two processes share, with a Unix socket to arrange it.
//!
//! The **client** makes the memory: two rings of descriptors and a buffer for each slot. The
//! **server** maps it. NDN-DPDK's conventions: Ethernet mode, one bare packet in each buffer, no
//! packet over several buffers. Any number of clients connect to one socket, whatever id they give.
//!
//! A peer's writes are hostile: every descriptor is read once and checked, every index moves only
//! forward and as far as it was let, memory that could shrink under us is not mapped, and a
//! server copies each frame out before it looks at it. A client looks at frames in place if the
//! server is of its own user or root, and copies otherwise. Among such friends both write in place.
//!
//! `wire` and `control` are the messages; `region`, `ring` and `buffers` the shared memory;
//! `producer` and `consumer` the two ends of rings; `channel` what a connection is made of;
//! `connecting`, `accepting` and `pending` the handshakes.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

mod accepting;
mod buffers;
mod channel;
mod connecting;
mod consumer;
mod control;
mod error;
mod kick;
mod overflow;
mod producer;
mod region;
mod ring;
mod seats;
mod wake;
mod wire;

pub(crate) use accepting::Handshake;
pub(crate) use channel::Channel;
pub use error::{MemifError, RegionRefusal, RingRefusal};
pub(crate) use seats::Seats;

use crate::limits::Limits;

/// Makes a connection over a socket that is connected to a server.
pub(crate) fn connect(
    control: OwnedFd,
    id: u32,
    timeout: Duration,
    limits: Limits,
) -> Result<Channel, MemifError> {
    connecting::connect(control, id, timeout, limits)
}

/// Both ends of a connection within this process; the first is the client's.
pub(crate) fn pair(limits: Limits) -> Result<(Channel, Channel), MemifError> {
    /// The other end is a thread of ours.
    const PATIENCE: Duration = Duration::from_secs(5);
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(MemifError::failed("socketpair"))?;
    std::thread::scope(|scope| {
        let accepting = scope.spawn(move || accepting::accept(other, limits, PATIENCE));
        let connected = connecting::connect(one, 0, PATIENCE, limits);
        let accepted = accepting.join().map_err(|_| MemifError::Gone)?;
        Ok((connected?, accepted?))
    })
}
