//! The suite of all engines, and several that share a database.

use std::sync::Arc;

use byname_catalog::engine::{Engine, EngineError, Span, Table};
use byname_postgres::{PostgresEngine, PostgresError};

use crate::cluster::Cluster;
use crate::suite::{self, puts};
use crate::under_test::TestEngine;

#[test]
fn postgresql_passes_the_suite_of_all_engines() {
    let cluster = Cluster::shared();
    let engine = || PostgresEngine::open(&cluster.database()).unwrap();
    suite::writes_are_there_after_commit_and_not_before(&engine());
    suite::ranges_stay_in_their_table_and_span(&engine());
}

#[test]
fn each_damage_of_rows_is_found_and_mended() {
    crate::mending::each_damage_is_found_and_mended(&|| Arc::new(TestEngine::default()));
}

#[test]
fn of_two_transactions_on_one_state_one_commits() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let [one, other] = [(); 2].map(|()| PostgresEngine::open(&database).unwrap());
    let (first, second) = (one.begin().unwrap(), other.begin().unwrap());
    first.commit(&puts(&[(Table::Inode, b"a", b"1")])).unwrap();
    let refused = second.commit(&puts(&[(Table::Inode, b"a", b"2"), (Table::Log, b"b", b"")]));
    assert!(matches!(refused, Err(EngineError::Conflict)), "{refused:?}");
    // Whoever was refused knows the new state and goes on from there.
    let again = other.begin().unwrap();
    assert_eq!(again.get(Table::Inode, b"a").unwrap().as_deref(), Some(b"1".as_slice()));
    assert_eq!(again.get(Table::Log, b"b").unwrap(), None, "nothing of the other was applied");
    again.commit(&puts(&[(Table::Inode, b"a", b"3")])).unwrap();
    assert_eq!(rows(&other), rows(&PostgresEngine::open(&database).unwrap()));
}

/// A head that does not lead any more, and does not know it yet, refuses nothing by its old rows.
#[test]
fn what_was_read_before_another_committed_is_not_confirmed() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let [one, other] = [(); 2].map(|()| PostgresEngine::open(&database).unwrap());
    let before = other.begin().unwrap();
    assert_eq!(before.get(Table::Slot, b"a").unwrap(), None);
    before.confirm().unwrap();
    let before = other.begin().unwrap();
    assert_eq!(before.get(Table::Slot, b"a").unwrap(), None);
    one.begin().unwrap().commit(&puts(&[(Table::Slot, b"a", b"1")])).unwrap();
    let refused = before.confirm();
    assert!(matches!(refused, Err(EngineError::Conflict)), "{refused:?}");
    let after = other.begin().unwrap();
    assert_eq!(after.get(Table::Slot, b"a").unwrap().as_deref(), Some(b"1".as_slice()));
    after.confirm().unwrap();
}

/// A reader of a state sees that state or is told that it has moved on, and never a mixture.
#[test]
fn a_snapshot_stays_as_it_was_while_others_commit() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let [one, other] = [(); 2].map(|()| PostgresEngine::open(&database).unwrap());
    let both = [(Table::Inode, b"a".as_slice(), b"1".as_slice()), (Table::Inode, b"b", b"1")];
    one.begin().unwrap().commit(&puts(&both)).unwrap();
    let other = {
        drop(other);
        PostgresEngine::open(&database).unwrap()
    };
    let snapshot = other.snapshot().unwrap();
    assert_eq!(snapshot.get(Table::Inode, b"a").unwrap().as_deref(), Some(b"1".as_slice()));
    let both = [(Table::Inode, b"a".as_slice(), b"2".as_slice()), (Table::Inode, b"b", b"2")];
    one.begin().unwrap().commit(&puts(&both)).unwrap();
    assert_eq!(snapshot.get(Table::Inode, b"a").unwrap().as_deref(), Some(b"1".as_slice()));
    // What was never read cannot be known as it was.
    let moved = snapshot.get(Table::Inode, b"b");
    assert!(matches!(moved, Err(EngineError::Conflict)), "{moved:?}");
    let rows = snapshot.range(Table::Inode, Span::ALL, 9);
    assert!(matches!(rows, Err(EngineError::Conflict)), "{rows:?}");
}

/// More transactions than one look brings, and than the server keeps the changes of.
#[test]
fn who_was_away_for_long_reads_anew() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let [one, other] = [(); 2].map(|()| PostgresEngine::open(&database).unwrap());
    let left = other.begin().unwrap();
    assert_eq!(left.get(Table::Log, b"n").unwrap(), None);
    for number in 0..1100_u32 {
        let value = number.to_be_bytes();
        one.begin().unwrap().commit(&puts(&[(Table::Log, b"n", &value)])).unwrap();
    }
    let last = 1099_u32.to_be_bytes();
    let refused = left.commit(&puts(&[(Table::Log, b"m", b"")]));
    assert!(matches!(refused, Err(EngineError::Conflict)), "{refused:?}");
    let found = other.begin().unwrap().get(Table::Log, b"n").unwrap();
    assert_eq!(found.as_deref(), Some(last.as_slice()));
    let kept = cluster.psql(&database, "SELECT count(*) <= 1025 FROM byname_change");
    assert_eq!(kept, "t", "changes are not kept for ever");
}

#[test]
fn a_database_is_used_by_one_alone_or_by_several_of_which_one_leads() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let [one, other] = [(); 2].map(|()| PostgresEngine::open(&database).unwrap());
    one.use_alone().unwrap();
    one.use_alone().unwrap();
    let refused = other.use_alone();
    assert!(matches!(refused, Err(PostgresError::InUse)), "{refused:?}");
    let refused = other.use_shared();
    assert!(matches!(refused, Err(PostgresError::InUse)), "{refused:?}");
    drop(one);
    // The server notices the end of a connection a moment after it.
    while other.use_shared().is_err() {
        std::thread::yield_now();
    }
    let third = PostgresEngine::open(&database).unwrap();
    third.use_shared().unwrap();
    assert!(other.claim().unwrap() && other.claim().unwrap());
    assert!(!third.claim().unwrap(), "whoever has the claim is connected");
    drop(other);
    while !third.claim().unwrap() {
        std::thread::yield_now();
    }
    // One that is stopped has it taken away, and cannot have it back.
    let last = PostgresEngine::open(&database).unwrap();
    assert!(!last.claim().unwrap());
    last.end_claim().unwrap();
    while !last.claim().unwrap() {
        std::thread::yield_now();
    }
    assert!(!third.claim().unwrap());
    // Who has not got it gives nothing back, least of all another's.
    third.release_claim().unwrap();
    assert!(!third.claim().unwrap() && last.claim().unwrap());
    last.release_claim().unwrap();
    while !third.claim().unwrap() {
        std::thread::yield_now();
    }
}

#[test]
fn tables_of_a_later_program_are_refused() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    drop(PostgresEngine::open(&database).unwrap());
    drop(PostgresEngine::open(&database).unwrap());
    cluster.psql(&database, "UPDATE byname_schema SET version = 1000");
    let refused = PostgresEngine::open(&database).unwrap_err().to_string();
    assert_eq!(refused, "the tables are of version 1000, this program knows 2: use a later one");
}

#[test]
fn a_text_that_leads_nowhere_is_named() {
    let malformed = PostgresEngine::open("host").unwrap_err().to_string();
    // Not the text itself, in which there may be a password.
    assert!(malformed.contains("the text does not say where a database is"), "{malformed}");
    let cluster = Cluster::shared();
    let missing = cluster.database().replace("dbname=site", "dbname=nosite");
    let missing = PostgresEngine::open(&missing).unwrap_err().to_string();
    assert!(missing.contains("does not exist"), "{missing}");
}

/// All rows of all tables.
fn rows(engine: &PostgresEngine) -> Vec<(Table, Vec<u8>, Vec<u8>)> {
    let snapshot = engine.snapshot().unwrap();
    let of = |table| {
        let rows = snapshot.range(table, Span::ALL, usize::MAX).unwrap();
        rows.into_iter().map(move |(key, value)| (table, key, value)).collect::<Vec<_>>()
    };
    Table::ALL.into_iter().flat_map(of).collect()
}
