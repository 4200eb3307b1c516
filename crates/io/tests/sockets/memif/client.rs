//! Our client, and servers that break every rule.

use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use byname_io::{ConnectError, Connection, IoError, MemifError};

use super::raw::{
    ACK, ADD_REGION, ADD_RING, CONNECT, CONNECTED, Control, DISCONNECT, Descriptor, HELLO, INIT,
    Memory, accept_at, listen_at, message, new_eventfd,
};
use crate::{PATIENCE, endpoint, frame, framer, receive, send};
use std::os::fd::{AsFd, OwnedFd};

/// Where our client puts the ring to it, and the buffers of both.
const TO_SERVER: u64 = 0;
const TO_CLIENT: u64 = 128 + 256 * 16;

fn connecting(path: &Path) -> JoinHandle<Result<Connection, ConnectError>> {
    let endpoint = endpoint(&format!("memif://{}", path.display()));
    thread::spawn(move || Connection::connect(&endpoint, PATIENCE))
}

fn hello(version: u16, log2: u8) -> Vec<u8> {
    let version = version.to_le_bytes();
    message(HELLO, &[&[0; 32], &version, &version, &[0; 6], &[log2]])
}

/// A server in the hands of a test, with what the client offered.
struct RawServer {
    control: Control,
    memory: Memory,
    wakes_server: OwnedFd,
    wakes_client: OwnedFd,
}

/// Answers a client as a good server does; `before_connected` may still spoil things.
fn serve(control: Control, log2: u8, before_connected: impl FnOnce(&Memory)) -> RawServer {
    control.send(&hello(0x0200, log2), &[]);
    let (fields, _) = control.expect(INIT);
    assert_eq!(fields[..7], [0, 2, 0, 0, 0, 0, 0]);
    control.send(&message(ACK, &[]), &[]);
    let (fields, mut fds) = control.expect(ADD_REGION);
    assert_eq!(fields[..2], [0, 0]);
    let memory = Memory(fds.remove(0));
    control.send(&message(ACK, &[]), &[]);
    let ring = |flags: u8| {
        let (fields, mut fds) = control.expect(ADD_RING);
        assert_eq!(fields[..6], [flags, 0, 0, 0, 0, 0]);
        assert_eq!(fields[10], log2.min(8));
        control.send(&message(ACK, &[]), &[]);
        fds.remove(0)
    };
    let (wakes_server, wakes_client) = (ring(1), ring(0));
    control.expect(CONNECT);
    before_connected(&memory);
    control.send(&message(CONNECTED, &[]), &[]);
    RawServer { control, memory, wakes_server, wakes_client }
}

/// Our client and a raw server, connected.
fn established(before_connected: impl FnOnce(&Memory)) -> (Connection, RawServer) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = listen_at(&path);
    let client = connecting(&path);
    let server = serve(accept_at(&listener), 14, before_connected);
    (client.join().unwrap().unwrap(), server)
}

impl RawServer {
    /// Writes a frame into a slot of the ring to the client, without showing it.
    fn fill(&self, slot: u64, bytes: &[u8]) {
        let Descriptor { region, length, offset, .. } = self.memory.descriptor(TO_CLIENT, slot);
        assert!(length as usize >= bytes.len(), "{length}");
        self.memory.put(offset.into(), bytes);
        let filled = Descriptor::new(region, bytes.len() as u32, offset);
        self.memory.put_descriptor(TO_CLIENT, slot, filled);
    }

    fn show(&self, index: u16) {
        self.memory.put_tail(TO_CLIENT, index);
        rustix::io::write(&self.wakes_client, &1u64.to_ne_bytes()).unwrap();
    }
}

fn refusal(behave: impl FnOnce(Control)) -> ConnectError {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = listen_at(&path);
    let client = connecting(&path);
    behave(accept_at(&listener));
    client.join().unwrap().unwrap_err()
}

#[test]
fn a_server_of_another_make_is_understood() {
    let (mut client, server) = established(|_| ());
    server.fill(0, &frame(b"hello"));
    server.show(1);
    assert_eq!(receive(&mut client, 1), [frame(b"hello")]);
    send(&mut client, &frame(b"hello server"));
    let Descriptor { flags, region, length, offset } = server.memory.descriptor(TO_SERVER, 0);
    assert_eq!((flags, region, length), (0, 0, 14));
    assert_eq!(
        server.memory.get(offset.into()),
        *frame(b"hello server").first_chunk::<14>().unwrap()
    );
    let mut count = [0; 8];
    assert_eq!(rustix::io::read(&server.wakes_server, &mut count), Ok(8), "nobody woke the server");
    // Buffers come back empty, with their whole length.
    assert_eq!(server.memory.descriptor(TO_CLIENT, 0).length, 9216);
    assert_eq!(u16::from_le_bytes(server.memory.get(TO_CLIENT + 6)), 257);
}

/// DPDK does so, after the client has offered its buffers.
#[test]
fn a_server_may_set_all_indices_to_zero_when_it_connects() {
    let (mut client, server) = established(|memory| {
        for ring in [TO_SERVER, TO_CLIENT] {
            memory.put_head(ring, 0);
            memory.put_tail(ring, 0);
        }
    });
    assert_eq!(u16::from_le_bytes(server.memory.get(TO_CLIENT + 6)), 256);
    server.fill(0, &frame(b"hello"));
    server.show(1);
    assert_eq!(receive(&mut client, 1), [frame(b"hello")]);
}

#[test]
fn smaller_rings_are_used_where_the_server_wants_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = listen_at(&path);
    let client = connecting(&path);
    let _server = serve(accept_at(&listener), 2, |_| ());
    let mut client = client.join().unwrap().unwrap();
    for _ in 0..4 {
        client.queue(&[&frame(b"fits")]).unwrap();
    }
    client.flush().unwrap();
    assert!(!client.wants_write());
    send(&mut client, &frame(b"waits"));
    assert!(client.wants_write());
}

#[test]
fn servers_that_speak_otherwise_are_left() {
    let error = refusal(|control| {
        control.send(&hello(0x0100, 8), &[]);
        control.receive();
    });
    assert!(matches!(error, ConnectError::Handshake { source: MemifError::Version { .. }, .. }));
    let error = refusal(|control| control.send(&message(CONNECTED, &[]), &[]));
    let expected = "unexpected control message CONNECTED";
    assert!(error.to_string().ends_with(expected), "{error}");
    let error = refusal(|control| control.send(&hello(0x0200, 8), &[new_eventfd().as_fd()]));
    assert!(error.to_string().contains("1 file descriptors instead of 0"), "{error}");
    let error = refusal(|control| {
        control.send(&hello(0x0200, 8), &[]);
        control.expect(INIT);
        control.send(&message(DISCONNECT, &[&[0; 4], b"ID not found"]), &[]);
    });
    assert!(error.to_string().ends_with("the peer disconnected: ID not found"), "{error}");
    let error = refusal(drop);
    assert!(matches!(error, ConnectError::Handshake { source: MemifError::Gone, .. }), "{error}");
}

#[test]
fn a_server_that_says_nothing_is_left_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let _listener = listen_at(&path);
    let endpoint = endpoint(&format!("memif://{}", path.display()));
    let error = Connection::connect(&endpoint, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, ConnectError::TimedOut { .. }), "{error}");
}

#[test]
fn nobody_there_is_told_from_somebody_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let memif = endpoint(&format!("memif://{}", path.display()));
    let error = Connection::connect(&memif, PATIENCE).unwrap_err();
    assert!(matches!(error, ConnectError::NobodyListens { .. }), "{error}");
    let unix = endpoint(&format!("unix://{}", path.display()));
    let _stream = byname_io::Listener::bind(&unix).unwrap();
    let error = Connection::connect(&memif, PATIENCE).unwrap_err();
    assert!(matches!(error, ConnectError::Failed { .. }), "{error}");
}

#[test]
fn places_that_the_server_writes_into_descriptors_are_ignored() {
    let (mut client, server) = established(|_| ());
    server.fill(0, &frame(b"right place"));
    server.memory.put_descriptor(TO_CLIENT, 0, Descriptor::new(77, 13, u32::MAX));
    server.show(1);
    assert_eq!(receive(&mut client, 1), [frame(b"right place")]);
}

#[test]
fn lengths_and_indices_that_cannot_be_end_the_connection() {
    let (mut client, server) = established(|_| ());
    server.memory.put_descriptor(TO_CLIENT, 0, Descriptor::new(0, 9217, 0));
    server.show(1);
    let result = client.recv_burst(framer, &mut |_| panic!("that is no frame"));
    assert!(matches!(result, Err(IoError::Memif(MemifError::Descriptor { .. }))), "{result:?}");

    let (mut client, server) = established(|_| ());
    server.show(257);
    let result = client.recv_burst(framer, &mut |_| panic!("that is no frame"));
    assert!(matches!(result, Err(IoError::Memif(MemifError::IndexJump { .. }))), "{result:?}");

    let (mut client, server) = established(|_| ());
    server.memory.put_tail(TO_SERVER, 1);
    client.queue(&[&frame(b"before it was sent")]).unwrap();
    let result = client.flush();
    assert!(matches!(result, Err(IoError::Memif(MemifError::IndexJump { .. }))), "{result:?}");
}

/// Buffers were taken back twice, and the count of free slots fell below zero.
#[test]
fn an_index_that_moves_back_ends_the_connection() {
    let (mut client, server) = established(|_| ());
    for _ in 0..3 {
        send(&mut client, &frame(b"taken"));
    }
    server.memory.put_tail(TO_SERVER, 3);
    send(&mut client, &frame(b"seen to be taken"));
    server.memory.put_tail(TO_SERVER, 2);
    client.queue(&[&frame(b"after the index moved back")]).unwrap();
    let result = client.flush();
    let jump = MemifError::IndexJump { moved: -1, at_most: 1, slots: 256 };
    assert_eq!(result.unwrap_err().to_string(), IoError::from(jump).to_string());
    assert!(server.control.farewell().contains("a ring index moved by -1"));
    // It stays ended, whatever the memory says now.
    server.memory.put_tail(TO_SERVER, 5);
    assert!(matches!(client.flush(), Err(IoError::Disconnected { .. })));
    let result = client.recv_burst(framer, &mut |_| panic!("that is no frame"));
    assert!(matches!(result, Err(IoError::Disconnected { .. })), "{result:?}");

    // A full ring of which the last slots are not shown yet.
    let (mut client, server) = established(|_| ());
    send(&mut client, &frame(b"so that the others are not shown by 32"));
    for _ in 1..256 {
        client.queue(&[&frame(b"fills the ring")]).unwrap();
    }
    let shown = u16::from_le_bytes(server.memory.get(TO_SERVER + 6));
    assert!(shown < 256, "{shown}");
    server.memory.put_tail(TO_SERVER, shown.wrapping_sub(256));
    client.queue(&[&frame(b"one too many")]).unwrap();
    let result = client.flush();
    assert!(matches!(result, Err(IoError::Memif(MemifError::IndexJump { .. }))), "{result:?}");

    // In the ring to the client.
    let (mut client, server) = established(|_| ());
    server.fill(0, &frame(b"hello"));
    server.fill(1, &frame(b"hello"));
    server.show(2);
    assert_eq!(receive(&mut client, 2).len(), 2);
    server.show(1);
    let result = client.recv_burst(framer, &mut |_| panic!("that is no frame"));
    let moved_back =
        matches!(result, Err(IoError::Memif(MemifError::IndexJump { moved: -1, slots: 256, .. })));
    assert!(moved_back, "{result:?}");
}

#[test]
fn the_servers_words_end_the_connection() {
    let (mut client, server) = established(|_| ());
    server.fill(0, &frame(b"last words"));
    server.memory.put_tail(TO_CLIENT, 1);
    server.control.send(&message(DISCONNECT, &[&[0; 4], b"Device closed"]), &[]);
    let mut frames = Vec::new();
    let mut closed = false;
    while !closed {
        crate::wait_for(&client, byname_io::Interest::READ);
        closed = client.recv_burst(framer, &mut |it| frames.push(it.to_vec())).unwrap().closed;
    }
    assert_eq!(frames, [frame(b"last words")]);
}
