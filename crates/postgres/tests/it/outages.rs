//! The server is killed and started again; a commit whose answer was lost is not made twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use byname_catalog::engine::{Engine, EngineError, Span, Table};
use byname_postgres::PostgresEngine;

use crate::cluster::Cluster;
use crate::suite::puts;

/// Commits numbers one after the other while something happens, and checks that each that was said
/// to be there is there, in its order, once.
fn count_during(
    (database, found_in): (&str, impl Fn() -> String),
    generation: impl Fn(&str) -> String,
    disturb: impl FnOnce(&dyn Fn()),
) {
    let engine = Arc::new(PostgresEngine::open(database).unwrap());
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
    disturb(&|| (0..20).for_each(|_| assert!(commits.recv().is_ok())));
    is_over.store(true, Ordering::Relaxed);
    drop(commits);
    let committed = writer.join().unwrap();
    assert_eq!(engine.setbacks(), 0, "nothing was lost");
    let database = found_in();
    let found = PostgresEngine::open(&database).unwrap();
    let rows = found.snapshot().unwrap().range(Table::Log, Span::ALL, usize::MAX).unwrap();
    let keys: Vec<u32> = rows
        .iter()
        .map(|(key, _)| u32::from_be_bytes(key.as_slice().try_into().unwrap()))
        .collect();
    assert_eq!(keys, (0..committed).collect::<Vec<u32>>());
    assert_eq!(generation(&database), committed.to_string(), "each commit happened once");
}

/// Longer than an engine that was not answered goes on with what it knows.
const AILING_PAUSE: Duration = Duration::from_millis(1100);
const GENERATION: &str = "SELECT generation FROM byname_stand";

/// The server is killed and started again, and the engine goes on by itself.
#[test]
fn a_killed_server_keeps_every_committed_transaction() {
    let cluster = Cluster::start();
    let database = cluster.database();
    let generation = |database: &str| cluster.psql(database, GENERATION);
    count_during((&database, || database.clone()), generation, |await_commits| {
        for _ in 0..4 {
            // Something was committed since the last time.
            await_commits();
            cluster.kill();
            cluster.start_again();
        }
    });
}

/// Connections to a server that was killed are forgotten together: an engine that had several is
/// as fresh as one that had none, and does not read for seconds what it knew before.
#[test]
fn a_server_that_is_started_again_is_heard_at_the_second_try() {
    let cluster = Cluster::start();
    let database = cluster.database();
    let [reads, commits] = [(); 2].map(|()| PostgresEngine::open(&database).unwrap());
    // Each thread asks for a row that is not known yet, as long as it takes for all connections.
    let count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'
        AND datname = current_database() AND pid <> pg_backend_pid()";
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..4_u64 {
            let (reads, is_over) = (&reads, &is_over);
            scope.spawn(move || {
                for key in (number..).step_by(4).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                    let rows = reads.snapshot().unwrap();
                    assert!(rows.get(Table::Log, &key.to_be_bytes()).unwrap().is_none());
                }
            });
        }
        while cluster.psql(&database, count) != "5" {
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let read = || reads.snapshot().unwrap().get(Table::Log, b"n").unwrap();
    assert!(read().is_none(), "what is known is not asked for");
    cluster.kill();
    cluster.start_again();
    commits.begin().unwrap().commit(&puts(&[(Table::Log, b"n", b"1")])).unwrap();
    let tries = std::iter::from_fn(|| read().is_none().then(|| std::thread::sleep(AILING_PAUSE)));
    assert!(tries.count() <= 1, "each connection was found out by itself");
}

/// Both servers of a pair in one address, and each alone.
fn pair(one: &Cluster, other: &Cluster, database: &str) -> (String, [String; 2]) {
    let [one, other] = [one, other].map(|it| it.path().display().to_string());
    let of = |host: &str| database.replace(&format!("host={one} "), &format!("host={host} "));
    (of(&format!("{one},{other}")), [of(&one), of(&other)])
}

/// Scenario 14: the server is killed under load, and the standby that commits wait for is promoted
/// in its place; the engine goes on there by itself. The one that was killed follows, and so on.
#[test]
fn a_promoted_standby_has_every_committed_transaction() {
    let primary = Cluster::start();
    let database = primary.database();
    let standby = Cluster::standby_of(&primary);
    let servers = [primary, standby];
    let (both, each) = pair(&servers[0], &servers[1], &database);
    servers[0].wait_for_standby();
    let generation = |database: &str| servers[1].psql(database, GENERATION);
    count_during((&both, || each[1].clone()), generation, |await_commits| {
        for round in 0..3 {
            let (old, new) = (&servers[round % 2], &servers[1 - round % 2]);
            await_commits();
            old.kill();
            new.promote();
            await_commits();
            old.follow(new);
            new.wait_for_standby();
        }
    });
}

/// A standby that nobody waited for lacks the last transactions. Each process that goes on there
/// learns that something may be lost, also one that did not see what is, and commits nothing
/// before it knows.
#[test]
fn a_standby_that_lacks_the_last_transactions_is_noticed() {
    let primary = Cluster::start();
    let database = primary.database();
    let standby = Cluster::standby_of(&primary);
    let (both, _) = pair(&primary, &standby, &database);
    let [one, other] = [(); 2].map(|()| PostgresEngine::open(&both).unwrap());
    let commit = |engine: &PostgresEngine, value: &[u8]| {
        engine.begin()?.commit(&puts(&[(Table::Log, b"n", value)]))
    };
    commit(&one, b"1").unwrap();
    let (_, [_, at_standby]) = pair(&primary, &standby, &database);
    // The table itself comes a moment later there, too.
    for (statement, answer) in [
        ("SELECT to_regclass('byname_row') IS NOT NULL", "t"),
        ("SELECT count(*) FROM byname_row", "1"),
    ] {
        while standby.psql(&at_standby, statement) != answer {
            std::thread::yield_now();
        }
    }
    // This one has seen what the standby has, and no more.
    let base = other.begin().unwrap();
    standby.stop();
    commit(&one, b"2").unwrap();
    primary.kill();
    standby.start_again();
    standby.promote();
    let blind = base.commit(&puts(&[(Table::Log, b"n", b"3")]));
    assert!(matches!(blind, Err(EngineError::Conflict)), "{blind:?}");
    assert_eq!(other.setbacks(), 1);
    let blind = commit(&one, b"3");
    assert!(matches!(blind, Err(EngineError::Conflict)) && one.setbacks() == 1, "{blind:?}");
    let fresh = PostgresEngine::open(&both).unwrap();
    assert_eq!(fresh.setbacks(), 1, "one that begins now learns it as well");
    let value = fresh.snapshot().unwrap().get(Table::Log, b"n").unwrap();
    assert_eq!(value.as_deref(), Some(b"1".as_slice()));
    commit(&other, b"4").unwrap();
    assert_eq!(PostgresEngine::open(&both).unwrap().setbacks(), 0, "whoever knew has gone on");
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
        INSERT INTO byname_stand SELECT * FROM kept_stand; COMMIT";
    cluster.psql(&database, restore);
    assert_eq!(engine.setbacks(), 0);
    let refused = late.commit(&puts(&[(Table::Log, b"n", b"3")]));
    assert!(matches!(refused, Err(EngineError::Conflict)), "{refused:?}");
    assert_eq!(engine.setbacks(), 1, "it is told to whoever leads");
    assert_eq!(value(), b"1");
    let moved = before.get(Table::Log, b"n");
    assert!(matches!(moved, Err(EngineError::Conflict)), "{moved:?}");
    commit(b"3").unwrap();
    assert_eq!(value(), b"3");
}
