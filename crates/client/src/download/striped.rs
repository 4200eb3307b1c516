//! One large file from several sources at once.
//!
//! Each source has a thread, a connection and so a window of its own, which the session wing runs
//! ([`StripeRunner`]). Who gets which piece is decided by [`pieces`]: by measured rate, and at the
//! end the fast take over what the slow still owe. A source that fails, falls silent, is far slower
//! than the others or keeps sending what does not verify is left. Meanwhile the engine goes on with
//! other calls.
//!
//! Verified bytes are written to the part file at once, and that is all: an ordinary download
//! follows, finds them there, checks them once more, fetches what is missing and puts the file in
//! place. So nothing that goes wrong here can do more harm than cost time.
//!
//! Invariants: only what the root verifies is written; a byte counts once, for the source that
//! brought it first; a thread reports its end after its last use of the part file; when the
//! download has ended, nobody has the part file open, whatever sources still do.

mod pieces;
mod source;

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use byname_io::{Clock, Endpoint};
use byname_security::tree::UNIT_BYTES;
use byname_transfer::reader::{ObjectPlan, Proof};

use crate::config::{ClientConfig, Stop};
use crate::download::disk::Disk;
use crate::download::disk_queue::DiskQueue;
use crate::download::part_file::{PartFile, Target};
use crate::download::progress::{Event, Progress, SourceReport};
use crate::download::striped::pieces::{Assignment, Pieces};
use crate::error::ClientError;

pub(crate) use source::StripeSource;

/// Smaller files come from one source.
const SIZE_MIN: u64 = 16 << 20;
/// Pieces that one source works on: the next begins before the one before has ended.
pub(crate) const PIECES_AT_ONCE: usize = 2;
/// Sources asked at the same time.
const SOURCES_MAX: usize = 8;
/// A source that says nothing for so long is left.
const SILENCE: Duration = Duration::from_secs(3);
/// Pause between two looks whether to stop or to take over, for who waits for others.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Shared by all sources.
struct Work {
    plan: ObjectPlan,
    /// The part file, until the download has ended. A source that is still connecting then holds
    /// this, but no file: the lock on it ends with the last descriptor.
    file: RwLock<Option<File>>,
    disk: Disk,
    shown: PathBuf,
    clock: Clock,
    pieces: Mutex<Pieces>,
    /// A job is over: something may have come back, or the last piece was brought.
    changed: Condvar,
    /// Verified bytes that were written.
    fetched_bytes: AtomicU64,
    /// Nobody wants the file any more, or the disk refuses to take more; then the ordinary
    /// download will say why.
    is_over: AtomicBool,
}

impl Work {
    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn take(&self, source: usize) -> Option<Assignment> {
        if self.is_over() {
            return None;
        }
        self.pieces().take(source, self.clock.now_ns())
    }

    /// Waits while others have pieces that might come back or be taken over. `None` if there will
    /// be nothing for this source.
    fn wait(&self, source: usize, stop: &Stop) -> Option<Assignment> {
        let mut pieces = self.pieces();
        while !self.is_over() && !stop.is_requested() && !pieces.is_complete() {
            let assignment = pieces.take(source, self.clock.now_ns());
            if assignment.is_some() || pieces.is_left(source) {
                return assignment;
            }
            let waited = self.changed.wait_timeout(pieces, LOOK_PAUSE);
            pieces = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }

    /// A source's job is over; what is missing of its piece comes back.
    fn end(&self, source: usize, assignment: &Assignment) {
        self.pieces().end(source, assignment.id, self.clock.now_ns());
        self.changed.notify_all();
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = &*file else { return };
        if self.disk.write_all_at(file, &self.shown, bytes, offset).is_err() {
            self.is_over.store(true, Ordering::Relaxed);
        }
    }

    /// Closes the part file, after what is being written.
    fn close(&self) {
        self.file.write().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Report of a source to its download.
enum Note {
    Refused {
        what: String,
        endpoint: String,
    },
    /// By the number of the source.
    Ended(usize, SourceReport),
}

/// True if it is worth while.
pub(crate) fn is_worth_it(plan: &ObjectPlan) -> bool {
    matches!(plan.proof, Proof::Root { size, .. } if size >= SIZE_MIN)
}

/// Settings of a source: nothing has to be trusted, because the root is known.
fn config_for(config: &ClientConfig) -> ClientConfig {
    ClientConfig {
        timeout: SILENCE,
        connect_timeout: CONNECT_TIMEOUT,
        retries: config.retries,
        congestion: config.congestion,
        window_max: config.window_max,
        stop: config.stop.clone(),
        traces: config.traces,
        ..ClientConfig::default()
    }
}

/// The open part file of a new version.
pub(crate) struct StripedPart {
    /// Locks it.
    part: PartFile,
    /// For the sources.
    file: File,
}

impl StripedPart {
    /// `None` if an earlier run has left something there.
    pub(crate) fn open(target: &Target, size: u64) -> Result<Option<Self>, ClientError> {
        let part = PartFile::open(target.clone(), Some(size))?;
        if part.claimed_units(size).iter().next().is_some() {
            return Ok(None);
        }
        let file = part.file().try_clone().map_err(|error| target.error(error))?;
        Ok(Some(StripedPart { part, file }))
    }
}

/// Runs sources side by side, each on a thread with a connection of its own.
pub(crate) trait StripeRunner {
    /// Where the sources are.
    fn endpoints(&self) -> &[Endpoint];
    /// Begins to run one of them. A source that cannot be run is dropped.
    fn start(&self, source: StripeSource, endpoint: Endpoint, config: ClientConfig);
}

/// Outcome of all sources.
#[derive(Debug, Default)]
pub(crate) struct StripeReport {
    /// By source, in the order of their endpoints.
    pub(crate) sources: Vec<SourceReport>,
}

impl StripeReport {
    /// Bytes brought. The last unit counts as a whole one where units are found again.
    pub(crate) fn unit_bytes(&self) -> u64 {
        let bytes = self.sources.iter().map(|source| source.bytes).sum::<u64>();
        bytes.next_multiple_of(UNIT_BYTES as u64)
    }
}

/// A file that is fetched from several sources.
pub(crate) struct Striping {
    work: Arc<Work>,
    /// Locks the part file.
    part: Option<PartFile>,
    disk: DiskQueue,
    notes: Receiver<Note>,
    /// By source.
    is_running: Vec<bool>,
    reported_bytes: u64,
    report: StripeReport,
}

impl Striping {
    /// Begins to fetch what the sources have to the part file.
    pub(crate) fn begin(
        plan: ObjectPlan,
        StripedPart { part, file }: StripedPart,
        disk: DiskQueue,
        (config, runner): (&ClientConfig, &dyn StripeRunner),
    ) -> Self {
        let size = plan.size.unwrap_or(0);
        let target = part.target();
        let endpoints = runner.endpoints().iter().take(SOURCES_MAX);
        let work = Arc::new(Work {
            plan,
            file: RwLock::new(Some(file)),
            disk: target.disk.clone(),
            shown: target.shown.clone(),
            clock: Clock::new(),
            pieces: Mutex::new(Pieces::new(size, endpoints.len())),
            changed: Condvar::new(),
            fetched_bytes: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let (sender, notes) = channel();
        let is_running = vec![true; endpoints.len()];
        let sources = endpoints.clone().map(SourceReport::begin).collect();
        for (number, endpoint) in endpoints.enumerate() {
            let source = StripeSource::new(&work, number, endpoint, sender.clone(), config.retries);
            runner.start(source, endpoint.clone(), config_for(config));
        }
        let (reported_bytes, report) = (0, StripeReport { sources });
        let part = Some(part);
        Striping { work, part, disk, notes, is_running, reported_bytes, report }
    }

    /// Takes what the sources have reported, and passes on what a caller wants to hear.
    pub(crate) fn report_to(&mut self, events: &mut dyn Progress) {
        while let Ok(note) = self.notes.try_recv() {
            match note {
                Note::Refused { what, endpoint } => {
                    let (what, endpoint) = (&what[..], Some(&endpoint[..]));
                    let path = &*self.work.shown;
                    events.on_event(Event::Refused { path, what, endpoint });
                }
                Note::Ended(source, report) => {
                    self.is_running[source] = false;
                    self.report.sources[source] = report;
                }
            }
        }
        let fetched_bytes = self.work.fetched_bytes.load(Ordering::Relaxed);
        let bytes = fetched_bytes - std::mem::replace(&mut self.reported_bytes, fetched_bytes);
        if bytes > 0 {
            events.on_event(Event::Fetched { bytes });
        }
    }

    /// Every source has ended, or the file is whole and those that have not were never given
    /// anything, for example because they are still connecting.
    pub(crate) fn is_done(&self) -> bool {
        let pieces = self.work.pieces();
        let mut running = (0..self.is_running.len()).filter(|source| self.is_running[*source]);
        match pieces.is_complete() {
            true => running.all(|source| !pieces.is_tried(source)),
            false => running.next().is_none(),
        }
    }

    /// The outcome; the part file is free again.
    pub(crate) fn into_report(mut self) -> StripeReport {
        let pieces = self.work.pieces();
        for (source, report) in self.report.sources.iter_mut().enumerate() {
            report.bytes = pieces.bytes_of(source);
        }
        drop(pieces);
        self.report.sources.sort_by(|a, b| a.endpoint.cmp(&b.endpoint));
        std::mem::take(&mut self.report)
    }
}

impl Drop for Striping {
    fn drop(&mut self) {
        self.work.is_over.store(true, Ordering::Relaxed);
        self.work.changed.notify_all();
        tracing::trace!(path = %self.work.shown.display(), "no more pieces are given out");
        let (work, part) = (Arc::clone(&self.work), self.part.take());
        self.disk.post(move |_| {
            work.close();
            drop(part);
        });
    }
}

/// Watches the download that follows: what the sources have brought was reported already.
pub(crate) struct Remainder<'a> {
    inner: Box<dyn Progress + 'a>,
    reported_bytes: u64,
}

impl<'a> Remainder<'a> {
    pub(crate) fn new(inner: Box<dyn Progress + 'a>, reported_bytes: u64) -> Self {
        Remainder { inner, reported_bytes }
    }
}

impl Progress for Remainder<'_> {
    fn on_event(&mut self, event: Event<'_>) {
        let Event::Reused { bytes } = event else { return self.inner.on_event(event) };
        let known = bytes.min(self.reported_bytes);
        self.reported_bytes -= known;
        if bytes > known {
            self.inner.on_event(Event::Reused { bytes: bytes - known });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::download::disk_queue::DiskAccess;

    /// Sources that go on connecting for ever.
    struct Connecting {
        endpoints: Vec<Endpoint>,
        sources: RefCell<Vec<StripeSource>>,
    }

    impl StripeRunner for Connecting {
        fn endpoints(&self) -> &[Endpoint] {
            &self.endpoints
        }

        fn start(&self, source: StripeSource, _: Endpoint, _: ClientConfig) {
            self.sources.borrow_mut().push(source);
        }
    }

    #[test]
    fn a_source_that_is_still_connecting_does_not_keep_the_part_file_locked() {
        let directory = tempfile::tempdir().unwrap();
        let target = Target::at(&directory.path().join("f"), &Disk::default()).unwrap();
        let open = || StripedPart::open(&target, SIZE_MIN);
        let runner = Connecting {
            endpoints: vec!["tcp://192.0.2.1:6363".parse().unwrap()],
            sources: RefCell::default(),
        };
        let plan = ObjectPlan {
            name: "/f/v=1".parse().unwrap(),
            size: Some(SIZE_MIN),
            segment_bytes: Some(8192),
            last_segment: None,
            proof: Proof::Packets,
            hints: Vec::new(),
        };
        let disk = DiskAccess::new(None, Arc::new(())).queue(&target.shown);
        let needs: (&ClientConfig, &dyn StripeRunner) = (&ClientConfig::default(), &runner);
        let striping = Striping::begin(plan, open().unwrap().unwrap(), disk, needs);
        assert!(matches!(open(), Err(ClientError::Busy { .. })));
        drop(striping);
        assert_eq!(runner.sources.borrow().len(), 1);
        assert!(open().is_ok(), "the next download finds it free");
    }
}
