//! Who is asked in which order, how long, and what an older answer is good for. Virtual time.

#[allow(dead_code, unreachable_pub)]
#[path = "support/publisher.rs"]
mod publisher;
#[allow(dead_code, unreachable_pub)]
#[path = "support/world.rs"]
mod world;

use byname_packet::lp::nack_reason;
use byname_packet::{Interest, Name};
use byname_security::trust::{TrustPolicy, Validator};
use byname_transfer::discovery::{Discovery, DiscoveryConfig};
use byname_transfer::error::ReadError;
use byname_transfer::freshness::Freshness;
use byname_transfer::metadata::{Absence, ContentRoot};
use byname_transfer::naming::manifest_name;
use byname_transfer::request::Request;

use publisher::{Publisher, Reply, UNIX_NS, sample};
use world::{DELAY, SECOND, World};

fn lab() -> (Publisher, Name) {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(100));
    (publisher, name)
}

/// A cache or mirror: answers everybody who does not insist on the publisher.
fn held(publisher: &Publisher, otherwise: Reply) -> impl FnMut(&Request, &Interest<'_>) -> Reply {
    move |request, interest| match request.must_be_fresh {
        true => otherwise.clone(),
        false => publisher.answer(interest),
    }
}

#[test]
fn a_publisher_that_answers_is_the_only_one_asked() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&publisher);
    let found = world
        .discover(&name, Freshness::Preferred, &mut |_, interest| publisher.answer(interest))
        .expect("it is there");
    assert!(found.is_fresh);
    assert_eq!(world.asked, [(true, 0)]);
    assert_eq!(found.certificates, std::slice::from_ref(&publisher.certificate));
}

#[test]
fn an_older_answer_is_taken_after_three_silent_seconds_and_says_its_age() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&publisher);
    world.unix_ns += 180 * SECOND;
    let mut held = held(&publisher, Reply::Silence);
    let found = world.discover(&name, Freshness::Preferred, &mut held).expect("it is held");
    assert!(!found.is_fresh);
    let first_older = world.asked.iter().find(|(fresh, _)| !fresh).expect("anybody was asked");
    assert_eq!(first_older.1, 3 * SECOND);
    assert_eq!(found.age_ns, 180 * SECOND + world.now_ns);
    assert!(world.now_ns < 4 * SECOND);
}

/// Found by the simulator: a file that had been written was said not to exist by who asked while
/// the head of its site was away, because a cache had kept an absence of long before.
#[test]
fn an_absence_that_somebody_kept_is_no_answer_while_the_publisher_is_silent() {
    let (mut publisher, name) = lab();
    publisher.object_mut(&name).absence = Some(Absence::NotFound);
    for (reply, is_no_route) in
        [(Reply::Silence, false), (Reply::Nack(nack_reason::NO_ROUTE), true)]
    {
        let mut world = World::trusting(&publisher);
        let mut kept = held(&publisher, reply);
        let error = world.discover(&name, Freshness::Preferred, &mut kept).expect_err("silence");
        match error {
            ReadError::NoRoute { .. } => assert!(is_no_route),
            ReadError::TimeOut { .. } => assert!(!is_no_route),
            other => panic!("{other}"),
        }
    }
    let mut world = World::trusting(&publisher);
    let error = world
        .discover(&name, Freshness::Preferred, &mut |_, interest| publisher.answer(interest))
        .expect_err("the publisher says so");
    assert!(matches!(error, ReadError::NotFound { .. }), "{error}");
}

#[test]
fn an_older_answer_is_taken_within_a_second_when_there_is_no_route() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&publisher);
    let mut held = held(&publisher, Reply::Nack(nack_reason::NO_ROUTE));
    let found = world.discover(&name, Freshness::Preferred, &mut held).expect("it is held");
    assert!(!found.is_fresh && world.now_ns < SECOND);
    assert!(world.asked[0].0 && !world.asked.last().expect("asked").0, "the publisher first");
}

/// On a slow path the Interest was sent twice, and both were refused.
#[test]
fn a_late_refusal_of_a_fresh_answer_says_nothing_about_older_ones() {
    let (publisher, name) = lab();
    for reason in [nack_reason::NO_ROUTE, nack_reason::NONE] {
        let mut world = World::trusting(&publisher);
        world.repeats_nacks = true;
        let mut held = held(&publisher, Reply::Nack(reason));
        let found = world.discover(&name, Freshness::Preferred, &mut held).expect("it is held");
        assert!(!found.is_fresh);
    }
}

/// Or else a flood at the publisher, and a path without a route, would do to pass off what is old.
#[test]
fn a_publisher_that_is_busy_while_others_refuse_is_waited_for() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&publisher);
    let mut asked = 0;
    let mixed = &mut |request: &Request, interest: &Interest<'_>| {
        asked += 1;
        match asked % 2 {
            _ if !request.must_be_fresh => publisher.answer(interest),
            0 => Reply::Nack(nack_reason::NO_ROUTE),
            _ => Reply::Nack(nack_reason::CONGESTION),
        }
    };
    let error = world.discover(&name, Freshness::Preferred, mixed).expect_err("it is busy");
    assert!(matches!(error, ReadError::NoRoute { .. } | ReadError::TimeOut { .. }), "{error}");
}

/// A mirror hashes its copy when it is first asked for it.
#[test]
fn a_mirror_that_was_busy_at_first_is_read_when_it_has_an_older_answer() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&publisher);
    let mut asked = 0;
    let mirror = &mut |request: &Request, interest: &Interest<'_>| {
        asked += 1;
        match asked {
            1..5 => Reply::Nack(nack_reason::CONGESTION),
            _ if request.must_be_fresh => Reply::Nack(nack_reason::NO_ROUTE),
            _ => publisher.answer(interest),
        }
    };
    let found = world.discover(&name, Freshness::Preferred, mirror).expect("it is held");
    assert!(!found.is_fresh);
}

#[test]
fn a_nack_without_a_reason_never_says_that_there_is_nothing() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&publisher);
    // What another holds is as good as if there were no route.
    let mut held = held(&publisher, Reply::Nack(nack_reason::NONE));
    let found = world.discover(&name, Freshness::Preferred, &mut held).expect("it is held");
    assert!(!found.is_fresh && world.now_ns < SECOND);
    for freshness in [Freshness::Preferred, Freshness::Required, Freshness::Offline] {
        let mut world = World::trusting(&publisher);
        let error = world
            .discover(&name, freshness, &mut |_, _| Reply::Nack(nack_reason::NONE))
            .expect_err("nobody has it");
        assert!(matches!(error, ReadError::NoRoute { .. }), "{error}");
    }
}

#[test]
fn a_publisher_that_is_busy_is_waited_for_and_no_older_answer_is_taken() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&publisher);
    let mut refusals = 0;
    let busy_at_first = &mut |request: &Request, interest: &Interest<'_>| {
        if !request.must_be_fresh {
            return publisher.answer(interest);
        }
        refusals += 1;
        match refusals {
            1..10 => Reply::Nack(nack_reason::CONGESTION),
            _ => publisher.answer(interest),
        }
    };
    let found = world.discover(&name, Freshness::Preferred, busy_at_first).expect("it answers");
    assert!(found.is_fresh && world.now_ns > 3 * SECOND, "{}", world.now_ns);
    assert!(world.asked.iter().all(|(fresh, _)| *fresh));
    // For ever is too long, and then nothing is better than something old.
    let mut held = held(&publisher, Reply::Nack(nack_reason::CONGESTION));
    let error = world.discover(&name, Freshness::Preferred, &mut held).expect_err("too busy");
    assert!(matches!(error, ReadError::TimeOut { .. }), "{error}");
    assert!(world.asked.iter().all(|(fresh, _)| *fresh));
}

/// A server that restarts has no route for a moment.
#[test]
fn one_answer_of_no_route_is_not_believed() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&publisher);
    let mut count = 0;
    let mut restarting = |_: &Request, interest: &Interest<'_>| {
        count += 1;
        match count {
            1 => Reply::Nack(nack_reason::NO_ROUTE),
            _ => publisher.answer(interest),
        }
    };
    let found = world.discover(&name, Freshness::Preferred, &mut restarting).expect("it is back");
    assert!(found.is_fresh && world.asked.iter().all(|(fresh, _)| *fresh));
}

#[test]
fn a_publisher_that_was_dead_and_is_busy_now_is_waited_for() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&publisher);
    let mut dead = held(&publisher, Reply::Nack(nack_reason::NO_ROUTE));
    assert!(!world.discover(&name, Freshness::Preferred, &mut dead).expect("held").is_fresh);
    world.asked.clear();
    let mut count = 0;
    let mut busy = |request: &Request, interest: &Interest<'_>| {
        count += u64::from(request.must_be_fresh);
        match count {
            1 => Reply::Nack(nack_reason::CONGESTION),
            _ => publisher.answer(interest),
        }
    };
    let found = world.discover(&name, Freshness::Preferred, &mut busy).expect("it answers");
    assert!(found.is_fresh && world.asked.iter().all(|(fresh, _)| *fresh));
}

#[test]
fn why_the_publisher_did_not_answer_is_told_and_not_why_others_did_not() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&publisher);
    let mut answer = |request: &Request, _: &Interest<'_>| match request.must_be_fresh {
        true => Reply::Nack(nack_reason::NO_ROUTE),
        false => Reply::Silence,
    };
    let error = world.discover(&name, Freshness::Preferred, &mut answer).expect_err("nobody");
    assert!(matches!(error, ReadError::NoRoute { .. }), "{error}");
}

#[test]
fn a_dead_publisher_is_waited_for_once_and_not_for_each_file() {
    let (mut publisher, name) = lab();
    let others: Vec<Name> =
        (0..1000).map(|number| publisher.publish(&format!("n{number}"), 5, b"x")).collect();
    for otherwise in [Reply::Silence, Reply::Nack(nack_reason::NO_ROUTE)] {
        let mut world = World::trusting(&publisher);
        let no_route = otherwise != Reply::Silence;
        let mut held = held(&publisher, otherwise);
        world.discover(&name, Freshness::Preferred, &mut held).expect("it is held");
        let begin_ns = world.now_ns;
        for name in &others[..if no_route { 1000 } else { 20 }] {
            world.discover(name, Freshness::Preferred, &mut held).expect("it is held");
        }
        assert!(world.now_ns - begin_ns < 10 * SECOND, "{}", world.now_ns - begin_ns);
        // It gets its time again later, and at once when it answers.
        world.asked.clear();
        world.now_ns += 20 * SECOND;
        let found = world
            .discover(&name, Freshness::Preferred, &mut |_, interest| publisher.answer(interest))
            .expect("it is back");
        assert!(found.is_fresh && world.asked.len() == 1);
    }
}

#[test]
fn older_than_seen_is_refused_whoever_has_it() {
    let (mut publisher, name) = lab();
    let (old, _) = lab();
    publisher.publish("f", 2000, &sample(200));
    let mut world = World::trusting(&publisher);
    world
        .discover(&name, Freshness::Preferred, &mut |_, interest| publisher.answer(interest))
        .expect("it is there");
    for freshness in [Freshness::Preferred, Freshness::Offline] {
        let mut held = held(&old, Reply::Nack(nack_reason::NO_ROUTE));
        let error = world.discover(&name, freshness, &mut held).expect_err("older than seen");
        assert!(matches!(error, ReadError::RolledBack { seen: 2000, got: 1000, .. }), "{error}");
    }
}

/// A key that counts for one entry may say what the manifest shows of it, and decides about the
/// versions of that entry alone: another key may be the directory's.
#[test]
fn who_may_speak_of_one_entry_teaches_no_version_of_the_directory() {
    let mut publisher = Publisher::new("/lab", 1);
    let directory = publisher.publish_manifest("d", 2000, &[("a", b"one")]);
    let (manifest, entry) = (manifest_name(directory.view()), directory.with_generic(b"a"));
    let mut policy = TrustPolicy::default();
    policy.add_anchor(entry.clone(), publisher.key_id());
    let mut world = World::trusting(&publisher);
    world.validator = Validator::new(policy);
    let mut answer = |_: &Request, interest: &Interest<'_>| publisher.answer(interest);
    let discovery = || Discovery::new(manifest.clone(), DiscoveryConfig::default(), 0);
    let error = world.run(discovery(), &mut answer).expect_err("the key is not the directory's");
    assert!(matches!(error, ReadError::Trust(_)), "{error}");
    let found = world.run(discovery().vouching_for(entry), &mut answer).expect("for the entry");
    assert_eq!((found.version, world.versions.name_count()), (2000, 0));
    assert_eq!(world.versions.check(manifest.view(), 1), Ok(()));
}

#[test]
fn required_asks_the_publisher_only() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&publisher);
    let mut held = held(&publisher, Reply::Nack(nack_reason::NO_ROUTE));
    let error = world.discover(&name, Freshness::Required, &mut held).expect_err("it is dead");
    assert!(matches!(error, ReadError::NoRoute { .. }));
    assert!(world.asked.iter().all(|(fresh, _)| *fresh));
}

#[test]
fn required_takes_no_old_answer_for_a_fresh_one() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&publisher);
    world.unix_ns += 61 * SECOND;
    let mut replay = |_: &Request, interest: &Interest<'_>| publisher.answer(interest);
    let error = world.discover(&name, Freshness::Required, &mut replay).expect_err("it is old");
    assert!(matches!(error, ReadError::NotFresh { age_ns, .. } if age_ns > 60 * SECOND), "{error}");
    let found = world.discover(&name, Freshness::Preferred, &mut replay).expect("good enough");
    assert!(!found.is_fresh, "but not called fresh");
}

/// ndn-cxx and ndn6-file-server make versions of milliseconds, NDNd of microseconds.
#[test]
fn the_age_of_foreign_answers_is_not_guessed_from_their_versions() {
    let (mut publisher, name) = lab();
    publisher.is_foreign = true;
    let mut world = World::trusting(&publisher);
    world.unix_ns = 2 * UNIX_NS;
    for freshness in [Freshness::Required, Freshness::Preferred] {
        let mut answer = |_: &Request, interest: &Interest<'_>| publisher.answer(interest);
        let found = world.discover(&name, freshness, &mut answer).expect("it answers");
        assert!(found.is_fresh && found.age_ns == 0);
        assert_eq!(world.versions.take_age_ns(), None, "nothing to warn of");
    }
    let mut held = held(&publisher, Reply::Nack(nack_reason::NO_ROUTE));
    let found = world.discover(&name, Freshness::Preferred, &mut held).expect("a cache has it");
    assert!(!found.is_fresh, "the publisher did not answer");
}

#[test]
fn offline_asks_the_publisher_never() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&publisher);
    let mut held = held(&publisher, Reply::Silence);
    let found = world.discover(&name, Freshness::Offline, &mut held).expect("it is held");
    assert!(!found.is_fresh && world.now_ns <= 10 * DELAY);
    assert_eq!(world.asked, [(false, 0)]);
}

#[test]
fn when_nobody_has_it_the_times_and_reasons_are_those_of_asking_the_publisher() {
    let (publisher, name) = lab();
    let mut world = World::trusting(&publisher);
    let error = world
        .discover(&name, Freshness::Preferred, &mut |_, _| Reply::Nack(nack_reason::NO_ROUTE))
        .expect_err("nobody");
    assert!(matches!(error, ReadError::NoRoute { .. }) && world.now_ns < SECOND);
    let begin_ns = world.now_ns;
    let error = world
        .discover(&name, Freshness::Preferred, &mut |_, _| Reply::Silence)
        .expect_err("nobody");
    assert!(matches!(error, ReadError::TimeOut { .. }));
    assert_eq!(world.now_ns - begin_ns, 15 * SECOND);
}

#[test]
fn what_was_true_for_a_moment_only_ends_an_offline_read_at_once() {
    let (mut publisher, name) = lab();
    publisher.object_mut(&name).absence = Some(Absence::BeingWritten { retry_ms: 100 });
    let mut world = World::trusting(&publisher);
    let mut held_absence = held(&publisher, Reply::Silence);
    let error =
        world.discover(&name, Freshness::Offline, &mut held_absence).expect_err("not whole");
    assert!(matches!(error, ReadError::BeingWritten { .. }) && world.now_ns < SECOND);
    drop(held_absence);
    publisher.object_mut(&name).absence = None;
    publisher.object_mut(&name).root = ContentRoot::Pending;
    let mut held_pending = held(&publisher, Reply::Silence);
    let error = world.discover(&name, Freshness::Offline, &mut held_pending).expect_err("no root");
    assert!(matches!(error, ReadError::RootPending { .. }) && world.now_ns < SECOND);
}
