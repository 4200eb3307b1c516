//! Patience of a discovery, asked step by step. What comes of answers: `tests/freshness.rs`.

use byname_security::trust::{TrustPolicy, Validator};

use super::*;
use crate::versions::VersionMemory;

const SECOND: u64 = 1_000 * MS;

struct World {
    flow: Flow,
    validator: Validator,
    versions: VersionMemory,
}

impl World {
    fn new() -> Self {
        let (flow, versions) = (Flow::default(), VersionMemory::default());
        World { flow, validator: Validator::new(TrustPolicy::default()), versions }
    }

    fn at(&mut self, now_ns: u64) -> Context<'_> {
        let World { flow, validator, versions } = self;
        Context { now_ns, unix_ns: now_ns, flow, validator, versions }
    }

    /// Lets time pass until the discovery has ended without an answer; returns when.
    fn run(&mut self, discovery: &mut Discovery, mut now_ns: u64) -> u64 {
        for _ in 0..1000 {
            while discovery.poll_request(&mut self.at(now_ns)).is_some() {}
            if discovery.poll_outcome().is_some() {
                return now_ns;
            }
            let deadline_ns = discovery.poll_deadline(&self.flow).expect("it waits");
            now_ns = now_ns.max(deadline_ns);
            discovery.handle_timeout(&mut self.at(now_ns));
        }
        panic!("it goes on for ever");
    }
}

fn discovery(freshness: Freshness, silence_ns: u64, now_ns: u64) -> Discovery {
    let fetch = FetchConfig { silence_ns, ..FetchConfig::default() };
    let config = DiscoveryConfig { freshness, fetch, ..DiscoveryConfig::default() };
    Discovery::new("/lab/f".parse().expect("a name"), config, now_ns)
}

#[test]
fn why_it_waits_is_reported_once_and_after_a_second() {
    let mut discovery = discovery(Freshness::Preferred, 15 * SECOND, 5 * SECOND);
    assert_eq!(discovery.name(), "/lab/f".parse::<Name>().expect("a name").view());
    assert_eq!(discovery.poll_waiting(7 * SECOND), None, "nobody has given a reason");
    discovery.waiting = Some(Waiting::Written);
    assert_eq!(discovery.poll_waiting(6 * SECOND - 1), None);
    assert_eq!(discovery.poll_waiting(6 * SECOND), Some(Waiting::Written));
    discovery.waiting = Some(Waiting::Written);
    assert_eq!(discovery.poll_waiting(7 * SECOND), None);
}

#[test]
fn what_is_in_flight_is_given_back() {
    let mut world = World::new();
    let mut discovery = discovery(Freshness::Preferred, 15 * SECOND, 0);
    assert!(discovery.poll_request(&mut world.at(0)).is_some());
    assert_eq!(world.flow.in_flight(), 1);
    discovery.abandon(&mut world.flow);
    assert_eq!(world.flow.in_flight(), 0);
    assert_eq!(discovery.poll_deadline(&world.flow), None);
}

#[test]
fn a_reader_of_little_patience_gives_the_publisher_half_of_it() {
    let mut world = World::new();
    let mut discovery = discovery(Freshness::Preferred, 2 * SECOND, 0);
    assert!(discovery.poll_request(&mut world.at(0)).expect("a question").must_be_fresh);
    discovery.handle_timeout(&mut world.at(SECOND - 1));
    assert!(!discovery.is_unanswered());
    discovery.handle_timeout(&mut world.at(SECOND));
    assert!(discovery.is_unanswered());
    assert!(!discovery.poll_request(&mut world.at(SECOND)).expect("another").must_be_fresh);
    assert_eq!(world.run(&mut discovery, SECOND), 2 * SECOND);
}

/// It may have waited before, for a file that was being written.
#[test]
fn others_are_asked_for_half_of_the_patience_at_least() {
    let mut world = World::new();
    let mut discovery = discovery(Freshness::Preferred, 2 * SECOND, 10 * SECOND);
    discovery.started_ns = 0;
    assert_eq!(world.run(&mut discovery, 10 * SECOND), 12 * SECOND);
}

#[test]
fn required_waits_for_the_publisher_without_waking_up_in_between() {
    let mut world = World::new();
    let mut discovery = discovery(Freshness::Required, 15 * SECOND, 0);
    assert!(discovery.poll_request(&mut world.at(0)).is_some());
    let now_ns = 4 * SECOND;
    discovery.handle_timeout(&mut world.at(now_ns));
    while let Some(request) = discovery.poll_request(&mut world.at(now_ns)) {
        assert!(request.must_be_fresh);
    }
    assert!(discovery.poll_deadline(&world.flow).expect("it waits") > now_ns);
    assert_eq!(world.run(&mut discovery, now_ns), 15 * SECOND);
}
