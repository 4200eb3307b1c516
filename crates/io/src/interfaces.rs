//! Addresses of this machine by which others may reach it.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Interfaces that lead to guests and containers of this machine only.
const INNER: [&str; 8] = ["docker", "br-", "veth", "virbr", "vnet", "podman", "cni", "lxc"];

/// Addresses of interfaces that are up, IPv4 first: no loopback, link-local or multicast ones, and
/// none of bridges to this machine's own guests. Empty if the system does not say.
pub fn global_addresses() -> Vec<IpAddr> {
    let mut head: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `head` is a valid place for the pointer that the call writes.
    if unsafe { libc::getifaddrs(&mut head) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut next = head;
    // SAFETY: `next` is null or an element of the list that getifaddrs made, which lives until
    // freeifaddrs below; its elements are initialised and not changed by anybody.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: the name is a NUL-terminated string that belongs to the list.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy();
        let is_up = entry.ifa_flags & libc::IFF_UP as u32 != 0;
        let is_inner = INNER.iter().any(|inner| name.starts_with(inner));
        // SAFETY: the address is null or one of the list, as long as its family says.
        let address = unsafe { address_of(entry.ifa_addr) };
        found.extend(address.filter(|address| is_up && !is_inner && is_global(address)));
    }
    // SAFETY: `head` came from getifaddrs and is freed once; no reference into the list is left.
    unsafe { libc::freeifaddrs(head) };
    found.sort_by_key(|address| address.is_ipv6());
    found.dedup();
    found
}

/// The address in a socket address of the two Internet families.
///
/// # Safety
/// `address` is null, or points to a socket address that is as long as its family says.
unsafe fn address_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: it is not null, and every socket address begins with its family.
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: the family says that it is a `sockaddr_in`; the read needs no alignment.
            let inet = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(inet.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that it is a `sockaddr_in6`; the read needs no alignment.
            let inet = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(inet.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

fn is_global(address: &IpAddr) -> bool {
    let is_local = match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    };
    !(is_local || address.is_loopback() || address.is_unspecified() || address.is_multicast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_works_on_this_machine_alone_is_no_address_for_others() {
        for text in ["127.0.0.1", "::1", "169.254.3.4", "fe80::1", "0.0.0.0", "224.0.0.1"] {
            assert!(!is_global(&text.parse().unwrap()), "{text}");
        }
        for text in ["10.0.0.1", "192.0.2.7", "2001:db8::1", "fd00::1"] {
            assert!(is_global(&text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn every_address_found_can_be_listened_on() {
        for address in global_addresses() {
            std::net::UdpSocket::bind((address, 0)).unwrap();
        }
    }
}
