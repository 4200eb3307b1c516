//! The state machine on the engines of this crate, which fail as they can: a commit in memory is
//! lost or unanswered, the power of a file's disk is cut.

use std::sync::Arc;

use byname_catalog::engine::{CommitFault, EmbeddedEngine, Engine, MemoryEngine};
use proptest::prelude::*;

use crate::machine::{Fate, Fragile, batches, run};
use crate::rebuild::assert_rebuilt;
use crate::storage::PowerDisk;

impl Fragile for MemoryEngine {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(self.clone())
    }

    fn prepare(&self, fate: Fate) {
        match fate {
            Fate::Dies(fault) => self.fail_next_commit(fault),
            Fate::LosesPower(_, bits) if bits & 1 == 0 => self.fail_next_commit(CommitFault::Lost),
            Fate::LosesPower(..) => self.fail_next_commit(CommitFault::Unanswered),
            Fate::Lives | Fate::Pauses(_) | Fate::Collects(_) => {}
        }
    }

    fn restart(&mut self, _: Fate) {}
}

struct Embedded {
    disk: PowerDisk,
    engine: Arc<dyn Engine>,
}

impl Embedded {
    fn new(disk: PowerDisk) -> Self {
        Self { engine: Arc::new(EmbeddedEngine::on(disk.clone()).unwrap()), disk }
    }
}

impl Fragile for Embedded {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.engine)
    }

    fn prepare(&self, fate: Fate) {
        match fate {
            Fate::LosesPower(after, _) => self.disk.cut_after(after),
            Fate::Dies(_) => self.disk.cut_after(0),
            Fate::Lives | Fate::Pauses(_) | Fate::Collects(_) => {}
        }
    }

    fn restart(&mut self, fate: Fate) {
        let survives = if let Fate::LosesPower(_, survives) = fate { survives } else { 0 };
        *self = Self::new(self.disk.restart(survives));
    }
}

proptest! {
    #![proptest_config(crate::support::cases(96))]

    #[test]
    fn the_engine_in_memory_does_what_the_model_does(batches in batches()) {
        let engine = run(MemoryEngine::default(), &batches)?;
        assert_rebuilt(&*engine.engine());
    }

    #[test]
    fn the_embedded_engine_does_what_the_model_does_whenever_power_fails(batches in batches()) {
        let engine = run(Embedded::new(PowerDisk::default()), &batches)?;
        assert_rebuilt(&*engine.engine());
    }
}
