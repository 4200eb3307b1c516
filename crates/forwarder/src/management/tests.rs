//! Commands and datasets as clients send them, both generations.

mod commands;
mod datasets;
mod events;
mod faces;
mod hostile;
mod readvertise;
mod remote;

use byname_packet::lp::LpHeader;
use byname_packet::mgmt::{
    ControlParameters, ControlResponse, CsInfo, FaceStatus, FibEntry, GeneralStatus, RibEntry,
    status_code,
};
use byname_packet::{
    ContentType, Data, DigestSigner, Interest, InterestBuilder, Name, SignatureExtra,
};

use crate::config::Config;
use crate::counters::DropReason;
use crate::face::{FaceId, FaceInfo};
use crate::rib::Route;
use crate::testing::{Bench, MS, Sent, faces, name};

const REGISTER: &str = "/localhost/nfd/rib/register";
const UNREGISTER: &str = "/localhost/nfd/rib/unregister";

fn named(uri: &str) -> ControlParameters {
    ControlParameters { name: Some(name(uri)), ..ControlParameters::default() }
}

fn component(parameters: &ControlParameters) -> Vec<u8> {
    let mut out = Vec::new();
    parameters.encode(&mut out);
    out
}

/// A command in the form of packet format v0.3.
fn command_wire(uri: &str, p: &ControlParameters) -> Vec<u8> {
    let name = name(uri).with_generic(&component(p));
    let mut wire = Vec::new();
    let extra = SignatureExtra { nonce: Some(&[1; 8]), time_ms: Some(5), ..Default::default() };
    InterestBuilder::new(name.view()).encode_signed(&DigestSigner, extra, &mut wire).unwrap();
    wire
}

/// Sends a command; what is sent at once.
fn send_command(bench: &mut Bench, face: FaceId, uri: &str, p: &ControlParameters) -> Vec<Sent> {
    let token = LpHeader { pit_token: Some(b"tok"), ..LpHeader::default() };
    bench.packet(face, &token, &command_wire(uri, p))
}

/// Sends a command that is answered at once; the answer.
fn command(bench: &mut Bench, face: FaceId, uri: &str, p: &ControlParameters) -> ControlResponse {
    let sent = send_command(bench, face, uri, p);
    assert_eq!(faces(&sent), [face]);
    assert_eq!(sent[0].token.as_deref(), Some(&b"tok"[..]));
    let data = Data::decode(&sent[0].wire).unwrap();
    assert_eq!(data.name, Interest::decode(&command_wire(uri, p)).unwrap().name);
    assert_eq!(data.meta.freshness_ms, 1000);
    ControlResponse::decode(data.content).unwrap()
}

#[test]
fn a_route_is_registered_with_defaults_and_the_body_has_exactly_its_fields() {
    let mut bench = Bench::new();
    let (app, consumer) = (bench.local(), bench.remote());
    let response = command(&mut bench, app, REGISTER, &named("/app"));
    assert_eq!(response.status_code, status_code::OK);
    let expected = ControlParameters {
        face_id: Some(app.0),
        origin: Some(0),
        cost: Some(0),
        flags: Some(1),
        ..named("/app")
    };
    assert_eq!(response.parameters().unwrap(), expected);
    assert_eq!(faces(&bench.interest(consumer, "/app/1", 1)), [app]);

    let response = command(&mut bench, app, UNREGISTER, &named("/app"));
    let expected = ControlParameters { face_id: Some(app.0), origin: Some(0), ..named("/app") };
    assert_eq!(response.parameters().unwrap(), expected);
    assert!(bench.interest(consumer, "/app/2", 2)[0].nack.is_some());
}

#[test]
fn a_route_expires_unless_renewed() {
    let mut bench = Bench::new();
    let (app, consumer) = (bench.local(), bench.local());
    let request = ControlParameters {
        origin: Some(65),
        flags: Some(2),
        expiration_period_ms: Some(1000),
        ..named("/app")
    };
    let response = command(&mut bench, app, REGISTER, &request);
    assert_eq!(response.parameters().unwrap().expiration_period_ms, Some(1000));
    bench.wait_ms(600);
    command(&mut bench, app, REGISTER, &request);
    bench.wait_ms(600);
    assert_eq!(faces(&bench.interest(consumer, "/app/1", 1)), [app]);
    assert!(bench.forwarder.poll_timeout().is_some());
    bench.wait_ms(400);
    assert!(bench.interest(consumer, "/app/2", 2)[0].nack.is_some());
}

#[test]
fn the_older_form_of_signed_commands_works() {
    let mut bench = Bench::new();
    let (app, consumer) = (bench.local(), bench.local());
    let mut signed = name(REGISTER).with_generic(&component(&named("/app")));
    signed.push_generic(&[0, 0, 1, 0x90, 0, 0, 0, 0]);
    signed.push_generic(&[7; 8]);
    signed.push_generic(&[0x16, 0x03, 0x1B, 0x01, 0x00]);
    signed.push_generic(&[&[0x17, 0x20][..], &[0; 32]].concat());
    let mut wire = Vec::new();
    InterestBuilder::new(signed.view()).nonce([1; 4]).encode(&mut wire);
    let sent = bench.packet(app, &LpHeader::default(), &wire);
    let data = sent[0].data();
    assert_eq!(data.name, signed.view());
    assert_eq!(ControlResponse::decode(data.content).unwrap().status_code, 200);
    assert_eq!(faces(&bench.interest(consumer, "/app/1", 1)), [app]);
}

#[test]
fn a_route_to_another_face_needs_full_authority() {
    let mut bench = Bench::with(Config { allow_register_loopback: true, ..Config::default() });
    let (ours, other) = (bench.local(), bench.remote());
    let tcp = bench.forwarder.add_face(FaceInfo { local: true, ..FaceInfo::default() });
    let request = ControlParameters { face_id: Some(other.0), cost: Some(7), ..named("/app") };
    let response = command(&mut bench, tcp, REGISTER, &request);
    assert_eq!(response.status_code, status_code::UNAUTHORIZED);
    assert_eq!(response.parameters().unwrap(), request, "clients want to see what was refused");
    let response = command(&mut bench, ours, REGISTER, &request);
    assert_eq!(response.parameters().unwrap().face_id, Some(other.0));
    let own = ControlParameters { face_id: Some(tcp.0), ..named("/own") };
    assert_eq!(command(&mut bench, tcp, REGISTER, &own).status_code, status_code::OK);
    assert_eq!(command(&mut bench, tcp, UNREGISTER, &request).status_code, 403);
}

#[test]
fn over_loopback_tcp_nothing_is_registered_unless_the_operator_allows_it() {
    let mut bench = Bench::new();
    let tcp = bench.forwarder.add_face(FaceInfo { local: true, ..FaceInfo::default() });
    for command_name in [REGISTER, "/localhop/nfd/rib/register"] {
        let response = command(&mut bench, tcp, command_name, &named("/app"));
        assert_eq!(response.status_code, status_code::UNAUTHORIZED);
        assert!(response.status_text.contains("Unix socket"), "{}", response.status_text);
    }
    assert!(bench.forwarder.next_hops(&name("/app")).is_none());
    let open = Config { own_uid: 1000, allow_register_loopback: true, ..Config::default() };
    bench.forwarder.reconfigure(&open);
    let later = named("/later");
    assert_eq!(command(&mut bench, tcp, REGISTER, &later).status_code, status_code::OK);
}

#[test]
fn remote_faces_command_nothing_and_are_told_what_would_help() {
    let mut bench = Bench::new();
    let remote = bench.remote();
    let response = command(&mut bench, remote, "/localhop/nfd/rib/register", &named("/app"));
    assert_eq!(response.status_code, status_code::UNAUTHORIZED);
    assert!(response.status_text.contains("operator"), "{}", response.status_text);
    let mut wire = Vec::new();
    InterestBuilder::new(name(REGISTER).view()).encode(&mut wire);
    assert_eq!(bench.packet(remote, &LpHeader::default(), &wire), []);
    assert_eq!(bench.last_drop, Some(DropReason::ScopeViolation));
    assert!(bench.forwarder.next_hops(&name("/app")).is_none());
}

#[test]
fn localhop_commands_of_local_clients_work() {
    let mut bench = Bench::new();
    let app = bench.local();
    let response = command(&mut bench, app, "/localhop/nfd/rib/register", &named("/app"));
    assert_eq!(response.status_code, status_code::OK);
}

#[test]
fn bad_commands_get_the_status_that_clients_know() {
    let mut bench = Bench::new();
    let app = bench.local();
    let long = (0..33).fold(Name::new(), |name, _| name.with_generic(b"x"));
    let cases = [
        (REGISTER, ControlParameters::default(), status_code::BAD_REQUEST),
        (REGISTER, ControlParameters { uri: Some("x".into()), ..named("/a") }, 400),
        (REGISTER, ControlParameters { flags: Some(8), ..named("/a") }, 400),
        (REGISTER, ControlParameters { face_id: Some(9), ..named("/a") }, 410),
        (REGISTER, ControlParameters { name: Some(long), ..named("/a") }, 414),
        (UNREGISTER, ControlParameters { cost: Some(1), ..named("/a") }, 400),
        ("/localhost/nfd/faces/create", named("/a"), status_code::BAD_REQUEST),
        ("/localhost/nfd/rib/announce", named("/a"), status_code::BAD_REQUEST),
    ];
    for (uri, parameters, expected) in cases {
        let response = command(&mut bench, app, uri, &parameters);
        assert_eq!(response.status_code, expected, "{uri} {parameters:?}");
        assert_eq!(response.parameters().unwrap(), parameters);
    }
    let unsigned = name(REGISTER).with_generic(&component(&named("/a")));
    let sent = bench.interest(app, &unsigned.to_string(), 1);
    let response = ControlResponse::decode(sent[0].data().content).unwrap();
    assert_eq!(response.status_code, status_code::UNAUTHORIZED);
    let garbage = name(REGISTER).with_generic(b"\xFFnonsense");
    let mut wire = Vec::new();
    InterestBuilder::new(garbage.view())
        .encode_signed(&DigestSigner, SignatureExtra::default(), &mut wire)
        .unwrap();
    let sent = bench.packet(app, &LpHeader::default(), &wire);
    let response = ControlResponse::decode(sent[0].data().content).unwrap();
    assert_eq!(response.status_code, status_code::BAD_REQUEST);
}

#[test]
fn a_full_routing_table_says_so() {
    let mut bench = Bench::with(Config { routes_max: 1, ..Config::default() });
    let app = bench.local();
    assert_eq!(command(&mut bench, app, REGISTER, &named("/a")).status_code, 200);
    let response = command(&mut bench, app, REGISTER, &named("/b"));
    assert_eq!(response.status_code, status_code::SERVER_ERROR);
    assert!(response.status_text.contains("full"));
}

#[test]
fn the_unknown_is_answered_with_an_application_nack() {
    let mut bench = Bench::new();
    let app = bench.local();
    for (uri, status) in [
        ("/localhost/nfd/rib/nonsense", status_code::NOT_IMPLEMENTED),
        ("/localhost/nfd/nonsense/list", status_code::NOT_FOUND),
        ("/localhost/nfd", status_code::NOT_FOUND),
    ] {
        let sent = bench.interest_with(app, uri, 1, |i| i.can_be_prefix(true));
        let data = sent[0].data();
        assert_eq!(data.meta.content_type, ContentType::NACK, "{uri}");
        assert_eq!(ControlResponse::decode(data.content).unwrap().status_code, status, "{uri}");
    }
}

/// Fetches all segments as clients do: the first by prefix, the others by exact name.
fn dataset(bench: &mut Bench, face: FaceId, uri: &str) -> Vec<u8> {
    let first = bench.interest_with(face, uri, 1, |i| i.can_be_prefix(true).must_be_fresh(true));
    let first = first[0].data();
    let last = first.meta.final_block_id.expect("in every segment").segment().unwrap();
    let base = first.name.without_last(1);
    assert!(base.last().unwrap().version().is_some());
    assert_eq!(first.name.last().unwrap().segment(), Some(0));
    // Some clients ask for segment 0 once more.
    let mut payload = Vec::new();
    for index in 0..=last {
        let segment = base.to_name().with_segment(index).to_string();
        let sent = bench.interest(face, &segment, 2);
        let data = sent[0].data();
        assert_eq!(data.meta.final_block_id.unwrap().segment(), Some(last));
        assert!(data.content.len() <= 8000);
        payload.extend_from_slice(data.content);
    }
    payload
}

#[test]
fn datasets_show_the_tables() {
    let mut bench = Bench::with(Config {
        start_unix_ns: 1_700_000_000_000 * MS,
        start_now_ns: 400 * MS,
        version: "byname test".into(),
        ..Config::default()
    });
    let (app, remote) = (bench.local(), bench.remote());
    bench.route("/", remote, 10);
    bench.route("/app", app, 5);
    bench.interest(remote, "/app/1", 1);
    bench.data(app, "/app/1", 1000);
    let status = dataset(&mut bench, app, "/localhost/nfd/status/general");
    let status = GeneralStatus::decode(&status).unwrap();
    assert_eq!(status.version, "byname test");
    assert_eq!(status.start_timestamp_ms, 1_700_000_000_000);
    assert_eq!(status.current_timestamp_ms, 1_700_000_000_600);
    assert_eq!((status.fib_entry_count, status.cs_entry_count), (2, 1));
    assert_eq!((status.in_data_count, status.satisfied_interest_count), (1, 1));
    let list = dataset(&mut bench, app, "/localhost/nfd/faces/list");
    let list = FaceStatus::decode_all(&list).unwrap();
    assert_eq!(list.iter().map(|f| f.face_id).collect::<Vec<_>>(), [app.0, remote.0]);
    assert_eq!(list.iter().map(|f| f.scope).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(list[1].in_interest_count, 1);
    let mut fib =
        FibEntry::decode_all(&dataset(&mut bench, app, "/localhost/nfd/fib/list")).unwrap();
    fib.sort_by(|a, b| a.name.cmp(&b.name));
    let hops: Vec<_> = fib[1].next_hops.iter().map(|hop| (hop.face_id, hop.cost)).collect();
    assert_eq!(hops, [(app.0, 5), (remote.0, 10)], "with what is inherited");
    let rib = RibEntry::decode_all(&dataset(&mut bench, app, "/localhost/nfd/rib/list")).unwrap();
    assert_eq!(rib[1].name, name("/app"));
    assert_eq!(rib[1].routes.len(), 1);
    let cs = CsInfo::decode(&dataset(&mut bench, app, "/localhost/nfd/cs/info")).unwrap();
    assert_eq!((cs.entry_count, cs.capacity), (1, 65_536));
    let strategies = dataset(&mut bench, app, "/localhost/nfd/strategy-choice/list");
    assert!(strategies.windows(10).any(|w| w == b"best-route"));
}

#[test]
fn a_dataset_of_many_segments_is_one_snapshot() {
    let mut bench = Bench::new();
    let (app, remote) = (bench.local(), bench.remote());
    for i in 0..1000 {
        bench.route(&format!("/some/longer/prefix/{i}"), remote, i);
    }
    let uri = "/localhost/nfd/rib/list";
    let first = bench.interest_with(app, uri, 1, |i| i.can_be_prefix(true));
    let base = first[0].data().name.without_last(1).to_name();
    let last = first[0].data().meta.final_block_id.unwrap().segment().unwrap();
    assert!(last >= 4);
    // What changes meanwhile does not show.
    for i in 0..1000 {
        bench.forwarder.remove_route(&name(&format!("/some/longer/prefix/{i}")), remote, 0);
    }
    let mut payload = first[0].data().content.to_vec();
    for index in 1..=last {
        let sent = bench.interest(app, &base.with_segment(index).to_string(), 2);
        payload.extend_from_slice(sent[0].data().content);
    }
    assert_eq!(RibEntry::decode_all(&payload).unwrap().len(), 1000);
    assert_eq!(bench.interest(app, &base.with_segment(last + 1).to_string(), 3), []);
    assert_eq!(bench.last_drop, Some(DropReason::UnansweredManagement));
    // Other snapshots push it out in the end.
    let route = Route { face: remote, origin: 0, cost: 0, flags: 1, expires_ns: None };
    for i in 0..1000 {
        bench.forwarder.add_route(&name(&format!("/some/longer/prefix/{i}")), route).unwrap();
    }
    for _ in 0..64 {
        bench.interest_with(app, uri, 1, |i| i.can_be_prefix(true));
    }
    assert_eq!(bench.interest(app, &base.with_segment(1).to_string(), 4), []);
}

#[test]
fn signed_dataset_requests_are_answered_below_their_digest() {
    let mut bench = Bench::new();
    let app = bench.local();
    let mut wire = Vec::new();
    InterestBuilder::new(name("/localhost/nfd/faces/list").view())
        .can_be_prefix(true)
        .must_be_fresh(true)
        .encode_signed(&DigestSigner, SignatureExtra::default(), &mut wire)
        .unwrap();
    let sent = bench.packet(app, &LpHeader::default(), &wire);
    let interest = Interest::decode(&wire).unwrap();
    let data = sent[0].data();
    assert!(interest.matches(&data), "{}", data.name.to_name());
    assert_eq!(data.name.count(), interest.name.count() + 2);
    assert_eq!(FaceStatus::decode_all(data.content).unwrap().len(), 1);
    let digest_at = interest.name.count() - 1;
    assert_eq!(data.name.get(digest_at), interest.name.last());
}
