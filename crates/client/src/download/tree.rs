//! Fetches a directory with everything below it.
//!
//! Depth first, so that at most a few listings per level are held at the same time. Small files of
//! a directory that has a manifest are fetched in batches, larger ones by jobs of their own. One
//! failing entry does not end the others. [`entries`] goes through a listing.

mod entries;
pub(crate) mod links;
mod pruned;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use byname_packet::Name;
use byname_transfer::attributes::ObjectKind;

use crate::config::TRANSFERS_MAX;
use crate::download::context::FileContext;
use crate::download::copies::DirectoryPacket;
use crate::download::directory_job::{DirectoryJob, DirectoryOutcome, Place};
use crate::download::disk_queue::DiskQueue;
use crate::download::file_job::FileJob;
use crate::download::late::LateCopies;
use crate::download::local_dir::LocalDir;
use crate::download::part_file::{Target, os_name};
use crate::download::placing::{self, Placed, Placing, Whole};
use crate::download::progress::{Event, FileReport};
use crate::download::small_files::SmallFiles;
use crate::download::tree::entries::{Cursor, Step};
use crate::download::tree::links::{Branch, FollowedLink, LINKS_MAX, LinkJob, is_a_directory};
use crate::download::tree::pruned::PrunedDir;
use crate::download::tree_job::TreeJob;
use crate::download::tree_report::{FAILURES_MAX, TreeReport};
use crate::engine::job::JobSource;
use crate::engine::shared::Shared;
use crate::error::ClientError;
use crate::lookup::list_job::Wanted;
use crate::lookup::listing::{ListedEntry, Listing};

/// Listings being fetched, and batches of small files, at the same time.
const LISTS_MAX: usize = 4;
pub(crate) const BATCHES_MAX: usize = 2;

/// Files that get their names while others are fetched.
const PLACINGS_MAX: usize = 1;

/// Jobs that run beside those for single files.
pub(crate) const BESIDE_FILES_MAX: usize = LISTS_MAX + BATCHES_MAX + PLACINGS_MAX;

/// Files that are placed after one sync (each keeps a descriptor open meanwhile).
const BATCH_FILES: usize = 256;

/// An entry of a tree that a filter decides about.
#[derive(Clone, Copy, Debug)]
pub struct TreeEntry<'a> {
    /// Relative to the directory asked for.
    pub path: &'a Path,
    /// The kind of object.
    pub kind: ObjectKind,
    /// Of a file: its size, if the publisher's manifest says it.
    pub size: Option<u64>,
    /// Last change of the content in nanoseconds since the Unix epoch, likewise.
    pub mtime_ns: Option<u64>,
}

impl<'a> TreeEntry<'a> {
    pub(crate) fn new(path: &'a Path, listed: &ListedEntry<'_>) -> Self {
        let kind = match listed.details {
            Some(details) => details.kind(),
            None if listed.entry.is_directory => ObjectKind::Directory,
            None => ObjectKind::File,
        };
        let size = listed.details.and_then(|details| details.size);
        let mtime_ns = listed.details.and_then(|details| details.mtime_ns);
        TreeEntry { path, kind, size, mtime_ns }
    }

    /// True if it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == ObjectKind::Directory
    }
}

/// Decides whether an entry is fetched. A directory that is left out is not looked into.
pub type Filter<'a> = dyn FnMut(&TreeEntry<'_>) -> bool + 'a;

/// Counts of running jobs.
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    lists: usize,
    files: usize,
    batches: usize,
    placings: usize,
}

impl Running {
    fn is_idle(&self) -> bool {
        self.lists + self.files + self.batches + self.placings == 0
    }
}

pub(crate) struct TreeSource<'a> {
    context: Rc<FileContext<'a>>,
    filter: Box<Filter<'a>>,
    root: Option<(Name, PathBuf)>,
    cursors: Vec<Cursor>,
    /// Files that could not be fetched with the others of their batch.
    left_over: Vec<(Name, Target)>,
    /// Links that turned out to lead to directories, which are fetched in their place.
    linked: Vec<FollowedLink>,
    running: Running,
    files_max: usize,
    wanted: Wanted,
    report: TreeReport,
    batch: Vec<Whole>,
    /// Where batches get their names.
    placing: DiskQueue,
    /// The packets of late copies were looked up, or are being.
    is_settled: bool,
    /// The directory asked for could not be listed, or the disk is full: there is no going on.
    fatal: Option<ClientError>,
}

impl<'a> TreeSource<'a> {
    pub(crate) fn new(
        context: Rc<FileContext<'a>>,
        root: (Name, PathBuf),
        filter: Box<Filter<'a>>,
    ) -> Self {
        TreeSource {
            placing: context.disk.queue(&root.1),
            filter,
            root: Some(root),
            cursors: Vec::new(),
            left_over: Vec::new(),
            linked: Vec::new(),
            running: Running::default(),
            files_max: context.config.transfers.clamp(1, TRANSFERS_MAX),
            context,
            wanted: Wanted::Either,
            report: TreeReport::default(),
            batch: Vec::new(),
            is_settled: false,
            fatal: None,
        }
    }

    /// Jobs that may run at the same time.
    pub(crate) fn at_once(&self) -> usize {
        self.files_max + BESIDE_FILES_MAX
    }

    /// The report, after everything that could be done.
    pub(crate) fn into_outcome(self) -> Result<TreeReport, ClientError> {
        match self.fatal {
            Some(error) => Err(error),
            None => Ok(self.report),
        }
    }

    fn directory(
        &mut self,
        name: Name,
        place: Place,
        mut branch: Branch,
        now_ns: u64,
    ) -> TreeJob<'a> {
        if let Place::Below(parent, name) = &place
            && self.context.options.prune_empty
        {
            let place = (parent.clone(), name.clone());
            branch.pruned = Some(PrunedDir::new(branch.pruned, place, self.placing.clone()));
        }
        let job = DirectoryJob::new((name, self.wanted), place, &self.context, now_ns);
        self.running.lists += 1;
        TreeJob::Directory { job: Box::new(job), branch }
    }

    fn file(&mut self, job: FileJob<'a>, shown: PathBuf) -> TreeJob<'a> {
        self.running.files += 1;
        TreeJob::File { job: Box::new(job), shown, link: None }
    }

    fn fail(&mut self, path: PathBuf, error: ClientError) {
        self.report.failed_count += 1;
        if is_disk_full(&error) {
            self.fatal.get_or_insert(error);
        } else if self.report.failures.len() < FAILURES_MAX {
            self.report.failures.push((path, error));
        }
    }

    fn take_batch(&mut self, batch: SmallFiles<'a>) {
        batch.done.iter().for_each(|report| self.count(report));
        for place in &batch.left_over {
            let (name, local, file) = batch.file(*place);
            self.left_over.push((name, local.file(os_name(file))));
        }
        for (shown, error) in batch.failed {
            self.fail(shown, error);
        }
    }

    fn count(&mut self, report: &FileReport) {
        self.report.count(report);
    }

    /// Lets the waiting files get their names. Their caller may be gone.
    pub(crate) fn place_batch(&mut self) -> Option<Placing> {
        if self.batch.is_empty() {
            return None;
        }
        let is_exclusive = self.context.options.no_clobber;
        Some(placing::begin(std::mem::take(&mut self.batch), is_exclusive, &self.placing))
    }

    fn take_placed(&mut self, placed: Result<Placed, ClientError>) {
        let Placed { files, names } = match placed {
            Ok(placed) => placed,
            Err(error) => return self.fatal = Some(error),
        };
        for file in files {
            let path = &*file.shown;
            match file.outcome {
                Ok(()) => {
                    self.count(&file.report);
                    self.context.report(Event::FileDone { path, report: &file.report });
                }
                Err(error) => {
                    self.context.report(Event::FileFailed { path, error: &error });
                    self.fail(file.shown, error);
                }
            }
        }
        if let Err(error) = names {
            self.fatal.get_or_insert(error);
        }
    }

    fn take_link(&mut self, job: LinkJob) {
        let LinkJob { shown, task } = job;
        match task.into_outcome() {
            Ok(report) => {
                self.context.report(Event::FileDone { path: &shown, report: &report });
                self.count(&report);
            }
            Err(error) => {
                self.context.report(Event::FileFailed { path: &shown, error: &error });
                self.fail(shown, error);
            }
        }
    }

    fn take_directory(&mut self, job: DirectoryJob<'_>, branch: Branch) {
        let shown = job.shown.clone();
        match job.into_outcome() {
            DirectoryOutcome::Opened(listing, local) => {
                if let Some(pruned) = branch.pruned.as_ref().filter(|_| local.is_new) {
                    pruned.set_new();
                }
                let cursor = Cursor::new(*listing, local, branch);
                self.take_listing(cursor);
            }
            DirectoryOutcome::RootFailed(error) => self.fatal = Some(error),
            DirectoryOutcome::Failed(error) => {
                self.context.report(Event::FileFailed { path: &shown, error: &error });
                self.fail(shown, error);
            }
        }
    }

    fn take_listing(&mut self, cursor: Cursor) {
        let (listing, local) = cursor.directory();
        self.context.begin();
        self.report.directory_count += 1;
        let entry_count = listing.entry_count();
        self.context.report(Event::DirectoryListed { name: &listing.name, entry_count });
        // Whoever has one manifest has them all, and so has nobody who has none.
        let is_manifest = listing.is_manifest();
        self.keep_packet(listing, local);
        self.wanted = if is_manifest { Wanted::Manifest } else { Wanted::Plain };
        self.cursors.push(cursor);
    }

    /// Keeps the directory's packet with the copy.
    fn keep_packet(&self, listing: &Listing, local: &LocalDir) {
        let Some(copies) = self.context.config.copies.clone() else { return };
        let (is_manifest, discovered) = (listing.is_manifest(), &listing.discovered);
        let packet = DirectoryPacket::new(is_manifest, discovered, listing.payload());
        if let Some(packet) = packet {
            let local = local.clone();
            let disk = self.context.disk.queue(&local.shown);
            disk.post(move |_| copies.keep_packet(local.fd(), packet));
        }
    }
}

impl<'a> TreeSource<'a> {
    fn next_fetch(&mut self, now_ns: u64) -> Option<TreeJob<'a>> {
        if let Some((name, path)) = self.root.take() {
            return Some(self.directory(name, Place::Root(path), Branch::root(), now_ns));
        }
        if self.fatal.is_none()
            && self.running.files < self.files_max
            && let Some((name, target)) = self.left_over.pop()
        {
            let shown = target.shown.clone();
            let job = FileJob::new(Rc::clone(&self.context), name, target, now_ns);
            return Some(self.file(job, shown));
        }
        if self.fatal.is_none()
            && self.running.lists < LISTS_MAX
            && let Some(FollowedLink { name, parent, entry, branch }) = self.linked.pop()
        {
            return Some(self.directory(name, Place::Below(parent, entry), branch, now_ns));
        }
        while self.fatal.is_none() {
            match self.next_entry(now_ns) {
                Step::Job(job) => return Some(job),
                Step::Nothing => {}
                Step::End => return None,
            }
        }
        None
    }

    /// Lets files that are whole get their names, unless others are getting theirs.
    fn next_placing(&mut self) -> Option<TreeJob<'a>> {
        if self.running.placings >= PLACINGS_MAX {
            return None;
        }
        let placing = self.place_batch()?;
        self.running.placings += 1;
        Some(TreeJob::Placing(Box::new(placing)))
    }

    /// When everything is fetched: the last files get their names, then late copies their packets.
    fn settle(&mut self) -> Option<TreeJob<'a>> {
        if self.is_settled || !self.running.is_idle() {
            return None;
        }
        if let Some(placing) = self.next_placing() {
            return Some(placing);
        }
        self.is_settled = true;
        let late = LateCopies::new(&self.context.config, &self.context.disk)?;
        Some(TreeJob::Late(Box::new(late)))
    }
}

impl<'a> JobSource for TreeSource<'a> {
    type Job = TreeJob<'a>;

    fn next_job(&mut self, _: &mut Shared, now_ns: u64) -> Option<TreeJob<'a>> {
        if self.batch.len() >= BATCH_FILES {
            return self.next_placing();
        }
        let job = self.next_fetch(now_ns);
        job.or_else(|| self.settle())
    }

    fn take_done(&mut self, job: TreeJob<'a>) {
        match job {
            TreeJob::Late(_) => {}
            TreeJob::Small(batch) => {
                self.running.batches -= 1;
                self.take_batch(*batch);
            }
            TreeJob::Directory { job, branch } => {
                self.running.lists -= 1;
                self.take_directory(*job, branch);
            }
            TreeJob::Placing(job) => {
                self.running.placings -= 1;
                self.take_placed(job.into_outcome());
            }
            TreeJob::Link(job) => {
                self.running.files -= 1;
                self.take_link(*job);
            }
            TreeJob::File { mut job, shown, link } => {
                self.running.files -= 1;
                let whole = job.take_whole();
                match (job.into_outcome(), whole) {
                    (Err(error), _) => match link.filter(|_| is_a_directory(&error)) {
                        Some(link) if link.branch.links <= LINKS_MAX => self.linked.push(*link),
                        _ => self.fail(shown, error),
                    },
                    (Ok(report), None) => self.count(&report),
                    (Ok(report), Some(part)) => self.batch.push(Whole { part, report, shown }),
                }
            }
        }
    }
}

fn is_disk_full(error: &ClientError) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error, ClientError::LocalDisk { source, .. }
        if matches!(source.kind(), StorageFull | QuotaExceeded))
}
