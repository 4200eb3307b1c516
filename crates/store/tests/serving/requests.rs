//! Requests as such: forms, reuse, limits, certificates.

use byname_packet::{Data, DataBuilder, DigestSigner, InterestBuilder, Name};
use byname_store::Exposure;
use byname_transfer::metadata::Absence;
use byname_transfer::naming;

use super::client::{Peer, Reply, World};

fn ask(peer: &mut Peer, uri: &str, can_be_prefix: bool) -> Reply {
    let name: Name = uri.parse().unwrap();
    peer.ask(&InterestBuilder::new(name.view()).can_be_prefix(can_be_prefix))
}

over_backends!(what_is_no_request_is_nacked);

fn what_is_no_request_is_nacked(world: World) {
    world.write("f", b"x");
    let mut peer = Peer::start(&world);
    for uri in ["/t", "/t/f", "/t/f/v=1", "/t/f/32=other", "/elsewhere/32=metadata", "/32=metadata"]
    {
        assert!(matches!(ask(&mut peer, uri, true), Reply::Nack(0)), "{uri}");
    }
    // Without CanBePrefix no versioned answer can match.
    assert!(matches!(ask(&mut peer, "/t/f/32=metadata", false), Reply::Nack(0)));
}

over_backends!(a_discovery_answer_is_one_signed_versioned_segment_and_is_reused);

fn a_discovery_answer_is_one_signed_versioned_segment_and_is_reused(world: World) {
    world.write("f", b"x");
    let mut peer = Peer::start(&world);
    peer.metadata("/t/f");
    let Reply::Data(first) = peer.ask_metadata("/t/f") else { panic!("Nack") };
    let data = Data::decode(&first).unwrap();
    assert_eq!(data.name.count(), 5);
    assert!(data.name.get(3).unwrap().version().is_some());
    assert_eq!(data.name.get(4).unwrap().segment(), Some(0));
    assert_eq!(data.meta.final_block_id.unwrap().segment(), Some(0));
    assert_eq!(data.meta.freshness_ms, 1000);
    assert_eq!(data.signature_info.signature_type, 0);
    let signed = peer.counters().signatures;
    let Reply::Data(second) = peer.ask_metadata("/t/f") else { panic!("Nack") };
    let counters = peer.counters();
    // A second may pass on a slow machine; then it is signed again.
    assert!(first == second || counters.signatures > signed);
    assert_eq!(counters.signatures + counters.signatures_reused, counters.metadata);
}

#[test]
fn absences_are_signed_and_short_lived() {
    let world = World::new();
    let mut peer = Peer::start(&world);
    assert_eq!(peer.absence("/t/nothing"), Absence::NotFound);
    let Reply::Data(wire) = peer.ask_metadata("/t/nothing") else { panic!("Nack") };
    let data = Data::decode(&wire).unwrap();
    assert_eq!((data.meta.content_type, data.meta.freshness_ms), (3, 100));
    assert!(data.content.is_empty());
    assert_eq!(data.signature_value.len(), 32);
    std::fs::write(world.path("nothing"), b"now").unwrap();
    let metadata = peer.metadata("/t/nothing");
    assert_eq!(peer.fetch(&metadata), b"now");
}

over_backends!(signing_is_limited_and_says_so);

fn signing_is_limited_and_says_so(world: World) {
    let mut config = world.config();
    config.engine.signatures_per_s = 40;
    let mut peer = Peer::start_with(config);
    for n in 0..2000u32 {
        let name: Name = format!("/t/{n}").parse().unwrap();
        let name = naming::metadata_name(name.view());
        peer.queue(&InterestBuilder::new(name.view()).can_be_prefix(true), &n.to_be_bytes());
    }
    peer.flush();
    let replies: Vec<_> = (0..2000).map(|_| peer.receive()).collect();
    let refused = replies.iter().filter(|(_, reply)| matches!(reply, Reply::Nack(50))).count();
    let counters = peer.counters();
    assert_eq!(counters.signing_limited, refused as u64);
    assert_eq!(counters.absences, 2000 - refused as u64);
    // A second's worth at once, and half of that is waited for.
    assert!(counters.absences >= 60 && refused > 1000, "{}", counters.absences);
}

over_backends!(too_many_waiting_requests_are_refused_and_the_rest_is_answered);

fn too_many_waiting_requests_are_refused_and_the_rest_is_answered(world: World) {
    let mut config = world.config();
    // A single asker gets half of it.
    config.engine.pending_max = 7;
    config.engine.quiet_ns = 1_000_000_000;
    world.write("f", b"x");
    let mut peer = Peer::start_with(config);
    let name = naming::metadata_name("/t/f".parse::<Name>().unwrap().view());
    for n in 0..10u8 {
        peer.send(&InterestBuilder::new(name.view()).can_be_prefix(true).lifetime_ms(4000), &[n]);
    }
    let replies: Vec<_> = (0..10).map(|_| peer.receive()).collect();
    let refused = replies.iter().filter(|(_, reply)| matches!(reply, Reply::Nack(50))).count();
    let answered = replies.iter().filter(|(_, reply)| matches!(reply, Reply::Data(_))).count();
    assert_eq!((refused, answered), (6, 4));
    assert_eq!(peer.counters().pending_full, 6);
}

#[test]
fn a_burst_larger_than_the_send_buffer_is_answered_whole() {
    let world = World::new();
    world.write("f", &vec![5; 8192 * 64]);
    let mut peer = Peer::start(&world);
    let metadata = peer.metadata("/t/f");
    let name = |n: u64| naming::segment_name(metadata.name.view(), naming::Part::Content, n % 64);
    const REQUESTS: u64 = 2000;
    for n in 0..REQUESTS {
        peer.send(&InterestBuilder::new(name(n).view()), &n.to_be_bytes());
    }
    for n in 0..REQUESTS {
        let (token, reply) = peer.receive();
        assert_eq!(token, n.to_be_bytes());
        assert!(matches!(reply, Reply::Data(_)));
    }
}

over_backends!(certificates_are_served_exactly_and_by_prefix);

fn certificates_are_served_exactly_and_by_prefix(world: World) {
    let name: Name = "/t/KEY/%01%02/self/v=1".parse().unwrap();
    let mut wire = Vec::new();
    let builder = DataBuilder::new(name.view()).content_type(2).freshness_ms(3_600_000);
    builder.encode(b"key", &DigestSigner, &mut wire).unwrap();
    let mut config = world.config();
    config.certificates.push(wire.clone());
    let mut peer = Peer::start_with(config);
    for (uri, can_be_prefix) in
        [("/t/KEY/%01%02/self/v=1", false), ("/t/KEY/%01%02/self", true), ("/t/KEY/%01%02", true)]
    {
        let Reply::Data(found) = ask(&mut peer, uri, can_be_prefix) else { panic!("{uri}") };
        assert_eq!(found, wire);
    }
    for (uri, can_be_prefix) in [("/t/KEY/%01%02", false), ("/t", true), ("/t/KEY/%09", true)] {
        assert!(matches!(ask(&mut peer, uri, can_be_prefix), Reply::Nack(0)), "{uri}");
    }
}

over_backends!(the_mount_with_the_longest_name_wins);

fn the_mount_with_the_longest_name_wins(world: World) {
    world.write("f", b"outer");
    world.write("sub/f", b"shadowed");
    let other = World::new();
    other.write("f", b"inner");
    let mut config = world.config();
    let mut inner = config.mounts[0].clone();
    inner.prefix = "/t/sub".parse().unwrap();
    inner.source = other.source(Exposure::default());
    config.mounts.push(inner);
    let mut everywhere = config.mounts[0].clone();
    everywhere.prefix = Name::new();
    config.mounts.push(everywhere);
    let mut peer = Peer::start_with(config);
    for (path, content) in [("/t/f", "outer"), ("/t/sub/f", "inner"), ("/f", "outer")] {
        let metadata = peer.metadata(path);
        assert_eq!(peer.fetch(&metadata), content.as_bytes(), "{path}");
    }
}
