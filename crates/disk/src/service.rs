//! A disk beside the file server: orders are verified and answered by the serving thread, which
//! never waits; everything else is done by [`Workers`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use byname_catalog::id::ContentId;
use byname_client::Stop;
use byname_packet::lp::nack_reason;
use byname_packet::{Data, Name, NameRef, SignError};
use byname_site::Check;
use byname_store::Service;
use byname_transfer::server::{Arrival, Echo, Now, Outgoing};

use crate::copying::{Copied, CopyWork, Copying};
use crate::error::StoreFailure;
use crate::held::{Held, HeldInserts};
use crate::machine::{Action, Census, DropId, Machine};
use crate::orders::{Handled, Orders};
use crate::refusal_budget::RefusalBudget;
use crate::rereads::{Reread, Rereads};
use crate::scrub::Scrub;
use crate::workers::{Change, Event, Page, PullWork, Question, ReadWork, Workers};

const SECOND_NS: u64 = 1_000_000_000;
/// Pause between two attempts to write.
const PROBE_NS: u64 = 30 * SECOND_NS;
/// Pause between two certificates that are asked for.
const CERTIFICATE_NS: u64 = SECOND_NS;

/// State of a running disk, for other threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskReport {
    /// Counts of contents.
    pub census: Census,
    /// What is wrong with the disk.
    pub health: Option<StoreFailure>,
    /// Orders that were taken.
    pub orders: u64,
    /// Contents that were stored.
    pub stored: u64,
    /// Contents that could not be.
    pub failed: u64,
    /// Contents that were dropped.
    pub dropped: u64,
    /// Orders whose refusal was not signed any more.
    pub unsigned: u64,
    /// Octets that were read anew since the start.
    pub scrubbed_bytes: u64,
    /// When all was read anew, in seconds since 1970.
    pub scrub_ended_s: Option<u64>,
    /// Contents that are not what their writers signed.
    pub rotten: u64,
}

/// The latest report.
#[derive(Debug, Clone, Default)]
pub struct DiskReports(Arc<Mutex<DiskReport>>);

impl DiskReports {
    /// The report.
    pub fn get(&self) -> DiskReport {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the module.
pub struct DiskService {
    orders: Orders,
    machine: Machine,
    workers: Workers,
    events: Receiver<Event>,
    stops: BTreeMap<ContentId, Stop>,
    /// Drops that are being carried out: the name to answer, and whom.
    drops: BTreeMap<DropId, (Name, Echo)>,
    held: HeldInserts,
    out: VecDeque<Outgoing>,
    refusals: RefusalBudget,
    rereads: Rereads,
    copying: Copying,
    scrub: Option<Scrub>,
    is_fetching: bool,
    fetch_after_ns: u64,
    probe_at_ns: u64,
    scrub_at_ns: u64,
    report: DiskReport,
    reports: DiskReports,
}

impl DiskService {
    /// A disk whose work is done by others, who tell what came of it by `events`.
    pub fn new(
        orders: Orders,
        machine: Machine,
        workers: Workers,
        events: Receiver<Event>,
    ) -> Self {
        Self {
            orders,
            machine,
            workers,
            events,
            stops: BTreeMap::new(),
            drops: BTreeMap::new(),
            held: HeldInserts::default(),
            out: VecDeque::new(),
            refusals: RefusalBudget::default(),
            rereads: Rereads::default(),
            copying: Copying::default(),
            scrub: None,
            is_fetching: false,
            fetch_after_ns: 0,
            probe_at_ns: 0,
            scrub_at_ns: u64::MAX,
            report: DiskReport::default(),
            reports: DiskReports::default(),
        }
    }

    /// Has it read its contents anew, all in turn.
    #[must_use]
    pub(crate) fn scrubbing(self, scrub: Scrub) -> Self {
        Self { scrub: Some(scrub), scrub_at_ns: 0, ..self }
    }

    /// The disk's reports.
    pub fn reports(&self) -> DiskReports {
        self.reports.clone()
    }

    fn handle_event(&mut self, event: Event, now: Now) {
        let now_ns = now.now_ns;
        match event {
            Event::Received(content, bytes) => {
                self.machine.handle_progress(content, bytes, now_ns);
            }
            Event::Again(content) => self.machine.handle_again(content, now_ns),
            Event::Pulled(content, outcome) => {
                self.stops.remove(&content);
                match outcome {
                    Ok(_) => self.report.stored += 1,
                    Err(_) => self.report.failed += 1,
                }
                self.machine.handle_pulled(content, outcome, now_ns);
                let ended = self.held.take(content);
                self.answer_inserts(ended, now_ns);
            }
            Event::EpochKept(epoch, outcome) => self.machine.handle_epoch_kept(epoch, outcome),
            Event::Removed(content, outcome) => {
                self.report.dropped += u64::from(outcome.is_ok());
                self.machine.handle_removed(content, outcome, now_ns);
            }
            Event::Probed(outcome) => {
                if let Err(failure) = outcome {
                    tracing::warn!(%failure, "nothing can be written");
                }
                self.machine.handle_probed(outcome);
            }
            Event::Resolved(content, wire) => self.handle_resolved(content, wire, now),
            Event::Reread(page) => self.handle_reread(*page),
            Event::Proved(name, proof) => self.handle_proof(&name, proof),
            Event::Copied(number, copied) => self.handle_copied(number, copied),
            Event::Scrubbed(scrubbed) => {
                if let Some(scrub) = &mut self.scrub {
                    scrub.handle(&scrubbed, &self.machine);
                }
            }
            Event::Certificate(wire) => {
                self.is_fetching = false;
                if let Some(Err(error)) =
                    wire.map(|wire| self.orders.validator.add_certificate(&wire))
                {
                    tracing::debug!(%error, "no certificate");
                }
            }
        }
    }

    /// Says how inserts go that were held.
    fn answer_inserts(&mut self, held: Vec<Held>, now_ns: u64) {
        for Held { name, claim, echo } in held {
            match self.orders.answer_insert(name.view(), &claim, (&self.machine, now_ns)) {
                Ok(wire) => self.out.push_back(echo.wrap(&wire)),
                Err(error) => tracing::warn!(%error, "cannot sign an answer"),
            }
        }
    }

    fn handle_resolved(&mut self, content: ContentId, wire: Option<Vec<u8>>, now: Now) {
        let data = wire.as_ref().and_then(|wire| Data::decode(wire).ok());
        let checked = data.map(|data| self.orders.resolution(&data, now.unix_ns / SECOND_NS));
        let answer = match checked {
            Some(Check::Accepted(answer)) => answer,
            Some(Check::NeedCertificate(name)) => {
                self.fetch_certificate(name, now.now_ns);
                None
            }
            Some(Check::Refused(())) => {
                tracing::warn!("an answer about a content does not verify");
                None
            }
            None => None,
        };
        let (inode, version) = (content.inode.0, content.version.0);
        tracing::debug!(inode, version, ?answer, "what became of a content");
        self.machine.handle_resolved(content, answer, now.now_ns);
    }

    fn handle_reread(&mut self, page: Page) {
        let Page { name, contents, is_last } = page;
        match self.orders.page(name.view(), self.machine.epoch(), (contents, is_last)) {
            Ok(wire) => {
                let echoes = self.rereads.finish(name.view(), wire.clone());
                self.out.extend(echoes.iter().map(|echo| echo.wrap(&wire)));
            }
            Err(error) => tracing::warn!(%error, "cannot sign an answer"),
        }
    }

    fn handle_proof(&mut self, name: &Name, proof: Option<Vec<u8>>) {
        match self.orders.answer_proof(name.view(), &self.machine, proof) {
            Ok(wire) => {
                let echoes = self.rereads.finish(name.view(), wire.clone());
                self.out.extend(echoes.iter().map(|echo| echo.wrap(&wire)));
            }
            Err(error) => tracing::warn!(%error, "cannot sign an answer"),
        }
    }

    fn handle_copied(&mut self, number: u64, copied: Copied) {
        let Some((name, echo)) = self.copying.finish(number) else { return };
        match self.orders.answer_copy(name.view(), &self.machine, copied) {
            Ok(wire) => self.out.push_back(echo.wrap(&wire)),
            Err(error) => tracing::warn!(%error, "cannot sign an answer"),
        }
    }

    fn begin_copy(&mut self, name: NameRef<'_>, work: CopyWork, echo: Echo) {
        match self.copying.begin(name.to_name(), echo) {
            Some(number) => {
                if self.workers.changes.send(Change::Copy(number, work)).is_err() {
                    tracing::error!("a thread of the disk has ended");
                }
            }
            None => match self.orders.busy_copy(name) {
                Ok(wire) => self.out.push_back(echo.wrap(&wire)),
                Err(error) => tracing::warn!(%error, "cannot sign an answer"),
            },
        }
    }

    /// Contents are read anew, unless that is being done or was done just now.
    fn begin_reread(&mut self, name: NameRef<'_>, work: ReadWork, echo: Echo) {
        let is_proof = matches!(work, ReadWork::Proof(_));
        match self.rereads.handle(name, echo) {
            Reread::Answered(wire) => self.out.push_back(echo.wrap(&wire)),
            Reread::Joined => {}
            Reread::Begin => {
                if self.workers.rereads.send(work).is_err() {
                    tracing::error!("a thread of the disk has ended");
                }
            }
            Reread::Busy => match self.busy(name, is_proof) {
                Ok(wire) => self.out.push_back(echo.wrap(&wire)),
                Err(error) => tracing::warn!(%error, "cannot sign an answer"),
            },
        }
    }

    fn busy(&self, name: NameRef<'_>, is_proof: bool) -> Result<Vec<u8>, SignError> {
        if is_proof { self.orders.busy_proof(name) } else { self.orders.busy(name) }
    }

    /// Asks for a certificate. What it is needed for comes again: whoever sends an order repeats
    /// it, and the head is asked again.
    fn fetch_certificate(&mut self, name: Name, now_ns: u64) {
        let is_of_site = self.orders.site.view().is_prefix_of(name.view());
        if !is_of_site || self.is_fetching || now_ns < self.fetch_after_ns {
            return;
        }
        self.fetch_after_ns = now_ns.saturating_add(CERTIFICATE_NS);
        self.is_fetching = self.workers.questions.send(Question::Certificate(name)).is_ok();
    }

    /// Hands out what the machine wants done, and answers what has come to its end.
    fn act(&mut self) {
        while let Some(action) = self.machine.poll_action() {
            self.begin(action);
        }
        while let Some((id, outcome)) = self.machine.poll_drop() {
            let Some((name, echo)) = self.drops.remove(&id) else { continue };
            let scrub = self.scrub.as_mut().map(|scrub| scrub.state(&self.machine));
            let state = (self.workers.load.hundredths(), scrub);
            match self.orders.answer_drop(name.view(), outcome, state) {
                Ok(wire) => self.out.push_back(echo.wrap(&wire)),
                Err(error) => tracing::warn!(%error, "cannot sign an answer"),
            }
        }
        let scrub = self.scrub.as_mut();
        let scrub = scrub.map(|it| (it.read_bytes(), it.state(&self.machine)));
        let (scrubbed_bytes, scrub) = scrub.unwrap_or_default();
        let report = DiskReport {
            census: self.machine.census(),
            health: self.machine.health(),
            scrubbed_bytes,
            scrub_ended_s: scrub.ended_s,
            rotten: scrub.rotten_count,
            ..self.report
        };
        *self.reports.0.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }

    /// Hands out what is to be read anew, and its place to be kept.
    fn scrub(&mut self, now: Now) {
        let Some(scrub) = &mut self.scrub else { return };
        let unix_s = now.unix_ns / SECOND_NS;
        self.scrub_at_ns = now.now_ns.saturating_add(scrub.pause_ns());
        if let Some(work) = scrub.poll_work(&self.machine, unix_s)
            && self.workers.scrubs.send(work).is_err()
        {
            tracing::error!("a thread of the disk has ended");
        }
        if let Some(text) = scrub.poll_keep(unix_s) {
            let _ = self.workers.changes.send(Change::KeepScrub(text));
        }
    }

    fn begin(&mut self, action: Action) {
        let Workers { pulls, changes, questions, .. } = &self.workers;
        let is_sent = match action {
            Action::Pull(pull) => {
                let stop = Stop::default();
                self.stops.insert(pull.content, stop.clone());
                pulls.send(PullWork { pull, stop }).is_ok()
            }
            Action::Stop(content) => {
                if let Some(stop) = self.stops.get(&content) {
                    stop.request();
                }
                true
            }
            Action::KeepEpoch(epoch) => changes.send(Change::KeepEpoch(epoch)).is_ok(),
            Action::Remove(content) => changes.send(Change::Remove(content)).is_ok(),
            Action::Settle(content) => changes.send(Change::Settle(content)).is_ok(),
            Action::Resolve(content) => questions.send(Question::Resolve(content)).is_ok(),
        };
        if !is_sent {
            tracing::error!("a thread of the disk has ended");
        }
    }
}

impl Service for DiskService {
    fn answers(&self, name: NameRef<'_>) -> bool {
        let Orders { site, disk, .. } = &self.orders;
        let ordered = [
            site.parse_insert(name),
            site.parse_drop(name),
            site.parse_list(name),
            site.parse_prove(name),
            site.parse_keep(name),
            site.parse_recall(name),
        ];
        ordered.contains(&Some(disk.clone()))
    }

    fn handle_interest(&mut self, arrival: &Arrival<'_>, now: Now) {
        self.report.orders += 1;
        let (echo, interest) = (Echo::of(arrival), arrival.interest);
        let clock = (now.now_ns, now.unix_ns / SECOND_NS);
        let asker = echo.asker();
        let may_sign_refusal = self.refusals.has(asker, now.now_ns);
        match self.orders.handle(interest, &mut self.machine, clock, may_sign_refusal) {
            Ok(Handled::Answer(wire)) => self.out.push_back(echo.wrap(&wire)),
            Ok(Handled::Refused(wire)) => {
                self.refusals.spend(asker, now.now_ns);
                self.out.push_back(echo.wrap(&wire));
            }
            Ok(Handled::Unsigned) => {
                self.report.unsigned += 1;
                self.out.push_back(echo.nack(interest.wire(), nack_reason::CONGESTION));
            }
            Ok(Handled::Later(id)) => {
                self.drops.insert(id, (interest.name.to_name(), echo));
            }
            Ok(Handled::Pulling(claim)) => {
                let held = Held { name: interest.name.to_name(), claim, echo };
                let full = self.held.hold(held, now.now_ns);
                self.answer_inserts(full.into_iter().collect(), now.now_ns);
            }
            Ok(Handled::Reread(contents, is_last)) => {
                let page = Page { name: interest.name.to_name(), contents, is_last };
                self.begin_reread(interest.name, ReadWork::Page(page), echo);
            }
            Ok(Handled::Prove(work)) => {
                self.begin_reread(interest.name, ReadWork::Proof(work), echo);
            }
            Ok(Handled::Copy(work)) => self.begin_copy(interest.name, work, echo),
            Ok(Handled::NeedCertificate(name)) => self.fetch_certificate(name, now.now_ns),
            Ok(Handled::NotForUs) => {
                self.out.push_back(echo.nack(interest.wire(), nack_reason::NO_ROUTE));
            }
            Err(error) => tracing::warn!(%error, "cannot sign an answer"),
        }
        self.act();
    }

    fn handle_timeout(&mut self, now: Now) {
        while let Ok(event) = self.events.try_recv() {
            self.handle_event(event, now);
        }
        self.machine.handle_timeout(now.now_ns);
        self.scrub(now);
        let due = self.held.take_due(now.now_ns);
        self.answer_inserts(due, now.now_ns);
        if now.now_ns >= self.probe_at_ns {
            self.probe_at_ns = now.now_ns.saturating_add(PROBE_NS);
            let _ = self.workers.changes.send(Change::Probe);
        }
        self.act();
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<u64> {
        let asks = self.machine.poll_timeout().unwrap_or(u64::MAX);
        Some(asks.min(self.probe_at_ns).min(self.scrub_at_ns).min(self.held.due_ns()))
    }
}
