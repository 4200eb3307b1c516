//! UDP multicast groups, between two namespaces on one cable.

use byname_io::{Connection, DatagramSocket, Endpoint};

use crate::namespace::Cable;
use crate::*;

fn join(uri: &str) -> Connection {
    Connection::connect(&endpoint(uri), PATIENCE).unwrap()
}

#[test]
fn members_hear_each_other_and_not_themselves() {
    let test = "members_hear_each_other_and_not_themselves";
    let Some(cable) = Cable::new(test, 1500) else { return };
    for (uri, remote) in [
        ("udp://224.0.23.170?dev=wire", "udp4://224.0.23.170:56363"),
        ("udp://[ff02::1234]:56363?dev=wire", "udp6://[ff02::1234]:56363"),
    ] {
        if uri.contains("ff02") && !has_ipv6(test) {
            continue;
        }
        let mut members = [0, 1].map(|end| cable.at(end, || join(uri)));
        assert_eq!(members[0].remote_uri(), remote);
        let local = format!("{}+dev://wire:56363", &remote[..4]);
        assert_eq!(members[0].local_uri(), local);
        assert!(members[0].is_multi_access() && members[0].is_datagram());
        assert!(!members[0].is_local());
        for sender in [0, 1] {
            for number in 0..20 {
                members[sender].queue(&[&frame(&[number; 1000])]).unwrap();
            }
            let mut draft = members[sender].draft();
            let write = |bytes: &mut [u8]| {
                bytes.copy_from_slice(&frame(b"drafted"));
                true
            };
            draft.frame(9, write).unwrap();
            draft.commit();
            while members[sender].wants_write() {
                members[sender].flush().unwrap();
            }
            let taken = receive(&mut members[1 - sender], 21);
            assert_eq!(taken[20], frame(b"drafted"));
            let status = members[sender].recv_burst(framer, &mut |_| panic!("an echo")).unwrap();
            assert!(status.drained && status.dropped == 0);
        }
    }
}

#[test]
fn only_what_is_sent_to_the_group_comes_in() {
    let test = "only_what_is_sent_to_the_group_comes_in";
    let Some(cable) = Cable::new(test, 1500) else { return };
    let mut member = cable.at(1, || join("udp://224.0.23.170?dev=wire"));
    let mut stranger =
        cable.at(0, || DatagramSocket::bind(&endpoint("udp4://10.9.0.1:0")).unwrap());
    let to_host = "10.9.0.2:56363".parse().unwrap();
    stranger.queue(to_host, &[&frame(b"to the host, not the group")]).unwrap();
    stranger.flush().unwrap();
    let mut other = cable.at(0, || join("udp://224.0.23.170?dev=wire"));
    send(&mut other, &frame(b"to all"));
    assert_eq!(receive(&mut member, 1), [frame(b"to all")]);
    // Several may join on one machine.
    let _second = cable.at(1, || join("udp://224.0.23.170?dev=wire"));
}

#[test]
fn a_group_without_its_interface_is_refused() {
    let error = |uri: &str| uri.parse::<Endpoint>().unwrap_err().to_string();
    assert!(error("udp://224.0.23.170").contains("?dev=eth0"));
    assert!(error("udp://224.0.23.170?dev=").contains("dev="));
    assert!(error("udp://10.0.0.1?dev=eth0").contains("dev=eth0"));
    let nowhere = endpoint("udp://224.0.23.170?dev=none-such");
    assert!(Connection::connect(&nowhere, PATIENCE).is_err());
}
