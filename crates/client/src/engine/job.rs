//! Jobs: anything that sends requests and takes answers, and where such things come from.

use byname_packet::{Data, NameRef};
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::request::{Context, Request};

use crate::engine::shared::Shared;
use crate::error::ClientError;

/// One task; see [`byname_transfer::request`] for the order of calls.
pub(crate) trait Job {
    /// True if the packet was meant for this job.
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool;
    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>);
    fn handle_timeout(&mut self, context: &mut Context<'_>);
    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request>;
    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64>;
    fn is_done(&self) -> bool;
    /// Serves what memory and disks here have, while there is no connection to send over.
    fn serve_local(&mut self, _context: &mut Context<'_>) {}
    /// True while a disk here has been asked and has not answered.
    fn awaits_local(&self) -> bool {
        false
    }
    /// Pieces that came from the source of this number and did not verify.
    fn refused_by(&mut self, _source: usize) -> u64 {
        0
    }
    /// Gives back to the flow what is in flight; the job is not used afterwards.
    fn abandon(&mut self, flow: &mut Flow);
}

/// Where jobs come from and go to.
pub(crate) trait JobSource {
    type Job: Job;
    /// The next job to start, if there is one now.
    fn next_job(&mut self, shared: &mut Shared, now_ns: u64) -> Option<Self::Job>;
    /// A job is done.
    fn take_done(&mut self, job: Self::Job);
    /// Nothing can go on: the jobs that run are dropped next.
    fn handle_failure(&mut self, _error: &ClientError) {}
}

impl<S: JobSource + ?Sized> JobSource for &mut S {
    type Job = S::Job;

    fn next_job(&mut self, shared: &mut Shared, now_ns: u64) -> Option<S::Job> {
        (**self).next_job(shared, now_ns)
    }

    fn take_done(&mut self, job: S::Job) {
        (**self).take_done(job);
    }

    fn handle_failure(&mut self, error: &ClientError) {
        (**self).handle_failure(error);
    }
}
