//! Many clients at once, without a forwarder: fairness, bounds, and clients that misbehave.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use byname_face::frame_len;
use byname_io::budget::SHARE_BYTES_MIN;
use byname_io::limits::RECV_BYTES_MIN;
use byname_io::{Connection, Endpoint};
use byname_packet::InterestBuilder;
use byname_packet::lp::LpPacket;
use byname_store::{FileServer, FileServerConfig, ServerHandle, StoreError};
use byname_transfer::naming::{self, Part};

use super::client::{Peer, Reply, World, pattern};

const SIZE: usize = 100 * 8192;

/// A server that listens beside its tree. Dropping stops it.
struct Listening {
    at: Endpoint,
    handle: ServerHandle,
    thread: Option<JoinHandle<Result<(), StoreError>>>,
}

impl Listening {
    fn start(world: &World) -> Self {
        Self::start_at(world, &Endpoint::Unix(world.beside("socket")))
    }

    fn start_at(world: &World, at: &Endpoint) -> Self {
        Self::start_with(world.config(), at)
    }

    fn start_with(config: FileServerConfig, at: &Endpoint) -> Self {
        let mut server = FileServer::new(config).unwrap();
        let at = server.listen(at).unwrap();
        let handle = server.handle();
        let thread = Some(std::thread::spawn(move || server.run_alone()));
        Self { at, handle, thread }
    }

    fn connect(&self) -> Connection {
        Connection::connect(&self.at, Duration::from_secs(60)).unwrap()
    }

    fn client(&self) -> Peer {
        Peer::over(self.connect(), self.handle.clone())
    }

    fn await_peers(&self, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.handle.peers() != count {
            assert!(Instant::now() < deadline, "{} peers, not {count}", self.handle.peers());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.handle.stop();
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

#[test]
fn sixty_four_clients_get_their_own_answers_at_the_same_time() {
    let world = World::new();
    world.write("f", &pattern(SIZE));
    let server = Listening::start(&world);
    let versioned = server.client().metadata("/t/f").name;
    let mut clients: Vec<Peer> = (0..64).map(|_| server.client()).collect();
    for segment in 0..100 {
        for client in &mut clients {
            let name = naming::segment_name(versioned.view(), Part::Content, segment);
            client.send(&InterestBuilder::new(name.view()), &segment.to_be_bytes());
        }
    }
    for client in &mut clients {
        let mut seen = [false; 100];
        for _ in 0..100 {
            let (token, Reply::Data(_)) = client.receive() else { panic!("a Nack") };
            let segment = u64::from_be_bytes(token.try_into().unwrap()) as usize;
            assert!(!std::mem::replace(&mut seen[segment], true), "twice: {segment}");
        }
    }
}

#[test]
fn a_client_that_does_not_read_stops_nobody_and_is_told_of_its_long_queue() {
    const REQUESTS: u64 = 3000;
    let world = World::new();
    world.write("f", &pattern(SIZE));
    let server = Listening::start(&world);
    let (mut slow, mut quick) = (server.client(), server.client());
    let metadata = quick.metadata("/t/f");
    let ask = |client: &mut Peer, number: u64| {
        let name = naming::segment_name(metadata.name.view(), Part::Content, number % 100);
        client.send(&InterestBuilder::new(name.view()), b"slow");
    };
    // More than the server and the kernel hold for one client.
    for number in 0..REQUESTS {
        ask(&mut slow, number);
    }
    for _ in 0..3 {
        assert!(quick.fetch(&metadata) == pattern(SIZE));
    }
    let answered = server.handle.counters().segments;
    assert!(answered < REQUESTS, "the server holds {answered} answers");
    // It gets everything once it reads, and is told to ask for less.
    std::thread::sleep(Duration::from_millis(150));
    let mut marks = 0;
    for _ in 0..REQUESTS {
        let (frame, is_data) = slow.receive_frame();
        assert!(is_data);
        let mark = LpPacket::decode(&frame).unwrap().header.congestion_mark;
        marks += u64::from(mark == Some(1));
    }
    assert!(marks > 0 && marks < REQUESTS / 10, "{marks} marks");
    assert_eq!(server.handle.congestion_marks(), marks);
}

#[test]
fn clients_that_ask_and_never_read_share_a_bounded_memory() {
    const CLIENTS: usize = 150;
    const BYTES_MAX: usize = 8 << 20;
    // What no shortage takes away: two queues' least shares, the smallest receive buffer, and
    // requests of that length twice, as a vector grows.
    const LEAST_BYTES: usize = 2 * SHARE_BYTES_MIN + 3 * RECV_BYTES_MIN;
    let world = World::new();
    world.write("f", &pattern(SIZE));
    let mut config = world.config();
    config.connection_bytes_max = BYTES_MAX;
    let any = "tcp://127.0.0.1:0".parse().unwrap();
    let server = Listening::start_with(config, &any);
    let mut reader = server.client();
    let metadata = reader.metadata("/t/f");
    let mut greedy: Vec<Connection> = (0..CLIENTS).map(|_| server.connect()).collect();
    let mut wire = Vec::new();
    let name = naming::segment_name(metadata.name.view(), Part::Content, 7);
    InterestBuilder::new(name.view()).nonce([1; 4]).encode(&mut wire);
    let mut most = 0;
    for round in 0..60 {
        for client in &mut greedy {
            for _ in 0..20 {
                let _ = client.queue(&[&wire]);
            }
            // It may have been closed.
            let _ = client.flush();
        }
        if round % 6 == 0 {
            assert!(reader.fetch(&metadata) == pattern(SIZE), "the reader goes on");
        }
        most = most.max(server.handle.connection_bytes());
    }
    assert!(most > BYTES_MAX / 4, "they never took much: {most}");
    assert!(most <= BYTES_MAX + CLIENTS * LEAST_BYTES, "{most} taken");
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.handle.stalled_clients() == 0 {
        assert!(Instant::now() < deadline, "{} taken", server.handle.connection_bytes());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(reader.fetch(&metadata) == pattern(SIZE));
}

#[test]
fn a_client_that_asks_for_much_by_shared_memory_and_reads_late_gets_everything() {
    const REQUESTS: u64 = 9000;
    let world = World::new();
    world.write("f", &pattern(SIZE));
    let at = Endpoint::Memif { path: world.beside("memif"), id: 0, role: None };
    let server = Listening::start_at(&world, &at);
    let mut client = server.client();
    let metadata = client.metadata("/t/f");
    // More requests than the server takes while it has no room for answers.
    for number in 0..REQUESTS {
        let name = naming::segment_name(metadata.name.view(), Part::Content, number % 100);
        client.send(&InterestBuilder::new(name.view()), b"much");
    }
    for _ in 0..REQUESTS {
        assert!(client.receive_frame().1);
    }
}

#[test]
fn clients_that_vanish_or_talk_nonsense_are_forgotten_and_harm_nobody() {
    let world = World::new();
    world.write("f", &pattern(SIZE));
    let server = Listening::start(&world);
    let mut client = server.client();
    let metadata = client.metadata("/t/f");
    let path = world.beside("socket");
    let nonsense: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0; 100],
        // A packet said to be larger than any.
        &[5, 0xfe, 0xff, 0xff, 0xff, 0xff, 1, 2, 3],
        &[0xff; 64],
        // A link packet in the middle of which the connection ends.
        &[0x64, 200, 0x50, 10, 1],
    ];
    for octets in nonsense {
        let mut stranger = UnixStream::connect(&path).unwrap();
        stranger.write_all(octets).unwrap();
        drop(stranger);
    }
    for _ in 0..20 {
        let mut gone = server.client();
        let name = naming::segment_name(metadata.name.view(), Part::Content, 7);
        for _ in 0..200 {
            gone.send(&InterestBuilder::new(name.view()), b"gone");
        }
    }
    assert!(client.fetch(&metadata) == pattern(SIZE));
    server.await_peers(1);
}

#[test]
fn a_client_in_the_same_process_needs_no_socket() {
    let world = World::new();
    world.write("f", &pattern(SIZE));
    let mut server = FileServer::new(world.config()).unwrap();
    let handle = server.handle();
    let connection = server.connect_local().unwrap();
    let thread = std::thread::spawn(move || server.run_alone());
    let mut client = Peer::over(connection, handle.clone());
    let metadata = client.metadata("/t/f");
    assert!(client.fetch(&metadata) == pattern(SIZE));
    handle.stop();
    thread.join().unwrap().unwrap();
}

#[test]
fn datagrams_of_strangers_that_are_no_packets_make_no_peers() {
    let world = World::new();
    world.write("f", &pattern(SIZE));
    let any = "udp://127.0.0.1:0".parse().unwrap();
    let server = Listening::start_at(&world, &any);
    let Endpoint::Udp { port, .. } = server.at else { panic!("{}", server.at) };
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for octets in [&b"hello"[..], &[0xff; 1400], &[]] {
        stranger.send_to(octets, ("127.0.0.1", port)).unwrap();
    }
    let mut connection = server.connect();
    let name = naming::metadata_name("/t/f".parse::<byname_packet::Name>().unwrap().view());
    let mut wire = Vec::new();
    InterestBuilder::new(name.view()).can_be_prefix(true).nonce([1; 4]).encode(&mut wire);
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut answers = 0;
    while answers == 0 {
        assert!(Instant::now() < deadline);
        connection.queue(&[&wire]).unwrap();
        connection.flush().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        connection.recv_burst(frame_len, &mut |_| answers += 1).unwrap();
    }
    server.await_peers(1);
}
