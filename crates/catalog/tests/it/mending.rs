//! Damages of a catalog's rows, each of which is found and mended.

use byname_catalog::engine::{Engine, Row, Rows, Span, Table, Writes};
use byname_catalog::{Command, Inconsistency, TrashPolicy, check, mend};

use crate::support::{HOUR_NS, TestSite, place};

/// Something that is done to the rows behind the catalog's back. `before` are older rows.
type Damage = fn(now: &dyn Rows, before: &Snapshot, writes: &mut Writes);

/// All rows of some tables as they were.
#[derive(Default)]
pub(crate) struct Snapshot(Vec<(Table, Row)>);

impl Snapshot {
    fn of(rows: &dyn Rows) -> Self {
        let all = |table| rows.range(table, Span::ALL, usize::MAX).unwrap();
        let rows = |table| all(table).into_iter().map(move |row| (table, row));
        Self(Table::ALL.into_iter().flat_map(rows).collect())
    }

    fn get(&self, table: Table, key: &[u8]) -> Vec<u8> {
        self.0.iter().find(|(of, row)| *of == table && row.0 == key).unwrap().1.1.clone()
    }
}

fn rows_of(rows: &dyn Rows, table: Table) -> Vec<Row> {
    rows.range(table, Span::ALL, usize::MAX).unwrap()
}

fn first(rows: &dyn Rows, table: Table) -> Row {
    rows_of(rows, table).into_iter().next().unwrap()
}

/// The entry with this name, wherever it is.
fn entry(rows: &dyn Rows, name: &str) -> Row {
    let found = |row: &Row| row.0[8..] == *name.as_bytes();
    rows_of(rows, Table::Dentry).into_iter().find(found).unwrap()
}

/// Key of the inode that an entry leads to.
fn inode_of(rows: &dyn Rows, name: &str) -> Vec<u8> {
    let keys = rows_of(rows, Table::Inode).into_iter().map(|row| row.0);
    let (entry_key, value) = entry(rows, name);
    // The number is the first thing in the value, 7 bits an octet.
    let mut number = 0_u64;
    for (index, octet) in value[1..].iter().enumerate() {
        number |= u64::from(octet & 0x7F) << (7 * index);
        if octet & 0x80 == 0 {
            break;
        }
    }
    let wanted = number.to_be_bytes();
    keys.into_iter().find(|key| *key == wanted).unwrap_or_else(|| panic!("{entry_key:?}"))
}

fn with_number(key: &[u8], at: usize, number: u64) -> Vec<u8> {
    let mut key = key.to_vec();
    key[at..at + 8].copy_from_slice(&number.to_be_bytes());
    key
}

/// A number that the catalog has given out and nothing has.
const NOBODY: u64 = 2;

const DAMAGES: &[(&str, Damage)] = &[
    ("an old version is of nothing", |now, _, writes| {
        let (key, value) = first(now, Table::OldVersion);
        writes.put(Table::OldVersion, with_number(&key, 0, NOBODY), value);
    }),
    ("an old version has no content", |now, _, writes| {
        let (key, value) = first(now, Table::OldVersion);
        writes.put(Table::OldVersion, with_number(&key, 8, NOBODY), value);
    }),
    ("an old version is kept for its readers alone", |now, _, writes| {
        writes.delete(Table::OldVersion, first(now, Table::OldVersion).0);
    }),
    ("what is in the trash of a tree is miscounted", |now, _, writes| {
        let (key, value) = first(now, Table::TrashUsage);
        let last = value.len() - 1;
        writes.put(Table::TrashUsage, key, [&value[..last], &[value[last] ^ 1]].concat());
    }),
    ("nothing ends what is in the trash", |now, _, writes| {
        writes.delete(Table::TrashOrder, first(now, Table::TrashOrder).0);
    }),
    ("what is not in the trash is to end", |_, _, writes| {
        writes.put(Table::TrashOrder, [[0; 7], [1; 7], [2; 7]].concat(), vec![1]);
    }),
    ("the trash leads to nothing", |now, _, writes| {
        let (key, value) = first(now, Table::Trash);
        writes.put(Table::Trash, with_number(&key, 0, NOBODY), value);
    }),
    ("something in the trash has a name", |now, _, writes| {
        let (_, value) = first(now, Table::Trash);
        writes.put(Table::Trash, inode_of(now, "f"), value);
    }),
    ("something has neither a name nor a row in the trash", |now, _, writes| {
        rows_of(now, Table::Trash).into_iter().for_each(|row| writes.delete(Table::Trash, row.0));
    }),
    ("a usage is missing", |now, _, writes| {
        writes.delete(Table::Usage, first(now, Table::Usage).0);
    }),
    ("a usage is another", |now, _, writes| {
        let rows = rows_of(now, Table::Usage);
        let other = rows.iter().find(|row| row.1 != rows[0].1).unwrap();
        writes.put(Table::Usage, rows[0].0.clone(), other.1.clone());
    }),
    ("a usage is malformed", |now, _, writes| {
        writes.put(Table::Usage, first(now, Table::Usage).0, vec![9, 9]);
    }),
    ("the usage of a disk is missing", |now, _, writes| {
        writes.delete(Table::DiskUsage, first(now, Table::DiskUsage).0);
    }),
    ("a replica is not booked", |now, _, writes| {
        writes.delete(Table::Replica, first(now, Table::Replica).0);
    }),
    ("a replica of no file is booked", |now, _, writes| {
        let (key, value) = first(now, Table::Replica);
        writes.put(Table::Replica, with_number(&key, 8, NOBODY), value);
    }),
    ("a replica is malformed", |now, _, writes| {
        writes.put(Table::Replica, first(now, Table::Replica).0, vec![1]);
    }),
    ("a replica is to be dropped", |now, _, writes| {
        writes.put(Table::Drop, first(now, Table::Replica).0, vec![1]);
    }),
    ("nothing ends what ends by itself", |now, _, writes| {
        rows_of(now, Table::Expiry).into_iter().for_each(|row| writes.delete(Table::Expiry, row.0));
    }),
    ("a row of what is due is malformed", |_, _, writes| {
        writes.put(Table::Expiry, b"soon".to_vec(), vec![1]);
    }),
    ("sessions of a user are not counted", |_, before, writes| {
        writes.put(Table::User, b"anna".to_vec(), before.get(Table::User, b"anna"));
    }),
    ("a session is not listed", |now, _, writes| {
        writes.delete(Table::UserSession, first(now, Table::UserSession).0);
    }),
    ("a session is listed that is none", |_, _, writes| {
        writes.put(Table::UserSession, b"anna\0nothing".to_vec(), vec![1]);
    }),
    ("a lease is not listed", |now, _, writes| {
        writes.delete(Table::SessionLease, first(now, Table::SessionLease).0);
    }),
    ("a lease is listed that is none", |now, _, writes| {
        let (key, value) = first(now, Table::SessionLease);
        writes.put(Table::SessionLease, with_number(&key, 8, NOBODY), value);
    }),
    ("a lease is of a directory", |now, _, writes| {
        let value = first(now, Table::WriteLease).1;
        writes.put(Table::WriteLease, inode_of(now, "d"), value);
    }),
    ("an entry leads to nothing", |now, _, writes| {
        writes.delete(Table::Inode, inode_of(now, "link"));
    }),
    ("an entry is in no directory", |now, _, writes| {
        let (key, value) = entry(now, "f");
        writes.put(Table::Dentry, with_number(&key, 0, NOBODY), value);
    }),
    ("an entry is in a file", |now, _, writes| {
        let (key, value) = entry(now, "link");
        let file = u64::from_be_bytes(inode_of(now, "f").try_into().unwrap());
        writes.put(Table::Dentry, with_number(&key, 0, file), value);
    }),
    ("an entry has another type", |now, _, writes| {
        let (key, value) = entry(now, "link");
        let file = entry(now, "f").1;
        // The number of one, the type of the other: it stands behind the number.
        let mut wrong = value.clone();
        let at = 1 + value[1..].iter().position(|octet| octet & 0x80 == 0).unwrap() + 1;
        let from = 1 + file[1..].iter().position(|octet| octet & 0x80 == 0).unwrap() + 1;
        wrong[at] = file[from];
        writes.put(Table::Dentry, key, wrong);
    }),
    ("a file has no name", |now, _, writes| {
        writes.delete(Table::Dentry, entry(now, "f").0);
    }),
    ("a directory has two names", |now, _, writes| {
        let (key, value) = entry(now, "d");
        writes.put(Table::Dentry, [&key[..8], b"again"].concat(), value);
    }),
    ("a directory is elsewhere than it says", |now, _, writes| {
        let (key, value) = entry(now, "sub");
        writes.delete(Table::Dentry, key);
        let top = entry(now, "d").0;
        writes.put(Table::Dentry, [&top[..8], b"sub"].concat(), value);
    }),
    ("links are not counted", |now, before, writes| {
        let key = inode_of(now, "d");
        writes.put(Table::Inode, key.clone(), before.get(Table::Inode, &key));
    }),
    ("a directory that has a name is to be collected", |now, _, writes| {
        writes.put(Table::Detached, inode_of(now, "d"), vec![1]);
    }),
    ("what is to be collected is not listed", |now, _, writes| {
        writes.delete(Table::Detached, first(now, Table::Detached).0);
    }),
    ("a directory with something in it has no name", |now, _, writes| {
        writes.delete(Table::Dentry, entry(now, "d").0);
    }),
    ("counters are of earlier", |_, before, writes| {
        writes.put(Table::Meta, b"counters".to_vec(), before.get(Table::Meta, b"counters"));
    }),
];

/// A site with one of everything, and its rows of before some of it.
fn site(engine: std::sync::Arc<dyn Engine>) -> (TestSite, Snapshot) {
    let mut site = TestSite::new(engine);
    site.mkdir("op", "d").unwrap();
    site.mkdir("op", "gone").unwrap();
    let before = Snapshot::of(&*site.catalog.engine().snapshot().unwrap());
    let top = Command::SetAttributes {
        place: place(""),
        changes: byname_catalog::AttributeChanges { mode: Some(0o777), ..Default::default() },
    };
    site.run("op", top).unwrap();
    site.mkdir("op", "d/sub").unwrap();
    site.put("anna", "f", 1000);
    site.put("op", "d/g", 2000);
    site.put("op", "d/g", 3000);
    let symlink = Command::MakeSymlink { place: place("link"), target: b"f".to_vec() };
    site.run("anna", symlink).unwrap();
    site.run("anna", Command::Lease { place: place("f") }).unwrap();
    site.create("op", "open", 500).unwrap();
    site.put("op", "old", 10);
    site.run("op", Command::SetVersions { place: place("old"), wanted: 2 }).unwrap();
    site.put("op", "old", 20);
    site.put("op", "removed", 10);
    site.mkdir("op", "away").unwrap();
    site.mkdir("op", "away/more").unwrap();
    let policy = TrashPolicy { is_on: true, keep_ns: HOUR_NS, bytes_max: u64::MAX };
    site.run("op", Command::SetTrash { place: place(""), policy }).unwrap();
    site.run("op", Command::Unlink { place: place("removed") }).unwrap();
    site.run("op", Command::RemoveAll { place: place("away") }).unwrap();
    let policy = TrashPolicy { is_on: false, ..policy };
    site.run("op", Command::SetTrash { place: place(""), policy }).unwrap();
    site.mkdir("op", "gone/more").unwrap();
    site.run("op", Command::RemoveAll { place: place("gone") }).unwrap();
    (site, before)
}

fn problems(engine: &dyn Engine) -> Vec<Inconsistency> {
    check(&*engine.snapshot().unwrap()).unwrap()
}

fn mended(engine: &dyn Engine, is_dry: bool) -> Vec<Inconsistency> {
    mend(engine, 2_000 * HOUR_NS, is_dry).unwrap()
}

fn plant(engine: &dyn Engine, before: &Snapshot, damages: &[(&str, Damage)]) {
    for (_, damage) in damages {
        let mut writes = Writes::default();
        damage(&*engine.snapshot().unwrap(), before, &mut writes);
        engine.begin().unwrap().commit(&writes).unwrap();
    }
}

/// Every damage is found and mended by itself, without another change.
pub(crate) fn each_damage_is_found_and_mended(new: &dyn Fn() -> std::sync::Arc<dyn Engine>) {
    assert!(DAMAGES.len() >= 25, "{}", DAMAGES.len());
    for damage in DAMAGES {
        let (site, before) = site(new());
        let engine = site.catalog.engine();
        assert_eq!(mended(engine, false), [], "there is nothing to mend");
        plant(engine, &before, std::slice::from_ref(damage));
        let what = damage.0;
        assert_ne!(problems(engine), [], "{what}: nobody sees it");
        let found = Snapshot::of(&*engine.snapshot().unwrap()).0;
        let wanted = mended(engine, true);
        assert_ne!(wanted, [], "{what}");
        assert!(Snapshot::of(&*engine.snapshot().unwrap()).0 == found, "{what}: it was mended");
        assert_eq!(mended(engine, false), wanted, "{what}");
        assert_eq!(problems(engine), [], "{what}: after {wanted:?}");
        assert_eq!(mended(engine, false), [], "{what}: again");
    }
}
