//! A site with its head, an operator, a user and two disks, all in memory.

use std::sync::Arc;

use byname_catalog::engine::{Engine, MemoryEngine};
use byname_catalog::id::SessionId;
use byname_catalog::{
    AddDisk, AddKey, Answer, Caller, Catalog, Command, KeyHolder, Place, Policy, Reader, Setup,
    initialise,
};
use byname_head::{CommandAnswer, Commands, Executor, Watch};
use byname_packet::{Data, Interest, Name, ValidityPeriod};
use byname_security::cert::{Certificate, CertificateRequest, SELF_ISSUER};
use byname_security::key::{KeyPair, KeySigner};
use byname_security::trust::{TrustPolicy, Validator};
use byname_site::{
    Check, CommandPacket, DiskName, Identity, Outcome, Reply, RequestId, SiteAnswer, SiteName,
    Stamp, check_data,
};
use byname_transfer::server::{Arrival, FaceId, Now, SharedSigner};

pub(crate) const NOW_S: u64 = 1_800_000_000;
pub(crate) const NOW_NS: u64 = NOW_S * 1_000_000_000;

/// How long each batch takes.
pub(crate) const BATCH_NS: u64 = 1_000_000;

/// A key with its certificate, which it has signed itself.
pub(crate) struct Holder {
    pub(crate) key: Arc<KeyPair>,
    pub(crate) certificate: Certificate,
    pub(crate) signer: KeySigner,
}

impl Holder {
    pub(crate) fn new(seed: u8, namespace: &Name) -> Self {
        let key = Arc::new(KeyPair::ed25519_from_seed(&[seed; 32]));
        let key_name = namespace.with_generic(b"KEY").with_generic(&[seed; 8]);
        let public_key = key.public_key();
        let request = CertificateRequest {
            key_name: key_name.view(),
            public_key: &public_key,
            issuer_id: SELF_ISSUER,
            version: 1,
            validity: ValidityPeriod { not_before_s: NOW_S - 9, not_after_s: NOW_S + 999_999 },
        };
        let signer = KeySigner::new(key.clone(), request.certificate_name());
        let certificate = request.issue(&signer).unwrap();
        Self { key, certificate, signer }
    }
}

pub(crate) fn place(path: &str) -> Place {
    Place::path(path).unwrap()
}

pub(crate) struct TestHead {
    pub(crate) site: SiteName,
    pub(crate) own: Holder,
    pub(crate) operator: Holder,
    pub(crate) anna: Holder,
    pub(crate) disks: Vec<(DiskName, Holder)>,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) commands: Commands,
    executor: Executor,
    /// Session of the operator and of anna, with the last sequence.
    sessions: [Option<(SessionId, u64)>; 2],
    pub(crate) stamps: u64,
    /// The head's clock is later by this.
    pub(crate) later_ns: u64,
}

impl TestHead {
    pub(crate) fn new() -> Self {
        let site = SiteName::new("/test/site".parse().unwrap()).unwrap();
        let own = Holder::new(1, &site.view().to_name());
        let operator = Holder::new(2, &site.user("op"));
        let anna = Holder::new(3, &site.user("anna"));
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
        let name = operator.certificate.key_name().value().to_vec();
        let setup = Setup {
            site: site.octets().to_vec(),
            operator: "op".into(),
            group: "ops".into(),
            key: Some((name, operator.certificate.wire().to_vec())),
            policy: Policy { space: "main".into(), replica_count: 2, receipt_count: 2 },
        };
        initialise(&*engine, &setup, NOW_NS).unwrap();
        let executor = executor(&site, &own, &engine);
        let mut head = Self {
            site,
            own,
            operator,
            anna,
            disks: Vec::new(),
            engine,
            commands: Commands::default(),
            executor,
            sessions: [None; 2],
            stamps: 0,
            later_ns: 0,
        };
        let groups = vec!["users".to_owned()];
        head.done(Command::SetUser { user: "anna".into(), groups, is_operator: false });
        head.add_key(KeyHolder::User("anna".into()), 3);
        for seed in [10, 11] {
            head.add_disk(seed);
        }
        head
    }

    pub(crate) fn add_disk(&mut self, seed: u8) {
        let disk = AddDisk {
            space: "main".into(),
            server: format!("server{seed}"),
            label: "rack".into(),
            capacity_bytes: 1 << 40,
        };
        let SiteAnswer::Plain(Answer::Disk(id)) = self.done(Command::AddDisk(disk)) else {
            panic!("no disk")
        };
        let name = DiskName { place: "rack".into(), id };
        let holder = Holder::new(seed, &self.site.disk(&name));
        let key = add_key(KeyHolder::Disk(id), &holder);
        self.disks.push((name, holder));
        self.done(key);
    }

    fn add_key(&mut self, holder: KeyHolder, seed: u8) {
        let key = add_key(holder, &Holder::new(seed, &self.site.user("anna")));
        self.done(key);
    }

    /// Another head takes over.
    pub(crate) fn restart(&mut self) {
        drop(self.take_over());
    }

    /// Another head takes over, and the first one goes on.
    pub(crate) fn take_over(&mut self) -> Executor {
        let next = executor(&self.site, &self.own, &self.engine);
        std::mem::replace(&mut self.executor, next)
    }

    /// Commands reach this head from now on.
    pub(crate) fn speak_to(&mut self, executor: Executor) {
        self.executor = executor;
    }

    /// Lets no user and no door send more a second.
    pub(crate) fn limit(&mut self, rates: byname_head::Rates) {
        self.executor.limit_rates(rates);
    }

    /// Looks after the disks.
    pub(crate) fn watch(&self) -> Watch {
        let certificates = [self.own.certificate.wire().to_vec()];
        let own: (SharedSigner, &[Vec<u8>]) = (Arc::new(self.own.signer.clone()), &certificates);
        Watch::new(self.site.clone(), self.engine.clone(), own, &self.executor)
    }

    /// Executes commands of the head's own.
    pub(crate) fn carry_out(&mut self, commands: Vec<Command>) {
        self.executor.carry_out(commands, NOW_NS + self.later_ns).unwrap();
    }

    /// The head's term.
    pub(crate) fn epoch(&self) -> byname_catalog::id::LeaseEpoch {
        self.executor.epoch()
    }

    /// Ends what is due by then.
    pub(crate) fn expire(&mut self, unix_ns: u64) {
        while self.executor.expire(unix_ns).unwrap() {}
    }

    pub(crate) fn stamp(&mut self) -> Stamp {
        self.stamps += 1;
        let now_ms = NOW_S * 1000 + self.later_ns / 1_000_000;
        Stamp { time_ms: now_ms + self.stamps, nonce: self.stamps.to_be_bytes() }
    }

    /// The next request of a user.
    pub(crate) fn request(&mut self, is_operator: bool) -> RequestId {
        let index = usize::from(is_operator);
        if self.sessions[index].is_none() {
            let packet = CommandPacket::new(None, Command::OpenSession);
            let wire = self.signed(is_operator, &packet);
            let SiteAnswer::Plain(Answer::Session { session, .. }) = done(self.send(&wire)) else {
                panic!("no session")
            };
            self.sessions[index] = Some((session, 0));
        }
        let (session, sequence) = self.sessions[index].as_mut().unwrap();
        *sequence += 1;
        RequestId { session: *session, slot: 0, sequence: *sequence }
    }

    pub(crate) fn signed(&mut self, is_operator: bool, packet: &CommandPacket) -> Vec<u8> {
        let stamp = self.stamp();
        let signer = if is_operator { &self.operator.signer } else { &self.anna.signer };
        packet.encode(&self.site, signer, stamp).unwrap()
    }

    /// Executes an operator's command.
    pub(crate) fn done(&mut self, command: Command) -> SiteAnswer {
        done(self.run(true, command))
    }

    /// Executes a user's command.
    pub(crate) fn run(&mut self, is_operator: bool, command: Command) -> Reply {
        let packet = CommandPacket::new(Some(self.request(is_operator)), command);
        let wire = self.signed(is_operator, &packet);
        let reply = self.send(&wire);
        self.settle(is_operator, &reply);
        reply
    }

    /// A command that was not executed has not used its sequence.
    pub(crate) fn settle(&mut self, is_operator: bool, reply: &Reply) {
        if let Outcome::Failed { .. } = reply.outcome
            && let Some((_, sequence)) = &mut self.sessions[usize::from(is_operator)]
        {
            *sequence -= 1;
        }
    }

    /// Sends one Interest through queue and catalog; the answer is verified.
    pub(crate) fn send(&mut self, wire: &[u8]) -> Reply {
        let data = self.send_for_data(wire);
        Reply::decode(&self.site, &Data::decode(&data).unwrap()).unwrap()
    }

    pub(crate) fn send_for_data(&mut self, wire: &[u8]) -> Vec<u8> {
        let packet = self.answered(wire);
        let decoded = Data::decode(&packet).unwrap();
        let checked = check_data(&self.site, &decoded, &mut self.validator(), NOW_S);
        let Check::Accepted(found) = checked else { panic!("{checked:?}") };
        assert_eq!(found.identity, Identity::Site);
        packet
    }

    /// The same; the answer may be under keys of a session.
    pub(crate) fn answered(&mut self, wire: &[u8]) -> Vec<u8> {
        let answers = self.executed(wire);
        let [CommandAnswer::Data(data)] = answers.as_slice() else { panic!("{answers:?}") };
        let packet = data.clone();
        self.commands.handle_answers(answers);
        let sent = self.commands.poll_transmit().unwrap();
        assert!(sent.wire.ends_with(&packet));
        let decoded = Data::decode(&packet).unwrap();
        assert!(Interest::decode(wire).unwrap().matches(&decoded));
        packet
    }

    /// What comes of a command, before it is sent.
    pub(crate) fn executed(&mut self, wire: &[u8]) -> Vec<CommandAnswer> {
        let interest = Interest::decode(wire).unwrap();
        let arrival = Arrival {
            interest: &interest,
            pit_token: None,
            congestion_mark: None,
            face: FaceId(1),
            incoming_face_id: None,
            path_trace: None,
        };
        let now = Now { now_ns: 0, unix_ns: NOW_NS + self.later_ns };
        self.commands.handle_interest(&arrival, now);
        let batch = self.commands.poll_batch(now).unwrap();
        let answers = self.executor.execute(&batch, now.unix_ns);
        self.executor.end_batch(BATCH_NS);
        answers
    }

    /// What everybody trusts: the site's key.
    pub(crate) fn validator(&self) -> Validator {
        let mut policy = TrustPolicy::default();
        policy.add_anchor(self.site.view().to_name(), self.own.key.key_id());
        let mut validator = Validator::new(policy);
        validator.add_certificate(self.own.certificate.wire()).unwrap();
        validator
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader::new(&*self.engine, &Caller::Head).unwrap()
    }
}

fn executor(site: &SiteName, own: &Holder, engine: &Arc<dyn Engine>) -> Executor {
    let catalog = Catalog::lead(engine.clone(), "head", (NOW_NS, u64::MAX)).unwrap();
    Executor::new(catalog, site.clone(), Arc::new(own.signer.clone()))
}

pub(crate) fn add_key(holder: KeyHolder, of: &Holder) -> Command {
    Command::AddKey(AddKey {
        holder,
        name: of.certificate.key_name().value().to_vec(),
        certificate: of.certificate.wire().to_vec(),
    })
}

pub(crate) fn done(reply: Reply) -> SiteAnswer {
    match reply.outcome {
        Outcome::Done(answer) => *answer,
        other => panic!("{other:?}"),
    }
}
