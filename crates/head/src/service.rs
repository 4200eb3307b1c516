//! The head beside the file server: queue and contents on the serving thread, the catalog on one
//! of its own.
//!
//! The serving thread takes commands and sends answers, and never waits. The catalog's thread
//! verifies a batch, makes it durable, signs the answers and wakes the other. It also waits for the
//! lease while another head has it, renews it, and ends what is due, once a second.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use byname_catalog::engine::Engine;
use byname_packet::{Data, NameRef};
use byname_store::{ServerHandle, Service};
use byname_transfer::server::{Arrival, Now, Outgoing};

use crate::commands::{CommandAnswer, Commands, Waiting};
use crate::contents::Contents;
use crate::observations::QueueReport;
use crate::pulse::Pulses;
use crate::term::{Candidate, Clocks, Term};

/// Pause between two looks at the lease of another head.
const LOOK_PAUSE_NS: u64 = 200_000_000;
/// The same of one that has handed its own over.
const SUCCESSOR_PAUSE_NS: u64 = 20_000_000;
/// Time without a command after which the engine may rest, and between two rests.
const REST_PAUSE_NS: u64 = 10_000_000_000;

/// Answers commands, and names that the catalog has the content of.
pub struct HeadService {
    commands: Commands,
    contents: Contents,
    batches: SyncSender<CatalogOrder>,
    answers: Receiver<Vec<CommandAnswer>>,
    queue: QueueReport,
    /// Where the head stands, if others may take its place.
    pulses: Option<Arc<Pulses>>,
}

/// Batches of commands to be executed, and the way back for their answers.
pub struct BatchQueues {
    /// Each batch is answered before the next one comes.
    pub batches: Receiver<CatalogOrder>,
    /// Answers to the commands of a batch, in their order.
    pub answers: SyncSender<Vec<CommandAnswer>>,
}

/// What the catalog's thread is asked for.
pub enum CatalogOrder {
    /// To execute a batch.
    Execute(Vec<Waiting>),
    /// To lead no more, and to say so once another head does.
    HandOver(Sender<()>),
}

/// The way to have a head's lease handed over, for the end of it.
pub struct Handover {
    orders: SyncSender<CatalogOrder>,
}

impl Handover {
    /// Lets the head finish what it executes, gives its lease up, and waits until another head
    /// leads: at most so long. Meanwhile it goes on to answer what is read, and sends commands to
    /// the others. A head that does not lead has nothing to hand over.
    pub fn wait(self, patience: Duration) {
        let (done, is_done) = channel();
        if self.orders.send(CatalogOrder::HandOver(done)).is_ok() {
            // Nobody may be there to lead in its place.
            let _ = is_done.recv_timeout(patience);
        }
    }
}

impl HeadService {
    /// Starts the catalog's thread, which ends when the service is dropped. It leads already if
    /// there is a term.
    ///
    /// # Errors
    /// [`std::io::Error`] if there can be no thread.
    pub(crate) fn start(
        candidate: Candidate,
        term: Option<Term>,
        contents: Contents,
        server: ServerHandle,
    ) -> std::io::Result<(Self, Handover)> {
        let (service, queues) = Self::new(contents);
        candidate.counters.set_leads(term.is_some());
        let (pulses, queue) = (candidate.pulses.clone(), candidate.counters.queue());
        let service = Self { pulses, queue, ..service };
        let handover = Handover { orders: service.batches.clone() };
        let mut catalog =
            CatalogThread { candidate, term, next_look_ns: 0, rest_ns: 0, leaving: None };
        let work = move || catalog.run(&queues, &server);
        std::thread::Builder::new().name("catalog".into()).spawn(work)?;
        Ok((service, handover))
    }

    /// A service whose batches are executed by somebody else.
    pub fn new(contents: Contents) -> (Self, BatchQueues) {
        // One batch is in flight at most, and once the word to hand over, so neither queue is ever
        // full.
        let (batches, to_execute) = sync_channel(2);
        let (executed, answers) = sync_channel(1);
        let (commands, queue) = Default::default();
        let service = Self { commands, contents, batches, answers, queue, pulses: None };
        (service, BatchQueues { batches: to_execute, answers: executed })
    }

    fn begin_batch(&mut self, now: Now) {
        let batch = self.commands.poll_batch(now);
        // Before it is executed: what is asked in it is answered from this.
        self.queue.set(self.commands.counters(), self.commands.levels());
        let Some(batch) = batch else { return };
        let count = batch.len();
        if self.batches.try_send(CatalogOrder::Execute(batch)).is_err() {
            tracing::warn!("the catalog's thread has ended");
            self.commands.handle_answers(vec![CommandAnswer::Nack; count]);
        }
    }
}

impl Service for HeadService {
    fn answers(&self, name: NameRef<'_>) -> bool {
        self.contents.is_command(name) || self.contents.answers(name)
    }

    fn handle_interest(&mut self, arrival: &Arrival<'_>, now: Now) {
        if !self.contents.is_command(arrival.interest.name) {
            return self.contents.handle_interest(arrival, now);
        }
        self.commands.handle_interest(arrival, now);
        self.begin_batch(now);
    }

    fn handle_data(&mut self, data: &Data<'_>, _now: Now) {
        self.contents.handle_data(data);
    }

    fn handle_nack(&mut self, name: NameRef<'_>, now: Now) {
        self.contents.handle_nack(name, now);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.contents.handle_timeout(now);
        while let Ok(answers) = self.answers.try_recv() {
            self.commands.handle_answers(answers);
        }
        self.begin_batch(now);
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.contents.poll_transmit().or_else(|| self.commands.poll_transmit())
    }

    fn is_able(&self) -> bool {
        self.pulses.as_ref().is_none_or(|pulses| pulses.engine.is_there())
    }

    fn handle_registered(&mut self) {
        if let Some(pulses) = &self.pulses {
            pulses.forwarder.beat();
        }
    }

    /// The catalog's thread wakes the serving one.
    fn poll_timeout(&self) -> Option<u64> {
        self.contents.poll_timeout()
    }
}

/// The thread that executes, and leads when it may.
struct CatalogThread {
    candidate: Candidate,
    term: Option<Term>,
    next_look_ns: u64,
    /// When the engine may rest, if nothing is asked until then.
    rest_ns: u64,
    /// Who waits for another head to lead, which this one will not do again.
    leaving: Option<Sender<()>>,
}

impl CatalogThread {
    fn run(&mut self, queues: &BatchQueues, server: &ServerHandle) {
        loop {
            let due_ns = self.term.as_ref().map_or(self.next_look_ns, Term::due_ns);
            let left_ns = due_ns.saturating_sub(self.candidate.clock.now_ns());
            match queues.batches.recv_timeout(Duration::from_nanos(left_ns)) {
                Ok(CatalogOrder::HandOver(done)) => self.hand_over(done),
                Ok(CatalogOrder::Execute(batch)) => {
                    if queues.answers.send(self.answer(&batch)).is_err() {
                        return;
                    }
                    server.wake();
                    self.rest_ns = self.candidate.clock.now_ns() + REST_PAUSE_NS;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.look();
        }
    }

    /// A head that does not lead has no answers; forwarders ask the next one.
    fn answer(&mut self, batch: &[Waiting]) -> Vec<CommandAnswer> {
        match &mut self.term {
            Some(term) => term.execute(batch, unix_ns()),
            None => batch.iter().map(|_| CommandAnswer::Nack).collect(),
        }
    }

    fn hand_over(&mut self, done: Sender<()>) {
        if self.term.take().is_some() {
            self.candidate.stand_down();
            self.next_look_ns = 0;
        } else {
            // Nobody waits in vain.
            let _ = done.send(());
        }
        self.candidate.counters.set_leads(false);
        self.leaving = Some(done);
    }

    /// Ends the waiting of who waits for another head to lead.
    fn look_for_successor(&mut self, clocks: Clocks) {
        self.next_look_ns = clocks.now_ns + SUCCESSOR_PAUSE_NS;
        match self.candidate.has_successor() {
            Ok(true) => {
                if let Some(done) = self.leaving.as_ref() {
                    // Who waited has no time any more.
                    let _ = done.send(());
                }
            }
            Ok(false) => {}
            Err(error) => tracing::info!(%error, "whether another head leads is not known"),
        }
    }

    fn look(&mut self) {
        let clocks = Clocks { unix_ns: unix_ns(), now_ns: self.candidate.clock.now_ns() };
        if let Some(term) = &mut self.term {
            if !term.do_duties(clocks, &*self.candidate.engine) {
                self.term = None;
                self.candidate.stand_down();
            }
        } else if clocks.now_ns >= self.next_look_ns {
            self.next_look_ns = clocks.now_ns + LOOK_PAUSE_NS;
            if self.leaving.is_some() {
                return self.look_for_successor(clocks);
            }
            self.term = self.candidate.try_lead(clocks).unwrap_or_else(|error| {
                tracing::info!(%error, "the lease cannot be had");
                None
            });
        }
        self.candidate.counters.set_leads(self.term.is_some());
        if clocks.now_ns >= self.rest_ns {
            self.rest_ns = clocks.now_ns + REST_PAUSE_NS;
            leave(&*self.candidate.engine);
        }
    }
}

/// Leaves the engine as whoever opens it next likes to find it.
pub(crate) fn leave(engine: &dyn Engine) {
    if let Err(error) = engine.rest() {
        tracing::warn!(%error, "the next start will read all of the catalog");
    }
}

fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
