//! One large file from several sources at once.
//!
//! Each source has a thread, a connection and so a window of its own. Pieces of the file wait in
//! one queue, and whoever has room takes the next, so a fast source does more. A source that fails,
//! falls silent or keeps sending what is not genuine is left; its pieces go back to the queue.
//!
//! What is proved is written to the part file at once, and that is all: an ordinary download
//! follows, finds it there, checks it once more, fetches what is missing and puts the file in
//! place. So nothing that goes wrong here can do more harm than cost time.
//!
//! Invariants: only what the root proves is written; each piece is with one source at a time;
//! when the last thread ends, so has every use of the part file.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use byname_io::Endpoint;
use byname_packet::{Data, NameRef};
use byname_security::tree::UNIT_BYTES;
use byname_transfer::fetch::{FetchConfig, NackKind};
use byname_transfer::flow::Flow;
use byname_transfer::reader::{ObjectPlan, Proof, Reader, Selection};
use byname_transfer::request::{Context, Request};
use byname_transfer::verify::Output;

use crate::config::{ClientConfig, Stop};
use crate::download::disk::Disk;
use crate::download::part_file::{PartFile, Target};
use crate::download::progress::{Event, Progress};
use crate::download::reading::in_words;
use crate::engine::job::{Job, JobSource};
use crate::error::ClientError;
use crate::session::driver::Driver;

/// Smaller files come from one source.
const SIZE_MIN: u64 = 16 << 20;
/// What a source takes at a time: four nodes of the tree.
const PIECE_BYTES: u64 = 8 << 20;
/// Pieces that one source works on: the next begins before the one before has ended.
const PIECES_AT_ONCE: usize = 2;
/// Sources asked at the same time.
const SOURCES_MAX: usize = 8;
/// A source that says nothing for so long is left.
const SILENCE: Duration = Duration::from_secs(3);
/// How often who waits for others looks whether it shall stop.
const LOOK_PAUSE: Duration = Duration::from_millis(100);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Units that may be spoiled before a source is left, and the share beyond that: one in so many.
const REFUSED_FREE: u64 = 3;
const UNITS_PER_REFUSAL: u64 = 32;

/// What a source has brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceReport {
    /// Where it is.
    pub endpoint: String,
    /// Proved bytes that came from it.
    pub bytes: u64,
    /// Pieces from it that were not genuine.
    pub refused_count: u64,
    /// Why it was left, if it was.
    pub left: Option<String>,
}

/// What is common to all sources.
struct Work<'a> {
    plan: &'a ObjectPlan,
    file: File,
    disk: Disk,
    shown: &'a Path,
    pieces: Mutex<Pieces>,
    /// A piece came back, or the last one was brought.
    changed: Condvar,
    /// The disk refuses to take more; the ordinary download will say why.
    is_over: AtomicBool,
}

/// Pieces of the file.
struct Pieces {
    waiting: VecDeque<Range<u64>>,
    /// How many are with sources.
    taken: usize,
}

impl Work<'_> {
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
        if self.disk.write_all_at(&self.file, self.shown, bytes, offset).is_err() {
            self.is_over.store(true, Ordering::Relaxed);
        }
    }
}

/// What threads tell the one that waits for them.
enum Note {
    Fetched(u64),
    Refused { what: String, endpoint: String },
    Ended(SourceReport),
}

/// Whether it is worth while.
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

/// Fetches what the sources have to the part file. Nothing happens if an earlier run has left
/// something there.
pub(crate) fn fetch(
    plan: &ObjectPlan,
    target: &Target,
    sources: &[Endpoint],
    config: &ClientConfig,
    progress: &mut dyn Progress,
) -> Result<Vec<SourceReport>, ClientError> {
    let Proof::Root { size, .. } = plan.proof else { return Ok(Vec::new()) };
    let part = PartFile::open(target.clone(), Some(size))?;
    if part.claimed_units(size).iter().next().is_some() {
        return Ok(Vec::new());
    }
    let file = part.file().try_clone().map_err(|error| target.error(error))?;
    let pieces = (0..size.div_ceil(PIECE_BYTES)).map(|number| {
        let start = number * PIECE_BYTES;
        start..(start + PIECE_BYTES).min(size)
    });
    let pieces = Mutex::new(Pieces { waiting: pieces.collect(), taken: 0 });
    let (disk, shown) = (target.disk.clone(), target.shown.as_path());
    let (changed, is_over) = (Condvar::new(), AtomicBool::new(false));
    let work = Work { plan, file, disk, shown, pieces, changed, is_over };
    let mut reports = Vec::new();
    std::thread::scope(|scope| {
        let (notes, told) = channel();
        for endpoint in sources.iter().take(SOURCES_MAX) {
            let source = Source::new(&work, endpoint, notes.clone(), config.retries);
            let config = config_for(config);
            scope.spawn(move || source.run(endpoint, config));
        }
        drop(notes);
        for note in told {
            match note {
                Note::Fetched(bytes) => progress.on_event(Event::Fetched { bytes }),
                Note::Refused { what, endpoint } => {
                    let (what, endpoint) = (&what[..], Some(&endpoint[..]));
                    progress.on_event(Event::Refused { path: shown, what, endpoint });
                }
                Note::Ended(report) => reports.push(report),
            }
        }
    });
    reports.sort_by(|a, b| a.endpoint.cmp(&b.endpoint));
    Ok(reports)
}

/// One source: gives out pieces as jobs and takes them back.
struct Source<'a> {
    work: &'a Work<'a>,
    report: SourceReport,
    notes: Sender<Note>,
    fetch: FetchConfig,
}

impl<'a> Source<'a> {
    fn new(work: &'a Work<'a>, endpoint: &Endpoint, notes: Sender<Note>, retries: u32) -> Self {
        let endpoint = endpoint.to_string();
        let report = SourceReport { endpoint, bytes: 0, refused_count: 0, left: None };
        let silence_ns = u64::try_from(SILENCE.as_nanos()).expect("seconds");
        let fetch = FetchConfig { retries, silence_ns, ..FetchConfig::default() };
        Source { work, report, notes, fetch }
    }

    /// Until nothing is left to do, or the source is no good.
    fn run(mut self, endpoint: &Endpoint, config: ClientConfig) {
        let stop = config.stop.clone();
        let connected = Driver::connect(std::slice::from_ref(endpoint), &config);
        let ended = connected.and_then(|mut driver| {
            loop {
                driver.run(&mut self, PIECES_AT_ONCE)?;
                if self.report.left.is_some() || !self.work.wait(&stop) {
                    return Ok(());
                }
            }
        });
        if let Err(error) = ended {
            self.leave(&error);
        }
        // Who waits for notes waits for all of them.
        let _ = self.notes.send(Note::Ended(self.report));
    }

    fn leave(&mut self, error: &ClientError) {
        self.report.left.get_or_insert_with(|| error.to_string());
    }

    /// Spoils more than a network does.
    fn is_lying(&self) -> bool {
        let units = self.report.bytes / UNIT_BYTES as u64;
        self.report.refused_count > REFUSED_FREE + units / UNITS_PER_REFUSAL
    }
}

impl<'a> JobSource for Source<'a> {
    type Job = Piece<'a>;

    fn next_job(&mut self, _: u64) -> Option<Piece<'a>> {
        if self.report.left.is_some() {
            return None;
        }
        let range = self.work.take()?;
        let selection = Selection::Bytes(range.clone());
        let mut reader = Reader::new(self.work.plan.clone(), selection, self.fetch);
        reader.buffer_spans();
        let (notes, endpoint) = (self.notes.clone(), self.report.endpoint.clone());
        let (work, left) = (self.work, None);
        Some(Piece { work, range, reader, notes, endpoint, bytes: 0, left, is_settled: false })
    }

    fn take_done(&mut self, mut piece: Piece<'a>) {
        self.report.bytes += piece.bytes;
        self.report.refused_count += piece.reader.refused_count();
        piece.is_settled = true;
        let is_missing = !piece.reader.is_finished() || piece.left.is_some();
        self.work.give_back(is_missing.then(|| piece.range.clone()));
        if let Some(error) = piece.left.take() {
            self.leave(&error);
        } else if self.is_lying() {
            self.report.left.get_or_insert_with(|| "it sends what is not genuine".to_owned());
        }
    }
}

/// One piece of the file on its way from one source.
struct Piece<'a> {
    work: &'a Work<'a>,
    range: Range<u64>,
    reader: Reader,
    notes: Sender<Note>,
    endpoint: String,
    bytes: u64,
    /// Why it did not come.
    left: Option<ClientError>,
    is_settled: bool,
}

impl Drop for Piece<'_> {
    /// Of a source whose connection ended in the middle.
    fn drop(&mut self) {
        if !self.is_settled {
            self.work.give_back(Some(self.range.clone()));
        }
    }
}

impl Piece<'_> {
    /// Writes what `act` makes the reader hand out, and tells of it.
    fn write<R>(&mut self, act: impl FnOnce(&mut Reader, &mut Output<'_>) -> R) -> R {
        let Piece { work, reader, bytes, .. } = self;
        let before = *bytes;
        let result = act(reader, &mut |offset, proved| {
            work.write(offset, proved);
            *bytes += proved.len() as u64;
        });
        if *bytes > before {
            let _ = self.notes.send(Note::Fetched(*bytes - before));
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

impl Job for Piece<'_> {
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

/// Watches the download that follows: what the sources have brought was told already.
pub(crate) struct Rest<'a> {
    inner: &'a mut dyn Progress,
    told_bytes: u64,
}

impl<'a> Rest<'a> {
    pub(crate) fn new(inner: &'a mut dyn Progress, told_bytes: u64) -> Self {
        Rest { inner, told_bytes }
    }
}

impl Progress for Rest<'_> {
    fn on_event(&mut self, event: Event<'_>) {
        let Event::Reused { bytes } = event else { return self.inner.on_event(event) };
        let known = bytes.min(self.told_bytes);
        self.told_bytes -= known;
        if bytes > known {
            self.inner.on_event(Event::Reused { bytes: bytes - known });
        }
    }
}
