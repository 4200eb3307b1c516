//! Versions seen, kept between runs and shared by programs that run at once.

use byname_packet::Name;
use byname_profile::{SeenError, SeenVersions};
use byname_transfer::versions::VersionMemory;
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
    let singly = memory.iter().filter(|it| !it.is_listed);
    singly.map(|it| (it.name.to_string(), it.version)).collect()
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

#[test]
fn what_manifests_announced_is_kept_apart_and_counts_in_the_next_run() {
    let home = tempfile::tempdir().unwrap();
    learn(home.path(), &[("/lab/x", 5)]);
    let (mut seen, mut memory) = loaded(home.path());
    memory.insert_listed(name("/lab/d/a%20b"), 7);
    memory.insert_listed(name("/lab/x"), 6);
    seen.save(&memory).unwrap();
    let memory = loaded(home.path()).1;
    let listed: Vec<_> = memory.iter().filter(|it| it.is_listed).collect();
    let listed: Vec<_> = listed.iter().map(|it| (it.name.to_string(), it.version)).collect();
    assert_eq!(listed, [("/lab/d/a%20b".into(), 7)]);
    assert_eq!(versions(home.path()), [("/lab/x".into(), 6)]);
    assert!(memory.check(name("/lab/d/a%20b").view(), 6).is_err());
    assert_eq!(SeenVersions::new(home.path()).forget(&name("/lab/d")).unwrap(), 1);
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
