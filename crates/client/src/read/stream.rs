//! Reads bytes of an object for a caller: in order to a writer, or in any order to a sink.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;

use byname_packet::{Data, NameRef};
use byname_security::tree::{NodeId, UNIT_BYTES};
use byname_transfer::fetch::{FetchConfig, NackKind};
use byname_transfer::flow::Flow;
use byname_transfer::reader::{ObjectPlan, Reader, Selection};
use byname_transfer::request::{Context, Request};

use crate::engine::job::Job;
use crate::error::ClientError;
use crate::read::older::OlderVersion;
use crate::read::site_cache::SiteContent;
use crate::read::stream_cache::{StreamCache, keep};

/// Takes verified bytes: `(offset in the object, bytes)`.
pub type Sink<'a> = dyn FnMut(u64, &[u8]) -> io::Result<()> + 'a;

/// Takes the verified nodes of the hash tree that came with them.
pub type NodeSink<'a> = dyn FnMut(NodeId, &[u8]) + 'a;

/// What is read of a version.
#[derive(Debug)]
pub enum Extent {
    /// All of it. Units that an older version has in the same place are taken from its file here.
    Whole {
        /// That file.
        older: Option<File>,
    },
    /// A range of its bytes.
    Range(Range<u64>),
}

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

/// Content that a stream is made of.
pub(crate) struct StreamSource {
    pub(crate) plan: ObjectPlan,
    pub(crate) site: Option<SiteContent>,
    /// An older version of it, in a file here.
    pub(crate) older: Option<File>,
}

/// The job; done when everything was handed out or something failed.
pub(crate) struct ReadJob<'a> {
    reader: Reader,
    site: Option<StreamCache>,
    older: Option<OlderVersion>,
    outlet: Outlet<'a>,
    nodes: Option<Box<NodeSink<'a>>>,
    outcome: Option<Result<u64, ClientError>>,
}

impl<'a> ReadJob<'a> {
    /// Will hand the bytes of `range` to `sink`, in ascending order if `is_ordered`.
    pub(crate) fn new(
        source: StreamSource,
        range: Range<u64>,
        is_ordered: bool,
        config: FetchConfig,
        sink: Box<Sink<'a>>,
    ) -> Self {
        let StreamSource { plan, site, older } = source;
        let range = range.start..range.end.min(plan.size.unwrap_or(u64::MAX)).max(range.start);
        let site = site.filter(|_| !range.is_empty());
        let site = site.map(|site| StreamCache::new(site, plan.clone(), range.clone(), config));
        let older = older.zip(plan.size).map(|(file, size)| OlderVersion::new(file, size));
        let selection = match &older {
            Some(older) => Selection::Resume(older.units()),
            None if site.is_some() => Selection::Bytes(0..0),
            None => Selection::Bytes(range.clone()),
        };
        let mut reader = Reader::new(plan, selection, config);
        reader.buffer_spans();
        let (next, held, error) = (range.start, BTreeMap::new(), None);
        let outlet = Outlet { sink, range, is_ordered, next, held, held_bytes: 0, error, bytes: 0 };
        let mut job = ReadJob { reader, site, older, outlet, nodes: None, outcome: None };
        job.step();
        job
    }

    /// The sink wants nothing before all of it is verified, if it is small.
    pub(crate) fn verify_whole(&mut self) {
        self.reader.verify_whole();
    }

    /// Has the nodes handed out as well.
    pub(crate) fn hand_nodes(&mut self, nodes: Box<NodeSink<'a>>) {
        self.nodes = Some(nodes);
    }

    /// Bytes handed out.
    pub(crate) fn into_outcome(self) -> Result<u64, ClientError> {
        self.outcome.expect("the driver hands out jobs that are done")
    }

    fn is_finished(&self) -> bool {
        self.reader.is_finished() && self.site.as_ref().is_none_or(StreamCache::is_finished)
    }

    /// Takes what the site cache has answered and asks it for more.
    fn poll_site(&mut self, now_ns: u64) {
        let ReadJob { reader, site: Some(site), outlet, .. } = self else { return };
        let held_bytes = outlet.held_bytes;
        let next = if outlet.is_ordered { outlet.next } else { u64::MAX };
        site.poll(reader, now_ns, &mut |offset, bytes| outlet.take(offset, bytes));
        site.ask_for_more(reader, (next, held_bytes), now_ns);
        self.step();
    }

    /// Offers the reader what an older version has.
    fn poll_older(&mut self, now_ns: u64) {
        let ReadJob { reader, older: Some(older), outlet, .. } = self else { return };
        if older.has_turn(reader, outlet.held_bytes) {
            older.offer(reader, now_ns, &mut |offset, bytes| outlet.take(offset, bytes));
            self.step();
        }
    }

    fn step(&mut self) {
        if self.outlet.is_ordered {
            self.reader.set_held_count(self.outlet.held_bytes.div_ceil(UNIT_BYTES));
        }
        let outcome = if let Some(error) = self.outlet.error.take() {
            Err(ClientError::Output(error))
        } else if let Some(error) = self.reader.failure() {
            Err(error.clone().into())
        } else if self.outlet.is_full() || self.is_finished() {
            Ok(self.outlet.bytes)
        } else {
            return;
        };
        self.outcome.get_or_insert(outcome);
    }
}

impl Job for ReadJob<'_> {
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool {
        let ReadJob { reader, site, outlet, nodes, .. } = self;
        let was_taken = reader.handle_data(data, is_marked, context, &mut |offset, bytes| {
            outlet.take(offset, bytes);
            keep(site.as_ref(), offset, bytes);
        });
        if let Some(site) = site {
            site.keep_nodes(reader);
        } else if let Some(nodes) = nodes {
            while let Some((node, bytes)) = reader.poll_arrived_node() {
                nodes(node, bytes);
            }
        }
        self.step();
        was_taken
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        self.reader.handle_nack(name, kind, context);
        self.step();
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.poll_site(context.now_ns);
        self.reader.handle_timeout(context);
        self.step();
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        self.poll_site(context.now_ns);
        self.poll_older(context.now_ns);
        if let Some(request) = self.reader.poll_request(context) {
            return Some(request);
        }
        // The network has enough to do; now there is time for what came.
        if !self.reader.has_buffered_spans() {
            return None;
        }
        let ReadJob { reader, site, outlet, .. } = self;
        reader.settle(context.now_ns, &mut |offset, bytes| {
            outlet.take(offset, bytes);
            keep(site.as_ref(), offset, bytes);
        });
        self.step();
        self.reader.poll_request(context)
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        let held_bytes = self.outlet.held_bytes;
        let has_turn = |older: &OlderVersion| older.has_turn(&self.reader, held_bytes);
        match self.reader.has_buffered_spans() || self.older.as_ref().is_some_and(has_turn) {
            true => Some(0),
            false => {
                let site = self.site.as_ref().and_then(StreamCache::deadline);
                self.reader.poll_deadline(flow).into_iter().chain(site).min()
            }
        }
    }

    fn serve_local(&mut self, context: &mut Context<'_>) {
        self.poll_site(context.now_ns);
    }

    fn awaits_local(&self) -> bool {
        self.site.as_ref().is_some_and(StreamCache::awaits_answers)
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
