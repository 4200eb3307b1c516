//! A socket for a multicast group on one network interface.
//!
//! It is bound to the group's address, so that nothing else comes in, and to the interface, so
//! that the routing table has no say. What it sends does not come back to this machine: a face
//! must not hear itself. Hence two processes of one machine do not meet on a group.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use rustix::net::netdevice::name_to_index;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};

/// Joins `group` on the interface called `device`.
pub(crate) fn join(group: IpAddr, port: u16, device: &str) -> io::Result<(Socket, SocketAddr)> {
    let domain = if group.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    let index = name_to_index(&socket, device)?;
    // Others may be members, too: a group is for all.
    socket.set_reuse_address(true)?;
    socket.bind_device(Some(device.as_bytes()))?;
    let address = match group {
        IpAddr::V4(group) => {
            socket.set_multicast_loop_v4(false)?;
            socket.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(index))?;
            SocketAddr::new(IpAddr::V4(group), port)
        }
        IpAddr::V6(group) => {
            socket.set_only_v6(true)?;
            socket.set_multicast_loop_v6(false)?;
            socket.set_multicast_if_v6(index)?;
            socket.join_multicast_v6(&group, index)?;
            SocketAddr::V6(SocketAddrV6::new(group, port, 0, index))
        }
    };
    socket.bind(&address.into())?;
    Ok((socket, address))
}
