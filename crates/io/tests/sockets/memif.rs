//! memif with both ends in this process.

use byname_io::{Connection, Endpoint, Listener, MemifRole, RecvStatus};
use tempfile::TempDir;

use super::{PATIENCE, accept, endpoint, frame, framer, numbered, receive, send};

/// A listener at a socket of its own.
struct Place {
    listener: Listener,
    _directory: TempDir,
}

fn place() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let uri = format!("memif://{}/socket", directory.path().display());
    Place { listener: Listener::bind(&endpoint(&uri)).unwrap(), _directory: directory }
}

/// Connects while the listener is served, as two processes would.
fn connected(place: &Place) -> (Connection, Connection) {
    connected_as(place, place.listener.local_endpoint().clone())
}

fn connected_as(place: &Place, endpoint: Endpoint) -> (Connection, Connection) {
    let client = std::thread::spawn(move || Connection::connect(&endpoint, PATIENCE).unwrap());
    let mut server = None;
    while server.is_none() {
        super::wait_for(&place.listener, byname_io::Interest::READ);
        server = place.listener.accept().unwrap();
    }
    (client.join().unwrap(), server.unwrap())
}

#[test]
fn frames_go_both_ways_in_order() {
    let place = place();
    let (mut client, mut server) = connected(&place);
    for round in 0..50 {
        let frames: Vec<Vec<u8>> = (0..40).map(|i| numbered(round * 40 + i)).collect();
        for bytes in &frames {
            let (head, tail) = bytes.split_at(bytes.len() / 2);
            client.queue(&[head, tail]).unwrap();
            server.queue(&[bytes]).unwrap();
        }
        client.flush().unwrap();
        server.flush().unwrap();
        assert_eq!(receive(&mut server, 40), frames);
        assert_eq!(receive(&mut client, 40), frames);
    }
}
