//! One large file from several sources at once.
//!
//! Each source has a thread, a connection and so a window of its own, which the session wing runs
//! ([`StripeRunner`]). Pieces of the file wait in one queue, and whoever has room takes the next,
//! so a fast source does more. A source that fails, falls silent or keeps sending what does not
//! verify is left; its pieces go back to the queue. Meanwhile the engine goes on with other calls.
//!
//! Verified bytes are written to the part file at once, and that is all: an ordinary download
//! follows, finds them there, checks them once more, fetches what is missing and puts the file in
//! place. So nothing that goes wrong here can do more harm than cost time.
//!
//! Invariants: only what the root verifies is written; each piece is with one source at a time;
//! a thread reports its end after its last use of the part file.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use byname_io::Endpoint;
use byname_packet::{Data, NameRef};
use byname_security::tree::UNIT_BYTES;
use byname_transfer::fetch::{FetchConfig, NackKind};
use byname_transfer::flow::Flow;
use byname_transfer::reader::{ObjectPlan, Proof, Reader, Selection};
use byname_transfer::request::{Context, Request};
use byname_transfer::verify::Output;

use crate::config::{ClientConfig, Stop, nanoseconds};
use crate::download::disk::Disk;
use crate::download::part_file::{PartFile, Target};
use crate::download::progress::{Event, Progress, SourceReport};
use crate::download::reading::in_words;
use crate::engine::job::{Job, JobSource};
use crate::engine::shared::Shared;
use crate::error::ClientError;

/// Smaller files come from one source.
const SIZE_MIN: u64 = 16 << 20;
/// Bytes that a source takes at a time: four nodes of the tree.
const PIECE_BYTES: u64 = 8 << 20;
/// Pieces that one source works on: the next begins before the one before has ended.
pub(crate) const PIECES_AT_ONCE: usize = 2;
/// Sources asked at the same time.
const SOURCES_MAX: usize = 8;
/// A source that says nothing for so long is left.
const SILENCE: Duration = Duration::from_secs(3);
/// Pause between two looks whether to stop, for who waits for others.
const LOOK_PAUSE: Duration = Duration::from_millis(100);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Units that may be spoiled before a source is left, and the share beyond that: one in so many.
const REFUSED_FREE: u64 = 3;
const UNITS_PER_REFUSAL: u64 = 32;

/// Shared by all sources.
struct Work {
    plan: ObjectPlan,
    file: File,
    disk: Disk,
    shown: PathBuf,
    pieces: Mutex<Pieces>,
    /// A piece came back, or the last one was brought.
    changed: Condvar,
    /// Verified bytes that were written.
    fetched_bytes: AtomicU64,
    /// Nobody wants the file any more, or the disk refuses to take more; then the ordinary
    /// download will say why.
    is_over: AtomicBool,
}

/// Pieces of the file.
struct Pieces {
    waiting: VecDeque<Range<u64>>,
    /// Count of those with sources.
    taken: usize,
}

impl Work {
    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Range<u64>> {
        if self.is_over.load(Ordering::Relaxed) {
            return None;
        }
        let mut pieces = self.pieces();
        let piece = pieces.waiting.pop_front()?;
        pieces.taken += 1;
        Some(piece)
    }

    /// A source is done with a piece; what it did not bring comes back.
    fn give_back(&self, missing: Option<Range<u64>>) {
        let mut pieces = self.pieces();
        pieces.taken -= 1;
        pieces.waiting.extend(missing);
        drop(pieces);
        self.changed.notify_all();
    }

    /// Waits while other sources have pieces that might come back. False if there is nothing left.
    fn wait(&self, stop: &Stop) -> bool {
        let mut pieces = self.pieces();
        loop {
            let is_over = self.is_over.load(Ordering::Relaxed) || stop.is_requested();
            if !pieces.waiting.is_empty() || pieces.taken == 0 || is_over {
                return !pieces.waiting.is_empty() && !is_over;
            }
            let waited = self.changed.wait_timeout(pieces, LOOK_PAUSE);
            pieces = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        if self.disk.write_all_at(&self.file, &self.shown, bytes, offset).is_err() {
            self.is_over.store(true, Ordering::Relaxed);
        }
    }
}

/// Report of a source to its download.
enum Note {
    Refused { what: String, endpoint: String },
    Ended(SourceReport),
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
        ..ClientConfig::default()
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

/// A file on its way from several sources.
pub(crate) struct Striping {
    work: Arc<Work>,
    /// Locks the part file.
    part: PartFile,
    notes: Receiver<Note>,
    running: usize,
    reported_bytes: u64,
    report: StripeReport,
}

impl Striping {
    /// Begins to fetch what the sources have to the part file. `None` if an earlier run has left
    /// something there.
    pub(crate) fn begin(
        plan: ObjectPlan,
        target: &Target,
        config: &ClientConfig,
        runner: &dyn StripeRunner,
    ) -> Result<Option<Self>, ClientError> {
        let Proof::Root { size, .. } = plan.proof else { return Ok(None) };
        let part = PartFile::open(target.clone(), Some(size))?;
        if part.claimed_units(size).iter().next().is_some() {
            return Ok(None);
        }
        let pieces = (0..size.div_ceil(PIECE_BYTES)).map(|number| {
            let start = number * PIECE_BYTES;
            start..(start + PIECE_BYTES).min(size)
        });
        let work = Arc::new(Work {
            plan,
            file: part.file().try_clone().map_err(|error| target.error(error))?,
            disk: target.disk.clone(),
            shown: target.shown.clone(),
            pieces: Mutex::new(Pieces { waiting: pieces.collect(), taken: 0 }),
            changed: Condvar::new(),
            fetched_bytes: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let (sender, notes) = channel();
        let mut running = 0;
        for endpoint in runner.endpoints().iter().take(SOURCES_MAX) {
            let source = StripeSource::new(&work, endpoint, sender.clone(), config.retries);
            running += 1;
            runner.start(source, endpoint.clone(), config_for(config));
        }
        let (reported_bytes, report) = (0, StripeReport::default());
        let striping = Striping { work, part, notes, running, reported_bytes, report };
        Ok(Some(striping))
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
                Note::Ended(report) => {
                    self.running -= 1;
                    self.report.sources.push(report);
                }
            }
        }
        let fetched_bytes = self.work.fetched_bytes.load(Ordering::Relaxed);
        let bytes = fetched_bytes - std::mem::replace(&mut self.reported_bytes, fetched_bytes);
        if bytes > 0 {
            events.on_event(Event::Fetched { bytes });
        }
    }

    /// Every source has ended.
    pub(crate) fn is_done(&self) -> bool {
        self.running == 0
    }

    /// The outcome; the part file is free again.
    pub(crate) fn into_report(mut self) -> StripeReport {
        self.report.sources.sort_by(|a, b| a.endpoint.cmp(&b.endpoint));
        std::mem::take(&mut self.report)
    }
}

impl Drop for Striping {
    fn drop(&mut self) {
        self.work.is_over.store(true, Ordering::Relaxed);
        self.work.changed.notify_all();
        tracing::trace!(path = %self.part.shown().display(), "no more pieces are given out");
    }
}

/// One source: gives out pieces as jobs and takes them back.
pub(crate) struct StripeSource {
    work: Arc<Work>,
    fetch: FetchConfig,
    /// The last field: it reports the end when the part file is not used any more.
    ending: Ending,
}

/// Reports the end of a source when it is dropped, however that comes.
struct Ending {
    report: SourceReport,
    notes: Sender<Note>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let endpoint = std::mem::take(&mut self.report.endpoint);
        let left = self.report.left.take();
        // The download may be gone.
        let _ = self.notes.send(Note::Ended(SourceReport { endpoint, left, ..self.report }));
    }
}

impl StripeSource {
    fn new(work: &Arc<Work>, endpoint: &Endpoint, notes: Sender<Note>, retries: u32) -> Self {
        let endpoint = endpoint.to_string();
        let report = SourceReport { endpoint, bytes: 0, refused_count: 0, left: None };
        let fetch =
            FetchConfig { retries, silence_ns: nanoseconds(SILENCE), ..FetchConfig::default() };
        StripeSource { work: Arc::clone(work), fetch, ending: Ending { report, notes } }
    }

    /// Waits for pieces that other sources give back. False if there is nothing left to do, or
    /// this source is no good.
    pub(crate) fn wait(&self, stop: &Stop) -> bool {
        self.ending.report.left.is_none() && self.work.wait(stop)
    }

    /// The source cannot be used any more.
    pub(crate) fn leave(&mut self, error: &ClientError) {
        self.ending.report.left.get_or_insert_with(|| error.to_string());
    }

    /// Spoils more than a network does.
    fn is_lying(&self) -> bool {
        let units = self.ending.report.bytes / UNIT_BYTES as u64;
        self.ending.report.refused_count > REFUSED_FREE + units / UNITS_PER_REFUSAL
    }
}

impl JobSource for StripeSource {
    type Job = Piece;

    fn next_job(&mut self, _: &mut Shared, _: u64) -> Option<Piece> {
        if self.ending.report.left.is_some() {
            return None;
        }
        let range = self.work.take()?;
        let selection = Selection::Bytes(range.clone());
        let mut reader = Reader::new(self.work.plan.clone(), selection, self.fetch);
        reader.buffer_spans();
        let (notes, endpoint) = (self.ending.notes.clone(), self.ending.report.endpoint.clone());
        let (work, left) = (Arc::clone(&self.work), None);
        Some(Piece { work, range, reader, notes, endpoint, bytes: 0, left, is_settled: false })
    }

    fn take_done(&mut self, mut piece: Piece) {
        self.ending.report.bytes += piece.bytes;
        self.ending.report.refused_count += piece.reader.refused_count();
        piece.is_settled = true;
        let is_missing = !piece.reader.is_finished() || piece.left.is_some();
        self.work.give_back(is_missing.then(|| piece.range.clone()));
        if let Some(error) = piece.left.take() {
            self.leave(&error);
        } else if self.is_lying() {
            self.ending
                .report
                .left
                .get_or_insert_with(|| "it sends what does not verify".to_owned());
        }
    }
}

/// One piece of the file on its way from one source.
pub(crate) struct Piece {
    work: Arc<Work>,
    range: Range<u64>,
    reader: Reader,
    notes: Sender<Note>,
    endpoint: String,
    bytes: u64,
    /// Why it did not come.
    left: Option<ClientError>,
    is_settled: bool,
}

impl Drop for Piece {
    /// Of a source whose connection ended in the middle.
    fn drop(&mut self) {
        if !self.is_settled {
            self.work.give_back(Some(self.range.clone()));
        }
    }
}

impl Piece {
    /// Writes what `act` makes the reader hand out, and reports it.
    fn write<R>(&mut self, act: impl FnOnce(&mut Reader, &mut Output<'_>) -> R) -> R {
        let Piece { work, reader, bytes, .. } = self;
        let before = *bytes;
        let result = act(reader, &mut |offset, verified| {
            work.write(offset, verified);
            *bytes += verified.len() as u64;
        });
        if *bytes > before {
            work.fetched_bytes.fetch_add(*bytes - before, Ordering::Relaxed);
        }
        while let Some(refused) = self.reader.poll_refused() {
            let (what, endpoint) = (in_words(&refused), self.endpoint.clone());
            let _ = self.notes.send(Note::Refused { what, endpoint });
        }
        if let Some(error) = self.reader.failure() {
            self.left.get_or_insert_with(|| error.clone().into());
        }
        result
    }
}

impl Job for Piece {
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool {
        self.write(|reader, out| reader.handle_data(data, is_marked, context, out))
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        self.write(|reader, _| reader.handle_nack(name, kind, context));
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.write(|reader, _| reader.handle_timeout(context));
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        if let Some(request) = self.reader.poll_request(context) {
            return Some(request);
        }
        // The network has enough to do; now there is time for what came.
        if !self.reader.has_buffered_spans() {
            return None;
        }
        let now_ns = context.now_ns;
        self.write(|reader, out| reader.settle(now_ns, out));
        self.reader.poll_request(context)
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        match self.reader.has_buffered_spans() {
            true => Some(0),
            false => self.reader.poll_deadline(flow),
        }
    }

    fn is_done(&self) -> bool {
        let is_over = self.work.is_over.load(Ordering::Relaxed);
        self.left.is_some() || self.reader.is_finished() || is_over
    }

    fn refused_count(&mut self) -> u64 {
        self.reader.refused_count()
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.reader.abandon(flow);
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
