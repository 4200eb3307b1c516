//! Round trips of management elements.
use super::*;

#[test]
fn control_parameters_round_trip() {
    let parameters = ControlParameters {
        name: Some("/a".parse().unwrap()),
        face_id: Some(300),
        uri: Some("tcp4://1.2.3.4:6363".into()),
        cost: Some(10),
        strategy: Some("/localhost/nfd/strategy/multicast".parse().unwrap()),
        expiration_period_ms: Some(60_000),
        mtu: Some(8800),
        ..ControlParameters::default()
    };
    let response = ControlResponse::new(200, "OK").with_parameters(&parameters);
    let mut wire = Vec::new();
    response.encode(&mut wire);
    let back = ControlResponse::decode(&wire).unwrap();
    assert_eq!(back, response);
    assert_eq!(back.parameters().unwrap(), parameters);
}

#[test]
fn datasets_round_trip() {
    let face = FaceStatus {
        face_id: 1,
        uri: "fd://3".into(),
        base_congestion_marking_interval_ns: Some(100_000_000),
        default_congestion_threshold_bytes: Some(65_536),
        mtu: Some(1),
        is_down: true,
        ..Default::default()
    };
    let route = Route { face_id: 1, cost: 2, expiration_period_ms: Some(5), ..Default::default() };
    let rib = RibEntry { name: "/r".parse().unwrap(), routes: vec![route, route] };
    let hop = NextHop { face_id: 4, cost: 1 };
    let fib = FibEntry { name: "/f".parse().unwrap(), next_hops: vec![hop] };
    let general =
        GeneralStatus { version: "x".into(), pit_entry_count: 70_000, ..Default::default() };
    let cs = CsInfo { capacity: 1 << 40, hit_count: 3, ..Default::default() };
    let wire = |encode: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        encode(&mut out);
        out
    };
    assert_eq!(FaceStatus::decode_all(&wire(&|o| face.encode(o))).unwrap(), [face]);
    assert_eq!(RibEntry::decode_all(&wire(&|o| rib.encode(o))).unwrap(), [rib]);
    assert_eq!(FibEntry::decode_all(&wire(&|o| fib.encode(o))).unwrap(), [fib]);
    assert_eq!(GeneralStatus::decode(&wire(&|o| general.encode(o))).unwrap(), general);
    assert_eq!(CsInfo::decode(&wire(&|o| cs.encode(o))).unwrap(), cs);
}

#[test]
fn face_elements_round_trip() {
    let channel = ChannelStatus { local_uri: "tcp4://0.0.0.0:6363".into() };
    let mut wire = Vec::new();
    channel.encode(&mut wire);
    channel.encode(&mut wire);
    assert_eq!(ChannelStatus::decode_all(&wire).unwrap(), [channel.clone(), channel]);

    let event = FaceEventNotification {
        kind: face_event::DESTROYED,
        face_id: 256,
        uri: "udp4://192.0.2.1:6363".into(),
        local_uri: "udp4://192.0.2.2:6363".into(),
        scope: 0,
        persistency: 2,
        link_type: 1,
        flags: 5,
    };
    let mut wire = Vec::new();
    event.encode(&mut wire);
    assert_eq!(FaceEventNotification::decode(&wire).unwrap(), event);

    let filter = FaceQueryFilter {
        uri_scheme: Some("udp4".into()),
        persistency: Some(1),
        ..FaceQueryFilter::default()
    };
    let mut wire = Vec::new();
    filter.encode(&mut wire);
    assert_eq!(FaceQueryFilter::decode(&wire).unwrap(), filter);
    assert!(FaceQueryFilter::decode(&wire[..wire.len() - 1]).is_err());
}

#[test]
fn a_prefix_announcement_is_recognised_by_name_and_type() {
    let read = |uri: &str, content_type, content: &[u8]| {
        let (name, mut wire): (Name, _) = (uri.parse().unwrap(), Vec::new());
        crate::DataBuilder::new(name.view())
            .content_type(content_type)
            .encode(content, &crate::DigestSigner, &mut wire)
            .unwrap();
        PrefixAnnouncement::from_data(&crate::Data::decode(&wire).unwrap())
    };
    let validity = [
        &[109, 2, 0x0E, 0x10][..],
        &[253, 0, 253, 38, 253, 0, 254, 15],
        b"20260101T000000",
        &[253, 0, 255, 15],
        b"20270101T000000",
    ]
    .concat();
    let found = read("/net/32=PA/v=1/seg=0", 5, &validity).unwrap();
    assert_eq!(found.prefix, "/net".parse().unwrap());
    assert_eq!(found.expiration_period_ms, 3600);
    assert_eq!(found.validity.unwrap().not_after_s, 1_798_761_600);
    assert!(read("/net/32=PA/v=1/seg=0", 0, &validity).is_err());
    for uri in ["/net/PA/v=1/seg=0", "/net/32=PA/seg=0", "/net/32=PA/v=1/seg=1", "/32=PA"] {
        assert!(read(uri, 5, &validity).is_err(), "{uri}");
    }
    assert!(read("/net/32=PA/v=1/seg=0", 5, &[]).is_err());
}
