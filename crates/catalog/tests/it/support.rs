//! A site in a test: a catalog over some engine, users with sessions, a clock that the test moves,
//! and a check of everything after each command.

use std::collections::HashMap;
use std::sync::Arc;

use byname_catalog::engine::Engine;
use byname_catalog::id::{ContentId, DiskId, SessionId};
use byname_catalog::{
    AddDisk, Answer, Caller, Catalog, CatalogError, Checksums, Command, Commit, Create, Entry,
    Failure, Grant, MeasuredTrash, Place, Policy, PolicyChanges, Publish, Reader, Receipt, Refusal,
    Request, SLOT_COUNT, SetDoor, Setup, SpokenFor, Submission, Ticket, check, initialise,
};

use crate::under_test::{CASES_MAX, TestEngine};

/// The name `/test/site`, TLV-VALUE.
pub(crate) const SITE: &[u8] = b"\x08\x04test\x08\x04site";
pub(crate) const HOUR_NS: u64 = 3_600_000_000_000;
/// Lease that outlasts every test.
const ALWAYS: u64 = u64::MAX;

/// So many random cases, fewer where the engine is slow, or as `PROPTEST_CASES` says. A failure
/// prints its input, and is not written into the tree.
pub(crate) fn cases(count: u32) -> proptest::test_runner::Config {
    let default = proptest::test_runner::Config::default();
    let is_asked = std::env::var_os("PROPTEST_CASES").is_some();
    let cases = if is_asked { default.cases } else { count.min(CASES_MAX) };
    proptest::test_runner::Config { cases, failure_persistence: None, ..default }
}

pub(crate) fn setup() -> Setup {
    Setup {
        site: SITE.to_vec(),
        operator: "op".into(),
        group: "ops".into(),
        key: None,
        policy: Policy { space: "main".into(), replica_count: 2, receipt_count: 2 },
    }
}

pub(crate) struct TestSite {
    pub(crate) catalog: Catalog<Arc<dyn Engine>>,
    pub(crate) now_ns: u64,
    pub(crate) disks: Vec<DiskId>,
    /// Session and last sequences of each user.
    sessions: HashMap<String, (SessionId, [u64; SLOT_COUNT as usize])>,
}

impl TestSite {
    /// A site with the operator `op`, the users `anna` and `bert`, and three disks.
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        let now_ns = 1_000 * HOUR_NS;
        initialise(&*engine, &setup(), now_ns).unwrap();
        let catalog = Catalog::lead(engine, "head", (now_ns, ALWAYS)).unwrap();
        let mut site = Self { catalog, now_ns, disks: Vec::new(), sessions: HashMap::new() };
        for (user, groups) in [("anna", vec!["users", "physics"]), ("bert", vec!["users"])] {
            let groups = groups.into_iter().map(str::to_owned).collect();
            let command = Command::SetUser { user: user.into(), groups, is_operator: false };
            site.run("op", command).unwrap();
        }
        for server in ["a", "b", "c"] {
            let disk = AddDisk {
                space: "main".into(),
                server: server.into(),
                label: "room".into(),
                capacity_bytes: 1 << 40,
            };
            let Ok(Answer::Disk(id)) = site.run("op", Command::AddDisk(disk)) else {
                panic!("no disk")
            };
            site.disks.push(id);
        }
        site
    }

    pub(crate) fn in_memory() -> (Self, TestEngine) {
        let engine = TestEngine::default();
        (Self::new(Arc::new(engine.clone())), engine)
    }

    /// A head that takes over.
    pub(crate) fn take_over(&mut self, engine: Arc<dyn Engine>) {
        self.catalog = Catalog::lead(engine, "head", (self.now_ns, ALWAYS)).unwrap();
    }

    /// The same site; every user opens a session anew.
    pub(crate) fn with_new_sessions(mut self) -> Self {
        self.sessions.clear();
        self
    }

    /// The submission of a user's next command.
    pub(crate) fn submission(&mut self, user: &str, command: Command) -> Submission {
        self.submission_in(user, 0, command)
    }

    /// The submission of the next command in a slot.
    pub(crate) fn submission_in(
        &mut self,
        user: &str,
        slot: usize,
        command: Command,
    ) -> Submission {
        self.submission_of(&Caller::User(user.into()), slot, command)
    }

    /// The same of a user, or of a door for one. Sessions of a door are opened while it may.
    pub(crate) fn submission_of(
        &mut self,
        caller: &Caller,
        slot: usize,
        command: Command,
    ) -> Submission {
        let who = match caller {
            Caller::Door(spoken) => format!("{} for {}", spoken.door, spoken.user),
            Caller::User(user) => user.clone(),
            other => panic!("{other:?} has no session"),
        };
        if !self.sessions.contains_key(&who) {
            let command = Command::OpenSession;
            let open = Submission { caller: caller.clone(), request: None, command };
            let answer = self.submit(&open).unwrap();
            let Ok(Answer::Session { session, .. }) = answer else { panic!("{answer:?}") };
            self.sessions.insert(who.clone(), (session, [0; SLOT_COUNT as usize]));
        }
        let (session, sequences) = self.sessions.get_mut(&who).unwrap();
        sequences[slot] += 1;
        let digest = *blake3::hash(format!("{command:?}").as_bytes()).as_bytes();
        let (session, sequence) = (*session, sequences[slot]);
        let request = Some(Request { session, slot: slot as u16, sequence, digest });
        Submission { caller: caller.clone(), request, command }
    }

    pub(crate) fn submit(
        &self,
        submission: &Submission,
    ) -> Result<Result<Answer, Refusal>, CatalogError> {
        let outcomes = self.catalog.execute(self.now_ns, std::slice::from_ref(submission))?;
        let outcome = outcomes.into_iter().next().unwrap();
        Ok(outcome.map_err(|failure| match failure {
            Failure::Refused(refusal) => refusal,
            Failure::Engine(error) => panic!("{error}"),
        }))
    }

    /// Executes a command and checks everything. A session that ended is opened anew, as clients
    /// do.
    pub(crate) fn run(&mut self, user: &str, command: Command) -> Result<Answer, Refusal> {
        self.run_in_session(&Caller::User(user.into()), command)
    }

    /// The same of a user, or of a door for one.
    pub(crate) fn run_in_session(
        &mut self,
        caller: &Caller,
        command: Command,
    ) -> Result<Answer, Refusal> {
        let submission = self.submission_of(caller, 0, command.clone());
        let mut answer = self.submit(&submission).unwrap();
        if answer == Err(Refusal::UnknownSession) {
            let session = submission.request.unwrap().session;
            self.sessions.retain(|_, (known, _)| *known != session);
            let submission = self.submission_of(caller, 0, command);
            answer = self.submit(&submission).unwrap();
        }
        self.assert_consistent();
        answer
    }

    pub(crate) fn run_as(&mut self, caller: Caller, command: Command) -> Result<Answer, Refusal> {
        let answer = self.submit(&Submission { caller, request: None, command }).unwrap();
        self.assert_consistent();
        answer
    }

    pub(crate) fn assert_consistent(&self) {
        let rows = self.catalog.engine().snapshot().unwrap();
        assert_eq!(check(&*rows).unwrap(), []);
    }

    /// Moves the clock and ends all that is due.
    pub(crate) fn pass(&mut self, nanoseconds: u64) {
        self.now_ns += nanoseconds;
        while self.run_as(Caller::Head, Command::Expire { limit: 256 }) == Ok(Answer::Count(256)) {}
        self.look_at_trash(256);
        self.collect();
    }

    /// Measures what is in the trash, and ends what is too old or too much, so many at a time.
    pub(crate) fn look_at_trash(&mut self, limit: usize) {
        while let Some(measured) = self.measure(limit) {
            self.run_as(Caller::Head, Command::MeasuredTrash(measured)).unwrap();
        }
        let expire = Command::ExpireTrash { limit };
        while self.run_as(Caller::Head, expire.clone()) == Ok(Answer::Count(limit)) {}
    }

    /// The measure of the directory in the trash that waits the longest for it.
    pub(crate) fn measure(&self, limit: usize) -> Option<MeasuredTrash> {
        let reader = Reader::new(self.catalog.engine(), &Caller::Head).unwrap();
        let mut walk = reader.unmeasured().unwrap()?;
        loop {
            if let Some(measured) = walk.step(&reader, limit).unwrap() {
                return Some(measured);
            }
        }
    }

    /// Collects all that was removed.
    pub(crate) fn collect(&mut self) {
        let collect = Command::Collect { limit: 256 };
        while self.run_as(Caller::Head, collect.clone()) != Ok(Answer::Count(0)) {}
    }

    /// Adds a door, or grants one something else.
    pub(crate) fn grant(&mut self, door: &str, grant: Grant) {
        let set = Command::SetDoor(SetDoor { door: door.into(), grant });
        assert_eq!(self.run("op", set), Ok(Answer::Done));
    }

    pub(crate) fn reader(&self, user: &str) -> Reader<'_> {
        Reader::new(self.catalog.engine(), &Caller::User(user.into())).unwrap()
    }

    pub(crate) fn entry(&self, path: &str) -> Result<Entry, Refusal> {
        self.reader("op").entry(&place(path)).map_err(refusal)
    }

    pub(crate) fn mkdir(&mut self, user: &str, path: &str) -> Result<Answer, Refusal> {
        self.run(user, Command::MakeDirectory { place: place(path), mode: 0o755 })
    }

    pub(crate) fn create(&mut self, user: &str, path: &str, size: u64) -> Result<Ticket, Refusal> {
        self.open(user, path, (size, Publish::AtCommit))
    }

    pub(crate) fn open(
        &mut self,
        user: &str,
        path: &str,
        (size_max, publish): (u64, Publish),
    ) -> Result<Ticket, Refusal> {
        let place = place(path);
        let create = Create {
            place,
            mode: 0o644,
            size_max,
            publish,
            exclusive: false,
            policy: PolicyChanges::default(),
        };
        match self.run(user, Command::Create(create))? {
            Answer::Ticket(ticket) => Ok(ticket),
            other => panic!("{other:?}"),
        }
    }

    /// Commits with receipts of all disks of a ticket.
    pub(crate) fn commit(
        &mut self,
        user: &str,
        ticket: &Ticket,
        size: u64,
    ) -> Result<Answer, Refusal> {
        self.run(user, Command::Commit(commit(ticket, size)))
    }

    /// Creates and commits.
    pub(crate) fn put(&mut self, user: &str, path: &str, size: u64) -> ContentId {
        let ticket = self.create(user, path, size).unwrap();
        self.commit(user, &ticket, size).unwrap();
        ticket.content
    }
}

pub(crate) fn refusal(failure: Failure) -> Refusal {
    match failure {
        Failure::Refused(refusal) => refusal,
        Failure::Engine(error) => panic!("{error}"),
    }
}

/// A user, through a door that says in which groups he is, or leaves that to the catalog.
pub(crate) fn through(door: &str, user: &str, groups: &[&str]) -> Caller {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Caller::Door(SpokenFor { door: door.into(), user: user.into(), groups })
}

pub(crate) fn place(path: &str) -> Place {
    Place::path(path).unwrap()
}

/// Checksums and root of the octets that a test pretends to write.
pub(crate) fn sums(content: ContentId, size: u64) -> ([u8; 32], Checksums) {
    if size == 0 {
        return (*blake3::hash(b"").as_bytes(), Checksums { adler32: 1, crc32c: 0 });
    }
    let root = *blake3::hash(&content.version.0.to_be_bytes()).as_bytes();
    (root, Checksums { adler32: content.version.0 as u32, crc32c: size as u32 })
}

/// A commit with receipts of all disks of a ticket.
pub(crate) fn commit(ticket: &Ticket, size: u64) -> Commit {
    let content = ticket.content;
    let (root, checksums) = sums(content, size);
    let receipt = |disk: &byname_catalog::TicketDisk| Receipt {
        site: SITE.to_vec(),
        disk: disk.disk,
        generation: disk.generation,
        content,
        size,
        root,
        checksums,
    };
    let receipts = ticket.disks.iter().map(receipt).collect();
    Commit { content, size, root, checksums, modified_ns: None, receipts }
}
