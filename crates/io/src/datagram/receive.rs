//! `recvmmsg`: several messages a system call, each of one datagram or, where the kernel can
//! coalesce (UDP_GRO), of many datagrams of one peer and one size, the last perhaps shorter.
//!
//! A coalesced message can have 64 KiB, so there are few slots, and they are as long as that;
//! otherwise there are many, each of one frame. The kernel's descriptors of a batch hold raw
//! pointers, so they are built afresh for each call and never outlive it.
#![allow(unsafe_code)]

use std::mem::{MaybeUninit, size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::io::Errno;

use super::raw::{RawAddress, last_error};
use crate::limits::{COALESCED_SLOTS, DATAGRAM_BATCH};

/// No message over IPv4 or IPv6 is longer.
const MESSAGE_BYTES_MAX: usize = 1 << 16;

/// Room for one batch, and what the kernel said about each message of the last.
#[derive(Debug)]
pub(super) struct ReceiveBatch {
    slots: Vec<u8>,
    slot_bytes: usize,
    frame_bytes_max: usize,
    received: Vec<Received>,
}

/// Result of `deliver`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Delivered {
    pub(super) datagrams: usize,
    /// Longer than a frame may be, or from no Internet address.
    pub(super) dropped: usize,
    /// Messages that were more than one datagram.
    pub(super) coalesced: usize,
    pub(super) bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Received {
    /// `None` if it was longer than a slot or came from no Internet address.
    length: Option<usize>,
    /// Of each datagram in the message but the last; not more than `length`.
    segment_bytes: usize,
    peer: SocketAddr,
}

/// Room for the one control message we ask for, aligned as the kernel wants it.
#[repr(C)]
union Control {
    header: libc::cmsghdr,
    bytes: [u8; 64],
}

impl ReceiveBatch {
    /// `coalescing`: whether a message can be more than one datagram.
    pub(super) fn new(frame_bytes_max: usize, coalescing: bool) -> Self {
        let frame_bytes_max = frame_bytes_max.max(1);
        let (slot_bytes, count) = match coalescing {
            true => (MESSAGE_BYTES_MAX, COALESCED_SLOTS),
            false => (frame_bytes_max, DATAGRAM_BATCH),
        };
        let nobody = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        let none = Received { length: None, segment_bytes: 0, peer: nobody };
        ReceiveBatch {
            // Zeroed memory costs nothing until the kernel writes to it.
            slots: vec![0; count * slot_bytes],
            slot_bytes,
            frame_bytes_max,
            received: vec![none; count],
        }
    }

    /// The number of slots.
    pub(super) fn length(&self) -> usize {
        self.received.len()
    }

    /// Fills the slots with what has come, without waiting; returns how many were filled.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>) -> Result<usize, Errno> {
        let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; DATAGRAM_BATCH];
        let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; DATAGRAM_BATCH];
        let mut addresses = [const { MaybeUninit::<RawAddress>::uninit() }; DATAGRAM_BATCH];
        let mut controls = [const { MaybeUninit::<Control>::uninit() }; DATAGRAM_BATCH];
        for (i, slot) in self.slots.chunks_exact_mut(self.slot_bytes).enumerate() {
            // SAFETY: a header is integers and pointers, for which all zeroes is a value.
            let mut header: libc::mmsghdr = unsafe { zeroed() };
            let vector = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
            let address = addresses[i].write(RawAddress::unspecified());
            header.msg_hdr.msg_iov = vectors[i].write(vector);
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_name = ptr::from_mut(address).cast();
            header.msg_hdr.msg_namelen = size_of::<RawAddress>() as libc::socklen_t;
            header.msg_hdr.msg_control = controls[i].as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = size_of::<Control>() as _;
            headers[i].write(header);
        }
        // SAFETY: as many headers as there are slots (no more than DATAGRAM_BATCH) were written and
        // each point to one vector, one address and
        // one control buffer of the arrays above, each vector to a slot of `slot_bytes` that
        // belongs to it alone; all live until the call returns and nothing else touches them.
        // The timeout may be null.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr().cast(),
                self.received.len() as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| last_error())?;
        for i in 0..count.min(self.received.len()) {
            // SAFETY: as many headers and addresses as there are slots were written above.
            let (header, address) =
                unsafe { (headers[i].assume_init_ref(), addresses[i].assume_init_ref()) };
            let (flags, bytes) = (header.msg_hdr.msg_flags, header.msg_len as usize);
            let whole = flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) == 0;
            let length = bytes.min(self.slot_bytes);
            let peer = address.read(header.msg_hdr.msg_namelen);
            let received = &mut self.received[i];
            received.length = peer.filter(|_| whole).map(|_| length);
            received.segment_bytes = coalesced_bytes(&header.msg_hdr).unwrap_or(length);
            received.peer = peer.unwrap_or(received.peer);
        }
        Ok(count)
    }

    /// Hands out the datagrams of the first `count` slots.
    pub(super) fn deliver(
        &self,
        count: usize,
        on_frame: &mut dyn FnMut(SocketAddr, &[u8]),
    ) -> Delivered {
        let slots = self.slots.chunks_exact(self.slot_bytes);
        let mut met = Delivered::default();
        for (received, slot) in self.received.iter().zip(slots).take(count) {
            let Some(length) = received.length else {
                met.dropped += 1;
                continue;
            };
            met.bytes += length;
            // An empty datagram is one, too.
            let message = &slot[..length];
            if length <= received.segment_bytes {
                self.deliver_one(received.peer, message, &mut met, on_frame);
                continue;
            }
            met.coalesced += 1;
            for datagram in message.chunks(received.segment_bytes) {
                self.deliver_one(received.peer, datagram, &mut met, on_frame);
            }
        }
        met
    }

    fn deliver_one(
        &self,
        peer: SocketAddr,
        datagram: &[u8],
        met: &mut Delivered,
        on_frame: &mut dyn FnMut(SocketAddr, &[u8]),
    ) {
        if datagram.len() > self.frame_bytes_max {
            met.dropped += 1;
        } else {
            met.datagrams += 1;
            on_frame(peer, datagram);
        }
    }
}

/// The length of the datagrams that a message is made of, if the kernel put several into one.
fn coalesced_bytes(header: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel has set `msg_controllen` to what it wrote to the control buffer, which
    // is alive and aligned; the macros stay within that.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(header);
        while let Some(found) = control.as_ref() {
            let is_ours = (found.cmsg_level, found.cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO);
            let length = libc::CMSG_LEN(size_of::<libc::c_int>() as libc::c_uint);
            if is_ours && found.cmsg_len as u64 >= u64::from(length) {
                let value = libc::CMSG_DATA(control).cast::<libc::c_int>().read_unaligned();
                return usize::try_from(value).ok().filter(|bytes| *bytes > 0);
            }
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    None
}
