//! NextHopFaceId and IncomingFaceId, for applications that may use them.

use byname_packet::lp::{LpHeader, nack_reason};
use byname_packet::{InterestBuilder, Name};

use crate::counters::DropReason;
use crate::face::{FaceId, FaceOptions};
use crate::testing::{Bench, Sent, data, faces, name};

fn privileged(bench: &mut Bench) -> FaceId {
    let face = bench.local();
    let options = FaceOptions { local_fields: true, ..FaceOptions::default() };
    bench.forwarder.set_face_options(face, options);
    face
}

fn ask_over(bench: &mut Bench, from: FaceId, to: FaceId, name: &Name, nonce: u8) -> Vec<Sent> {
    let mut wire = Vec::new();
    InterestBuilder::new(name.view()).nonce([nonce; 4]).encode(&mut wire);
    let header = LpHeader { next_hop_face_id: Some(to.0), ..LpHeader::default() };
    bench.packet(from, &header, &wire)
}

#[test]
fn an_application_may_say_over_which_face() {
    let mut bench = Bench::new();
    let (app, routed, other) = (privileged(&mut bench), bench.remote(), bench.remote());
    bench.route("/a", routed, 0);
    assert_eq!(faces(&ask_over(&mut bench, app, other, &name("/a/1"), 1)), [other]);
    // Also while an answer from elsewhere is awaited.
    assert_eq!(faces(&bench.interest(app, "/a/2", 2)), [routed]);
    assert_eq!(faces(&ask_over(&mut bench, app, other, &name("/a/2"), 3)), [other]);
    assert_eq!(faces(&bench.data(other, "/a/2", 0)), [app]);
}

#[test]
fn a_way_that_is_not_there_is_refused() {
    let mut bench = Bench::new();
    let (app, down) = (privileged(&mut bench), bench.remote());
    bench.forwarder.set_face_up(down, false);
    for (nonce, to) in [(1, FaceId(999)), (2, down)] {
        let sent = ask_over(&mut bench, app, to, &name("/a/1"), nonce);
        assert_eq!((sent[0].face, sent[0].nack), (app, Some(nack_reason::NO_ROUTE)));
        assert_eq!(bench.last_drop, Some(DropReason::NoRoute));
    }
    let remote = bench.remote();
    let sent = ask_over(&mut bench, app, remote, &name("/localhost/x"), 3);
    assert_eq!((sent[0].face, sent[0].nack), (app, Some(nack_reason::NO_ROUTE)));
}

#[test]
fn an_application_is_told_where_packets_came_from() {
    let mut bench = Bench::new();
    let (app, plain, remote) = (privileged(&mut bench), bench.local(), bench.remote());
    bench.route("/app", app, 0);
    bench.route("/plain", plain, 0);
    bench.route("/far", remote, 0);
    assert_eq!(bench.interest(remote, "/app/1", 1)[0].incoming_face_id, Some(remote.0));
    assert_eq!(bench.interest(remote, "/plain/1", 2)[0].incoming_face_id, None);
    assert_eq!(bench.interest(app, "/far/1", 3)[0].incoming_face_id, None);
    let answer = bench.packet(remote, &LpHeader::default(), &data("/far/1", 1000));
    assert_eq!((answer[0].face, answer[0].incoming_face_id), (app, Some(remote.0)));
    let cached = bench.interest(app, "/far/1", 4);
    assert_eq!((cached[0].face, cached[0].incoming_face_id), (app, Some(254)));
}
