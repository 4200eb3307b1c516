//! Jobs of the executor: one of the things that a command may need.

use std::sync::Arc;

use byname_packet::{Data, Name, NameRef};
use byname_transfer::discovery::Discovered;
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::request::{Context, Request};

use crate::config::Stop;
use crate::download::download_job::DownloadJob;
use crate::download::progress::{Event, FileReport};
use crate::download::tree_job::TreeJob;
use crate::engine::job::Job;
use crate::lookup::list_job::ListJob;
use crate::lookup::listing::Listing;
use crate::lookup::name::LookupJob;
use crate::read::open_file::FileReads;
use crate::read::stream::ReadJob;
use crate::session::answer::DiskAnswer;
use crate::session::command::{Call, ListDetail, Opened};

/// A tree that is being downloaded.
pub(crate) type TreeId = u64;

/// A job, with the call that it works for.
pub(crate) enum ExecutorJob<'a> {
    Lookup(Box<LookupJob>, Call<'a, Discovered>),
    List {
        job: Box<ListJob>,
        name: Name,
        detail: ListDetail,
        call: Call<'a, Listing>,
    },
    Open {
        job: Box<LookupJob>,
        name: Name,
        call: Call<'a, Opened>,
    },
    Stream(Box<ReadJob<'a>>, Call<'a, u64>),
    Download {
        job: Box<DownloadJob<'a>>,
        answer: Arc<DiskAnswer<FileReport>>,
        stop: Stop,
    },
    Tree {
        id: TreeId,
        stop: Stop,
        job: Box<TreeJob<'a>>,
    },
    /// Of all calls on an open file.
    File(Box<FileReads>),
}

impl ExecutorJob<'_> {
    fn inner(&self) -> &dyn Job {
        match self {
            ExecutorJob::Lookup(job, _) | ExecutorJob::Open { job, .. } => &**job,
            ExecutorJob::List { job, .. } => &**job,
            ExecutorJob::Stream(job, _) => &**job,
            ExecutorJob::Download { job, .. } => &**job,
            ExecutorJob::Tree { job, .. } => &**job,
            ExecutorJob::File(job) => &**job,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Job {
        match self {
            ExecutorJob::Lookup(job, _) | ExecutorJob::Open { job, .. } => &mut **job,
            ExecutorJob::List { job, .. } => &mut **job,
            ExecutorJob::Stream(job, _) => &mut **job,
            ExecutorJob::Download { job, .. } => &mut **job,
            ExecutorJob::Tree { job, .. } => &mut **job,
            ExecutorJob::File(job) => &mut **job,
        }
    }

    /// The job came to its own end.
    pub(crate) fn has_outcome(&self) -> bool {
        self.inner().is_done()
    }

    /// Nobody wants its outcome any more.
    fn is_ended(&self) -> bool {
        match self {
            ExecutorJob::Lookup(_, call) => call.is_ended(),
            ExecutorJob::List { call, .. } => call.is_ended(),
            ExecutorJob::Open { call, .. } => call.is_ended(),
            ExecutorJob::Stream(_, call) => call.is_ended(),
            ExecutorJob::Download { answer, stop, .. } => {
                stop.is_requested() || answer.is_cancelled()
            }
            ExecutorJob::Tree { stop, .. } => stop.is_requested(),
            // It looks after its callers itself.
            ExecutorJob::File(_) => false,
        }
    }
}

impl Job for ExecutorJob<'_> {
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool {
        let was_taken = self.inner_mut().handle_data(data, is_marked, context);
        if let ExecutorJob::List { job, call, .. } = self {
            let bytes = job.poll_fetched();
            if bytes > 0 {
                call.events.on_event(Event::Fetched { bytes });
            }
        }
        was_taken
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        self.inner_mut().handle_nack(name, kind, context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.inner_mut().handle_timeout(context);
        if let ExecutorJob::List { job, name, call, .. } = self
            && let Some(waiting) = job.poll_waiting(context.now_ns)
        {
            call.events.on_event(Event::DirectoryWaiting { name, waiting });
        }
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        self.inner_mut().poll_request(context)
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        self.inner_mut().poll_deadline(flow)
    }

    fn serve_local(&mut self, context: &mut Context<'_>) {
        self.inner_mut().serve_local(context);
    }

    fn awaits_local(&self) -> bool {
        self.inner().awaits_local()
    }

    fn is_done(&self) -> bool {
        self.has_outcome() || self.is_ended()
    }

    fn refused_by(&mut self, source: usize) -> u64 {
        self.inner_mut().refused_by(source)
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.inner_mut().abandon(flow);
    }
}
