//! Rates of the core alone, without packets and signatures, and catalogs of many files.
//!
//!     rates core FILE COUNT BATCH     a new catalog in FILE, or `memory`
//!     rates load FILE COUNT OPERATOR  files into the catalog of a head that does not run
//!
//! All files are empty. Each takes two commands of `core`, create and commit, as files with content
//! do, and one of `load`. A batch is one transaction, durable at its end. One line of JSON for each
//! phase.

use std::error::Error;
use std::time::Instant;

use byname_catalog::engine::{EmbeddedEngine, Engine, MemoryEngine};
use byname_catalog::id::{ContentId, SessionId};
use byname_catalog::{
    Answer, Caller, Catalog, Checksums, Command, Commit, Create, EMPTY_ROOT, Place, Policy,
    PolicyChanges, Publish, Reader, Rename, Request, SLOT_COUNT, Setup, Submission, initialise,
};

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Files of a directory.
const DIRECTORY: usize = 1000;
/// Commands of a transaction while files are loaded.
const LOAD_BATCH: usize = 4096;
/// The head of an embedded engine: whoever has the file open is it.
const HEAD: &str = "embedded";

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["core", "memory", count, batch] => core(MemoryEngine::default(), count, batch),
        ["core", file, count, batch] => {
            core(EmbeddedEngine::open(std::path::Path::new(file))?, count, batch)
        }
        ["load", file, count, operator] => {
            let engine = EmbeddedEngine::open(std::path::Path::new(file))?;
            let mut caller = Client::new(engine, operator, LOAD_BATCH)?;
            caller.phase("load", count.parse()?, Client::load)
        }
        _ => Err("usage: rates core FILE|memory COUNT BATCH, or rates load FILE COUNT USER".into()),
    }
}

pub(crate) fn core<E: Engine>(engine: E, count: &str, batch: &str) -> Outcome {
    let setup = Setup {
        site: b"\x08\x03lab".to_vec(),
        operator: "op".to_owned(),
        group: "ops".to_owned(),
        key: None,
        policy: Policy { space: "main".to_owned(), replica_count: 1, receipt_count: 1 },
    };
    initialise(&engine, &setup, 1)?;
    let (count, batch) = (count.parse()?, batch.parse()?);
    let mut client = Client::new(engine, "op", batch)?;
    client.phase("create", count, Client::create)?;
    client.phase("stat", count, Client::stat)?;
    client.phase("rename", count, Client::rename)?;
    client.phase("remove", count, Client::remove)
}

/// An operator with a session.
struct Client<E> {
    catalog: Catalog<E>,
    user: String,
    session: SessionId,
    sequences: Vec<u64>,
    batch: usize,
    /// Directories of files begin with this.
    now_ns: u64,
}

impl<E: Engine> Client<E> {
    fn new(engine: E, user: &str, batch: usize) -> Outcome<Self> {
        let catalog = Catalog::lead(engine, HEAD, (1, u64::MAX))?;
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let mut client = Self {
            catalog,
            user: user.to_owned(),
            session: SessionId(0),
            sequences: vec![0; usize::from(SLOT_COUNT)],
            batch: batch.max(1),
            now_ns: u64::try_from(since.as_nanos())?,
        };
        let caller = Caller::User(user.to_owned());
        let opening = Submission { caller, request: None, command: Command::OpenSession };
        match client.catalog.execute(client.now_ns, &[opening])?.remove(0)? {
            Answer::Session { session, .. } => client.session = session,
            answer => return Err(format!("no session: {answer:?}").into()),
        }
        Ok(client)
    }

    fn phase(
        &mut self,
        name: &str,
        count: usize,
        work: fn(&mut Self, usize) -> Outcome,
    ) -> Outcome {
        let began = Instant::now();
        work(self, count)?;
        let wall_s = began.elapsed().as_secs_f64();
        let (per_s, batch) = (count as f64 / wall_s, self.batch);
        println!(
            "{{\"phase\":\"{name}\",\"count\":{count},\"batch\":{batch},\"wall_s\":{wall_s:.4},\
             \"per_s\":{per_s:.1}}}"
        );
        Ok(())
    }

    /// Commands of one transaction, each with a request id of its own as those of users have.
    fn execute(&mut self, commands: Vec<Command>) -> Outcome<Vec<Answer>> {
        let mut submissions = Vec::with_capacity(commands.len());
        for (number, command) in commands.into_iter().enumerate() {
            let slot = number % self.sequences.len();
            self.sequences[slot] += 1;
            let (session, sequence) = (self.session, self.sequences[slot]);
            let slot = u16::try_from(slot)?;
            let request = Some(Request { session, slot, sequence, digest: [0; 32] });
            let caller = Caller::User(self.user.clone());
            submissions.push(Submission { caller, request, command });
        }
        self.now_ns += 1;
        let outcomes = self.catalog.execute(self.now_ns, &submissions)?;
        Ok(outcomes.into_iter().collect::<Result<_, _>>()?)
    }

    fn directories(&mut self, count: usize) -> Outcome {
        let directories = (0..count.div_ceil(DIRECTORY)).map(|number| {
            let place = Place::path(format!("load{number}"))?;
            Ok(Command::MakeDirectory { place, mode: 0o755 })
        });
        let directories = directories.collect::<Outcome<Vec<_>>>()?;
        for some in directories.chunks(LOAD_BATCH) {
            self.execute(some.to_vec())?;
        }
        Ok(())
    }

    fn load(&mut self, count: usize) -> Outcome {
        self.directories(count)?;
        self.each(count, |number| Ok(create(place(number, "f")?, Publish::Whole)))
    }

    fn create(&mut self, count: usize) -> Outcome {
        self.directories(count)?;
        // Half of a batch creates and the other half commits.
        for from in (0..count).step_by(self.batch.div_ceil(2)) {
            let numbers = from..(from + self.batch.div_ceil(2)).min(count);
            let creates = numbers.map(|number| Ok(create(place(number, "f")?, Publish::AtCommit)));
            let tickets = self.execute(creates.collect::<Outcome<_>>()?)?;
            let commits = tickets.into_iter().map(|answer| match answer {
                Answer::Ticket(ticket) => Ok(commit(ticket.content)),
                answer => Err(format!("no ticket: {answer:?}").into()),
            });
            self.execute(commits.collect::<Outcome<_>>()?)?;
        }
        Ok(())
    }

    fn stat(&mut self, count: usize) -> Outcome {
        for number in 0..count {
            let reader = Reader::new(self.catalog.engine(), &Caller::Head)?;
            reader.entry(&place(number, "f")?)?;
        }
        Ok(())
    }

    fn rename(&mut self, count: usize) -> Outcome {
        self.each(count, |number| {
            let (from, to) = (place(number, "f")?, place(number, "g")?);
            Ok(Command::Rename(Rename { from, to, no_replace: true }))
        })
    }

    fn remove(&mut self, count: usize) -> Outcome {
        self.each(count, |number| Ok(Command::Unlink { place: place(number, "g")? }))
    }

    fn each(&mut self, count: usize, command: fn(usize) -> Outcome<Command>) -> Outcome {
        for from in (0..count).step_by(self.batch) {
            let numbers = from..(from + self.batch).min(count);
            self.execute(numbers.map(command).collect::<Outcome<_>>()?)?;
        }
        Ok(())
    }
}

fn place(number: usize, kind: &str) -> Outcome<Place> {
    Ok(Place::path(format!("load{}/{kind}{number}", number / DIRECTORY))?)
}

fn create(place: Place, publish: Publish) -> Command {
    Command::Create(Create {
        place,
        mode: 0o644,
        size_max: 0,
        publish,
        exclusive: true,
        policy: PolicyChanges::default(),
    })
}

fn commit(content: ContentId) -> Command {
    Command::Commit(Commit {
        content,
        size: 0,
        root: EMPTY_ROOT,
        checksums: Checksums::EMPTY,
        modified_ns: None,
        receipts: Vec::new(),
    })
}
