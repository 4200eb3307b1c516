//! Neighbours who mean harm: whatever they send, others are served and memory stays bounded.

use std::time::Duration;

use byname_forwarder::DropReason;
use byname_io::{Connection, Endpoint};
use byname_node::NodeConfig;
use byname_packet::InterestBuilder;
use byname_packet::mgmt::ControlParameters;

use crate::harness::{Client, PATIENCE, Running, name, produce, rand_u32, wait_for};

/// Long enough for what is dropped to have been answered if it were not.
const SILENCE: Duration = Duration::from_millis(300);

fn fetch(client: &mut Client, uri: &str) -> Vec<u8> {
    client.express(uri);
    client.next().expect("an answer").data().content.to_vec()
}

/// A listener of each kind that strangers reach, and the administrator's.
fn site(config: NodeConfig) -> (Running, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let unix = format!("unix://{}/nfd.sock", directory.path().display());
    let uris = [unix.as_str(), "tcp://127.0.0.1:0", "udp://127.0.0.1:0"];
    let listen = uris.iter().map(|uri| uri.parse().unwrap()).collect();
    (Running::start(NodeConfig { listen, ..config }), directory)
}

#[test]
fn a_flood_for_names_nobody_serves_starves_nobody() {
    const ENTRIES: usize = 2000;
    let mut config = NodeConfig::default();
    config.forwarder.pit_entries_max = ENTRIES;
    let (node, _directory) = site(config);
    let mut silent = node.client(1);
    assert_eq!(silent.register("/silent").status_code, 200);
    let mut producer = node.client(1);
    assert_eq!(producer.register("/good").status_code, 200);
    let serving = produce(producer, b"here".to_vec());
    let mut honest = node.client(1);
    let mut attackers: Vec<Client> = (0..8).map(|_| node.client(1)).collect();
    for round in 0..20 {
        for (i, attacker) in attackers.iter_mut().enumerate() {
            for n in 0..100 {
                attacker.express_with(&format!("/silent/{i}/{round}/{n}"), None, |interest| {
                    interest.lifetime_ms(600_000)
                });
            }
        }
        assert_eq!(fetch(&mut honest, &format!("/good/{round}")), b"here");
    }
    let snapshot = node.control.snapshot().unwrap();
    assert!(snapshot.pending <= ENTRIES, "{} pending", snapshot.pending);
    let sent = 8 * 20 * 100;
    let kept = snapshot.pending as u64 + snapshot.counters.drops(DropReason::PitFull);
    assert!(kept < sent + 100, "more was kept or shed than was sent");
    assert!(snapshot.pending > 0 && snapshot.counters.in_interests >= sent);
    assert_eq!(fetch(&mut honest, "/good/last"), b"here");
    drop(node);
    serving.join().unwrap();
}

#[test]
fn a_flood_of_tokens_costs_only_whoever_sends_it() {
    let (node, _directory) = site(NodeConfig::default());
    let mut producer = node.client(0);
    assert_eq!(producer.register("/app").status_code, 200);
    let mut attacker = node.client(1);
    for n in 0..20_000u32 {
        // Each length a token may have, and the same few names over and over.
        let token = [n.to_be_bytes().as_slice(), &[0; 28]].concat();
        let token = &token[..(n as usize % 32) + 1];
        attacker.express_with(&format!("/app/{}", n % 4), Some(token), |interest| {
            interest.lifetime_ms(60_000)
        });
    }
    let mut honest = node.client(1);
    honest.express_with("/app/mine", Some(b"12345678901234567890123456789012"), |it| it);
    loop {
        let got = producer.serve_one(b"yes");
        if got.interest().name == name("/app/mine").view() {
            break;
        }
    }
    let got = honest.next().unwrap();
    assert_eq!(got.token.as_deref(), Some(&b"12345678901234567890123456789012"[..]));
    assert!(node.control.snapshot().unwrap().pending <= 5);
}

#[test]
fn fragment_bombs_are_thrown_away() {
    let (node, _directory) = site(NodeConfig::default());
    let bomber = Connection::connect(&node.listening[2], PATIENCE).unwrap();
    let mut bomber = Client::new(bomber);
    for n in 0..20_000u64 {
        let frame = first_fragment(n, if n % 2 == 0 { 6 } else { u64::MAX });
        if bomber.connection.queue(&[&frame]).is_err() {
            let _ = bomber.connection.flush();
        }
    }
    let _ = bomber.connection.flush();
    let mut producer = node.client(0);
    assert_eq!(producer.register("/app").status_code, 200);
    let serving = produce(producer, vec![7; 8000]);
    let mut honest = node.client(2);
    // UDP over a flooded socket may lose the Interest.
    let mut answered = false;
    for attempt in 0..50 {
        honest.express(&format!("/app/{attempt}"));
        if honest.next_within(SILENCE).is_some_and(|got| got.data().content.len() == 8000) {
            answered = true;
            break;
        }
    }
    assert!(answered);
    drop(node);
    serving.join().unwrap();
}

/// An LpPacket with Sequence, FragIndex 0, FragCount and a fragment of 1000 octets.
/// spec: NDNLPv2, "Packet Format"
fn first_fragment(sequence: u64, count: u64) -> Vec<u8> {
    let mut inner = vec![0x51, 8];
    inner.extend_from_slice(&sequence.to_be_bytes());
    inner.extend_from_slice(&[0x53, 8]);
    inner.extend_from_slice(&count.to_be_bytes());
    inner.extend_from_slice(&[0x50, 0xFD, 0x03, 0xE8]);
    inner.resize(inner.len() + 1000, 0x05);
    let mut frame = vec![0x64, 0xFD];
    frame.extend_from_slice(&(inner.len() as u16).to_be_bytes());
    frame.extend_from_slice(&inner);
    frame
}

#[test]
fn localhost_from_outside_is_dropped_and_counted() {
    let (node, _directory) = site(NodeConfig::default());
    let mut stranger = node.client(2);
    stranger.express_with("/localhost/nfd/faces/list", None, |interest| {
        interest.can_be_prefix(true).must_be_fresh(true)
    });
    assert!(stranger.next_within(SILENCE).is_none(), "UDP is never local");
    let drops = node.control.snapshot().unwrap().counters.drops(DropReason::ScopeViolation);
    assert_eq!(drops, 1);
}

#[test]
fn commands_without_authority_are_refused() {
    let (node, _directory) = site(NodeConfig::default());
    // The first face, 256, is somebody else's.
    let mut victim = node.client(1);
    assert_eq!(victim.register("/victim").status_code, 200);
    let mut neighbour = node.client(1);
    let cases: [(&str, ControlParameters); 4] = [
        (
            "faces/create",
            ControlParameters {
                uri: Some("udp4://127.0.0.1:9".to_owned()),
                ..ControlParameters::default()
            },
        ),
        ("faces/destroy", ControlParameters { face_id: Some(256), ..Default::default() }),
        (
            "strategy-choice/set",
            ControlParameters {
                name: Some(name("/")),
                strategy: Some(name("/localhost/nfd/strategy/multicast")),
                ..ControlParameters::default()
            },
        ),
        ("cs/config", ControlParameters { capacity: Some(0), ..Default::default() }),
    ];
    for (verb, parameters) in cases {
        let response = neighbour.command(&format!("/localhost/nfd/{verb}"), &parameters);
        assert_eq!(response.status_code, 403, "{verb}: {}", response.status_text);
    }
    let own = neighbour.register("/mine");
    assert_eq!(own.status_code, 200, "a route to itself is allowed on loopback TCP");
    let foreign = ControlParameters {
        name: Some(name("/theirs")),
        face_id: Some(256),
        ..ControlParameters::default()
    };
    let response = neighbour.command("/localhost/nfd/rib/register", &foreign);
    assert_eq!(response.status_code, 403, "not to others");
}

#[test]
fn thousands_of_connections_leave_nothing_behind() {
    let (node, _directory) = site(NodeConfig { faces_max: 64, ..NodeConfig::default() });
    let mut producer = node.client(0);
    assert_eq!(producer.register("/app").status_code, 200);
    let before = node.control.snapshot().unwrap().face_count;
    for n in 0..3000 {
        let endpoint = &node.listening[n % 2];
        let Ok(connection) = Connection::connect(endpoint, PATIENCE) else { continue };
        let mut client = Client::new(connection);
        // It may be turned away at once, for there are too many.
        let nonsense: [&[u8]; 3] = [&[0x05], b"GET / HTTP/1.1\r\n\r\n", b""];
        let _ = client.connection.queue(&[nonsense[n % 3]]);
        let _ = client.connection.flush();
    }
    wait_for("the faces to go", || node.control.snapshot().unwrap().face_count == before);
    let mut client = node.client(1);
    client.express("/app/after");
    producer.serve_one(b"still here");
    assert_eq!(client.next().unwrap().data().content, b"still here");
}

#[test]
fn idle_connections_lock_nobody_out() {
    const FACES: usize = 64;
    let (node, _directory) =
        site(NodeConfig { faces_max: FACES, silent_face_ns: 300_000_000, ..NodeConfig::default() });
    let mut producer = node.client(1);
    assert_eq!(producer.register("/app").status_code, 200);
    let idle: Vec<Client> = (0..FACES).map(|_| node.client(1)).collect();
    wait_for("the faces to be taken", || node.control.snapshot().unwrap().surplus_connections > 0);
    // The operator comes in at once.
    let mut operator = node.client(0);
    assert!(operator.faces().len() > FACES / 2);
    // Others do as soon as somebody has been silent for long; the producer keeps its place though
    // it is silent, too, because it has a route.
    let mut reader = None;
    wait_for("an idle connection to give way", || {
        let mut client = node.client(1);
        client.express("/app/file");
        let is_in = producer.next_within(Duration::from_secs(1)).is_some();
        reader = is_in.then_some(client);
        is_in
    });
    producer.put(name("/app/file").view(), b"served", None);
    let got = reader.unwrap().next().unwrap();
    assert_eq!(got.data().content, b"served");
    drop(idle);
}

#[test]
fn a_reader_that_does_not_read_costs_a_bounded_queue() {
    const QUEUE_BYTES: usize = 256 << 10;
    let (node, _directory) =
        site(NodeConfig { send_bytes_max: QUEUE_BYTES, ..NodeConfig::default() });
    let mut producer = node.client(0);
    assert_eq!(producer.register("/app").status_code, 200);
    let serving = produce(producer, vec![1; 8000]);
    let mut slow = node.client(1);
    let mut honest = node.client(1);
    for n in 0..4000 {
        slow.express_with(&format!("/app/{n}"), None, |it| it.lifetime_ms(1000));
        if n % 400 == 0 {
            assert_eq!(fetch(&mut honest, &format!("/app/honest/{n}")).len(), 8000);
        }
    }
    wait_for("the queue to be full", || node.control.snapshot().unwrap().queue_full > 0);
    assert_eq!(fetch(&mut honest, "/app/honest/last").len(), 8000);
    drop(slow);
    drop(node);
    serving.join().unwrap();
}

#[test]
fn peers_that_ask_and_never_read_share_a_bounded_memory_and_go_when_it_is_short() {
    const PEERS: usize = 120;
    const BYTES_MAX: usize = 8 << 20;
    /// Whatever is short, a connection may have a few packets and a small receive buffer.
    const LEAST_BYTES: usize = 100 << 10;
    let (node, _directory) = site(NodeConfig {
        connection_bytes_max: BYTES_MAX,
        stalled_face_ns: 1_000_000_000,
        ..NodeConfig::default()
    });
    let mut producer = node.client(0);
    assert_eq!(producer.register("/app").status_code, 200);
    let serving = produce(producer, vec![1; 8000]);
    let mut reader = node.client(1);
    // All of it is in the content store, so that every question is answered at once.
    for n in 0..100 {
        assert_eq!(fetch(&mut reader, &format!("/app/{n}")).len(), 8000);
    }
    let mut greedy: Vec<Client> = (0..PEERS).map(|_| node.client(1)).collect();
    let mut most = 0;
    for round in 0..1200 {
        for peer in &mut greedy {
            // It may have been closed.
            let name = name(&format!("/app/{}", round % 100));
            let mut wire = Vec::new();
            InterestBuilder::new(name.view()).nonce(rand_u32().to_be_bytes()).encode(&mut wire);
            let _ = peer.connection.queue(&[&wire]);
            let _ = peer.connection.flush();
        }
        if round % 20 == 0 {
            let answer = fetch(&mut reader, &format!("/app/{}", round % 100));
            assert!(answer == [1; 8000], "the reader goes on");
            most = most.max(node.control.snapshot().unwrap().connection_bytes as usize);
        }
    }
    assert!(most > BYTES_MAX / 4, "they never took much: {most}");
    assert!(most <= BYTES_MAX + PEERS * LEAST_BYTES, "{most} taken");
    wait_for("those that do not read to go", || {
        node.control.snapshot().unwrap().stalled_connections > 0
    });
    assert_eq!(fetch(&mut reader, "/app/7"), [1; 8000]);
    drop(greedy);
    wait_for("the memory to come back", || {
        node.control.snapshot().unwrap().connection_bytes < 128 << 10
    });
    drop(node);
    serving.join().unwrap();
}

#[test]
fn idle_costs_nothing() {
    let (node, directory) = site(NodeConfig::default());
    let _unix = node.client(0);
    let mut tcp = node.client(1);
    assert_eq!(tcp.register("/app").status_code, 200);
    let mut udp = node.client(2);
    udp.express("/nowhere");
    let _ = udp.next();
    // What has happened so far has to settle: expired Interests, first timers.
    let wakeups = || node.control.snapshot().unwrap().wakeups;
    let mut last = wakeups();
    let mut quiet = false;
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(500));
        let now = wakeups();
        // Each question is one itself.
        quiet = now - last <= 2;
        if quiet {
            break;
        }
        last = now;
    }
    assert!(quiet, "the node keeps waking up");
    drop(directory);
}

#[test]
fn garbage_datagrams_make_no_faces() {
    let (node, _directory) = site(NodeConfig { udp_faces_max: 8, ..NodeConfig::default() });
    for n in 0..200u8 {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let Endpoint::Udp { port, .. } = node.listening[2] else { unreachable!() };
        let mut bytes = rand_u32().to_be_bytes().repeat(20);
        bytes[0] = if n % 2 == 0 { 0x06 } else { 0x80 | n };
        socket.send_to(&bytes, ("127.0.0.1", port)).unwrap();
    }
    let mut honest = node.client(2);
    honest.express("/nowhere");
    assert!(honest.next().unwrap().nack.is_some());
    assert!(node.control.snapshot().unwrap().face_count <= 8 + 2);
}

#[test]
fn a_queue_that_stays_long_is_told_to_who_causes_it() {
    let mut config = NodeConfig::default();
    config.face_defaults.default_congestion_threshold_bytes = Some(4096);
    config.face_defaults.base_congestion_marking_interval_ns = Some(1_000_000);
    let (node, _directory) = site(config);
    let mut producer = node.client(0);
    assert_eq!(producer.register("/app").status_code, 200);
    let serving = produce(producer, vec![1; 8000]);
    let mut slow = node.client(0);
    for n in 0..2000 {
        slow.express_with(&format!("/app/{n}"), None, |it| it.lifetime_ms(10_000));
    }
    // More than the kernel's buffers hold.
    wait_for("the answers", || node.control.snapshot().unwrap().counters.out_data >= 2000);
    let mut marks = 0;
    while marks == 0 {
        let got = slow.next().expect("a marked packet among the answers");
        marks += usize::from(got.mark.is_some());
    }
    drop(node);
    serving.join().unwrap();
}
