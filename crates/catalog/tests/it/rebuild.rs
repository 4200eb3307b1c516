//! Catalogs made again from the rows that others follow from.

use std::sync::Arc;

use byname_catalog::engine::{Engine, Table};
use byname_catalog::id::{ContentId, InodeId, LeaseEpoch, Version};
use byname_catalog::{
    Adoption, BaseRow, Caller, Catalog, CatalogError, Checksums, Command, EntryName, FoundContent,
    FoundFile, Place, Reader, Resolution, RowChange, Seen, SetXattr, Staging, adopt, check, export,
    rebuild,
};

use crate::same::assert_same;
use crate::support::{HOUR_NS, TestSite};
use crate::under_test::TestEngine;

fn exported(engine: &dyn Engine, limit: usize) -> Vec<BaseRow> {
    let rows = engine.snapshot().unwrap();
    let mut all: Vec<BaseRow> = Vec::new();
    loop {
        let after = all.last().map(|row| (row.table, row.key.as_slice()));
        let page = export(&*rows, after, limit).unwrap();
        let is_last = page.len() < limit;
        all.extend(page);
        if is_last {
            return all;
        }
    }
}

fn rebuilt(engine: &dyn Engine, seen: Seen) -> Arc<dyn Engine> {
    let new: Arc<dyn Engine> = Arc::new(TestEngine::default());
    rebuild(&*new, &mut exported(engine, 7).into_iter(), seen, 2_000 * HOUR_NS).unwrap();
    new
}

/// A catalog that is made of this one's rows says the same.
pub(crate) fn assert_rebuilt(engine: &dyn Engine) {
    assert_same(engine, &*rebuilt(engine, Seen::default()));
}

/// A site with one of everything.
fn site() -> (TestSite, TestEngine) {
    let (mut site, engine) = TestSite::in_memory();
    let place = |path: &str| Place::path(path).unwrap();
    let run = |site: &mut TestSite, command| site.run("op", command).map(drop).unwrap();
    run(&mut site, Command::MakeDirectory { place: place("dir"), mode: 0o777 });
    run(&mut site, Command::MakeTree { place: place("dir") });
    site.put("op", "dir/file", 5000);
    site.put("op", "replaced", 10);
    site.put("op", "replaced", 20);
    site.put("op", "removed", 30);
    run(&mut site, Command::Unlink { place: place("removed") });
    run(&mut site, Command::MakeSymlink { place: place("link"), target: b"dir/file".to_vec() });
    run(&mut site, Command::Link { existing: place("replaced"), place: place("again") });
    let xattr = SetXattr {
        place: place("replaced"),
        name: b"user.x".to_vec(),
        value: b"y".to_vec(),
        must_exist: None,
    };
    run(&mut site, Command::SetXattr(xattr));
    (site, engine)
}

#[test]
fn a_rebuilt_catalog_has_the_same_tree_and_counts_the_same() {
    let (mut site, engine) = site();
    let open = site.create("anna", "dir/open", 77).unwrap();
    assert_rebuilt(&engine);
    let new = rebuilt(&engine, Seen::default());
    let caller = Caller::User("op".into());
    let (old_reader, new_reader) =
        (Reader::new(&engine, &caller).unwrap(), Reader::new(&*new, &caller).unwrap());
    let dir = Place::path("dir").unwrap();
    let list = |reader: &Reader<'_>| reader.list(&dir, None, 100).unwrap();
    assert_eq!(list(&old_reader), list(&new_reader));
    let binding = |reader: &Reader<'_>| reader.resolve(&dir).unwrap().binding();
    assert!(binding(&old_reader) < binding(&new_reader), "readers take it for a later state");
    assert!(new_reader.attempt(open.content).is_err(), "what was open is written again");
}

/// Scenario 8, for what is made again: no number is used twice, and nothing that a disk has goes
/// because these rows do not know it.
#[test]
fn numbers_of_a_rebuilt_catalog_are_above_all_that_disks_have_seen() {
    let (mut site, engine) = site();
    let rows = exported(&engine, 1000);
    let disk = site.disks[0];
    // What happens from here on is lost.
    let lost = site.put("op", "late", 40);
    let ticket = site.create("op", "later", 40).unwrap();
    let seen = Seen { number: ticket.content.version.0, epoch: LeaseEpoch(3) };
    let new: Arc<dyn Engine> = Arc::new(TestEngine::default());
    rebuild(&*new, &mut rows.into_iter(), seen, site.now_ns).unwrap();
    let reader = Reader::new(&*new, &Caller::Head).unwrap();
    for content in [lost, ticket.content] {
        assert_eq!(reader.resolution(disk, content).unwrap(), Resolution::Unknown);
    }
    let never = ContentId { inode: InodeId(9_999), version: Version(9_999) };
    assert_eq!(reader.resolution(disk, never).unwrap(), Resolution::Unknown);
    drop(reader);
    let last = site.now_ns;
    site.take_over(new.clone());
    let mut site = site.with_new_sessions();
    assert!(site.catalog.epoch() > seen.epoch);
    site.now_ns = last + HOUR_NS;
    let written = site.put("op", "late", 50);
    assert!(written.inode > ticket.content.inode && written.version > ticket.content.version);
    assert_eq!(check(&*new.snapshot().unwrap()).unwrap(), []);
}

#[test]
fn nothing_is_rebuilt_over_a_site_or_from_rows_without_one() {
    let (_, engine) = site();
    let rows = exported(&engine, 1000);
    let mut again = rows.clone().into_iter();
    let refused = rebuild(&engine, &mut again, Seen::default(), 0);
    assert!(matches!(refused, Err(CatalogError::SiteExists)));
    let empty = TestEngine::default();
    let mut headless = rows.into_iter().filter(|row| row.table != Table::Meta);
    let refused = rebuild(&empty, &mut headless, Seen::default(), 0);
    assert!(matches!(refused, Err(CatalogError::NoSite)));
    // What was cut off on the way is no catalog.
    assert!(matches!(Catalog::lead(empty, "head", (0, 1)).map(drop), Err(CatalogError::NoSite)));
    let foreign = BaseRow { table: Table::Usage, key: b"uop".to_vec(), value: vec![1] };
    let refused = rebuild(&TestEngine::default(), &mut [foreign].into_iter(), Seen::default(), 0);
    assert!(matches!(refused, Err(CatalogError::Engine(_))));
}

/// Rows read while others change them, and then the log: the same rows.
#[test]
fn changes_of_the_log_make_good_what_was_read_too_early() {
    let (mut site, engine) = site();
    let from = Reader::new(&engine, &Caller::Head).unwrap().last_transaction().unwrap();
    let mut octets = Vec::new();
    for row in exported(&engine, 5) {
        // Each row is of another state.
        let at = row.key.len() % 3;
        site.put("op", &format!("late{at}"), 10 + octets.len() as u64 % 7);
        RowChange::from(row).encode(&mut octets);
    }
    site.run("op", Command::Unlink { place: Place::path("late0").unwrap() }).map(drop).unwrap();
    let records = Reader::new(&engine, &Caller::Head).unwrap().log_after(from, 1000).unwrap();
    RowChange::of(&records).iter().for_each(|change| change.encode(&mut octets));
    let staged = TestEngine::default();
    let mut staging = Staging::new(&staged);
    let mut rest = octets.as_slice();
    while let Some((change, behind)) = RowChange::first(rest).unwrap() {
        staging.apply(change).unwrap();
        rest = behind;
    }
    assert!(rest.is_empty());
    staging.flush().unwrap();
    assert_eq!(exported(&staged, 1000), exported(&engine, 1000));
    assert_eq!(RowChange::first(&octets[..9]).unwrap(), None, "not all there");
    let foreign = RowChange { table: Table::Usage, key: vec![1], value: Some(vec![1]) };
    let mut octets = Vec::new();
    foreign.encode(&mut octets);
    assert!(RowChange::first(&octets).is_err());
}

#[test]
fn content_that_is_newer_than_the_rows_becomes_part_of_the_site_by_its_ticket() {
    let (mut site, engine) = site();
    let dir = Reader::new(&engine, &Caller::Head).unwrap();
    let dir = dir.entry(&Place::path("dir").unwrap()).unwrap().id;
    let rows = exported(&engine, 1000);
    let known = site.put("op", "replaced", 44);
    let staged = TestEngine::default();
    let mut staging = Staging::new(&staged);
    rows.into_iter().try_for_each(|row| staging.apply(row.into())).unwrap();
    staging.flush().unwrap();
    let found = |inode: u64, file: Option<(InodeId, &str)>| FoundContent {
        content: ContentId { inode: InodeId(inode), version: Version(7_000 + inode) },
        size: 44,
        root: [4; 32],
        checksums: Checksums { adler32: 1, crc32c: 2 },
        disks: vec![site.disks[0]],
        written_ns: 5_000 * HOUR_NS,
        file: file.map(|(directory, name)| FoundFile {
            directory,
            name: EntryName::new(name).unwrap(),
            owner: "anna".to_owned(),
            group: "staff".to_owned(),
            mode: 0o640,
        }),
    };
    let fresh = InodeId(20_000);
    let of_rewrite = FoundContent { content: known, ..found(1, None) };
    let adopt = |found: &FoundContent| adopt(&staged, found, fresh).unwrap();
    assert_eq!(adopt(&of_rewrite), Adoption::Rewritten);
    assert_eq!(adopt(&of_rewrite), Adoption::Left, "it is there");
    assert_eq!(adopt(&found(9_001, Some((dir, "new")))), Adoption::Placed);
    assert_eq!(adopt(&found(9_002, Some((dir, "new")))), Adoption::Misplaced, "the name is taken");
    assert_eq!(adopt(&found(9_003, Some((InodeId(9_999), "x")))), Adoption::Misplaced);
    assert_eq!(adopt(&found(9_004, None)), Adoption::Left, "nothing says what file it is");
    let new: Arc<dyn Engine> = Arc::new(TestEngine::default());
    rebuild(&*new, &mut exported(&staged, 1000).into_iter(), Seen::default(), HOUR_NS).unwrap();
    assert_eq!(check(&*new.snapshot().unwrap()).unwrap(), []);
    let reader = Reader::new(&*new, &Caller::Head).unwrap();
    let inode = |path: &str| reader.entry(&Place::path(path).unwrap()).unwrap().inode;
    assert_eq!(inode("replaced").content().unwrap().version, known.version);
    assert_eq!(inode("again").content().unwrap().version, known.version, "its other name");
    let placed = inode("dir/new");
    assert_eq!((placed.owner.as_str(), placed.mode, placed.size()), ("anna", 0o640, 44));
    for name in ["232a-new", "232b-x"] {
        assert_eq!(inode(&format!("lost+found/{name}")).size(), 44);
    }
}
