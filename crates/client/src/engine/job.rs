//! Jobs: anything that sends requests and takes answers, and where such things come from.

use byname_packet::{Data, NameRef};
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::request::{Context, Request};

/// One task; see [`byname_transfer::request`] for the order of calls.
pub(crate) trait Job {
    /// True if the packet was meant for this job.
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool;
    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>);
    fn handle_timeout(&mut self, context: &mut Context<'_>);
    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request>;
    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64>;
    fn is_done(&self) -> bool;
    /// Pieces that came and were not genuine.
    fn refused_count(&mut self) -> u64 {
        0
    }
    /// Gives back to the flow what is under way; the job is not used afterwards.
    fn abandon(&mut self, flow: &mut Flow);
}

/// Where jobs come from and go to.
pub(crate) trait JobSource {
    type Job: Job;
    /// The next job to start, if there is one now.
    fn next_job(&mut self, now_ns: u64) -> Option<Self::Job>;
    /// A job is done.
    fn take_done(&mut self, job: Self::Job);
}

impl<S: JobSource + ?Sized> JobSource for &mut S {
    type Job = S::Job;

    fn next_job(&mut self, now_ns: u64) -> Option<S::Job> {
        (**self).next_job(now_ns)
    }

    fn take_done(&mut self, job: S::Job) {
        (**self).take_done(job);
    }
}

/// A single job as a source.
pub(crate) struct Single<J> {
    waiting: Option<J>,
    done: Option<J>,
}

impl<J: Job> Single<J> {
    pub(crate) fn new(job: J) -> Self {
        Single { waiting: Some(job), done: None }
    }

    pub(crate) fn into_done(self) -> Option<J> {
        self.done
    }
}

impl<J: Job> JobSource for Single<J> {
    type Job = J;

    fn next_job(&mut self, _now_ns: u64) -> Option<J> {
        self.waiting.take()
    }

    fn take_done(&mut self, job: J) {
        self.done = Some(job);
    }
}
