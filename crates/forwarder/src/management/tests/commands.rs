//! Each command with each field missing, extra and wrong; who may give which; the bodies.

use byname_packet::mgmt::{PrefixAnnouncement, StrategyChoice, route_origin};
use byname_packet::{NullSigner, tlv};

use super::*;
use crate::management::fields::{self, Command};

/// Parameters with one field.
fn with_field(parameters: &mut ControlParameters, bit: u32) {
    match bit {
        fields::NAME => parameters.name = Some(name("/a")),
        fields::FACE_ID => parameters.face_id = Some(0),
        fields::URI => parameters.uri = Some("udp4://192.0.2.1:6363".into()),
        fields::LOCAL_URI => parameters.local_uri = Some("udp4://192.0.2.2:6363".into()),
        fields::ORIGIN => parameters.origin = Some(0),
        fields::COST => parameters.cost = Some(1),
        fields::CAPACITY => parameters.capacity = Some(100),
        fields::COUNT => parameters.count = Some(1),
        fields::FLAGS => parameters.flags = Some(1),
        fields::MASK => parameters.mask = Some(1),
        fields::STRATEGY => {
            parameters.strategy = Some(name("/localhost/nfd/strategy/multicast"));
        }
        fields::EXPIRATION => parameters.expiration_period_ms = Some(1000),
        fields::PERSISTENCY => parameters.face_persistency = Some(1),
        fields::MARKING_INTERVAL => {
            parameters.base_congestion_marking_interval_ns = Some(1);
        }
        fields::THRESHOLD => parameters.default_congestion_threshold_bytes = Some(1),
        fields::MTU => parameters.mtu = Some(1000),
        _ => unreachable!(),
    }
}

fn with_fields(bits: u32) -> ControlParameters {
    let mut parameters = ControlParameters::default();
    for bit in (0..16).map(|index| 1 << index).filter(|bit| bits & bit != 0) {
        with_field(&mut parameters, bit);
    }
    assert_eq!(fields::present(&parameters), bits);
    parameters
}

fn uri_of(module: &[u8], verb: &[u8]) -> String {
    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
    format!("/localhost/nfd/{}/{}", text(module), text(verb))
}

#[test]
fn a_field_that_is_missing_or_does_not_belong_is_refused() {
    for (module, verb, command_kind, takes) in Command::ALL {
        let uri = uri_of(module, verb);
        for bit in (0..16).map(|index| 1u32 << index) {
            let mut bench = Bench::new();
            let app = bench.local();
            let wrong = match (takes.required & bit != 0, takes.optional & bit != 0) {
                (true, _) => takes.required & !bit,
                (false, true) if bit == fields::FLAGS || bit == fields::MASK => {
                    let has_mask = takes.optional & fields::MASK != 0;
                    if !has_mask {
                        continue;
                    }
                    takes.required | bit
                }
                (false, true) => continue,
                (false, false) => takes.required | bit,
            };
            let response = command(&mut bench, app, &uri, &with_fields(wrong));
            let text = &response.status_text;
            assert_eq!(response.status_code, 400, "{command_kind:?} {wrong:b} {text}");
            assert!(text.starts_with("failed in validating parameters"), "{text}");
            assert_eq!(response.parameters().unwrap(), with_fields(wrong));
            assert!(bench.forwarder.poll_request().is_none());
            assert!(bench.forwarder.occupancy().rib_entries == 0);
        }
    }
}

/// Sends a command, reporting on a face that it asks for, and returns the answer.
fn command_with_driver(
    bench: &mut Bench,
    app: FaceId,
    uri: &str,
    parameters: &ControlParameters,
) -> ControlResponse {
    if uri != "/localhost/nfd/faces/create" {
        return command(bench, app, uri, parameters);
    }
    assert_eq!(send_command(bench, app, uri, parameters), []);
    let (id, _) = bench.forwarder.poll_request().unwrap();
    let face = bench.forwarder.add_face(FaceInfo {
        remote_uri: "udp4://192.0.2.1:6363".into(),
        local_uri: "udp4://192.0.2.2:6363".into(),
        ..FaceInfo::default()
    });
    let sent = bench.complete(id, Ok(face));
    ControlResponse::decode(sent[0].data().content).unwrap()
}

#[test]
fn every_command_succeeds_with_what_it_needs_and_answers_with_just_its_fields() {
    use fields::*;
    let face = PERSISTENCY | FLAGS | FACE_ID;
    let cases = [
        (Command::RibRegister, 0, NAME | FACE_ID | ORIGIN | COST | FLAGS),
        (Command::RibRegister, EXPIRATION, NAME | FACE_ID | ORIGIN | COST | FLAGS | EXPIRATION),
        (Command::RibUnregister, 0, NAME | FACE_ID | ORIGIN),
        (Command::FaceCreate, 0, face | URI | LOCAL_URI),
        (Command::FaceCreate, MTU | FLAGS | MASK, face | URI | LOCAL_URI | MTU),
        (Command::FaceUpdate, 0, face),
        (
            Command::FaceUpdate,
            FLAGS | MASK | MARKING_INTERVAL | THRESHOLD | MTU,
            face | MARKING_INTERVAL | THRESHOLD | MTU,
        ),
        (Command::FibAdd, 0, NAME | FACE_ID | COST),
        (Command::FibRemove, 0, NAME | FACE_ID),
        (Command::CsConfig, 0, CAPACITY | FLAGS),
        (Command::CsConfig, CAPACITY | FLAGS | MASK, CAPACITY | FLAGS),
        (Command::CsErase, 0, NAME | COUNT),
        (Command::CsErase, COUNT, NAME | COUNT),
        (Command::StrategySet, 0, NAME | STRATEGY),
        (Command::StrategyUnset, 0, NAME),
    ];
    for (kind, optional, body) in cases {
        let mut bench = Bench::new();
        let app = bench.local();
        let (module, verb, _, takes) = Command::ALL.into_iter().find(|c| c.2 == kind).unwrap();
        let parameters = with_fields(takes.required | optional);
        let response = command_with_driver(&mut bench, app, &uri_of(module, verb), &parameters);
        assert_eq!(response.status_code, 200, "{kind:?}: {}", response.status_text);
        assert_eq!(fields::present(&response.parameters().unwrap()), body, "{kind:?} {optional:b}");
    }
}

#[test]
fn only_whom_the_issue_names_may_command() {
    let gid = Config { authorized_gid: Some(50), ..Config::default() };
    let face =
        |local, peer_uid, peer_gid| FaceInfo { local, peer_uid, peer_gid, ..Default::default() };
    let peers = [
        (face(true, Some(1000), Some(1)), true),
        (face(true, Some(0), Some(0)), true),
        (face(true, Some(1001), Some(50)), true),
        (face(true, Some(1001), Some(51)), false),
        (face(true, None, None), false),
    ];
    for (info, is_full) in peers {
        for (module, verb, kind, takes) in Command::ALL {
            if kind == Command::FaceCreate && is_full {
                continue;
            }
            let mut bench = Bench::with(gid.clone());
            let app = bench.forwarder.add_face(info.clone());
            let mut parameters = with_fields(takes.required);
            if kind == Command::FaceDestroy {
                parameters.face_id = Some(app.0);
            }
            let response = command(&mut bench, app, &uri_of(module, verb), &parameters);
            let is_route = matches!(kind, Command::RibRegister | Command::RibUnregister);
            let is_own_route = is_route && info.peer_uid.is_some();
            let expected = if is_full || is_own_route { 200 } else { 403 };
            assert_eq!(response.status_code, expected, "{kind:?} {info:?}");
        }
    }
}

#[test]
fn a_next_hop_set_directly_serves_until_it_is_removed_and_is_no_route() {
    let mut bench = Bench::new();
    let (app, consumer, server) = (bench.local(), bench.remote(), bench.remote());
    bench.route("/", app, 10);
    let request = ControlParameters { face_id: Some(server.0), cost: Some(3), ..named("/a") };
    let response = command(&mut bench, app, "/localhost/nfd/fib/add-nexthop", &request);
    assert_eq!(response.parameters().unwrap(), request);
    assert_eq!(faces(&bench.interest(consumer, "/a/1", 1)), [server]);
    let fib = FibEntry::decode_all(&dataset(&mut bench, app, "/localhost/nfd/fib/list")).unwrap();
    assert_eq!(fib.iter().map(|entry| entry.next_hops.len()).collect::<Vec<_>>(), [1, 1]);
    let rib = RibEntry::decode_all(&dataset(&mut bench, app, "/localhost/nfd/rib/list")).unwrap();
    assert_eq!(rib.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>(), [name("/")]);
    let request = ControlParameters { face_id: Some(server.0), ..named("/a") };
    command(&mut bench, app, "/localhost/nfd/fib/remove-nexthop", &request);
    assert_eq!(faces(&bench.interest(consumer, "/a/2", 2)), [app]);
    let request = ControlParameters { face_id: Some(9999), ..named("/a") };
    let response = command(&mut bench, app, "/localhost/nfd/fib/add-nexthop", &request);
    assert_eq!(response.status_code, status_code::FACE_NOT_FOUND);
    // Nobody can register with the origin that stands for it.
    let request = ControlParameters { origin: Some(u64::MAX), ..named("/a") };
    assert_eq!(command(&mut bench, app, REGISTER, &request).status_code, 400);
}

#[test]
fn the_content_store_is_closed_opened_bounded_and_erased() {
    const CONFIG: &str = "/localhost/nfd/cs/config";
    const ERASE: &str = "/localhost/nfd/cs/erase";
    let mut bench = Bench::new();
    let (app, consumer) = (bench.local(), bench.remote());
    bench.route("/", app, 1);
    let fetch = |bench: &mut Bench, uri: &str| {
        bench.interest(consumer, uri, 1);
        bench.data(app, uri, 60_000);
    };
    for index in 0..600 {
        fetch(&mut bench, &format!("/file/{index}"));
    }
    fetch(&mut bench, "/other");
    let erase = |bench: &mut Bench, count| {
        let response = command(bench, app, ERASE, &ControlParameters { count, ..named("/file") });
        let body = response.parameters().unwrap();
        (body.count.unwrap(), body.capacity)
    };
    assert_eq!(erase(&mut bench, Some(10)), (10, None));
    assert_eq!(erase(&mut bench, None), (256, Some(256)), "the limit of one call");
    assert_eq!(erase(&mut bench, None), (256, Some(256)));
    assert_eq!(erase(&mut bench, Some(256)), (78, None));
    assert_eq!(erase(&mut bench, None), (0, None));
    let zero = ControlParameters { count: Some(0), ..named("/file") };
    assert_eq!(command(&mut bench, app, ERASE, &zero).status_code, 400);
    assert_eq!(faces(&bench.interest(consumer, "/other", 2)), [consumer], "still there");
    let exact = command(&mut bench, app, ERASE, &named("/other"));
    assert_eq!(exact.parameters().unwrap().count, Some(1));

    fetch(&mut bench, "/kept");
    let closed = ControlParameters { flags: Some(0), mask: Some(2), ..Default::default() };
    let body = command(&mut bench, app, CONFIG, &closed).parameters().unwrap();
    assert_eq!((body.flags, body.capacity), (Some(1), Some(65_536)));
    assert_eq!(faces(&bench.interest(consumer, "/kept", 3)), [app], "it does not serve");
    bench.data(app, "/kept", 60_000);
    let sealed = ControlParameters { flags: Some(2), mask: Some(3), ..Default::default() };
    command(&mut bench, app, CONFIG, &sealed);
    fetch(&mut bench, "/new");
    assert_eq!(faces(&bench.interest(consumer, "/new", 4)), [app], "it does not admit");
    assert_eq!(faces(&bench.interest(consumer, "/kept", 5)), [consumer]);
    let bounded = ControlParameters { capacity: Some(0), ..Default::default() };
    let body = command(&mut bench, app, CONFIG, &bounded).parameters().unwrap();
    assert_eq!((body.flags, body.capacity), (Some(2), Some(0)));
    let info = CsInfo::decode(&dataset(&mut bench, app, "/localhost/nfd/cs/info")).unwrap();
    assert_eq!((info.capacity, info.flags, info.entry_count), (0, 2, 0));
}

#[test]
fn strategies_are_chosen_with_and_without_version_and_shown_with_it() {
    const SET: &str = "/localhost/nfd/strategy-choice/set";
    const UNSET: &str = "/localhost/nfd/strategy-choice/unset";
    let mut bench = Bench::new();
    let app = bench.local();
    let chosen = |bench: &mut Bench| {
        let list = dataset(bench, app, "/localhost/nfd/strategy-choice/list");
        let mut list = StrategyChoice::decode_all(&list).unwrap();
        list.sort_by(|a, b| a.name.cmp(&b.name));
        list.iter().map(|c| format!("{} {}", c.name, c.strategy)).collect::<Vec<_>>()
    };
    let set = |strategy: &str| ControlParameters { strategy: Some(name(strategy)), ..named("/s") };
    let full = "/localhost/nfd/strategy/multicast/v=5";
    for wanted in ["/localhost/nfd/strategy/multicast", full] {
        let response = command(&mut bench, app, SET, &set(wanted));
        assert_eq!(response.parameters().unwrap(), set(full));
    }
    let best = "/ /localhost/nfd/strategy/best-route/v=5".to_owned();
    assert_eq!(chosen(&mut bench), [best.clone(), format!("/s {full}")]);
    for unknown in ["/localhost/nfd/strategy/multicast/v=6", "/localhost/nfd/strategy", "/x"] {
        let response = command(&mut bench, app, SET, &set(unknown));
        assert_eq!(response.status_code, status_code::NOT_FOUND, "{unknown}");
    }
    command(&mut bench, app, UNSET, &named("/s"));
    assert_eq!(chosen(&mut bench), [best]);
    assert_eq!(command(&mut bench, app, UNSET, &named("/")).status_code, 400);
}

/// A `rib/announce` of an announcement for `prefix`.
pub(super) fn announce(
    bench: &mut Bench,
    face: FaceId,
    (top, uri): (&str, &str),
    content: &[u8],
) -> Vec<crate::testing::Sent> {
    let (announced, mut packet) = (name(uri), Vec::new());
    byname_packet::DataBuilder::new(announced.view())
        .content_type(ContentType::PREFIX_ANNOUNCEMENT)
        .encode(content, &NullSigner, &mut packet)
        .unwrap();
    let mut wire = Vec::new();
    InterestBuilder::new(name(&format!("{top}/nfd/rib/announce")).view())
        .application_parameters(&packet)
        .encode_signed(&DigestSigner, SignatureExtra::default(), &mut wire)
        .unwrap();
    bench.packet(face, &LpHeader::default(), &wire)
}

#[test]
fn an_announcement_makes_a_route_that_lasts_as_long_as_it_says() {
    let mut bench = Bench::with(Config {
        start_unix_ns: 1_700_000_000_000 * MS,
        start_now_ns: 1000 * MS,
        ..Config::default()
    });
    let (app, consumer) = (bench.local(), bench.remote());
    let mut content = Vec::new();
    tlv::write_nni(&mut content, 109, 5000);
    let sent = announce(&mut bench, app, ("/localhost", "/net/32=PA/v=1/seg=0"), &content);
    let response = ControlResponse::decode(sent[0].data().content).unwrap();
    let expected = ControlParameters {
        face_id: Some(app.0),
        origin: Some(route_origin::PREFIX_ANNOUNCEMENT),
        cost: Some(2048),
        flags: Some(1),
        expiration_period_ms: Some(5000),
        ..named("/net")
    };
    assert_eq!(response.parameters().unwrap(), expected);
    assert_eq!(faces(&bench.interest(consumer, "/net/1", 1)), [app]);
    bench.wait_ms(5000);
    assert!(bench.interest(consumer, "/net/2", 2)[0].nack.is_some());
    let status = |bench: &mut Bench, uri: &str, content: &[u8]| {
        let sent = announce(bench, app, ("/localhost", uri), content);
        ControlResponse::decode(sent[0].data().content).unwrap().status_code
    };
    assert_eq!(status(&mut bench, "/net", &content), 400);
    assert_eq!(status(&mut bench, "/net/32=PA/v=1/seg=0", b""), 400);
    let long = format!("{}/32=PA/v=1/seg=0", "/x".repeat(33));
    assert_eq!(status(&mut bench, &long, &content), 414);
    // Valid only until a second ago.
    let mut late = content.clone();
    let times = [
        &[253, 0, 253, 38, 253, 0, 254, 15][..],
        b"20200101T000000",
        &[253, 0, 255, 15],
        b"20231114T221319",
    ];
    late.extend(times.concat());
    assert_eq!(status(&mut bench, "/net/32=PA/v=1/seg=0", &late), 403);
    assert!(PrefixAnnouncement::from_data(&sent[0].data()).is_err());
}
