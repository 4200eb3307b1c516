//! Many datagrams as one message: who asked for it gets them so, and nobody else notices.

use std::net::{SocketAddr, UdpSocket};

use byname_io::{Connection, DatagramSocket, Limits};

use crate::namespace::Cable;
use crate::*;

fn bind(uri: &str) -> DatagramSocket {
    DatagramSocket::bind(&endpoint(uri)).unwrap()
}

/// Sends `count` frames of `bytes` each, flushing and receiving in turn; all have to arrive.
fn pass(
    sender: &mut DatagramSocket,
    receiver: &mut DatagramSocket,
    to: SocketAddr,
    (count, bytes): (usize, usize),
) {
    let content = |number: usize| [&number.to_be_bytes()[..], &vec![number as u8; bytes]].concat();
    for number in 0..count {
        sender.queue(to, &[&content(number)]).unwrap();
    }
    let mut taken = 0;
    while taken < count {
        sender.flush().unwrap();
        wait_for(receiver, Interest::READ);
        receiver
            .recv_burst(&mut |_, datagram| {
                assert!(datagram == content(taken), "datagram {taken}");
                taken += 1;
            })
            .unwrap();
    }
    assert!(!sender.wants_write());
}

#[test]
fn datagrams_of_one_length_travel_together() {
    for uri in ["udp4://127.0.0.1:0", "udp6://[::1]:0", "udp://*:0"] {
        if !uri.contains('4') && !has_ipv6("datagrams_of_one_length_travel_together") {
            continue;
        }
        let (mut sender, mut receiver) = (bind(uri), bind(uri));
        let port = receiver.local_address().port();
        let host = if uri.starts_with("udp6") { "[::1]" } else { "127.0.0.1" };
        let to = format!("{host}:{port}").parse().unwrap();
        for bytes in [1, 100, 1400, 8000] {
            pass(&mut sender, &mut receiver, to, (500, bytes));
        }
        let (sent, received) = (sender.counters(), receiver.counters());
        assert_eq!((sent.sent, received.received), (2000, 2000));
        assert!(sent.segmented_sends >= 80 && sent.segmented_sends < 600, "{uri}: {sent:?}");
        assert!(received.coalesced_receives >= 80, "{uri}: {received:?}");
        assert_eq!((sent.segmentation_refused, received.receive_overflows), (0, 0));
        assert!(received.receive_buffer_bytes >= 212_992, "{received:?}");
    }
}

#[test]
fn without_segments_each_datagram_is_a_message() {
    let (mut sender, mut receiver) = (bind("udp4://127.0.0.1:0"), bind("udp4://127.0.0.1:0"));
    sender.set_segmentation(false);
    let to = receiver.local_address();
    pass(&mut sender, &mut receiver, to, (200, 1000));
    assert_eq!(sender.counters().segmented_sends, 0);
    assert_eq!(receiver.counters().coalesced_receives, 0);
    sender.set_segmentation(true);
    receiver.set_segmentation(false);
    pass(&mut sender, &mut receiver, to, (200, 1000));
    assert!(sender.counters().segmented_sends > 0);
    assert_eq!(receiver.counters().coalesced_receives, 0);
}

#[test]
fn a_plain_reader_gets_datagrams_one_by_one() {
    let plain = UdpSocket::bind("127.0.0.1:0").unwrap();
    let near = endpoint(&format!("udp://{}", plain.local_addr().unwrap()));
    let mut connection = Connection::connect(&near, PATIENCE).unwrap();
    let lengths = [1200, 1200, 1200, 700, 1200, 1200, 3, 0, 5, 5];
    for length in lengths {
        connection.queue(&[&vec![length as u8; length]]).unwrap();
    }
    connection.flush().unwrap();
    let counters = connection.datagram_counters().unwrap();
    assert_eq!((counters.sent, counters.segmented_sends), (10, 3));
    let mut buffer = [0; 4000];
    for length in lengths {
        let count = plain.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..count], vec![length as u8; length]);
    }
}

#[test]
fn a_coalesced_datagram_over_the_limit_is_dropped_with_its_like_only() {
    let limits = Limits { frame_bytes_max: 100, ..Limits::default() };
    let mut server = DatagramSocket::bind_with(&endpoint("udp4://127.0.0.1:0"), limits).unwrap();
    let mut client = bind("udp4://127.0.0.1:0");
    let to = server.local_address();
    for length in [101, 101, 101, 7, 100, 100, 100] {
        client.queue(to, &[&vec![1; length]]).unwrap();
    }
    client.flush().unwrap();
    assert_eq!(client.counters().segmented_sends, 2);
    let (mut lengths, mut dropped) = (Vec::new(), 0);
    while lengths.len() + dropped < 7 {
        wait_for(&server, Interest::READ);
        let status = server.recv_burst(&mut |_, datagram| lengths.push(datagram.len())).unwrap();
        dropped += status.dropped;
    }
    assert_eq!((lengths, dropped), (vec![7, 100, 100, 100], 3));
    assert_eq!(server.counters().receive_dropped, 3);
}

#[test]
fn one_flush_is_one_slice_so_that_a_slow_reader_has_time() {
    let plain = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut socket = bind("udp4://127.0.0.1:0");
    let to = plain.local_addr().unwrap();
    // 64 at once would not fit the reader's buffer, which is the system's default.
    for _ in 0..64 {
        socket.queue(to, &[&[7; 8300]]).unwrap();
    }
    let (mut buffer, mut received) = ([0; 9000], 0);
    while socket.wants_write() {
        socket.flush().unwrap();
        let sent = socket.counters().sent as usize;
        assert!(sent - received <= 16, "{} in one slice", sent - received);
        while received < sent {
            assert_eq!(plain.recv(&mut buffer).unwrap(), 8300);
            received += 1;
        }
    }
    assert_eq!(received, 64);
}

#[test]
fn a_full_buffer_is_counted_by_whoever_lost() {
    let server = bind("udp4://127.0.0.1:0");
    let mut client = bind("udp4://127.0.0.1:0");
    let lost = |server: &DatagramSocket| server.counters().receive_overflows;
    for _ in 0..10_000 {
        client.queue(server.local_address(), &[&[1; 8000]]).unwrap();
        client.flush().unwrap();
        if lost(&server) > 0 {
            break;
        }
    }
    assert!(lost(&server) > 0);
}

#[test]
fn across_a_cable_segments_fall_back_where_datagrams_exceed_the_mtu() {
    let test = "across_a_cable_segments_fall_back_where_datagrams_exceed_the_mtu";
    let Some(cable) = Cable::new(test, 1500) else { return };
    for (host, near) in [("10.9.0.2", "udp4://*:0"), ("[fd09::2]", "udp6://[::]:0")] {
        let mut sender = cable.at(0, || bind(near));
        let mut receiver = cable.at(1, || bind(near));
        let to = format!("{host}:{}", receiver.local_address().port()).parse().unwrap();
        pass(&mut sender, &mut receiver, to, (300, 1400));
        let before = sender.counters();
        assert!(before.segmented_sends > 5 && before.segmentation_refused == 0, "{before:?}");
        assert!(receiver.counters().coalesced_receives > 0);
        // IP cuts these, which segments do not allow for.
        pass(&mut sender, &mut receiver, to, (30, 8000));
        let after = sender.counters();
        assert!(after.segmentation_refused > 0, "{after:?}");
        assert_eq!((after.segmented_sends, after.send_dropped), (before.segmented_sends, 0));
        // Smaller ones still leave together.
        pass(&mut sender, &mut receiver, to, (300, 1000));
        assert!(sender.counters().segmented_sends > after.segmented_sends);
        assert_eq!(receiver.counters().received, 630);
    }
}

#[test]
fn across_a_cable_with_jumbo_frames_large_datagrams_travel_together() {
    let test = "across_a_cable_with_jumbo_frames_large_datagrams_travel_together";
    let Some(cable) = Cable::new(test, 9000) else { return };
    let mut receiver = cable.at(1, || bind("udp4://10.9.0.2:0"));
    let uri = endpoint(&format!("udp://{}", receiver.local_address()));
    let mut sender = cable.at(0, || Connection::connect(&uri, PATIENCE).unwrap());
    assert!(!sender.is_local());
    let whole = frame(&[3; 8700]);
    for _ in 0..50 {
        sender.queue(&[&whole]).unwrap();
    }
    let mut received = 0;
    while received < 50 {
        sender.flush().unwrap();
        wait_for(&receiver, Interest::READ);
        receiver
            .recv_burst(&mut |_, datagram| {
                assert!(datagram == whole);
                received += 1;
            })
            .unwrap();
    }
    let counters = sender.datagram_counters().unwrap();
    assert_eq!((counters.sent, counters.segmentation_refused), (50, 0));
    assert!((7..=10).contains(&counters.segmented_sends), "{counters:?}");
}
