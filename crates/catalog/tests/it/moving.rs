//! A catalog that is copied to another engine: row by row the same, whatever was there before.

use byname_catalog::engine::{CommitFault, Engine, Span, Table, Writes};
use byname_catalog::{
    CatalogError, Standing, adopt_site, copy_rows, each_row_but_site, give_up_site, initialise,
    site_of,
};

use crate::support::{SITE, TestSite, setup};
use crate::under_test::TestEngine;

fn rows(engine: &TestEngine) -> Vec<(Table, Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    let take = &mut |table, key: &[u8], value: &[u8]| {
        rows.push((table, key.to_vec(), value.to_vec()));
    };
    each_row_but_site(engine, take).unwrap();
    rows
}

#[test]
fn a_copy_has_the_same_rows_and_becomes_the_site_at_its_end() {
    let (mut site, old) = TestSite::in_memory();
    // More rows than one transaction takes.
    for number in 0..700 {
        site.put("op", &format!("f{number}"), 10);
    }
    let new = TestEngine::default();
    let before = Standing::of(&old).unwrap();
    site.put("op", "later", 10);
    assert!(!give_up_site(&old, &before).unwrap(), "a copy from then would lack a file");
    assert_eq!(site_of(&old).unwrap(), Some(SITE.to_vec()));
    let since = Standing::of(&old).unwrap();
    let mut heard = 0;
    copy_rows(&old, &new, &mut |count| heard = count).unwrap();
    assert_eq!(rows(&new), rows(&old));
    assert!(heard > 2048 && heard == rows(&old).len() as u64, "{heard}");
    assert_eq!(site_of(&new).unwrap(), None, "not before it is whole and proved");
    adopt_site(&old, &new).unwrap();
    assert!(give_up_site(&old, &since).unwrap());
    assert_eq!((site_of(&old).unwrap(), site_of(&new).unwrap()), (None, Some(SITE.to_vec())));
    let again = initialise(&old, &setup(), 1);
    assert!(
        matches!(again, Err(CatalogError::SiteExists)),
        "its rows are no new site's: {again:?}"
    );
}

#[test]
fn an_interrupted_copy_is_gone_on_with_and_leaves_nothing_of_before() {
    let (mut site, old) = TestSite::in_memory();
    site.put("op", "kept", 10);
    let new = TestEngine::default();
    // Rows of some other time: one that is gone, one that has another value.
    let mut stale = Writes::default();
    stale.put(Table::Dentry, b"gone".to_vec(), b"1".to_vec());
    let snapshot = old.snapshot().unwrap();
    let (key, _) = snapshot.range(Table::Inode, Span::ALL, 1).unwrap().remove(0);
    drop(snapshot);
    stale.put(Table::Inode, key, b"other".to_vec());
    new.begin().unwrap().commit(&stale).unwrap();
    new.fail_next_commit(CommitFault::Lost);
    copy_rows(&old, &new, &mut |_| {}).unwrap_err();
    copy_rows(&old, &new, &mut |_| {}).unwrap();
    assert_eq!(rows(&new), rows(&old));
}
