//! The head of a site: the production service, executor and watch over a catalog in memory. What
//! its threads do is done here, in virtual time; the engine survives every crash. Several heads may
//! share an engine: one leads, the others wait for its lease.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use byname_catalog::engine::{Engine, MemoryEngine};
use byname_catalog::id::LeaseEpoch;
use byname_catalog::{Caller, Catalog, Command, Reader};
use byname_head::{
    BatchQueues, CatalogBackend, CatalogOrder, CommandAnswer, Contents, Executor, HeadService,
    Order, ProveOrder, Succession, Waiting, Watch,
};
use byname_packet::lp::LpPacket;
use byname_packet::{Data, Interest, Packet};
use byname_site::{SiteName, Stamp};
use byname_store::Service;
use byname_store::backend::{Backend, Found, ListingKind, LocateError};
use byname_transfer::server::{ListFailure, Listing, Located};

use super::identity::Identity;
use super::record::SharedRecord;
use super::serving::{Object, Objects, Serving, clocks, take_frame};
use crate::program::{Crash, Now, Program};
use crate::random::Random;
use crate::world::{MS, SECOND};

/// Time that a transaction takes, at most; and again its answers.
const COMMIT_NS: u64 = 8 * MS;
/// Pause between two looks at what is due.
const EXPIRE_NS: u64 = SECOND;
/// Pause between two rounds of orders, and the time that disks have for an answer.
const ROUND_NS: u64 = 2 * SECOND;

/// Time after which another head takes a lease that is not renewed.
pub const LEASE_NS: u64 = 5 * SECOND;
/// Pause between two renewals.
const RENEW_NS: u64 = SECOND;
/// Pause between two looks at the lease of another head.
const LOOK_NS: u64 = 200 * MS;
/// Frames that wait for a process that is stopped, at most.
const HELD_MAX: usize = 256;

/// What a head has that leads.
struct Leading {
    executor: Executor,
    watch: Watch,
}

/// A running process.
struct Running {
    service: HeadService,
    queues: BatchQueues,
    serving: Serving,
    leading: Option<Leading>,
    succession: Succession,
    /// When the lease is renewed, or looked at.
    lease_ns: u64,
    /// A batch that will be durable at this time.
    batch: Option<(u64, Vec<Waiting>)>,
    /// Answers that leave at this time.
    answers: Option<(u64, Vec<CommandAnswer>)>,
    expire_ns: u64,
    round_ns: u64,
    /// Orders that wait for an answer, by name.
    orders: BTreeMap<Vec<u8>, Order>,
    /// Challenges that are not answered yet.
    challenges: BTreeMap<Vec<u8>, ProveOrder>,
    commands: Vec<Command>,
}

/// See the module.
pub struct SiteHead {
    site: SiteName,
    identity: Identity,
    engine: MemoryEngine,
    /// Where it notes when it said what.
    record: SharedRecord,
    /// Its name, if there are other heads.
    name: Option<String>,
    running: Option<Running>,
    /// Frames that came while it was stopped.
    held: Option<VecDeque<Vec<u8>>>,
    /// Its wall clock is ahead by this.
    ahead_ns: u64,
    random: Random,
    number: u64,
    out: VecDeque<Vec<u8>>,
    fault: Option<String>,
}

impl SiteHead {
    pub(super) fn new(
        site: &SiteName,
        identity: Identity,
        engine: MemoryEngine,
        (seed, now): (u64, Now),
    ) -> Self {
        let mut head = Self::idle(site, identity, engine, seed);
        head.start(now);
        head
    }

    /// One of several heads of an engine, which waits for the lease of another.
    pub(super) fn beside_another(
        site: &SiteName,
        identity: Identity,
        engine: MemoryEngine,
        (seed, now): (u64, Now),
    ) -> Self {
        let mut head = Self::idle(site, identity, engine, seed);
        head.name = Some(format!("head-{seed}"));
        head.start(now);
        head
    }

    fn idle(site: &SiteName, identity: Identity, engine: MemoryEngine, seed: u64) -> Self {
        Self {
            site: site.clone(),
            identity,
            engine,
            record: SharedRecord::default(),
            name: None,
            running: None,
            held: None,
            ahead_ns: 0,
            random: Random::new(seed),
            number: 0,
            out: VecDeque::new(),
            fault: None,
        }
    }

    /// The same, which notes in a record when it said what.
    pub(super) fn noting(self, record: &SharedRecord) -> Self {
        Self { record: record.clone(), ..self }
    }

    /// Its term, while it leads.
    pub fn epoch(&self) -> Option<LeaseEpoch> {
        Some(self.running.as_ref()?.leading.as_ref()?.executor.epoch())
    }

    /// From now on there are other heads, and it renews its lease.
    pub(super) fn set_name(&mut self, name: &str) {
        self.name = Some(name.to_owned());
        if let Some(running) = &mut self.running {
            running.lease_ns = 0;
        }
    }

    /// Stops the process where it is.
    pub fn pause(&mut self) {
        self.held.get_or_insert_default();
    }

    /// It goes on, with what came meanwhile as far as there was room for it.
    pub fn resume(&mut self, now: Now) {
        for frame in self.held.take().into_iter().flatten() {
            self.handle_frame(&frame, now);
        }
    }

    /// The rows.
    pub fn engine(&self) -> &MemoryEngine {
        &self.engine
    }

    /// Has another engine from its next start on.
    pub(super) fn set_engine(&mut self, engine: MemoryEngine) {
        self.engine = engine;
    }

    /// From now on its wall clock is so much later.
    pub fn set_clock_ahead(&mut self, ahead_ns: u64) {
        self.ahead_ns = ahead_ns;
    }

    fn clock(&self, now: Now) -> Now {
        Now { unix_ns: now.unix_ns + self.ahead_ns, ..now }
    }

    fn start(&mut self, now: Now) {
        let now = self.clock(now);
        let engine: Arc<dyn Engine> = Arc::new(self.engine.clone());
        let mut leading = None;
        if self.name.is_none() {
            match Catalog::lead(engine.clone(), "embedded", (now.unix_ns, u64::MAX)) {
                Ok(catalog) => leading = Some(self.leading(catalog)),
                Err(error) => {
                    self.fault = Some(format!("a head starts again: {error}"));
                    return;
                }
            }
        }
        let (signer, certificate) = (self.identity.signer(), self.identity.certificate());
        let (service, queues) = HeadService::new(Contents::new(self.site.clone(), engine));
        self.running = Some(Running {
            service,
            queues,
            serving: Serving::new(&self.site, signer, (certificate, false)),
            leading,
            succession: Succession::new(LEASE_NS),
            lease_ns: if self.name.is_some() { now.now_ns } else { u64::MAX },
            batch: None,
            answers: None,
            expire_ns: now.now_ns,
            round_ns: now.now_ns,
            orders: BTreeMap::new(),
            challenges: BTreeMap::new(),
            commands: Vec::new(),
        });
    }

    fn leading(&mut self, catalog: Catalog<Arc<dyn Engine>>) -> Leading {
        let (site, signer) = (self.site.clone(), self.identity.signer());
        let mut executor = Executor::new(catalog, site.clone(), signer.clone());
        let mut seeds = Random::new(self.random.draw());
        executor.draw_seeds_from(Box::new(move || Some(seeds.seed())));
        let own = (signer, &[self.identity.certificate().to_vec()][..]);
        let mut watch = Watch::new(site, Arc::new(self.engine.clone()), own, &executor);
        // Whoever has nothing proved changes nobody's luck.
        let mut challenges = Random::new(self.number);
        watch.draw_challenges_from(Box::new(move || Some(challenges.seed())));
        Leading { executor, watch }
    }

    /// Renews the lease, or takes it when another head does not.
    fn look_at_lease(&mut self, running: &mut Running, now: Now) {
        if running.leading.as_ref().is_some_and(|leading| leading.executor.is_over()) {
            running.leading = None;
            running.succession = Succession::new(LEASE_NS);
        }
        let Some(name) = self.name.clone().filter(|_| now.now_ns >= running.lease_ns) else {
            return;
        };
        let until_ns = now.unix_ns + LEASE_NS;
        if let Some(leading) = &mut running.leading {
            running.lease_ns = now.now_ns + RENEW_NS;
            // If it is not renewed, the term is over.
            let _ = leading.executor.renew(until_ns);
            return;
        }
        running.lease_ns = now.now_ns + LOOK_NS;
        let engine: Arc<dyn Engine> = Arc::new(self.engine.clone());
        let seen = Reader::new(&*engine, &Caller::Head).and_then(|reader| reader.head_lease());
        let Ok(seen) = seen else { return };
        if running.succession.handle(seen.clone(), false, now.now_ns)
            && let Ok(catalog) = Catalog::take_over(engine, &name, seen.as_ref(), until_ns)
        {
            running.leading = Some(self.leading(catalog));
        }
    }

    fn work(&mut self, now: Now) {
        let now = self.clock(now);
        let Some(mut running) = self.running.take() else { return };
        self.look_at_lease(&mut running, now);
        running.execute(&mut self.random, now);
        self.look_after_disks(&mut running, now);
        let Running { service, serving, .. } = &mut running;
        let served = self.out.len();
        self.out.extend(serving.out.drain(..).map(|outgoing| outgoing.wire));
        self.record.borrow_mut().note_said(self.out.range(served..), now.now_ns);
        let answers = std::iter::from_fn(|| service.poll_transmit());
        self.out.extend(answers.map(|outgoing| outgoing.wire));
        self.running = Some(running);
    }

    fn look_after_disks(&mut self, running: &mut Running, now: Now) {
        if now.now_ns < running.round_ns {
            return;
        }
        running.round_ns = now.now_ns + ROUND_NS;
        let unanswered = std::mem::take(&mut running.orders);
        let Some(leading) = &mut running.leading else { return };
        for (_, order) in unanswered {
            running.commands.extend(leading.watch.handle(order, None, now.unix_ns));
        }
        let (number, random) = (&mut self.number, &mut self.random);
        let mut stamp = || {
            *number += 1;
            Stamp { time_ms: now.unix_ns / MS + *number, nonce: random.draw().to_be_bytes() }
        };
        let orders = leading.watch.orders(&mut stamp).unwrap_or_default();
        for order in orders {
            let Ok(interest) = Interest::decode(order.wire()) else { continue };
            let (name, mut wire) = (interest.name.value().to_vec(), Vec::new());
            let nonce = (self.random.draw() as u32).to_be_bytes();
            interest.encode_forwarded(nonce, None, &mut wire);
            self.out.push_back(wire);
            running.orders.insert(name, order);
        }
        self.have_proved(running, now);
    }

    /// Sends what disks are to prove. What was not answered is sent again.
    fn have_proved(&mut self, running: &mut Running, now: Now) {
        let Some(leading) = &mut running.leading else { return };
        let silent = std::mem::take(&mut running.challenges).into_values();
        leading.watch.handle_proofs(silent.map(|order| (order, None)).collect(), now.unix_ns);
        let (number, random) = (&mut self.number, &mut self.random);
        let mut stamp = || {
            *number += 1;
            Stamp { time_ms: now.unix_ns / MS + *number, nonce: random.draw().to_be_bytes() }
        };
        for order in leading.watch.proofs(&mut stamp).unwrap_or_default() {
            let Ok(interest) = Interest::decode(order.wire()) else { continue };
            let (name, mut wire) = (interest.name.value().to_vec(), Vec::new());
            let nonce = (self.random.draw() as u32).to_be_bytes();
            interest.encode_forwarded(nonce, None, &mut wire);
            self.out.push_back(wire);
            running.challenges.insert(name, order);
        }
    }

    /// Looks after the disks, if this head leads.
    pub fn watch(&self) -> Option<&Watch> {
        Some(&self.running.as_ref()?.leading.as_ref()?.watch)
    }

    fn take_answer(&mut self, link: &LpPacket<'_>, now: Now) {
        let now = self.clock(now);
        let Some(running) = &mut self.running else { return };
        let Some(packet) = link.fragment else { return };
        if let (Ok(Packet::Data(Data { name, .. })), None) =
            (Packet::decode(packet), link.header.nack)
            && let Some(leading) = &mut running.leading
        {
            if let Some(order) = running.orders.remove(name.value()) {
                let commands = leading.watch.handle(order, Some(packet), now.unix_ns);
                running.commands.extend(commands);
            } else if let Some(order) = running.challenges.remove(name.value()) {
                let answer = vec![(order, Some(packet.to_vec()))];
                leading.watch.handle_proofs(answer, now.unix_ns);
            }
        }
    }
}

impl Running {
    /// The catalog's thread.
    fn execute(&mut self, random: &mut Random, now: Now) {
        if self.answers.as_ref().is_some_and(|(at_ns, _)| *at_ns <= now.now_ns)
            && let Some((_, answers)) = self.answers.take()
        {
            // The service has one batch in flight.
            let _ = self.queues.answers.try_send(answers);
        }
        self.service.handle_timeout(clocks(now));
        if let Ok(CatalogOrder::Execute(batch)) = self.queues.batches.try_recv() {
            self.batch = Some((now.now_ns + 1 + random.below(COMMIT_NS), batch));
        }
        if self.batch.as_ref().is_some_and(|(at_ns, _)| *at_ns <= now.now_ns)
            && let Some((_, batch)) = self.batch.take()
        {
            // A head that does not lead has no answers.
            let answers = match &mut self.leading {
                Some(leading) => leading.executor.execute(&batch, now.unix_ns),
                None => batch.iter().map(|_| CommandAnswer::Nack).collect(),
            };
            self.answers = Some((now.now_ns + 1 + random.below(COMMIT_NS), answers));
        }
        let commands = std::mem::take(&mut self.commands);
        let executor = self.leading.as_mut().map(|leading| &mut leading.executor);
        if let Some(executor) = executor.filter(|_| !commands.is_empty()) {
            // As in production, what fails is found out anew in the next round.
            let _ = executor.carry_out(commands, now.unix_ns);
        }
        if now.now_ns >= self.expire_ns {
            let leading = self.leading.as_mut();
            let looked = leading.map(|leading| leading.executor.expire(now.unix_ns));
            let is_more = looked.and_then(Result::ok).unwrap_or(false);
            self.expire_ns = if is_more { now.now_ns + 1 } else { now.now_ns + EXPIRE_NS };
        }
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        let batch = self.batch.as_ref().map(|(at_ns, _)| *at_ns);
        let answers = self.answers.as_ref().map(|(at_ns, _)| *at_ns);
        let serving = self.serving.poll_timeout();
        let own = self.expire_ns.min(self.round_ns).min(self.lease_ns);
        let own = [Some(own), batch, answers, serving];
        own.into_iter().flatten().min()
    }
}

/// The paths of a site.
struct Paths(CatalogBackend);

impl Objects for Paths {
    fn locate(&self, path: &[u8]) -> Object {
        Object::Other(match self.0.locate(path) {
            Ok(Found::Described(described)) => Located::Described(described),
            Ok(Found::Directory(directory)) => {
                Located::Directory { stat: directory.stat(), changes: None }
            }
            Ok(Found::File(_)) | Err(LocateError::Failed(_)) => Located::Failed,
            Err(LocateError::Unavailable(_)) => Located::Unavailable,
            Err(LocateError::NotFound) => Located::NotFound,
            Err(LocateError::NoPermission) => Located::NoPermission,
        })
    }

    fn list(
        &self,
        path: &[u8],
        is_manifest: bool,
        bytes_max: usize,
    ) -> Result<Listing, ListFailure> {
        let kind = if is_manifest { ListingKind::Manifest } else { ListingKind::Names };
        let listing = self.0.versioned_listing(path, kind, bytes_max);
        listing.unwrap_or(Err(ListFailure::NotFound))
    }
}

impl Program for SiteHead {
    fn handle_frame(&mut self, frame: &[u8], now: Now) {
        if let Some(held) = &mut self.held {
            if held.len() < HELD_MAX {
                held.push_back(frame.to_vec());
            }
            return;
        }
        let Ok(link) = LpPacket::decode(frame) else { return };
        self.take_answer(&link, now);
        let clock = self.clock(now);
        let paths = Paths(CatalogBackend::new(self.site.clone(), Arc::new(self.engine.clone())));
        if let Some(Running { service, serving, .. }) = &mut self.running {
            take_frame(&link, (service, serving), &paths, clock);
        }
        self.work(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        if self.held.is_some() {
            return;
        }
        let clock = self.clock(now);
        let paths = Paths(CatalogBackend::new(self.site.clone(), Arc::new(self.engine.clone())));
        if let Some(Running { serving, .. }) = &mut self.running {
            serving.handle_timeout(&paths, clock);
        }
        self.work(now);
    }

    fn poll_frame(&mut self, _now: Now) -> Option<Vec<u8>> {
        if self.held.is_some() { None } else { self.out.pop_front() }
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        self.running.as_mut().filter(|_| self.held.is_none())?.poll_timeout()
    }

    fn fault(&self) -> Option<String> {
        let serving = self.running.as_ref().and_then(|running| running.serving.fault());
        self.fault.clone().or(serving)
    }

    fn crash(&mut self, _how: Crash, _now: Now) {
        self.running = None;
        self.held = None;
        self.out.clear();
    }

    fn restart(&mut self, now: Now) {
        if self.running.is_none() {
            self.start(now);
        }
    }
}
