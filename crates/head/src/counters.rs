//! What a head counts, for other threads than those that count: its queue, and while it leads, what
//! it is asked for and how its disks are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::activity::Activity;
use crate::commands::{CommandCounters, CommandLevels};
use crate::observations::{Observations, QueueReport};

/// Counters of a running head, for other threads. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct HeadCounters {
    queue: QueueReport,
    leads: Arc<AtomicBool>,
    /// Of the term, while there is one.
    term: Arc<Mutex<Option<Observations>>>,
}

impl HeadCounters {
    /// The counters of commands.
    pub fn get(&self) -> CommandCounters {
        self.queue.get().0
    }

    /// What is in the queue.
    pub fn levels(&self) -> CommandLevels {
        self.queue.get().1
    }

    /// True if this head leads, as far as it knows.
    pub fn leads(&self) -> bool {
        self.leads.load(Ordering::Relaxed)
    }

    /// What it is asked for and how its disks are, since it leads; none if it does not.
    pub fn activity(&self) -> Option<Activity> {
        let term = self.term.lock().unwrap_or_else(PoisonError::into_inner).clone();
        term.map(|observations| Activity::of(&observations))
    }

    pub(crate) fn queue(&self) -> QueueReport {
        self.queue.clone()
    }

    pub(crate) fn set_leads(&self, leads: bool) {
        self.leads.store(leads, Ordering::Relaxed);
    }

    /// A term begins, or ends.
    pub(crate) fn set_term(&self, observations: Option<Observations>) {
        *self.term.lock().unwrap_or_else(PoisonError::into_inner) = observations;
    }
}
