//! Datasets read back, their filters, and long ones.

use byname_packet::mgmt::{ChannelStatus, FaceQueryFilter};

use super::*;

/// The faces that a query finds.
fn query(bench: &mut Bench, face: FaceId, filter: &FaceQueryFilter) -> Vec<u64> {
    let mut component = Vec::new();
    filter.encode(&mut component);
    let uri = name("/localhost/nfd/faces/query").with_generic(&component).to_string();
    let found = FaceStatus::decode_all(&dataset(bench, face, &uri)).unwrap();
    found.iter().map(|face| face.face_id).collect()
}

#[test]
fn faces_are_found_by_what_a_query_says() {
    let mut bench = Bench::new();
    let app = bench.local();
    let mut add = |remote: &str, local: &str, persistency| {
        let info = FaceInfo {
            remote_uri: remote.into(),
            local_uri: local.into(),
            persistency,
            ..FaceInfo::default()
        };
        bench.forwarder.add_face(info)
    };
    use crate::face::Persistency::{OnDemand, Permanent};
    let udp = add("udp4://192.0.2.1:6363", "udp4://192.0.2.2:6363", Permanent);
    let tcp = add("tcp4://192.0.2.1:7000", "tcp4://192.0.2.2:6363", OnDemand);
    let text = |text: &str| Some(String::from(text));
    let filter = FaceQueryFilter::default;
    let cases = [
        (filter(), vec![app, udp, tcp]),
        (FaceQueryFilter { face_id: Some(udp.0), ..filter() }, vec![udp]),
        (FaceQueryFilter { uri_scheme: text("tcp4"), ..filter() }, vec![tcp]),
        (FaceQueryFilter { uri_scheme: text("tcp"), ..filter() }, vec![]),
        (FaceQueryFilter { uri: text("udp4://192.0.2.1:6363"), ..filter() }, vec![udp]),
        (FaceQueryFilter { local_uri: text("tcp4://192.0.2.2:6363"), ..filter() }, vec![tcp]),
        (FaceQueryFilter { scope: Some(1), ..filter() }, vec![app]),
        (FaceQueryFilter { persistency: Some(2), ..filter() }, vec![udp]),
        (FaceQueryFilter { link_type: Some(0), scope: Some(0), ..filter() }, vec![udp, tcp]),
        (FaceQueryFilter { link_type: Some(1), ..filter() }, vec![]),
    ];
    for (filter, expected) in cases {
        let expected: Vec<u64> = expected.iter().map(|face| face.0).collect();
        assert_eq!(query(&mut bench, app, &filter), expected, "{filter:?}");
    }
    for malformed in ["", "/x", "/%FF%FF"] {
        let uri = format!("/localhost/nfd/faces/query{malformed}");
        let sent = bench.interest_with(app, &uri, 1, |i| i.can_be_prefix(true));
        let data = sent[0].data();
        assert_eq!(data.meta.content_type, ContentType::NACK);
        assert_eq!(ControlResponse::decode(data.content).unwrap().status_code, 400);
    }
}

#[test]
fn channels_are_those_the_driver_names() {
    let mut bench = Bench::new();
    let app = bench.local();
    assert_eq!(dataset(&mut bench, app, "/localhost/nfd/faces/channels"), b"");
    let uris = ["unix:///run/nfd/nfd.sock", "udp4://0.0.0.0:6363"].map(String::from);
    bench.forwarder.set_channels(uris.to_vec());
    let list = dataset(&mut bench, app, "/localhost/nfd/faces/channels");
    let list = ChannelStatus::decode_all(&list).unwrap();
    assert_eq!(list.into_iter().map(|c| c.local_uri).collect::<Vec<_>>(), uris);
}

#[test]
fn a_route_shows_how_long_it_lasts() {
    let mut bench = Bench::new();
    let app = bench.local();
    let request = ControlParameters { expiration_period_ms: Some(5000), ..named("/a") };
    command(&mut bench, app, REGISTER, &request);
    bench.wait_ms(2000);
    let rib = RibEntry::decode_all(&dataset(&mut bench, app, "/localhost/nfd/rib/list")).unwrap();
    assert_eq!(rib[0].routes[0].expiration_period_ms, Some(3000));
    // For ever is repeated in the answer, and shows as no period.
    let request = ControlParameters { expiration_period_ms: Some(u64::MAX), ..named("/a") };
    let body = command(&mut bench, app, REGISTER, &request).parameters().unwrap();
    assert_eq!(body.expiration_period_ms, Some(u64::MAX));
    let rib = RibEntry::decode_all(&dataset(&mut bench, app, "/localhost/nfd/rib/list")).unwrap();
    assert_eq!(rib[0].routes[0].expiration_period_ms, None);
    assert_eq!(bench.forwarder.poll_timeout(), None);
}

#[test]
fn a_period_longer_than_any_clock_means_for_ever() {
    let mut bench = Bench::new();
    let app = bench.local();
    // NLSR sends 2^63 - 1 milliseconds.
    for period_ms in [(1 << 62) + 1, i64::MAX as u64, u64::MAX - 1] {
        let request = ControlParameters { expiration_period_ms: Some(period_ms), ..named("/a") };
        let body = command(&mut bench, app, REGISTER, &request).parameters().unwrap();
        assert_eq!(body.expiration_period_ms, Some(period_ms), "what was asked for is repeated");
        let list = dataset(&mut bench, app, "/localhost/nfd/rib/list");
        let rib = RibEntry::decode_all(&list).unwrap();
        assert_eq!(rib[0].routes[0].expiration_period_ms, None, "{period_ms}");
        assert_eq!(bench.forwarder.poll_timeout(), None);
    }
}

#[test]
fn every_face_shows_its_marking_and_its_mtu() {
    let mut bench = Bench::new();
    let app = bench.local();
    let list = dataset(&mut bench, app, "/localhost/nfd/faces/list");
    let shown = FaceStatus::decode_all(&list).unwrap().remove(0);
    // As NFD shows a Unix face.
    assert_eq!(shown.base_congestion_marking_interval_ns, Some(100_000_000));
    assert_eq!(shown.default_congestion_threshold_bytes, Some(65_536));
    assert_eq!(shown.mtu, Some(8800));
}

/// Fetches all segments after the first, which is `sent`.
fn rest(bench: &mut Bench, face: FaceId, sent: &[Sent]) -> Vec<u8> {
    let first = sent[0].data();
    let last = first.meta.final_block_id.unwrap().segment().unwrap();
    let base = first.name.without_last(1).to_name();
    let mut payload = first.content.to_vec();
    for index in 1..=last {
        let sent = bench.interest(face, &base.with_segment(index).to_string(), 2);
        payload.extend_from_slice(sent[0].data().content);
    }
    payload
}

#[test]
fn a_long_listing_is_made_in_slices_while_packets_pass() {
    let mut bench = Bench::new();
    let (app, other, remote) = (bench.local(), bench.local(), bench.remote());
    for index in 0..20_000 {
        bench.route(&format!("/p/{index}"), remote, index);
    }
    bench.after_ms(0);
    for uri in ["/localhost/nfd/rib/list", "/localhost/nfd/fib/list"] {
        let ask = |bench: &mut Bench, face| {
            bench.interest_with(face, uri, 1, |i| i.can_be_prefix(true).must_be_fresh(true))
        };
        assert_eq!(ask(&mut bench, app), []);
        assert_eq!(ask(&mut bench, app), [], "asking again changes nothing");
        assert_eq!(ask(&mut bench, other), []);
        let mut slices = 0;
        let sent = loop {
            assert_eq!(bench.forwarder.poll_timeout(), Some(0));
            slices += 1;
            let sent = bench.after_ms(0);
            if !sent.is_empty() {
                break sent;
            }
            assert_eq!(faces(&bench.interest(app, &format!("/p/7{uri}/{slices}"), 1)), [remote]);
        };
        assert!(slices > 2);
        assert_eq!(faces(&sent), [app, other], "both wait for the same");
        assert_eq!(RibEntry::decode_all(&rest(&mut bench, app, &sent)).unwrap().len(), 20_000);
        let again = ask(&mut bench, app);
        assert_eq!(again[0].data().name, sent[0].data().name, "it was made just now");
        bench.wait_ms(1001);
        assert_eq!(ask(&mut bench, app), []);
        while bench.after_ms(0).is_empty() {}
    }
}

#[test]
fn a_change_at_the_root_and_a_face_that_goes_reach_a_large_table_in_slices() {
    let mut bench = Bench::new();
    let (app, remote, gone) = (bench.local(), bench.remote(), bench.remote());
    for index in 0..20_000 {
        bench.route(&format!("/p/{index}"), gone, 0);
        bench.forwarder.remove_route(&name(&format!("/p/{index}")), app, 7);
        if index % 2 == 0 {
            bench.route(&format!("/p/{index}"), app, 5);
        }
    }
    let finish = |bench: &mut Bench| {
        let mut calls = 0;
        while bench.forwarder.poll_timeout() == Some(0) {
            bench.after_ms(0);
            calls += 1;
        }
        calls
    };
    finish(&mut bench);
    bench.route("/", remote, 9);
    assert!(finish(&mut bench) > 2);
    let hops = |bench: &Bench, uri: &str| -> Vec<FaceId> {
        let hops = bench.forwarder.next_hops(&name(uri));
        hops.unwrap_or_default().iter().map(|hop| hop.face).collect()
    };
    for index in 0..20_000 {
        assert!(hops(&bench, &format!("/p/{index}")).contains(&remote), "{index}");
    }
    bench.forwarder.remove_face(gone);
    assert!(finish(&mut bench) > 2);
    for index in 0..20_000 {
        let found = hops(&bench, &format!("/p/{index}"));
        let expected = if index % 2 == 0 { vec![app, remote] } else { vec![] };
        assert_eq!(found, expected, "{index}");
    }
    assert_eq!(bench.forwarder.occupancy().rib_entries, 10_001);
}

#[test]
fn a_face_without_a_link_is_shown_as_down() {
    let mut bench = Bench::new();
    let (app, neighbour) = (bench.local(), bench.remote());
    let shown = |bench: &mut Bench| {
        let list = dataset(bench, app, "/localhost/nfd/faces/list");
        let faces = FaceStatus::decode_all(&list).unwrap();
        faces.into_iter().map(|face| (face.face_id, face.is_down)).collect::<Vec<_>>()
    };
    assert_eq!(shown(&mut bench), [(app.0, false), (neighbour.0, false)]);
    bench.forwarder.set_face_up(neighbour, false);
    assert_eq!(shown(&mut bench), [(app.0, false), (neighbour.0, true)]);
}
