//! One control message at a time over a SEQPACKET socket, with the descriptor that belongs to it.
//!
//! Whatever descriptors a peer sends are owned from the moment the kernel hands them over, so that
//! none stays open by accident.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::error::MemifError;
use super::wire::{MESSAGE_BYTES, Message};

/// Descriptors that a message may bring; the kernel closes what does not fit.
const DESCRIPTORS_MAX: usize = 4;

/// A message and the descriptors that came with it.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) message: Message,
    first: Option<OwnedFd>,
    count: usize,
}

impl Received {
    /// The one descriptor that belongs to this message.
    pub(super) fn descriptor(&mut self) -> Result<OwnedFd, MemifError> {
        self.expect_descriptors(1)?;
        self.first.take().ok_or(self.descriptors(1))
    }

    /// Refuses descriptors that nobody asked for.
    pub(super) fn no_descriptor(&self) -> Result<(), MemifError> {
        self.expect_descriptors(0)
    }

    fn expect_descriptors(&self, wanted: usize) -> Result<(), MemifError> {
        if self.count == wanted { Ok(()) } else { Err(self.descriptors(wanted)) }
    }

    fn descriptors(&self, wanted: usize) -> MemifError {
        MemifError::Descriptors { message: self.message.label(), count: self.count, wanted }
    }
}

/// Waits until there is something to receive, or for too long.
pub(super) fn wait(socket: &OwnedFd, deadline: Instant) -> Result<(), MemifError> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(MemifError::TimedOut);
    }
    let left = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&left)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(MemifError::failed("poll")(errno)),
    }
}

/// Sends without waiting. A peer that has stopped reading its few messages is in the way.
pub(super) fn send(
    socket: impl AsFd,
    message: &Message,
    descriptor: Option<BorrowedFd<'_>>,
) -> Result<(), MemifError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(descriptor) = &descriptor {
        let fits = control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(descriptor)));
        debug_assert!(fits, "there is room for one descriptor");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let bytes = message.encode();
    loop {
        match sendmsg(&socket, &[IoSlice::new(&bytes)], &mut control, flags) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => return Err(MemifError::Gone),
            Err(errno) => return Err(MemifError::failed("sendmsg")(errno)),
        }
    }
}

/// The next message, `None` if there is none yet. A closed socket is [`MemifError::Gone`].
pub(super) fn receive(socket: impl AsFd) -> Result<Option<Received>, MemifError> {
    // One more than a message, so that a longer one is noticed.
    let mut bytes = [0; MESSAGE_BYTES + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let status = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(status) => break status,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::CONNRESET | Errno::PIPE | Errno::NOTCONN) => return Err(MemifError::Gone),
            Err(errno) => return Err(MemifError::failed("recvmsg")(errno)),
        }
    };
    let (mut first, mut count) = (None, 0);
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = part {
            for descriptor in descriptors {
                count += 1;
                first.get_or_insert(descriptor);
            }
        }
    }
    if status.flags.contains(ReturnFlags::CTRUNC) {
        count += 1;
    }
    if status.bytes == 0 {
        return Err(MemifError::Gone);
    }
    let Some(whole) = bytes[..status.bytes].first_chunk().filter(|_| status.bytes == MESSAGE_BYTES)
    else {
        return Err(MemifError::MessageBytes { bytes: status.bytes });
    };
    Ok(Some(Received { message: Message::decode(whole)?, first, count }))
}
