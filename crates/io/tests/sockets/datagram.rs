//! UDP, connected and not.

use std::net::{SocketAddr, UdpSocket};

use byname_io::{Connection, DatagramSocket, Limits};

use crate::*;

fn bind(uri: &str) -> DatagramSocket {
    DatagramSocket::bind(&endpoint(uri)).unwrap()
}

fn connect(socket: &DatagramSocket) -> Connection {
    let uri = format!("udp://{}", socket.local_address());
    Connection::connect(&endpoint(&uri), PATIENCE).unwrap()
}

fn take(socket: &mut DatagramSocket, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut taken = Vec::new();
    while taken.len() < count {
        wait_for(socket, Interest::READ);
        socket.recv_burst(&mut |peer, bytes| taken.push((peer, bytes.to_vec()))).unwrap();
    }
    taken
}

#[test]
fn bursts_arrive_with_their_senders() {
    let mut server = bind("udp4://127.0.0.1:0");
    let mut clients = [bind("udp4://127.0.0.1:0"), bind("udp4://127.0.0.1:0")];
    let to = server.local_address();
    for round in 0..50u8 {
        // Not more at once than a socket buffer of default size holds.
        for client in &mut clients {
            for number in 0..70u8 {
                client.queue(to, &[&[round], &[number; 40]]).unwrap();
            }
            client.flush().unwrap();
            assert!(!client.wants_write());
        }
        let all = take(&mut server, 140);
        for client in &clients {
            let its = all.iter().filter(|(peer, _)| *peer == client.local_address());
            let expected = (0..70u8).map(|number| [&[round][..], &[number; 40]].concat());
            assert!(its.map(|(_, bytes)| bytes.clone()).eq(expected), "round {round}");
        }
    }
}

#[test]
fn a_connected_socket_carries_frames_both_ways() {
    for uri in ["udp4://127.0.0.1:0", "udp6://[::1]:0"] {
        if uri.contains('6') && !has_ipv6("a_connected_socket_carries_frames_both_ways") {
            continue;
        }
        let mut server = bind(uri);
        let mut client = connect(&server);
        assert_eq!(client.remote_uri(), server.local_uri());
        assert!(client.is_local() && client.is_datagram());
        for number in 0..100 {
            client.queue(&[&numbered(number)]).unwrap();
        }
        while client.wants_write() {
            client.flush().unwrap();
        }
        let all = take(&mut server, 100);
        assert!(all.iter().map(|(_, bytes)| bytes).eq(&(0..100).map(numbered).collect::<Vec<_>>()));
        let peer = all[0].0;
        assert_eq!(server.remote_uri(peer), client.local_uri());
        assert!(server.is_local(peer));
        let largest = frame(&[9; 8798]);
        server.queue(peer, &[&largest]).unwrap();
        server.flush().unwrap();
        assert_eq!(receive(&mut client, 1), [largest]);
    }
}

#[test]
fn drafts_become_datagrams_when_they_are_committed() {
    let mut server = bind("udp4://127.0.0.1:0");
    let mut client = connect(&server);
    let mut expected = Vec::new();
    for round in (0..60).step_by(2) {
        client.queue(&[&numbered(round)]).unwrap();
        let queued_bytes = client.queued_bytes();
        let mut draft = client.draft();
        assert!(!draft.frame(7, |_| false).unwrap());
        let written = numbered(round + 1);
        let write = |frame: &mut [u8]| {
            frame.copy_from_slice(&written);
            true
        };
        assert!(draft.frame(written.len(), write).unwrap());
        expected.push(numbered(round));
        if round % 4 == 0 {
            draft.commit();
            expected.push(written);
        } else {
            drop(draft);
            assert_eq!(client.queued_bytes(), queued_bytes);
        }
    }
    client.flush().unwrap();
    let all = take(&mut server, expected.len());
    assert!(all.iter().map(|(_, bytes)| bytes).eq(&expected));
}

#[test]
fn datagrams_too_long_or_malformed_are_counted_and_the_rest_arrive() {
    let plain = UdpSocket::bind("127.0.0.1:0").unwrap();
    let near = endpoint(&format!("udp://{}", plain.local_addr().unwrap()));
    let limits = Limits { frame_bytes_max: 100, ..Limits::default() };
    let mut connection = Connection::connect_with(&near, PATIENCE, limits).unwrap();
    let to: SocketAddr = connection.local_uri().strip_prefix("udp4://").unwrap().parse().unwrap();
    let exact = frame(&[1; 98]);
    for bytes in [
        &frame(&[1; 99])[..],
        &exact,
        b"",
        b"\xff\xff",
        &exact[..99],
        &[frame(b"two"), frame(b"in one")].concat(),
        &exact,
    ] {
        plain.send_to(bytes, to).unwrap();
    }
    let (mut frames, mut dropped) = (Vec::new(), 0);
    while frames.len() + dropped < 7 {
        wait_for(&connection, Interest::READ);
        let status = connection.recv_burst(framer, &mut |f| frames.push(f.to_vec())).unwrap();
        dropped += status.dropped;
        assert!(!status.closed);
    }
    assert_eq!((frames, dropped), (vec![exact.clone(), exact], 5));
}

#[test]
fn a_datagram_over_the_limit_is_dropped_rather_than_cut() {
    let limits = Limits { frame_bytes_max: 100, ..Limits::default() };
    let mut server = DatagramSocket::bind_with(&endpoint("udp4://127.0.0.1:0"), limits).unwrap();
    let plain = UdpSocket::bind("127.0.0.1:0").unwrap();
    plain.send_to(&[1; 101], server.local_address()).unwrap();
    plain.send_to(&[2; 100], server.local_address()).unwrap();
    let (mut taken, mut dropped) = (Vec::new(), 0);
    while taken.len() + dropped < 2 {
        wait_for(&server, Interest::READ);
        dropped += server.recv_burst(&mut |_, f| taken.push(f.to_vec())).unwrap().dropped;
    }
    assert_eq!((taken, dropped), (vec![vec![2; 100]], 1));
}

#[test]
fn a_peer_that_is_not_there_yet_does_not_kill_the_connection() {
    let gone = bind("udp4://127.0.0.1:0");
    let (address, mut client) = (gone.local_address(), connect(&gone));
    drop(gone);
    send(&mut client, &frame(b"anybody?"));
    let (_, status) = receive_until(&mut client, |_, s| s.unreachable > 0).unwrap();
    assert!(!status.closed);
    // Once while sending: the network's answer to the first must not cost the second.
    send(&mut client, &frame(b"nobody"));
    wait_for(&client, Interest::READ);
    let mut server = bind(&format!("udp4://{address}"));
    client.queue(&[&frame(b"first")]).unwrap();
    client.queue(&[&frame(b"second")]).unwrap();
    client.flush().unwrap();
    let taken = take(&mut server, 2);
    assert_eq!([&taken[0].1, &taken[1].1], [&frame(b"first"), &frame(b"second")]);
    let status = client.recv_burst(framer, &mut |_| {}).unwrap();
    assert_eq!(status.unreachable, 1);
}

#[test]
fn what_cannot_be_sent_is_dropped_and_does_not_hold_up_the_rest() {
    let mut server = bind("udp4://127.0.0.1:0");
    let mut client = bind("udp4://127.0.0.1:0");
    let (to, nowhere) = (server.local_address(), "[::1]:9".parse().unwrap());
    client.queue(to, &[b"before"]).unwrap();
    client.queue(to, &[&[0; 70_000]]).unwrap();
    client.queue(nowhere, &[b"an IPv6 peer of an IPv4 socket"]).unwrap();
    client.queue(to, &[b"after"]).unwrap();
    client.flush().unwrap();
    assert_eq!(client.send_dropped(), 2);
    assert_eq!(client.recv_burst(&mut |_, _| {}).unwrap().unreachable, 0, "nobody said so");
    let taken = take(&mut server, 2);
    assert_eq!([&taken[0].1[..], &taken[1].1], [&b"before"[..], b"after"]);
}

#[test]
fn the_queue_is_bounded() {
    let limits = Limits { send_bytes_max: 10_000, ..Limits::default() };
    let mut socket = DatagramSocket::bind_with(&endpoint("udp4://127.0.0.1:0"), limits).unwrap();
    let to = socket.local_address();
    let mut queued = 0;
    let full = loop {
        match socket.queue(to, &[]) {
            Ok(()) => queued += 1,
            Err(full) => break full,
        }
        assert!(queued < 10_000, "empty datagrams are not free");
    };
    assert_eq!(full.bytes_max, 10_000);
    socket.flush().unwrap();
    assert_eq!(take(&mut socket, queued).len(), queued);
    assert!(socket.queue(to, &[b"room again"]).is_ok());
}

#[test]
fn a_dual_stack_socket_shows_ipv4_peers_as_such_and_answers_them() {
    let mut server = bind("udp://*:0");
    let port = server.local_address().port();
    for near in ["127.0.0.1", "[::1]"] {
        if near.contains(':') && !has_ipv6("a_dual_stack_socket_shows_ipv4_peers_as_such") {
            continue;
        }
        let uri = endpoint(&format!("udp://{near}:{port}"));
        let mut client = Connection::connect(&uri, PATIENCE).unwrap();
        send(&mut client, &frame(b"question"));
        let (peer, _) = take(&mut server, 1).remove(0);
        assert_eq!(peer.is_ipv4(), !near.contains(':'));
        assert_eq!(server.remote_uri(peer), client.local_uri());
        server.queue(peer, &[&frame(b"answer")]).unwrap();
        server.flush().unwrap();
        assert_eq!(receive(&mut client, 1), [frame(b"answer")]);
    }
}
