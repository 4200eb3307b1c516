//! Versions seen, kept between runs and shared by programs that run at once.

use byname_packet::Name;
use byname_profile::{SeenError, SeenVersions};
use byname_transfer::attributes::Attributes;
use byname_transfer::manifest::{Entry, Version};
use byname_transfer::versions::{Lesson, VersionMemory};
use rustix::io::Errno;
use std::path::Path;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn loaded(directory: &Path) -> (SeenVersions, VersionMemory) {
    let (mut seen, mut memory) = (SeenVersions::new(directory), VersionMemory::default());
    seen.load(&mut memory).unwrap();
    (seen, memory)
}

fn versions(directory: &Path) -> Vec<(String, u64)> {
    let memory = loaded(directory).1;
    memory.iter().map(|it| (it.name.to_string(), it.version)).collect()
}

fn learn(directory: &Path, entries: &[(&str, u64)]) {
    let (mut seen, mut memory) = loaded(directory);
    entries.iter().for_each(|(text, version)| memory.insert(name(text), *version));
    seen.save(&memory).unwrap();
}

#[test]
fn what_was_seen_is_there_in_the_next_run() {
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join("a/state");
    assert_eq!(versions(&state), []);
    learn(&state, &[("/lab/x", 5), ("/lab/y%20z", 7)]);
    assert_eq!(versions(&state), [("/lab/x".into(), 5), ("/lab/y%20z".into(), 7)]);
    learn(&state, &[("/lab/x", 6)]);
    assert_eq!(versions(&state), [("/lab/y%20z".into(), 7), ("/lab/x".into(), 6)]);
}

#[test]
fn a_run_that_has_learned_nothing_leaves_the_file_alone() {
    use std::os::unix::fs::MetadataExt;
    let home = tempfile::tempdir().unwrap();
    learn(home.path(), &[("/lab/x", 5), ("/lab/y", 7)]);
    let inode = || std::fs::metadata(home.path().join("seen-versions")).unwrap().ino();
    let before = inode();
    learn(home.path(), &[("/lab/y", 7), ("/lab/x", 4)]);
    assert_eq!(inode(), before, "nothing is new");
    learn(home.path(), &[("/lab/x", 6)]);
    assert_ne!(inode(), before, "a newer version is");
    assert_eq!(versions(home.path()), [("/lab/y".into(), 7), ("/lab/x".into(), 6)]);
}

/// What a manifest of the directory announces.
fn list(memory: &mut VersionMemory, directory: &str, entries: &[(&str, u64, Option<u64>)]) {
    let entries = entries.iter().map(|(entry, number, binding)| {
        let version = Version { number: *number, segment_bytes: 8192, root: None };
        let attributes = Attributes { binding: *binding, ..Attributes::default() };
        let plain = Entry::new(entry.as_bytes(), 0o100_644);
        Entry { version: Some(version), attributes, ..plain }
    });
    let old = memory.admit_manifest(name(directory).view(), entries, Lesson::Numbers);
    assert!(old.is_empty(), "{old:?}");
}

/// All that a memory knows of directories.
fn listed(memory: &VersionMemory) -> Vec<(String, u64, u64)> {
    let mut all = Vec::new();
    for (directory, entries) in memory.directories() {
        for (entry, it) in entries.iter() {
            all.push((directory.with_generic(entry).to_string(), it.version, it.binding));
        }
    }
    all
}

#[test]
fn what_manifests_announced_is_kept_apart_and_counts_in_the_next_run() {
    let home = tempfile::tempdir().unwrap();
    learn(home.path(), &[("/lab/x", 5)]);
    let (mut seen, mut memory) = loaded(home.path());
    list(&mut memory, "/lab/d", &[("...", 6, Some(3)), ("a b", 7, None)]);
    list(&mut memory, "/", &[("top", 1, None)]);
    list(&mut memory, "/lab", &[("x", 6, None)]);
    seen.save(&memory).unwrap();
    let text = std::fs::read_to_string(seen.path()).unwrap();
    let lines = "6 /lab/d/...... listed\n3 /lab/d/....../32=binding listed\n\
        7 /lab/d/a%20b listed\n1 /top listed\n6 /lab/x listed\n5 /lab/x\n";
    assert_eq!(text, lines);
    let memory = loaded(home.path()).1;
    let expected = [("/lab/d/......", 6, 3), ("/lab/d/a%20b", 7, 0), ("/top", 1, 0)];
    let expected = expected.into_iter().chain([("/lab/x", 6, 0)]);
    let expected: Vec<_> = expected.map(|(name, one, two)| (name.to_owned(), one, two)).collect();
    assert_eq!(listed(&memory), expected);
    assert_eq!(versions(home.path()), [("/lab/x".into(), 5)]);
    for (path, newest) in [("/lab/d/a%20b", 7), ("/lab/x", 6), ("/top", 1)] {
        assert!(memory.check(name(path).view(), newest - 1).is_err(), "{path}");
        assert!(memory.check(name(path).view(), newest).is_ok(), "{path}");
    }
    assert_eq!(SeenVersions::new(home.path()).forget(&name("/lab/d/a%20b")).unwrap(), 1);
    assert_eq!(SeenVersions::new(home.path()).forget(&name("/lab/d")).unwrap(), 2);
    assert_eq!(listed(&loaded(home.path()).1).len(), 2);
}

/// Programs before this one wrote a line for each name in the order of their use.
#[test]
fn lines_of_entries_may_stand_in_any_order() {
    let home = tempfile::tempdir().unwrap();
    let path = SeenVersions::new(home.path()).path();
    let text = "4 /lab/c listed\n9 /lab/d/x listed\n3 /lab/a listed\n5 /one\n\
        6 /lab/c/32=binding listed\n2 /lab/b listed\n8 /lab/c listed\n7 /lab/8=%2E listed\n\
        1 /32=ls listed\n";
    std::fs::write(path, text).unwrap();
    let memory = loaded(home.path()).1;
    let expected = [("/lab/d/x", 9, 0), ("/lab/....", 7, 0), ("/lab/a", 3, 0)];
    let expected = expected.into_iter().chain([("/lab/b", 2, 0), ("/lab/c", 8, 6)]);
    let expected: Vec<_> = expected.map(|(name, one, two)| (name.to_owned(), one, two)).collect();
    assert_eq!(listed(&memory), expected);
    assert_eq!(versions(home.path()), [("/one".into(), 5), ("/32=ls".into(), 1)]);
}

#[test]
fn runs_that_read_one_tree_lose_nothing_of_one_another() {
    let home = tempfile::tempdir().unwrap();
    let ((mut one, mut first), (mut other, mut second)) =
        (loaded(home.path()), loaded(home.path()));
    list(&mut first, "/lab", &[("a", 5, None), ("b", 5, None)]);
    list(&mut second, "/lab", &[("b", 6, None), ("c", 4, None)]);
    other.save(&second).unwrap();
    one.save(&first).unwrap();
    let expected = [("/lab/a", 5, 0), ("/lab/b", 6, 0), ("/lab/c", 4, 0)];
    let expected = expected.map(|(name, one, two)| (name.to_owned(), one, two));
    assert_eq!(listed(&loaded(home.path()).1), expected);
    // Forgotten while somebody still knows it.
    let (mut third, mut memory) = loaded(home.path());
    assert_eq!(SeenVersions::new(home.path()).forget(&name("/lab/a")).unwrap(), 1);
    list(&mut memory, "/lab", &[("a", 5, None), ("b", 6, None), ("c", 9, None)]);
    third.save(&memory).unwrap();
    let expected = [("/lab/b", 6, 0), ("/lab/c", 9, 0)];
    let expected = expected.map(|(name, one, two)| (name.to_owned(), one, two));
    assert_eq!(listed(&loaded(home.path()).1), expected);
    // Nothing new was seen of anything.
    let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(third.path()).unwrap());
    let before = inode();
    let (mut fourth, mut memory) = loaded(home.path());
    list(&mut memory, "/lab", &[("b", 6, None), ("c", 9, None)]);
    fourth.save(&memory).unwrap();
    assert_eq!(inode(), before);
}

#[test]
fn runs_that_end_at_once_lose_nothing_of_one_another() {
    let home = tempfile::tempdir().unwrap();
    learn(home.path(), &[("/both", 1)]);
    let runs: Vec<_> = (0..8).map(|_| loaded(home.path())).collect();
    let threads = runs.into_iter().enumerate().map(|(number, (mut seen, mut memory))| {
        std::thread::spawn(move || {
            memory.insert(name(&format!("/run/{number}")), 1);
            memory.insert(name("/both"), number as u64);
            seen.save(&memory).unwrap();
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    let found = versions(home.path());
    assert_eq!(found.len(), 9, "{found:?}");
    assert!(found.contains(&("/both".into(), 7)), "the newest: {found:?}");
}

#[test]
fn a_run_does_not_bring_back_what_was_forgotten_meanwhile() {
    let home = tempfile::tempdir().unwrap();
    learn(home.path(), &[("/lab/x", 5), ("/lab/y", 5), ("/labor", 5)]);
    let (mut seen, mut memory) = loaded(home.path());
    assert_eq!(SeenVersions::new(home.path()).forget(&name("/lab")).unwrap(), 2);
    assert_eq!(SeenVersions::new(home.path()).forget(&name("/lab")).unwrap(), 0);
    memory.insert(name("/lab/y"), 6);
    seen.save(&memory).unwrap();
    assert_eq!(versions(home.path()), [("/labor".into(), 5), ("/lab/y".into(), 6)]);
}

#[test]
fn a_damaged_file_is_named_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = SeenVersions::new(home.path()).path();
    for (bytes, line) in
        [(&b"1 /a\nx /b\n"[..], Some(2)), (b"1 /a heard\n", Some(1)), (b"1 /a\n2 \xff\n", None)]
    {
        std::fs::write(&path, bytes).unwrap();
        let (mut seen, mut memory) = (SeenVersions::new(home.path()), VersionMemory::default());
        let error = seen.load(&mut memory).unwrap_err();
        assert_eq!(error.errno(), Errno::UCLEAN.raw_os_error());
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        match (&error, line) {
            (SeenError::Line { line, .. }, Some(expected)) => assert_eq!(*line, expected),
            (SeenError::NotText { .. }, None) => {}
            other => panic!("{other:?}"),
        }
        memory.insert(name("/new"), 1);
        assert!(seen.save(&memory).is_err() && seen.forget(&name("/a")).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn a_state_directory_that_cannot_be_made_is_the_systems_error() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let mut memory = VersionMemory::default();
    memory.insert(name("/new"), 1);
    let error = SeenVersions::new(&file.join("state")).save(&memory).unwrap_err();
    assert_eq!(error.errno(), Errno::NOTDIR.raw_os_error());
}
