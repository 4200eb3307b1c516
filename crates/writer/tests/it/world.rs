//! What is at the other end of the writer's connection: a forwarder that registers anything, a head
//! over the catalog in memory, and disks that pull and verify.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use byname_catalog::engine::MemoryEngine;
use byname_catalog::id::{ContentId, DiskId, LeaseEpoch, SessionId};
use byname_catalog::{
    AddDisk, Answer, Caller, Catalog, Checksums, Command, DiskChanges, Entry, Failure, Place,
    Policy, Reader, Receipt, Refusal, Setup, Submission, initialise,
};
use byname_face::{Face, random_u64};
use byname_io::{Clock, Connection, Interest as Watch, Poller, Token};
use byname_link::ReassemblyLimits;
use byname_packet::lp::LpHeader;
use byname_packet::mgmt::ControlResponse;
use byname_packet::{
    Data, DataBuilder, Interest, InterestBuilder, Name, NullSigner, Packet, ValidityPeriod,
};
use byname_security::cert::{Certificate, CertificateRequest, SELF_ISSUER};
use byname_security::key::{KeyPair, KeySigner};
use byname_security::tree::Tree;
use byname_security::trust::{TrustPolicy, Validator};
use byname_site::{
    Agree, Check, Claim, CommandPacket, DiskName, DiskRefusal, DiskView, HeadFailure, Identity,
    Insert, InsertAnswer, Outcome, Reply, SignedReceipt, SiteAnswer, SiteName, Terms, TermsDisk,
    Ticket, check_data, check_interest,
};
use byname_writer::WriterConfig;

/// Faults to be played.
#[derive(Debug, Default, Clone)]
pub(crate) struct Faults {
    /// Disks that refuse.
    pub(crate) refusing: BTreeMap<u64, DiskRefusal>,
    /// So many times another head leads when a disk gets an order.
    pub(crate) heads_change: u64,
    /// The first reply to each kind of command is lost.
    pub(crate) loses_replies: bool,
    /// The head's replies are signed with another key.
    pub(crate) is_forged: bool,
}

struct Holder {
    signer: KeySigner,
    certificate: Certificate,
}

fn holder(seed: u8, namespace: Name, issuer: Option<&Holder>) -> Holder {
    let key = Arc::new(KeyPair::ed25519_from_seed(&[seed; 32]));
    let key_name = namespace.with_generic(b"KEY").with_generic(&[seed; 8]);
    let public_key = key.public_key();
    let request = CertificateRequest {
        key_name: key_name.view(),
        public_key: &public_key,
        issuer_id: if issuer.is_some() { b"site" } else { SELF_ISSUER },
        version: 1,
        validity: ValidityPeriod { not_before_s: 0, not_after_s: 4_000_000_000 },
    };
    let signer = KeySigner::new(key, request.certificate_name());
    let certificate = request.issue(issuer.map_or(&signer, |issuer| &issuer.signer)).unwrap();
    Holder { signer, certificate }
}

/// A pull of one disk.
struct Pull {
    insert: Name,
    claim: Claim,
    segments: BTreeMap<u64, Vec<u8>>,
    segment_size: u64,
}

/// The catalog, for tests to look at.
pub(crate) type SharedCatalog = Arc<Mutex<Catalog<MemoryEngine>>>;

/// Everything but the writer.
pub(crate) struct World {
    site: SiteName,
    head: Holder,
    anna: Holder,
    forger: Holder,
    disks: BTreeMap<DiskName, Holder>,
    catalog: SharedCatalog,
    pulls: BTreeMap<(DiskId, ContentId), Pull>,
    stored: BTreeSet<(DiskId, ContentId)>,
    faults: Faults,
    /// Heads that led before.
    terms: u64,
    /// Kinds of commands that were answered, or whose answer was lost.
    answered: BTreeSet<&'static str>,
    outgoing: Vec<Vec<u8>>,
}

/// A world on a thread of its own, and the writer's end of the connection to it.
pub(crate) struct Running {
    pub(crate) config: WriterConfig,
    pub(crate) catalog: SharedCatalog,
    pub(crate) connection: Option<Connection>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the world failed");
        }
    }
}

impl Running {
    /// What the catalog has at a path.
    pub(crate) fn entry(&self, path: &str) -> Result<Entry, Refusal> {
        let catalog = self.catalog.lock().unwrap();
        let reader = Reader::new(catalog.engine(), &Caller::User("anna".to_owned())).unwrap();
        reader.entry(&Place::path(path).unwrap()).map_err(|failure| match failure {
            Failure::Refused(refusal) => refusal,
            Failure::Engine(error) => panic!("{error}"),
        })
    }
}

impl Running {
    /// Makes anna no operator, and all disks so large.
    pub(crate) fn make_ordinary(&self, capacity_bytes: u64) {
        let catalog = self.catalog.lock().unwrap();
        let disks = Reader::new(catalog.engine(), &Caller::Head).unwrap().disks().unwrap();
        for (disk, _) in disks {
            let changes =
                DiskChanges { capacity_bytes: Some(capacity_bytes), ..DiskChanges::default() };
            let command_of_head = Command::SetDisk { disk, changes };
            let caller = Caller::Head;
            command(&catalog, Submission { caller, request: None, command: command_of_head })
                .unwrap();
        }
        let caller = Caller::User("anna".to_owned());
        let open =
            Submission { caller: caller.clone(), request: None, command: Command::OpenSession };
        let Ok(Answer::Session { session, .. }) = command(&catalog, open) else {
            panic!("a session")
        };
        let request =
            Some(byname_catalog::Request { session, slot: 0, sequence: 1, digest: [0; 32] });
        let set = Command::SetUser {
            user: "anna".to_owned(),
            groups: vec!["cms".to_owned()],
            is_operator: false,
        };
        command(&catalog, Submission { caller, request, command: set }).unwrap();
    }
}

fn command(catalog: &Catalog<MemoryEngine>, submission: Submission) -> Result<Answer, Refusal> {
    match catalog.execute(1, &[submission]).unwrap().remove(0) {
        Ok(answer) => Ok(answer),
        Err(Failure::Refused(refusal)) => Err(refusal),
        Err(Failure::Engine(error)) => panic!("{error}"),
    }
}

/// Adds a disk of 1 MiB that answers.
fn add_disk(catalog: &Catalog<MemoryEngine>, session: SessionId, number: usize) -> DiskName {
    let slot = number as u16;
    let request = Some(byname_catalog::Request { session, slot, sequence: 1, digest: [0; 32] });
    let add = Command::AddDisk(AddDisk {
        space: "main".to_owned(),
        server: format!("server{number}"),
        label: "rack1".to_owned(),
        capacity_bytes: 1 << 20,
    });
    let caller = Caller::User("anna".to_owned());
    let Answer::Disk(id) = command(catalog, Submission { caller, request, command: add }).unwrap()
    else {
        panic!("a disk")
    };
    let changes = DiskChanges { is_up: Some(true), ..DiskChanges::default() };
    let up = Command::SetDisk { disk: id, changes };
    command(catalog, Submission { caller: Caller::Head, request: None, command: up }).unwrap();
    DiskName { place: "rack1".to_owned(), id }
}

/// A catalog in which anna is operator and everything has two replicas; a session of hers.
fn new_catalog(site: &SiteName) -> (Catalog<MemoryEngine>, SessionId) {
    let setup = Setup {
        site: site.octets().to_vec(),
        operator: "anna".to_owned(),
        group: "cms".to_owned(),
        policy: Policy { space: "main".to_owned(), replica_count: 2, receipt_count: 2 },
        key: None,
    };
    let engine = MemoryEngine::default();
    initialise(&engine, &setup, 1).unwrap();
    let catalog = Catalog::lead(engine, "head", (1, u64::MAX)).unwrap();
    let caller = Caller::User("anna".to_owned());
    let open = Submission { caller, request: None, command: Command::OpenSession };
    let Answer::Session { session, .. } = command(&catalog, open).unwrap() else {
        panic!("a session")
    };
    (catalog, session)
}

/// A site with so many disks, on a thread of its own.
pub(crate) fn start(disk_count: usize, faults: Faults) -> Running {
    let site = SiteName::new("/cern/cms".parse().unwrap()).unwrap();
    let head = holder(1, site.view().to_name(), None);
    let anna = holder(2, site.user("anna"), Some(&head));
    let (catalog, session) = new_catalog(&site);
    let mut disks = BTreeMap::new();
    for number in 0..disk_count {
        let name = add_disk(&catalog, session, number);
        let key = holder(10 + number as u8, site.disk(&name), Some(&head));
        disks.insert(name, key);
    }
    let forger = holder(99, site.view().to_name(), None);
    let mut trust = TrustPolicy::default();
    trust.add_anchor(site.view().to_name(), head.certificate.key_id());
    let config = WriterConfig {
        site: site.clone(),
        namespace: site.user("anna"),
        speaks_for: None,
        signer: anna.signer.clone(),
        trust,
        waits_for_head: false,
    };
    let catalog = Arc::new(Mutex::new(catalog));
    let (pulls, stored, answered, outgoing) = Default::default();
    let world = World {
        site,
        head,
        anna,
        forger,
        disks,
        catalog: catalog.clone(),
        pulls,
        stored,
        faults,
        terms: 0,
        answered,
        outgoing,
    };
    let (ours, theirs) = Connection::pair().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let is_stopped = stop.clone();
    let thread = std::thread::spawn(move || world.run(theirs, &is_stopped));
    Running { config, catalog, connection: Some(ours), stop, thread: Some(thread) }
}

impl World {
    fn run(mut self, connection: Connection, stop: &AtomicBool) {
        let (mut poller, mut events) = (Poller::new().unwrap(), Vec::new());
        poller.add(&connection, Token(0), Watch::READ).unwrap();
        let mut face = Face::new(connection, ReassemblyLimits::default());
        while !stop.load(Ordering::Relaxed) {
            poller.wait(&mut events, Some(Duration::from_millis(20))).unwrap();
            let mut packets = Vec::new();
            let received = face.receive(0, |received| {
                assert_eq!(received.header.nack, None, "the writer has what is asked for");
                packets.push(received.packet.to_vec());
            });
            for wire in packets {
                match Packet::decode(&wire).unwrap() {
                    Packet::Interest(interest) => self.interest(&interest),
                    Packet::Data(data) => self.segment(&data),
                }
            }
            for wire in self.outgoing.drain(..) {
                // A writer that has ended takes nothing.
                let _ = face.send(&LpHeader::default(), &wire, 0);
            }
            let _ = face.flush();
            if received.is_err() {
                return;
            }
        }
    }

    fn validator(&self) -> Validator {
        let mut policy = TrustPolicy::default();
        policy.add_anchor(self.site.view().to_name(), self.head.certificate.key_id());
        let mut validator = Validator::new(policy);
        for holder in self.disks.values().chain([&self.head, &self.anna]) {
            validator.add_certificate(holder.certificate.wire()).unwrap();
        }
        validator
    }

    fn now_s() -> u64 {
        Clock::new().unix_ns() / 1_000_000_000
    }

    fn interest(&mut self, interest: &Interest<'_>) {
        let text = interest.name.to_name().to_string();
        if text.starts_with("/localhost/nfd/rib/register") {
            let (mut content, mut wire) = (Vec::new(), Vec::new());
            ControlResponse::new(200, "OK").encode(&mut content);
            let builder = DataBuilder::new(interest.name);
            builder.encode(&content, &NullSigner, &mut wire).unwrap();
            self.outgoing.push(wire);
        } else if interest.name.is_prefix_of(self.head.certificate.name()) {
            self.outgoing.push(self.head.certificate.wire().to_vec());
        } else if interest.name.is_prefix_of(self.forger.certificate.name()) {
            self.outgoing.push(self.forger.certificate.wire().to_vec());
        } else if let Some(disk) = self.site.parse_insert(interest.name) {
            self.insert(interest, &disk);
        } else {
            self.command(interest);
        }
    }

    fn command(&mut self, interest: &Interest<'_>) {
        let mut validator = self.validator();
        let check = check_interest(&self.site, interest, &mut validator, Self::now_s());
        let Check::Accepted(who) = check else { panic!("{check:?}") };
        let Identity::User(user) = &who.identity else { panic!("{who:?}") };
        // This head knows nothing of keys of sessions: its writers go on signing.
        if Agree::is_named(&self.site, interest.name) {
            return self.malformed(interest);
        }
        let mut packet = CommandPacket::decode(&self.site, interest).unwrap();
        let request = packet.catalog_request();
        if let Command::Commit(commit) = &mut packet.command {
            commit.receipts = packet
                .receipts
                .iter()
                .map(|wire| {
                    let data = Data::decode(wire).unwrap();
                    let found = SignedReceipt::decode(&self.site, &data).unwrap();
                    let check = check_data(&self.site, &data, &mut validator, Self::now_s());
                    let Check::Accepted(signer) = check else { panic!("{check:?}") };
                    assert_eq!(signer.identity, Identity::Disk(found.disk));
                    found.receipt
                })
                .collect();
        }
        let operation = packet.command.name();
        let submission =
            Submission { caller: Caller::User(user.clone()), request, command: packet.command };
        let epoch = self.epoch();
        let catalog = self.catalog.lock().unwrap();
        let outcome = match command(&catalog, submission) {
            Ok(Answer::Ticket(ticket)) => {
                let place = |disk| DiskName { place: "rack1".to_owned(), id: disk };
                let disks = ticket
                    .disks
                    .iter()
                    .map(|disk| TermsDisk { name: place(disk.disk), generation: disk.generation });
                let terms = Terms {
                    content: ticket.content,
                    epoch,
                    size_max: ticket.size_max,
                    receipt_count: ticket.receipt_count,
                    expires_ns: Clock::new().unix_ns(),
                    disks: disks.collect(),
                    origin: None,
                };
                let now_s = Self::now_s();
                let ticket = Ticket::issue(&self.site, terms, &who.key, now_s, &self.head.signer);
                Outcome::Done(Box::new(SiteAnswer::Ticket(ticket.unwrap())))
            }
            Ok(answer) => Outcome::Done(Box::new(SiteAnswer::Plain(answer))),
            Err(refusal) => Outcome::Refused(refusal),
        };
        let signer = if self.faults.is_forged { &self.forger.signer } else { &self.head.signer };
        let wire = Reply { epoch, outcome }.encode(interest.name, signer).unwrap();
        if !self.faults.loses_replies || !self.answered.insert(operation) {
            self.outgoing.push(wire);
        }
    }

    /// The term of the head that leads.
    fn epoch(&self) -> LeaseEpoch {
        LeaseEpoch(self.catalog.lock().unwrap().epoch().0 + self.terms)
    }

    fn malformed(&mut self, interest: &Interest<'_>) {
        let (failure, reason) = (HeadFailure::Malformed, String::new());
        let epoch = self.epoch();
        let reply = Reply { epoch, outcome: Outcome::Failed { failure, reason } };
        self.outgoing.push(reply.encode(interest.name, &self.head.signer).unwrap());
    }

    fn insert(&mut self, interest: &Interest<'_>, disk: &DiskName) {
        let (_, order) = Insert::decode(&self.site, interest).unwrap();
        self.terms += u64::from(self.terms < self.faults.heads_change);
        let epoch = self.epoch();
        let generation = order.ticket.disk(disk).unwrap().generation;
        let view = DiskView { name: disk, generation, epoch };
        let mut validator = self.validator();
        let check = order.check(&self.site, interest, view, (&mut validator, Self::now_s()));
        if check == Check::Refused(DiskRefusal::OldEpoch) {
            let answer = InsertAnswer::Refused(DiskRefusal::OldEpoch);
            return self.answer(disk, interest.name.to_name(), &answer);
        }
        let Check::Accepted(claim) = check else { panic!("{check:?}") };
        if let Some(refusal) = self.faults.refusing.get(&disk.id.0) {
            let answer = InsertAnswer::Refused(*refusal);
            return self.answer(disk, interest.name.to_name(), &answer);
        }
        let key = (disk.id, claim.content);
        if self.stored.contains(&key) || self.pulls.contains_key(&key) {
            return;
        }
        let segment_size = self.site.segment_size(claim.content) as u64;
        let insert = interest.name.to_name();
        let pull = Pull { insert, claim, segments: BTreeMap::new(), segment_size };
        self.pulls.insert(key, pull);
        let content = self.site.content(claim.content);
        for segment in 0..claim.size.div_ceil(segment_size) {
            let name = content.with_segment(segment);
            let mut wire = Vec::new();
            let nonce = (random_u64() as u32).to_be_bytes();
            InterestBuilder::new(name.view()).nonce(nonce).encode(&mut wire);
            self.outgoing.push(wire);
        }
    }

    fn answer(&mut self, disk: &DiskName, name: Name, answer: &InsertAnswer) {
        let wire = answer.encode(name.view(), &self.disks[disk].signer).unwrap();
        self.outgoing.push(wire);
    }

    /// A segment that one or more disks wait for.
    fn segment(&mut self, data: &Data<'_>) {
        let content = self.site.parse_content(data.name.without_last(1)).unwrap();
        let segment = data.name.last().unwrap().segment().unwrap();
        let disks: Vec<DiskName> = self.disks.keys().cloned().collect();
        for disk in disks {
            let key = (disk.id, content);
            let Some(pull) = self.pulls.get_mut(&key) else { continue };
            pull.segments.insert(segment, data.content.to_vec());
            if pull.segments.len() as u64 != pull.claim.size.div_ceil(pull.segment_size) {
                continue;
            }
            let pull = self.pulls.remove(&key).unwrap();
            self.stored.insert(key);
            let octets: Vec<u8> = pull.segments.into_values().flatten().collect();
            let Claim { size, root, .. } = pull.claim;
            let answer =
                if octets.len() as u64 == size && *Tree::of(&octets).root.as_bytes() == root {
                    let receipt = Receipt {
                        site: self.site.octets().to_vec(),
                        disk: disk.id,
                        generation: self.generation(&disk),
                        content,
                        size,
                        root,
                        checksums: Checksums { adler32: 7, crc32c: 8 },
                    };
                    let signed = SignedReceipt { disk: disk.clone(), receipt };
                    let signer = &self.disks[&disk].signer;
                    InsertAnswer::Stored(signed.encode(&self.site, signer).unwrap())
                } else {
                    InsertAnswer::Refused(DiskRefusal::Mismatch)
                };
            self.answer(&disk, pull.insert, &answer);
        }
    }

    fn generation(&self, disk: &DiskName) -> u64 {
        let catalog = self.catalog.lock().unwrap();
        let reader = Reader::new(catalog.engine(), &Caller::Head).unwrap();
        reader.disk(disk.id).unwrap().generation
    }
}
