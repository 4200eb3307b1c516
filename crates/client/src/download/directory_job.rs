//! One directory of a tree: its listing, and its place on the local disk.

use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;

use byname_packet::{Data, Name, NameRef};
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::request::{Context, Request};

use crate::download::context::FileContext;
use crate::download::disk::Disk;
use crate::download::disk_queue::{DiskQueue, DiskTask};
use crate::download::local_dir::LocalDir;
use crate::download::progress::Event;
use crate::engine::job::Job;
use crate::error::ClientError;
use crate::lookup::list_job::{ListJob, Wanted};
use crate::lookup::listing::Listing;

/// Where the entries of a listing go.
pub(crate) enum Place {
    /// The directory that the user named. It is made once there is a listing to put into it.
    Root(PathBuf),
    /// A directory in this one.
    Below(LocalDir, OsString),
}

impl Place {
    pub(crate) fn shown(&self) -> PathBuf {
        match self {
            Place::Root(path) => path.clone(),
            Place::Below(parent, name) => parent.shown.join(name),
        }
    }
}

/// The job; done when the listing is here and the directory open, or when either fails.
pub(crate) struct DirectoryJob<'a> {
    context: Rc<FileContext<'a>>,
    name: Name,
    wanted: Wanted,
    list: ListJob,
    /// When the directory was first asked for, and lookups that ended in an outage.
    began_ns: u64,
    lookups: u32,
    is_root: bool,
    pub(crate) shown: PathBuf,
    disk: DiskQueue,
    place: Option<Place>,
    local_disk: Disk,
    opening: Option<DiskTask<LocalDir>>,
    opened: Option<Result<LocalDir, ClientError>>,
    listing: Option<Result<Listing, ClientError>>,
}

/// Outcome of a directory that was asked for.
pub(crate) enum DirectoryOutcome {
    Opened(Box<Listing>, LocalDir),
    /// The one that the user named: there is no going on.
    RootFailed(ClientError),
    Failed(ClientError),
}

impl<'a> DirectoryJob<'a> {
    pub(crate) fn new(
        (name, wanted): (Name, Wanted),
        place: Place,
        context: &Rc<FileContext<'a>>,
        now_ns: u64,
    ) -> Self {
        let config = context.config.discovery();
        let shown = place.shown();
        let mut job = DirectoryJob {
            list: ListJob::new(name.clone(), wanted, config, now_ns),
            context: Rc::clone(context),
            name,
            wanted,
            began_ns: now_ns,
            lookups: 0,
            is_root: matches!(place, Place::Root(_)),
            disk: context.disk.queue(&shown),
            shown,
            place: Some(place),
            local_disk: context.config.disk.clone(),
            opening: None,
            opened: None,
            listing: None,
        };
        if !job.is_root {
            job.open();
        }
        job
    }

    fn open(&mut self) {
        let (place, local_disk) = (self.place.take(), self.local_disk.clone());
        self.opening = place.map(|place| {
            self.disk.submit(move || match place {
                Place::Root(path) => LocalDir::root(&path, &local_disk),
                Place::Below(parent, name) => parent.child(&name),
            })
        });
    }

    fn step(&mut self, context: &mut Context<'_>) {
        if self.listing.is_none() {
            self.listing = self.list.take_outcome();
            if let Some(waiting) = self.list.poll_waiting(context.now_ns) {
                self.context.report(Event::DirectoryWaiting { name: &self.name, waiting });
            }
            self.ask_again(context);
        }
        if matches!(self.listing, Some(Ok(_))) && self.place.is_some() {
            self.open();
        }
        if let Some(outcome) = self.opening.as_mut().and_then(DiskTask::take) {
            self.opening = None;
            self.opened = Some(outcome);
        }
    }

    /// In an outage the listing is asked for again, once the call has begun.
    fn ask_again(&mut self, context: &mut Context<'_>) {
        let Some(Err(error)) = &self.listing else { return };
        let again = self.context.again_ns(error, self.began_ns, self.lookups, context);
        let Some(again_ns) = again else { return };
        self.lookups += 1;
        self.listing = None;
        self.list.abandon(context.flow);
        let config = self.context.config.discovery();
        self.list = ListJob::new(self.name.clone(), self.wanted, config, again_ns);
    }

    pub(crate) fn into_outcome(self) -> DirectoryOutcome {
        let error = match (self.listing, self.opened) {
            (Some(Ok(listing)), Some(Ok(local))) => {
                return DirectoryOutcome::Opened(Box::new(listing), local);
            }
            (_, Some(Err(error))) | (Some(Err(error)), _) => error,
            _ => ClientError::Interrupted,
        };
        match self.is_root {
            true => DirectoryOutcome::RootFailed(error),
            false => DirectoryOutcome::Failed(error),
        }
    }
}

impl Job for DirectoryJob<'_> {
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool {
        let was_taken = self.list.handle_data(data, is_marked, context);
        self.step(context);
        was_taken
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        self.list.handle_nack(name, kind, context);
        self.step(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.list.handle_timeout(context);
        self.step(context);
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        self.step(context);
        let request = self.list.poll_request(context);
        self.step(context);
        request
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        let is_open = self.opening.as_mut().is_some_and(DiskTask::is_ready);
        if is_open { Some(0) } else { self.list.poll_deadline(flow) }
    }

    fn is_done(&self) -> bool {
        let is_failed = matches!(self.listing, Some(Err(_))) || matches!(self.opened, Some(Err(_)));
        is_failed || (self.listing.is_some() && self.opened.is_some())
    }

    fn refused_by(&mut self, source: usize) -> u64 {
        self.list.refused_by(source)
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.list.abandon(flow);
    }
}
