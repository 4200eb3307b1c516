//! Attaching to a forwarder: registration, refusal, coming back.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use byname_face::frame_len;
use byname_io::{ConnectError, Connection, Interest as Readiness, Poller, Token};
use byname_packet::mgmt::{ControlParameters, ControlResponse};
use byname_packet::{DataBuilder, DigestSigner, Interest, Name};
use byname_store::{
    Exposure, FileServer, MountSource, RegisterError, ServerEvent, ServerHandle, StoreError,
};

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

    /// The prefix that the next command wants registered, answered with `code`.
    fn answer_command(&mut self, code: u64) -> Name {
        let mut frames: Vec<Vec<u8>> = Vec::new();
        while frames.is_empty() {
            let mut events = Vec::new();
            self.poller.wait(&mut events, Some(Duration::from_secs(60))).unwrap();
            let mut take = |frame: &[u8]| frames.push(frame.to_vec());
            self.connection.recv_burst(frame_len, &mut take).unwrap();
        }
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
    let server = FileServer::new(world.config()).unwrap();
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
