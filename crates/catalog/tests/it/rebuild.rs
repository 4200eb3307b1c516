//! Catalogs made again from the rows that others follow from.

use std::collections::BTreeMap;
use std::sync::Arc;

use byname_catalog::engine::{Engine, MemoryEngine, Span, Table};
use byname_catalog::id::{ContentId, InodeId, LeaseEpoch, Version};
use byname_catalog::{
    BaseRow, Caller, Catalog, CatalogError, Command, Place, Reader, Resolution, Seen, SetXattr,
    check, export, rebuild,
};

use crate::support::{HOUR_NS, TestSite};

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
    let new: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
    rebuild(&*new, &mut exported(engine, 7).into_iter(), seen, 2_000 * HOUR_NS).unwrap();
    new
}

fn table(engine: &dyn Engine, table: Table) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let rows = engine.snapshot().unwrap();
    rows.range(table, Span::ALL, usize::MAX).unwrap().into_iter().collect()
}

/// A catalog that is made of this one's rows has the same names, attributes, contents, limits,
/// disks and keys, and contradicts itself nowhere.
pub(crate) fn assert_rebuilt(engine: &dyn Engine) {
    let new = rebuilt(engine, Seen::default());
    for kept in [
        Table::Inode,
        Table::Dentry,
        Table::Xattr,
        Table::Kept,
        Table::Limit,
        Table::Disk,
        Table::Key,
        Table::Drop,
        Table::Replica,
    ] {
        assert_eq!(table(engine, kept), table(&*new, kept), "{kept:?}");
    }
    assert_eq!(check(&*new.snapshot().unwrap()).unwrap(), []);
}

/// A site with one of everything.
fn site() -> (TestSite, MemoryEngine) {
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
    for path in ["", "dir"] {
        let place = Place::path(path).unwrap();
        let list = |reader: &Reader<'_>| reader.list(&place, None, 100).unwrap();
        assert_eq!(list(&old_reader), list(&new_reader));
    }
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
    let new: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
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
    let empty = MemoryEngine::default();
    let mut headless = rows.into_iter().filter(|row| row.table != Table::Meta);
    let refused = rebuild(&empty, &mut headless, Seen::default(), 0);
    assert!(matches!(refused, Err(CatalogError::NoSite)));
    // What was cut off on the way is no catalog.
    assert!(matches!(Catalog::lead(empty, "head", (0, 1)).map(drop), Err(CatalogError::NoSite)));
    let foreign = BaseRow { table: Table::Usage, key: b"uop".to_vec(), value: vec![1] };
    let refused = rebuild(&MemoryEngine::default(), &mut [foreign].into_iter(), Seen::default(), 0);
    assert!(matches!(refused, Err(CatalogError::Engine(_))));
}
