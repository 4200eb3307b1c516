//! Reads bytes of an object for a caller: in order to a writer, or in any order to a sink.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use byname_packet::{Data, NameRef};
use byname_security::tree::UNIT_BYTES;
use byname_transfer::fetch::{FetchConfig, NackKind};
use byname_transfer::flow::Flow;
use byname_transfer::reader::{ObjectPlan, Reader, Selection};
use byname_transfer::request::{Context, Request};

use crate::engine::job::Job;
use crate::error::ClientError;

/// Takes verified bytes: `(offset in the object, bytes)`.
pub type Sink<'a> = dyn FnMut(u64, &[u8]) -> io::Result<()> + 'a;

/// Trims to a range and, if wanted, sorts. What is held back is bounded, because the reader asks
/// for less the more is held.
struct Outlet<'a> {
    sink: Box<Sink<'a>>,
    range: Range<u64>,
    is_ordered: bool,
    next: u64,
    held: BTreeMap<u64, Box<[u8]>>,
    held_bytes: usize,
    error: Option<io::Error>,
    bytes: u64,
}

impl Outlet<'_> {
    fn take(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset.saturating_add(bytes.len() as u64).min(self.range.end);
        let start = offset.max(self.range.start);
        if start >= end {
            return;
        }
        let bytes = &bytes[(start - offset) as usize..(end - offset) as usize];
        if self.is_ordered && start != self.next {
            self.held_bytes += bytes.len();
            self.held.insert(start, bytes.into());
            return;
        }
        self.give(start, bytes);
        while let Some(bytes) = self.held.remove(&self.next) {
            self.held_bytes -= bytes.len();
            self.give(self.next, &bytes);
        }
    }

    /// Everything wanted was given, although the reader may still have something to do.
    fn is_full(&self) -> bool {
        self.is_ordered && self.next >= self.range.end
    }

    fn give(&mut self, offset: u64, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = (self.sink)(offset, bytes).err();
        }
        self.next = offset + bytes.len() as u64;
        self.bytes += bytes.len() as u64;
    }
}

/// The job; done when everything was handed out or something failed.
pub(crate) struct ReadJob<'a> {
    reader: Reader,
    outlet: Outlet<'a>,
    outcome: Option<Result<u64, ClientError>>,
}

impl<'a> ReadJob<'a> {
    /// Will hand the bytes of `range` to `sink`, in ascending order if `is_ordered`.
    pub(crate) fn new(
        plan: ObjectPlan,
        range: Range<u64>,
        is_ordered: bool,
        config: FetchConfig,
        sink: Box<Sink<'a>>,
    ) -> Self {
        let range = range.start..range.end.min(plan.size.unwrap_or(u64::MAX)).max(range.start);
        let mut reader = Reader::new(plan, Selection::Bytes(range.clone()), config);
        reader.buffer_spans();
        let (next, held, error) = (range.start, BTreeMap::new(), None);
        let outlet = Outlet { sink, range, is_ordered, next, held, held_bytes: 0, error, bytes: 0 };
        let mut job = ReadJob { reader, outlet, outcome: None };
        job.step();
        job
    }

    /// Bytes handed out.
    pub(crate) fn into_outcome(self) -> Result<u64, ClientError> {
        self.outcome.expect("the driver hands out jobs that are done")
    }

    fn step(&mut self) {
        if self.outlet.is_ordered {
            self.reader.set_held_count(self.outlet.held_bytes.div_ceil(UNIT_BYTES));
        }
        let outcome = if let Some(error) = self.outlet.error.take() {
            Err(ClientError::Output(error))
        } else if let Some(error) = self.reader.failure() {
            Err(error.clone().into())
        } else if self.reader.is_finished() || self.outlet.is_full() {
            Ok(self.outlet.bytes)
        } else {
            return;
        };
        self.outcome.get_or_insert(outcome);
    }
}

impl Job for ReadJob<'_> {
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool {
        let ReadJob { reader, outlet, .. } = self;
        let was_taken = reader.handle_data(data, is_marked, context, &mut |offset, bytes| {
            outlet.take(offset, bytes);
        });
        self.step();
        was_taken
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        self.reader.handle_nack(name, kind, context);
        self.step();
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.reader.handle_timeout(context);
        self.step();
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        if let Some(request) = self.reader.poll_request(context) {
            return Some(request);
        }
        // The network has enough to do; now there is time for what came.
        if !self.reader.has_buffered_spans() {
            return None;
        }
        let ReadJob { reader, outlet, .. } = self;
        reader.settle(context.now_ns, &mut |offset, bytes| outlet.take(offset, bytes));
        self.step();
        self.reader.poll_request(context)
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        match self.reader.has_buffered_spans() {
            true => Some(0),
            false => self.reader.poll_deadline(flow),
        }
    }

    fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    fn refused_by(&mut self, source: usize) -> u64 {
        self.reader.refused_by(source)
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.reader.abandon(flow);
    }
}
