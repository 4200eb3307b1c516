//! Commands about faces, and the driver's part in them.

use super::*;
use crate::face::{FaceFailure, FaceOptions, FaceRequest, Persistency};

const CREATE: &str = "/localhost/nfd/faces/create";
const UPDATE: &str = "/localhost/nfd/faces/update";
const DESTROY: &str = "/localhost/nfd/faces/destroy";

fn create(uri: &str) -> ControlParameters {
    ControlParameters { uri: Some(uri.into()), ..ControlParameters::default() }
}

fn update(flags: u64, mask: u64) -> ControlParameters {
    ControlParameters { flags: Some(flags), mask: Some(mask), ..ControlParameters::default() }
}

#[test]
fn a_face_is_made_by_the_driver_and_answered_when_it_reports() {
    let mut bench = Bench::new();
    let app = bench.local();
    // As ndn-dv writes it: a host name, and the highest persistency.
    let request = ControlParameters {
        face_persistency: Some(2),
        mtu: Some(1400),
        flags: Some(2),
        mask: Some(2),
        ..create("udp4://suns.cs.ucla.edu:6363")
    };
    assert_eq!(send_command(&mut bench, app, CREATE, &request), []);
    let (id, wanted) = bench.forwarder.poll_request().unwrap();
    let options =
        FaceOptions { reliability: true, mtu_bytes: Some(1400), ..FaceOptions::default() };
    assert_eq!(
        wanted,
        FaceRequest::Create {
            uri: "udp4://suns.cs.ucla.edu:6363".into(),
            local_uri: None,
            persistency: Persistency::Permanent,
            options: options.clone(),
        }
    );
    assert_eq!(bench.forwarder.poll_request(), None);
    let face = bench.forwarder.add_face(FaceInfo {
        persistency: Persistency::Permanent,
        remote_uri: "udp4://192.0.2.1:6363".into(),
        local_uri: "udp4://192.0.2.2:6363".into(),
        ..FaceInfo::default()
    });
    let sent = bench.complete(id, Ok(face));
    assert_eq!(sent[0].token.as_deref(), Some(&b"tok"[..]));
    let body = ControlParameters {
        face_id: Some(face.0),
        local_uri: Some("udp4://192.0.2.2:6363".into()),
        flags: Some(6),
        face_persistency: Some(2),
        mtu: Some(1400),
        ..create("udp4://192.0.2.1:6363")
    };
    let response = ControlResponse::decode(sent[0].data().content).unwrap();
    assert_eq!((response.status_code, response.parameters().unwrap()), (200, body.clone()));
    assert_eq!(bench.forwarder.face_options(face), Some(&options));
    assert_eq!(bench.complete(id, Ok(face)), [], "there is one answer");

    send_command(&mut bench, app, CREATE, &create("udp4://192.0.2.1:6363"));
    let (id, _) = bench.forwarder.poll_request().unwrap();
    let sent = bench.complete(id, Err(FaceFailure::Exists(face)));
    let response = ControlResponse::decode(sent[0].data().content).unwrap();
    let body = ControlParameters { mtu: None, ..body };
    assert_eq!((response.status_code, response.parameters().unwrap()), (409, body));
}

#[test]
fn an_mtu_of_auto_is_that_of_the_link() {
    let mut bench = Bench::new();
    let app = bench.local();
    let info = FaceInfo {
        remote_uri: "udp4://192.0.2.1:6363".into(),
        mtu_bytes: Some(1420),
        ..FaceInfo::default()
    };
    let face = bench.forwarder.add_face(info);
    let set = |mtu: u64| ControlParameters {
        face_id: Some(face.0),
        mtu: Some(mtu),
        ..ControlParameters::default()
    };
    let body = command(&mut bench, app, UPDATE, &set(1000)).parameters().unwrap();
    assert_eq!(body.mtu, Some(1000));
    // `nfdc face create remote … mtu auto`.
    let body = command(&mut bench, app, UPDATE, &set(u64::MAX)).parameters().unwrap();
    assert_eq!(body.mtu, Some(1420));
    assert_eq!(bench.forwarder.face_options(face).unwrap().mtu_bytes, None);
}

#[test]
fn what_the_driver_cannot_do_is_answered_with_the_code_that_clients_know() {
    let mut bench = Bench::new();
    let app = bench.local();
    let text = || String::from("because");
    for (failure, code) in [
        (FaceFailure::NotCanonical(text()), 400),
        (FaceFailure::Unsupported(text()), 406),
        (FaceFailure::Failed(text()), 504),
        (FaceFailure::Exists(FaceId(9999)), 500),
    ] {
        send_command(&mut bench, app, CREATE, &create("tcp4://192.0.2.1:6363"));
        let (id, _) = bench.forwarder.poll_request().unwrap();
        let sent = bench.complete(id, Err(failure.clone()));
        let response = ControlResponse::decode(sent[0].data().content).unwrap();
        assert_eq!(response.status_code, code, "{failure:?}");
        assert_eq!(response.parameters().unwrap(), create("tcp4://192.0.2.1:6363"));
    }
    let refused = |bench: &mut Bench, request: &ControlParameters| {
        let code = command(bench, app, CREATE, request).status_code;
        assert_eq!(bench.forwarder.poll_request(), None);
        code
    };
    for uri in ["", "nonsense", "://x", "tcp 4://x", "udp4://\u{0}", &"x".repeat(2000)] {
        assert_eq!(refused(&mut bench, &create(uri)), 400, "{uri}");
    }
    let face = create("udp4://192.0.2.1:6363");
    let on_demand = ControlParameters { face_persistency: Some(1), ..face.clone() };
    assert_eq!(refused(&mut bench, &on_demand), 406);
    let unknown = ControlParameters { face_persistency: Some(3), ..face.clone() };
    assert_eq!(refused(&mut bench, &unknown), 400);
    let tiny = ControlParameters { mtu: Some(63), ..face.clone() };
    assert_eq!(refused(&mut bench, &tiny), 406);
    let local = ControlParameters { local_uri: Some("nonsense".into()), ..face };
    assert_eq!(refused(&mut bench, &local), 400);
}

#[test]
fn a_client_gets_local_fields_on_its_own_face() {
    let mut bench = Bench::new();
    let (app, remote) = (bench.local(), bench.remote());
    for request in [update(1, 1), ControlParameters { face_id: Some(0), ..update(1, 1) }] {
        let response = command(&mut bench, app, UPDATE, &request);
        let body = response.parameters().unwrap();
        assert_eq!((response.status_code, body.face_id, body.flags), (200, Some(app.0), Some(5)));
        assert_eq!(body.face_persistency, Some(1));
    }
    assert!(bench.forwarder.face_options(app).unwrap().local_fields);
    let (_, changed) = bench.forwarder.poll_request().unwrap();
    assert_eq!(changed, FaceRequest::Changed { face: app });
    assert_eq!(bench.forwarder.poll_request(), None, "the second time nothing changes");

    let other = ControlParameters { face_id: Some(remote.0), ..update(1, 1) };
    let response = command(&mut bench, app, UPDATE, &other);
    assert_eq!(response.status_code, 409);
    assert_eq!(response.parameters().unwrap(), update(1, 1), "just what cannot be");
    assert!(!bench.forwarder.face_options(remote).unwrap().local_fields);
    let off = command(&mut bench, app, UPDATE, &update(0, 5)).parameters().unwrap();
    assert_eq!(off.flags, Some(0));
}

#[test]
fn properties_of_faces_change_as_far_as_their_links_allow() {
    let mut bench = Bench::new();
    let app = bench.local();
    let peer = bench.forwarder.add_face(FaceInfo {
        remote_uri: "udp4://192.0.2.1:6363".into(),
        mtu_bytes: Some(8800),
        ..FaceInfo::default()
    });
    let request = ControlParameters {
        face_id: Some(peer.0),
        face_persistency: Some(2),
        base_congestion_marking_interval_ns: Some(5),
        default_congestion_threshold_bytes: Some(6),
        ..update(2, 6)
    };
    let body = command(&mut bench, app, UPDATE, &request).parameters().unwrap();
    let expected = ControlParameters { flags: Some(2), mask: None, ..request };
    assert_eq!(body, expected);
    let info = bench.forwarder.face_info(peer).unwrap();
    assert_eq!(info.persistency, Persistency::Permanent);
    let list = dataset(&mut bench, app, "/localhost/nfd/faces/list");
    let shown = FaceStatus::decode_all(&list).unwrap().pop().unwrap();
    assert_eq!((shown.persistency, shown.flags, shown.mtu), (2, 2, Some(8800)));
    assert_eq!(shown.base_congestion_marking_interval_ns, Some(5));
    assert_eq!(shown.default_congestion_threshold_bytes, Some(6));

    let own = ControlParameters { face_persistency: Some(2), ..Default::default() };
    let response = command(&mut bench, app, UPDATE, &own);
    assert_eq!((response.status_code, response.parameters().unwrap()), (409, own));
    let unknown = ControlParameters { face_persistency: Some(7), ..Default::default() };
    assert_eq!(command(&mut bench, app, UPDATE, &unknown).status_code, 400);
    let absent = ControlParameters { face_id: Some(9999), ..update(1, 1) };
    assert_eq!(command(&mut bench, app, UPDATE, &absent).status_code, 404);
}

#[test]
fn a_face_is_destroyed_once_and_absent_ones_are_fine() {
    let mut bench = Bench::new();
    let (app, peer) = (bench.local(), bench.remote());
    let destroy = |id: u64| ControlParameters { face_id: Some(id), ..Default::default() };
    for _ in 0..2 {
        let response = command(&mut bench, app, DESTROY, &destroy(peer.0));
        assert_eq!((response.status_code, response.parameters().unwrap()), (200, destroy(peer.0)));
    }
    let (id, wanted) = bench.forwarder.poll_request().unwrap();
    assert_eq!(wanted, FaceRequest::Destroy { face: peer });
    assert_eq!(bench.forwarder.poll_request(), None);
    bench.forwarder.remove_face(peer);
    assert_eq!(bench.complete(id, Ok(peer)), [], "no report is needed");
    assert_eq!(command(&mut bench, app, DESTROY, &destroy(peer.0)).status_code, 200);
    assert_eq!(bench.forwarder.poll_request(), None);
    assert_eq!(command(&mut bench, app, DESTROY, &destroy(0)).status_code, 400);
}

#[test]
fn requests_to_the_driver_are_bounded() {
    let mut bench = Bench::new();
    let app = bench.local();
    let mut refused = 0;
    for index in 0..5000 {
        let sent = send_command(&mut bench, app, CREATE, &create(&format!("udp4://h:{index}")));
        refused += sent.len();
    }
    assert_eq!(refused, 5000 - 4096);
    let response = command(&mut bench, app, CREATE, &create("udp4://h:1"));
    assert_eq!(response.status_code, 500);
}
