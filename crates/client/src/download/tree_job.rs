//! Jobs of a tree that is being downloaded.

use std::path::PathBuf;

use byname_packet::{Data, NameRef};
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::request::{Context, Request};

use crate::download::file_job::FileJob;
use crate::download::late::LateCopies;
use crate::download::local_dir::LocalDir;
use crate::download::small_files::SmallFiles;
use crate::engine::job::Job;
use crate::lookup::list_job::ListJob;

/// Where the entries of a listing go.
pub(crate) enum Place {
    /// The directory that the user named. It is made once there is a listing to put into it.
    Root(PathBuf),
    Below(LocalDir),
}

/// One of the things that a tree needs.
pub(crate) enum TreeJob<'a> {
    List { job: Box<ListJob>, place: Place, relative: PathBuf },
    File { job: Box<FileJob<'a>>, shown: PathBuf },
    Small(Box<SmallFiles<'a>>),
    Late(Box<LateCopies>),
}

impl TreeJob<'_> {
    fn inner(&mut self) -> &mut dyn Job {
        match self {
            TreeJob::List { job, .. } => &mut **job,
            TreeJob::File { job, .. } => &mut **job,
            TreeJob::Small(job) => &mut **job,
            TreeJob::Late(job) => &mut **job,
        }
    }
}

impl Job for TreeJob<'_> {
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool {
        self.inner().handle_data(data, is_marked, context)
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        self.inner().handle_nack(name, kind, context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.inner().handle_timeout(context);
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        self.inner().poll_request(context)
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        self.inner().poll_deadline(flow)
    }

    fn is_done(&self) -> bool {
        match self {
            TreeJob::List { job, .. } => job.is_done(),
            TreeJob::File { job, .. } => job.is_done(),
            TreeJob::Small(job) => job.is_done(),
            TreeJob::Late(job) => job.is_done(),
        }
    }

    fn refused_count(&mut self) -> u64 {
        self.inner().refused_count()
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.inner().abandon(flow);
    }
}
