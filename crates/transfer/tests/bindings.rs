//! Paths that lead to contents elsewhere, and links: who may say so, what is older. Virtual time.

#[allow(dead_code, unreachable_pub)]
#[path = "support/publisher.rs"]
mod publisher;
#[allow(dead_code, unreachable_pub)]
#[path = "support/world.rs"]
mod world;

use byname_packet::Name;
use byname_security::trust::{TrustPolicy, Trusted, UnknownKeys, Validator};
use byname_transfer::attributes::ObjectKind;
use byname_transfer::discovery::Discovered;
use byname_transfer::error::{ErrorClass, ProtocolProblem, ReadError};
use byname_transfer::freshness::Freshness;
use byname_transfer::naming::ContentName;
use byname_transfer::reader::ObjectPlan;

use publisher::{Publisher, sample};
use world::World;

/// A site that binds `/site/a/f` to a content in this version, by this transaction.
fn site(id: u64, version: u64, binding: u64) -> (Publisher, Name) {
    let mut site = Publisher::new("/site", 1);
    let name = site.publish("a/f", version, &sample(100));
    let prefix = site.prefix.clone();
    site.announces = Some(ContentName { prefix: prefix.view(), id }.to_name());
    site.binding = Some(binding);
    (site, name)
}

fn ask(world: &mut World, name: &Name, publisher: &Publisher) -> Result<Discovered, ReadError> {
    world.discover(name, Freshness::Preferred, &mut |_, interest| publisher.answer(interest))
}

#[test]
fn a_content_of_the_site_is_read_under_its_own_name() {
    let (site, name) = site(9, 3, 50);
    let mut world = World::trusting(&site);
    let found = ask(&mut world, &name, &site).expect("the site says so");
    let content: Name = "/site/32=file/seq=9/v=3".parse().expect("a name");
    assert_eq!((&found.metadata.name, found.version), (&content, 3));
    let plan = ObjectPlan::new(&found.metadata, false).expect("it can be read");
    assert_eq!((&plan.name, plan.root().is_some()), (&content, true));
}

#[test]
fn a_content_outside_of_the_path_or_of_the_key_is_refused() {
    for prefix in ["/", "/other", "/site/b", "/site/a/f/g"] {
        let (mut site, name) = site(9, 3, 50);
        let prefix: Name = prefix.parse().expect("a name");
        site.announces = Some(ContentName { prefix: prefix.view(), id: 9 }.to_name());
        let mut world = World::trusting(&site);
        let error = ask(&mut world, &name, &site).expect_err("not its own");
        let problem =
            matches!(error, ReadError::Protocol { problem: ProtocolProblem::OtherName { .. }, .. });
        assert!(problem, "{prefix}: {error}");
        assert_eq!(world.versions.iter().count(), 0, "{prefix}");
    }
    for prefix in ["/site/a", "/site/a/f"] {
        let (mut site, name) = site(9, 3, 50);
        let prefix: Name = prefix.parse().expect("a name");
        site.announces = Some(ContentName { prefix: prefix.view(), id: 9 }.to_name());
        assert!(ask(&mut World::trusting(&site), &name, &site).is_ok(), "{prefix}");
    }
}

/// Publishers without roots may keep content elsewhere, but decide about no versions there.
#[test]
fn a_foreign_publisher_cannot_spoil_the_versions_of_contents_of_others() {
    let (mut site, name) = site(9, 1 << 60, 50);
    site.is_foreign = true;
    site.announces = Some("/other/32=file/seq=9".parse().expect("a name"));
    let mut world = World::trusting(&site);
    ask(&mut world, &name, &site).expect("content may lie elsewhere");
    let mut known = world.versions.iter();
    assert!(known.all(|it| name.view().is_prefix_of(it.name.view())));
    assert!(world.versions.iter().count() > 0);
}

/// `--insecure`: whoever answers is believed, and teaches nothing.
#[test]
fn who_checks_no_keys_takes_content_from_anywhere() {
    let (mut site, name) = site(9, 3, 50);
    site.announces = Some("/other/32=file/seq=9".parse().expect("a name"));
    let policy = TrustPolicy { unknown_keys: UnknownKeys::Insecure, ..TrustPolicy::default() };
    let mut world = World::trusting(&site);
    world.validator = Validator::new(policy);
    let found = ask(&mut world, &name, &site).expect("nobody is asked for a key");
    assert_eq!((found.version, found.trust), (3, Trusted::Insecure));
    assert_eq!(world.versions.iter().count(), 0);
}

#[test]
fn a_path_may_change_its_content_but_not_back() {
    let (first, name) = site(9, 700, 50);
    let (second, _) = site(10, 3, 51);
    let mut world = World::trusting(&first);
    assert_eq!(ask(&mut world, &name, &first).expect("bound").version, 700);
    assert_eq!(ask(&mut world, &name, &second).expect("bound anew").version, 3);
    let error = ask(&mut world, &name, &first).expect_err("a replay");
    assert!(matches!(error, ReadError::RolledBack { seen: 51, got: 50, .. }), "{error}");
    let (older, _) = site(10, 2, 52);
    let error = ask(&mut world, &name, &older).expect_err("an older version of the content");
    assert!(matches!(error, ReadError::RolledBack { seen: 3, got: 2, .. }), "{error}");
}

#[test]
fn a_link_is_found_as_one_and_never_read_as_a_file() {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("l", 1000, b"../\x1B[2Ja");
    publisher.link_target = Some(b"../\x1B[2Ja".to_vec());
    let mut world = World::trusting(&publisher);
    let found = ask(&mut world, &name, &publisher).expect("it is there");
    assert_eq!(found.metadata.kind(), ObjectKind::Link);
    for is_insecure in [false, true] {
        let error = ObjectPlan::new(&found.metadata, is_insecure).expect_err("not followed");
        assert_eq!(error.class(), ErrorClass::Permanent);
        let text = error.to_string();
        assert!(text.contains("symbolic link to ../%1B[2Ja"), "harmless to a terminal: {text}");
    }
}
