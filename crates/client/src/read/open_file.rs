//! Everything that happens to one open file: reads of any ranges, together.
//!
//! Calls are turned into *granules* (units of 8 KiB; segments of files without a hash tree), and
//! a granule is asked for once however many calls and ranges want it. The verified bytes are copied
//! from the packet straight into the buffers of all of them, and into the session's cache, where
//! the next open of the same content finds them; only what calls of many ranges want is not kept,
//! nor what a large read uses whole. Tree nodes stay with the reader, and copies of them go to the
//! same cache.
//!
//! Granules are picked one by one when there is room to send, in turns of a few from each call,
//! so a call of a thousand ranges holds no queue of its own, a short call passes a long one, and a
//! cancelled call stops at what is in flight.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use byname_cache::Found;
use byname_packet::{Data, NameRef};
use byname_security::tree::Check;
use byname_transfer::error::ReadError;
use byname_transfer::fetch::{FetchConfig, NackKind};
use byname_transfer::flow::Flow;
use byname_transfer::reader::{ObjectPlan, Reader, Selection};
use byname_transfer::request::{Context, Request};

use crate::engine::job::Job;
use crate::error::ClientError;
use crate::read::cache::ContentCache;
use crate::read::counters::{Counters, add};
use crate::read::operation::Operation;
use crate::read::scheduler::{RangeScheduler, Step};
use crate::read::site_cache::{CacheReads, SiteContent, units_of};

/// Granules of one file that may be awaited at once.
const AWAITED_MAX: usize = 2048;

/// Share of the memory of all open files that one of them may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) nodes_max: usize,
    pub(crate) readahead_bytes_max: u64,
}

/// State of an open file that outlives its jobs.
#[derive(Clone)]
pub(crate) struct FileState {
    pub(crate) plan: ObjectPlan,
    pub(crate) inbox: Rc<RefCell<Inbox>>,
    pub(crate) cache: ContentCache,
    pub(crate) site: Option<SiteContent>,
    pub(crate) counters: Arc<Counters>,
}

/// Inbox of the job of a file, filled by the executor.
#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) operations: VecDeque<Operation>,
    /// Some caller went away; look which.
    pub(crate) has_cancelled: bool,
    pub(crate) is_closed: bool,
    pub(crate) share: Option<Share>,
}

/// The job of an open file. It is done, for the time being, when nobody waits for anything.
pub(crate) struct FileReads {
    pub(crate) id: u64,
    plan: ObjectPlan,
    config: FetchConfig,
    reader: Reader,
    inbox: Rc<RefCell<Inbox>>,
    cache: ContentCache,
    site: Option<CacheReads>,
    scheduler: RangeScheduler,
    share: Option<Share>,
}

impl FileReads {
    pub(crate) fn new(
        id: u64,
        state: FileState,
        config: FetchConfig,
        prefetch_bytes_max: u64,
    ) -> Self {
        let FileState { plan, inbox, cache, site, counters } = state;
        let site = site.map(CacheReads::new);
        let reader = Reader::new(plan.clone(), Selection::Bytes(0..0), config);
        let scheduler = RangeScheduler::new(
            reader.granule_bytes(),
            plan.size,
            prefetch_bytes_max,
            cache.clone(),
            counters,
        );
        FileReads { id, plan, config, reader, inbox, cache, site, scheduler, share: None }
    }

    /// Takes what the engine has left.
    fn admit(&mut self, context: &mut Context<'_>) {
        let mut inbox = self.inbox.borrow_mut();
        if let Some(share) = inbox.share.filter(|share| self.share != Some(*share)) {
            self.share = Some(share);
            self.reader.keep_nodes(share.nodes_max);
            self.scheduler.set_readahead_bytes_max(share.readahead_bytes_max);
        }
        for operation in inbox.operations.drain(..) {
            self.scheduler.add(operation);
        }
        if std::mem::take(&mut inbox.has_cancelled) {
            let unwanted = self.scheduler.drop_cancelled();
            unwanted.iter().for_each(|granule| self.reader.unwant(*granule, context.flow));
            for granule in unwanted {
                // Segments of another size than the unit may serve neighbours too.
                for neighbour in [granule.saturating_sub(1), granule + 1] {
                    if self.scheduler.is_awaited(neighbour) {
                        self.reader.want(neighbour, context.now_ns);
                    }
                }
            }
        }
    }

    /// True if more granules may be awaited.
    fn has_room(&self) -> bool {
        self.scheduler.awaited_count() < AWAITED_MAX
            && self.site.as_ref().is_none_or(CacheReads::has_room)
    }

    /// Requests one granule, or one pass of a file that has none.
    fn begin_something(&mut self, context: &mut Context<'_>) -> Step {
        let step = self.scheduler.next_step();
        match step {
            Step::Nothing | Step::Served => {}
            Step::Want(granule) if self.want_from_site(granule, context.now_ns) => {
                return Step::Served;
            }
            Step::Want(granule) => self.want(granule, context.now_ns),
            Step::ReadAll => {
                self.reader.abandon(context.flow);
                self.reader = Reader::new(self.plan.clone(), Selection::All, self.config);
            }
        }
        step
    }

    /// Asks the network for a granule, and for what of its proof is neither here nor in the cache.
    fn want(&mut self, granule: u64, now_ns: u64) {
        self.take_cached_nodes(granule);
        self.reader.want(granule, now_ns);
    }

    /// Gives the reader the nodes that prove a granule, as far as memory has them.
    fn take_cached_nodes(&mut self, granule: u64) {
        if self.cache.has_tree() {
            for node in self.reader.missing_nodes(granule) {
                let reader = &mut self.reader;
                self.cache.read_node(node, |bytes| reader.offer_node(node, bytes));
            }
        }
    }

    /// Asks the site cache for a granule; false if it is not there.
    fn want_from_site(&mut self, granule: u64, now_ns: u64) -> bool {
        if !self.site.as_ref().is_some_and(|site| site.may_have(granule)) {
            return false;
        }
        self.take_cached_nodes(granule);
        let nodes = self.reader.missing_nodes(granule);
        let Some(site) = &mut self.site else { return false };
        for refused in site.gather(granule, nodes, now_ns) {
            self.want(refused, now_ns);
        }
        true
    }

    /// Sends the site cache what was gathered for it. True if it does not take all of that, so
    /// that the reader has something to ask for.
    fn send_to_site(&mut self, now_ns: u64) -> bool {
        let refused = self.site.as_mut().map(|site| site.send(now_ns)).unwrap_or_default();
        for granule in &refused {
            self.want(*granule, now_ns);
        }
        !refused.is_empty()
    }

    /// Takes what the site cache has answered; what it did not have, or not in time, is asked of
    /// the network.
    fn take_from_site(&mut self, now_ns: u64) {
        let Some(site) = &mut self.site else { return };
        let (come, overdue) = (site.poll(), site.take_overdue(now_ns));
        for found in &come {
            self.take_found(found, now_ns);
        }
        for granule in overdue.into_iter().flatten() {
            if self.scheduler.is_awaited(granule) {
                self.want(granule, now_ns);
            }
        }
    }

    fn take_found(&mut self, found: &Found, now_ns: u64) {
        for (node, bytes) in &found.nodes {
            if self.reader.offer_node(*node, bytes) {
                self.cache.insert_node(*node, bytes);
            }
        }
        for (granule, bytes) in units_of(found) {
            if !self.scheduler.is_awaited(granule) {
                continue;
            }
            let FileReads { reader, scheduler, .. } = self;
            let check = bytes.map(|bytes| {
                reader.offer_unit(granule, bytes, &mut |offset, bytes| {
                    scheduler.take(offset, bytes);
                })
            });
            if check == Some(Check::Verified) {
                let length = bytes.map_or(0, <[u8]>::len) as u64;
                add(&self.scheduler.counters().site_cache_bytes, length);
                continue;
            }
            if let (Some(Check::Bad), Some(site)) = (check, &self.site) {
                site.content().note_rotten(granule);
            }
            self.want(granule, now_ns);
        }
    }

    /// Copies the nodes that came to the caches.
    fn share_nodes(&mut self) {
        while self.cache.has_tree()
            && let Some((node, bytes)) = self.reader.poll_arrived_node()
        {
            self.cache.insert_node(node, bytes);
            if let Some(site) = &self.site {
                site.content().insert_node(node, bytes);
            }
        }
    }

    /// Looks whether the reader has failed or, without granules, come to the end.
    fn settle(&mut self, context: &mut Context<'_>) {
        let Some(failure) = self.reader.failure().cloned() else {
            if self.scheduler.is_passing() && self.reader.is_finished() {
                self.scheduler.end_pass();
            }
            return;
        };
        self.reader.abandon(context.flow);
        self.reader = Reader::new(self.plan.clone(), Selection::Bytes(0..0), self.config);
        if let Some(share) = self.share {
            self.reader.keep_nodes(share.nodes_max);
        }
        let unit = match &failure {
            ReadError::BadUnit { unit, .. } => Some(*unit),
            _ => None,
        };
        self.scheduler.fail(unit, &|| ClientError::from(failure.clone()));
        for granule in self.scheduler.awaited() {
            if !self.site.as_ref().is_some_and(|site| site.is_in_flight(granule)) {
                self.want(granule, context.now_ns);
            }
        }
    }
}

impl Job for FileReads {
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool {
        let FileReads { reader, scheduler, site, .. } = self;
        let was_taken = reader.handle_data(data, is_marked, context, &mut |offset, bytes| {
            scheduler.take(offset, bytes);
            if let Some(site) = site {
                site.content().insert(offset, bytes);
            }
        });
        if was_taken {
            add(&self.scheduler.counters().received_bytes, data.wire().len() as u64);
            self.share_nodes();
        }
        self.settle(context);
        was_taken
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        self.reader.handle_nack(name, kind, context);
        self.settle(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.take_from_site(context.now_ns);
        self.reader.handle_timeout(context);
        self.settle(context);
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        self.admit(context);
        self.take_from_site(context.now_ns);
        self.reader.set_class(self.scheduler.class());
        let mut request = self.reader.poll_request(context);
        while request.is_none() {
            let class = self.scheduler.class();
            self.reader.set_class(class);
            let has_room = self.has_room() && context.flow.has_room_as(class, context.now_ns);
            let step = if has_room { self.begin_something(context) } else { Step::Nothing };
            if step == Step::Served {
                continue;
            }
            let is_refused = self.send_to_site(context.now_ns);
            // A reader that is asked without need says that it has nothing to send. To the flow
            // that would mean that this file, and not the window, is the limit.
            if step == Step::Nothing && !is_refused {
                return None;
            }
            // What may not be sent yet must not make more of it be picked.
            request = Some(self.reader.poll_request(context)?);
        }
        add(&self.scheduler.counters().requests, 1);
        request
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        let site = self.site.as_ref().and_then(CacheReads::deadline);
        self.reader.poll_deadline(flow).into_iter().chain(site).min()
    }

    fn serve_local(&mut self, context: &mut Context<'_>) {
        self.admit(context);
        self.take_from_site(context.now_ns);
        while self.has_room()
            && matches!(self.begin_something(context), Step::Served | Step::Want(_))
        {}
        self.send_to_site(context.now_ns);
    }

    fn awaits_local(&self) -> bool {
        self.site.as_ref().is_some_and(|site| !site.is_idle())
    }

    fn is_done(&self) -> bool {
        let inbox = self.inbox.borrow();
        inbox.is_closed || (inbox.operations.is_empty() && self.scheduler.is_idle())
    }

    fn refused_by(&mut self, source: usize) -> u64 {
        self.reader.refused_by(source)
    }

    fn abandon(&mut self, flow: &mut Flow) {
        self.reader.reset(flow);
        self.scheduler.forget_awaited();
    }
}

#[cfg(test)]
mod tests {
    use byname_packet::{DataBuilder, DigestSigner};
    use byname_security::trust::{TrustPolicy, Validator};
    use byname_transfer::reader::Proof;
    use byname_transfer::versions::VersionMemory;

    use super::*;
    use crate::engine::completion::{Completion, Reply};
    use crate::read::operation::ReadRequest;

    const SIZE: u64 = 64 << 20;
    const ROUND_TRIP_NS: u64 = 20_000_000;

    fn reads_of_a_large_file() -> FileReads {
        let name = "/lab/run/v=1".parse().expect("a name");
        let segment_bytes = 8192;
        let (last_segment, hints) = (Some(SIZE / segment_bytes - 1), Vec::new());
        let (size, segment_bytes) = (Some(SIZE), Some(segment_bytes));
        let plan =
            ObjectPlan { name, size, segment_bytes, last_segment, proof: Proof::Nothing, hints };
        let request = ReadRequest::owned(Vec::new(), &[(0, SIZE as usize)]).expect("one range");
        let operation = Operation::new(request, Some(SIZE), Reply::new(Completion::new()));
        let (inbox, counters): (Rc<RefCell<Inbox>>, _) = Default::default();
        inbox.borrow_mut().operations.push_back(operation);
        let cache = ContentCache::in_memory(1 << 20);
        let state = FileState { plan, inbox, cache, site: None, counters };
        FileReads::new(1, state, FetchConfig::default(), 0)
    }

    #[test]
    fn the_window_grows_while_it_is_what_limits_a_read() {
        let (mut flow, mut versions) = (Flow::default(), VersionMemory::default());
        let mut validator = Validator::new(TrustPolicy::default());
        let (mut reads, mut windows) = (reads_of_a_large_file(), Vec::new());
        for round in 1..=6 {
            let (flow, validator, versions) = (&mut flow, &mut validator, &mut versions);
            let (now_ns, unix_ns) = (round * ROUND_TRIP_NS, 0);
            let mut context = Context { now_ns, unix_ns, flow, validator, versions };
            let asked: Vec<Request> =
                std::iter::from_fn(|| reads.poll_request(&mut context)).collect();
            windows.push(asked.len());
            context.now_ns += ROUND_TRIP_NS;
            for request in asked {
                let (payload, mut wire) = (vec![0; 8192], Vec::new());
                let builder = DataBuilder::new(request.name.view());
                builder.encode(&payload, &DigestSigner, &mut wire).expect("it fits");
                let data = Data::decode(&wire).expect("it was just made");
                assert!(reads.handle_data(&data, false, &mut context));
            }
        }
        assert!(windows[5] > 8 * windows[0], "requests of each round trip: {windows:?}");
    }
}
