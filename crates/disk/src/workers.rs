//! The threads of a disk that wait: for writers, for the file system, for the head.
//!
//! Each takes work from a queue and tells the serving thread what came of it. What can be in the
//! queues is bounded by the machine's [`Limits`](crate::machine::Limits).

mod progress;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use byname_catalog::Command;
use byname_catalog::id::{ContentId, LeaseEpoch};
use byname_client::{Client, ClientConfig, Stop};
use byname_face::{CommandClock, Exchange, Reply, random_u64};
use byname_io::{Clock, Connection, Endpoint};
use byname_packet::{InterestBuilder, Name, Signer};
use byname_site::{CommandPacket, Listed, SiteName, Stamp};
use byname_store::{NewContents, ServerHandle};
use byname_transfer::server::SharedSigner;

use crate::copying::{Copied, CopyWork, KEPT_TOGETHER};
use crate::directory::DiskDirectory;
use crate::error::StoreFailure;
use crate::load::LoadMeter;
use crate::pacer::Pacer;
use crate::proving::ProofWork;
use crate::pull::{Kept, Pull, pull};
use crate::pulled_tree::PulledTree;
use crate::rereads::reread;
use crate::scrub::{ScrubWork, Scrubbed};

use progress::Progress;

/// A writer who is silent for four times that has failed, and at once one without a route to him.
const WRITER_PATIENCE: Duration = Duration::from_secs(5);
/// Time that the head has for an answer.
const HEAD_PATIENCE: Duration = Duration::from_secs(4);
/// Octets that are told of together. A pull that brings less for long has failed.
const TOLD_BYTES: u64 = 16 << 10;
/// Time to connect to a forwarder.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
/// Questions that are sent together.
const QUESTIONS_MAX: usize = 16;

/// What a thread tells the serving one.
pub enum Event {
    /// So many more octets of a content are there.
    Received(ContentId, u64),
    /// Nothing of a content is there: it is pulled anew.
    Again(ContentId),
    /// A pull has ended.
    Pulled(ContentId, Result<Kept, StoreFailure>),
    /// An epoch is kept, or not.
    EpochKept(LeaseEpoch, Result<(), StoreFailure>),
    /// A content is gone, or not.
    Removed(ContentId, Result<(), StoreFailure>),
    /// It was tried whether the disk can be written to.
    Probed(Result<(), StoreFailure>),
    /// The head's answer about a content, as received.
    Resolved(ContentId, Option<Vec<u8>>),
    /// A certificate that was asked for, as received.
    Certificate(Option<Vec<u8>>),
    /// What came of an order about copies.
    Copied(u64, Copied),
    /// What the contents of a page are by now.
    Reread(Box<Page>),
    /// A proof was made, or cannot be; the name of the order's Interest.
    Proved(Name, Option<Vec<u8>>),
    /// What the disk has read of its own accord.
    Scrubbed(Scrubbed),
}

/// Contents that the head wants to be read, and the name of its order.
pub struct Page {
    /// The name of the order's Interest.
    pub name: Name,
    /// The contents.
    pub contents: Vec<Listed>,
    /// None come after them.
    pub is_last: bool,
}

/// Work of the thread that reads what the head wants to be read.
pub enum ReadWork {
    /// Contents to be read anew; ends with [`Event::Reread`].
    Page(Page),
    /// A proof to be made; ends with [`Event::Proved`].
    Proof(ProofWork),
}

/// Work of the thread that changes what is on the disk.
pub enum Change {
    /// Keep an epoch.
    KeepEpoch(LeaseEpoch),
    /// Remove a content for good.
    Remove(ContentId),
    /// Note that a content is part of the site.
    Settle(ContentId),
    /// Try to write.
    Probe,
    /// Carry out an order about copies, which has this number.
    Copy(u64, CopyWork),
    /// Keep how far the disk is in reading what it has.
    KeepScrub(String),
}

/// Work of the thread that asks.
pub enum Question {
    /// What became of a content?
    Resolve(ContentId),
    /// A certificate.
    Certificate(Name),
}

impl Change {
    /// Does it, and waits for the file system.
    pub fn carry_out(self, directory: &DiskDirectory) -> Option<Event> {
        match self {
            Self::KeepEpoch(epoch) => Some(Event::EpochKept(epoch, directory.keep_epoch(epoch))),
            Self::Remove(content) => Some(Event::Removed(content, directory.remove(content))),
            Self::Settle(content) => {
                // The head is asked again after the next start.
                if let Err(failure) = directory.settle(content) {
                    tracing::debug!(%failure, "what the head said was not noted");
                }
                None
            }
            Self::Probe => Some(Event::Probed(directory.probe())),
            Self::Copy(number, work) => Some(Event::Copied(number, work.carry_out(directory))),
            Self::KeepScrub(text) => {
                // The next start reads more once more.
                if let Err(error) = directory.keep_scrub(&text) {
                    tracing::debug!(%error, "the place of the scrub was not kept");
                }
                None
            }
        }
    }

    fn is_keep(&self) -> bool {
        matches!(self, Self::Copy(_, CopyWork::Keep(_)))
    }
}

/// Keeps rows of several orders, which are made durable together; anything else is done by itself.
fn carry_out_all(changes: Vec<Change>, directory: &DiskDirectory) -> Vec<Event> {
    let (mut numbers, mut orders, mut events) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes {
        match change {
            Change::Copy(number, CopyWork::Keep(order)) => {
                numbers.push(number);
                orders.push(*order);
            }
            other => events.extend(other.carry_out(directory)),
        }
    }
    let kept = directory.keep_rows(&orders);
    let copied = match kept {
        Ok(()) => Copied::Editions(directory.editions()),
        Err(failure) => Copied::Failed(failure),
    };
    events.extend(numbers.into_iter().map(|number| Event::Copied(number, copied.clone())));
    events
}

impl Question {
    /// The Interest that asks it, of a disk in a generation; what cannot be signed is nothing and
    /// gets no answer.
    pub fn interest(
        &self,
        site: &SiteName,
        (generation, signer): (u64, &dyn Signer),
        stamp: Stamp,
    ) -> Vec<u8> {
        match self {
            Self::Resolve(content) => {
                let command = Command::Resolve { generation, content: *content };
                let packet = CommandPacket::new(None, command);
                packet.encode(site, signer, stamp).unwrap_or_default()
            }
            Self::Certificate(name) => {
                let mut wire = Vec::new();
                InterestBuilder::new(name.view()).encode(&mut wire);
                wire
            }
        }
    }

    /// The reply, or none.
    pub fn answered(self, reply: Option<Vec<u8>>) -> Event {
        match self {
            Self::Resolve(content) => Event::Resolved(content, reply),
            Self::Certificate(_) => Event::Certificate(reply),
        }
    }
}

/// Work of the threads that pull.
pub struct PullWork {
    /// The content.
    pub pull: Box<Pull>,
    /// Ends it early.
    pub stop: Stop,
}

/// What all threads of a disk have.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) directory: Arc<DiskDirectory>,
    pub(crate) site: SiteName,
    pub(crate) signer: SharedSigner,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) server: ServerHandle,
    /// Takes what is stored, with the trees that it was verified by: readers would wait for those.
    pub(crate) new_contents: Option<NewContents>,
    pub(crate) events: Sender<Event>,
    pub(crate) load: LoadMeter,
}

/// Queues to the threads, which end when these are dropped.
pub struct Workers {
    pub(crate) pulls: Sender<PullWork>,
    pub(crate) changes: Sender<Change>,
    pub(crate) questions: Sender<Question>,
    pub(crate) rereads: Sender<ReadWork>,
    pub(crate) scrubs: Sender<ScrubWork>,
    pub(crate) load: LoadMeter,
    /// Gone with the queues: what takes long ends then.
    pub(crate) alive: Arc<()>,
}

/// The other ends of these queues: work that is to be done.
pub struct WorkQueues {
    /// Contents to pull; each ends with [`Event::Pulled`].
    pub pulls: Receiver<PullWork>,
    /// Changes to be carried out in this order.
    pub changes: Receiver<Change>,
    /// Questions to the head.
    pub questions: Receiver<Question>,
    /// Contents to read because the head asks.
    pub rereads: Receiver<ReadWork>,
    /// Contents to read slowly; each work ends with [`Event::Scrubbed`].
    pub scrubs: Receiver<ScrubWork>,
}

impl Workers {
    /// Starts the threads; so many of them pull.
    pub(crate) fn start(shared: &Shared, pull_threads: usize) -> std::io::Result<Self> {
        let (mut workers, queues) = Self::queues();
        workers.load = shared.load.clone();
        let to_pull = Arc::new(Mutex::new(queues.pulls));
        for _ in 0..pull_threads {
            let (shared, to_pull) = (shared.clone(), to_pull.clone());
            spawn("pull", move || shared.run_pulls(&to_pull))?;
        }
        let sharer = shared.clone();
        spawn("disk", move || sharer.run_changes(&queues.changes))?;
        let sharer = shared.clone();
        spawn("head", move || sharer.run_questions(&queues.questions))?;
        let sharer = shared.clone();
        spawn("reread", move || sharer.run_rereads(&queues.rereads))?;
        let (sharer, alive) = (shared.clone(), Arc::downgrade(&workers.alive));
        spawn("scrub", move || sharer.run_scrubs(&queues.scrubs, &alive))?;
        Ok(workers)
    }

    /// Queues whose work somebody else does.
    pub fn queues() -> (Self, WorkQueues) {
        let (pulls, to_pull) = channel();
        let (changes, to_change) = channel();
        let (questions, to_ask) = channel();
        let (rereads, to_read) = channel();
        let (scrubs, to_scrub) = channel();
        let queues = WorkQueues {
            pulls: to_pull,
            changes: to_change,
            questions: to_ask,
            rereads: to_read,
            scrubs: to_scrub,
        };
        let (load, alive) = (LoadMeter::default(), Arc::default());
        (Self { pulls, changes, questions, rereads, scrubs, load, alive }, queues)
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.into()).spawn(work).map(drop)
}

impl Shared {
    /// Tells the serving thread; if that has ended, nobody wants to know.
    fn tell(&self, event: Event) {
        let _ = self.events.send(event);
        self.server.wake();
    }

    fn run_pulls(&self, work: &Mutex<Receiver<PullWork>>) {
        let mut client = None;
        loop {
            let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(PullWork { pull, stop }) = next else { return };
            let outcome = self.pull(&pull, &stop, &mut client);
            if let Err(failure) = &outcome {
                tracing::info!(name = %pull.name, %failure, "a content was not stored");
            }
            self.tell(Event::Pulled(pull.content, outcome));
        }
    }

    fn pull(
        &self,
        work: &Pull,
        stop: &Stop,
        client: &mut Option<Client>,
    ) -> Result<Kept, StoreFailure> {
        let config =
            ClientConfig { timeout: WRITER_PATIENCE, asks_all: false, ..ClientConfig::default() };
        let mut ready = match client.take() {
            Some(client) => client,
            None => Client::connect(&self.endpoints, config).map_err(|error| {
                tracing::warn!(%error, "no forwarder to pull by");
                StoreFailure::Unreachable
            })?,
        };
        ready.set_stop(stop.clone());
        let mut progress = Progress {
            shared: self,
            content: work.content,
            stop,
            untold_bytes: 0,
            size: work.size,
            left_bytes: work.size,
            tree: PulledTree::begin(work, self.new_contents.as_ref()),
        };
        let outcome = pull(work, &self.directory, &mut ready, &mut progress);
        if outcome.is_ok() {
            progress.tree.hand_over(work);
        }
        // A client whose writer or forwarder is gone is not used again.
        if outcome != Err(StoreFailure::Unreachable) {
            *client = Some(ready);
        }
        outcome
    }

    fn run_changes(&self, changes: &Receiver<Change>) {
        let mut held = None;
        while let Some(first) = held.take().or_else(|| changes.recv().ok()) {
            let mut together = vec![first];
            while together[0].is_keep() && together.len() < KEPT_TOGETHER {
                match changes.try_recv() {
                    Ok(next) if next.is_keep() => together.push(next),
                    other => {
                        held = other.ok();
                        break;
                    }
                }
            }
            let events = self.load.during(|| carry_out_all(together, &self.directory));
            for event in events {
                self.tell(event);
            }
        }
    }

    fn run_rereads(&self, work: &Receiver<ReadWork>) {
        while let Ok(work) = work.recv() {
            self.tell(match work {
                ReadWork::Proof(work) => {
                    let proof = work.carry_out(&self.directory);
                    Event::Proved(work.name, proof)
                }
                ReadWork::Page(Page { name, contents, is_last }) => {
                    let wanted = contents.len();
                    let contents = reread(&self.directory.objects(), contents);
                    let is_last = is_last && contents.len() == wanted;
                    Event::Reread(Box::new(Page { name, contents, is_last }))
                }
            });
        }
    }

    /// Reads slowly what it is given; ends with the disk, in the midst of a content too.
    fn run_scrubs(&self, work: &Receiver<ScrubWork>, alive: &Weak<()>) {
        let mut pacer = Pacer::new(&self.load, alive);
        while let Ok(ScrubWork { contents, bytes_per_s }) = work.recv() {
            let objects = self.directory.objects();
            let Some(rotten) = pacer.rotten(&objects, &contents, bytes_per_s) else { return };
            self.tell(Event::Scrubbed(Scrubbed { contents, rotten }));
        }
    }

    fn run_questions(&self, questions: &Receiver<Question>) {
        let (clock, command_clock) = (Clock::new(), CommandClock::new());
        let generation = self.directory.label().generation;
        let mut exchange = None;
        while let Ok(first) = questions.recv() {
            let mut batch = vec![first];
            batch.extend(questions.try_iter().take(QUESTIONS_MAX - 1));
            let stamp = || Stamp {
                time_ms: command_clock.next_ms(clock.unix_ns()),
                nonce: random_u64().to_be_bytes(),
            };
            let as_asked =
                |it: &Question| it.interest(&self.site, (generation, &*self.signer), stamp());
            let wires: Vec<Vec<u8>> = batch.iter().map(as_asked).collect();
            let mut replies = self.ask(&wires, &mut exchange).into_iter();
            for question in batch {
                let reply = match replies.next() {
                    Some(Reply::Data { wire, .. }) => Some(wire),
                    _ => None,
                };
                self.tell(question.answered(reply));
            }
        }
    }

    fn ask(&self, wires: &[Vec<u8>], exchange: &mut Option<Exchange>) -> Vec<Reply> {
        let mut connected = match exchange.take().or_else(|| self.connect()) {
            Some(connected) => connected,
            None => return Vec::new(),
        };
        match connected.ask(wires, HEAD_PATIENCE) {
            Ok(replies) => {
                *exchange = Some(connected);
                replies
            }
            Err(error) => {
                tracing::info!(%error, "the connection to the forwarder is lost");
                Vec::new()
            }
        }
    }

    fn connect(&self) -> Option<Exchange> {
        let mut tried = self.endpoints.iter();
        let connection = tried.find_map(|it| Connection::connect(it, CONNECT_PATIENCE).ok())?;
        Exchange::new(connection).ok()
    }
}
