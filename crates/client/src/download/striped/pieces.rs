//! The range scheduler of a striped file: which source gets which piece, and when a source is left.
//!
//! No threads, files or clocks: the owner says what came from whom and when, and asks what to do.
//! A source gets pieces by its measured rate, smaller ones towards the end. When nothing waits any
//! more, an idle source is given what is missing of the piece that would be done last, while the
//! source that has it goes on: whoever brings a byte first counts, and the other's job ends. A
//! source slower than a quarter of the others is left.
//!
//! Invariants: a byte that is not verified waits or is missing in exactly one piece; a piece has
//! one or two sources; a source that was left gets nothing.

use std::collections::VecDeque;
use std::ops::Range;

/// Pieces begin at nodes of the tree, so that no two sources ask for the same node.
const NODE_BYTES: u64 = 2 << 20;
/// Largest piece.
const PIECE_BYTES_MAX: u64 = 8 << 20;
/// A piece should take about so long.
const PIECE_NS: u64 = 250_000_000;
/// Time over which a rate is measured.
const WINDOW_NS: u64 = 200_000_000;
/// Time for which a source must have had work before it may be left for its rate.
const TRIAL_NS: u64 = 1_000_000_000;
/// A source is left if it has less than the mean of the others divided by this.
const SLOW_DIVISOR: u64 = 4;
/// Taking over must save at least so much.
const GAIN_NS: u64 = 20_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Number of a piece that a source works on.
pub(super) type PieceId = u64;

/// Work for a source: bytes to ask for, all of them missing or between missing ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) id: PieceId,
    pub(super) range: Range<u64>,
}

/// A piece in flight, and who works on it.
#[derive(Debug)]
struct Shared {
    id: PieceId,
    /// In order; not empty.
    missing: Vec<Range<u64>>,
    /// One or two.
    sources: Vec<usize>,
}

impl Shared {
    fn missing_bytes(&self) -> u64 {
        self.missing.iter().map(|range| range.end - range.start).sum()
    }

    /// Takes a verified span out; bytes that were still missing.
    fn subtract(&mut self, span: &Range<u64>) -> u64 {
        let before = self.missing_bytes();
        let touches = |range: &Range<u64>| range.start < span.end && span.start < range.end;
        if !self.missing.iter().any(touches) {
            return 0;
        }
        let mut left = Vec::with_capacity(self.missing.len() + 1);
        for range in self.missing.drain(..) {
            let below = range.start..range.end.min(span.start);
            let above = range.start.max(span.end)..range.end;
            left.extend([below, above].into_iter().filter(|part| part.start < part.end));
        }
        self.missing = left;
        before - self.missing_bytes()
    }
}

/// Rate of a source while it has work.
#[derive(Debug, Default)]
struct Meter {
    bytes_per_s: Option<u64>,
    window_bytes: u64,
    /// Begin of the window; `None` while the source has no work.
    since_ns: Option<u64>,
    /// Time with work, without the window.
    busy_ns: u64,
}

impl Meter {
    fn begin(&mut self, now_ns: u64) {
        self.since_ns.get_or_insert(now_ns);
    }

    /// Ends the window if it is long enough, or the only one there is.
    fn roll(&mut self, now_ns: u64, is_idle: bool) {
        let Some(since_ns) = self.since_ns else { return };
        let elapsed_ns = now_ns.saturating_sub(since_ns);
        let is_first = is_idle && self.bytes_per_s.is_none() && elapsed_ns > 0;
        if elapsed_ns >= WINDOW_NS || is_first {
            let sample = rate(self.window_bytes, elapsed_ns);
            self.bytes_per_s =
                Some(self.bytes_per_s.map_or(sample, |old| old - old / 4 + sample / 4));
        } else if !is_idle {
            return;
        }
        self.busy_ns = self.busy_ns.saturating_add(elapsed_ns);
        self.window_bytes = 0;
        self.since_ns = (!is_idle).then_some(now_ns);
    }

    /// Time for so many bytes; `None` if the rate is not known.
    fn time_ns(&self, bytes: u64) -> Option<u64> {
        let bytes_per_s = self.bytes_per_s?;
        let ns = u128::from(bytes) * u128::from(SECOND_NS) / u128::from(bytes_per_s.max(1));
        Some(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

fn rate(bytes: u64, elapsed_ns: u64) -> u64 {
    let bytes_per_s = u128::from(bytes) * u128::from(SECOND_NS) / u128::from(elapsed_ns.max(1));
    u64::try_from(bytes_per_s).unwrap_or(u64::MAX)
}

#[derive(Debug, Default)]
struct Source {
    meter: Meter,
    is_left: bool,
    /// Verified bytes that it brought first.
    bytes: u64,
    /// Pieces that it works on; their jobs may run a little longer than the pieces.
    jobs: usize,
    is_tried: bool,
}

/// See the module.
///
/// * **handle**: [`deliver`](Pieces::deliver), [`end`](Pieces::end).
/// * **command**: [`leave`](Pieces::leave).
/// * **poll**: [`take`](Pieces::take), [`is_wanted`](Pieces::is_wanted),
///   [`is_complete`](Pieces::is_complete).
#[derive(Debug)]
pub(super) struct Pieces {
    /// In the order in which they are given out.
    waiting: VecDeque<Range<u64>>,
    pieces: Vec<Shared>,
    sources: Vec<Source>,
    next_id: PieceId,
}

impl Pieces {
    /// A file of which nothing is there.
    pub(super) fn new(size: u64, source_count: usize) -> Self {
        Pieces {
            waiting: (size > 0).then_some(0..size).into_iter().collect(),
            pieces: Vec::new(),
            sources: (0..source_count).map(|_| Source::default()).collect(),
            next_id: 0,
        }
    }

    /// Every byte is verified.
    pub(super) fn is_complete(&self) -> bool {
        self.waiting.is_empty() && self.pieces.is_empty()
    }

    /// The source was given something, ever.
    pub(super) fn is_tried(&self, source: usize) -> bool {
        self.sources[source].is_tried
    }

    /// Verified bytes that this source brought first.
    pub(super) fn bytes_of(&self, source: usize) -> u64 {
        self.sources[source].bytes
    }

    /// The source shall not be asked any more.
    pub(super) fn is_left(&self, source: usize) -> bool {
        self.sources[source].is_left
    }

    /// The source shall go on with this piece.
    pub(super) fn is_wanted(&self, source: usize, id: PieceId) -> bool {
        !self.sources[source].is_left && self.pieces.iter().any(|piece| piece.id == id)
    }

    /// The next piece for a source, if there is one for it now.
    pub(super) fn take(&mut self, source: usize, now_ns: u64) -> Option<Assignment> {
        self.leave_slow(now_ns);
        if self.sources[source].is_left {
            return None;
        }
        let assignment = self.take_waiting(source).or_else(|| self.take_over(source, now_ns))?;
        self.sources[source].meter.begin(now_ns);
        self.sources[source].jobs += 1;
        self.sources[source].is_tried = true;
        Some(assignment)
    }

    fn take_waiting(&mut self, source: usize) -> Option<Assignment> {
        let bytes_max = self.piece_bytes(source);
        let range = self.waiting.front_mut()?;
        let end = (range.start + bytes_max) / NODE_BYTES * NODE_BYTES;
        let piece = range.start..end.min(range.end);
        range.start = piece.end;
        if range.start >= range.end {
            self.waiting.pop_front();
        }
        let id = self.next_id;
        self.next_id += 1;
        self.pieces.push(Shared { id, missing: vec![piece.clone()], sources: vec![source] });
        Some(Assignment { id, range: piece })
    }

    /// By rate, and no more than the source's part of a half of what is left.
    fn piece_bytes(&self, source: usize) -> u64 {
        let waiting_bytes = self.waiting.iter().map(|range| range.end - range.start).sum::<u64>();
        let part_bytes = waiting_bytes / (2 * self.sources.len().max(1) as u64);
        let bytes_per_s = self.sources[source].meter.bytes_per_s.unwrap_or(0);
        let rated_bytes = bytes_per_s.saturating_mul(PIECE_NS / 1_000_000) / 1000;
        rated_bytes.min(part_bytes).clamp(NODE_BYTES, PIECE_BYTES_MAX)
    }

    /// Shares the piece that would be done last, if this source has nothing to do and is faster.
    fn take_over(&mut self, source: usize, now_ns: u64) -> Option<Assignment> {
        if self.sources[source].jobs > 0 {
            return None;
        }
        let (sources, own) = (&self.sources, &self.sources[source].meter);
        let gain = |piece: &Shared| {
            let &[other] = &piece.sources[..] else { return None };
            let bytes = piece.missing_bytes();
            let other_ns = time_left_ns(&sources[other].meter, bytes, now_ns)?;
            // Who has not been tried is as good as the other until it is.
            let own_ns = own.time_ns(bytes).unwrap_or(other_ns / 2);
            let gain_ns = other_ns.saturating_sub(own_ns.saturating_mul(2));
            (gain_ns >= GAIN_NS || own.bytes_per_s.is_none() && other_ns >= GAIN_NS)
                .then_some(other_ns)
        };
        let slowest = self.pieces.iter_mut().filter_map(|piece| Some((gain(piece)?, piece)));
        let (_, piece) = slowest.max_by_key(|(other_ns, _)| *other_ns)?;
        piece.sources.push(source);
        let range = piece.missing.first()?.start..piece.missing.last()?.end;
        Some(Assignment { id: piece.id, range })
    }

    /// A source has brought a verified span. The count of its bytes that nobody had brought before.
    pub(super) fn deliver(&mut self, source: usize, id: PieceId, span: Range<u64>) -> u64 {
        let Some(place) = self.pieces.iter().position(|piece| piece.id == id) else { return 0 };
        let bytes = self.pieces[place].subtract(&span);
        if self.pieces[place].missing.is_empty() {
            self.pieces.swap_remove(place);
        }
        self.sources[source].bytes += bytes;
        // What came twice says as much about the rate.
        self.sources[source].meter.window_bytes += span.end - span.start;
        bytes
    }

    /// A source's job is over. What is still missing waits again, unless somebody else has it.
    pub(super) fn end(&mut self, source: usize, id: PieceId, now_ns: u64) {
        self.release(source, id);
        let one = &mut self.sources[source];
        one.jobs = one.jobs.saturating_sub(1);
        let is_idle = one.jobs == 0;
        one.meter.roll(now_ns, is_idle);
    }

    fn release(&mut self, source: usize, id: PieceId) {
        let Some(place) = self.pieces.iter().position(|piece| piece.id == id) else { return };
        let piece = &mut self.pieces[place];
        piece.sources.retain(|one| *one != source);
        if piece.sources.is_empty() {
            let piece = self.pieces.swap_remove(place);
            self.waiting.extend(piece.missing);
        }
    }

    /// The source is no good: what it has goes to others.
    pub(super) fn leave(&mut self, source: usize) {
        self.sources[source].is_left = true;
        let has = |piece: &&Shared| piece.sources.contains(&source);
        let ids = self.pieces.iter().filter(has).map(|piece| piece.id).collect::<Vec<_>>();
        for id in ids {
            self.release(source, id);
        }
    }

    /// Leaves the sources that are slower than a quarter of the others.
    fn leave_slow(&mut self, now_ns: u64) {
        for source in &mut self.sources {
            source.meter.roll(now_ns, false);
        }
        for source in 0..self.sources.len() {
            if self.is_slow(source) {
                self.leave(source);
            }
        }
    }

    fn is_slow(&self, source: usize) -> bool {
        let one = &self.sources[source];
        if one.is_left || one.meter.busy_ns < TRIAL_NS {
            return false;
        }
        let others = self.sources.iter().enumerate();
        let others = others.filter(|(other, it)| *other != source && !it.is_left);
        let rates = others.filter_map(|(_, it)| it.meter.bytes_per_s).collect::<Vec<_>>();
        let Some(bytes_per_s) = one.meter.bytes_per_s.filter(|_| !rates.is_empty()) else {
            return false;
        };
        let mean = rates.iter().sum::<u64>() / rates.len() as u64;
        bytes_per_s < mean / SLOW_DIVISOR
    }
}

/// Time that a source will need for what is missing of a piece. `None` if it has only begun.
fn time_left_ns(meter: &Meter, bytes: u64, now_ns: u64) -> Option<u64> {
    let window_ns = now_ns.saturating_sub(meter.since_ns.unwrap_or(now_ns));
    let rated_ns = meter.time_ns(bytes);
    rated_ns.or((window_ns >= GAIN_NS).then(|| match rate(meter.window_bytes, window_ns) {
        0 => u64::MAX,
        bytes_per_s => bytes.saturating_mul(SECOND_NS / 1_000) / bytes_per_s.div_ceil(1000).max(1),
    }))
}

#[cfg(test)]
mod tests;
