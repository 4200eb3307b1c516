//! The head beside the file server: queue and contents on the serving thread, the catalog on one
//! of its own.
//!
//! The serving thread takes commands and sends answers, and never waits. The catalog's thread
//! verifies a batch, makes it durable, signs the answers and wakes the other. It also ends what is
//! due, once a second.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use byname_catalog::Command;
use byname_packet::{Data, NameRef};
use byname_store::{ServerHandle, Service};
use byname_transfer::server::{Arrival, Now, Outgoing};

use crate::commands::{CommandAnswer, CommandCounters, Commands, Waiting};
use crate::contents::Contents;
use crate::execute::Executor;

/// Pause between two looks at what is due.
const EXPIRE_PAUSE: Duration = Duration::from_secs(1);

/// The head's own commands in one transaction, at most.
const OWN_COMMANDS_MAX: usize = 256;

/// Answers commands, and names that the catalog has the content of.
pub struct HeadService {
    commands: Commands,
    contents: Contents,
    batches: SyncSender<Vec<Waiting>>,
    answers: Receiver<Vec<CommandAnswer>>,
    counters: Arc<Mutex<CommandCounters>>,
    /// Others see by it that there is a head.
    life: Arc<()>,
}

/// Batches of commands to be executed, and the way back for their answers.
pub struct BatchQueues {
    /// Each is answered before the next one comes.
    pub batches: Receiver<Vec<Waiting>>,
    /// Answers to the commands of a batch, in their order.
    pub answers: SyncSender<Vec<CommandAnswer>>,
}

/// Commands of the head's own, for its catalog's thread; each is executed within a second.
pub(crate) struct OwnCommands {
    pub(crate) commands: Sender<Command>,
    pub(crate) head: Weak<()>,
}

/// Counters of a running head, for other threads.
#[derive(Debug, Clone, Default)]
pub struct HeadCounters(Arc<Mutex<CommandCounters>>);

impl HeadCounters {
    /// The counters, as of the last batch.
    pub fn get(&self) -> CommandCounters {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeadService {
    /// Starts the catalog's thread, which ends when the service is dropped.
    ///
    /// # Errors
    /// [`std::io::Error`] if there can be no thread.
    pub(crate) fn start(
        executor: Executor,
        contents: Contents,
        server: ServerHandle,
    ) -> std::io::Result<(Self, HeadCounters, OwnCommands)> {
        let (service, queues) = Self::new(contents);
        let (own, to_carry_out) = channel();
        let work = move || run(executor, &queues, &to_carry_out, &server);
        std::thread::Builder::new().name("catalog".into()).spawn(work)?;
        let counters = HeadCounters(service.counters.clone());
        let own = OwnCommands { commands: own, head: Arc::downgrade(&service.life) };
        Ok((service, counters, own))
    }

    /// A service whose batches are executed by somebody else.
    pub fn new(contents: Contents) -> (Self, BatchQueues) {
        // One batch is in flight at most, so neither queue is ever full.
        let (batches, to_execute) = sync_channel(1);
        let (executed, answers) = sync_channel(1);
        let (life, commands, counters) = Default::default();
        let service = Self { life, commands, contents, batches, answers, counters };
        (service, BatchQueues { batches: to_execute, answers: executed })
    }

    fn begin_batch(&mut self, now: Now) {
        let Some(batch) = self.commands.poll_batch(now) else { return };
        let count = batch.len();
        if self.batches.try_send(batch).is_err() {
            tracing::warn!("the catalog's thread has ended");
            self.commands.handle_answers(vec![CommandAnswer::Nack; count]);
        }
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        *counters = self.commands.counters();
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

    /// The catalog's thread wakes the serving one.
    fn poll_timeout(&self) -> Option<u64> {
        self.contents.poll_timeout()
    }
}

fn run(
    mut executor: Executor,
    queues: &BatchQueues,
    own: &Receiver<Command>,
    server: &ServerHandle,
) {
    let mut next_look = Instant::now();
    loop {
        let left = next_look.saturating_duration_since(Instant::now());
        match queues.batches.recv_timeout(left) {
            Ok(batch) => {
                if queues.answers.send(executor.execute(&batch, unix_ns())).is_err() {
                    return;
                }
                server.wake();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let commands: Vec<Command> = own.try_iter().take(OWN_COMMANDS_MAX).collect();
        if !commands.is_empty()
            && let Err(error) = executor.carry_out(commands, unix_ns())
        {
            tracing::warn!(%error, "what the disks say is not noted");
        }
        if Instant::now() >= next_look {
            next_look = Instant::now() + pause_after(executor.expire(unix_ns()));
        }
    }
}

/// How long nothing is due, as far as one look tells.
fn pause_after(looked: Result<bool, byname_catalog::CatalogError>) -> Duration {
    match looked {
        // Commands come between two looks.
        Ok(true) => Duration::ZERO,
        Ok(false) => EXPIRE_PAUSE,
        Err(error) => {
            tracing::warn!(%error, "cannot end what is due");
            EXPIRE_PAUSE
        }
    }
}

fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
