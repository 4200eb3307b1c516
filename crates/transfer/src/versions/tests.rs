//! The rule, the bounds, and what a later run is told.

use super::*;
use crate::attributes::Attributes;
use crate::manifest::{Content, Version};
use crate::naming::ContentName;

fn name(number: u64) -> Name {
    Name::new().with_generic(&number.to_be_bytes())
}

#[test]
fn an_older_version_is_refused_until_the_name_is_reset() {
    let mut memory = VersionMemory::default();
    memory.insert(name(1), 7);
    memory.insert(name(1), 5);
    assert_eq!(memory.check(name(1).view(), 6), Err(Older { seen: 7, got: 6 }));
    assert_eq!(memory.check(name(1).view(), 7), Ok(()));
    assert_eq!(memory.check(name(2).view(), 1), Ok(()));
    assert!(memory.reset(&name(1)));
    assert_eq!(memory.check(name(1).view(), 1), Ok(()));
}

fn judge(
    memory: &mut VersionMemory,
    (object, version): (u64, u64),
    binding: Option<u64>,
) -> Result<(), Older> {
    let (path, object) = (name(1), name(object));
    let (path, object) = (path.view(), object.view());
    let announced = Announced { path, object, version, binding };
    memory.admit(&announced, Lesson::Numbers)
}

#[test]
fn a_path_may_lead_to_another_content_but_not_back() {
    let mut memory = VersionMemory::default();
    // Content 10 in version 7, then another one that is younger and has a lower version.
    assert_eq!(judge(&mut memory, (10, 7), Some(100)), Ok(()));
    assert_eq!(judge(&mut memory, (11, 2), Some(101)), Ok(()));
    let back = Older { seen: 101, got: 100 };
    assert_eq!(judge(&mut memory, (10, 7), Some(100)), Err(back), "by the binding");
    let old = Older { seen: 2, got: 1 };
    assert_eq!(judge(&mut memory, (11, 1), Some(102)), Err(old), "by the version");
    assert_eq!(judge(&mut memory, (10, 8), Some(103)), Ok(()), "moved back later");
}

#[test]
fn a_bound_path_is_not_taken_without_its_binding_until_it_is_reset() {
    let mut memory = VersionMemory::default();
    assert_eq!(judge(&mut memory, (1, 1 << 60), None), Ok(()), "before the site");
    assert_eq!(judge(&mut memory, (10, 1), Some(5)), Ok(()));
    let bare = judge(&mut memory, (1, 1 << 61), None);
    assert_eq!(bare, Err(Older { seen: 5, got: 0 }));
    assert!(memory.reset(&name(1)));
    assert_eq!(judge(&mut memory, (1, 1 << 61), None), Ok(()));
}

#[test]
fn bindings_are_kept_across_runs_with_the_versions() {
    let mut memory = VersionMemory::default();
    assert_eq!(judge(&mut memory, (10, 1), Some(5)), Ok(()));
    let mut next = VersionMemory::default();
    memory.iter().for_each(|it| next.restore(it.name.clone(), it.version));
    assert!(!next.has_learned_since(0));
    assert_eq!(judge(&mut next, (11, 1), Some(4)), Err(Older { seen: 5, got: 4 }));
}

#[test]
fn the_memory_is_bounded_and_keeps_what_was_used_last() {
    let mut memory = VersionMemory::default();
    let count = KIND_MAX as u64 + 10;
    (0..count).for_each(|number| memory.insert(name(number), 1));
    assert!(memory.name_count() <= KIND_MAX);
    assert_eq!(memory.check(name(count - 1).view(), 0), Err(Older { seen: 1, got: 0 }));
    assert_eq!(memory.check(name(0).view(), 0), Ok(()));
}

fn entry(name: &[u8], number: u64) -> Entry<'_> {
    let version = Version { number, segment_bytes: 8192, root: None };
    Entry { version: Some(version), ..Entry::new(name, 0o100_644) }
}

/// What is older of a manifest of directory 1.
fn manifest(memory: &mut VersionMemory, entries: &[Entry<'_>]) -> Vec<(Vec<u8>, Older)> {
    let directory = name(1);
    let entries = entries.iter().copied();
    let old = memory.admit_manifest(directory.view(), entries, Lesson::Numbers);
    old.into_iter().map(|(entry, older)| (entry.into_vec(), older)).collect()
}

#[test]
fn what_a_manifest_announced_counts_for_single_files_and_the_other_way_round() {
    let mut memory = VersionMemory::default();
    let path = name(1).with_generic(b"f");
    let (path, object) = (path.view(), path.view());
    let of = |version| Announced { path, object, version, binding: None };
    let listed = |memory: &mut VersionMemory, number| manifest(memory, &[entry(b"f", number)]);
    assert_eq!(listed(&mut memory, 2), []);
    let old = Older { seen: 2, got: 1 };
    assert_eq!(memory.admit(&of(1), Lesson::Numbers), Err(old), "a replayed description");
    assert_eq!(memory.check(path, 1), Err(old));
    assert_eq!(memory.admit(&of(3), Lesson::Numbers), Ok(()));
    let old = Older { seen: 3, got: 2 };
    assert_eq!(listed(&mut memory, 2), [(b"f".to_vec(), old)], "a replayed manifest");
    assert_eq!(memory.admit(&of(9), Lesson::Nothing), Ok(()), "nobody vouches for it");
    assert_eq!(listed(&mut memory, 3), []);
    assert!(memory.reset(&path.to_name()));
    assert_eq!(listed(&mut memory, 1), []);
}

#[test]
fn entries_count_by_their_bindings_too() {
    let mut memory = VersionMemory::default();
    let with = |binding| {
        let plain = entry(b"f", 7);
        Entry { attributes: Attributes { binding, ..Attributes::default() }, ..plain }
    };
    let old = |seen, got| vec![(b"f".to_vec(), Older { seen, got })];
    assert_eq!(manifest(&mut memory, &[with(Some(5))]), []);
    assert_eq!(manifest(&mut memory, &[with(Some(4))]), old(5, 4));
    assert_eq!(manifest(&mut memory, &[with(None)]), old(5, 0));
    let nothing = manifest(&mut memory, &[Entry::new(b"f", 0o100_644)]);
    assert_eq!(nothing, [], "it announces no version");
    // Of the path itself, and in the other direction.
    let path = name(1).with_generic(b"f");
    let of = |binding| Announced { path: path.view(), object: path.view(), version: 7, binding };
    let older = Older { seen: 5, got: 4 };
    assert_eq!(memory.admit(&of(Some(4)), Lesson::Numbers), Err(older));
    assert_eq!(memory.admit(&of(Some(6)), Lesson::Numbers), Ok(()));
    assert_eq!(manifest(&mut memory, &[with(Some(5))]), old(6, 5));
}

#[test]
fn an_entry_opened_from_a_manifest_is_judged_as_if_asked_for_singly() {
    let mut memory = VersionMemory::default();
    let directory = name(1);
    let mut admit = |entry: &Entry<'_>| memory.admit_entry(directory.view(), entry, LEARN);
    assert_eq!(admit(&entry(b"f", 2)), Ok(()));
    assert_eq!(admit(&entry(b"f", 1)), Err(Older { seen: 2, got: 1 }));
    assert_eq!(admit(&Entry::new(b"f", 0o100_644)), Ok(()), "it announces nothing");
    let prefix = name(9);
    let object = ContentName { prefix: prefix.view(), id: 4 }.to_name();
    let name = ContentName::parse(object.view()).expect("one");
    let of = |number| Entry {
        content: entry(b"g", number).version.map(|version| Content { name, version }),
        ..Entry::new(b"g", 0o100_644)
    };
    assert_eq!(admit(&of(5)), Ok(()));
    assert_eq!(admit(&of(4)), Err(Older { seen: 5, got: 4 }));
}

#[test]
fn only_what_is_new_counts_as_learned() {
    let mut memory = VersionMemory::default();
    assert!(!memory.has_learned_since(0));
    memory.insert(name(1), 7);
    assert!(memory.has_learned_since(0));
    for version in [7, 6] {
        let tick = memory.tick();
        memory.insert(name(1), version);
        assert!(!memory.has_learned_since(tick) && memory.tick() > tick, "{version}");
    }
    let tick = memory.tick();
    memory.restore(name(2), 1);
    memory.restore(name(3), 1);
    assert!(!memory.has_learned_since(tick) && memory.tick() == tick + 2);
    let tick = memory.tick();
    let of = EntryVersions { version: 1, ..EntryVersions::default() };
    memory.insert_directory(&name(4), [("f", of)].into_iter().collect());
    assert!(memory.has_learned_since(tick) && memory.tick() == tick + 1);
}

#[test]
fn a_binding_that_was_kept_counts_alone() {
    let mut memory = VersionMemory::default();
    memory.restore(name(1).with_keyword(BINDING_KEYWORD), 5);
    assert_eq!(judge(&mut memory, (10, 1), Some(4)), Err(Older { seen: 5, got: 4 }));
}

#[test]
fn a_full_memory_forgets_half_at_a_time() {
    let mut memory = VersionMemory::default();
    (0..KIND_MAX as u64).for_each(|number| memory.insert(name(number), 1));
    assert_eq!(memory.name_count(), KIND_MAX, "full, and nothing is forgotten yet");
    memory.insert(name(KIND_MAX as u64), 1);
    assert_eq!(memory.name_count(), KIND_MAX / 2 + 1);
}

#[test]
fn the_oldest_description_taken_is_told_once() {
    let mut memory = VersionMemory::default();
    assert_eq!(memory.take_age_ns(), None);
    for age_ns in [3, 9, 4] {
        memory.note_age(age_ns);
    }
    assert_eq!(memory.take_age_ns(), Some(9));
    assert_eq!(memory.take_age_ns(), None);
}

/// A content elsewhere is judged by its own descriptions, and taught by them alone.
#[test]
fn a_manifest_teaches_no_version_of_contents_elsewhere() {
    let (plain, prefix) = (entry(b"f", 7), name(9));
    let attributes = Attributes { binding: Some(1), ..Attributes::default() };
    let object = ContentName { prefix: prefix.view(), id: 4 }.to_name();
    let mut memory = VersionMemory::default();
    let version = plain.version.expect("it has one");
    let content = Content { name: ContentName::parse(object.view()).expect("one"), version };
    let bound = Entry { version: None, content: Some(content), attributes, ..plain };
    assert_eq!(manifest(&mut memory, &[bound]), []);
    assert_eq!(memory.check(object.view(), 1), Ok(()));
    memory.insert(object.clone(), 8);
    assert_eq!(manifest(&mut memory, &[bound]), [(b"f".to_vec(), Older { seen: 8, got: 7 })]);
}

#[test]
fn a_large_tree_drives_out_no_name_that_was_asked_for_singly() {
    let mut memory = VersionMemory::default();
    memory.insert(name(0), 5);
    let names: Vec<_> = (0..KIND_MAX as u64 + 10).map(u64::to_be_bytes).collect();
    let entries: Vec<_> = names.iter().map(|octets| entry(octets, 5)).collect();
    assert_eq!(manifest(&mut memory, &entries), []);
    assert_eq!(memory.name_count(), KIND_MAX + 1);
    let old = Err(Older { seen: 5, got: 4 });
    assert_eq!(memory.check(name(0).view(), 4), old);
    let below = |index: usize| name(1).with_generic(&names[index]);
    assert_eq!(memory.check(below(KIND_MAX + 9).view(), 4), old);
    assert_eq!(memory.check(below(9).view(), 4), Ok(()), "more than are remembered");
    // Seen once more, it teaches nothing.
    let tick = memory.tick();
    assert_eq!(manifest(&mut memory, &entries), []);
    assert!(!memory.has_learned_since(tick));
}

#[test]
fn of_many_directories_those_that_were_unused_longest_are_forgotten() {
    let mut memory = VersionMemory::default();
    let names: Vec<_> = (0..KIND_MAX as u64 / 4).map(u64::to_be_bytes).collect();
    let entries: Vec<_> = names.iter().map(|octets| entry(octets, 5)).collect();
    let list = |memory: &mut VersionMemory, number| {
        let old = memory.admit_manifest(name(number).view(), entries.iter().copied(), LEARN);
        assert!(old.is_empty());
    };
    (1..=4).for_each(|number| list(&mut memory, number));
    assert_eq!(memory.name_count(), KIND_MAX);
    list(&mut memory, 1);
    list(&mut memory, 5);
    let is_known = |number| memory.check(name(number).with_generic(&names[7]).view(), 4).is_err();
    let known: Vec<u64> = (1..=5).filter(|number| is_known(*number)).collect();
    assert_eq!(known, [1, 5]);
    assert_eq!(memory.name_count(), KIND_MAX / 2);
}

const LEARN: Lesson = Lesson::Numbers;

#[test]
fn a_later_run_knows_what_manifests_announced() {
    let mut memory = VersionMemory::default();
    assert_eq!(manifest(&mut memory, &[entry(b"a", 3), entry(b"b", 4)]), []);
    let mut next = VersionMemory::default();
    for (directory, entries) in memory.directories() {
        next.restore_directory(directory, (**entries).clone());
    }
    assert!(!next.has_learned_since(0));
    let tick = next.tick();
    assert_eq!(manifest(&mut next, &[entry(b"a", 3), entry(b"b", 4)]), []);
    assert!(!next.has_learned_since(tick), "nothing is new");
    let old = Older { seen: 4, got: 3 };
    assert_eq!(manifest(&mut next, &[entry(b"a", 9), entry(b"b", 3)]), [(b"b".to_vec(), old)]);
    let (_, entries) = next.directories().next().expect("one");
    let learned: Vec<_> = entries.iter().map(|(_, it)| (it.version, it.learned > tick)).collect();
    assert_eq!(learned, [(9, true), (4, false)]);
}

#[test]
fn what_another_run_has_seen_is_added_and_lowers_nothing() {
    let mut memory = VersionMemory::default();
    assert_eq!(manifest(&mut memory, &[entry(b"b", 5), entry(b"d", 5)]), []);
    let of = |version| EntryVersions { version, ..EntryVersions::default() };
    let others = [("d", 4), ("a", 1), ("b", 6), ("c", 2), ("b", 3)];
    let others = others.into_iter().map(|(name, version)| (name, of(version)));
    memory.insert_directory(&name(1), others.collect());
    let (_, entries) = memory.directories().next().expect("one");
    let known: Vec<_> = entries.iter().map(|(name, it)| (name.to_vec(), it.version)).collect();
    let expected = [("a", 1), ("b", 6), ("c", 2), ("d", 5)];
    assert_eq!(known, expected.map(|(name, version)| (name.as_bytes().to_vec(), version)));
    assert_eq!(memory.name_count(), 4);
}

proptest::proptest! {
    /// A record beside an ordinary map.
    #[test]
    fn a_record_is_a_map(
        steps in proptest::collection::vec((0..4u8, "[a-c]{1,3}", 1..9u64), 1..60),
    ) {
        let (mut record, mut map) = (DirectoryVersions::default(), BTreeMap::new());
        for (kind, name, version) in steps {
            let versions = EntryVersions { version, ..EntryVersions::default() };
            let name = name.into_bytes();
            match kind {
                0 => proptest::prop_assert_eq!(record.remove(&name), map.remove(&name).is_some()),
                1 => record.insert(&name, versions),
                _ => record.merge(std::iter::once((&name, versions)).collect()),
            }
            if kind > 0 {
                let known: &mut u64 = map.entry(name).or_default();
                *known = version.max(*known);
            }
            let all: Vec<_> = record.iter().map(|(name, it)| (name.to_vec(), it.version)).collect();
            proptest::prop_assert_eq!(all, map.clone().into_iter().collect::<Vec<_>>());
            for (name, version) in &map {
                let found = record.get(name).map(|it| it.version);
                proptest::prop_assert_eq!(found, Some(*version));
            }
            proptest::prop_assert_eq!(record.len(), map.len());
        }
        let mut at = 0;
        for name in ["a", "aa", "ab", "b", "bc", "c", "a"] {
            let found = record.seek(&mut at, name.as_bytes()).map(|it| it.version);
            proptest::prop_assert_eq!(found, map.get(name.as_bytes()).copied());
        }
    }
}

#[test]
fn numbers_are_above_others_if_one_of_them_is_higher() {
    let numbers = |version, binding| EntryVersions { version, binding, learned: 0 };
    let above = [(6, 4), (5, 5), (6, 3), (4, 5)];
    assert!(
        above.iter().all(|(version, binding)| numbers(*version, *binding).is_above(&numbers(5, 4)))
    );
    let others = [(5, 4), (4, 4), (5, 3)];
    assert!(
        !others
            .iter()
            .any(|(version, binding)| numbers(*version, *binding).is_above(&numbers(5, 4)))
    );
}

#[test]
fn of_an_entry_that_comes_twice_out_of_order_the_higher_numbers_count() {
    let numbers = |version| EntryVersions { version, ..EntryVersions::default() };
    let entries = [("b", 1), ("a", 1), ("a", 5), ("a", 3)];
    let record: DirectoryVersions =
        entries.into_iter().map(|(name, version)| (name, numbers(version))).collect();
    let found: Vec<_> = record.iter().map(|(name, versions)| (name, versions.version)).collect();
    assert_eq!(found, [(&b"a"[..], 5), (b"b", 1)]);
}

#[test]
fn only_the_path_itself_is_forgotten_and_makes_room() {
    let mut listed = ListedVersions::default();
    let numbers = EntryVersions { version: 7, ..EntryVersions::default() };
    let directory: Name = "/lab/d".parse().expect("a name");
    let entries: DirectoryVersions = ["a", "b"].map(|name| (name, numbers)).into_iter().collect();
    listed.put(directory.view(), Arc::new(entries), 1);
    assert!(!listed.remove(directory.with_keyword(b"a").view()), "another type of component");
    assert!(!listed.remove(directory.with_generic(b"c").view()));
    assert_eq!(listed.entry_count(), 2);
    assert!(listed.remove(directory.with_generic(b"a").view()));
    assert_eq!(
        (listed.entry_count(), listed.get(directory.with_generic(b"b").view())),
        (1, numbers)
    );
}
