//! What is removed goes to the trash where the tree's policy says so: it can be brought back for a
//! time, counts for quota meanwhile, and is seen by nobody else.

use std::sync::Arc;

use byname_catalog::engine::{EmbeddedEngine, Engine, Span, Table};
use byname_catalog::id::InodeId;
use byname_catalog::{
    Answer, AttributeChanges, Caller, Command, EntryName, KEPT_NS, Limits, MeasuredTrash, Place,
    Refusal, Rename, Resolution, RestoreTrash, Subject, TrashItem, TrashPolicy, Usage,
};

use crate::rebuild::assert_rebuilt;
use crate::storage::PowerDisk;
use crate::support::{HOUR_NS, TestSite, place};
use crate::under_test::TestEngine;

const POLICY: TrashPolicy = TrashPolicy { is_on: true, keep_ns: HOUR_NS, bytes_max: u64::MAX };

fn set_trash(path: &str, policy: TrashPolicy) -> Command {
    Command::SetTrash { place: place(path), policy }
}

fn remove(path: &str) -> Command {
    Command::RemoveAll { place: place(path) }
}

fn unlink(path: &str) -> Command {
    Command::Unlink { place: place(path) }
}

fn restore(item: InodeId, to: Option<&str>) -> Command {
    Command::RestoreTrash(RestoreTrash { item, to: to.map(place) })
}

fn rename(from: &str, to: &str) -> Command {
    Command::Rename(Rename { from: place(from), to: place(to), no_replace: false })
}

/// A site whose top is everybody's and whose trash keeps for an hour, with anna's tree `d`.
fn site(engine: Arc<dyn Engine>) -> TestSite {
    let mut site = TestSite::new(engine);
    let changes = AttributeChanges { mode: Some(0o777), ..AttributeChanges::default() };
    site.run("op", Command::SetAttributes { place: place("/"), changes }).unwrap();
    site.run("op", set_trash("/", POLICY)).unwrap();
    for path in ["d", "d/e", "d/e/g"] {
        site.mkdir("anna", path).unwrap();
    }
    for path in ["f", "d/f", "d/e/f", "d/e/g/h"] {
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

fn trash(site: &TestSite, user: &str) -> Vec<(InodeId, TrashItem)> {
    site.reader(user).trash(None, 100).unwrap().items
}

fn rows(site: &TestSite, table: Table) -> usize {
    site.catalog.engine().snapshot().unwrap().range(table, Span::ALL, 10_000).unwrap().len()
}

#[test]
fn what_is_removed_is_out_of_sight_counts_and_comes_back_as_it_was() {
    let mut site = in_memory();
    let (file, tree, before) = (site.entry("f").unwrap(), site.entry("d").unwrap(), usage(&site));
    site.run("anna", unlink("f")).unwrap();
    site.run("anna", remove("d")).unwrap();
    assert_eq!(usage(&site), before, "what is in the trash counts for its owner");
    for path in ["f", "d", "d/f"] {
        assert_eq!(site.entry(path), Err(Refusal::NotFound), "{path}");
    }
    assert!(site.reader("op").list(&place("/"), None, 9).unwrap().is_empty());
    let items = trash(&site, "anna");
    let shown = |item: &TrashItem| (item.place.clone(), item.removed_by.clone(), item.measure);
    assert_eq!(shown(&items[0].1), (place("d"), "anna".to_owned(), None));
    assert_eq!(shown(&items[1].1), (place("f"), "anna".to_owned(), Some((100, 1))));
    site.look_at_trash(1);
    assert_eq!(trash(&site, "anna")[0].1.measure, Some((300, 6)), "measured an entry at a time");
    assert_eq!(site.reader("op").trash_of(InodeId::ROOT).unwrap().2.bytes, 400);

    let back = site.run("anna", restore(tree.id, None)).unwrap();
    let Answer::Entry(entry) = back else { panic!("{back:?}") };
    assert_eq!((entry.id, entry.inode.link_count), (tree.id, tree.inode.link_count));
    site.run("anna", restore(file.id, Some("d/e/back"))).unwrap();
    assert_eq!(site.entry("d/e/back").unwrap().inode.detail, file.inode.detail);
    assert_eq!(site.entry("d/e/g/h").unwrap().inode.size(), 100);
    assert_eq!(usage(&site), before);
    assert_eq!(trash(&site, "op"), []);
    for table in [Table::Trash, Table::TrashOrder, Table::TrashUsage] {
        assert_eq!(rows(&site, table), 0, "{table:?}");
    }
    assert_eq!(site.run("anna", restore(tree.id, None)), Err(Refusal::NotInTrash));
}

#[test]
fn nothing_is_restored_over_what_is_there_or_where_its_user_may_not_write() {
    let mut site = in_memory();
    let (file, tree) = (site.entry("f").unwrap().id, site.entry("d").unwrap().id);
    site.run("anna", remove("d")).unwrap();
    site.run("anna", unlink("f")).unwrap();
    site.put("bert", "f", 7);
    assert_eq!(site.run("anna", restore(file, None)), Err(Refusal::Exists));
    assert_eq!(site.run("anna", restore(file, Some("d/f"))), Err(Refusal::NotFound));
    site.mkdir("bert", "his").unwrap();
    assert_eq!(site.run("anna", restore(file, Some("his/f"))), Err(Refusal::AccessDenied));
    assert_eq!(site.run("bert", restore(file, Some("g"))), Err(Refusal::NotInTrash), "anna's");
    assert_eq!(site.run("bert", Command::PurgeTrash { item: tree }), Err(Refusal::NotInTrash));
    assert_eq!(trash(&site, "bert"), []);
    assert_eq!(site.run("anna", restore(tree, Some("his/d"))), Err(Refusal::AccessDenied));
    site.run("op", restore(tree, Some("his/d"))).unwrap();
    assert_eq!(site.entry("his/d/e/f").unwrap().inode.owner, "anna");
    // Whose it was sees what others removed.
    site.put("anna", "mine", 5);
    let mine = site.entry("mine").unwrap().id;
    site.run("bert", unlink("mine")).unwrap();
    assert_eq!(trash(&site, "anna").iter().filter(|(id, _)| *id == mine).count(), 1);
    site.run("bert", restore(mine, None)).unwrap();
}

/// Nothing leads into a tree in the trash, by number either, and no file comes into it.
#[test]
fn what_is_in_the_trash_is_reached_by_no_command() {
    let mut site = in_memory();
    let file = site.entry("f").unwrap().id;
    let below = site.entry("d/e").unwrap().id;
    let open = site.create("anna", "d/e/new", 10).unwrap();
    let next = site.create("anna", "d/e/f", 70).unwrap();
    site.run("anna", remove("d")).unwrap();
    site.run("anna", unlink("f")).unwrap();
    assert_eq!(site.commit("anna", &open, 10), Err(Refusal::DirectoryGone));
    site.commit("anna", &next, 70).unwrap();
    let at = |name: &str| Place::entry(below, EntryName::new(name.as_bytes()).unwrap());
    let out = Rename { from: at("g"), to: place("out"), no_replace: false };
    for command in [
        Command::MakeDirectory { place: at("new"), mode: 0o755 },
        Command::Unlink { place: at("f") },
        Command::Rename(out),
        Command::Link { existing: Place::inode(file), place: place("again") },
    ] {
        assert_eq!(site.run("op", command.clone()), Err(Refusal::NotFound), "{command:?}");
    }
    assert!(site.reader("op").list(&Place::inode(below), None, 9).is_err());
}

#[test]
fn time_and_size_end_what_is_in_the_trash_the_oldest_first() {
    let mut site = in_memory();
    site.run("anna", unlink("f")).unwrap();
    site.pass(HOUR_NS / 2);
    site.run("anna", remove("d")).unwrap();
    site.pass(HOUR_NS / 2);
    let left: Vec<_> = trash(&site, "anna").into_iter().map(|(_, item)| item.place).collect();
    assert_eq!(left, [place("d")]);
    site.pass(HOUR_NS);
    assert_eq!((trash(&site, "op"), usage(&site)), (vec![], Usage::default()));
    site.pass(2 * KEPT_NS);
    assert_eq!((rows(&site, Table::Inode), rows(&site, Table::Replica)), (1, 0));

    site.run("op", set_trash("/", TrashPolicy { bytes_max: 250, ..POLICY })).unwrap();
    for (path, size) in [("a", 100), ("b", 100), ("c", 100), ("large", 251)] {
        site.put("anna", path, size);
        site.run("anna", unlink(path)).unwrap();
        site.now_ns += 1;
    }
    assert_eq!(trash(&site, "anna").len(), 3, "what has no room by itself does not go there");
    site.look_at_trash(256);
    let left: Vec<_> = trash(&site, "anna").into_iter().map(|(_, item)| item.place).collect();
    assert_eq!(left, [place("b"), place("c")]);
    // A tree that is too much by itself takes nothing else with it.
    site.mkdir("anna", "much").unwrap();
    for path in ["much/a", "much/b", "much/c"] {
        site.put("anna", path, 100);
    }
    site.run("anna", remove("much")).unwrap();
    site.look_at_trash(256);
    assert_eq!(trash(&site, "anna").len(), 2);
    site.collect();
    assert_eq!(usage(&site).bytes, 200);
}

#[test]
fn what_is_replaced_by_a_rename_goes_to_the_trash_and_other_names_just_go() {
    let mut site = in_memory();
    let old = site.entry("f").unwrap().id;
    site.put("anna", "new", 9);
    site.run("anna", rename("new", "f")).unwrap();
    assert_eq!(site.entry("f").unwrap().inode.size(), 9);
    site.run("anna", restore(old, Some("old"))).unwrap();
    assert_eq!(site.entry("old").unwrap().inode.size(), 100);
    let link = Command::Link { existing: place("old"), place: place("other") };
    site.run("anna", link).unwrap();
    site.run("anna", unlink("other")).unwrap();
    assert_eq!(trash(&site, "anna"), [], "the file is there still");
    assert_eq!(site.entry("old").unwrap().inode.link_count, 1);
    // What has nothing in it is gone.
    site.mkdir("anna", "empty").unwrap();
    site.run("anna", remove("empty")).unwrap();
    site.mkdir("anna", "empty").unwrap();
    site.run("anna", Command::RemoveDirectory { place: place("empty") }).unwrap();
    assert_eq!(trash(&site, "anna"), []);
}

#[test]
fn trees_have_policies_of_their_own_and_keep_their_trash() {
    let mut site = in_memory();
    assert_eq!(site.run("op", set_trash("d", POLICY)), Err(Refusal::NotTree));
    assert_eq!(site.run("anna", set_trash("/", POLICY)), Err(Refusal::NotOperator));
    let short = TrashPolicy { keep_ns: 1, ..POLICY };
    assert_eq!(site.run("op", set_trash("/", short)), Err(Refusal::BadPolicy));
    site.mkdir("anna", "t").unwrap();
    site.run("op", Command::MakeTree { place: place("t") }).unwrap();
    let tree = site.entry("t").unwrap().id;
    site.run("op", set_trash("t", TrashPolicy { is_on: false, ..POLICY })).unwrap();
    site.put("anna", "t/gone", 5);
    site.run("anna", unlink("t/gone")).unwrap();
    assert_eq!(trash(&site, "anna"), []);
    site.run("op", set_trash("t", POLICY)).unwrap();
    site.mkdir("anna", "t/sub").unwrap();
    site.put("anna", "t/sub/f", 5);
    let sub = site.entry("t/sub").unwrap().id;
    site.run("anna", remove("t/sub")).unwrap();
    let elsewhere = restore(sub, Some("sub"));
    assert_eq!(site.run("anna", elsewhere), Err(Refusal::OtherTree));
    let in_use = Err(Refusal::TrashInUse);
    assert_eq!(site.run("anna", Command::RemoveDirectory { place: place("t") }), in_use);
    assert_eq!(site.run("anna", remove("t")), in_use);
    // Full, the tree goes to its own trash, and comes back as a tree.
    site.put("anna", "t/f", 5);
    site.run("op", Command::SetLimits { subject: Subject::Tree(tree), limits: Limits::NONE })
        .unwrap();
    site.run("anna", remove("t")).unwrap();
    site.run("anna", restore(tree, Some("u"))).unwrap();
    assert_eq!(site.entry("u").unwrap().inode.tree, tree);
    site.run("anna", restore(sub, Some("u/sub"))).unwrap();
    // Without its tree, what is in the trash goes at the next look.
    site.run("anna", remove("u/sub")).unwrap();
    site.run("anna", remove("u")).unwrap();
    site.run("op", set_trash("/", TrashPolicy { is_on: false, ..POLICY })).unwrap();
    site.run("anna", Command::PurgeTrash { item: tree }).unwrap();
    site.collect();
    site.pass(2 * HOUR_NS);
    assert_eq!(trash(&site, "op"), []);
    assert_eq!(usage(&site).bytes, 400, "of what stays");
}

/// The quota of who removes is used by what he removed until that is purged.
#[test]
fn purging_frees_quota_and_lets_the_disks_go() {
    let mut site = in_memory();
    let content = site.put("anna", "big", 1000);
    let limits = Limits { inodes: u64::MAX, bytes: usage(&site).bytes, ..Limits::NONE };
    site.run("op", Command::SetLimits { subject: Subject::User("anna".into()), limits }).unwrap();
    site.run("anna", unlink("big")).unwrap();
    assert_eq!(site.create("anna", "more", 1), Err(Refusal::UserQuota));
    let disk = site.disks[0];
    let on_disk = |site: &TestSite| site.reader("op").resolution(disk, content).unwrap();
    let has_replica = on_disk(&site) == Resolution::Keep;
    site.pass(HOUR_NS / 2);
    assert_eq!(on_disk(&site) == Resolution::Keep, has_replica, "disks keep it");
    site.run("anna", Command::PurgeTrash { item: content.inode }).unwrap();
    site.put("anna", "more", 1000);
    site.pass(2 * KEPT_NS);
    assert_eq!(on_disk(&site), Resolution::Drop);
}

/// A measure of before something was restored and removed again is of no use.
#[test]
fn an_old_measure_is_refused() {
    let mut site = in_memory();
    let tree = site.entry("d").unwrap().id;
    site.run("anna", remove("d")).unwrap();
    let old: MeasuredTrash = site.measure(10).unwrap();
    site.run("anna", restore(tree, None)).unwrap();
    site.put("anna", "d/more", 1000);
    site.run("anna", remove("d")).unwrap();
    let note = |measured| Command::MeasuredTrash(measured);
    assert_eq!(site.run_as(Caller::Head, note(old)), Err(Refusal::NotInTrash));
    let measured = site.measure(10).unwrap();
    assert_eq!(measured.bytes, 1300);
    site.run_as(Caller::Head, note(measured)).unwrap();
    assert_eq!(site.run_as(Caller::Head, note(measured)), Err(Refusal::NotInTrash));
}

/// A head dies with the power after each step of restoring, measuring, purging and collecting.
#[test]
fn a_head_that_dies_between_the_steps_loses_and_doubles_nothing() {
    let mut disk = PowerDisk::default();
    let mut site = site(Arc::new(EmbeddedEngine::on(disk.clone()).unwrap()));
    let (tree, file) = (site.entry("d").unwrap().id, site.entry("f").unwrap().id);
    let before = usage(&site);
    let mut again = |site: &mut TestSite| {
        disk.cut_after(0);
        disk = disk.restart(0);
        site.take_over(Arc::new(EmbeddedEngine::on(disk.clone()).unwrap()));
        site.assert_consistent();
        assert_rebuilt(site.catalog.engine());
    };
    for command in [
        remove("d"),
        unlink("f"),
        restore(tree, Some("back")),
        restore(file, Some("back/e/f2")),
        remove("back"),
    ] {
        site.run("anna", command).unwrap();
        again(&mut site);
        assert_eq!(usage(&site), before);
    }
    let measured = site.measure(1).unwrap();
    site.run_as(Caller::Head, Command::MeasuredTrash(measured)).unwrap();
    again(&mut site);
    assert_eq!(trash(&site, "anna")[0].1.measure, Some((400, 7)));
    site.now_ns += HOUR_NS;
    for limit in [1, 1] {
        site.run_as(Caller::Head, Command::ExpireTrash { limit }).unwrap();
        again(&mut site);
    }
    while site.run_as(Caller::Head, Command::Collect { limit: 1 }) != Ok(Answer::Count(0)) {
        again(&mut site);
    }
    assert_eq!(usage(&site), Usage::default());
}
