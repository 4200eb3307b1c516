//! Doors speak for whom they may, judged by each command, and have no rights of their own.

use byname_catalog::engine::Engine;
use byname_catalog::{
    AddKey, Answer, AttributeChanges, Caller, Command, GRANT_NAMES_MAX, Grant, KeyHolder, Limits,
    Reader, Refusal, Request, SESSION_NS, Seen, SetDoor, Subject, Submission, export, rebuild,
};

use crate::support::{TestSite, place, refusal, through};
use crate::under_test::TestEngine;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn of_group(group: &str) -> Grant {
    Grant { groups: names(&[group]), ..Grant::default() }
}

fn mkdir(path: &str) -> Command {
    Command::MakeDirectory { place: place(path), mode: 0o755 }
}

/// A site whose top everybody may write in.
fn open_site() -> TestSite {
    let (mut site, _) = TestSite::in_memory();
    let changes = AttributeChanges { mode: Some(0o777), ..AttributeChanges::default() };
    site.run("op", Command::SetAttributes { place: place("/"), changes }).unwrap();
    site
}

#[test]
fn what_a_door_does_is_the_users_and_counts_for_him() {
    let mut site = open_site();
    site.grant("xrd", of_group("physics"));
    let anna = through("xrd", "anna", &[]);
    site.run_in_session(&anna, mkdir("a")).unwrap();
    let made = site.entry("a").unwrap().inode;
    assert_eq!((made.owner.as_str(), made.group.as_str()), ("anna", "users"));
    let limits = Limits { inodes: 1, ..Limits::NONE };
    site.run("op", Command::SetLimits { subject: Subject::User("anna".into()), limits }).unwrap();
    assert_eq!(site.run_in_session(&anna, mkdir("b")), Err(Refusal::UserQuota));
    let (usage, _) = site.reader("op").usage(&Subject::User("anna".into())).unwrap();
    assert_eq!(usage.inodes, 1);
}

#[test]
fn a_door_speaks_for_whom_it_may_and_never_for_itself() {
    let mut site = open_site();
    let may = |site: &mut TestSite, user: &str, groups: &[&str]| {
        site.run_as(through("xrd", user, groups), Command::OpenSession).map(drop)
    };
    assert_eq!(may(&mut site, "anna", &[]), Err(Refusal::UnknownDoor));
    site.grant("xrd", Grant::default());
    assert_eq!(may(&mut site, "anna", &[]), Err(Refusal::MayNotSpeakFor));
    site.grant("xrd", of_group("physics"));
    assert_eq!(may(&mut site, "anna", &[]), Ok(()));
    assert_eq!(may(&mut site, "bert", &[]), Err(Refusal::MayNotSpeakFor));
    assert_eq!(may(&mut site, "nobody", &[]), Err(Refusal::UnknownUser));
    // Groups: the user's own, fewer of them, and others only if that is granted.
    assert_eq!(may(&mut site, "anna", &["physics"]), Ok(()));
    assert_eq!(may(&mut site, "anna", &["physics", "ops"]), Err(Refusal::MayNotAssertGroup));
    site.grant("xrd", Grant { asserted: names(&["ops"]), ..of_group("physics") });
    assert_eq!(may(&mut site, "anna", &["physics", "ops"]), Ok(()));
    // What a door says of groups makes nobody one for whom it may speak.
    assert_eq!(may(&mut site, "bert", &["physics"]), Err(Refusal::MayNotSpeakFor));
}

#[test]
fn operators_are_spoken_for_only_by_name() {
    let mut site = open_site();
    let operator = |site: &mut TestSite| {
        let opened = site.run_as(through("xrd", "op", &[]), Command::OpenSession);
        opened.map(drop)
    };
    for grant in [Grant { is_for_all: true, ..Grant::default() }, of_group("ops")] {
        site.grant("xrd", grant);
        assert_eq!(operator(&mut site), Err(Refusal::MayNotSpeakForOperator));
    }
    site.grant("xrd", Grant { users: names(&["op"]), ..Grant::default() });
    assert_eq!(operator(&mut site), Ok(()));
    // Whoever becomes an operator is none any more whom all may speak for.
    site.grant("xrd", Grant { is_for_all: true, ..Grant::default() });
    let anna = through("xrd", "anna", &[]);
    site.run_in_session(&anna, mkdir("a")).unwrap();
    let groups = names(&["users"]);
    let promote = Command::SetUser { user: "anna".into(), groups, is_operator: true };
    site.run("op", promote).unwrap();
    assert_eq!(site.run_in_session(&anna, mkdir("b")), Err(Refusal::MayNotSpeakForOperator));
}

#[test]
fn a_grant_that_is_taken_back_ends_with_the_next_command_of_an_open_session() {
    let mut site = open_site();
    site.grant("xrd", of_group("physics"));
    let anna = through("xrd", "anna", &[]);
    site.run_in_session(&anna, mkdir("a")).unwrap();
    // In one transaction: what is behind it is judged by it.
    let submissions = [
        site.submission_of(&anna, 1, mkdir("b")),
        site.submission(
            "op",
            Command::SetDoor(SetDoor { door: "xrd".into(), grant: Grant::default() }),
        ),
        site.submission_of(&anna, 2, mkdir("c")),
    ];
    let outcomes = site.catalog.execute(site.now_ns, &submissions).unwrap();
    let outcomes: Vec<_> =
        outcomes.into_iter().map(|outcome| outcome.map(drop).map_err(refusal)).collect();
    assert_eq!(outcomes, [Ok(()), Ok(()), Err(Refusal::MayNotSpeakFor)]);
    // Nor is it told the answer that it had, and the session cannot be kept open.
    assert_eq!(site.submit(&submissions[0]).unwrap(), Err(Refusal::MayNotSpeakFor));
    assert_eq!(site.run_in_session(&anna, Command::RenewSession), Err(Refusal::MayNotSpeakFor));
    // Granted again, a repeated command has its first answer, and the session goes on.
    site.grant("xrd", of_group("physics"));
    assert!(site.submit(&submissions[0]).unwrap().is_ok());
    assert_eq!(site.submit(&submissions[2]).unwrap(), Err(Refusal::MayNotSpeakFor));
    site.run_in_session(&anna, mkdir("d")).unwrap();
    site.assert_consistent();
}

#[test]
fn a_group_that_is_taken_from_a_user_counts_no_more_in_an_open_session() {
    let mut site = open_site();
    site.grant("xrd", Grant { is_for_all: true, ..Grant::default() });
    let anna = through("xrd", "anna", &["physics"]);
    site.run_in_session(&anna, mkdir("a")).unwrap();
    assert_eq!(site.entry("a").unwrap().inode.group, "physics");
    let groups = names(&["users"]);
    let leave = Command::SetUser { user: "anna".into(), groups, is_operator: false };
    site.run("op", leave).unwrap();
    assert_eq!(site.run_in_session(&anna, mkdir("b")), Err(Refusal::MayNotAssertGroup));
}

#[test]
fn sessions_of_a_door_and_of_its_user_are_not_each_others() {
    let mut site = open_site();
    for door in ["xrd", "web"] {
        site.grant(door, Grant { is_for_all: true, ..Grant::default() });
    }
    let anna = through("xrd", "anna", &[]);
    let own = site.submission_of(&anna, 0, mkdir("a"));
    let request = own.request;
    let others =
        [Caller::User("anna".into()), through("web", "anna", &[]), through("xrd", "bert", &[])];
    for caller in others {
        let stolen = Submission { caller, request, command: mkdir("a") };
        assert_eq!(site.submit(&stolen).unwrap(), Err(Refusal::NotYourSession));
    }
    assert!(site.submit(&own).unwrap().is_ok());
    // Nor has a door that of its user.
    let request = site.submission("anna", mkdir("b")).request;
    let stolen = Submission { caller: anna, request, command: mkdir("b") };
    assert_eq!(site.submit(&stolen).unwrap(), Err(Refusal::NotYourSession));
}

#[test]
fn replayed_commands_of_a_door_are_refused_as_those_of_users() {
    let mut site = open_site();
    site.grant("xrd", Grant { is_for_all: true, ..Grant::default() });
    let anna = through("xrd", "anna", &[]);
    let first = site.submission_of(&anna, 0, mkdir("a"));
    let second = site.submission_of(&anna, 0, mkdir("b"));
    assert!(site.submit(&first).unwrap().is_ok());
    assert!(site.submit(&first).unwrap().is_ok(), "the first answer again");
    assert!(site.submit(&second).unwrap().is_ok());
    assert_eq!(site.submit(&first).unwrap(), Err(Refusal::OldRequest));
    let request = second.request.map(|request| Request { digest: [1; 32], ..request });
    let other = Submission { request, ..second };
    assert_eq!(site.submit(&other).unwrap(), Err(Refusal::RequestReused));
}

#[test]
fn doors_and_their_keys_are_administered_by_operators_and_bounded() {
    let mut site = open_site();
    let set = |door: &str, grant: Grant| Command::SetDoor(SetDoor { door: door.into(), grant });
    let all = || Grant { is_for_all: true, ..Grant::default() };
    assert_eq!(site.run("anna", set("xrd", all())), Err(Refusal::NotOperator));
    let add = |name: &[u8]| {
        let (holder, certificate) = (KeyHolder::Door("xrd".into()), b"certificate".to_vec());
        Command::AddKey(AddKey { holder, name: name.to_vec(), certificate })
    };
    assert_eq!(site.run("op", add(b"k")), Err(Refusal::UnknownDoor));
    assert_eq!(site.run("op", set("a/b", all())), Err(Refusal::BadLabel));
    let many = vec!["u".to_owned(); GRANT_NAMES_MAX + 1];
    let too_many = Grant { users: many, ..Grant::default() };
    assert_eq!(site.run("op", set("xrd", too_many)), Err(Refusal::TooMuchGranted));
    site.run("op", set("xrd", all())).unwrap();
    site.run("op", add(b"k")).unwrap();
    site.run("op", add(b"l")).unwrap();
    assert_eq!(site.reader("op").doors("", 9).unwrap().len(), 1);
    let remove = || Command::RemoveDoor { door: "xrd".into() };
    assert_eq!(site.run("anna", remove()), Err(Refusal::NotOperator));
    assert_eq!(site.run("op", remove()), Ok(Answer::Done));
    assert_eq!(site.run("op", remove()), Err(Refusal::UnknownDoor));
    assert!(site.reader("op").key(b"k").unwrap().is_none());
    assert!(site.reader("op").key(b"l").unwrap().is_none());
    let last = (0..257).map(|number| site.run("op", set(&format!("d{number}"), all()))).last();
    assert_eq!(last, Some(Err(Refusal::TooMuchGranted)));
}

#[test]
fn doors_are_there_in_a_catalog_that_is_made_again_and_their_sessions_are_not() {
    let mut site = open_site();
    let grant = Grant {
        is_for_all: true,
        users: names(&["op"]),
        groups: names(&["physics"]),
        asserted: names(&["ops"]),
    };
    site.grant("xrd", grant.clone());
    site.run_in_session(&through("xrd", "anna", &[]), mkdir("a")).unwrap();
    let rows = export(&*site.catalog.engine().snapshot().unwrap(), None, 1 << 16).unwrap();
    let again = TestEngine::default();
    rebuild(&again, &mut rows.into_iter(), Seen::default(), site.now_ns).unwrap();
    let reader = Reader::new(&again, &Caller::Head).unwrap();
    assert_eq!(reader.doors("", 9).unwrap()[0].1.grant, grant);
    // Sessions end by themselves, as those of users.
    site.pass(SESSION_NS + 1);
    assert!(site.run_in_session(&through("xrd", "anna", &[]), mkdir("b")).is_ok());
}
