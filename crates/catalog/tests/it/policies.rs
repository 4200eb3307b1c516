//! Where content goes: by tree, by file, by the pattern of a name, by command; who may use what.

use byname_catalog::{
    AddDisk, Answer, AttributeChanges, Command, Create, Limits, Policy, PolicyChanges, Publish,
    Refusal, Subject,
};

use crate::support::{TestSite, commit, place};

/// Three disks of `main`, two of `tape`.
fn site() -> TestSite {
    let (mut site, _) = TestSite::in_memory();
    let changes = AttributeChanges { mode: Some(0o777), ..AttributeChanges::default() };
    site.run("op", Command::SetAttributes { place: place("/"), changes }).unwrap();
    for server in ["t1", "t2"] {
        let disk = AddDisk {
            space: "tape".into(),
            server: server.into(),
            label: server.into(),
            capacity_bytes: 1 << 40,
        };
        site.run("op", Command::AddDisk(disk)).unwrap();
    }
    site
}

fn asks(space: Option<&str>, replica_count: Option<u8>) -> PolicyChanges {
    PolicyChanges { space: space.map(str::to_owned), replica_count, receipt_count: None }
}

/// Writes a file as anna, and says where it is: the space, the replicas it has and wants.
fn put(site: &mut TestSite, path: &str, policy: PolicyChanges) -> (String, usize, u8) {
    let create = Create {
        place: place(path),
        mode: 0o644,
        size_max: 10,
        publish: Publish::AtCommit,
        exclusive: false,
        policy,
    };
    let Ok(Answer::Ticket(ticket)) = site.run("anna", Command::Create(create)) else {
        panic!("{path} is not opened");
    };
    site.run("anna", Command::Commit(commit(&ticket, 10))).unwrap();
    where_is(site, path)
}

fn where_is(site: &TestSite, path: &str) -> (String, usize, u8) {
    let inode = site.entry(path).unwrap().inode;
    let replicas = inode.content().unwrap().replicas.clone();
    let disk = site.reader("op").disk(replicas[0]).unwrap();
    (disk.space, replicas.len(), inode.policy.replica_count)
}

fn set_pattern(pattern: &str, changes: Option<PolicyChanges>) -> Command {
    Command::SetPattern { pattern: pattern.to_owned(), changes }
}

#[test]
fn a_command_counts_more_than_a_pattern_and_that_more_than_the_tree() {
    let mut site = site();
    let none = PolicyChanges::default;
    let main = |count: usize| ("main".to_owned(), count, count as u8);
    let tape = |count: usize| ("tape".to_owned(), count, count as u8);
    assert_eq!(put(&mut site, "a.raw", none()), main(2));
    site.run("op", set_pattern("*.raw", Some(asks(Some("tape"), None)))).unwrap();
    site.run("op", set_pattern("run*.raw", Some(asks(Some("tape"), Some(1))))).unwrap();
    assert_eq!(put(&mut site, "b.raw", none()), tape(2));
    assert_eq!(put(&mut site, "run1.raw", none()), tape(1), "the longest pattern");
    assert_eq!(put(&mut site, "b.root", none()), main(2));
    assert_eq!(put(&mut site, "c.raw", asks(Some("main"), Some(3))), main(3));
    assert_eq!(put(&mut site, "d.raw", asks(None, Some(1))), tape(1));
    let policy = Policy { space: "main".into(), replica_count: 1, receipt_count: 1 };
    site.mkdir("anna", "scratch").unwrap();
    site.run("op", Command::SetPolicy { place: place("scratch"), policy }).unwrap();
    site.mkdir("anna", "scratch/below").unwrap();
    assert_eq!(put(&mut site, "scratch/below/f", none()), main(1));
    assert_eq!(put(&mut site, "scratch/below/f.raw", none()), tape(1), "replicas of the tree");
    // What is there stays where it is until it is written again, patterns are for new files.
    assert_eq!(put(&mut site, "a.raw", none()), main(2));
    site.run("op", set_pattern("run*.raw", None)).unwrap();
    assert_eq!(put(&mut site, "run2.raw", none()), tape(2));
    assert_eq!(site.run("op", set_pattern("run*.raw", None)), Err(Refusal::NotFound));
    let patterns = site.reader("anna").patterns().unwrap();
    assert_eq!(patterns, [("*.raw".to_owned(), asks(Some("tape"), None))]);
}

#[test]
fn a_file_keeps_the_policy_that_it_was_written_with() {
    let mut site = site();
    let none = PolicyChanges::default;
    put(&mut site, "f", none());
    put(&mut site, "f", asks(Some("tape"), Some(1)));
    assert_eq!(put(&mut site, "f", none()), ("tape".to_owned(), 1, 1), "rewritten as it was");
    let policy = Policy { space: "main".into(), replica_count: 3, receipt_count: 3 };
    site.run("op", Command::SetPolicy { place: place("f"), policy: policy.clone() }).unwrap();
    assert_eq!(where_is(&site, "f"), ("tape".to_owned(), 1, 3), "until it is written again");
    assert_eq!(put(&mut site, "f", none()), ("main".to_owned(), 3, 3));
    // What an operator sets while a version is written holds, unless its writer asked himself.
    let ticket = site.create("anna", "f", 10).unwrap();
    let fewer = Policy { replica_count: 2, receipt_count: 2, ..policy };
    site.run("op", Command::SetPolicy { place: place("f"), policy: fewer.clone() }).unwrap();
    site.run("anna", Command::Commit(commit(&ticket, 10))).unwrap();
    assert_eq!(site.entry("f").unwrap().inode.policy, fewer);
}

#[test]
fn policies_that_contradict_themselves_are_refused() {
    let mut site = site();
    let changes =
        |replica_count, receipt_count| PolicyChanges { space: None, replica_count, receipt_count };
    let bad = [
        changes(Some(0), None),
        changes(Some(17), None),
        changes(Some(1), Some(2)),
        changes(None, Some(0)),
        changes(None, Some(17)),
        asks(Some(""), None),
    ];
    for policy in bad {
        let create = Create {
            place: place("f"),
            mode: 0o644,
            size_max: 10,
            publish: Publish::AtCommit,
            exclusive: false,
            policy: policy.clone(),
        };
        let answer = site.run("anna", Command::Create(create.clone()));
        assert!(answer.is_err(), "{policy:?}");
        let at_once = Create { publish: Publish::AtOnce, ..create };
        assert!(site.run("anna", Command::Create(at_once)).is_err(), "{policy:?}");
        assert!(site.run("op", set_pattern("*", Some(policy.clone()))).is_err(), "{policy:?}");
    }
    assert_eq!(site.run("op", set_pattern("*", Some(asks(None, None)))), Err(Refusal::BadPolicy));
    let fine = || Some(asks(None, Some(1)));
    for pattern in ["", "a/b", "a\nb", &"a".repeat(256)] {
        assert_eq!(site.run("op", set_pattern(pattern, fine())), Err(Refusal::BadPattern));
    }
    assert_eq!(site.run("anna", set_pattern("*", fine())), Err(Refusal::NotOperator));
    for number in 0..64 {
        site.run("op", set_pattern(&format!("*.{number}"), fine())).unwrap();
    }
    assert_eq!(site.run("op", set_pattern("*.64", fine())), Err(Refusal::TooManyPatterns));
    site.run("op", set_pattern("*.63", fine())).unwrap();
}

#[test]
fn quotas_are_listed_in_pages() {
    let mut site = site();
    put(&mut site, "f", PolicyChanges::default());
    let limits = Limits { inodes: 5, bytes: 100, ..Limits::NONE };
    for subject in [Subject::User("carl".into()), Subject::Group("physics".into())] {
        site.run("op", Command::SetLimits { subject, limits }).unwrap();
    }
    let reader = site.reader("op");
    let all = reader.quotas(None, 100).unwrap();
    let of = |subject: &Subject| all.iter().find(|quota| quota.subject == *subject).unwrap();
    let anna = of(&Subject::User("anna".into()));
    assert_eq!((anna.usage.inodes, anna.usage.bytes, anna.limits), (1, 10, Limits::NONE));
    assert_eq!(of(&Subject::Group("physics".into())).limits, limits);
    let carl = of(&Subject::User("carl".into()));
    assert_eq!((carl.usage.inodes, carl.limits), (0, limits), "a limit without use");
    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        let page = reader.quotas(after.as_ref(), 1).unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.subject.clone());
        pages.extend(page);
    }
    assert_eq!(pages, all);
}
