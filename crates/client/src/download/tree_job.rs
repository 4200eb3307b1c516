//! Jobs of a tree that is being downloaded.

use std::path::PathBuf;

use byname_packet::{Data, NameRef};
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::request::{Context, Request};

use crate::download::directory_job::DirectoryJob;
use crate::download::file_job::FileJob;
use crate::download::late::LateCopies;
use crate::download::placing::Placing;
use crate::download::small_files::SmallFiles;
use crate::download::tree::links::{Branch, FollowedLink, LinkJob};
use crate::engine::job::Job;

/// One of the things that a tree needs.
pub(crate) enum TreeJob<'a> {
    Directory { job: Box<DirectoryJob<'a>>, branch: Branch },
    File { job: Box<FileJob<'a>>, shown: PathBuf, link: Option<Box<FollowedLink>> },
    Link(Box<LinkJob>),
    Small(Box<SmallFiles<'a>>),
    Placing(Box<Placing>),
    Late(Box<LateCopies>),
}

impl TreeJob<'_> {
    fn inner(&self) -> &dyn Job {
        match self {
            TreeJob::Directory { job, .. } => &**job,
            TreeJob::File { job, .. } => &**job,
            TreeJob::Link(job) => &job.task,
            TreeJob::Small(job) => &**job,
            TreeJob::Placing(job) => &**job,
            TreeJob::Late(job) => &**job,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Job {
        match self {
            TreeJob::Directory { job, .. } => &mut **job,
            TreeJob::File { job, .. } => &mut **job,
            TreeJob::Link(job) => &mut job.task,
            TreeJob::Small(job) => &mut **job,
            TreeJob::Placing(job) => &mut **job,
            TreeJob::Late(job) => &mut **job,
        }
    }
}

impl Job for TreeJob<'_> {
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool {
        self.inner_mut().handle_data(data, is_marked, context)
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        self.inner_mut().handle_nack(name, kind, context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.inner_mut().handle_timeout(context);
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        self.inner_mut().poll_request(context)
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        self.inner_mut().poll_deadline(flow)
    }

    fn is_done(&self) -> bool {
        self.inner().is_done()
    }

    fn refused_by(&mut self, source: usize) -> u64 {
        self.inner_mut().refused_by(source)
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.inner_mut().abandon(flow);
    }
}
