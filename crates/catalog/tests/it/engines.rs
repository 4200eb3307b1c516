//! One suite for every engine.

use std::sync::Arc;

use byname_catalog::engine::{
    EmbeddedEngine, Engine, EngineError, MemoryEngine, Span, Table, Writes,
};
use proptest::prelude::*;

use crate::storage::PowerDisk;

fn over_engines(test: impl Fn(Arc<dyn Engine>)) {
    test(Arc::new(MemoryEngine::default()));
    test(Arc::new(EmbeddedEngine::on(PowerDisk::default()).unwrap()));
}

fn puts(rows: &[(Table, &[u8], &[u8])]) -> Writes {
    let mut writes = Writes::default();
    rows.iter().for_each(|(table, key, value)| writes.put(*table, key.to_vec(), value.to_vec()));
    writes
}

#[test]
fn writes_are_there_after_commit_and_not_before() {
    over_engines(|engine| {
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
    });
}

#[test]
fn ranges_stay_in_their_table_and_span() {
    over_engines(|engine| {
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
    });
}

#[test]
fn overlapping_transactions_in_memory_conflict() {
    let engine = MemoryEngine::default();
    let (first, second) = (engine.begin().unwrap(), engine.begin().unwrap());
    first.commit(&puts(&[(Table::Inode, b"a", b"1")])).unwrap();
    let refused = second.commit(&puts(&[(Table::Inode, b"a", b"2")]));
    assert!(matches!(refused, Err(EngineError::Conflict)), "{refused:?}");
    let value = engine.snapshot().unwrap().get(Table::Inode, b"a").unwrap();
    assert_eq!(value.as_deref(), Some(b"1".as_slice()));
}

proptest! {
    #![proptest_config(crate::support::cases(96))]

    /// Power is cut at any write or sync; of what was not synced anything may survive. All that
    /// was committed is there, and of the transaction in flight all or nothing.
    #[test]
    fn a_torn_file_keeps_every_committed_transaction(
        cut_after in 0_u64..60,
        survives in any::<u64>(),
        sizes in proptest::collection::vec(1_usize..3000, 1..8),
    ) {
        let disk = PowerDisk::default();
        let engine = EmbeddedEngine::on(disk.clone()).unwrap();
        disk.cut_after(cut_after);
        let mut committed = 0;
        for (number, size) in sizes.iter().enumerate() {
            let value = vec![number as u8; *size];
            let rows = [(Table::Inode, b"a".as_slice(), value.as_slice()),
                (Table::Log, &[number as u8], &value)];
            let Ok(transaction) = engine.begin() else { break };
            if transaction.commit(&puts(&rows)).is_err() {
                break;
            }
            committed = number + 1;
        }
        drop(engine);
        let engine = EmbeddedEngine::on(disk.restart(survives)).unwrap();
        let snapshot = engine.snapshot().unwrap();
        let logged = snapshot.range(Table::Log, Span::ALL, 100).unwrap();
        prop_assert!(logged.len() == committed || logged.len() == committed + 1);
        let last = logged.last().map(|(_, value)| value.clone());
        prop_assert_eq!(snapshot.get(Table::Inode, b"a").unwrap(), last);
    }
}
