//! A disk server: the production service, orders, machine and directory over a file system in
//! memory. What its threads do is done here, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use byname_catalog::id::{ContentId, LeaseEpoch};
use byname_disk::machine::Limits;
use byname_disk::orders::Orders;
use byname_disk::pull::Receiving;
use byname_disk::{
    DiskDirectory, DiskService, Event, Files, Hidden, Label, Machine, Question, ReadWork,
    WorkQueues, Workers,
};
use byname_packet::lp::LpPacket;
use byname_packet::{Data, Interest, Packet};
use byname_security::cert::Certificate;
use byname_security::trust::{TrustPolicy, Validator};
use byname_site::{DiskName, SiteName, Stamp};
use byname_store::Service;
use byname_transfer::naming::content_path;
use byname_transfer::server::{ListFailure, Listing, Located};

use super::files::{MemoryFiles, Moment};
use super::identity::Identity;
use super::serving::{Object, Objects, Serving, clocks, take_frame};
use crate::program::{Crash, Now, Program};
use crate::random::Random;
use crate::world::{MS, SECOND};

mod pulling;

use pulling::PullInFlight;

const ROOT: &str = "/disk";
/// Silence of a writer after which a pull fails.
const PULL_PATIENCE_NS: u64 = 30 * SECOND;
/// Time that the head has for an answer.
const HEAD_PATIENCE_NS: u64 = 4 * SECOND;
/// Time that syncs take, at most.
const SYNC_NS: u64 = 30 * MS;

/// A running process.
struct Running {
    service: DiskService,
    queues: WorkQueues,
    events: Sender<Event>,
    directory: Arc<DiskDirectory>,
    serving: Serving,
    hidden: Hidden,
    pulls: BTreeMap<ContentId, PullInFlight>,
    /// Outcomes of what waits for the disk, by time and order.
    due: BTreeMap<(u64, u64), Event>,
    /// The disk in the middle of the syncs that end at this time, and at their end.
    torn: Option<(u64, Moment, Moment)>,
    /// Questions to the head by name, with when they are given up.
    questions: BTreeMap<Vec<u8>, (Question, u64)>,
}

/// See the module.
pub struct SiteDisk {
    name: DiskName,
    site: SiteName,
    identity: Identity,
    /// The file system, to spoil it or to look at it.
    pub files: MemoryFiles,
    running: Option<Running>,
    random: Random,
    number: u64,
    out: VecDeque<Vec<u8>>,
    fault: Option<String>,
}

impl SiteDisk {
    /// A disk in an empty file system.
    pub(super) fn new(
        (site, name): (&SiteName, &DiskName),
        identity: Identity,
        site_certificate: &[u8],
        seed: u64,
    ) -> Self {
        let files = MemoryFiles::default();
        let (site_name, place) = (site.view().to_name(), name.place.clone());
        let label = Label { site: site_name, place, disk: name.id, generation: 1 };
        let root = Path::new(ROOT);
        DiskDirectory::format_in(Arc::new(files.clone()), root, &label, site_certificate)
            .expect("an empty file system");
        for directory in [ROOT, "/disk/objects", "/disk/records"] {
            files.sync_directory(Path::new(directory)).expect("nothing fails in memory");
        }
        let (site, name) = (site.clone(), name.clone());
        let mut disk = Self {
            name,
            site,
            identity,
            files,
            running: None,
            random: Random::new(seed),
            number: 0,
            out: VecDeque::new(),
            fault: None,
        };
        disk.start(0);
        disk
    }

    /// The same disk once more, with what it has now, and a process of its own.
    pub(super) fn cloned(&self, now_ns: u64) -> Self {
        let files = MemoryFiles::default();
        files.restore(self.files.moment());
        files.unlock();
        let mut clone = Self {
            name: self.name.clone(),
            site: self.site.clone(),
            identity: self.identity.clone(),
            files,
            running: None,
            random: Random::new(now_ns),
            number: 0,
            out: VecDeque::new(),
            fault: None,
        };
        clone.start(now_ns);
        clone
    }

    /// Its name.
    pub fn name(&self) -> &DiskName {
        &self.name
    }

    /// Contents that it has, with their octets.
    pub fn replicas(&self) -> BTreeMap<String, Vec<u8>> {
        let below = self.files.below(&Path::new(ROOT).join("objects"));
        let name = |path: &PathBuf| path.file_name()?.to_str().map(str::to_owned);
        below.into_iter().filter_map(|(path, octets)| Some((name(&path)?, octets))).collect()
    }

    /// Paths of what it has in its file system.
    pub fn objects(&self) -> Vec<PathBuf> {
        self.files.below(&Path::new(ROOT).join("objects")).into_keys().collect()
    }

    /// Octets of a content.
    pub fn octets(&self, content: ContentId) -> Option<Vec<u8>> {
        self.files.octets(&Self::object(content))
    }

    /// The highest term that it keeps.
    pub fn kept_epoch(&self) -> LeaseEpoch {
        let octets = self.files.octets(&Path::new(ROOT).join("epoch")).unwrap_or_default();
        LeaseEpoch(String::from_utf8_lossy(&octets).trim().parse().unwrap_or_default())
    }

    /// Path of a content's octets in its file system.
    pub fn object(content: ContentId) -> PathBuf {
        let path = content_path(content.inode.0, content.version.0);
        Path::new(ROOT).join("objects").join(String::from_utf8_lossy(&path).into_owned())
    }

    fn start(&mut self, now_ns: u64) {
        let files = Arc::new(self.files.clone());
        let (directory, scan) = match DiskDirectory::open_in(files, Path::new(ROOT)) {
            Ok(opened) => opened,
            Err(error) => {
                self.fault = Some(format!("a disk starts again: {error}"));
                return;
            }
        };
        let certificate = directory.site_certificate().expect("it was made with one");
        let certificate = Certificate::decode(&certificate).expect("a certificate");
        let mut policy = TrustPolicy::default();
        policy.add_anchor(self.site.view().to_name(), certificate.key_id());
        let mut validator = Validator::new(policy);
        validator.give_certificate(certificate);
        let orders = Orders {
            site: self.site.clone(),
            disk: self.name.clone(),
            generation: directory.label().generation,
            signer: self.identity.signer(),
            validator,
        };
        let machine = Machine::new(Limits::default(), &scan, now_ns);
        let (workers, queues) = Workers::queues();
        let (events, told) = channel();
        let certificate = self.identity.certificate();
        self.running = Some(Running {
            service: DiskService::new(orders, machine, workers, told),
            queues,
            events,
            hidden: directory.hidden().clone(),
            directory: Arc::new(directory),
            serving: Serving::new(&self.site, self.identity.signer(), (certificate, true)),
            pulls: BTreeMap::new(),
            due: BTreeMap::new(),
            torn: None,
            questions: BTreeMap::new(),
        });
    }

    /// Does what the service wants done, until there is nothing more.
    fn work(&mut self, now: Now) {
        let Some(mut running) = self.running.take() else { return };
        loop {
            running.tell_due(now.now_ns);
            running.service.handle_timeout(clocks(now));
            let is_idle = !self.begin(&mut running, now);
            if is_idle {
                break;
            }
        }
        self.advance_pulls(&mut running, now);
        let Running { service, serving, .. } = &mut running;
        let answers = std::iter::from_fn(|| service.poll_transmit());
        self.out.extend(answers.chain(serving.out.drain(..)).map(|outgoing| outgoing.wire));
        self.running = Some(running);
    }

    /// Begins what is in the queues; true if there was something.
    fn begin(&mut self, running: &mut Running, now: Now) -> bool {
        let mut is_any = false;
        while let Ok(change) = running.queues.changes.try_recv() {
            is_any = true;
            let event = change.carry_out(&running.directory);
            if let Some(event) = event {
                self.finish_later(running, event, now.now_ns);
            }
        }
        while let Ok(work) = running.queues.pulls.try_recv() {
            is_any = true;
            let receiving = Receiving::begin(&work.pull, &running.directory);
            self.begin_pull(running, work, receiving, now);
        }
        while let Ok(work) = running.queues.rereads.try_recv() {
            is_any = true;
            // Heads in here have disks prove what they have, and compare nothing.
            if let ReadWork::Proof(work) = work {
                let proof = work.carry_out(&running.directory);
                self.finish_later(running, Event::Proved(work.name, proof), now.now_ns);
            }
        }
        while let Ok(question) = running.queues.questions.try_recv() {
            is_any = true;
            self.ask(running, question, now);
        }
        is_any
    }

    fn ask(&mut self, running: &mut Running, question: Question, now: Now) {
        self.number += 1;
        let stamp = Stamp {
            time_ms: now.unix_ns / MS + self.number,
            nonce: self.random.draw().to_be_bytes(),
        };
        let generation = running.directory.label().generation;
        let signer = self.identity.signer();
        let wire = question.interest(&self.site, (generation, &*signer), stamp);
        let Ok(interest) = Interest::decode(&wire) else { return };
        let name = interest.name.value().to_vec();
        let mut out = Vec::new();
        let nonce = (self.random.draw() as u32).to_be_bytes();
        interest.encode_forwarded(nonce, None, &mut out);
        self.out.push_back(out);
        running.questions.insert(name, (question, now.now_ns + HEAD_PATIENCE_NS));
    }

    fn finish_later(&mut self, running: &mut Running, event: Event, now_ns: u64) -> u64 {
        self.number += 1;
        let at_ns = now_ns + 1 + self.random.below(SYNC_NS);
        running.due.insert((at_ns, self.number), event);
        at_ns
    }

    fn take_answer(&mut self, link: &LpPacket<'_>) {
        let Some(running) = &mut self.running else { return };
        let Some(packet) = link.fragment else { return };
        let (name, reply) = match (Packet::decode(packet), link.header.nack) {
            (Ok(Packet::Data(Data { name, .. })), None) => (name, Some(packet.to_vec())),
            (Ok(Packet::Interest(Interest { name, .. })), Some(_)) => (name, None),
            _ => return,
        };
        if let Some((question, _)) = running.questions.remove(name.value()) {
            let _ = running.events.send(question.answered(reply));
        }
    }
}

impl Running {
    fn tell_due(&mut self, now_ns: u64) {
        while let Some(entry) = self.due.first_entry().filter(|it| it.key().0 <= now_ns) {
            let _ = self.events.send(entry.remove());
        }
        let is_over = |(_, until_ns): &(Question, u64)| *until_ns <= now_ns;
        let over = self.questions.iter().find(|(_, it)| is_over(it)).map(|(name, _)| name.clone());
        if let Some((question, _)) = over.and_then(|name| self.questions.remove(&name)) {
            let _ = self.events.send(question.answered(None));
        }
    }
}

/// The contents on a disk.
struct Contents<'a>(&'a MemoryFiles, &'a Hidden);

impl Objects for Contents<'_> {
    fn locate(&self, path: &[u8]) -> Object {
        if self.1.has_path(path) {
            return Object::Other(Located::NotFound);
        }
        let path = Path::new(ROOT).join("objects").join(String::from_utf8_lossy(path).as_ref());
        match self.0.octets(&path) {
            Some(octets) => Object::File(octets),
            None => Object::Other(Located::NotFound),
        }
    }

    fn list(&self, _: &[u8], _: bool, _: usize) -> Result<Listing, ListFailure> {
        Err(ListFailure::NotFound)
    }
}

impl Program for SiteDisk {
    fn handle_frame(&mut self, frame: &[u8], now: Now) {
        let Ok(link) = LpPacket::decode(frame) else { return };
        self.take_answer(&link);
        if let Some(Running { service, serving, hidden, pulls, .. }) = &mut self.running {
            take_frame(&link, (service, serving), &Contents(&self.files, hidden), now);
            pulls.values_mut().for_each(|one| one.fetching.handle_frame(&link, now));
        }
        self.work(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        if let Some(Running { serving, hidden, pulls, .. }) = &mut self.running {
            serving.handle_timeout(&Contents(&self.files, hidden), now);
            pulls.values_mut().for_each(|one| one.fetching.handle_timeout(now));
        }
        self.work(now);
    }

    fn poll_frame(&mut self, _now: Now) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        let running = self.running.as_mut()?;
        let due = running.due.keys().next().map(|(at_ns, _)| *at_ns);
        let questions = running.questions.values().map(|(_, until_ns)| *until_ns).min();
        let pulls = running.pulls.values_mut().filter_map(|one| {
            let patience_ns = one.last_ns + PULL_PATIENCE_NS;
            Some(one.fetching.poll_timeout()?.min(patience_ns))
        });
        let pulls = pulls.min();
        let own = [running.service.poll_timeout(), running.serving.poll_timeout()];
        own.into_iter().chain([due, questions, pulls]).flatten().min()
    }

    fn fault(&self) -> Option<String> {
        let serving = self.running.as_ref().and_then(|running| running.serving.fault());
        let mut pulls = self.running.iter().flat_map(|running| running.pulls.values());
        self.fault.clone().or(serving).or_else(|| pulls.find_map(|one| one.fetching.fault()))
    }

    fn crash(&mut self, how: Crash, now: Now) {
        if let Some(running) = self.running.take()
            && let Some((until_ns, middle, end)) = running.torn
            && until_ns > now.now_ns
            && self.files.is_as(&end)
        {
            self.files.restore(middle);
        }
        self.files.unlock();
        self.out.clear();
        if how == Crash::Power {
            self.files.cut_power(&mut self.random);
        }
    }

    fn restart(&mut self, now: Now) {
        if self.running.is_none() {
            self.start(now.now_ns);
        }
    }
}
