//! The notification stream of faces, as subscribers follow it.

use byname_packet::mgmt::{FaceEventNotification, face_event};

use super::*;

const STREAM: &str = "/localhost/nfd/faces/events";

fn read(sent: &[Sent]) -> Option<(u64, FaceEventNotification)> {
    let data = sent.first()?.data();
    assert!(name(STREAM).view().is_prefix_of(data.name));
    let number = data.name.last().unwrap().sequence().unwrap();
    Some((number, FaceEventNotification::decode(data.content).unwrap()))
}

fn any(bench: &mut Bench, face: FaceId) -> Vec<Sent> {
    bench.interest_with(face, STREAM, 1, |i| {
        i.can_be_prefix(true).must_be_fresh(true).lifetime_ms(60_000)
    })
}

fn numbered(bench: &mut Bench, face: FaceId, number: u64) -> Vec<Sent> {
    bench.interest_with(face, &format!("{STREAM}/seq={number}"), 1, |i| i.lifetime_ms(60_000))
}

#[test]
fn a_subscriber_gets_each_event_when_it_happens() {
    let mut bench = Bench::new();
    let app = bench.local();
    bench.wait_ms(0);
    bench.wait_ms(2000);
    assert_eq!(any(&mut bench, app), [], "nothing happened lately");
    assert_eq!(bench.last_drop, None, "it waits");
    let peer = bench.remote();
    // The driver says more of it once its link is there.
    let info = FaceInfo {
        remote_uri: "udp4://192.0.2.1:6363".into(),
        local_uri: "udp4://192.0.2.2:6363".into(),
        ..FaceInfo::default()
    };
    bench.forwarder.update_face(peer, info);
    assert_eq!(bench.forwarder.poll_timeout(), Some(0), "due at once");
    let (first, event) = read(&bench.after_ms(0)).unwrap();
    let expected = FaceEventNotification {
        kind: face_event::CREATED,
        face_id: peer.0,
        uri: "udp4://192.0.2.1:6363".into(),
        local_uri: "udp4://192.0.2.2:6363".into(),
        scope: 0,
        persistency: 1,
        link_type: 0,
        flags: 4,
    };
    assert_eq!(event, expected);
    // Then each next one by its number: it waits until it happens.
    assert_eq!(numbered(&mut bench, app, first + 1), []);
    bench.forwarder.set_face_up(peer, true);
    assert_eq!(bench.after_ms(5000), [], "it was up");
    bench.forwarder.set_face_up(peer, false);
    let (number, event) = read(&bench.after_ms(0)).unwrap();
    assert_eq!((number, event.kind), (first + 1, face_event::DOWN));
    bench.forwarder.set_face_up(peer, true);
    bench.forwarder.remove_face(peer);
    assert_eq!(bench.after_ms(5000), []);
    // Who falls behind gets what was missed.
    let (number, event) = read(&numbered(&mut bench, app, first + 2)).unwrap();
    assert_eq!((number, event.kind), (first + 2, face_event::UP));
    let (number, event) = read(&numbered(&mut bench, app, first + 3)).unwrap();
    assert_eq!((number, event.kind, event.face_id), (first + 3, face_event::DESTROYED, peer.0));
}

#[test]
fn who_asks_for_any_event_gets_a_fresh_one_at_once() {
    let mut bench = Bench::new();
    let app = bench.local();
    bench.wait_ms(0);
    let (number, event) = read(&any(&mut bench, app)).unwrap();
    assert_eq!((number, event.face_id), (0, app.0));
    bench.wait_ms(999);
    assert!(read(&any(&mut bench, app)).is_some());
    bench.wait_ms(1001);
    assert_eq!(any(&mut bench, app), []);
    let stale_will_do = bench.interest_with(app, STREAM, 1, |i| i.can_be_prefix(true));
    assert!(read(&stale_will_do).is_some());
}

#[test]
fn history_and_waiting_subscribers_are_bounded_and_waiting_ends() {
    let mut bench = Bench::new();
    let app = bench.local();
    for _ in 0..300 {
        let face = bench.remote();
        bench.forwarder.remove_face(face);
    }
    let next = 601;
    assert_eq!(numbered(&mut bench, app, next - 257), []);
    assert_eq!(bench.last_drop, Some(DropReason::UnansweredManagement), "gone");
    assert!(read(&numbered(&mut bench, app, next - 256)).is_some());
    bench.wait_ms(0);
    for number in next..next + 3000 {
        numbered(&mut bench, app, number);
    }
    assert_eq!(bench.last_drop, Some(DropReason::UnansweredManagement), "too many wait");
    bench.wait_ms(60_000);
    bench.remote();
    assert_eq!(bench.after_ms(0), [], "nobody waits any more");
    numbered(&mut bench, app, next + 1);
    assert_eq!(bench.last_drop, None, "there is room again");
    // One face has one Interest per number, however often it asks.
    numbered(&mut bench, app, next + 1);
    bench.remote();
    assert_eq!(bench.after_ms(0).len(), 1);
    for odd in ["/nonsense", "/seq=1/more", "/v=1"] {
        let sent = bench.interest(app, &format!("{STREAM}{odd}"), 1);
        assert!(sent.is_empty() || odd == "/seq=1/more");
    }
}
