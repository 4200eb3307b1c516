//! WebSocket: honest peers of both roles, browsers of all origins, and hostile ones.

use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use byname_io::{AllowedOrigins, ConnectError, Connection, ErrorClass, Limits, Listener, Poller};
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::{Bytes, Message, WebSocket, client::IntoClientRequest, http::HeaderValue};

use crate::*;

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: localhost:9696\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

fn listen() -> Listener {
    Listener::bind(&endpoint("ws://127.0.0.1:0")).unwrap()
}

fn dial(listener: &Listener) -> TcpStream {
    let stream = TcpStream::connect(listener.local_address().unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Goes on with handshakes until one is done.
fn accept(listener: &Listener) -> Connection {
    loop {
        wait_for(listener, Interest::READ);
        if let Some(connection) = listener.accept().unwrap() {
            return connection;
        }
    }
}

/// Both ends, connected and accepted at the same time.
fn connected(limits: Limits) -> (Connection, Connection) {
    let mut listener = listen();
    listener.set_limits(limits);
    let uri = listener.local_endpoint().clone();
    let connect = move || Connection::connect_with(&uri, PATIENCE, limits).unwrap();
    let client = std::thread::spawn(connect);
    let server = accept(&listener);
    (client.join().unwrap(), server)
}

/// A foreign client of our listener, such as a browser has.
fn foreign(listener: &Listener) -> (WebSocket<TcpStream>, Connection) {
    let (uri, stream) = (listener.local_endpoint().to_string(), dial(listener));
    let client = std::thread::spawn(move || tungstenite::client(uri, stream).unwrap().0);
    let server = accept(listener);
    (client.join().unwrap(), server)
}

/// Shakes hands by hand; the raw stream behind it.
fn raw(listener: &Listener) -> (TcpStream, Connection) {
    let mut stream = dial(listener);
    stream.write_all(format!("{REQUEST}\r\n").as_bytes()).unwrap();
    let server = accept(listener);
    let mut response = [0; 512];
    let count = stream.read(&mut response).unwrap();
    assert!(response.starts_with(b"HTTP/1.1 101"), "{:?}", &response[..count]);
    (stream, server)
}

/// True if the other side has closed, or does soon.
fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 10]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

/// The end of a connection whose peer misbehaved.
fn end_of(server: &mut Connection) -> IoError {
    receive_until(server, |_, _| false).unwrap_err()
}

#[test]
fn frames_travel_both_ways_between_our_own_ends() {
    let (mut client, mut server) = connected(Limits::default());
    assert!(!client.is_local() && !server.is_local(), "even on loopback");
    assert!(!client.is_datagram() && client.frame_bytes_max().is_none());
    let (at, from) = (server.local_uri(), server.remote_uri());
    assert!(at.starts_with("ws://127.0.0.1:") && from.starts_with("wsclient://127.0.0.1:"));
    assert_eq!((client.local_uri(), client.remote_uri()), (from, at));
    // Lengths on both sides of where the length of the length changes.
    let edges = [0, 123, 124, 8000].map(|length| frame(&vec![3; length]));
    let frames: Vec<_> = (0..300).map(numbered).chain(edges).collect();
    for (from, to) in [(0, 1), (1, 0)] {
        let ends = [&mut client, &mut server];
        for frame in &frames {
            ends[from].queue(&[&frame[..1], &frame[1..]]).unwrap();
        }
        ends[from].flush().unwrap();
        assert_eq!(receive(ends[to], frames.len()), frames);
    }
}

#[test]
fn more_than_the_kernel_takes_waits_and_arrives() {
    let (mut sender, mut receiver) = connected(Limits::default());
    let mut poller = Poller::new().unwrap();
    poller.add(&sender, Token(1), Interest::READ_WRITE).unwrap();
    poller.add(&receiver, Token(2), Interest::READ).unwrap();
    let (mut next, mut received, mut is_full) = (0, 0, false);
    let mut events = Vec::new();
    while received < 40_000 {
        poller.wait(&mut events, Some(PATIENCE)).unwrap();
        assert!(!events.is_empty(), "stuck at {received}");
        for event in &events {
            if event.token == Token(2) {
                receiver
                    .recv_burst(framer, &mut |bytes| {
                        assert!(bytes == numbered(received), "frame {received}");
                        received += 1;
                    })
                    .unwrap();
                continue;
            }
            while next < 40_000 && sender.queue(&[&numbered(next)]).is_ok() {
                next += 1;
            }
            is_full |= sender.queue(&[&[0; 4 << 20]]).is_err();
            sender.flush().unwrap();
        }
        let write = next < 40_000 || sender.wants_write();
        poller.modify(&sender, Token(1), Interest { read: true, write }).unwrap();
    }
    assert!(is_full && !sender.wants_write());
}

#[test]
fn drafts_are_queued_whole_or_not_at_all() {
    let (mut client, mut server) = connected(Limits::default());
    for is_kept in [true, false, true] {
        let mut draft = client.draft();
        for number in 0..3 {
            let frame = numbered(number);
            let write = |bytes: &mut [u8]| {
                bytes.copy_from_slice(&frame);
                number != 1
            };
            assert_eq!(draft.frame(frame.len(), write).unwrap(), number != 1);
        }
        if is_kept {
            draft.commit();
        }
    }
    client.flush().unwrap();
    let one = [numbered(0), numbered(2)];
    assert_eq!(receive(&mut server, 4), [&one[..], &one].concat());
}

#[test]
fn a_foreign_client_is_served_and_its_close_answered() {
    let (mut browser, mut server) = foreign(&listen());
    assert!(browser.get_ref().nodelay().is_ok());
    browser.send(Message::binary(frame(b"question"))).unwrap();
    assert_eq!(receive(&mut server, 1), [frame(b"question")]);
    send(&mut server, &frame(b"answer"));
    assert_eq!(browser.read().unwrap(), Message::binary(frame(b"answer")));
    server.queue(&[&[7; 70_000]]).unwrap();
    server.flush().unwrap();
    assert_eq!(browser.read().unwrap(), Message::binary(vec![7; 70_000]));
    // Not exactly one frame each: dropped, and the connection goes on.
    for bytes in [&b""[..], b"\0", &[frame(b"two"), frame(b"in one")].concat()] {
        browser.send(Message::binary(bytes.to_vec())).unwrap();
    }
    browser.send(Message::Ping(Bytes::from_static(b"there?"))).unwrap();
    browser.close(None).unwrap();
    let mut dropped = 0;
    while dropped < 3 {
        wait_for(&server, Interest::READ);
        let status = server.recv_burst(framer, &mut |_| panic!("no frame")).unwrap();
        dropped += status.dropped;
        assert!(dropped == 3 || !status.closed);
    }
    assert_eq!(browser.read().unwrap(), Message::Pong(Bytes::from_static(b"there?")));
    assert!(matches!(browser.read().unwrap(), Message::Close(_)));
    drop(server);
    assert!(matches!(browser.read(), Err(tungstenite::Error::ConnectionClosed)));
}

#[test]
fn fragments_are_put_together_up_to_the_limit() {
    let limits = Limits { frame_bytes_max: 1000, ..Limits::default() };
    let mut listener = listen();
    listener.set_limits(limits);
    let (mut browser, mut server) = foreign(&listener);
    let whole = frame(&[5; 998]);
    let fragment = |bytes: &[u8], opcode, is_last| {
        Message::Frame(Frame::message(bytes.to_vec(), OpCode::Data(opcode), is_last))
    };
    browser.write(fragment(&whole[..300], Data::Binary, false)).unwrap();
    browser.write(Message::Ping(Bytes::new())).unwrap();
    browser.write(fragment(&whole[300..], Data::Continue, true)).unwrap();
    browser.flush().unwrap();
    assert_eq!(receive(&mut server, 1), std::slice::from_ref(&whole));
    browser.write(fragment(&whole, Data::Binary, false)).unwrap();
    for _ in 0..100 {
        browser.write(fragment(b"", Data::Continue, false)).unwrap();
    }
    browser.write(fragment(b"x", Data::Continue, true)).unwrap();
    browser.flush().unwrap();
    let error = end_of(&mut server);
    assert!(matches!(error, IoError::FrameTooLarge { length: 1001, max: 1000 }), "{error}");
}

#[test]
fn what_is_not_ours_to_understand_ends_the_connection() {
    // An oversized frame by its length alone, unmasked bytes, text, a reserved opcode, an
    // oversized ping, a fragment of nothing, compression nobody agreed on.
    for (bytes, expected) in [
        (&b"\x82\xff\0\0\0\0\xff\xff\xff\xff\0\0\0\0"[..], "frame of at least 4294967295 bytes"),
        (b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", "frame of at least"),
        (b"\x82\x03\0\x01x", "unmasked"),
        (b"\x81\x82\0\0\0\0hi", "text"),
        (b"\x83\x80\0\0\0\0", "not WebSocket"),
        (b"\x89\xfe\0\x7e\0\0\0\0", "not WebSocket"),
        (b"\x80\x80\0\0\0\0", "not WebSocket"),
        (b"\xc2\x80\0\0\0\0", "not WebSocket"),
    ] {
        let (mut stream, mut server) = raw(&listen());
        stream.write_all(bytes).unwrap();
        stream.write_all(&[0; 200]).unwrap();
        let error = end_of(&mut server);
        assert!(error.to_string().contains(expected), "{bytes:?}: {error}");
        assert_eq!(error.class(), ErrorClass::Corrupt);
    }
}

#[test]
fn an_end_without_farewell_is_an_end() {
    let (stream, mut server) = raw(&listen());
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let (frames, status) = receive_until(&mut server, |_, status| status.closed).unwrap();
    assert!(frames.is_empty() && status.closed);
    // Half a frame, and gone.
    let (mut stream, mut server) = raw(&listen());
    stream.write_all(b"\x82\x85\0\0\0\0he").unwrap();
    drop(stream);
    assert!(receive_until(&mut server, |_, status| status.closed).is_ok());
}

#[test]
fn pings_nobody_reads_the_answers_of_take_no_memory() {
    let (mut stream, mut server) = raw(&listen());
    stream.set_nonblocking(true).unwrap();
    // A ping of 125 bytes, masked with zeroes; its answers are as long.
    let pings = [b"\x89\xfd\0\0\0\0".to_vec(), vec![0; 125]].concat().repeat(500);
    let mut sent_bytes = 0;
    for _ in 0..400 {
        sent_bytes += stream.write(&pings).unwrap_or(0);
        server.recv_burst(framer, &mut |_| panic!("no frame")).unwrap();
        assert!(server.queued_bytes() <= 128 << 10, "{}", server.queued_bytes());
    }
    assert!(sent_bytes > 1 << 20);
}

#[test]
fn silent_peers_are_pinged_and_then_given_up() {
    const INTERVAL_NS: u64 = 10_000_000_000;
    let (mut browser, mut server) = foreign(&listen());
    assert_eq!(server.tick_due_ns(), Some(0));
    let mut now_ns = 1;
    server.tick(now_ns).unwrap();
    assert_eq!(server.tick_due_ns(), Some(now_ns + INTERVAL_NS));
    assert_eq!(browser.read().unwrap(), Message::Ping(Bytes::new()));
    server.tick(now_ns + INTERVAL_NS - 1).unwrap();
    for _ in 0..10 {
        now_ns += INTERVAL_NS;
        server.tick(now_ns).unwrap();
        assert_eq!(browser.read().unwrap(), Message::Ping(Bytes::new()));
        browser.flush().unwrap();
        wait_for(&server, Interest::READ);
        server.recv_burst(framer, &mut |_| panic!("only an answer to the ping")).unwrap();
    }
    let mut is_lost = false;
    for _ in 0..4 {
        now_ns += INTERVAL_NS;
        is_lost = server.tick(now_ns).is_err();
    }
    assert!(is_lost, "nothing came for thirty seconds");
    let (stream, _) = Connection::pair().unwrap();
    assert_eq!(stream.tick_due_ns(), None);
}

/// Status that a browser showing a page of `origin` is answered.
fn answer(listener: &Listener, origin: Option<&str>) -> u16 {
    let (uri, stream) = (listener.local_endpoint().to_string(), dial(listener));
    let mut request = uri.into_client_request().unwrap();
    if let Some(origin) = origin {
        request.headers_mut().insert("Origin", HeaderValue::from_str(origin).unwrap());
    }
    let client = std::thread::spawn(move || match tungstenite::client(request, stream) {
        Ok((_, response)) => response.status().as_u16(),
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
            response.status().as_u16()
        }
        Err(error) => panic!("{error}"),
    });
    while !client.is_finished() {
        let _ = listener.accept().unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    client.join().unwrap()
}

#[test]
fn pages_of_other_sites_may_connect_only_if_configured() {
    let mut listener = listen();
    let page = "https://play.example";
    assert_eq!(answer(&listener, None), 101);
    assert_eq!(answer(&listener, Some("http://127.0.0.1:8080")), 101);
    for stranger in [page, "http://localhost", "null", "http://127.0.0.1.evil.example"] {
        assert_eq!(answer(&listener, Some(stranger)), 403, "{stranger}");
    }
    listener.set_allowed_origins(AllowedOrigins::SameHostAnd(vec![page.into()]));
    assert_eq!(answer(&listener, Some(page)), 101);
    assert_eq!(answer(&listener, Some("http://play.example")), 403);
    listener.set_allowed_origins(AllowedOrigins::Any);
    assert_eq!(answer(&listener, Some("null")), 101);
}

#[test]
fn those_who_never_finish_a_handshake_keep_nobody_out() {
    let listener = listen();
    let mut slow = Vec::new();
    for number in 0..200 {
        let mut stream = dial(&listener);
        // Different stages: nothing, half a line, all but the end.
        stream.write_all(&REQUEST.as_bytes()[..number % REQUEST.len()]).unwrap();
        slow.push(stream);
        while number % 10 == 0 && listener.accept().unwrap().is_some() {}
    }
    let (mut browser, mut server) = foreign(&listener);
    browser.send(Message::binary(frame(b"here"))).unwrap();
    assert_eq!(receive(&mut server, 1), [frame(b"here")]);
    // The first had to give way.
    assert!(is_closed(&mut slow[0]));
}

#[test]
fn a_handshake_has_an_end_in_time_and_size() {
    let listener = listen();
    let mut slow = dial(&listener);
    slow.write_all(b"GET ").unwrap();
    let mut long = dial(&listener);
    let padding = format!("{REQUEST}Cookie: {}\r\n", "x".repeat(20_000));
    long.write_all(padding.as_bytes()).unwrap();
    let mut garbage = dial(&listener);
    garbage.write_all(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n").unwrap();
    let mut plain = dial(&listener);
    plain.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut poller = Poller::new().unwrap();
    poller.add(&listener, Token(0), Interest::READ).unwrap();
    let began = Instant::now();
    let (mut events, mut buffer) = (Vec::new(), [0; 10]);
    slow.set_nonblocking(true).unwrap();
    // Nothing but the listener's own descriptor says that the time is over.
    loop {
        poller.wait(&mut events, Some(PATIENCE)).unwrap();
        assert!(!events.is_empty() && began.elapsed() < PATIENCE, "it waits for ever");
        assert!(listener.accept().unwrap().is_none());
        match slow.read(&mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => break,
        }
    }
    for stream in [&mut long, &mut garbage, &mut plain] {
        assert!(is_closed(stream));
    }
}

#[test]
fn connecting_to_what_is_no_websocket_says_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = endpoint(&format!("ws://{}", listener.local_addr().unwrap()));
    let limit = Duration::from_millis(50);
    let error = Connection::connect(&uri, limit).unwrap_err();
    assert!(matches!(error, ConnectError::TimedOut { .. }), "{error}");
    let answer = std::thread::spawn(move || {
        for stream in listener.incoming().skip(1).take(1) {
            stream.unwrap().write_all(b"HTTP/1.1 404 Not Found\r\n\r\n").unwrap();
        }
    });
    let error = Connection::connect(&uri, PATIENCE).unwrap_err();
    assert!(error.to_string().contains("404"), "{error}");
    answer.join().unwrap();
}
