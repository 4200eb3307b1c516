//! Fetches a directory with everything below it.
//!
//! Depth first, so that at most a few listings per level are held at the same time. Small files of
//! a directory that has a manifest are fetched in batches, larger ones by jobs of their own. One
//! failing entry does not end the others.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use byname_packet::Name;
use byname_transfer::naming::is_safe_entry;

use crate::config::TRANSFERS_MAX;
use crate::download::context::FileContext;
use crate::download::file_job::FileJob;
use crate::download::identical;
use crate::download::late::LateCopies;
use crate::download::local_dir::LocalDir;
use crate::download::part_file::{PartFile, Target, disk_error, is_part_name, os_name};
use crate::download::progress::{Event, FileReport};
use crate::download::small_files::{BATCH_MAX, SmallFile, SmallFiles, is_small};
use crate::download::tree_job::{Place, TreeJob};
use crate::download::tree_report::{FAILURES_MAX, TreeReport};
use crate::engine::job::JobSource;
use crate::engine::shared::Shared;
use crate::error::ClientError;
use crate::lookup::list_job::{ListJob, Wanted};
use crate::lookup::listing::Listing;

/// Listings being fetched, and batches of small files, at the same time.
const LISTS_MAX: usize = 4;
pub(crate) const BATCHES_MAX: usize = 2;

/// Jobs that run beside those for single files.
pub(crate) const BESIDE_FILES_MAX: usize = LISTS_MAX + BATCHES_MAX;

/// Files that are placed after one sync (each keeps a descriptor open meanwhile).
const BATCH_FILES: usize = 256;

/// Decides about an entry by its path relative to the directory asked for, and whether it is a
/// directory. A directory that is left out is not looked into.
pub type Filter<'a> = dyn FnMut(&Path, bool) -> bool + 'a;

/// A listing of which the entries from `at` on are still to do.
struct Cursor {
    listing: Listing,
    at: usize,
    /// The same for its small files, which come first; `None` when they are done.
    small_at: Option<usize>,
    local: LocalDir,
    relative: PathBuf,
}

/// A file that is whole and waits for the sync after which it gets its name.
struct Whole {
    part: PartFile,
    report: FileReport,
    relative: PathBuf,
}

/// Counts of running jobs.
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    lists: usize,
    files: usize,
    batches: usize,
}

impl Running {
    fn is_idle(&self) -> bool {
        self.lists + self.files + self.batches == 0
    }
}

pub(crate) struct TreeSource<'a> {
    context: Rc<FileContext<'a>>,
    filter: Box<Filter<'a>>,
    root: Option<(Name, PathBuf)>,
    cursors: Vec<Cursor>,
    /// Files that could not be fetched with the others of their batch.
    left_over: Vec<(Name, Target)>,
    running: Running,
    files_max: usize,
    wanted: Wanted,
    report: TreeReport,
    batch: Vec<Whole>,
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
            filter,
            root: Some(root),
            cursors: Vec::new(),
            left_over: Vec::new(),
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

    fn list(&mut self, name: Name, place: Place, relative: PathBuf, now_ns: u64) -> TreeJob<'a> {
        let config = self.context.config.discovery();
        let job = Box::new(ListJob::new(name, self.wanted, config, now_ns));
        self.running.lists += 1;
        TreeJob::List { job, place, relative }
    }

    fn file(&mut self, job: FileJob<'a>, shown: PathBuf) -> TreeJob<'a> {
        self.running.files += 1;
        TreeJob::File { job: Box::new(job), shown }
    }

    fn fail(&mut self, path: PathBuf, error: ClientError) {
        self.report.failed_count += 1;
        if is_disk_full(&error) {
            self.fatal.get_or_insert(error);
        } else if self.report.failures.len() < FAILURES_MAX {
            self.report.failures.push((path, error));
        }
    }

    /// The next entry of the innermost listing, as a job; `None` when the listing is at its end or
    /// the entry needs none.
    fn next_entry(&mut self, now_ns: u64) -> Step<'a> {
        let Some(cursor) = self.cursors.last_mut() else { return Step::End };
        if cursor.small_at.is_some() {
            return self.next_batch();
        }
        let Some((listed, next)) = cursor.listing.entry_at(cursor.at) else {
            self.cursors.pop();
            return Step::Nothing;
        };
        let entry = listed.entry;
        let is_small = is_small(&self.context, &listed);
        if is_small {
            cursor.at = next;
            return Step::Nothing;
        }
        let is_full = match entry.is_directory {
            true => self.running.lists >= LISTS_MAX,
            false => self.running.files >= self.files_max,
        };
        if is_full {
            return Step::End;
        }
        cursor.at = next;
        // A published part file would take the place of ours and be renamed as if it were whole.
        if !is_safe_entry(entry.name) || is_part_name(entry.name) {
            self.report.skipped_count += 1;
            let directory = &cursor.listing.name;
            self.context.report(Event::EntrySkipped { directory, entry: entry.name });
            return Step::Nothing;
        }
        let os_name = os_name(entry.name);
        let relative = cursor.relative.join(os_name);
        if !(self.filter)(&relative, entry.is_directory) {
            return Step::Nothing;
        }
        let name = cursor.listing.name.with_generic(entry.name);
        if !entry.is_directory {
            if let Some(report) = identical::report_at(&self.context, &cursor.local, &listed) {
                self.count(&report);
                return Step::Nothing;
            }
            let target = cursor.local.file(os_name);
            let shown = target.shown.clone();
            let resolved = cursor.listing.resolve(&listed);
            let job = FileJob::new(Rc::clone(&self.context), name, target, now_ns);
            let job = match resolved {
                Some(resolved) => job.with_resolved(resolved.into_parts().1),
                None => job,
            };
            return Step::Job(self.file(job, shown));
        }
        match cursor.local.child(os_name) {
            Ok(local) => Step::Job(self.list(name, Place::Below(local), relative, now_ns)),
            Err(error) => {
                let path = cursor.local.shown.join(os_name);
                self.context.report(Event::FileFailed { path: &path, error: &error });
                self.fail(path, error);
                Step::Nothing
            }
        }
    }

    /// The next small files of the innermost listing.
    fn next_batch(&mut self) -> Step<'a> {
        if self.running.batches >= BATCHES_MAX {
            return Step::End;
        }
        let Some(cursor) = self.cursors.last_mut() else { return Step::End };
        let Cursor { listing, small_at, local, relative, .. } = cursor;
        let mut items = Vec::new();
        while let Some(at) = small_at.filter(|_| items.len() < BATCH_MAX) {
            let Some((listed, next)) = listing.entry_at(at) else {
                *small_at = None;
                break;
            };
            *small_at = Some(next);
            if !is_small(&self.context, &listed)
                || !(self.filter)(&relative.join(os_name(listed.entry.name)), false)
            {
                continue;
            }
            match identical::report_at(&self.context, local, &listed) {
                Some(report) => self.report.count(&report),
                None => items.extend(SmallFile::new(&listed)),
            }
        }
        if items.is_empty() {
            return Step::Nothing;
        }
        self.running.batches += 1;
        let (name, local) = (listing.name.clone(), local.clone());
        let batch = SmallFiles::new(Rc::clone(&self.context), name, local, items);
        Step::Job(TreeJob::Small(Box::new(batch)))
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

    /// Puts the waiting files in place: one sync for the contents of all, then the renames, then
    /// one sync for the names.
    pub(crate) fn place_batch(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        let synced = sync_devices(&batch);
        for Whole { part, report, relative } in &batch {
            let placed = match &synced {
                Ok(()) => part.rename(self.context.options.no_clobber),
                Err(source) => Err(disk_error(part.shown(), source.kind())),
            };
            let path = part.shown();
            match placed {
                Ok(()) => {
                    self.count(report);
                    self.context.report(Event::FileDone { path, report });
                }
                Err(error) => {
                    self.context.report(Event::FileFailed { path, error: &error });
                    self.fail(relative.clone(), error);
                }
            }
        }
        if let Err(source) = sync_devices(&batch) {
            let first = batch.first().map_or(Path::new(""), |whole| whole.part.shown());
            self.fatal.get_or_insert(disk_error(first, source));
        }
    }

    fn take_listing(
        &mut self,
        outcome: Result<Listing, ClientError>,
        place: Place,
        relative: PathBuf,
    ) {
        let disk = &self.context.config.disk;
        let local = match place {
            Place::Below(local) => local,
            Place::Root(path) => match outcome.as_ref().map(|_| LocalDir::root(&path, disk)) {
                Ok(Ok(local)) => local,
                Ok(Err(error)) => return self.fatal = Some(error),
                Err(_) => return self.fatal = outcome.err(),
            },
        };
        match outcome {
            Ok(listing) => {
                self.report.directory_count += 1;
                let entry_count = listing.entry_count();
                self.context.report(Event::DirectoryListed { name: &listing.name, entry_count });
                // Whoever has one manifest has them all, and so has nobody who has none.
                let is_manifest = listing.is_manifest();
                if let Some(copies) = &self.context.config.copies {
                    let payload = listing.payload();
                    copies.keep_directory(local.fd(), is_manifest, &listing.discovered, payload);
                }
                self.wanted = if is_manifest { Wanted::Manifest } else { Wanted::Plain };
                let at = listing.start();
                let small_at = is_manifest.then_some(at);
                self.cursors.push(Cursor { listing, at, small_at, local, relative });
            }
            Err(error) => {
                self.context.report(Event::FileFailed { path: &local.shown, error: &error });
                self.fail(local.shown, error);
            }
        }
    }
}

/// One sync for each device that holds files of the batch.
fn sync_devices(batch: &[Whole]) -> std::io::Result<()> {
    let mut synced = Vec::new();
    for whole in batch {
        let device = whole.part.device();
        if !synced.contains(&device) {
            whole.part.sync_device()?;
            synced.push(device);
        }
    }
    Ok(())
}

enum Step<'a> {
    Job(TreeJob<'a>),
    Nothing,
    End,
}

impl<'a> TreeSource<'a> {
    fn next_fetch(&mut self, now_ns: u64) -> Option<TreeJob<'a>> {
        if let Some((name, path)) = self.root.take() {
            return Some(self.list(name, Place::Root(path), PathBuf::new(), now_ns));
        }
        if self.fatal.is_none()
            && self.running.files < self.files_max
            && let Some((name, target)) = self.left_over.pop()
        {
            let shown = target.shown.clone();
            let job = FileJob::new(Rc::clone(&self.context), name, target, now_ns);
            return Some(self.file(job, shown));
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

    /// When everything is fetched: the last files get their names, then late copies their packets.
    fn settle(&mut self) -> Option<TreeJob<'a>> {
        if self.is_settled || !self.running.is_idle() {
            return None;
        }
        self.is_settled = true;
        self.place_batch();
        let late = LateCopies::new(&self.context.config)?;
        Some(TreeJob::Late(Box::new(late)))
    }
}

impl<'a> JobSource for TreeSource<'a> {
    type Job = TreeJob<'a>;

    fn next_job(&mut self, _: &mut Shared, now_ns: u64) -> Option<TreeJob<'a>> {
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
            TreeJob::List { job, place, relative } => {
                self.running.lists -= 1;
                self.take_listing(job.into_outcome(), place, relative);
            }
            TreeJob::File { mut job, shown } => {
                self.running.files -= 1;
                let whole = job.take_whole();
                match (job.into_outcome(), whole) {
                    (Err(error), _) => self.fail(shown, error),
                    (Ok(report), None) => self.count(&report),
                    (Ok(report), Some(part)) => {
                        self.batch.push(Whole { part, report, relative: shown });
                        if self.batch.len() >= BATCH_FILES {
                            self.place_batch();
                        }
                    }
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
