//! The suite on the engines of this crate, and what is theirs alone.

use std::sync::Arc;

use byname_catalog::engine::{EmbeddedEngine, Engine, EngineError, MemoryEngine, Span, Table};
use proptest::prelude::*;

use crate::mending;
use crate::storage::PowerDisk;
use crate::suite::{self, puts};

fn over_engines(test: impl Fn(Arc<dyn Engine>)) {
    test(Arc::new(MemoryEngine::default()));
    test(Arc::new(EmbeddedEngine::on(PowerDisk::default()).unwrap()));
}

#[test]
fn writes_are_there_after_commit_and_not_before() {
    over_engines(|engine| suite::writes_are_there_after_commit_and_not_before(&*engine));
}

#[test]
fn ranges_stay_in_their_table_and_span() {
    over_engines(|engine| suite::ranges_stay_in_their_table_and_span(&*engine));
}

#[test]
fn each_damage_of_rows_is_found_and_mended() {
    mending::each_damage_is_found_and_mended(&|| Arc::new(MemoryEngine::default()));
}

#[test]
fn each_damage_of_rows_in_a_file_is_found_and_mended() {
    mending::each_damage_is_found_and_mended(&|| {
        Arc::new(EmbeddedEngine::on(PowerDisk::default()).unwrap())
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

/// A process that is killed leaves its file as it is. All of that is read at the next start, unless
/// nothing was committed since it came to rest.
#[test]
fn a_file_at_rest_is_not_read_whole() {
    let disk = PowerDisk::default();
    let engine = EmbeddedEngine::on(disk.clone()).unwrap();
    let commit = |value: &[u8]| {
        let transaction = engine.begin().unwrap();
        transaction.commit(&puts(&[(Table::Inode, b"a", value)])).unwrap();
    };
    let killed = || EmbeddedEngine::on(disk.restart(0)).unwrap();
    commit(b"1");
    assert!(!killed().was_at_rest());
    for _ in 0..2 {
        engine.rest().unwrap();
        let again = killed();
        assert!(again.was_at_rest());
        let value = again.snapshot().unwrap().get(Table::Inode, b"a").unwrap();
        assert_eq!(value.as_deref(), Some(b"1".as_slice()));
    }
    commit(b"2");
    assert!(!killed().was_at_rest(), "what it says of free pages is old");
    engine.rest().unwrap();
    assert!(killed().was_at_rest());
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
