//! The owner of a port that we wanted: from the kernel's socket tables to a process.
//!
//! Best effort and only for an error message: processes of other users are visible to
//! root only, and the owner may be gone by the time we look.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::address::canonical;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortOwner {
    /// Its number.
    pub pid: u32,
    /// Its name as `ps` shows it.
    pub name: String,
}

impl fmt::Display for PortOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// Which table of the kernel to look in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

/// The process whose socket keeps `wanted` from being bound.
pub(crate) fn find(transport: Transport, wanted: SocketAddr) -> Option<PortOwner> {
    let tables = match transport {
        Transport::Tcp => ["/proc/net/tcp", "/proc/net/tcp6"],
        Transport::Udp => ["/proc/net/udp", "/proc/net/udp6"],
    };
    let inodes: Vec<u64> = tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|text| conflicting_inodes(&text, transport, wanted))
        .collect();
    owner_of(&inodes)
}

/// The process with this number, named.
pub(crate) fn process(pid: u32) -> PortOwner {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name: String = name.trim_end().chars().filter(|c| !c.is_control()).collect();
    PortOwner { pid, name: if name.is_empty() { "unknown".to_owned() } else { name } }
}

fn conflicting_inodes(table: &str, transport: Transport, wanted: SocketAddr) -> Vec<u64> {
    const LISTEN: &str = "0A";
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let local = parse_address(fields.next()?)?;
            let state = fields.nth(1)?;
            let inode = fields.nth(5)?.parse().ok()?;
            let listens = transport == Transport::Udp || state == LISTEN;
            (listens && conflicts(local, wanted)).then_some(inode)
        })
        .collect()
}

fn conflicts(held: SocketAddr, wanted: SocketAddr) -> bool {
    let (held, wanted) = (canonical(held), canonical(wanted));
    held.port() == wanted.port()
        && (held.ip().is_unspecified() || wanted.ip().is_unspecified() || held.ip() == wanted.ip())
}

/// The kernel prints addresses as hexadecimal words in its own byte order, the port in ours.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |i: usize| u32::from_str_radix(address.get(8 * i..8 * i + 8)?, 16).ok();
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?.to_ne_bytes())),
        32 => {
            let mut octets = [0u8; 16];
            for (i, four) in octets.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(i)?.to_ne_bytes());
            }
            IpAddr::V6(Ipv6Addr::from(octets))
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

fn owner_of(inodes: &[u64]) -> Option<PortOwner> {
    let targets: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    if targets.is_empty() {
        return None;
    }
    let pids = fs::read_dir("/proc").ok()?.flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .find(|pid| holds(*pid, &targets))
        .map(process)
}

fn holds(pid: u32, targets: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    descriptors
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|link| targets.iter().any(|target| link.as_os_str() == target.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_kernels_table_is_read() {
        let table = "  sl  local_address rem_address   st ... inode\n\
            0: 0100007F:18DB 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1 0\n\
            1: 0100007F:18DB 0100007F:9999 01 00000000:00000000 00:00000000 00000000 0 0 4712 1 0\n\
            2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4713 1 0\n\
            garbage\n";
        let inodes =
            |wanted: &str| conflicting_inodes(table, Transport::Tcp, wanted.parse().unwrap());
        assert_eq!(inodes("127.0.0.1:6363"), [4711]);
        assert_eq!(inodes("[::]:6363"), [4711]);
        assert_eq!(inodes("192.0.2.1:22"), [4713]);
        assert!(inodes("192.0.2.1:6363").is_empty());
        let v6 = parse_address("00000000000000000000000001000000:0050").unwrap();
        assert_eq!(v6, "[::1]:80".parse().unwrap());
    }
}
