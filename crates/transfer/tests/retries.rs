//! Pauses before a name is asked for again: within their bounds, and no two readers in step.

#[allow(dead_code, unreachable_pub)]
#[path = "support/publisher.rs"]
mod publisher;
#[allow(dead_code, unreachable_pub)]
#[path = "support/world.rs"]
mod world;

use byname_packet::{Interest, Name};
use byname_transfer::congestion::{Congestion, WINDOW_MAX};
use byname_transfer::error::ReadError;
use byname_transfer::flow::Flow;
use byname_transfer::freshness::Freshness;
use byname_transfer::metadata::{Absence, ContentRoot};
use byname_transfer::request::Request;

use publisher::{Publisher, Reply, sample};
use world::{DELAY, MS, World};

type Answer<'a> = dyn FnMut(&Request, &Interest<'_>) -> Reply + 'a;

/// Pauses between the first `count` + 1 questions about a name that a reader with this seed asks.
fn pauses(count: usize, seed: u64, world: World, name: &Name, answer: &mut Answer<'_>) -> Vec<u64> {
    let controller = Congestion::default().controller(WINDOW_MAX);
    let mut world = World { flow: Flow::new(controller, seed), ..world };
    // What it ends with is not the point.
    let _ = world.discover(name, Freshness::Preferred, answer);
    // An answer is in flight for a while, and its pause begins when it comes.
    let pause = |pair: &[(bool, u64)]| pair[1].1 - pair[0].1 - DELAY;
    let pauses: Vec<u64> = world.asked.windows(2).map(pause).take(count).collect();
    assert_eq!(pauses.len(), count, "{:?}", world.asked);
    pauses
}

fn lab() -> (Publisher, Name) {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(100));
    (publisher, name)
}

/// A reader that has fetched the publisher's certificate before.
fn acquainted(publisher: &Publisher, name: &Name) -> World {
    let mut world = World::trusting(publisher);
    let mut whole = |_: &Request, interest: &Interest<'_>| publisher.answer(interest);
    world.discover(name, Freshness::Preferred, &mut whole).expect("it is there");
    world.asked.clear();
    world
}

/// Every pause lies within its bounds (in ms) for every seed, and two seeds share none.
fn check(bounds_ms: &[(u64, u64)], mut pauses_of: impl FnMut(u64) -> Vec<u64>) {
    for seed in 0..50 {
        for (pause_ns, (least_ms, most_ms)) in pauses_of(seed).iter().zip(bounds_ms) {
            let bounds_ns = least_ms * MS..=most_ms * MS;
            assert!(bounds_ns.contains(pause_ns), "seed {seed}: {pause_ns} not in {bounds_ns:?}");
        }
    }
    assert_eq!(pauses_of(7), pauses_of(7), "one seed repeats itself");
    let (one, other) = (pauses_of(7), pauses_of(8));
    assert!(one.iter().zip(&other).all(|(one, other)| one != other), "{one:?} {other:?}");
}

#[test]
fn a_file_being_written_is_asked_for_when_its_server_says_and_up_to_half_as_much_later() {
    let (mut publisher, name) = lab();
    publisher.object_mut(&name).absence = Some(Absence::BeingWritten { retry_ms: 400 });
    check(&[(400, 600); 4], |seed| {
        let mut answer = |_: &Request, interest: &Interest<'_>| publisher.answer(interest);
        pauses(4, seed, World::trusting(&publisher), &name, &mut answer)
    });
}

#[test]
fn a_list_in_the_making_is_waited_for_and_fresh_when_it_comes() {
    let (mut publisher, name) = lab();
    let mut world = acquainted(&publisher, &name);
    publisher.object_mut(&name).absence = Some(Absence::BeingListed { retry_ms: 500 });
    let (began_ns, mut count) = (world.now_ns, 0);
    let asked = name.clone();
    let mut answer = |_: &Request, interest: &Interest<'_>| {
        let reply = publisher.answer(interest);
        count += 1;
        // Longer than any publisher may be silent.
        if count == 60 {
            publisher.object_mut(&asked).absence = None;
        }
        reply
    };
    let found = world.discover(&name, Freshness::Preferred, &mut answer).expect("it was made");
    assert!(found.is_fresh);
    assert!(world.now_ns - began_ns > 25_000 * MS);
}

#[test]
fn a_root_that_is_pending_is_asked_for_after_pauses_that_double() {
    let (mut publisher, name) = lab();
    let bounds = [(25, 50), (50, 100), (100, 200), (200, 400), (400, 800), (500, 1000)];
    check(&bounds, |seed| {
        publisher.object_mut(&name).root = ContentRoot::Known([1; 32]);
        let world = acquainted(&publisher, &name);
        publisher.object_mut(&name).root = ContentRoot::Pending;
        let mut count = 0;
        // Somebody who never finishes hashing would be asked for an hour.
        let mut answer = |_: &Request, interest: &Interest<'_>| {
            count += 1;
            match count {
                20.. => Reply::Silence,
                _ => publisher.answer(interest),
            }
        };
        pauses(6, seed, world, &name, &mut answer)
    });
}

#[test]
fn a_damaged_description_is_asked_for_after_pauses_that_double() {
    let (publisher, name) = lab();
    // In between the certificate may be asked for again, which takes 1 ms.
    check(&[(12, 26), (25, 51), (50, 101), (100, 201)], |seed| {
        let mut answer = |_: &Request, interest: &Interest<'_>| match publisher.answer(interest) {
            Reply::Data(mut wire) if interest.name.last().unwrap().is_keyword(b"metadata") => {
                *wire.last_mut().unwrap() ^= 1;
                Reply::Data(wire)
            }
            reply => reply,
        };
        pauses(4, seed, acquainted(&publisher, &name), &name, &mut answer)
    });
}

/// A cache may hold an old answer for as long as it is fresh: by default 1 s.
#[test]
fn a_description_older_than_seen_is_asked_for_when_no_cache_can_have_it_any_more() {
    let (publisher, name) = lab();
    check(&[(1000, 1500); 2], |seed| {
        let mut world = acquainted(&publisher, &name);
        world.versions.insert(name.clone(), 2000);
        let mut answer = |_: &Request, interest: &Interest<'_>| publisher.answer(interest);
        pauses(2, seed, world, &name, &mut answer)
    });
}

/// A cache may have it for a second or two; who has it for longer has nothing else.
#[test]
fn a_description_older_than_seen_is_asked_for_three_times() {
    let (publisher, name) = lab();
    let mut world = acquainted(&publisher, &name);
    world.versions.insert(name.clone(), 2000);
    let mut answer = |_: &Request, interest: &Interest<'_>| publisher.answer(interest);
    let error = world.discover(&name, Freshness::Preferred, &mut answer).expect_err("it is old");
    assert!(matches!(error, ReadError::RolledBack { .. }), "{error}");
    assert_eq!(world.asked.len(), 3);
}

/// No flipped bit makes a valid signature by another key.
#[test]
fn what_a_stranger_signed_is_no_damage_and_not_asked_for_again() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&Publisher::new("/lab", 2));
    let mut answer = |_: &Request, interest: &Interest<'_>| publisher.answer(interest);
    let error = world.discover(&name, Freshness::Preferred, &mut answer).expect_err("a stranger");
    assert!(matches!(error, ReadError::Trust(_)), "{error}");
    assert_eq!(world.asked.len(), 1);
}
