//! One source of a striped file, on its thread: pieces as jobs, and why it was left.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use byname_io::Endpoint;
use byname_packet::{Data, NameRef};
use byname_security::tree::UNIT_BYTES;
use byname_transfer::fetch::{FetchConfig, NackKind};
use byname_transfer::flow::Flow;
use byname_transfer::reader::{Reader, Selection};
use byname_transfer::request::{Context, Request};
use byname_transfer::verify::Output;

use super::pieces::Assignment;
use super::{Note, SILENCE, Work};
use crate::config::{Stop, nanoseconds};
use crate::download::progress::SourceReport;
use crate::download::reading::in_words;
use crate::engine::answers::AnswerPath;
use crate::engine::job::{Job, JobSource};
use crate::engine::shared::Shared;
use crate::error::ClientError;

/// Units that may be spoiled before a source is left, and the share beyond that: one in so many.
const REFUSED_FREE: u64 = 3;
const UNITS_PER_REFUSAL: u64 = 32;

/// One source: gives out pieces as jobs and takes them back.
pub(crate) struct StripeSource {
    work: Arc<Work>,
    fetch: FetchConfig,
    /// Piece obtained by waiting, not yet begun.
    next: Option<Piece>,
    /// The last field: it reports the end when the part file is not used any more.
    ending: Ending,
}

/// Reports the end of a source when it is dropped, however that comes.
struct Ending {
    source: usize,
    report: SourceReport,
    notes: Sender<Note>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let endpoint = std::mem::take(&mut self.report.endpoint);
        let left = self.report.left.take();
        let answer_paths = std::mem::take(&mut self.report.answer_paths);
        let report = SourceReport { endpoint, left, answer_paths, ..self.report };
        // The download may be gone.
        let _ = self.notes.send(Note::Ended(self.source, report));
    }
}

impl StripeSource {
    pub(super) fn new(
        work: &Arc<Work>,
        source: usize,
        endpoint: &Endpoint,
        notes: Sender<Note>,
        retries: u32,
    ) -> Self {
        let report = SourceReport::begin(endpoint);
        let fetch =
            FetchConfig { retries, silence_ns: nanoseconds(SILENCE), ..FetchConfig::default() };
        let ending = Ending { source, report, notes };
        StripeSource { work: Arc::clone(work), fetch, next: None, ending }
    }

    /// Its connection ends; its answers took these paths.
    pub(crate) fn take_paths(&mut self, answer_paths: Vec<AnswerPath>) {
        self.ending.report.answer_paths = answer_paths;
    }

    /// Waits for pieces that other sources give back or do not get done. False if there is nothing
    /// left to do, or this source is no good.
    pub(crate) fn wait(&mut self, stop: &Stop) -> bool {
        if self.ending.report.left.is_none() {
            let assignment = self.work.wait(self.ending.source, stop);
            self.next = assignment.map(|assignment| self.piece(assignment));
            self.check_left();
        }
        self.next.is_some()
    }

    /// The source cannot be used any more.
    pub(crate) fn leave(&mut self, error: &ClientError) {
        self.leave_because(&error.to_string());
    }

    fn leave_because(&mut self, why: &str) {
        self.ending.report.left.get_or_insert_with(|| why.to_owned());
        self.work.pieces().leave(self.ending.source);
    }

    /// Says why, if nothing is given to this source any more.
    fn check_left(&mut self) {
        let is_left = self.work.pieces().is_left(self.ending.source);
        if is_left && self.ending.report.left.is_none() {
            self.leave_because("it is slower than a quarter of the others");
        }
    }

    /// Spoils more than a network does.
    fn is_lying(&self) -> bool {
        let units = self.work.pieces().bytes_of(self.ending.source) / UNIT_BYTES as u64;
        self.ending.report.refused_count > REFUSED_FREE + units / UNITS_PER_REFUSAL
    }

    fn piece(&self, assignment: Assignment) -> Piece {
        let selection = Selection::Bytes(assignment.range.clone());
        let mut reader = Reader::new(self.work.plan.clone(), selection, self.fetch);
        reader.buffer_spans();
        let Ending { source, report, notes } = &self.ending;
        let (endpoint, notes) = (report.endpoint.clone(), notes.clone());
        let (work, source) = (Arc::clone(&self.work), *source);
        Piece { work, source, assignment, reader, notes, endpoint, left: None }
    }
}

impl JobSource for StripeSource {
    type Job = Piece;

    fn next_job(&mut self, _: &mut Shared, _: u64) -> Option<Piece> {
        if self.next.is_some() {
            return self.next.take();
        }
        if self.ending.report.left.is_some() {
            return None;
        }
        let assignment = self.work.take(self.ending.source);
        self.check_left();
        Some(self.piece(assignment?))
    }

    fn take_done(&mut self, mut piece: Piece) {
        self.ending.report.refused_count += piece.reader.refused_count();
        if let Some(error) = piece.left.take() {
            self.leave(&error);
        } else if self.is_lying() {
            self.leave_because("it sends what does not verify");
        }
        self.check_left();
    }
}

/// One piece of the file in flight from one source.
pub(crate) struct Piece {
    work: Arc<Work>,
    source: usize,
    assignment: Assignment,
    reader: Reader,
    notes: Sender<Note>,
    endpoint: String,
    /// Why it did not come.
    left: Option<ClientError>,
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.work.end(self.source, &self.assignment);
    }
}

impl Piece {
    /// Writes what `act` makes the reader hand out, and reports it.
    fn write<R>(&mut self, act: impl FnOnce(&mut Reader, &mut Output<'_>) -> R) -> R {
        let Piece { work, source, assignment, reader, .. } = self;
        let mut spans: Vec<Range<u64>> = Vec::new();
        let result = act(reader, &mut |offset, verified| {
            work.write(offset, verified);
            let end = offset + verified.len() as u64;
            match spans.last_mut() {
                Some(last) if last.end == offset => last.end = end,
                _ => spans.push(offset..end),
            }
        });
        if !spans.is_empty() {
            let mut pieces = work.pieces();
            let bytes = spans.into_iter().map(|span| pieces.deliver(*source, assignment.id, span));
            work.fetched_bytes.fetch_add(bytes.sum(), Ordering::Relaxed);
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

    /// Nobody has brought it all yet, and this source shall go on.
    fn is_wanted(&self) -> bool {
        !self.work.is_over() && self.work.pieces().is_wanted(self.source, self.assignment.id)
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
        self.left.is_some() || self.reader.is_finished() || !self.is_wanted()
    }

    fn refused_by(&mut self, source: usize) -> u64 {
        self.reader.refused_by(source)
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.reader.abandon(flow);
    }
}
