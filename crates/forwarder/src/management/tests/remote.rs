//! Commands of other machines, which a key allows.

use std::sync::{Arc, Mutex};

use byname_packet::{DataBuilder, tlv};

use super::commands::announce;
use super::*;
use crate::face::Persistency;
use crate::{CommandVerifier, Verdict};

const REMOTE: &str = "/localhop/nfd/rib/register";

/// A verifier that says what it is told to say, and counts what it is asked.
#[derive(Debug, Default)]
struct Scripted {
    verdicts: Mutex<Vec<Verdict>>,
    certificates: Mutex<Vec<Name>>,
}

impl Scripted {
    fn next(&self) -> Verdict {
        let mut verdicts = self.verdicts.lock().unwrap();
        if verdicts.is_empty() { Verdict::Refused("replayed".into()) } else { verdicts.remove(0) }
    }
}

impl CommandVerifier for Scripted {
    fn verify(&self, _: &Interest<'_>, _: u64) -> Verdict {
        self.next()
    }

    fn verify_announcement(&self, _: &Data<'_>, _: u64) -> Verdict {
        self.next()
    }

    fn add_certificate(&self, certificate: &Data<'_>, _: u64) {
        self.certificates.lock().unwrap().push(certificate.name.to_name());
    }
}

fn bench(verdicts: Vec<Verdict>) -> (Bench, Arc<Scripted>) {
    let verifier = Arc::new(Scripted { verdicts: Mutex::new(verdicts), ..Default::default() });
    let command_verifier = Some(verifier.clone() as Arc<dyn CommandVerifier>);
    (Bench::with(Config { command_verifier, ..Config::default() }), verifier)
}

fn allowed(prefix: &str) -> Verdict {
    Verdict::Allowed { may_register: vec![name(prefix)], until_s: u64::MAX }
}

fn need(uri: &str) -> Verdict {
    Verdict::NeedCertificate(name(uri))
}

fn certificate(uri: &str) -> Vec<u8> {
    let (name, mut wire) = (name(uri), Vec::new());
    DataBuilder::new(name.view())
        .content_type(ContentType::KEY)
        .freshness_ms(1000)
        .encode(b"key", &DigestSigner, &mut wire)
        .unwrap();
    wire
}

fn status(sent: &[Sent]) -> (u64, String) {
    let response = ControlResponse::decode(sent[0].data().content).unwrap();
    (response.status_code, response.status_text)
}

#[test]
fn a_key_may_register_below_its_prefix_and_only_its_own_face() {
    let (mut bench, _) =
        bench(vec![allowed("/lab"), allowed("/lab"), allowed("/lab"), allowed("/lab")]);
    let (remote, other) = (bench.remote(), bench.remote());
    let body = command(&mut bench, remote, REMOTE, &named("/lab/files")).parameters().unwrap();
    assert_eq!(body.face_id, Some(remote.0));
    assert_eq!(faces(&bench.interest(other, "/lab/files/1", 1)), [remote]);
    let response = command(&mut bench, remote, REMOTE, &named("/elsewhere"));
    assert_eq!(response.status_code, 403);
    assert!(response.status_text.contains("--allow-register '/elsewhere=KEY'"), "{response:?}");
    let request = ControlParameters { face_id: Some(other.0), ..named("/lab/x") };
    assert_eq!(command(&mut bench, remote, REMOTE, &request).status_code, 403);
    let extra = ControlParameters { mtu: Some(1), ..named("/lab/x") };
    assert_eq!(command(&mut bench, remote, REMOTE, &extra).status_code, 400);
    // The verifier has no more to allow.
    let uri = "/localhop/nfd/rib/unregister";
    let response = command(&mut bench, remote, uri, &named("/lab/files"));
    assert_eq!(response.status_code, 403);
    assert!(response.status_text.starts_with("replayed"), "{}", response.status_text);
}

/// The certificate that let it in ends.
#[test]
fn a_route_ends_with_the_right_to_it() {
    let until = |until_s| Verdict::Allowed { may_register: vec![name("/lab")], until_s };
    let (mut bench, _) = bench(vec![until(10), until(10), until(u64::MAX), until(10)]);
    let (remote, other) = (bench.remote(), bench.remote());
    let now_s = bench.now_ns / 1_000_000_000;
    assert!(now_s < 10, "the clock begins at the beginning");
    // A command that is repeated has the answer of the first.
    for (uri, asked_ms, most_ms) in
        [("/lab/a", None, Some(10_000)), ("/lab/b", Some(5), Some(5)), ("/lab/c", None, None)]
    {
        let request = ControlParameters { expiration_period_ms: asked_ms, ..named(uri) };
        let body = command(&mut bench, remote, REMOTE, &request).parameters().unwrap();
        let (found, most) = (body.expiration_period_ms, most_ms.unwrap_or(u64::MAX));
        assert_eq!(found.is_some(), most_ms.is_some(), "{asked_ms:?}");
        assert!(found.unwrap_or(u64::MAX) <= most, "{found:?}");
    }
    command(&mut bench, remote, REMOTE, &named("/lab/files"));
    assert_eq!(faces(&bench.interest(other, "/lab/files/1", 1)), [remote]);
    bench.after_ms(10_001);
    let sent = bench.interest(other, "/lab/files/2", 2);
    assert!(sent.iter().all(|sent| sent.face != remote), "{sent:?}");
}

#[test]
fn without_a_verifier_a_client_learns_what_would_help() {
    let mut bench = Bench::new();
    let remote = bench.remote();
    let response = command(&mut bench, remote, REMOTE, &named("/lab/files"));
    assert_eq!(response.status_code, 403);
    assert!(response.status_text.contains("--allow-register '/lab/files=KEY'"), "{response:?}");
}

#[test]
fn only_routes_are_commanded_from_afar() {
    let (mut bench, verifier) = bench(vec![allowed("/")]);
    let remote = bench.remote();
    for uri in ["faces/create", "faces/destroy", "fib/add-nexthop", "cs/config", "cs/erase"] {
        let uri = format!("/localhop/nfd/{uri}");
        assert_eq!(command(&mut bench, remote, &uri, &named("/a")).status_code, 404);
    }
    assert_eq!(verifier.verdicts.lock().unwrap().len(), 1, "nobody was asked");
    let sent = bench.interest_with(remote, "/localhop/nfd/rib/list", 1, |i| i.can_be_prefix(true));
    assert_eq!(status(&sent).0, 404);
    let sent = send_command(&mut bench, remote, REGISTER, &named("/a"));
    assert_eq!((sent, bench.last_drop), (vec![], Some(DropReason::ScopeViolation)));
    let unsigned = name(REMOTE).with_generic(&component(&named("/a"))).to_string();
    assert_eq!(status(&bench.interest(remote, &unsigned, 1)).0, 403);
}

#[test]
fn an_answer_that_got_lost_is_given_again() {
    let (mut bench, _) = bench(vec![allowed("/lab")]);
    let remote = bench.remote();
    for _ in 0..3 {
        assert_eq!(command(&mut bench, remote, REMOTE, &named("/lab")).status_code, 200);
    }
    bench.wait_ms(10_000);
    assert_eq!(command(&mut bench, remote, REMOTE, &named("/lab")).status_code, 403);
}

#[test]
fn certificates_are_fetched_from_the_client_and_then_the_command_is_looked_at_again() {
    let (mut bench, verifier) =
        bench(vec![need("/lab/KEY/1"), need("/anchor/KEY/2"), allowed("/lab")]);
    let (remote, other) = (bench.remote(), bench.remote());
    bench.route("/lab/KEY", other, 1);
    bench.route("/anchor", other, 1);
    assert_eq!(send_command(&mut bench, remote, REMOTE, &named("/lab/files")), []);
    assert_eq!(send_command(&mut bench, remote, REMOTE, &named("/lab/files")), [], "once");
    assert_eq!(bench.forwarder.poll_timeout(), Some(0));
    let asked = bench.after_ms(0);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].interest().name, name("/lab/KEY/1").view());
    assert!(asked[0].interest().can_be_prefix);
    let from = asked[0].face;
    assert_eq!(from, remote, "who signs serves the certificate");
    // Something else of that name does not count.
    let found = certificate("/lab/KEY/1/issuer/v=1");
    assert_eq!(bench.packet(from, &LpHeader::default(), &found), []);
    let asked = bench.after_ms(0);
    assert_eq!(asked[0].interest().name, name("/anchor/KEY/2").view(), "the next one of the chain");
    bench.packet(asked[0].face, &LpHeader::default(), &certificate("/anchor/KEY/2/self/v=1"));
    let sent = bench.after_ms(0);
    assert_eq!((faces(&sent), status(&sent).0), (vec![remote], 200));
    assert_eq!(sent[0].token.as_deref(), Some(&b"tok"[..]));
    let certificates = verifier.certificates.lock().unwrap();
    assert_eq!(*certificates, [name("/lab/KEY/1/issuer/v=1"), name("/anchor/KEY/2/self/v=1")]);
    assert_eq!(bench.forwarder.next_hops(&name("/lab/files")).unwrap().len(), 1);
}

#[test]
fn a_certificate_that_cannot_be_had_ends_the_wait() {
    let (mut bench, _) = bench(vec![need("/lab/KEY/1")]);
    let remote = bench.remote();
    send_command(&mut bench, remote, REMOTE, &named("/lab"));
    let mut answer = None;
    for _ in 0..5 {
        let sent = bench.after_ms(1000);
        answer = sent.into_iter().find(|sent| sent.nack.is_none() && sent.wire[0] == 6).or(answer);
    }
    let (code, text) = status(&[answer.expect("an answer in the end")]);
    assert_eq!(code, 403);
    assert!(text.contains("/lab/KEY/1"), "{text}");
}

#[test]
fn commands_that_wait_for_certificates_and_chains_are_bounded() {
    let (mut bench, _) = bench(vec![need("/lab/KEY/1"); 1000]);
    let remote = bench.remote();
    let mut refused = 0;
    for index in 0..20 {
        let sent = send_command(&mut bench, remote, REMOTE, &named(&format!("/lab/{index}")));
        refused += sent.len();
    }
    assert_eq!(refused, 4, "of one face");
    for _ in 0..40 {
        let face = bench.remote();
        for index in 0..10 {
            let sent = send_command(&mut bench, face, REMOTE, &named(&format!("/lab/{index}")));
            refused += sent.len();
        }
    }
    assert_eq!(refused, 4 + 400 - 240, "of all");

    let chain = (0..20).map(|index| need(&format!("/lab/KEY/{index}"))).collect();
    let (mut bench, verifier) = self::bench(chain);
    let (remote, other) = (bench.remote(), bench.remote());
    bench.route("/lab/KEY", other, 1);
    send_command(&mut bench, remote, REMOTE, &named("/lab"));
    let last = loop {
        let sent = bench.after_ms(0);
        if sent[0].wire[0] == 6 {
            break sent;
        }
        let uri = format!("{}/i/v=1", sent[0].interest().name.to_name());
        bench.packet(sent[0].face, &LpHeader::default(), &certificate(&uri));
    };
    assert_eq!(status(&last).0, 403);
    assert_eq!(verifier.certificates.lock().unwrap().len(), 8);
}

#[test]
fn an_announcement_is_allowed_by_the_key_that_signs_it() {
    let (mut bench, _) = bench(vec![allowed("/net"), allowed("/other")]);
    let remote = bench
        .forwarder
        .add_face(FaceInfo { persistency: Persistency::OnDemand, ..FaceInfo::default() });
    let mut content = Vec::new();
    tlv::write_nni(&mut content, 109, 5000);
    let uri = "/net/a/32=PA/v=1/seg=0";
    let sent = announce(&mut bench, remote, ("/localhop", uri), &content);
    assert_eq!(status(&sent).0, 200);
    assert_eq!(bench.forwarder.next_hops(&name("/net/a")).unwrap()[0].face, remote);
    let sent = announce(&mut bench, remote, ("/localhop", "/net/b/32=PA/v=1/seg=0"), &content);
    assert_eq!(status(&sent).0, 403);
    let sent = announce(&mut bench, remote, ("/localhop", "/net/c"), &content);
    assert_eq!(status(&sent).0, 403, "nobody is asked any more");
}

#[test]
fn a_stranger_cannot_make_the_forwarder_ask_for_what_is_no_certificate() {
    for uri in ["/", "/lab", "/localhost/app/reset/KEY/1", "/localhop/nfd/rib/KEY", "/32=KEY"] {
        let (mut bench, _) = bench(vec![need(uri)]);
        let (remote, app) = (bench.remote(), bench.local());
        bench.route("/", app, 1);
        let response = command(&mut bench, remote, REMOTE, &named("/lab"));
        assert_eq!(response.status_code, 403, "{uri}");
        assert_eq!(bench.after_ms(2000), [], "{uri}");
    }
}
