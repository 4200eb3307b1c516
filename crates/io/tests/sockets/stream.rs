//! Frames over Unix and TCP streams.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use byname_io::{
    ConnectError, Connection, Endpoint, ErrorClass, Interest, IoError, Limits, Listener, Poller,
    Token,
};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use crate::*;

/// A listener, a plain client whose bytes we control, and the connection under test.
fn with_plain_client() -> (tempfile::TempDir, UnixStream, Connection) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let listener = Listener::bind(&Endpoint::Unix(path.clone())).unwrap();
    let client = UnixStream::connect(path).unwrap();
    let connection = accept(&listener);
    (directory, client, connection)
}

#[test]
fn frames_arrive_whole_wherever_the_stream_is_cut() {
    let (_directory, mut client, mut connection) = with_plain_client();
    let expected = [frame(b"first"), frame(b""), frame(b"the third one")];
    let stream = expected.concat();
    for cut in 0..=stream.len() {
        client.write_all(&stream[..cut]).unwrap();
        let mut frames = Vec::new();
        if cut > 0 {
            wait_for(&connection, Interest::READ);
            let early = connection.recv_burst(framer, &mut |f| frames.push(f.to_vec())).unwrap();
            assert_eq!(early.frames, frames.len());
            assert!(early.drained && !early.closed);
        }
        client.write_all(&stream[cut..]).unwrap();
        if frames.len() < expected.len() {
            let left = expected.len() - frames.len();
            frames.extend(receive(&mut connection, left));
        }
        assert_eq!(frames, expected, "cut at {cut}");
    }
}

#[test]
fn frames_arrive_whole_byte_by_byte() {
    let (_directory, mut client, mut connection) = with_plain_client();
    let mut frames = Vec::new();
    for byte in (0..20).flat_map(numbered) {
        client.write_all(&[byte]).unwrap();
        wait_for(&connection, Interest::READ);
        connection.recv_burst(silent_framer, &mut |f| frames.push(f.to_vec())).unwrap();
    }
    assert_eq!(frames, (0..20).map(numbered).collect::<Vec<_>>());
}

/// Sends many more bytes than any buffer holds, obeying back-pressure, through one poller.
fn exchange(mut sender: Connection, mut receiver: Connection, count: usize) -> usize {
    let mut poller = Poller::new().unwrap();
    poller.add(&sender, Token(1), Interest::READ_WRITE).unwrap();
    poller.add(&receiver, Token(2), Interest::READ).unwrap();
    let (mut next, mut received, mut largest_burst) = (0, 0, 0);
    let mut events = Vec::new();
    while received < count {
        poller.wait(&mut events, Some(PATIENCE)).unwrap();
        assert!(!events.is_empty(), "stuck after {received} of {count}");
        while next < count && sender.queue(&[&numbered(next)]).is_ok() {
            next += 1;
        }
        sender.flush().unwrap();
        if next == count && !sender.wants_write() {
            poller.modify(&sender, Token(1), Interest::READ).unwrap();
        }
        if events.iter().any(|event| event.token == Token(2)) {
            let status = receiver
                .recv_burst(framer, &mut |bytes| {
                    assert_eq!(bytes, numbered(received));
                    received += 1;
                })
                .unwrap();
            largest_burst = largest_burst.max(status.frames);
        }
    }
    assert_eq!((received, next), (count, count));
    largest_burst
}

#[test]
fn thousands_of_frames_come_in_few_bursts() {
    let (one, other) = Connection::pair().unwrap();
    let largest = exchange(one, other, 20_000);
    assert!(largest > 100, "the largest burst had {largest} frames");
}

#[test]
fn thousands_of_frames_come_over_tcp() {
    let listener = Listener::bind(&endpoint("tcp4://127.0.0.1:0")).unwrap();
    let (client, server) = connected(&listener);
    exchange(client, server, 20_000);
}

#[test]
fn one_call_hands_out_every_frame_that_waits() {
    let (mut one, mut other) = Connection::pair().unwrap();
    for number in 0..3000 {
        one.queue(&[&frame(&(number as u16).to_be_bytes())]).unwrap();
    }
    one.flush().unwrap();
    assert!(!one.wants_write());
    let mut next = 0u16;
    let status = other
        .recv_burst(framer, &mut |bytes| {
            assert_eq!(bytes[2..], next.to_be_bytes());
            next += 1;
        })
        .unwrap();
    assert_eq!((status.frames, status.drained, status.closed), (3000, true, false));
}

#[test]
fn a_burst_of_short_frames_is_bounded_and_the_rest_follows() {
    let limits = Limits { burst_frames_max: 100, ..Limits::default() };
    let (mut one, mut other) = Connection::pair_with(limits).unwrap();
    for number in 0..3000 {
        one.queue(&[&frame(&(number as u16).to_be_bytes())]).unwrap();
    }
    one.flush().unwrap();
    let (mut next, mut bursts) = (0u16, Vec::new());
    loop {
        let status = other
            .recv_burst(framer, &mut |bytes| {
                assert_eq!(bytes[2..], next.to_be_bytes());
                next += 1;
            })
            .unwrap();
        bursts.push(status.frames);
        if status.drained {
            break;
        }
    }
    assert_eq!(next, 3000);
    // Of the first nobody knows yet how long its frames are.
    assert!(bursts[0] <= 1600 && bursts[1..].iter().all(|frames| *frames <= 100), "{bursts:?}");
}

#[test]
fn a_full_queue_refuses_whole_frames_and_recovers() {
    let limits = Limits { send_bytes_max: 100_000, ..Limits::default() };
    let (mut one, mut other) = Connection::pair_with(limits).unwrap();
    let content = vec![7u8; 5000];
    let header = 5000u16.to_be_bytes();
    let mut queued = 0;
    // Until neither our buffer nor the kernel's takes more.
    let full = loop {
        let waiting = one.queued_bytes();
        match one.queue(&[&header, &content]) {
            Ok(()) => queued += 1,
            Err(full) => {
                assert_eq!(one.queued_bytes(), waiting, "nothing of a refused frame is kept");
                one.flush().unwrap();
                if one.queued_bytes() + 5002 > 100_000 {
                    break full;
                }
            }
        }
    };
    assert_eq!((full.frame_bytes, full.bytes_max), (5002, 100_000));
    assert!(full.queued_bytes + 5002 > 100_000);
    assert!(one.wants_write() && queued > 20);
    let mut received = 0;
    while received < queued {
        wait_for(&other, Interest::READ);
        let mut whole = |bytes: &[u8]| {
            received += 1;
            assert_eq!(bytes[2..], content);
        };
        other.recv_burst(framer, &mut whole).unwrap();
        one.flush().unwrap();
    }
    assert!(!one.wants_write());
    assert!(one.queue(&[&header, &content]).is_ok());
}

#[test]
fn a_frame_cut_off_by_the_end_is_told_from_a_clean_end() {
    for (sent, expected_frames, partial) in [
        (frame(b"whole"), 1, 0),
        (frame(b"whole")[..6].to_vec(), 0, 6),
        ([frame(b"whole"), frame(b"cut")[..1].to_vec()].concat(), 1, 1),
        (Vec::new(), 0, 0),
    ] {
        let (_directory, mut client, mut connection) = with_plain_client();
        client.write_all(&sent).unwrap();
        drop(client);
        let (frames, status) = receive_until(&mut connection, |_, s| s.closed).unwrap();
        assert_eq!((frames.len(), status.partial_bytes), (expected_frames, partial));
    }
}

#[test]
fn the_other_direction_survives_a_half_close() {
    let (mut one, mut other) = Connection::pair().unwrap();
    send(&mut one, &frame(b"question"));
    one.shutdown_write().unwrap();
    let (frames, _) = receive_until(&mut other, |_, status| status.closed).unwrap();
    assert_eq!(frames, [frame(b"question")]);
    send(&mut other, &frame(b"answer"));
    assert_eq!(receive(&mut one, 1), [frame(b"answer")]);
}

#[test]
fn a_frame_over_the_limit_is_refused_and_those_before_it_are_not() {
    let limits = Limits { frame_bytes_max: 100, ..Limits::default() };
    for framer in [framer, silent_framer] {
        let (mut one, mut other) = Connection::pair_with(limits).unwrap();
        let stream = [frame(&[1; 98]), frame(&[2; 99])].concat();
        send(&mut one, &stream[..100]);
        send(&mut one, &stream[100..]);
        let mut frames = Vec::new();
        let error = other.recv_burst(framer, &mut |f| frames.push(f.to_vec())).unwrap_err();
        assert_eq!(frames, [frame(&[1; 98])]);
        assert_eq!(error.class(), ErrorClass::Corrupt);
        assert!(matches!(error, IoError::FrameTooLarge { length: 101, max: 100 }), "{error}");
    }
}

#[test]
fn an_endless_frame_is_refused_at_the_limit() {
    let limits = Limits { frame_bytes_max: 1000, ..Limits::default() };
    let (mut one, mut other) = Connection::pair_with(limits).unwrap();
    send(&mut one, &[0x41; 999]);
    let mut nothing = |_: &[u8]| panic!("no frame was sent");
    assert_eq!(other.recv_burst(|_| Ok(None), &mut nothing).unwrap().frames, 0);
    send(&mut one, &[0x41; 1]);
    let error = other.recv_burst(|_| Ok(None), &mut nothing).unwrap_err();
    assert!(matches!(error, IoError::FrameTooLarge { length: 1001, max: 1000 }), "{error}");
}

#[test]
fn what_is_no_frame_is_a_typed_error() {
    let (mut one, mut other) = Connection::pair().unwrap();
    send(&mut one, &[frame(b"good"), vec![0xff; 2]].concat());
    let mut frames = 0;
    let error = other.recv_burst(framer, &mut |_| frames += 1).unwrap_err();
    assert!(matches!(error, IoError::Frame(_)), "{error}");
    assert_eq!((frames, error.class()), (1, ErrorClass::Corrupt));

    send(&mut other, b"x");
    let error = one.recv_burst(|_| Ok(Some(0)), &mut |_| {}).unwrap_err();
    assert!(matches!(error, IoError::Frame(_)), "a framer that does not advance: {error}");
}

#[test]
fn sending_to_a_peer_that_left_is_an_error_and_not_the_end() {
    let (mut one, other) = Connection::pair().unwrap();
    drop(other);
    one.queue(&[&frame(b"anybody?")]).unwrap();
    let error = one.flush().unwrap_err();
    assert!(matches!(error, IoError::Disconnected { .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::Retryable);
}

#[test]
fn a_reset_is_an_error_and_not_an_end() {
    let listener = Listener::bind(&endpoint("tcp4://127.0.0.1:0")).unwrap();
    let client = TcpStream::connect(listener.local_address().unwrap()).unwrap();
    let mut connection = accept(&listener);
    SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    wait_for(&connection, Interest::READ);
    let error = connection.recv_burst(framer, &mut |_| {}).unwrap_err();
    assert!(matches!(error, IoError::Disconnected { .. }), "{error}");
}

#[test]
fn tcp_ends_know_their_addresses_and_do_not_delay() {
    for (uri, scheme) in
        [("tcp://127.0.0.1:0", "tcp4://127.0.0.1:"), ("tcp6://[::1]:0", "tcp6://[::1]:")]
    {
        if scheme.starts_with("tcp6") && !has_ipv6("tcp_ends_know_their_addresses") {
            continue;
        }
        let listener = Listener::bind(&endpoint(uri)).unwrap();
        let (client, server) = connected(&listener);
        let port = listener.local_address().unwrap().port();
        assert_eq!(client.remote_uri(), format!("{scheme}{port}"));
        assert_eq!(client.local_uri(), server.remote_uri());
        assert_eq!(server.local_uri(), client.remote_uri());
        for end in [&client, &server] {
            assert!(end.is_local() && !end.is_datagram());
            assert!(SockRef::from(end).tcp_nodelay().unwrap());
            assert!(SockRef::from(end).keepalive().unwrap());
            assert!(SockRef::from(end).tcp_user_timeout().unwrap().is_some());
            assert!(SockRef::from(end).nonblocking().unwrap());
            assert_eq!(end.peer_credentials(), None);
        }
    }
}

#[test]
fn unix_ends_know_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let uri = format!("unix://{}/s", directory.path().display());
    let listener = Listener::bind(&endpoint(&uri)).unwrap();
    let (client, server) = connected(&listener);
    assert_eq!((client.remote_uri(), server.local_uri()), (uri.as_str(), uri.as_str()));
    assert!(client.local_uri().starts_with("fd://"));
    assert!(server.remote_uri().starts_with("fd://"));
    let (one, other) = Connection::pair().unwrap();
    for end in [&client, &server, &one, &other] {
        let peer = end.peer_credentials().expect("a Unix socket");
        assert_eq!(peer.pid, Some(std::process::id()));
        assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
        assert!(end.is_local());
    }
}

#[test]
fn connecting_where_nobody_listens_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let free = Listener::bind(&endpoint("tcp4://127.0.0.1:0")).unwrap().local_endpoint().clone();
    for nobody in [Endpoint::Unix(directory.path().join("none")), free] {
        let error = Connection::connect(&nobody, PATIENCE).unwrap_err();
        assert!(matches!(error, ConnectError::NobodyListens { .. }), "{error}");
        assert!(error.to_string().contains(&nobody.to_string()), "{error}");
        assert_eq!(error.class(), ErrorClass::Retryable);
    }
    let long = Endpoint::Unix(directory.path().join("x".repeat(200)));
    let error = Connection::connect(&long, PATIENCE).unwrap_err();
    assert!(matches!(error, ConnectError::Endpoint(_)), "{error}");
}

#[test]
fn connecting_to_a_listener_that_never_accepts_times_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("busy");
    let busy = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    busy.bind(&SockAddr::unix(&path).unwrap()).unwrap();
    busy.listen(0).unwrap();
    let waiting = UnixStream::connect(&path).unwrap();
    let error = Connection::connect(&Endpoint::Unix(path), Duration::from_millis(20)).unwrap_err();
    assert!(matches!(error, ConnectError::TimedOut { .. }), "{error}");
    drop(waiting);
}

#[test]
fn a_plain_client_reads_what_was_queued_in_parts() {
    let (_directory, mut client, mut connection) = with_plain_client();
    connection.queue(&[b"\0\x05", b"he", b"", b"llo"]).unwrap();
    connection.queue(&[&frame(b"!")]).unwrap();
    assert!(connection.wants_write());
    connection.flush().unwrap();
    drop(connection);
    let mut all = Vec::new();
    client.read_to_end(&mut all).unwrap();
    assert_eq!(all, [frame(b"hello"), frame(b"!")].concat());
}

#[test]
fn a_draft_is_queued_whole_or_not_at_all() {
    let (mut sender, mut receiver) = Connection::pair().unwrap();
    let mut expected = Vec::new();
    for round in (0..300).step_by(3) {
        sender.queue(&[&numbered(round)]).unwrap();
        let queued_bytes = sender.queued_bytes();
        let mut draft = sender.draft();
        let write = |frame: &mut [u8], number| frame.copy_from_slice(&numbered(number));
        let length = numbered(round + 1).len();
        draft
            .frame(length, |frame| {
                write(frame, round + 1);
                true
            })
            .unwrap();
        let is_written = draft.frame(50, |frame| {
            frame.fill(0xEE);
            false
        });
        assert!(!is_written.unwrap());
        let length = numbered(round + 2).len();
        draft
            .frame(length, |frame| {
                write(frame, round + 2);
                true
            })
            .unwrap();
        expected.push(numbered(round));
        if round % 2 == 0 {
            draft.commit();
            expected.extend([numbered(round + 1), numbered(round + 2)]);
        } else {
            drop(draft);
            assert_eq!(sender.queued_bytes(), queued_bytes);
        }
        if round % 5 == 0 {
            sender.flush().unwrap();
        }
    }
    sender.flush().unwrap();
    assert_eq!(receive(&mut receiver, expected.len()), expected);
}

#[test]
fn a_draft_keeps_within_the_send_buffer() {
    let limits = Limits { send_bytes_max: 100, ..Limits::default() };
    let (mut sender, mut receiver) = Connection::pair_with(limits).unwrap();
    let mut draft = sender.draft();
    let first = frame(&[1; 60]);
    let is_written = draft.frame(first.len(), |bytes| {
        bytes.copy_from_slice(&first);
        true
    });
    assert!(is_written.unwrap());
    let full = draft.frame(60, |_| panic!("there is no room to write to")).unwrap_err();
    assert_eq!((full.frame_bytes, full.queued_bytes, full.bytes_max), (60, first.len(), 100));
    draft.commit();
    sender.flush().unwrap();
    assert_eq!(receive(&mut receiver, 1), [first]);
}

#[test]
fn frames_sent_from_where_they_lie_arrive_whole_behind_what_was_queued() {
    let limits = Limits { send_bytes_max: 300_000, ..Limits::default() };
    let (mut sender, mut receiver) = Connection::pair_with(limits).unwrap();
    let frames: Vec<Vec<u8>> = (0..1000).map(|n| frame(&vec![n as u8; 5000 + n])).collect();
    let mut expected = vec![numbered(7)];
    sender.queue(&[&numbered(7)]).unwrap();
    let halves: Vec<[&[u8]; 2]> = frames.iter().map(|f| [&f[..3], &f[3..]]).collect();
    let lost = sender.send_frames(&halves).unwrap();
    assert!(lost > 900, "behind a queued frame only the queue is used: {lost}");
    expected.extend_from_slice(&frames[..1000 - lost]);
    assert_eq!(receive_while_flushing(&mut sender, &mut receiver, expected.len()), expected);

    let lost = sender.send_frames(&halves).unwrap();
    assert!(lost > 0 && lost < 1000, "the kernel and the queue take some: {lost}");
    assert!(sender.wants_write() && sender.queued_bytes() <= 310_000);
    let expected = &frames[..1000 - lost];
    assert_eq!(receive_while_flushing(&mut sender, &mut receiver, expected.len()), expected);
}

fn receive_while_flushing(
    sender: &mut Connection,
    receiver: &mut Connection,
    count: usize,
) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while frames.len() < count {
        sender.flush().unwrap();
        receiver.recv_burst(framer, &mut |f| frames.push(f.to_vec())).unwrap();
    }
    frames
}

#[test]
fn a_pair_in_memory_carries_drafts_both_ways_and_says_when_one_end_is_gone() {
    let (mut one, mut other) = Connection::pair_in_memory().unwrap();
    for (from, to) in [(true, false), (false, true)] {
        let (sender, receiver) = if from { (&mut one, &mut other) } else { (&mut other, &mut one) };
        let mut draft = sender.draft();
        assert!(
            draft
                .frame(3, |frame| {
                    frame.copy_from_slice(&[2, 7, 9]);
                    true
                })
                .unwrap()
        );
        draft.commit();
        sender.flush().unwrap();
        let mut got = Vec::new();
        receiver.recv_burst(|_| Ok(Some(3)), &mut |frame| got.push(frame.to_vec())).unwrap();
        assert_eq!(got, [[2, 7, 9]]);
        assert!(to != from);
    }
    drop(one);
    let status = other.recv_burst(|_| Ok(Some(3)), &mut |_| {}).unwrap();
    assert!(status.closed);
}

#[test]
fn what_is_held_is_taken_out_one_by_one_and_a_draft_that_is_dropped_was_never_there() {
    let mut held = Connection::held().unwrap();
    held.queue(&[&[1], &[10]]).unwrap();
    let mut draft = held.draft();
    let (lent, kept) = draft
        .frames(&[2, 2], |frames| {
            frames[0].copy_from_slice(&[2, 20]);
            1
        })
        .unwrap();
    assert_eq!((lent, kept), (2, 1));
    draft.commit();
    let mut dropped = held.draft();
    dropped.frame(2, |_| true).unwrap();
    drop(dropped);
    let mut got = Vec::new();
    while held.take_held(|_| Ok(Some(2)), &mut |frame| got.push(frame.to_vec())).unwrap() {}
    assert_eq!(got, [[1, 10], [2, 20]]);
    assert!(!held.wants_write());
}
