//! Fetches many small files of one directory at once.
//!
//! A file of one segment whose version and root the manifest has costs one Interest and one
//! Data: no discovery, no tree, no part file. All of a batch are fetched like the segments of one
//! object, with the entry's place for the segment's number, so that the window bounds what is
//! in flight and not the number of files.
//!
//! Invariants: a file is put in place only if it hashes to the root that the manifest proves; what
//! cannot be had so is left over for an ordinary download, which reports why.

mod at_disk;

use std::path::PathBuf;
use std::rc::Rc;

use byname_packet::{ContentType, Data, Name, NameRef, types};
use byname_security::tree::Hash;
use byname_transfer::error::ReadError;
use byname_transfer::fetch::{Fetch, FetchFailure, NackKind, SegmentRuns};
use byname_transfer::flow::Flow;
use byname_transfer::numbers::SEGMENT_BYTES_MAX;
use byname_transfer::request::{Context, Request};

use crate::download::context::FileContext;
use crate::download::disk_queue::DiskTask;
use crate::download::identical::Expected;
use crate::download::local_dir::{IfThere, LocalDir};
use crate::download::part_file::{is_part_name, os_name};
use crate::download::progress::{Event, FileOutcome, FileReport};
use crate::download::small_files::at_disk::{Looked, NewFile, SmallFilesDisk};
use crate::engine::job::Job;
use crate::error::ClientError;
use crate::lookup::listing::ListedEntry;

/// Files of one batch.
pub(crate) const BATCH_MAX: usize = 1024;
/// A packet that does not hash to the root is asked for once more, and then given up here.
const REFUSALS_MAX: u8 = 2;
const REFUSED_RETRY_NS: u64 = 20_000_000;

/// A small file, as the manifest describes it.
#[derive(Debug)]
pub(crate) struct SmallFile {
    name: Box<[u8]>,
    expected: Expected,
    /// Something may stand at its place.
    is_there: bool,
    state: SmallFileState,
}

impl SmallFile {
    /// A file that is small.
    pub(crate) fn new(listed: &ListedEntry<'_>) -> Option<Self> {
        let expected = Expected::new(listed)?;
        let state = SmallFileState::Open { refusals: 0 };
        Some(SmallFile { name: listed.entry.name.into(), expected, is_there: false, state })
    }
}

/// State of a small file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SmallFileState {
    /// Not there yet; so many packets were no good.
    Open { refusals: u8 },
    /// Verified, and handed to the disk.
    Writing,
    /// Settled: in place, failed, or left over.
    Settled,
}

/// True if a file is fetched with others of its kind: it has one segment, and its version and
/// root are known.
pub(crate) fn is_small(context: &FileContext<'_>, listed: &ListedEntry<'_>) -> bool {
    let is_plain = !context.options.sync && !is_part_name(listed.entry.name);
    is_plain
        && listed.details.is_some_and(|details| {
            let size = details.size.unwrap_or(u64::MAX);
            details
                .version
                .is_some_and(|version| version.root.is_some() && size <= version.segment_bytes)
        })
}

/// The job; done when every file is settled.
pub(crate) struct SmallFiles<'a> {
    context: Rc<FileContext<'a>>,
    directory: Name,
    local: LocalDir,
    disk: SmallFilesDisk,
    /// Files that stand there are looked at first.
    looking: Option<DiskTask<Looked>>,
    /// Sorted by name.
    items: Vec<SmallFile>,
    open_count: usize,
    fetch: Fetch,
    was_heard: bool,
    /// Files in place, with their reports.
    pub(crate) done: Vec<FileReport>,
    /// Files that need an ordinary download.
    pub(crate) left_over: Vec<usize>,
    /// Files that failed, with the places they were meant for.
    pub(crate) failed: Vec<(PathBuf, ClientError)>,
}

impl<'a> SmallFiles<'a> {
    /// `items` are sorted by name, at most [`BATCH_MAX`].
    pub(crate) fn new(
        context: Rc<FileContext<'a>>,
        directory: Name,
        local: LocalDir,
        items: Vec<SmallFile>,
    ) -> Self {
        let disk = SmallFilesDisk::new(context.disk.queue(&local.shown));
        let fetch = Fetch::new(SegmentRuns::up_to(0), Some(0), context.config.fetch_begun());
        let mut job = SmallFiles {
            context,
            directory,
            local,
            disk,
            looking: None,
            items: Vec::new(),
            open_count: 0,
            fetch,
            was_heard: false,
            done: Vec::new(),
            left_over: Vec::new(),
            failed: Vec::new(),
        };
        if job.local.is_new {
            job.begin(items);
        } else {
            job.looking = Some(job.disk.look(&job.local, items, job.context.options));
            job.step();
        }
        job
    }

    /// Begins to fetch.
    fn begin(&mut self, items: Vec<SmallFile>) {
        let last = (items.len() as u64).saturating_sub(1);
        let config = self.context.config.fetch_begun();
        self.fetch = Fetch::new(SegmentRuns::up_to(last), Some(last), config);
        for item in &items {
            let path = self.local.shown.join(os_name(&item.name));
            self.context.report(Event::FileStarted { path: &path, size: Some(item.expected.size) });
        }
        self.open_count = items.len();
        self.items = items;
    }

    /// Goes on with what the disk has done.
    fn step(&mut self) {
        if let Some(looked) = self.looking.as_mut().and_then(DiskTask::take) {
            self.looking = None;
            self.take_looked(looked);
        }
        for (place, placed) in self.disk.take_placed() {
            self.take_placed(place, placed);
        }
    }

    fn take_looked(&mut self, looked: Result<Looked, ClientError>) {
        let Looked { missing, untouched } = match looked {
            Ok(looked) => looked,
            Err(error) => {
                let path = self.local.shown.clone();
                self.context.report(Event::FileFailed { path: &path, error: &error });
                return self.failed.push((path, error));
            }
        };
        for (name, report) in untouched {
            let path = self.local.shown.join(os_name(&name));
            self.context.report(Event::FileDone { path: &path, report: &report });
            self.done.push(report);
        }
        if !missing.is_empty() {
            self.begin(missing);
        }
    }

    /// The published name of a file and its place on disk.
    pub(crate) fn file(&self, place: usize) -> (Name, &LocalDir, &[u8]) {
        let name = &self.items[place].name;
        (self.directory.with_generic(name), &self.local, name)
    }

    /// Place of the file that a segment's name is about.
    fn place_of(&self, name: NameRef<'_>) -> Option<usize> {
        let depth = self.directory.view().count();
        let below = name.suffix(depth);
        if below.count() != 3 || !self.directory.view().is_prefix_of(name) {
            return None;
        }
        let mut components = below.components();
        let file = components.next().filter(|file| file.typ == types::GENERIC)?;
        let version = components.next()?.version()?;
        let segment = components.next()?.segment()?;
        let place = self.items.binary_search_by(|item| (*item.name).cmp(file.value)).ok()?;
        (segment == 0 && version == self.items[place].expected.version).then_some(place)
    }

    /// Ends what is done for a file; false if that was so already.
    fn settle(&mut self, place: usize) -> bool {
        let state = &mut self.items[place].state;
        let was_open = std::mem::replace(state, SmallFileState::Settled) != SmallFileState::Settled;
        self.open_count -= usize::from(was_open);
        was_open
    }

    fn leave_over(&mut self, place: usize) {
        if self.settle(place) {
            self.left_over.push(place);
        }
    }

    fn take(&mut self, place: usize, data: &Data<'_>, context: &mut Context<'_>) {
        // Something newer may have been seen since the manifest was read, or stand here.
        let (name, local, file) = self.file(place);
        if self.items[place].is_there {
            self.context.learn(&local.file(os_name(file)), name.view(), context);
        }
        let version = self.items[place].expected.version;
        let is_old = context.versions.check(name.view(), version).is_err();
        if is_old || data.meta.content_type == ContentType::NACK {
            return self.leave_over(place);
        }
        let item = &mut self.items[place];
        let SmallFileState::Open { refusals } = &mut item.state else { return };
        let is_verified = data.content.len() as u64 == item.expected.size
            && *Hash::of(data.content).as_bytes() == item.expected.root;
        if is_verified {
            return self.put(place, data.content);
        }
        *refusals += 1;
        if *refusals >= REFUSALS_MAX {
            return self.leave_over(place);
        }
        let pause_ns = context.flow.jitter().pause_ns(REFUSED_RETRY_NS);
        let due_ns = context.now_ns.saturating_add(pause_ns);
        self.fetch.want(place as u64, due_ns, context.now_ns);
    }

    fn put(&mut self, place: usize, content: &[u8]) {
        let item = &mut self.items[place];
        item.state = SmallFileState::Writing;
        let attributes = item.expected.attributes;
        let if_there = match self.context.options.no_clobber {
            true => IfThere::Refuse,
            false if item.is_there => IfThere::Replace,
            // What came meanwhile may have a version of its own.
            false => IfThere::Leave,
        };
        let file = NewFile { name: &item.name, content, attributes, if_there };
        self.disk.put(&self.local, place, file);
        self.context.report(Event::Fetched { bytes: content.len() as u64 });
        self.step();
    }

    /// A file has its name, or cannot have it.
    fn take_placed(&mut self, place: usize, placed: Result<bool, ClientError>) {
        let item = &self.items[place];
        let path = self.local.shown.join(os_name(&item.name));
        match placed {
            Ok(true) => {
                let report = FileReport {
                    outcome: FileOutcome::Fetched,
                    version: item.expected.version,
                    size: item.expected.size,
                    fetched_bytes: item.expected.size,
                    reused_bytes: 0,
                    sources: Vec::new(),
                };
                self.context.report(Event::FileDone { path: &path, report: &report });
                self.settle(place);
                self.done.push(report);
            }
            Ok(false) => self.leave_over(place),
            Err(error) => self.fail(place, error),
        }
    }

    fn fail(&mut self, place: usize, error: ClientError) {
        let path = self.local.shown.join(os_name(&self.items[place].name));
        self.context.report(Event::FileFailed { path: &path, error: &error });
        self.settle(place);
        self.failed.push((path, error));
    }

    /// Nobody answers any more.
    fn check_fetch(&mut self, context: &mut Context<'_>) {
        let Some(failure) = self.fetch.failure() else { return };
        self.fetch.abandon(context.flow);
        for place in 0..self.items.len() {
            if !matches!(self.items[place].state, SmallFileState::Open { .. }) {
                continue;
            }
            let name = self.directory.with_generic(&self.items[place].name);
            match failure {
                // One of them alone may be gone; somebody who never answered will not now.
                _ if self.was_heard => self.leave_over(place),
                FetchFailure::NoRoute => self.fail(place, ReadError::NoRoute { name }.into()),
                _ => self.fail(place, ReadError::TimeOut { name }.into()),
            }
        }
    }
}

impl Job for SmallFiles<'_> {
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool {
        let Some(place) = self.place_of(data.name) else { return false };
        let now_ns = context.now_ns;
        if self.fetch.handle_data(place as u64, is_marked, now_ns, context.flow) {
            self.was_heard = true;
            self.take(place, data, context);
        }
        true
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        let Some(place) = self.place_of(name) else { return };
        if kind == NackKind::Gone {
            // An answer like any other: the fetch goes on with the other files.
            if self.fetch.handle_data(place as u64, false, context.now_ns, context.flow) {
                self.was_heard = true;
                self.leave_over(place);
            }
            return;
        }
        self.fetch.handle_nack(place as u64, kind, context.now_ns, context.flow);
        self.check_fetch(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.step();
        self.fetch.handle_timeout(context.now_ns, context.flow);
        self.check_fetch(context);
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        self.step();
        if self.open_count == 0 || !self.disk.has_room() {
            return None;
        }
        let bytes = SEGMENT_BYTES_MAX as u64;
        let segment = self.fetch.poll_segment(context.now_ns, usize::MAX, bytes, context.flow)?;
        let item = &self.items[segment as usize];
        let mut name = self.directory.with_generic(&item.name);
        name.push_version(item.expected.version);
        name.push_segment(0);
        let past_caches = matches!(item.state, SmallFileState::Open { refusals: 1.. });
        Some(Request { past_caches, ..Request::exact(name) })
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        let is_looked = self.looking.as_mut().is_some_and(DiskTask::is_ready);
        if is_looked || self.disk.has_placed() {
            return Some(0);
        }
        // The disk wakes the engine.
        let waits_for_disk = self.open_count == 0 || !self.disk.has_room();
        let is_over = waits_for_disk || self.fetch.failure().is_some();
        if is_over { None } else { self.fetch.poll_deadline(flow) }
    }

    fn is_done(&self) -> bool {
        self.looking.is_none() && self.open_count == 0
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.fetch.abandon(flow);
    }
}
