//! The jobs of one call: begun from a source while there is room, taken out when done.

use crate::engine::job::{Job, JobSource};
use crate::engine::machine::Machine;
use crate::engine::routes::JobId;

/// A job that runs.
pub(crate) struct Active<J> {
    pub(super) id: JobId,
    pub(super) job: J,
}

/// A source of jobs and those of them that run.
pub(crate) struct Run<S: JobSource> {
    pub(crate) source: S,
    at_once: usize,
    pub(super) active: Vec<Active<S::Job>>,
}

impl<S: JobSource> Run<S> {
    /// Runs all jobs of the source, at most `at_once` at the same time.
    pub(crate) fn new(source: S, at_once: usize) -> Self {
        Run { source, at_once, active: Vec::new() }
    }

    /// Nothing runs; after [`Run::refill`] that means that everything is done.
    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// Count of jobs that run.
    pub(crate) fn len(&self) -> usize {
        self.active.len()
    }

    /// True if some job may go on without a connection.
    pub(crate) fn awaits_local(&self) -> bool {
        self.active.iter().any(|one| one.job.awaits_local())
    }

    /// Begins what there is room for.
    pub(crate) fn refill(&mut self, machine: &mut Machine, now_ns: u64) {
        while self.active.len() < self.at_once {
            let Some(job) = self.source.next_job(&mut machine.shared, now_ns) else { return };
            machine.next_id += 1;
            self.active.push(Active { id: JobId(machine.next_id), job });
        }
    }

    /// Takes out the jobs that are done. True if there were any.
    pub(crate) fn retire(&mut self, machine: &mut Machine) -> bool {
        let count_before = self.active.len();
        let mut place = 0;
        while place < self.active.len() {
            if !self.active[place].job.is_done() {
                place += 1;
                continue;
            }
            let mut one = self.active.remove(place);
            one.job.abandon(&mut machine.shared.flow);
            machine.routes.remove(one.id);
            self.source.take_done(one.job);
        }
        self.active.len() != count_before
    }

    /// Ends what still runs and gives the source back.
    pub(crate) fn end(mut self, machine: &mut Machine) -> S {
        for one in &mut self.active {
            one.job.abandon(&mut machine.shared.flow);
            machine.routes.remove(one.id);
        }
        self.source
    }
}

pub(super) fn find<J>(active: &mut [Active<J>], id: JobId) -> Option<&mut Active<J>> {
    active.iter_mut().find(|one| one.id == id)
}
