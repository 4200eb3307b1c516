//! Packets through real connections, whole and in fragments.

use std::time::Duration;

use byname_io::{DatagramSocket, Endpoint, Interest as Watch, Limits, Poller, Token};
use byname_packet::{DataBuilder, Name, NullSigner};

use super::*;

fn data(content_bytes: usize) -> Vec<u8> {
    let (mut wire, name) = (Vec::new(), "/a".parse::<Name>().unwrap());
    DataBuilder::new(name.view()).encode(&vec![7; content_bytes], &NullSigner, &mut wire).unwrap();
    wire
}

fn wait_readable(connection: &Connection) {
    let mut poller = Poller::new().unwrap();
    poller.add(connection, Token(0), Watch::READ).unwrap();
    let mut events = Vec::new();
    poller.wait(&mut events, Some(Duration::from_secs(60))).unwrap();
    assert!(!events.is_empty(), "nothing came within a minute");
}

fn receive_one(face: &mut Face) -> (Option<u64>, Vec<u8>) {
    let mut packets = Vec::new();
    while packets.is_empty() {
        wait_readable(face.connection());
        face.receive(0, |received| {
            packets.push((received.header.congestion_mark, received.packet.to_vec()));
        })
        .unwrap();
    }
    assert_eq!(packets.len(), 1);
    packets.remove(0)
}

#[test]
fn a_packet_goes_through_a_stream_with_its_header() {
    let (one, other) = Connection::pair().unwrap();
    let limits = ReassemblyLimits::default();
    let (mut one, mut other) = (Face::new(one, limits), Face::new(other, limits));
    assert_eq!(one.mtu_bytes(), None);
    let header = LpHeader { congestion_mark: Some(1), ..LpHeader::default() };
    one.send(&header, &data(8000), 0).unwrap();
    one.flush().unwrap();
    assert_eq!(receive_one(&mut other), (Some(1), data(8000)));
}

#[test]
fn datagrams_carry_a_packet_in_fragments_of_the_mtu() {
    let socket = DatagramSocket::bind(&"udp://127.0.0.1:0".parse().unwrap()).unwrap();
    let Endpoint::Udp { port, .. } = socket.local_endpoint() else { panic!("a UDP endpoint") };
    let to: Endpoint = format!("udp://127.0.0.1:{port}").parse().unwrap();
    let mut near = Face::new(
        Connection::connect(&to, Duration::from_secs(60)).unwrap(),
        ReassemblyLimits::default(),
    );
    near.link = link_over(Some(1420), ReassemblyLimits::default());
    near.send(&LpHeader::default(), &data(8000), 0).unwrap();
    near.flush().unwrap();
    let mut socket = socket;
    let mut far = link_over(Some(1420), ReassemblyLimits::default());
    let (mut frames, mut packet) = (0, None);
    let mut poller = Poller::new().unwrap();
    poller.add(&socket, Token(0), Watch::READ).unwrap();
    while packet.is_none() {
        let mut events = Vec::new();
        poller.wait(&mut events, Some(Duration::from_secs(60))).unwrap();
        assert!(!events.is_empty(), "nothing came within a minute");
        socket
            .recv_burst(&mut |_, frame| {
                assert!(frame.len() <= 1420);
                frames += 1;
                let received = far.receive(frame, 0).unwrap();
                packet = received.map(|received| received.packet.to_vec());
            })
            .unwrap();
    }
    assert_eq!((frames, packet), (6, Some(data(8000))));
}

#[test]
fn a_full_queue_and_a_closed_peer_are_said() {
    let (one, other) =
        Connection::pair_with(Limits { send_bytes_max: 9000, ..Limits::default() }).unwrap();
    let mut one = Face::new(one, ReassemblyLimits::default());
    one.send(&LpHeader::default(), &data(8000), 0).unwrap();
    let full = one.send(&LpHeader::default(), &data(8000), 0).unwrap_err();
    assert!(matches!(full, FaceError::Full(_)), "{full}");
    drop(other);
    wait_readable(one.connection());
    assert!(one.receive(0, |_| panic!("a packet from nowhere")).unwrap().closed);
}

#[test]
fn what_is_no_packet_ends_a_stream() {
    let (one, mut other) = Connection::pair().unwrap();
    let mut one = Face::new(one, ReassemblyLimits::default());
    other.queue(&[b"HTTP/1.1 400 Bad Request\r\n"]).unwrap();
    other.flush().unwrap();
    wait_readable(one.connection());
    let error = one.receive(0, |_| panic!("no packet")).unwrap_err();
    assert!(error.to_string().contains("neither Interest nor Data nor LpPacket"), "{error}");
}
