//! Tables of before: a later program makes them what it knows, and programs of their time go on
//! with the connections that they have.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use byname_catalog::engine::{Engine, EngineError, MemoryEngine, Rows, Span, Table};
use byname_postgres::PostgresEngine;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, Statement};

use crate::cluster::Cluster;
use crate::suite::puts;
use crate::support::TestSite;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tables of version 1, as the program of that time made them.
const TABLES_1: &str = "
    CREATE TABLE byname_schema (version integer NOT NULL);
    INSERT INTO byname_schema VALUES (1);
    CREATE TABLE byname_row (
        key bytea PRIMARY KEY,
        value bytea NOT NULL
    ) WITH (fillfactor = 90);
    CREATE TABLE byname_stand (
        is_stand boolean PRIMARY KEY DEFAULT true CHECK (is_stand),
        generation bigint NOT NULL,
        id bytea NOT NULL
    ) WITH (fillfactor = 50);
    INSERT INTO byname_stand (generation, id)
        VALUES (0, uuid_send(gen_random_uuid()));
    CREATE UNLOGGED TABLE byname_change (
        generation bigint PRIMARY KEY,
        id bytea NOT NULL,
        changes bytea NOT NULL
    )";

/// Its statement that says where the catalog is.
const STAND_1: &str = "
    SELECT s.generation, s.id, r.value
    FROM byname_stand s LEFT JOIN byname_row r ON r.key = $1";

/// Its statement of a whole transaction.
const COMMIT_1: &str = "
    WITH moved AS (
        UPDATE byname_stand SET generation = $1 + 1, id = $3
        WHERE generation = $1 AND id = $2 RETURNING generation
    ), gone AS (
        DELETE FROM byname_row WHERE key = ANY($4) AND EXISTS (SELECT FROM moved)
    ), put AS (
        INSERT INTO byname_row (key, value)
        SELECT * FROM unnest($5::bytea[], $6::bytea[]) WHERE EXISTS (SELECT FROM moved)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value
    ), told AS (
        INSERT INTO byname_change (generation, id, changes)
        SELECT generation, $3, $7 FROM moved
        ON CONFLICT (generation) DO UPDATE SET id = excluded.id, changes = excluded.changes
    ), forgotten AS (
        DELETE FROM byname_change WHERE generation <= $1 - $8 AND EXISTS (SELECT FROM moved)
    )
    SELECT count(*) FROM moved";

/// A connection of a program of version 1, with its statements prepared.
struct Old {
    runtime: Runtime,
    client: Client,
    stand: Statement,
    commit: Statement,
}

impl Old {
    /// Connects to tables that are there.
    fn connect(database: &str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (client, stand, commit) = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(database, NoTls).await.unwrap();
            tokio::spawn(connection);
            let stand = client.prepare(STAND_1).await.unwrap();
            let commit = client.prepare(COMMIT_1).await.unwrap();
            (client, stand, commit)
        });
        Self { runtime, client, stand, commit }
    }

    /// The stand, and the row of a key.
    fn look(&self, key: &[u8]) -> ((i64, Vec<u8>), Option<Vec<u8>>) {
        let row = self.runtime.block_on(self.client.query_one(&self.stand, &[&key])).unwrap();
        ((row.get(0), row.get(1)), row.get(2))
    }

    /// Puts a row, if the catalog is where this says; true if it was.
    fn put(&self, (generation, id): &(i64, Vec<u8>), (key, value): (&[u8], &[u8])) -> bool {
        let next = [b"old head".as_slice(), &(generation + 1).to_be_bytes()].concat();
        let length = |octets: &[u8]| (octets.len() as u32).to_be_bytes();
        let changes = [length(key).as_slice(), key, length(value).as_slice(), value].concat();
        let (gone, keys, values) = (Vec::<&[u8]>::new(), vec![key], vec![value]);
        let moved = self.runtime.block_on(self.client.query_one(
            &self.commit,
            &[generation, id, &next, &gone, &keys, &values, &changes, &1024_i64],
        ));
        moved.unwrap().get::<_, i64>(0) == 1
    }
}

/// Key of a row in the table of all.
fn key_of(table: Table, key: &[u8]) -> Vec<u8> {
    [&[table as u8], key].concat()
}

fn version(cluster: &Cluster, database: &str) -> String {
    cluster.psql(database, "SELECT version FROM byname_schema")
}

fn all(rows: &dyn Rows) -> Vec<(Table, Vec<u8>, Vec<u8>)> {
    let of = |table| {
        let rows = rows.range(table, Span::ALL, usize::MAX).unwrap();
        rows.into_iter().map(move |(key, value)| (table, key, value)).collect::<Vec<_>>()
    };
    Table::ALL.into_iter().flat_map(of).collect()
}

#[test]
fn a_catalog_in_tables_of_version_1_is_served_by_this_program() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, TABLES_1);
    // A site, written there by the old program.
    let memory = MemoryEngine::default();
    let mut site = TestSite::new(Arc::new(memory.clone()));
    site.mkdir("op", "d").unwrap();
    let content = site.put("op", "d/f", 1000);
    let before = all(&*memory.snapshot().unwrap());
    let old = Old::connect(&database);
    for (table, key, value) in &before {
        let (stand, _) = old.look(b"");
        assert!(old.put(&stand, (&key_of(*table, key), value)));
    }
    drop(old);

    let engine = PostgresEngine::open(&database).unwrap();
    assert_eq!(version(&cluster, &database), "2");
    assert!(all(&*engine.snapshot().unwrap()) == before, "rows are what they were");
    site.take_over(Arc::new(engine));
    assert_eq!(site.entry("d/f").unwrap().inode.size(), 1000);
    let later = site.put("op", "d/f", 2000);
    assert!(later.version > content.version);
    site.assert_consistent();
    assert_eq!(site.catalog.engine().setbacks(), 0, "nothing was lost by it");
    // Whoever comes later finds it done.
    let again = PostgresEngine::open(&database).unwrap();
    assert!(all(&*again.snapshot().unwrap()) == all(&*site.catalog.engine().snapshot().unwrap()));
    assert_eq!((version(&cluster, &database), again.setbacks()), ("2".into(), 0));
}

/// As while heads are restarted one after the other for a new version.
#[test]
fn a_program_of_version_1_goes_on_with_its_connection_while_tables_are_migrated_and_after() {
    const COMMITS: u64 = 300;
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, TABLES_1);
    let old = Old::connect(&database);
    let key = key_of(Table::Log, b"old");
    let done = AtomicU64::new(0);
    let (old, engine) = std::thread::scope(|scope| {
        let commits = scope.spawn(|| {
            for number in 0..COMMITS {
                let (stand, _) = old.look(&key);
                assert!(old.put(&stand, (&key, &number.to_be_bytes())), "nobody else commits");
                done.store(number + 1, Ordering::Relaxed);
            }
            old
        });
        while done.load(Ordering::Relaxed) < COMMITS / 10 {
            assert!(!commits.is_finished());
            std::thread::yield_now();
        }
        let engine = PostgresEngine::open(&database).unwrap();
        (commits.join().unwrap(), engine)
    });
    assert_eq!(version(&cluster, &database), "2");
    let last = (COMMITS - 1).to_be_bytes();
    // What another process has committed is seen after 50 ms, or at the next commit.
    let sees = |key: &[u8], wanted: &[u8]| {
        let began = Instant::now();
        while engine.begin().unwrap().get(Table::Log, key).unwrap().as_deref() != Some(wanted) {
            assert!(began.elapsed() < PATIENCE, "{wanted:?} is not seen");
            std::thread::yield_now();
        }
    };
    sees(b"old", &last);
    // Either sees what the other has committed, and commits nothing by what it knew before that.
    let (before, _) = old.look(&key);
    let transaction = engine.begin().unwrap();
    assert_eq!(transaction.get(Table::Log, b"new").unwrap(), None);
    assert!(old.put(&before, (&key, b"again")));
    let refused = transaction.commit(&puts(&[(Table::Log, b"new", b"1")]));
    assert!(matches!(refused, Err(EngineError::Conflict)), "{refused:?}");
    sees(b"old", b"again");
    engine.begin().unwrap().commit(&puts(&[(Table::Log, b"new", b"1")])).unwrap();
    let (stand, _) = old.look(&key);
    assert!(!old.put(&(stand.0 - 1, before.1), (&key, b"late")), "another has committed");
    assert_eq!(old.look(&key_of(Table::Log, b"new")).1.as_deref(), Some(b"1".as_slice()));
    assert!(old.put(&stand, (&key, b"last")));
    sees(b"old", b"last");
    assert_eq!(engine.setbacks(), 0);
}
