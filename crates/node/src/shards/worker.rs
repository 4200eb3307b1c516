//! The thread of a shard: takes batches, forwards, hands back what is to be sent.
//!
//! It is pinned to one processor if there are enough, so that its tables stay in that one's caches.
//! It never waits for shard 0: what finds the queue back full is dropped there, as on any full
//! queue.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::Duration;

use byname_forwarder::{Config, Forwarder};
use byname_io::{Clock, Poller, Token, Waker};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tracing::{debug, warn};

use super::batch::{BATCHES_MAX, Batch, Frame, Message, Output, Shard, keep};
use crate::error::NodeError;

/// Interval at which a busy shard reports its figures.
const FIGURES_NS: u64 = 100_000_000;

struct Worker {
    forwarder: Forwarder,
    clock: Clock,
    messages: Receiver<Message>,
    output: SyncSender<Output>,
    waker: Waker,
    spare: Vec<Batch>,
    told_ns: u64,
    /// Something has happened since the figures were reported.
    has_news: bool,
    dropped: u64,
}

/// Starts the shard whose place is in `config`.
pub(super) fn start(config: Config, waker: Waker) -> Result<Shard, NodeError> {
    let mut poller = Poller::new()?;
    let own_waker = poller.waker(Token(0))?;
    let (messages, for_worker) = sync_channel(BATCHES_MAX);
    let (for_first, output) = sync_channel(BATCHES_MAX);
    let index = config.shard.map_or(0, |place| usize::from(place.index));
    let mut worker = Worker {
        forwarder: Forwarder::new(config),
        clock: Clock::new(),
        messages: for_worker,
        output: for_first,
        waker,
        spare: Vec::new(),
        told_ns: 0,
        has_news: true,
        dropped: 0,
    };
    let run = move || {
        pin(index);
        worker.run(&mut poller);
    };
    let thread = std::thread::Builder::new().name(format!("byname-shard-{index}"));
    let thread = thread.spawn(run).map_err(NodeError::Thread)?;
    Ok(Shard {
        messages: Some(messages),
        output,
        waker: own_waker,
        thread: Some(thread),
        batch: Batch::default(),
        spare: Vec::new(),
        dropped: 0,
    })
}

/// Pins the calling thread to the `index`th of the processors the process may use.
pub(super) fn pin(index: usize) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut processors = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let Some(cpu) = processors.nth(index) else { return };
    let mut one = CpuSet::new();
    one.set(cpu);
    match sched_setaffinity(None, &one) {
        Ok(()) => debug!(shard = index, cpu, "pinned"),
        Err(error) => debug!(shard = index, cpu, %error, "not pinned"),
    }
}

impl Worker {
    fn run(&mut self, poller: &mut Poller) {
        let mut events = Vec::new();
        while self.take_messages() {
            let now_ns = self.clock.now_ns();
            let mut batch = self.spare.pop().unwrap_or_default();
            self.forwarder.handle_timeout(now_ns, &mut batch);
            self.hand_back(batch);
            self.tell_figures(now_ns);
            let due_ns = self.forwarder.poll_timeout();
            let timeout = due_ns
                .map(|due_ns| Duration::from_nanos(due_ns.saturating_sub(self.clock.now_ns())));
            if let Err(error) = poller.wait(&mut events, timeout) {
                warn!(%error, "a shard cannot wait and ends");
                return;
            }
        }
    }

    /// False when shard 0 is gone.
    fn take_messages(&mut self) -> bool {
        loop {
            match self.messages.try_recv() {
                Ok(Message::Packets(batch)) => self.forward(batch),
                Ok(Message::Changes(changes)) => {
                    changes.into_iter().for_each(|change| self.forwarder.apply(change));
                    self.has_news = true;
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn forward(&mut self, mut batch: Batch) {
        let mut out = self.spare.pop().unwrap_or_default();
        let now_ns = batch.now_ns;
        batch.for_each(|Frame { face, .. }, header, packet| {
            if let Some(reason) =
                self.forwarder.handle_packet(face, header, packet, now_ns, &mut out)
            {
                debug!(face = face.0, ?reason, "packet dropped");
            }
        });
        batch.clear();
        keep(&mut self.spare, batch);
        self.has_news = true;
        self.hand_back(out);
        self.tell_figures_if_due(now_ns);
    }

    fn hand_back(&mut self, batch: Batch) {
        if batch.frames.is_empty() {
            keep(&mut self.spare, batch);
            return;
        }
        match self.output.try_send(Output::Packets(batch)) {
            Ok(()) => self.waker.wake(),
            Err(TrySendError::Full(Output::Packets(mut batch))) => {
                self.dropped += batch.frames.len() as u64;
                batch.clear();
                keep(&mut self.spare, batch);
            }
            Err(_) => {}
        }
    }

    fn tell_figures_if_due(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.told_ns) >= FIGURES_NS {
            self.tell_figures(now_ns);
        }
    }

    fn tell_figures(&mut self, now_ns: u64) {
        if !self.has_news {
            return;
        }
        let figures = Box::new(self.forwarder.figures());
        if self.output.try_send(Output::Figures(figures, self.dropped)).is_ok() {
            self.has_news = false;
            self.told_ns = now_ns;
            self.waker.wake();
        }
    }
}
