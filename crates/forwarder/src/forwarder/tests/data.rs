//! Matching of Data with Interests, and answers from the content store.

use byname_packet::lp::{CACHE_POLICY_NO_CACHE, LpHeader};
use byname_packet::{Component, sha256, types};

use crate::config::Config;
use crate::counters::DropReason;
use crate::face::FaceId;
use crate::testing::{Bench, Sent, data, faces, name};

fn bench() -> (Bench, FaceId, FaceId) {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.local(), bench.local());
    bench.route("/a", producer, 0);
    (bench, consumer, producer)
}

#[test]
fn a_prefix_is_satisfied_only_where_allowed() {
    let (mut bench, consumer, producer) = bench();
    bench.interest(consumer, "/a/file", 1);
    assert_eq!(bench.data(producer, "/a/file/v=1/seg=0", 0), []);
    assert_eq!(bench.last_drop, Some(DropReason::UnsolicitedData));
    bench.interest_with(consumer, "/a/file", 2, |i| i.can_be_prefix(true));
    assert_eq!(bench.data(producer, "/a/filet/v=1", 0), [], "components, not octets");
    assert_eq!(faces(&bench.data(producer, "/a/file/v=1/seg=0", 0)), [consumer]);
    assert_eq!(bench.forwarder.pending_count(), 1, "the exact one still waits");
}

#[test]
fn an_implicit_digest_selects_one_packet() {
    let (mut bench, consumer, producer) = bench();
    let wire = data("/a/1", 1000);
    let digest = sha256(&[&wire]);
    let component = Component { typ: types::IMPLICIT_SHA256_DIGEST, value: &digest };
    let right = name("/a/1").with(component).to_string();
    let component = Component { typ: types::IMPLICIT_SHA256_DIGEST, value: &[7; 32] };
    let wrong = name("/a/1").with(component).to_string();
    bench.interest(consumer, &wrong, 1);
    bench.interest(consumer, &right, 2);
    assert_eq!(faces(&bench.packet(producer, &LpHeader::default(), &wire)), [consumer]);
    assert_eq!(bench.forwarder.pending_count(), 1, "the wrong one still waits");
    // The same from the content store.
    let other = bench.local();
    assert_eq!(bench.interest(other, &right, 3)[0].wire, wire);
    assert_eq!(bench.interest(other, &wrong, 4), [], "aggregated with the one that waits");
}

#[test]
fn data_from_a_face_that_was_not_asked_is_not_taken() {
    let (mut bench, consumer, producer) = bench();
    let stranger = bench.remote();
    bench.interest(consumer, "/a/1", 1);
    assert_eq!(bench.data(stranger, "/a/1", 0), []);
    assert_eq!(bench.last_drop, Some(DropReason::UnsolicitedData));
    assert_eq!(faces(&bench.data(producer, "/a/1", 0)), [consumer]);
}

#[test]
fn must_be_fresh_is_answered_while_fresh() {
    let (mut bench, consumer, producer) = bench();
    bench.interest(consumer, "/a/1", 1);
    bench.data(producer, "/a/1", 100);
    let other = bench.local();
    bench.wait_ms(99);
    let sent = bench.interest_with(other, "/a/1", 2, |i| i.must_be_fresh(true));
    assert_eq!(faces(&sent), [other]);
    bench.wait_ms(1);
    let sent = bench.interest_with(other, "/a/1", 3, |i| i.must_be_fresh(true));
    assert_eq!(faces(&sent), [producer], "stale now");
    assert_eq!(faces(&bench.interest(other, "/a/1", 4)), [other], "good enough otherwise");
    let counters = bench.forwarder.counters();
    assert_eq!((counters.cs_hits, counters.cs_misses), (2, 2));
}

#[test]
fn the_newest_version_answers_a_prefix() {
    let (mut bench, consumer, producer) = bench();
    for (nonce, version) in [(1, 5), (2, 300), (3, 7)] {
        let uri = format!("/a/f/32=metadata/v={version}/seg=0");
        bench.interest(consumer, &uri, nonce);
        bench.data(producer, &uri, if version == 300 { 100 } else { 10_000 });
    }
    let ask = |bench: &mut Bench, nonce| {
        bench.interest_with(consumer, "/a/f/32=metadata", nonce, |i| {
            i.can_be_prefix(true).must_be_fresh(true)
        })
    };
    let sent = ask(&mut bench, 10);
    assert_eq!(sent[0].data().name, name("/a/f/32=metadata/v=300/seg=0").view());
    bench.wait_ms(100);
    let sent = ask(&mut bench, 11);
    assert_eq!(sent[0].data().name, name("/a/f/32=metadata/v=7/seg=0").view(), "300 is stale");
}

#[test]
fn what_must_not_be_cached_is_not() {
    let (mut bench, consumer, producer) = bench();
    bench.interest(consumer, "/a/1", 1);
    let policy = LpHeader { cache_policy: Some(CACHE_POLICY_NO_CACHE), ..LpHeader::default() };
    assert_eq!(faces(&bench.packet(producer, &policy, &data("/a/1", 1000))), [consumer]);
    assert_eq!(faces(&bench.interest(consumer, "/a/1", 2)), [producer]);
}

/// Whoever asks what there is, however old, gets what this store has; the next store on the way
/// would count its freshness anew.
#[test]
fn what_is_stale_is_no_answer_for_other_stores_to_keep() {
    let (mut bench, consumer, producer) = bench();
    let ask = |bench: &mut Bench, nonce, name: &str, is_prefix| {
        bench.interest_with(consumer, name, nonce, |i| i.can_be_prefix(is_prefix))
    };
    ask(&mut bench, 1, "/a/f", true);
    bench.packet(producer, &LpHeader::default(), &data("/a/f/v=1", 1000));
    let told = |sent: &[Sent]| (sent[0].cache_policy, sent[0].not_fresh);
    assert_eq!(told(&ask(&mut bench, 2, "/a/f", true)), (None, false), "it is fresh");
    bench.wait_ms(1000);
    let stale = (Some(CACHE_POLICY_NO_CACHE), true);
    assert_eq!(told(&ask(&mut bench, 3, "/a/f", true)), stale);
    let exact = ask(&mut bench, 4, "/a/f/v=1", false);
    assert_eq!(told(&exact), (None, false), "by its whole name it is the same for ever");
}

/// A neighbour takes whatever there is while another waits for what the publisher says now: the
/// older answer is for the neighbour alone.
#[test]
fn what_is_stale_is_no_answer_for_those_who_wait_for_the_publisher() {
    let (mut bench, patient, producer) = bench();
    let hasty = bench.local();
    bench.interest_with(patient, "/a/f", 1, |i| i.can_be_prefix(true).must_be_fresh(true));
    bench.interest_with(hasty, "/a/f", 2, |i| i.can_be_prefix(true));
    let stale = LpHeader { not_fresh: true, ..LpHeader::default() };
    let sent = bench.packet(producer, &stale, &data("/a/f/v=1", 1000));
    assert_eq!(faces(&sent), [hasty]);
    assert!(sent[0].not_fresh, "the next forwarder has to know it too");
    assert_eq!(bench.packet(producer, &stale, &data("/a/f/v=1", 1000)), []);
    assert_eq!(bench.last_drop, Some(DropReason::UnsolicitedData), "it may come twice");
    let sent = bench.packet(producer, &LpHeader::default(), &data("/a/f/v=2", 1000));
    assert_eq!(faces(&sent), [patient]);
}

#[test]
fn unsolicited_data_is_not_cached() {
    let (mut bench, consumer, producer) = bench();
    bench.data(producer, "/a/1", 1000);
    assert_eq!(faces(&bench.interest(consumer, "/a/1", 1)), [producer]);
}

#[test]
fn a_store_of_size_zero_stores_nothing() {
    let mut bench = Bench::with(Config { cs_entries_max: 0, ..Config::default() });
    let (consumer, producer) = (bench.local(), bench.local());
    bench.route("/a", producer, 0);
    bench.interest(consumer, "/a/1", 1);
    assert_eq!(faces(&bench.data(producer, "/a/1", 1000)), [consumer]);
    assert_eq!(faces(&bench.interest(consumer, "/a/1", 2)), [producer]);
}

/// Data that passes a full store is kept if several wait for it, and then the rest of the same
/// object; data fetched by one reader is not.
#[test]
fn a_full_store_takes_bulk_that_several_want() {
    let config = Config { cs_entries_max: 100, ..Config::default() };
    for wanted_by_two in [false, true] {
        let mut bench = Bench::with(config.clone());
        let (one, other, producer) = (bench.local(), bench.local(), bench.local());
        bench.route("/a", producer, 0);
        for segment in 0..200 {
            bench.interest(one, &format!("/a/seg={segment}"), 1);
            bench.data(producer, &format!("/a/seg={segment}"), 0);
        }
        bench.interest(one, "/a/seg=500", 1);
        if wanted_by_two {
            bench.interest(other, "/a/seg=500", 2);
        }
        bench.data(producer, "/a/seg=500", 0);
        bench.interest(one, "/a/seg=501", 1);
        bench.data(producer, "/a/seg=501", 0);
        let asked = if wanted_by_two { [other] } else { [producer] };
        assert_eq!(faces(&bench.interest(other, "/a/seg=501", 3)), asked);
    }
}

#[test]
fn a_face_that_no_longer_waits_gets_nothing() {
    let (mut bench, consumer, producer) = bench();
    let patient = bench.local();
    bench.interest_with(consumer, "/a/1", 1, |i| i.lifetime_ms(100));
    bench.interest_with(patient, "/a/1", 2, |i| i.lifetime_ms(1000));
    bench.wait_ms(500);
    assert_eq!(faces(&bench.data(producer, "/a/1", 0)), [patient]);
}
