//! Floods of Interests for names that nobody serves: who pays for them.

use crate::config::Config;
use crate::counters::DropReason;
use crate::testing::{Bench, faces};

const ENTRIES_MAX: usize = 64;

fn bench() -> Bench {
    Bench::with(Config { pit_entries_max: ENTRIES_MAX, ..Config::default() })
}

#[test]
fn a_flood_blocks_its_own_face_for_a_second_and_no_other_face_at_all() {
    let mut bench = bench();
    let (flooded, other, producer) = (bench.remote(), bench.remote(), bench.local());
    bench.route("/a", producer, 0);
    let flood = |bench: &mut Bench, round: u32| {
        for number in 0..100u32 {
            let uri = format!("/a/nobody/{round}/{number}");
            bench.interest_with(flooded, &uri, number as u8, |i| i.lifetime_ms(600_000));
        }
    };
    flood(&mut bench, 0);
    assert_eq!(bench.last_drop, Some(DropReason::PitFull));
    let refused = bench.forwarder.face_drops(flooded).unwrap().get(DropReason::PitFull);
    assert_eq!(refused, 100 - bench.forwarder.pending_count() as u64);
    assert_eq!(faces(&bench.interest(other, "/a/served/1", 1)), [producer]);
    // The lifetime is ten minutes, but what nobody answers blocks the face for a second only.
    bench.wait_ms(999);
    assert_eq!(bench.interest(flooded, "/a/served/2", 2), []);
    bench.wait_ms(1);
    assert_eq!(faces(&bench.interest(flooded, "/a/served/2", 3)), [producer]);
    flood(&mut bench, 1);
    let drops = bench.forwarder.face_drops(flooded).unwrap();
    assert!(drops.get(DropReason::PitShed) > 20);
    assert_eq!(
        bench.forwarder.counters().drops(DropReason::PitShed),
        drops.get(DropReason::PitShed)
    );
    assert_eq!(bench.forwarder.face_drops(other).unwrap().get(DropReason::PitShed), 0);
    assert!(bench.forwarder.pending_count() <= ENTRIES_MAX);
    assert_eq!(faces(&bench.data(producer, "/a/served/1", 0)), [other]);
}

#[test]
fn what_others_wait_for_too_outlives_the_flood_that_asked_first() {
    let mut bench = bench();
    let (flooded, other, producer) = (bench.remote(), bench.remote(), bench.local());
    bench.route("/a", producer, 0);
    bench.interest(flooded, "/a/popular", 1);
    bench.interest(other, "/a/popular", 2);
    for number in 0..100u32 {
        bench.interest(flooded, &format!("/a/nobody/{number}"), number as u8);
    }
    bench.wait_ms(1500);
    for number in 100..200u32 {
        bench.interest(flooded, &format!("/a/nobody/{number}"), number as u8);
    }
    assert_eq!(faces(&bench.data(producer, "/a/popular", 0)), [other]);
}

#[test]
fn a_flood_of_large_interests_is_bounded_by_octets() {
    let bytes_max = 64 << 10;
    let mut bench = Bench::with(Config { pit_bytes_max: bytes_max, ..Config::default() });
    let (flooded, other, producer) = (bench.remote(), bench.remote(), bench.local());
    bench.route("/a", producer, 0);
    let long = "x".repeat(8000);
    for number in 0..20u32 {
        bench.interest(flooded, &format!("/a/{number}/{long}"), number as u8);
    }
    assert_eq!(bench.last_drop, Some(DropReason::PitFull));
    assert!(bench.forwarder.pending_count() * 8000 <= bytes_max / 2 + 8000);
    assert_eq!(faces(&bench.interest(other, &format!("/a/{long}"), 1)), [producer]);
    bench.wait_ms(1000);
    assert_eq!(faces(&bench.interest(flooded, &format!("/a/again/{long}"), 1)), [producer]);
}

#[test]
fn interests_for_digests_stay_until_just_that_data_comes() {
    let mut bench = Bench::new();
    let (flooded, consumer, producer) = (bench.remote(), bench.local(), bench.local());
    bench.route("/a", producer, 0);
    for number in 0..50u8 {
        let digest = format!("{number:02x}").repeat(32);
        bench.interest(flooded, &format!("/a/1/sha256digest={digest}"), number);
    }
    bench.interest(consumer, "/a/1", 77);
    bench.interest(consumer, "/a/2", 78);
    assert_eq!(faces(&bench.data(producer, "/a/2", 0)), [consumer]);
    assert_eq!(faces(&bench.data(producer, "/a/1", 0)), [consumer]);
    assert_eq!(bench.forwarder.pending_count(), 50);
}
