//! The catalog's state machine on PostgreSQL, whose connections break as heads die.

use std::sync::Arc;

use byname_catalog::engine::Engine;
use byname_postgres::PostgresEngine;
use proptest::prelude::*;

use crate::cluster::Cluster;
use crate::machine::{Fate, Fragile, batches, run};

/// A database of a server.
struct Fragments {
    cluster: Arc<Cluster>,
    database: String,
    engine: Arc<dyn Engine>,
}

impl Fragments {
    fn new(cluster: Arc<Cluster>, database: String) -> Self {
        // Little is kept in memory, so that much is read again.
        let engine = Arc::new(PostgresEngine::open_bounded(&database, 16 << 10).unwrap());
        Self { cluster, database, engine }
    }
}

impl Fragile for Fragments {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.engine)
    }

    /// Whatever the fate, the engine goes on: a connection that broke is made again, and the commit
    /// that was sent over it is sent once more.
    fn prepare(&self, fate: Fate) {
        if matches!(fate, Fate::Dies(_) | Fate::LosesPower(..)) {
            let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
            self.cluster.psql(&self.database, end);
        }
    }

    fn restart(&mut self, _: Fate) {
        *self = Self::new(self.cluster.clone(), self.database.clone());
    }
}

proptest! {
    #![proptest_config(crate::support::cases(4))]

    #[test]
    fn postgresql_does_what_the_model_does_whatever_breaks(batches in batches()) {
        let cluster = Cluster::shared();
        let database = cluster.database();
        run(Fragments::new(cluster, database), &batches)?;
    }
}
