//! `recvmmsg` and `sendmmsg`: up to [`DATAGRAM_BATCH`] datagrams a system call.
//!
//! The kernel's descriptors of a batch hold raw pointers, so they are built afresh for each call
//! and never outlive it; next to 64 datagrams that is nothing. GSO and GRO will be control
//! messages here and slots of several datagrams.
#![allow(unsafe_code)]

use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::io::Errno;

use crate::address::canonical;
use crate::limits::DATAGRAM_BATCH;

/// A datagram to send; without a peer it goes to the one the socket is connected to.
pub(super) struct Outgoing<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) peer: Option<SocketAddr>,
}

/// Room for one batch, and what the kernel said about each datagram of the last.
#[derive(Debug)]
pub(super) struct ReceiveBatch {
    slots: Vec<u8>,
    slot_bytes: usize,
    received: Vec<Received>,
}

#[derive(Debug, Clone, Copy)]
struct Received {
    /// `None` if it was longer than a slot or came from no Internet address.
    length: Option<usize>,
    peer: SocketAddr,
}

/// An IPv4 or IPv6 socket address as the kernel knows it; which one, the family says.
#[repr(C)]
#[derive(Clone, Copy)]
union RawAddress {
    family: libc::sa_family_t,
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl ReceiveBatch {
    pub(super) const LENGTH: usize = DATAGRAM_BATCH;

    pub(super) fn new(slot_bytes: usize) -> Self {
        let slot_bytes = slot_bytes.max(1);
        let nobody = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        ReceiveBatch {
            slots: vec![0; DATAGRAM_BATCH * slot_bytes],
            slot_bytes,
            received: vec![Received { length: None, peer: nobody }; DATAGRAM_BATCH],
        }
    }

    /// Fills the slots with what has come, without waiting; returns how many were filled.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>) -> Result<usize, Errno> {
        // SAFETY: all of these are plain integers and pointers, for which all zeroes is a value.
        let (mut headers, mut vectors, mut addresses): (
            [libc::mmsghdr; DATAGRAM_BATCH],
            [libc::iovec; DATAGRAM_BATCH],
            [RawAddress; DATAGRAM_BATCH],
        ) = unsafe { (zeroed(), zeroed(), zeroed()) };
        let (vector_base, address_base) = (vectors.as_mut_ptr(), addresses.as_mut_ptr());
        let slot_base = self.slots.as_mut_ptr();
        for (i, header) in headers.iter_mut().enumerate() {
            // SAFETY: i < DATAGRAM_BATCH, the length of both arrays and the number of slots.
            unsafe {
                (*vector_base.add(i)).iov_base = slot_base.add(i * self.slot_bytes).cast();
                (*vector_base.add(i)).iov_len = self.slot_bytes;
                header.msg_hdr.msg_iov = vector_base.add(i);
                header.msg_hdr.msg_name = address_base.add(i).cast();
            }
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_namelen = size_of::<RawAddress>() as libc::socklen_t;
        }
        // SAFETY: each header points to one vector and one address of the arrays above, each
        // vector to a slot of `slot_bytes` that belongs to it alone; all live until the call
        // returns and nothing else touches them. The timeout may be null.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                DATAGRAM_BATCH as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| last_error())?;
        for i in 0..count {
            let header = &headers[i];
            let whole = header.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
            let length = (header.msg_len as usize).min(self.slot_bytes);
            let peer = read_address(&addresses[i], header.msg_hdr.msg_namelen);
            self.received[i].length = peer.filter(|_| whole).map(|_| length);
            self.received[i].peer = peer.unwrap_or(self.received[i].peer);
        }
        Ok(count)
    }

    /// Hands out the first `count` slots; returns how many of them were whole datagrams.
    pub(super) fn deliver(
        &self,
        count: usize,
        on_frame: &mut dyn FnMut(SocketAddr, &[u8]),
    ) -> usize {
        let slots = self.slots.chunks_exact(self.slot_bytes);
        let mut delivered = 0;
        for (received, slot) in self.received.iter().zip(slots).take(count) {
            if let Some(length) = received.length {
                on_frame(received.peer, &slot[..length]);
                delivered += 1;
            }
        }
        delivered
    }
}

/// Sends the first of `datagrams`, as many as fit a batch and the kernel takes now. The error is
/// about the very first; one about a later is told by the next call.
pub(super) fn send<'a>(
    socket: BorrowedFd<'_>,
    datagrams: impl Iterator<Item = Outgoing<'a>>,
) -> Result<usize, Errno> {
    // SAFETY: all of these are plain integers and pointers, for which all zeroes is a value.
    let (mut headers, mut vectors, mut addresses): (
        [libc::mmsghdr; DATAGRAM_BATCH],
        [libc::iovec; DATAGRAM_BATCH],
        [RawAddress; DATAGRAM_BATCH],
    ) = unsafe { (zeroed(), zeroed(), zeroed()) };
    let (vector_base, address_base) = (vectors.as_mut_ptr(), addresses.as_mut_ptr());
    let mut count = 0;
    for (i, datagram) in datagrams.take(DATAGRAM_BATCH).enumerate() {
        let header = &mut headers[i].msg_hdr;
        // SAFETY: i < DATAGRAM_BATCH, the length of both arrays.
        unsafe {
            (*vector_base.add(i)).iov_base = datagram.bytes.as_ptr().cast_mut().cast();
            (*vector_base.add(i)).iov_len = datagram.bytes.len();
            header.msg_iov = vector_base.add(i);
            if let Some(peer) = datagram.peer {
                let (address, length) = raw_address(peer);
                address_base.add(i).write(address);
                header.msg_name = address_base.add(i).cast();
                header.msg_namelen = length;
            }
        }
        header.msg_iovlen = 1;
        count = i + 1;
    }
    // SAFETY: the first `count` headers each point to one vector and, if named, one address of
    // the arrays above; the vectors point to slices borrowed for 'a, which the kernel only reads.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count as libc::c_uint,
            (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
        )
    };
    usize::try_from(sent).map_err(|_| last_error())
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn read_address(raw: &RawAddress, length: libc::socklen_t) -> Option<SocketAddr> {
    let length = length as usize;
    // SAFETY: the union was zeroed before the kernel wrote to it, so every byte is initialised,
    // and any bytes are a value of each of its fields.
    let (family, v4, v6) = unsafe { (raw.family, raw.v4, raw.v6) };
    match i32::from(family) {
        libc::AF_INET if length >= size_of::<libc::sockaddr_in>() => {
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(v4.sin_port))))
        }
        libc::AF_INET6 if length >= size_of::<libc::sockaddr_in6>() => {
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            let address = SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id);
            Some(canonical(SocketAddr::V6(address)))
        }
        _ => None,
    }
}

/// A dual-stack socket takes IPv4 addresses as they are; Linux maps them itself.
fn raw_address(peer: SocketAddr) -> (RawAddress, libc::socklen_t) {
    // SAFETY: all fields are integers and arrays of integers, for which all zeroes is a value.
    let mut raw: RawAddress = unsafe { zeroed() };
    match peer {
        SocketAddr::V4(peer) => {
            raw.v4 = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: peer.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(peer.ip().octets()) },
                sin_zero: [0; 8],
            };
            (raw, size_of::<libc::sockaddr_in>() as libc::socklen_t)
        }
        SocketAddr::V6(peer) => {
            raw.v6 = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: peer.port().to_be(),
                sin6_flowinfo: peer.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: peer.ip().octets() },
                sin6_scope_id: peer.scope_id(),
            };
            (raw, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
        }
    }
}
