//! Addresses and socket options in the kernel's own form.
#![allow(unsafe_code)]

use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use crate::address::canonical;

/// An IPv4 or IPv6 socket address as the kernel knows it; which one, the family says.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) union RawAddress {
    family: libc::sa_family_t,
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl RawAddress {
    /// No address at all; every byte is initialised.
    pub(super) fn unspecified() -> Self {
        // SAFETY: all fields are integers and arrays of integers, for which all zeroes is a value.
        unsafe { zeroed() }
    }

    /// The address that the kernel wrote, of which `length` bytes count.
    pub(super) fn read(&self, length: libc::socklen_t) -> Option<SocketAddr> {
        let length = length as usize;
        // SAFETY: every value of this type began as zeroes, so every byte is initialised, and any
        // bytes are a value of each of its fields.
        let (family, v4, v6) = unsafe { (self.family, self.v4, self.v6) };
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
    pub(super) fn of(peer: SocketAddr) -> (Self, libc::socklen_t) {
        let mut raw = Self::unspecified();
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
}

/// True if the kernel can cut one message into datagrams (Linux 4.18). An older one would send
/// the message as a single datagram, so it has to be asked before.
pub(super) fn can_segment(socket: BorrowedFd<'_>) -> bool {
    let mut size: libc::c_int = 0;
    get_option(socket, (libc::SOL_UDP, libc::UDP_SEGMENT), &mut size).is_some()
}

/// Lets the kernel hand out several datagrams of one peer as one message (Linux 5.0), or not.
pub(super) fn set_coalescing(socket: BorrowedFd<'_>, wanted: bool) -> bool {
    let value = libc::c_int::from(wanted);
    // SAFETY: the descriptor is open for the duration of the borrow; the pointer is to a live
    // local, whose size is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_GRO,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    result == 0
}

/// Datagrams that came and found the kernel's buffer full, since the socket was made. The kernel
/// counts in 32 bits.
pub(super) fn receive_overflows(socket: BorrowedFd<'_>) -> u32 {
    const DROPS: usize = 8;
    let mut memory = [0u32; DROPS + 1];
    let option = (libc::SOL_SOCKET, libc::SO_MEMINFO);
    let known = get_option(socket, option, &mut memory) == Some(size_of_val(&memory));
    if known { memory[DROPS] } else { 0 }
}

/// Fills `value`, which has to be made of integers, and returns how many bytes the kernel wrote.
fn get_option<T: Copy>(
    socket: BorrowedFd<'_>,
    (level, name): (libc::c_int, libc::c_int),
    value: &mut T,
) -> Option<usize> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open for the duration of the borrow; the kernel writes at most
    // `length` bytes to `value`, and any bytes are a value of integers.
    let result = unsafe {
        let value = std::ptr::from_mut(value).cast();
        libc::getsockopt(socket.as_raw_fd(), level, name, value, &raw mut length)
    };
    (result == 0).then_some(length as usize)
}

pub(super) fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
