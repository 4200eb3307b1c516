//! Late copies: packets of files that were whole before their publisher knew the root.

use std::collections::VecDeque;
use std::sync::Arc;

use byname_packet::{Data, NameRef};
use byname_transfer::discovery::DiscoveryConfig;
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::request::{Context, Request};

use crate::config::ClientConfig;
use crate::download::copies::{Copies, Late};
use crate::download::disk_queue::DiskAccess;
use crate::engine::job::Job;
use crate::lookup::name::LookupJob;

/// Longest time that the publisher may take to compute a root.
const PATIENCE_NS: u64 = 10_000_000_000;

/// The job: looks their names up once more, one after the other. Done when none is left.
pub(crate) struct LateCopies {
    copies: Arc<Copies>,
    disk: DiskAccess,
    config: DiscoveryConfig,
    waiting: VecDeque<Late>,
    current: Option<(Late, LookupJob)>,
}

impl LateCopies {
    /// `None` if there is nothing to look up.
    pub(crate) fn new(config: &ClientConfig, disk: &DiskAccess) -> Option<Self> {
        let copies = Arc::clone(config.copies.as_ref()?);
        let waiting = VecDeque::from(copies.take_late());
        let config = DiscoveryConfig { root_pending_ns: PATIENCE_NS, ..config.discovery() };
        let (disk, current) = (disk.clone(), None);
        (!waiting.is_empty()).then_some(LateCopies { copies, disk, config, waiting, current })
    }

    fn step(&mut self, flow: &mut Flow) {
        if let Some((late, mut job)) = self.current.take_if(|(_, job)| job.is_done()) {
            job.abandon(flow);
            let copies = Arc::clone(&self.copies);
            let found = job.into_outcome().ok();
            let disk = self.disk.queue(&late.path);
            disk.post(move |_| copies.keep_late(&late, found.as_ref()));
        }
    }
}

impl Drop for LateCopies {
    /// Copies without a packet cannot be served.
    fn drop(&mut self) {
        let current = self.current.take().map(|(late, _)| late);
        for late in current.into_iter().chain(self.waiting.drain(..)) {
            self.copies.keep_late(&late, None);
        }
    }
}

impl Job for LateCopies {
    fn handle_data(&mut self, data: &Data<'_>, is_marked: bool, context: &mut Context<'_>) -> bool {
        let Some((_, job)) = &mut self.current else { return false };
        let was_taken = job.handle_data(data, is_marked, context);
        self.step(context.flow);
        was_taken
    }

    fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        if let Some((_, job)) = &mut self.current {
            job.handle_nack(name, kind, context);
        }
        self.step(context.flow);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        if let Some((_, job)) = &mut self.current {
            job.handle_timeout(context);
        }
        self.step(context.flow);
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        if self.current.is_none() {
            let late = self.waiting.pop_front()?;
            let job = LookupJob::new(late.name.clone(), self.config, context.now_ns);
            self.current = Some((late, job));
        }
        self.current.as_mut().and_then(|(_, job)| job.poll_request(context))
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        match &mut self.current {
            Some((_, job)) => job.poll_deadline(flow),
            None => (!self.waiting.is_empty()).then_some(0),
        }
    }

    fn is_done(&self) -> bool {
        self.current.is_none() && self.waiting.is_empty()
    }

    fn abandon(&mut self, flow: &mut Flow) {
        if let Some((_, job)) = &mut self.current {
            job.abandon(flow);
        }
    }
}
