//! Attaching to a forwarder: registration, refusal, coming back.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use byname_face::frame_len;
use byname_io::{ConnectError, Connection, Interest as Readiness, Poller, Token};
use byname_packet::lp::{self, LpHeader, LpPacket};
use byname_packet::mgmt::{ControlParameters, ControlResponse, FACE_FLAG_LOCAL_FIELDS};
use byname_packet::{DataBuilder, DigestSigner, Interest, InterestBuilder, Name};
use byname_store::{
    Exposure, FileServer, FileServerConfig, MountSource, RegisterError, ServerEvent, ServerHandle,
    StoreError,
};

use byname_transfer::naming;

use super::client::World;

/// The forwarder's end of a connection.
struct Forwarder {
    connection: Connection,
    poller: Poller,
}

impl Forwarder {
    fn new(connection: Connection) -> Self {
        let poller = Poller::new().unwrap();
        poller.add(&connection, Token(0), Readiness::READ).unwrap();
        Self { connection, poller }
    }

    /// Whole frames, at least one.
    fn receive(&mut self) -> Vec<Vec<u8>> {
        let mut frames: Vec<Vec<u8>> = Vec::new();
        while frames.is_empty() {
            let mut events = Vec::new();
            self.poller.wait(&mut events, Some(PATIENCE)).unwrap();
            let mut take = |frame: &[u8]| frames.push(frame.to_vec());
            self.connection.recv_burst(frame_len, &mut take).unwrap();
        }
        frames
    }

    /// Queues a question for metadata that came from the face `from`.
    fn queue_question(&mut self, name: &str, from: u64) {
        let name = naming::metadata_name(name.parse::<Name>().unwrap().view());
        let (mut wire, mut front) = (Vec::new(), Vec::new());
        InterestBuilder::new(name.view()).can_be_prefix(true).encode(&mut wire);
        let token = from.to_be_bytes();
        let header = LpHeader {
            pit_token: Some(&token),
            incoming_face_id: Some(from),
            ..LpHeader::default()
        };
        lp::encode_header(&header, None, wire.len(), &mut front);
        self.connection.queue(&[&front, &wire]).unwrap();
    }

    /// Answers to that many questions: for whom, and whether with Data rather than a Nack.
    fn answers(&mut self, count: usize) -> Vec<(u64, bool)> {
        self.connection.flush().unwrap();
        let mut answers = Vec::new();
        while answers.len() < count {
            for frame in self.receive() {
                let link = LpPacket::decode(&frame).unwrap();
                let Some(token) = link.header.pit_token else { continue };
                let who = u64::from_be_bytes(token.try_into().unwrap());
                answers.push((who, link.header.nack.is_none()));
            }
        }
        answers
    }

    /// The prefix that the next command wants registered, answered with `code`.
    fn answer_command(&mut self, code: u64) -> Name {
        let frames = self.receive();
        let mut prefix = Name::new();
        for frame in frames {
            let command = Interest::decode(&frame).unwrap();
            let parameters = ControlParameters::decode(command.name.get(4).unwrap().value).unwrap();
            prefix = parameters.name.unwrap();
            let (mut content, mut wire) = (Vec::new(), Vec::new());
            ControlResponse::new(code, "text").encode(&mut content);
            DataBuilder::new(command.name).encode(&content, &DigestSigner, &mut wire).unwrap();
            self.connection.queue(&[&wire]).unwrap();
        }
        self.connection.flush().unwrap();
        prefix
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Ready,
    Disconnected,
    Retrying,
}

struct Running {
    handle: ServerHandle,
    forwarders: Receiver<Forwarder>,
    events: Receiver<Seen>,
    thread: std::thread::JoinHandle<Result<(), StoreError>>,
}

fn run(world: &World) -> Running {
    run_with(world.config())
}

fn run_with(config: FileServerConfig) -> Running {
    let server = FileServer::new(config).unwrap();
    let handle = server.handle();
    let (to_forwarders, forwarders) = channel();
    let (to_events, events): (Sender<Seen>, _) = channel();
    let thread = std::thread::spawn(move || {
        let mut connect = move || -> Result<Connection, ConnectError> {
            let (ours, theirs) = Connection::pair().unwrap();
            // The test may be over already.
            let _ = to_forwarders.send(Forwarder::new(theirs));
            Ok(ours)
        };
        server.run(&mut connect, &mut |event| {
            let seen = match event {
                ServerEvent::Ready => Seen::Ready,
                ServerEvent::Disconnected { .. } => Seen::Disconnected,
                ServerEvent::Retrying { .. } => Seen::Retrying,
            };
            let _ = to_events.send(seen);
        })
    });
    Running { handle, forwarders, events, thread }
}

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn prefixes_are_registered_and_again_after_the_forwarder_came_back() {
    let world = World::new();
    let running = run(&world);
    for round in 0..3 {
        let mut forwarder = running.forwarders.recv_timeout(PATIENCE).unwrap();
        assert_eq!(forwarder.answer_command(200), "/t".parse().unwrap());
        assert_eq!(running.events.recv_timeout(PATIENCE).unwrap(), Seen::Ready);
        if round < 2 {
            drop(forwarder);
            assert_eq!(running.events.recv_timeout(PATIENCE).unwrap(), Seen::Disconnected);
        } else {
            running.handle.stop();
            running.thread.join().unwrap().unwrap();
            return;
        }
    }
}

#[test]
fn a_refused_prefix_is_an_error_that_says_what_to_do() {
    let world = World::new();
    let running = run(&world);
    running.forwarders.recv_timeout(PATIENCE).unwrap().answer_command(403);
    let error = running.thread.join().unwrap().unwrap_err();
    let StoreError::Register(RegisterError::Refused { code: 403, .. }) = &error else {
        panic!("{error}");
    };
    assert!(error.to_string().contains("allow it in the forwarder's configuration"), "{error}");
}

#[test]
fn a_refusal_after_the_first_success_is_tried_again() {
    let world = World::new();
    let running = run(&world);
    let mut forwarder = running.forwarders.recv_timeout(PATIENCE).unwrap();
    forwarder.answer_command(200);
    assert_eq!(running.events.recv_timeout(PATIENCE).unwrap(), Seen::Ready);
    drop(forwarder);
    assert_eq!(running.events.recv_timeout(PATIENCE).unwrap(), Seen::Disconnected);
    running.forwarders.recv_timeout(PATIENCE).unwrap().answer_command(403);
    assert_eq!(running.events.recv_timeout(PATIENCE).unwrap(), Seen::Retrying);
    let mut forwarder = running.forwarders.recv_timeout(PATIENCE).unwrap();
    forwarder.answer_command(200);
    assert_eq!(running.events.recv_timeout(PATIENCE).unwrap(), Seen::Ready);
    running.handle.stop();
    running.thread.join().unwrap().unwrap();
}

#[test]
fn a_forwarder_that_is_gone_before_it_is_written_to_is_replaced() {
    let world = World::new();
    let server = FileServer::new(world.config()).unwrap();
    let handle = server.handle();
    let (to_forwarders, forwarders) = channel();
    let (to_ready, ready) = channel();
    let thread = std::thread::spawn(move || {
        let mut attempt = 0;
        let mut connect = move || -> Result<Connection, ConnectError> {
            let (ours, theirs) = Connection::pair().unwrap();
            attempt += 1;
            if attempt != 2 {
                // The test may be over already.
                let _ = to_forwarders.send(Forwarder::new(theirs));
            }
            Ok(ours)
        };
        server.run(&mut connect, &mut |event| {
            if matches!(event, ServerEvent::Ready) {
                let _ = to_ready.send(());
            }
        })
    });
    for _ in 0..2 {
        let mut forwarder = forwarders.recv_timeout(PATIENCE).unwrap();
        assert_eq!(forwarder.answer_command(200), "/t".parse().unwrap());
        ready.recv_timeout(PATIENCE).unwrap();
    }
    handle.stop();
    thread.join().unwrap().unwrap();
}

/// Signatures a second in the tests below.
const SIGNATURES: u64 = 40;
const FLOOD: usize = 2000;

fn slow_signing(world: &World) -> FileServerConfig {
    let mut config = world.config();
    config.engine.signatures_per_s = SIGNATURES;
    config
}

#[test]
fn a_flood_behind_the_forwarder_costs_no_reader_behind_it_an_answer() {
    let world = World::new();
    world.write("f", b"content");
    let running = run_with(slow_signing(&world));
    let mut forwarder = running.forwarders.recv_timeout(PATIENCE).unwrap();
    forwarder.answer_command(200);
    assert_eq!(running.events.recv_timeout(PATIENCE).unwrap(), Seen::Ready);
    let command = forwarder.receive().remove(0);
    let command = Interest::decode(&command).unwrap();
    let update: Name = "/localhost/nfd/faces/update".parse().unwrap();
    assert!(update.view().is_prefix_of(command.name));
    let parameters = ControlParameters::decode(command.name.get(4).unwrap().value).unwrap();
    assert_eq!(parameters.flags, Some(FACE_FLAG_LOCAL_FIELDS));
    assert_eq!((parameters.mask, parameters.face_id), (parameters.flags, None));
    for round in 0..5 {
        for number in 0..FLOOD {
            forwarder.queue_question(&format!("/t/{round}/{number}"), 300);
        }
        forwarder.queue_question("/t/f", 301);
        forwarder.queue_question("/t/gone", 302);
        let answers = forwarder.answers(FLOOD + 2);
        let of = |who| answers.iter().filter(|(of, _)| *of == who).collect::<Vec<_>>();
        assert_eq!((of(301), of(302)), (vec![&(301, true)], vec![&(302, true)]), "{round}");
        assert!(of(300).iter().filter(|(_, is_data)| !is_data).count() > FLOOD / 2);
    }
    running.handle.stop();
    running.thread.join().unwrap().unwrap();
}

#[test]
fn a_client_that_claims_to_be_many_has_one_share() {
    let world = World::new();
    let server = FileServer::new(slow_signing(&world)).unwrap();
    let (handle, (ours, theirs)) = (server.handle(), Connection::pair().unwrap());
    let thread = std::thread::spawn(move || server.run_direct(theirs));
    let mut client = Forwarder::new(ours);
    for number in 0..FLOOD {
        client.queue_question(&format!("/t/{number}"), number as u64);
    }
    let answers = client.answers(FLOOD);
    assert!(answers.iter().filter(|(_, is_data)| !is_data).count() > FLOOD / 2);
    handle.stop();
    thread.join().unwrap().unwrap();
}

#[test]
fn a_mount_name_with_typed_components_is_refused() {
    let world = World::new();
    let mut config = world.config();
    config.mounts[0].prefix = "/t/v=1".parse().unwrap();
    assert!(matches!(FileServer::new(config), Err(StoreError::Prefix { .. })));
    let mut config = world.config();
    let (directory, exposure) = (world.beside("missing"), Exposure::default());
    config.mounts[0].source = MountSource::Directory { directory, exposure };
    assert!(matches!(FileServer::new(config), Err(StoreError::Mount { .. })));
}
