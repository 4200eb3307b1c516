//! Path traces: who asks for one is told, who does not is not, and strangers learn no address.

use byname_packet::InterestBuilder;
use byname_packet::lp::LpHeader;
use byname_packet::lp::trace::{Hop, Origin, hops};

use crate::config::Config;
use crate::face::{FaceId, FaceInfo};
use crate::testing::{Bench, MS, Sent, data, name};
use crate::trace::TracePolicy;

const CACHED: Hop<'_> = Hop { node: None, origin: Origin::Cache, peer: None, waited_us: None };
const PEER: &str = "tcp4://192.0.2.7:6363";

fn bench(trace: TracePolicy) -> (Bench, FaceId) {
    let mut bench =
        Bench::with(Config { trace, node_name: "here".to_owned(), ..Config::default() });
    let info = FaceInfo { remote_uri: PEER.to_owned(), ..FaceInfo::default() };
    let upstream = bench.forwarder.add_face(info);
    bench.route("/far", upstream, 0);
    (bench, upstream)
}

fn ask(bench: &mut Bench, from: FaceId, uri: &str, nonce: u8) -> Vec<Sent> {
    let (name, mut wire) = (name(uri), Vec::new());
    InterestBuilder::new(name.view()).nonce([nonce; 4]).encode(&mut wire);
    let header = LpHeader { path_trace: Some(&[]), ..LpHeader::default() };
    bench.packet(from, &header, &wire)
}

fn answer(bench: &mut Bench, from: FaceId, uri: &str, trace: &[Hop<'_>]) -> Vec<Sent> {
    let mut told = Vec::new();
    trace.iter().for_each(|hop| assert!(hop.append(&mut told)));
    let header = LpHeader { path_trace: Some(&told), ..LpHeader::default() };
    bench.packet(from, &header, &data(uri, 0))
}

fn told(sent: &Sent) -> Vec<Hop<'_>> {
    hops(sent.path_trace.as_deref().unwrap()).unwrap()
}

#[test]
fn each_hop_is_added_for_who_asks_and_the_cache_is_named() {
    let (mut bench, upstream) = bench(TracePolicy::Local);
    let (app, other) = (bench.local(), bench.local());
    assert_eq!(ask(&mut bench, app, "/far/1", 1)[0].path_trace, Some(Vec::new()));
    bench.now_ns += 7 * MS;
    let sent = answer(&mut bench, upstream, "/far/1", &[CACHED]);
    let near = Hop {
        node: Some("here"),
        origin: Origin::Neighbour,
        peer: Some(PEER),
        waited_us: Some(7000),
    };
    assert_eq!(told(&sent[0]), [CACHED, near]);
    let again = ask(&mut bench, other, "/far/1", 2);
    assert_eq!(told(&again[0]), [Hop { node: Some("here"), ..CACHED }]);
    // Who does not ask is told nothing, and nothing is passed on for them.
    assert_eq!(bench.interest(other, "/far/1", 3)[0].path_trace, None);
    assert_eq!(bench.interest(other, "/far/2", 4)[0].path_trace, None);
    assert_eq!(answer(&mut bench, upstream, "/far/2", &[CACHED])[0].path_trace, None);
}

#[test]
fn strangers_learn_neither_names_nor_addresses_unless_the_operator_allows_it() {
    for (policy, is_told) in [(TracePolicy::Local, false), (TracePolicy::All, true)] {
        let (mut bench, upstream) = bench(policy);
        let (stranger, program) = (bench.remote(), bench.local());
        bench.route("/near", program, 0);
        ask(&mut bench, stranger, "/far/1", 1);
        let sent = answer(&mut bench, upstream, "/far/1", &[]);
        let hop = told(&sent[0])[0];
        assert_eq!(hop.origin, Origin::Neighbour);
        assert_eq!((hop.node.is_some(), hop.peer.is_some()), (is_told, is_told), "{policy:?}");
        // Nor what another forwarder of this machine has told this one.
        ask(&mut bench, stranger, "/near/1", 2);
        let inner = Hop { node: Some("here"), peer: Some("tcp4://10.0.0.9:6363"), ..CACHED };
        let sent = answer(&mut bench, program, "/near/1", &[inner]);
        let hops = told(&sent[0]);
        assert_eq!((hops.len(), hops[1].origin), (2, Origin::Program));
        assert_eq!((hops[0].node.is_some(), hops[0].peer.is_some()), (is_told, is_told));
    }
}

#[test]
fn a_forwarder_that_tells_nobody_does_not_pass_the_wish_on() {
    let (mut bench, upstream) = bench(TracePolicy::Off);
    let app = bench.local();
    assert_eq!(ask(&mut bench, app, "/far/1", 1)[0].path_trace, None);
    assert_eq!(answer(&mut bench, upstream, "/far/1", &[CACHED])[0].path_trace, None);
    assert_eq!(ask(&mut bench, app, "/far/1", 2)[0].path_trace, None);
    // Until it is configured anew.
    let config = Config { trace: TracePolicy::Local, ..Config::default() };
    bench.forwarder.reconfigure(&config);
    assert!(ask(&mut bench, app, "/far/1", 3)[0].path_trace.is_some());
}

#[test]
fn a_trace_that_is_no_trace_counts_as_none() {
    let (mut bench, upstream) = bench(TracePolicy::Local);
    let app = bench.local();
    for (nonce, bad) in [(1, &[129, 200, 0][..]), (2, &[0; 2000])] {
        let uri = format!("/far/{nonce}");
        ask(&mut bench, app, &uri, nonce);
        let header = LpHeader { path_trace: Some(bad), ..LpHeader::default() };
        let sent = bench.packet(upstream, &header, &data(&uri, 0));
        assert_eq!(told(&sent[0]).len(), 1);
    }
}
