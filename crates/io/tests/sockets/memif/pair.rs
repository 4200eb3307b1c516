//! Our client and our server.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use byname_io::{
    BindError, ConnectError, Connection, EndpointError, Interest, Limits, Listener, Poller, Token,
};

use super::Place;
use crate::{PATIENCE, endpoint, frame, framer, numbered, receive, receive_until, send, wait_for};

/// Queues `count` frames and keeps waiting as a driver does until all of them are on their way.
fn send_all(connection: &mut Connection, count: usize) {
    for number in 0..count {
        connection.queue(&[&numbered(number)]).unwrap();
    }
    connection.flush().unwrap();
    while connection.wants_write() {
        wait_for(connection, Interest::READ_WRITE);
        connection.recv_burst(framer, &mut |_| panic!("nothing was sent here")).unwrap();
    }
}

#[test]
fn frames_go_both_ways_in_order() {
    let place = Place::new();
    let (mut client, mut server) = place.connected();
    for round in 0..50 {
        let frames: Vec<Vec<u8>> = (0..40).map(|i| numbered(round * 40 + i)).collect();
        for bytes in &frames {
            let (head, tail) = bytes.split_at(bytes.len() / 2);
            client.queue(&[head, tail]).unwrap();
            server.queue(&[bytes]).unwrap();
        }
        client.flush().unwrap();
        server.flush().unwrap();
        assert!(!client.wants_write() && !server.wants_write());
        assert_eq!(receive(&mut server, 40), frames);
        assert_eq!(receive(&mut client, 40), frames);
    }
}

#[test]
fn what_finds_no_room_in_the_ring_goes_when_there_is_some() {
    let place = Place::new();
    let (client, server) = place.connected();
    let expected: Vec<Vec<u8>> = (0..3000).map(numbered).collect();
    for (mut from, mut to) in [(client, server)].into_iter().flat_map(|(a, b)| {
        let (c, d) = place.connected();
        [(a, b), (d, c)]
    }) {
        let sender = std::thread::spawn(move || {
            send_all(&mut from, 3000);
            from
        });
        assert_eq!(receive(&mut to, 3000), expected);
        sender.join().unwrap();
    }
}

#[test]
fn what_waits_is_bounded() {
    let place = Place::new();
    let limits = Limits { send_bytes_max: 10_000, ..Limits::default() };
    let (mut client, mut server) = place.connected_with(place.endpoint(), limits);
    let bytes = frame(&[7; 998]);
    let mut queued = 0;
    while client.queue(&[&bytes]).is_ok() {
        queued += 1;
    }
    // 256 slots, and what fits the limit.
    assert_eq!(queued, 256 + 9);
    assert!(client.queued_bytes() <= 10_000);
    client.flush().unwrap();
    assert!(client.queue(&[&bytes]).is_err());
    assert_eq!(receive(&mut server, 256).len(), 256);
    client.flush().unwrap();
    assert_eq!(receive(&mut server, 9).len(), 9);
    client.queue(&[&bytes]).unwrap();
}

/// Wake-ups in both directions, each side asleep when its turn comes.
#[test]
fn no_wake_up_is_lost() {
    const ROUNDS: usize = 20_000;
    let place = Place::new();
    let (mut client, mut server) = place.connected();
    let echo = std::thread::spawn(move || {
        for _ in 0..ROUNDS {
            let bytes = receive(&mut server, 1).remove(0);
            send(&mut server, &bytes);
        }
        server
    });
    for round in 0..ROUNDS {
        let bytes = numbered(round);
        send(&mut client, &bytes);
        assert_eq!(receive(&mut client, 1), [bytes]);
    }
    echo.join().unwrap();
}

/// Bursts of all sizes, so that receivers fall asleep at any moment.
#[test]
fn a_stream_of_bursts_arrives_whole() {
    const FRAMES: usize = 200_000;
    let place = Place::new();
    let (mut client, mut server) = place.connected();
    let sender = std::thread::spawn(move || {
        let mut sent = 0;
        while sent < FRAMES {
            let burst = (sent * 7919 % 97 + 1).min(FRAMES - sent);
            for number in sent..sent + burst {
                let bytes = frame(&number.to_be_bytes());
                while client.queue(&[&bytes]).is_err() {
                    wait_for(&client, Interest::READ);
                    client.recv_burst(framer, &mut |_| ()).unwrap();
                }
            }
            client.flush().unwrap();
            sent += burst;
        }
        while client.wants_write() {
            wait_for(&client, Interest::READ);
            client.recv_burst(framer, &mut |_| ()).unwrap();
        }
        client
    });
    let mut next = 0usize;
    while next < FRAMES {
        wait_for(&server, Interest::READ);
        let check = &mut |bytes: &[u8]| {
            assert_eq!(bytes[2..], next.to_be_bytes());
            next += 1;
        };
        assert!(!server.recv_burst(framer, check).unwrap().closed);
    }
    sender.join().unwrap();
}

#[test]
fn drafts_are_all_or_nothing_in_both_roles() {
    let place = Place::new();
    let (client, server) = place.connected();
    let write = |mark: u8| {
        move |bytes: &mut [u8]| {
            bytes.copy_from_slice(&frame(&vec![mark; bytes.len() - 2]));
            true
        }
    };
    let (client2, server2) = place.connected();
    for (mut from, mut to) in [(client, server), (server2, client2)] {
        send(&mut from, &frame(b"first"));
        let mut draft = from.draft();
        // More than the ring holds.
        for _ in 0..400 {
            assert!(draft.frame(50, write(1)).unwrap());
        }
        drop(draft);
        let mut draft = from.draft();
        for length in 10..410 {
            assert!(draft.frame(length, write(2)).unwrap());
            assert!(!draft.frame(length, |_| false).unwrap());
        }
        draft.commit();
        assert!(from.wants_write());
        from.flush().unwrap();
        let sender = std::thread::spawn(move || {
            while from.wants_write() {
                wait_for(&from, Interest::READ);
                from.recv_burst(framer, &mut |_| ()).unwrap();
            }
            from
        });
        let got = receive(&mut to, 401);
        assert_eq!(got[0], frame(b"first"));
        for (bytes, length) in got[1..].iter().zip(10usize..) {
            assert_eq!(*bytes, frame(&vec![2; length - 2]));
        }
        assert_eq!(sender.join().unwrap().queued_bytes(), 0);
    }
}

#[test]
fn frames_longer_than_a_buffer_are_dropped_and_counted() {
    let place = Place::new();
    let (mut client, mut server) = place.connected();
    for connection in [&client, &server] {
        assert_eq!(connection.frame_bytes_max(), Some(9216));
    }
    for connection in [&mut client, &mut server] {
        connection.queue(&[&frame(&[1; 9215])]).unwrap();
        connection.queue(&[&frame(&[2; 9214])]).unwrap();
        let mut draft = connection.draft();
        draft.frame(9300, |_| true).unwrap();
        draft.commit();
        connection.queue(&[&frame(b"last")]).unwrap();
        connection.flush().unwrap();
        assert_eq!(connection.send_dropped(), 2);
    }
    let expected = [frame(&[2; 9214]), frame(b"last")];
    assert_eq!(receive(&mut server, 2), expected);
    assert_eq!(receive(&mut client, 2), expected);
}

#[test]
fn what_is_not_exactly_one_frame_is_dropped_and_counted() {
    let place = Place::new();
    let (mut client, mut server) = place.connected();
    for bytes in [&b""[..], b"\x00", b"\x00\x01", b"\x00\x01ab", b"\xff\xff", b"\x00\x01a"] {
        client.queue(&[bytes]).unwrap();
    }
    client.flush().unwrap();
    wait_for(&server, Interest::READ);
    let mut frames = Vec::new();
    let status = server.recv_burst(framer, &mut |bytes| frames.push(bytes.to_vec())).unwrap();
    assert_eq!(frames, [b"\x00\x01a"]);
    assert_eq!((status.frames, status.dropped, status.drained), (1, 5, true));
}

#[test]
fn a_peer_that_leaves_is_noticed_after_its_last_frame() {
    for server_leaves in [false, true] {
        let place = Place::new();
        let (client, server) = place.connected();
        let (mut leaves, mut stays) =
            if server_leaves { (server, client) } else { (client, server) };
        for number in 0..200 {
            leaves.queue(&[&numbered(number)]).unwrap();
        }
        leaves.flush().unwrap();
        drop(leaves);
        let (frames, status) = receive_until(&mut stays, |_, status| status.closed).unwrap();
        assert_eq!(frames.len(), 200);
        assert!(status.drained);
        stays.queue(&[&numbered(1)]).unwrap();
        assert!(stays.flush().is_err());
        // Told again and again, as a level-triggered end.
        wait_for(&stays, Interest::READ);
        assert!(stays.recv_burst(framer, &mut |_| ()).unwrap().closed);
    }
}

#[test]
fn an_idle_connection_is_quiet() {
    let place = Place::new();
    let (mut client, mut server) = place.connected();
    send(&mut client, &numbered(1));
    receive(&mut server, 1);
    send(&mut server, &numbered(2));
    receive(&mut client, 1);
    let mut poller = Poller::new().unwrap();
    for (token, connection) in [&mut client, &mut server].into_iter().enumerate() {
        connection.recv_burst(framer, &mut |_| ()).unwrap();
        poller.add(&*connection, Token(token as u64), Interest::READ_WRITE).unwrap();
    }
    poller.add(&place.listener, Token(2), Interest::READ).unwrap();
    let mut events = Vec::new();
    poller.wait(&mut events, Some(Duration::from_millis(100))).unwrap();
    assert_eq!(events, []);
}

#[test]
fn any_number_of_clients_share_a_socket_and_an_id() {
    let place = Place::new();
    let mut pairs: Vec<_> = (0..8).map(|_| place.connected()).collect();
    for (number, (client, _)) in pairs.iter_mut().enumerate() {
        send(client, &numbered(number));
    }
    for (number, (client, server)) in pairs.iter_mut().enumerate() {
        assert_eq!(receive(server, 1), [numbered(number)]);
        send(server, &numbered(number + 100));
        assert_eq!(receive(client, 1), [numbered(number + 100)]);
    }
}

#[test]
fn both_ends_know_what_they_are() {
    let place = Place::new();
    let path = place.path();
    let uri = format!("memif://{}?id=7&role=client", path.display());
    let (client, server) = place.connected_with(endpoint(&uri), Limits::default());
    assert_eq!(client.remote_uri(), uri);
    assert_eq!(server.local_uri(), format!("memif://{}", path.display()));
    assert!(client.local_uri().starts_with("fd://") && server.remote_uri().starts_with("fd://"));
    for connection in [&client, &server] {
        assert!(connection.is_local() && connection.is_datagram());
        let peer = connection.peer_credentials().unwrap();
        assert_eq!(peer.pid, Some(std::process::id()));
        assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
    }
}

#[test]
fn the_socket_file_is_private_and_nobody_elses() {
    let place = Place::new();
    let path = place.path();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let taken = Listener::bind(&place.endpoint()).unwrap_err();
    let BindError::InUse { owner: Some(owner), .. } = taken else { panic!("{taken}") };
    assert_eq!(owner.pid, std::process::id());
    // Looking who is there does no harm to those who come.
    let (mut client, mut server) = place.connected();
    send(&mut client, &numbered(3));
    assert_eq!(receive(&mut server, 1), [numbered(3)]);
    drop(place);
    assert!(!path.exists());
}

#[test]
fn roles_are_kept_apart() {
    let directory = tempfile::tempdir().unwrap();
    let uri = |role| endpoint(&format!("memif://{}/s?role={role}", directory.path().display()));
    let error = Listener::bind(&uri("client")).unwrap_err();
    assert!(matches!(error, BindError::Endpoint(EndpointError::WrongTransport { .. })), "{error}");
    let error = Connection::connect(&uri("server"), Duration::from_millis(1)).unwrap_err();
    assert!(matches!(error, ConnectError::TimedOut { .. }), "{error}");

    let server = std::thread::spawn({
        let uri = uri("server");
        move || Connection::connect(&uri, PATIENCE).unwrap()
    });
    let mut client = loop {
        match Connection::connect(&uri("client"), PATIENCE) {
            Ok(client) => break client,
            Err(ConnectError::NobodyListens { .. }) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    let mut server = server.join().unwrap();
    send(&mut server, &numbered(9));
    assert_eq!(receive(&mut client, 1), [numbered(9)]);
}
