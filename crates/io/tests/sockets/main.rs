//! Real sockets on this machine, seen from the outside.
// Helpers are part of the test, although clippy only knows functions marked as such.
#![allow(clippy::unwrap_used)]

mod datagram;
mod listener;
mod memif;
mod multicast;
mod namespace;
mod poller;
mod segments;
mod stream;
mod websocket;

use std::io::Write as _;
use std::os::fd::AsFd;
use std::time::Duration;

use byname_io::{
    Connection, Endpoint, FrameError, Interest, IoError, Listener, Poller, RecvStatus, Token,
};

/// Longer than anything takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// The framing of these tests: two bytes of length (of what follows), then that many bytes.
fn framer(bytes: &[u8]) -> Result<Option<usize>, FrameError> {
    match bytes {
        [0xff, 0xff, ..] => Err(FrameError("the forbidden length")),
        [high, low, ..] => Ok(Some(2 + usize::from(u16::from_be_bytes([*high, *low])))),
        _ => Ok(None),
    }
}

/// The same, but silent about a length that it knows before the frame is whole.
fn silent_framer(bytes: &[u8]) -> Result<Option<usize>, FrameError> {
    Ok(framer(bytes)?.filter(|length| *length <= bytes.len()))
}

fn frame(content: &[u8]) -> Vec<u8> {
    let mut bytes = u16::try_from(content.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes
}

/// A frame that says which one it is, of a length that varies.
fn numbered(number: usize) -> Vec<u8> {
    let mut content = number.to_be_bytes().to_vec();
    content.resize(8 + number * 37 % 1500, number as u8);
    frame(&content)
}

fn endpoint(uri: &str) -> Endpoint {
    uri.parse().unwrap()
}

fn wait_for(source: &impl AsFd, interest: Interest) {
    let mut poller = Poller::new().unwrap();
    poller.add(source, Token(0), interest).unwrap();
    let mut events = Vec::new();
    poller.wait(&mut events, Some(PATIENCE)).unwrap();
    assert!(!events.is_empty(), "nothing happened");
}

fn accept(listener: &Listener) -> Connection {
    wait_for(listener, Interest::READ);
    listener.accept().unwrap().expect("a connection waits")
}

/// Two ends of a fresh connection: what connected, and what was accepted.
fn connected(listener: &Listener) -> (Connection, Connection) {
    let client = Connection::connect(listener.local_endpoint(), PATIENCE).unwrap();
    (client, accept(listener))
}

/// Receives until `done` says so of the frames so far and the last status.
fn receive_until(
    connection: &mut Connection,
    done: impl Fn(&[Vec<u8>], &RecvStatus) -> bool,
) -> Result<(Vec<Vec<u8>>, RecvStatus), IoError> {
    let mut frames = Vec::new();
    loop {
        wait_for(connection, Interest::READ);
        let status = connection.recv_burst(framer, &mut |bytes| frames.push(bytes.to_vec()))?;
        if done(&frames, &status) {
            return Ok((frames, status));
        }
        assert!(!status.closed, "closed after {} frames", frames.len());
    }
}

fn receive(connection: &mut Connection, count: usize) -> Vec<Vec<u8>> {
    let (frames, _) = receive_until(connection, |frames, _| frames.len() >= count).unwrap();
    assert_eq!(frames.len(), count);
    frames
}

fn send(connection: &mut Connection, bytes: &[u8]) {
    connection.queue(&[bytes]).unwrap();
    connection.flush().unwrap();
}

/// False, and a note, where the machine has no IPv6.
fn has_ipv6(test: &str) -> bool {
    let has = std::net::UdpSocket::bind("[::1]:0").is_ok();
    if !has {
        // Past the runner's capture, so that `make test` counts it.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: this machine has no ::1");
    }
    has
}
