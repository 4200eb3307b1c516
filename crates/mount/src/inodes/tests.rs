//! Numbers by name and version, references, collisions.

use super::*;
use crate::attributes::{Kind, Publisher};
use byname_client::TrustLevel;
use byname_transfer::attributes::Checksums;

fn attributes(kind: Kind, version: Option<u64>) -> Arc<Attributes> {
    let publisher = Arc::new(Publisher { key: None, trust: TrustLevel::Insecure });
    Arc::new(Attributes {
        kind,
        permissions: 0o644,
        size: 1,
        mtime_ns: 0,
        version,
        root: None,
        owner: None,
        group: None,
        link_target: None,
        checksums: Checksums::default(),
        media_type: None,
        publisher,
    })
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn inodes() -> Inodes {
    Inodes::new(name("/lab"), attributes(Kind::Directory, Some(1)), 0)
}

fn refer(inodes: &mut Inodes, text: &str, kind: Kind, version: u64) -> u64 {
    inodes.refer(&name(text), ROOT, &attributes(kind, Some(version)), 0).unwrap()
}

#[test]
fn a_file_is_a_version_and_a_directory_is_a_name() {
    let mut table = inodes();
    let first = refer(&mut table, "/lab/a", Kind::File, 1);
    assert_ne!(first, refer(&mut table, "/lab/a", Kind::File, 2));
    assert_eq!(first, refer(&mut table, "/lab/a", Kind::File, 1));
    let directory = refer(&mut table, "/lab/d", Kind::Directory, 1);
    assert_eq!(directory, refer(&mut table, "/lab/d", Kind::Directory, 2));
}

#[test]
fn numbers_are_the_same_after_a_restart() {
    let number = refer(&mut inodes(), "/lab/a", Kind::File, 7);
    assert_eq!(number, refer(&mut inodes(), "/lab/a", Kind::File, 7));
    assert_eq!(number, 0x6576_2be9_4bf7_f767, "numbers change with this release");
    assert_eq!(number, inodes().number_of(&name("/lab/a"), Some(&attributes(Kind::File, Some(7)))));
    assert_eq!(inodes().number_of(&name("/lab"), None), ROOT);
}

#[test]
fn an_inode_is_there_as_long_as_the_kernel_holds_it() {
    let mut table = inodes();
    let number = refer(&mut table, "/lab/a", Kind::File, 1);
    refer(&mut table, "/lab/a", Kind::File, 1);
    table.forget(number, 1);
    assert!(table.get(number).is_some());
    table.forget(number, 1);
    assert!(table.get(number).is_none());
    table.forget(ROOT, u64::MAX);
    assert_eq!(table.count(), 1, "the root stays");
    table.forget(12345, 1);
}

/// Everything collides at first, and the second attempt gives the next number.
fn colliding(_: &Name, _: Option<u64>, attempt: u8) -> u64 {
    100 + u64::from(attempt)
}

#[test]
fn names_that_collide_get_different_numbers_and_keep_them() {
    let mut table = Inodes { hash: colliding, ..inodes() };
    let first = refer(&mut table, "/lab/a", Kind::File, 1);
    let second = refer(&mut table, "/lab/b", Kind::File, 1);
    assert_ne!(first, second);
    table.forget(first, 1);
    assert_eq!(refer(&mut table, "/lab/b", Kind::File, 1), second, "it keeps its number");
    assert_eq!(table.number_of(&name("/lab/b"), Some(&attributes(Kind::File, Some(1)))), second);
    assert_eq!(refer(&mut table, "/lab/a", Kind::File, 1), first);
    table.forget(second, 2);
    assert_eq!(table.displaced.len(), 0, "nothing is left of what was forgotten");
    for index in 0..255 {
        refer(&mut table, &format!("/lab/c{index}"), Kind::File, 1);
    }
    let attributes = attributes(Kind::File, Some(1));
    assert_eq!(table.refer(&name("/lab/one-more"), ROOT, &attributes, 0), None);
}

#[test]
fn an_older_description_does_not_replace_a_newer_one() {
    let mut table = inodes();
    let older = attributes(Kind::Directory, Some(1));
    let newer = Arc::new(Attributes { permissions: 0o700, ..(*older).clone() });
    let number = table.refer(&name("/lab/d"), ROOT, &newer, 10).unwrap();
    table.refer(&name("/lab/d"), ROOT, &older, 5).unwrap();
    table.renew(number, older, 9);
    let inode = table.get(number).unwrap();
    assert_eq!((inode.seen_ns, inode.attributes.permissions), (10, 0o700));
}

#[test]
fn a_root_that_is_known_stays_with_its_version() {
    let mut table = inodes();
    let pending = attributes(Kind::File, Some(1));
    let known = Arc::new(Attributes { root: Some([7; 32]), ..(*pending).clone() });
    let number = table.refer(&name("/lab/f"), ROOT, &pending, 1).unwrap();
    table.renew(number, known, 2);
    let moved = Arc::new(Attributes { permissions: 0o600, ..(*pending).clone() });
    table.refer(&name("/lab/f"), ROOT, &moved, 3).unwrap();
    let inode = table.get(number).unwrap();
    assert_eq!((inode.attributes.root, inode.attributes.permissions), (Some([7; 32]), 0o600));
}

#[test]
fn a_link_is_its_target() {
    let to = |target: &str, version| {
        let link = attributes(Kind::Link, version);
        let link_target = Some(Box::from(target.as_bytes()));
        inodes().number_of(&name("/lab/l"), Some(&Attributes { link_target, ..(*link).clone() }))
    };
    assert_eq!(to("a", None), to("a", Some(3)));
    assert_ne!(to("a", None), to("b", None));
}

#[test]
fn of_too_many_other_ones_are_named_each_time_and_no_directories() {
    let mut table = inodes();
    for index in 0..10 {
        refer(&mut table, &format!("/lab/f{index}"), Kind::File, 1);
        refer(&mut table, &format!("/lab/d{index}"), Kind::Directory, 1);
    }
    assert_eq!(table.surplus(21, 100), []);
    let mut named = Vec::new();
    while named.len() < 10 {
        let surplus = table.surplus(20, 6);
        assert!(surplus.len() <= 6 && surplus.iter().all(|(directory, _)| *directory == ROOT));
        named.extend(surplus.into_iter().map(|(_, name)| name));
    }
    named.sort();
    let files: Vec<Vec<u8>> = (0..10).map(|index| format!("f{index}").into_bytes()).collect();
    assert_eq!(named, files);
}
