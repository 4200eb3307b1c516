//! Who gives way when there is no room for another peer.
//!
//! The machine with the most peers gives first, so one that opens a thousand connections competes
//! with itself.

use std::collections::HashMap;
use std::net::IpAddr;

/// The machine that an address stands for: for IPv6 its network, of which one machine has all
/// addresses.
pub fn machine_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) >> 64 << 64).into()),
        ip => ip,
    }
}

/// The one of `peers` that gives way to a newcomer: of the machine with the most, the newcomer
/// included, the least by its key. Those without a key count, but stay.
pub fn gives_way<T: Copy, K: Ord + Copy>(
    peers: &[(T, IpAddr, Option<K>)],
    newcomer: Option<IpAddr>,
) -> Option<T> {
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    for machine in peers.iter().map(|(_, machine, _)| *machine).chain(newcomer) {
        *counts.entry(machine).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    let of_most = peers.iter().filter(|(_, machine, _)| counts[machine] == most);
    let keyed = of_most.filter_map(|(peer, _, key)| key.map(|key| (key, *peer)));
    keyed.min_by_key(|(key, _)| *key).map(|(_, peer)| peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_with_the_most_peers_gives_its_oldest_idle_one() {
        let (few, many) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let peers = [(1, few, Some(1)), (2, many, None), (3, many, Some(9)), (4, many, Some(5))];
        assert_eq!(gives_way(&peers, None), Some(4));
        // Nobody of the machine with the most is idle.
        assert_eq!(gives_way(&peers[..2], Some(many)), None);
        assert_eq!(gives_way(&peers[..1], Some(few)), Some(1));
        assert_eq!(gives_way::<u8, u8>(&[], None), None);
    }

    #[test]
    fn a_machine_has_all_addresses_of_its_ipv6_network() {
        let machine = |text: &str| machine_of(text.parse().unwrap());
        assert_eq!(machine("2001:db8::1"), machine("2001:db8::ffff:2"));
        assert_ne!(machine("2001:db8:0:1::1"), machine("2001:db8::1"));
        assert_eq!(machine("::ffff:192.0.2.1"), machine("192.0.2.1"));
        assert_ne!(machine("192.0.2.1"), machine("192.0.2.2"));
    }
}
