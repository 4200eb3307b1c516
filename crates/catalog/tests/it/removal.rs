//! Trees that are removed in one command: out of sight at once, collected in steps, whoever dies
//! in between.

use std::sync::Arc;

use byname_catalog::engine::{EmbeddedEngine, Engine, Span, Table};
use byname_catalog::id::InodeId;
use byname_catalog::{
    Answer, AttributeChanges, Caller, Command, EntryName, KEPT_NS, Place, Refusal, Rename, Subject,
    Usage,
};

use crate::rebuild::assert_rebuilt;
use crate::storage::PowerDisk;
use crate::support::{TestSite, place};
use crate::under_test::TestEngine;

fn remove(path: &str) -> Command {
    Command::RemoveAll { place: place(path) }
}

fn set(path: &str, changes: AttributeChanges) -> Command {
    Command::SetAttributes { place: place(path), changes }
}

fn owned_by(user: &str, group: &str) -> AttributeChanges {
    let (owner, group) = (Some(user.to_owned()), Some(group.to_owned()));
    AttributeChanges { owner, group, ..AttributeChanges::default() }
}

fn with_mode(mode: u16) -> AttributeChanges {
    AttributeChanges { mode: Some(mode), ..AttributeChanges::default() }
}

/// A site whose top is anna's, with a tree `d` of three levels.
fn site(engine: Arc<dyn Engine>) -> TestSite {
    let mut site = TestSite::new(engine);
    site.run("op", set("/", owned_by("anna", "users"))).unwrap();
    for path in ["d", "d/e", "d/e/g", "d/empty"] {
        site.mkdir("anna", path).unwrap();
    }
    for path in ["d/f", "d/e/f", "d/e/g/f", "d/e/g/h"] {
        site.put("anna", path, 100);
    }
    site
}

fn in_memory() -> TestSite {
    site(Arc::new(TestEngine::default()))
}

fn usage(site: &TestSite) -> Usage {
    site.reader("op").usage(&Subject::User("anna".into())).unwrap().0
}

fn rows(site: &TestSite, table: Table) -> usize {
    site.catalog.engine().snapshot().unwrap().range(table, Span::ALL, 10_000).unwrap().len()
}

#[test]
fn a_tree_is_out_of_sight_at_once_and_gone_when_it_is_collected() {
    let mut site = in_memory();
    let (top, before) = (site.entry("/").unwrap().inode, usage(&site));
    site.now_ns += 1;
    assert_eq!(site.run("anna", remove("d")), Ok(Answer::Done));
    for path in ["d", "d/f", "d/e/g"] {
        assert_eq!(site.entry(path), Err(Refusal::NotFound), "{path}");
    }
    let after = site.entry("/").unwrap().inode;
    assert_eq!(after.link_count, top.link_count - 1);
    assert_eq!(after.times.modified_ns, site.now_ns);
    assert!(after.binding > top.binding);
    assert_eq!(usage(&site), before, "what is not collected yet counts");
    site.collect();
    assert_eq!(usage(&site), Usage { inodes: 1, ..Usage::default() });
    assert_eq!((rows(&site, Table::Dentry), rows(&site, Table::Detached)), (0, 0));
    site.pass(2 * KEPT_NS);
    assert_eq!((rows(&site, Table::Inode), rows(&site, Table::Replica)), (1, 0));
    // What is no full directory goes as by the other commands.
    site.mkdir("anna", "d").unwrap();
    site.put("anna", "f", 1);
    for path in ["d", "f"] {
        assert_eq!(site.run("anna", remove(path)), Ok(Answer::Done));
    }
    assert_eq!(rows(&site, Table::Detached), 0);
    assert_eq!(site.run("anna", remove("d")), Err(Refusal::NotFound));
    assert_eq!(site.run("op", remove("/")), Err(Refusal::IsRoot));
}

/// Scenario 6: readers keep what they hold, writers are told.
#[test]
fn a_tree_that_is_removed_during_a_write_keeps_held_versions_and_takes_no_new_file() {
    let mut site = in_memory();
    let content = site.put("anna", "d/e/held", 500);
    site.run("anna", Command::Hold { content }).unwrap();
    let fresh = site.create("anna", "d/e/new", 10).unwrap();
    let next = site.create("anna", "d/e/f", 700).unwrap();
    site.run("anna", remove("d")).unwrap();
    assert_eq!(site.commit("anna", &fresh, 10), Err(Refusal::DirectoryGone));
    site.commit("anna", &next, 700).unwrap();
    site.run("anna", Command::Abort { content: fresh.content }).unwrap();
    site.collect();
    assert_eq!(usage(&site), Usage { inodes: 1, ..Usage::default() }, "nobody pays for it");
    for _ in 0..4 {
        site.pass(KEPT_NS / 2);
        site.run("anna", Command::RenewSession).unwrap();
        assert_eq!(site.reader("anna").content(content).unwrap().size, 500);
    }
    site.run("anna", Command::Release { content }).unwrap();
    site.pass(3 * KEPT_NS);
    assert_eq!(rows(&site, Table::Replica), 0);
}

#[test]
fn nothing_comes_into_a_removed_tree_or_out_of_it() {
    let mut site = in_memory();
    let ids = ["d", "d/e", "d/e/g"].map(|path| site.entry(path).unwrap().id);
    site.run("anna", remove("d")).unwrap();
    let name = |text: &str| EntryName::new(text.as_bytes().to_vec()).unwrap();
    // Before anything is collected, and when a part of it is.
    for limit in [0, 1, 2] {
        let collect = Command::Collect { limit };
        assert_eq!(site.run_as(Caller::Head, collect), Ok(Answer::Count(limit)));
        for id in ids {
            let at = |text| Place::entry(id, name(text));
            let out = Rename { from: at("g"), to: place("out"), no_replace: false };
            let into = Rename { from: place("into"), to: at("into"), no_replace: false };
            let commands = [
                Command::MakeDirectory { place: at("new"), mode: 0o755 },
                Command::Link { existing: at("f"), place: place("out") },
                Command::Rename(out),
                Command::Rename(into),
                Command::RemoveAll { place: at("g") },
                Command::Unlink { place: at("f") },
                set_of(Place::inode(id)),
            ];
            for command in commands {
                assert_eq!(site.run("op", command.clone()), Err(Refusal::NotFound), "{command:?}");
            }
            assert!(site.reader("op").list(&Place::inode(id), None, 9).is_err());
        }
    }
    site.mkdir("anna", "into").unwrap();
    site.collect();
    assert_eq!(rows(&site, Table::Dentry), 1, "what is elsewhere stays");
}

fn set_of(place: Place) -> Command {
    Command::SetAttributes { place, changes: with_mode(0o700) }
}

/// A head dies after each step of the collecting, and the power with it.
#[test]
fn a_head_that_dies_between_the_steps_leaves_a_smaller_tree() {
    for limit in 1..5 {
        let mut disk = PowerDisk::default();
        let mut site = site(Arc::new(EmbeddedEngine::on(disk.clone()).unwrap()));
        site.mkdir("anna", "stays").unwrap();
        site.run("anna", remove("d")).unwrap();
        let mut left = usage(&site).inodes;
        loop {
            let collect = Command::Collect { limit };
            let count = site.run_as(Caller::Head, collect).unwrap();
            disk.cut_after(0);
            disk = disk.restart(0);
            site.take_over(Arc::new(EmbeddedEngine::on(disk.clone()).unwrap()));
            assert_eq!(site.entry("d"), Err(Refusal::NotFound));
            site.assert_consistent();
            assert_rebuilt(site.catalog.engine());
            assert!(usage(&site).inodes <= left);
            left = usage(&site).inodes;
            if count == Answer::Count(0) {
                break;
            }
        }
        assert_eq!(usage(&site), Usage { inodes: 2, ..Usage::default() });
    }
}

/// As POSIX has it for who removes one after the other, but whole or not at all.
#[test]
fn who_may_not_remove_all_of_a_tree_removes_nothing_of_it() {
    let mut site = in_memory();
    let denied = Err(Refusal::AccessDenied);
    site.run("anna", set("/", with_mode(0o777))).unwrap();
    assert_eq!(site.run("bert", remove("d")), denied, "it is anna's, and full");
    site.run("anna", set("d", with_mode(0o777))).unwrap();
    assert_eq!(site.run("bert", remove("d")), denied, "so is what is in it");
    for path in ["d/e", "d/e/g"] {
        site.run("anna", set(path, with_mode(0o777))).unwrap();
    }
    site.run("anna", set("d/e/g", with_mode(0o733))).unwrap();
    assert_eq!(site.run("bert", remove("d")), denied, "he cannot list it");
    site.run("anna", set("d/e/g", with_mode(0o1777))).unwrap();
    assert_eq!(site.run("bert", remove("d")), denied, "files in a sticky directory are anna's");
    for path in ["d/e/g/f", "d/e/g/h"] {
        site.run("op", set(path, owned_by("bert", "users"))).unwrap();
    }
    site.run("anna", set("/", with_mode(0o1777))).unwrap();
    assert_eq!(site.run("bert", remove("d")), Err(Refusal::NotOwner), "a sticky one above");
    assert!(site.entry("d/e/g/f").is_ok());
    site.run("anna", set("/", with_mode(0o777))).unwrap();
    assert_eq!(site.run("bert", remove("d")), Ok(Answer::Done), "an empty one may be anyone's");
    // Operators are bound by no mode.
    site.mkdir("anna", "x").unwrap();
    site.put("anna", "x/f", 1);
    site.run("anna", set("x", with_mode(0))).unwrap();
    assert_eq!(site.run("anna", remove("x")), denied);
    assert_eq!(site.run("op", remove("x")), Ok(Answer::Done));
}

/// Operators can make directories by number deeper than any path: nobody waits for that.
#[test]
fn what_is_too_deep_is_refused_and_not_gone_through() {
    let mut site = in_memory();
    let (mut at, deeper) = (site.entry("d/e/g").unwrap().id, EntryName::new(*b"n").unwrap());
    for _ in 0..5000 {
        let make = Command::MakeDirectory { place: Place::entry(at, deeper.clone()), mode: 0o755 };
        let submission = site.submission("op", make);
        let Ok(Answer::Entry(made)) = site.submit(&submission).unwrap() else { panic!("made") };
        at = made.id;
    }
    let from = Place::entry(at, EntryName::new(*b"new").unwrap());
    let rename = Rename { from: place("d/f"), to: from.clone(), no_replace: true };
    assert_eq!(site.run("anna", Command::Rename(rename)), Err(Refusal::TooDeep));
    // While something is collected, what lies that deep is not looked for.
    site.mkdir("anna", "other").unwrap();
    site.put("anna", "other/f", 1);
    site.run("anna", remove("other")).unwrap();
    let make = Command::MakeDirectory { place: from, mode: 0o755 };
    assert_eq!(site.run("op", make.clone()), Err(Refusal::TooDeep));
    site.collect();
    // Who is no operator has to be let through by each directory above, and by no more of them.
    assert_eq!(site.run("anna", make.clone()), Err(Refusal::TooDeep));
    site.run("op", make).unwrap();
    site.run("op", remove("d")).unwrap();
    site.collect();
    assert_eq!(usage(&site), Usage { inodes: 1, ..Usage::default() });
}

/// Finding out whether somebody may is bounded; files of one's own directories cost nothing.
#[test]
fn trees_are_looked_at_within_a_bound() {
    let (mut site, _) = TestSite::in_memory();
    site.run("op", set("/", owned_by("anna", "users"))).unwrap();
    site.mkdir("anna", "d").unwrap();
    site.mkdir("anna", "d/wide").unwrap();
    let wide = site.entry("d/wide").unwrap().id;
    fill(&mut site, wide);
    assert_eq!(site.run("anna", remove("d")), Ok(Answer::Done), "no directory is in it");
    site.collect();
    site.mkdir("anna", "d").unwrap();
    site.mkdir("anna", "d/wide").unwrap();
    let wide = site.entry("d/wide").unwrap().id;
    fill(&mut site, wide);
    site.mkdir("anna", "d/wide/zz").unwrap();
    assert_eq!(site.run("anna", remove("d")), Err(Refusal::TreeTooLarge));
    assert!(site.entry("d/wide/zz").is_ok());
    assert_eq!(site.run("op", remove("d")), Ok(Answer::Done));
}

fn fill(site: &mut TestSite, directory: InodeId) {
    for number in 0..5000 {
        let name = EntryName::new(format!("{number:05}").into_bytes()).unwrap();
        let (place, target) = (Place::entry(directory, name), b"x".to_vec());
        let submission = site.submission("anna", Command::MakeSymlink { place, target });
        site.submit(&submission).unwrap().unwrap();
    }
}
