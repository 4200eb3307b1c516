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
    let face = FaceStatus { face_id: 1, uri: "fd://3".into(), mtu: Some(1), ..Default::default() };
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
