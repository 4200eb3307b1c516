//! `sendmmsg`: several messages a system call, each of one datagram or, with UDP_SEGMENT, of many
//! to one peer that the kernel cuts apart as late as possible.
//!
//! Missing support on the path to a peer only shows when it is tried: see [`Segmentation`].
#![allow(unsafe_code)]

use std::mem::{MaybeUninit, offset_of, size_of, zeroed};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use super::raw::{RawAddress, last_error};
use crate::limits::DATAGRAM_BATCH;

/// Datagrams that leave whole before segments of a size that was refused are tried again: the
/// route may have changed, or the refusal concerned only one of the peers.
const RETRY_AFTER: usize = 4096;

/// One datagram, or several of one length (the last may be shorter) that stand in a row; without
/// a peer they go to the one the socket is connected to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) peer: Option<SocketAddr>,
    /// Of each but the last.
    pub(super) segment_bytes: usize,
    pub(super) datagrams: usize,
}

impl Message<'_> {
    pub(super) fn is_segmented(&self) -> bool {
        self.datagrams > 1
    }
}

/// The part that the kernel took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) datagrams: usize,
    /// Messages of more than one.
    pub(super) segmented: usize,
}

/// Which datagrams may leave as segments of one message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segmentation {
    /// The kernel can, nobody has switched it off, and no device refused for good.
    pub(super) is_on: bool,
    /// Datagrams of this length and longer are sent one by one for now.
    plain_from_bytes: usize,
    plain_left: usize,
}

impl Segmentation {
    pub(super) fn new(is_on: bool) -> Self {
        Segmentation { is_on, plain_from_bytes: usize::MAX, plain_left: 0 }
    }

    pub(super) fn allows(&self, datagram_bytes: usize) -> bool {
        self.is_on && datagram_bytes > 0 && datagram_bytes < self.plain_from_bytes
    }

    /// So many datagrams have been sent.
    pub(super) fn on_sent(&mut self, datagrams: usize) {
        self.plain_left = self.plain_left.saturating_sub(datagrams);
        if self.plain_left == 0 {
            self.plain_from_bytes = usize::MAX;
        }
    }

    /// The kernel refused a message of several datagrams.
    pub(super) fn on_refused(&mut self, message: &Message<'_>, error: Errno) {
        match error {
            // The device, or a tunnel before it, cannot: it will not learn to.
            Errno::IO | Errno::OPNOTSUPP | Errno::NOPROTOOPT => self.is_on = false,
            // The datagrams do not fit the path to this peer without being cut by IP.
            Errno::INVAL | Errno::MSGSIZE => self.send_plain(message.segment_bytes, RETRY_AFTER),
            // Not about segments; but of so many, only the one that is at fault may be dropped.
            _ => self.send_plain(0, message.datagrams),
        }
    }

    fn send_plain(&mut self, from_bytes: usize, datagrams: usize) {
        self.plain_from_bytes = self.plain_from_bytes.min(from_bytes);
        self.plain_left = self.plain_left.max(datagrams);
    }
}

/// The control message that gives the length of segments.
#[repr(C)]
#[derive(Clone, Copy)]
struct SegmentControl {
    header: libc::cmsghdr,
    segment_bytes: u16,
}

const _: () = {
    // SAFETY: these are computations on lengths.
    let (data, space) = unsafe { (libc::CMSG_LEN(0), libc::CMSG_SPACE(2)) };
    assert!(offset_of!(SegmentControl, segment_bytes) == data as usize);
    assert!(size_of::<SegmentControl>() == space as usize);
};

impl SegmentControl {
    fn new(segment_bytes: u16) -> Self {
        // SAFETY: a header is three integers (and padding), for which all zeroes is a value.
        let mut header: libc::cmsghdr = unsafe { zeroed() };
        // SAFETY: this is a computation on lengths.
        header.cmsg_len = unsafe { libc::CMSG_LEN(size_of::<u16>() as libc::c_uint) } as _;
        header.cmsg_level = libc::SOL_UDP;
        header.cmsg_type = libc::UDP_SEGMENT;
        SegmentControl { header, segment_bytes }
    }
}

/// Sends the first of `messages`, as many as fit a batch and the kernel takes now. The error is
/// about the very first; one about a later is reported by the next call.
pub(super) fn send<'a>(
    socket: BorrowedFd<'_>,
    messages: impl Iterator<Item = Message<'a>>,
) -> Result<Sent, Errno> {
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; DATAGRAM_BATCH];
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; DATAGRAM_BATCH];
    let mut addresses = [const { MaybeUninit::<RawAddress>::uninit() }; DATAGRAM_BATCH];
    let mut controls = [const { MaybeUninit::<SegmentControl>::uninit() }; DATAGRAM_BATCH];
    let mut datagrams = [0u16; DATAGRAM_BATCH];
    let mut count = 0;
    for (i, message) in messages.take(DATAGRAM_BATCH).enumerate() {
        // SAFETY: a header is integers and pointers, for which all zeroes is a value.
        let mut header: libc::mmsghdr = unsafe { zeroed() };
        let base = message.bytes.as_ptr().cast_mut().cast();
        let vector = libc::iovec { iov_base: base, iov_len: message.bytes.len() };
        header.msg_hdr.msg_iov = vectors[i].write(vector);
        header.msg_hdr.msg_iovlen = 1;
        if let Some(peer) = message.peer {
            let (address, length) = RawAddress::of(peer);
            header.msg_hdr.msg_name = std::ptr::from_mut(addresses[i].write(address)).cast();
            header.msg_hdr.msg_namelen = length;
        }
        if message.is_segmented() {
            let control = SegmentControl::new(message.segment_bytes as u16);
            header.msg_hdr.msg_control = std::ptr::from_mut(controls[i].write(control)).cast();
            header.msg_hdr.msg_controllen = size_of::<SegmentControl>() as _;
        }
        headers[i].write(header);
        datagrams[i] = message.datagrams as u16;
        count = i + 1;
    }
    // SAFETY: the first `count` headers have been written; each points to one vector and, if
    // named, one address and one control message of the arrays above, which have been written too
    // and live until the call returns; the vectors point to slices borrowed for 'a, which the
    // kernel only reads.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr().cast(),
            count as libc::c_uint,
            (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
        )
    };
    let sent = usize::try_from(sent).map_err(|_| last_error())?;
    let taken = &datagrams[..sent.min(count)];
    Ok(Sent {
        datagrams: taken.iter().map(|datagrams| usize::from(*datagrams)).sum(),
        segmented: taken.iter().filter(|datagrams| **datagrams > 1).count(),
    })
}
