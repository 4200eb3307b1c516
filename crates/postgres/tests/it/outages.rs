//! The server is killed and started again; a commit whose answer was lost is not made twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use byname_catalog::engine::{Engine, EngineError, Span, Table};
use byname_postgres::PostgresEngine;

use crate::cluster::Cluster;
use crate::suite::puts;

/// Numbers are committed one after the other while the server is killed, again and again: each
/// that was said to be there is there, in its order, once, and the engine goes on by itself.
#[test]
fn a_killed_server_keeps_every_committed_transaction() {
    let cluster = Cluster::start();
    let database = cluster.database();
    let engine = Arc::new(PostgresEngine::open(&database).unwrap());
    let is_over = Arc::new(AtomicBool::new(false));
    let (said, commits) = mpsc::sync_channel(0);
    let writer = std::thread::spawn({
        let (engine, is_over) = (engine.clone(), is_over.clone());
        move || {
            let mut number = 0_u32;
            while !is_over.load(Ordering::Relaxed) {
                match count_up(&engine, number) {
                    Ok(()) => number += 1,
                    Err(EngineError::Conflict) => panic!("nobody else commits"),
                    // The server was away for longer than a commit waits: whether this one
                    // happened a new transaction tells.
                    Err(_) => number += u32::from(is_counted(&engine, number)),
                }
                let _ = said.try_send(number);
            }
            number
        }
    });
    for _ in 0..4 {
        // Something was committed since the last time.
        for _ in 0..20 {
            commits.recv().unwrap();
        }
        cluster.kill();
        cluster.start_again();
    }
    is_over.store(true, Ordering::Relaxed);
    drop(commits);
    let committed = writer.join().unwrap();
    let found = PostgresEngine::open(&database).unwrap();
    let rows = found.snapshot().unwrap().range(Table::Log, Span::ALL, usize::MAX).unwrap();
    let keys: Vec<u32> = rows
        .iter()
        .map(|(key, _)| u32::from_be_bytes(key.as_slice().try_into().unwrap()))
        .collect();
    assert_eq!(keys, (0..committed).collect::<Vec<u32>>());
    let generation = cluster.psql(&database, "SELECT generation FROM byname_stand");
    assert_eq!(generation, committed.to_string(), "each commit happened once");
}

/// Reads the number before and adds the next.
fn count_up(engine: &PostgresEngine, number: u32) -> Result<(), EngineError> {
    let transaction = engine.begin()?;
    let key = number.to_be_bytes();
    assert_eq!(transaction.get(Table::Log, &key)?, None);
    if let Some(before) = number.checked_sub(1) {
        assert!(transaction.get(Table::Log, &before.to_be_bytes())?.is_some());
    }
    transaction.commit(&puts(&[(Table::Log, &key, b"")]))
}

/// True if a number has been committed.
fn is_counted(engine: &PostgresEngine, number: u32) -> bool {
    let found = || engine.begin()?.get(Table::Log, &number.to_be_bytes());
    loop {
        if let Ok(row) = found() {
            return row.is_some();
        }
    }
}

/// A database that was put back to an earlier state is not mixed with what was known of the later.
#[test]
fn a_database_that_was_put_back_is_read_anew() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let engine = PostgresEngine::open(&database).unwrap();
    let commit = |value: &[u8]| engine.begin()?.commit(&puts(&[(Table::Log, b"n", value)]));
    let value = || engine.snapshot().unwrap().get(Table::Log, b"n").unwrap().unwrap();
    commit(b"1").unwrap();
    let copy = "CREATE TABLE kept_row AS SELECT * FROM byname_row;
        CREATE TABLE kept_stand AS SELECT * FROM byname_stand";
    cluster.psql(&database, copy);
    commit(b"2").unwrap();
    let (before, late) = (engine.snapshot().unwrap(), engine.begin().unwrap());
    let restore = "BEGIN; TRUNCATE byname_row, byname_stand, byname_change;
        INSERT INTO byname_row SELECT * FROM kept_row;
        INSERT INTO byname_stand SELECT true, generation, id FROM kept_stand; COMMIT";
    cluster.psql(&database, restore);
    let refused = late.commit(&puts(&[(Table::Log, b"n", b"3")]));
    assert!(matches!(refused, Err(EngineError::Conflict)), "{refused:?}");
    assert_eq!(value(), b"1");
    let moved = before.get(Table::Log, b"n");
    assert!(matches!(moved, Err(EngineError::Conflict)), "{moved:?}");
    commit(b"3").unwrap();
    assert_eq!(value(), b"3");
}
