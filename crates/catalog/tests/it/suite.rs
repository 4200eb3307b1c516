//! What every engine does: each function wants a new one. Engines of other crates are put through
//! the same.

use byname_catalog::engine::{Engine, Span, Table, Writes};

pub(crate) fn puts(rows: &[(Table, &[u8], &[u8])]) -> Writes {
    let mut writes = Writes::default();
    rows.iter().for_each(|(table, key, value)| writes.put(*table, key.to_vec(), value.to_vec()));
    writes
}

pub(crate) fn writes_are_there_after_commit_and_not_before(engine: &dyn Engine) {
    let before = engine.snapshot().unwrap();
    let transaction = engine.begin().unwrap();
    assert_eq!(transaction.get(Table::Inode, b"a").unwrap(), None);
    drop(transaction);
    assert_eq!(engine.snapshot().unwrap().get(Table::Inode, b"a").unwrap(), None);
    let writes = puts(&[(Table::Inode, b"a", b"1"), (Table::Dentry, b"a", b"2")]);
    engine.begin().unwrap().commit(&writes).unwrap();
    assert_eq!(before.get(Table::Inode, b"a").unwrap(), None, "a snapshot stays as it was");
    let after = engine.snapshot().unwrap();
    assert_eq!(after.get(Table::Inode, b"a").unwrap().as_deref(), Some(b"1".as_slice()));
    assert_eq!(after.get(Table::Dentry, b"a").unwrap().as_deref(), Some(b"2".as_slice()));
    let mut writes = Writes::default();
    writes.delete(Table::Inode, b"a".to_vec());
    writes.delete(Table::Inode, b"never there".to_vec());
    engine.begin().unwrap().commit(&writes).unwrap();
    assert_eq!(engine.snapshot().unwrap().get(Table::Inode, b"a").unwrap(), None);
}

pub(crate) fn ranges_stay_in_their_table_and_span(engine: &dyn Engine) {
    let rows: Vec<(Table, Vec<u8>, Vec<u8>)> = Table::ALL
        .into_iter()
        .flat_map(|table| (0..=4_u8).map(move |key| (table, vec![key * 60], vec![key])))
        .collect();
    let mut writes = Writes::default();
    rows.into_iter().for_each(|(table, key, value)| writes.put(table, key, value));
    engine.begin().unwrap().commit(&writes).unwrap();
    let snapshot = engine.snapshot().unwrap();
    let keys = |table, from: &[u8], until: Option<&[u8]>, limit| -> Vec<u8> {
        let rows = snapshot.range(table, Span { from, until }, limit).unwrap();
        rows.into_iter().map(|(key, _)| key[0]).collect()
    };
    for table in Table::ALL {
        assert_eq!(keys(table, &[], None, 9), [0, 60, 120, 180, 240]);
        assert_eq!(keys(table, &[60], Some(&[180]), 9), [60, 120]);
        assert_eq!(keys(table, &[61], None, 2), [120, 180]);
        assert_eq!(keys(table, &[180], Some(&[60]), 9), [0_u8; 0]);
        assert_eq!(keys(table, &[], None, 0), [0_u8; 0]);
    }
}
