//! Announcements to the routing daemon, as ndn-dv sees them.

use byname_packet::{Component, DataBuilder, types};

use super::*;

const DAEMON: &str = "/localhost/nlsr";

fn client(uri: &str) -> ControlParameters {
    ControlParameters { origin: Some(65), ..named(uri) }
}

/// Verb and prefix of a command to the daemon.
fn told(sent: &Sent) -> (String, Name) {
    let interest = sent.interest();
    assert!(interest.check_parameters_digest());
    assert_eq!(interest.name.count(), 6);
    assert_eq!(interest.name.last().unwrap().typ, types::PARAMETERS_SHA256_DIGEST);
    let info = interest.signature_info.unwrap();
    assert!(info.nonce.is_some() && info.time_ms.is_some());
    assert_eq!(interest.name.get(2), Some(Component::generic(b"rib")));
    let verb = String::from_utf8(interest.name.get(3).unwrap().value.to_vec()).unwrap();
    let parameters = ControlParameters::decode(interest.name.get(4).unwrap().value).unwrap();
    (verb, parameters.name.unwrap())
}

fn all_told(sent: &[Sent]) -> Vec<(String, Name)> {
    sent.iter().map(told).collect()
}

fn answer(bench: &mut Bench, daemon: FaceId, asked: &Sent, code: u64) {
    let mut content = Vec::new();
    let body = ControlParameters { face_id: Some(1), origin: Some(65), ..named("/x") };
    ControlResponse::new(code, "").with_parameters(&body).encode(&mut content);
    let mut wire = Vec::new();
    DataBuilder::new(asked.interest().name).encode(&content, &DigestSigner, &mut wire).unwrap();
    assert_eq!(bench.packet(daemon, &LpHeader::default(), &wire), [], "it is for us");
    assert_eq!(bench.last_drop, None);
    assert_eq!(bench.forwarder.poll_timeout(), Some(0));
}

fn says(verb: &str, uri: &str) -> (String, Name) {
    (verb.into(), name(uri))
}

#[test]
fn a_daemon_learns_what_clients_want_announced_and_when_it_ends() {
    let mut bench = Bench::new();
    let (app, daemon) = (bench.local(), bench.local());
    command(&mut bench, app, REGISTER, &client("/early"));
    command(&mut bench, app, REGISTER, &named("/plain"));
    assert_eq!(bench.after_ms(1000), [], "nobody is there to tell");
    command(&mut bench, daemon, REGISTER, &named(DAEMON));
    let sent = bench.after_ms(0);
    assert_eq!(all_told(&sent), [says("register", "/early")]);
    assert_eq!(faces(&sent), [daemon]);
    answer(&mut bench, daemon, &sent[0], 200);
    assert_eq!(bench.after_ms(10_000), []);

    command(&mut bench, app, REGISTER, &client("/late"));
    let sent = bench.after_ms(0);
    assert_eq!(all_told(&sent), [says("register", "/late")]);
    answer(&mut bench, daemon, &sent[0], 200);
    bench.wait_ms(0);
    // A renewal, and another client of the same prefix, are no news.
    command(&mut bench, app, REGISTER, &client("/late"));
    command(&mut bench, daemon, REGISTER, &client("/late"));
    bench.wait_ms(10);
    let unregister = ControlParameters { origin: Some(65), ..named("/late") };
    command(&mut bench, app, UNREGISTER, &unregister);
    bench.wait_ms(10);
    command(&mut bench, daemon, UNREGISTER, &unregister);
    let sent = bench.after_ms(0);
    assert_eq!(all_told(&sent), [says("unregister", "/late")]);
    answer(&mut bench, daemon, &sent[0], 200);
    bench.wait_ms(100_000);
    // The client's connection goes, and its routes with it.
    bench.forwarder.remove_face(app);
    assert_eq!(all_told(&bench.after_ms(0)), [says("unregister", "/early")]);
}

#[test]
fn a_daemon_that_comes_back_is_told_everything_again() {
    let mut bench = Bench::new();
    let (app, daemon) = (bench.local(), bench.local());
    command(&mut bench, daemon, REGISTER, &named(DAEMON));
    command(&mut bench, app, REGISTER, &client("/a"));
    let sent = bench.after_ms(0);
    answer(&mut bench, daemon, &sent[0], 200);
    bench.wait_ms(0);
    bench.forwarder.remove_face(daemon);
    command(&mut bench, app, REGISTER, &client("/b"));
    bench.wait_ms(20_000);
    let daemon = bench.local();
    command(&mut bench, daemon, REGISTER, &named(DAEMON));
    let sent = bench.after_ms(0);
    assert_eq!(all_told(&sent), [says("register", "/a"), says("register", "/b")]);
    assert_eq!(faces(&sent), [daemon, daemon]);
}

#[test]
fn silence_and_refusal_are_met_with_patience() {
    let mut bench = Bench::new();
    let (app, daemon) = (bench.local(), bench.local());
    command(&mut bench, daemon, REGISTER, &named(DAEMON));
    command(&mut bench, app, REGISTER, &client("/a"));
    assert_eq!(bench.after_ms(0).len(), 1);
    // No answer in 4 s, then at most 1 s later once more; refused: at most 2 s later.
    assert_eq!(bench.after_ms(4000), []);
    assert_eq!(bench.after_ms(499), []);
    let sent = bench.after_ms(501);
    assert_eq!(all_told(&sent), [says("register", "/a")]);
    answer(&mut bench, daemon, &sent[0], 500);
    assert_eq!(bench.after_ms(0), []);
    assert_eq!(bench.after_ms(999), []);
    let sent = bench.after_ms(1001);
    assert_eq!(sent.len(), 1);
    // It is withdrawn while the command is on its way: the answer brings the opposite.
    let unregister = ControlParameters { origin: Some(65), ..named("/a") };
    command(&mut bench, app, UNREGISTER, &unregister);
    bench.wait_ms(0);
    answer(&mut bench, daemon, &sent[0], 200);
    assert_eq!(all_told(&bench.after_ms(0)), [says("unregister", "/a")]);
    // A daemon that never answers is left to itself in the end.
    let mut count = 0;
    while let Some(due) = bench.forwarder.poll_timeout() {
        bench.now_ns = bench.now_ns.max(due);
        count += bench.after_ms(0).len();
        assert!(count < 20);
    }
    assert_eq!(count, 7);
}

/// Times at which a forwarder with this seed announces a prefix to a daemon that never answers.
fn announced_ns(seed: u64) -> Vec<u64> {
    let mut bench = Bench::with(Config { seed: [0, 0, seed], ..Config::default() });
    let (app, daemon) = (bench.local(), bench.local());
    command(&mut bench, daemon, REGISTER, &named(DAEMON));
    command(&mut bench, app, REGISTER, &client("/a"));
    let mut at_ns = Vec::new();
    while at_ns.len() < 12 {
        bench.now_ns = bench.now_ns.max(bench.forwarder.poll_timeout().expect("it goes on"));
        let sent = bench.after_ms(0);
        at_ns.extend(sent.iter().map(|_| bench.now_ns));
    }
    at_ns
}

#[test]
fn forwarders_that_meet_silence_do_not_announce_in_step() {
    let pauses = |seed| {
        let at_ns = announced_ns(seed);
        // A command is waited for 4 s before its pause begins.
        at_ns.windows(2).map(|pair| pair[1] - pair[0] - 4000 * MS).collect::<Vec<u64>>()
    };
    for seed in 0..50 {
        for (doublings, pause_ns) in pauses(seed).into_iter().enumerate() {
            let longest_ns = ((1000 * MS) << doublings).min(300_000 * MS);
            assert!((longest_ns / 2..=longest_ns).contains(&pause_ns), "{doublings}: {pause_ns}");
        }
    }
    assert_eq!(pauses(7), pauses(7));
    assert!(pauses(7).iter().zip(pauses(8)).all(|(one, other)| *one != other));
}

#[test]
fn what_was_told_is_told_again_after_an_hour() {
    let mut bench = Bench::new();
    let (app, daemon) = (bench.local(), bench.local());
    command(&mut bench, daemon, REGISTER, &named(DAEMON));
    command(&mut bench, app, REGISTER, &client("/a"));
    let sent = bench.after_ms(0);
    answer(&mut bench, daemon, &sent[0], 200);
    assert_eq!(bench.after_ms(3_599_000), []);
    assert_eq!(bench.after_ms(1_000), []);
    let again = bench.after_ms(3_599_000);
    assert_eq!(all_told(&again), [says("register", "/a")]);
}

#[test]
fn commands_on_their_way_are_bounded_and_all_arrive() {
    let mut bench = Bench::new();
    let (app, daemon) = (bench.local(), bench.local());
    for index in 0..100 {
        command(&mut bench, app, REGISTER, &client(&format!("/p/{index}")));
    }
    command(&mut bench, daemon, REGISTER, &named(DAEMON));
    let mut prefixes = std::collections::BTreeSet::new();
    while prefixes.len() < 100 {
        let sent = bench.after_ms(0);
        assert!(!sent.is_empty() && sent.len() <= 32);
        for sent in &sent {
            prefixes.insert(told(sent).1);
            answer(&mut bench, daemon, sent, 200);
        }
    }
}

#[test]
fn only_a_local_face_is_the_daemon_and_nothing_local_is_announced() {
    let mut bench = Bench::new();
    let (app, remote) = (bench.local(), bench.remote());
    bench.route("/", remote, 1);
    command(&mut bench, app, REGISTER, &client("/a"));
    assert_eq!(bench.after_ms(0), []);
    command(&mut bench, app, REGISTER, &named(DAEMON));
    assert_eq!(bench.after_ms(0).len(), 1);
    for scoped in ["/localhost/x", "/localhop/x"] {
        command(&mut bench, app, REGISTER, &client(scoped));
    }
    assert_eq!(bench.after_ms(0), []);
    // The face that the forwarder asks over is its own affair.
    let list = FaceStatus::decode_all(&dataset(&mut bench, app, "/localhost/nfd/faces/list"));
    assert_eq!(list.unwrap().len(), 2);
}
