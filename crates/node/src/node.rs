//! The node: sockets on one side, the forwarder on the other.
//!
//! [`Node::new`] binds everything, [`Node::run`] serves until its [`Stop`] is used. Methods are
//! grouped by source of events: `connections` (listeners, streams), `datagrams` (shared UDP
//! sockets), `create` (faces made and changed by command), `lasting` (faces that get a new link
//! when they lose theirs), this file the loop around them.

mod access;
mod admission;
mod connections;
mod create;
mod datagrams;
mod lasting;
mod memory;
mod orders;
mod reload;
mod ticks;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use byname_forwarder::{Counters, FaceId, RequestId};
use byname_io::{
    Clock, Connection, DatagramSocket, Endpoint, Event, IoError, Limits, Listener, MemoryBudget,
    Poller, Token, Waker, descriptors,
};
use byname_retry::BackOff;
use tracing::{info, warn};

use crate::config::NodeConfig;
use crate::connector::Connector;
use crate::control::{Control, ControlOrder};
use crate::error::NodeError;
use crate::gather::Gather;
use crate::lasting::Lasting;
use crate::links::{Dirty, Links};
use crate::pending_face::PendingFace;
use crate::shards::Core;

/// Ends a node's [`Node::run`] from any thread.
#[derive(Debug, Clone)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    waker: Waker,
}

impl Stop {
    /// Asks the node to stop. Returns at once.
    pub fn stop(&self) {
        self.flag.store(true, Ordering::Release);
        self.waker.wake();
    }

    fn is_set(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }
}

/// Meaning of a token of the poller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Listener(usize),
    Shared(usize),
    Face(FaceId),
}

/// Packets that a connection brings before others have their turn, about.
const BURST_FRAMES_MAX: usize = 256;

/// The waker's token; sockets get higher ones, never the same twice.
const WAKER: u64 = 0;

/// See the module.
pub struct Node {
    config: NodeConfig,
    clock: Clock,
    poller: Poller,
    stop: Stop,
    forwarder: Core,
    links: Links,
    sources: HashMap<u64, Source>,
    last_token: u64,
    listeners: BTreeMap<usize, Listener>,
    /// Sources that are listened on, by the endpoints of the configuration.
    bound: Vec<(Endpoint, Source)>,
    /// Listeners are not watched until then, because descriptors ran out.
    listeners_paused_until_ns: Option<u64>,
    /// Connections closed at once because there were too many.
    surplus_count: u64,
    /// Memory of all connections, and when what they do not need is looked for.
    memory: MemoryBudget,
    next_trim_ns: u64,
    /// Connections closed because nobody read from them while memory was short.
    stalled_count: u64,
    /// No connection is made to give way before this time, because none could.
    next_give_way_ns: u64,
    peers: HashMap<(usize, SocketAddr), FaceId>,
    next_sweep_ns: u64,
    /// Faces whose connection wants to be called at times, and when the first does.
    ticking: Vec<FaceId>,
    next_tick_ns: Option<u64>,
    /// Faces that get a new link when they lose theirs.
    lasting: HashMap<FaceId, Lasting>,
    /// Time at which the first of them tries to.
    next_attempt_ns: Option<u64>,
    /// Faces asked for by command whose link is being opened.
    pending_faces: HashMap<RequestId, PendingFace>,
    connector: Connector,
    control: Control,
    orders: Receiver<ControlOrder>,
    /// Times the poller has returned.
    wakeup_count: u64,
    gather: Gather,
    /// Packets that the events at hand have brought.
    turn_packets: usize,
}

impl Node {
    /// Binds the endpoints and sets the routes up. Static faces connect once the node runs.
    ///
    /// # Errors
    /// [`NodeError`] when an endpoint cannot be had.
    pub fn new(mut config: NodeConfig) -> Result<Self, NodeError> {
        let clock = Clock::new();
        let mut poller = Poller::new()?;
        let waker = poller.waker(Token(WAKER))?;
        config.forwarder.seed = random_seed()?;
        config.forwarder.own_uid = rustix::process::geteuid().as_raw();
        config.forwarder.start_now_ns = clock.now_ns();
        config.forwarder.start_unix_ns = clock.unix_ns();
        let (control, orders) = Control::new(waker.clone());
        let mut node = Self {
            forwarder: Core::new(&config.forwarder, config.shards, &waker)?,
            links: Links::new(config.send_bytes_max),
            sources: HashMap::new(),
            last_token: WAKER,
            listeners: BTreeMap::new(),
            bound: Vec::new(),
            listeners_paused_until_ns: None,
            surplus_count: 0,
            memory: MemoryBudget::new(config.connection_bytes_max),
            next_trim_ns: 0,
            stalled_count: 0,
            next_give_way_ns: 0,
            peers: HashMap::new(),
            next_sweep_ns: 0,
            ticking: Vec::new(),
            next_tick_ns: None,
            lasting: HashMap::new(),
            next_attempt_ns: None,
            pending_faces: HashMap::new(),
            connector: Connector::new(waker.clone()),
            stop: Stop { flag: Arc::default(), waker },
            control,
            orders,
            wakeup_count: 0,
            gather: Gather::default(),
            turn_packets: 0,
            clock,
            poller,
            // As if it had run with nothing so far.
            config: NodeConfig {
                forwarder: config.forwarder.clone(),
                shards: config.shards,
                ..NodeConfig::default()
            },
        };
        node.reload(config)?;
        Ok(node)
    }

    /// The endpoints bound, with actual ports.
    pub fn listening(&self) -> Vec<Endpoint> {
        let streams = self.listeners.values().map(Listener::local_endpoint);
        let datagrams = self.links.shared.sockets.iter().filter_map(|s| s.socket.as_ref());
        streams.chain(datagrams.map(DatagramSocket::local_endpoint)).cloned().collect()
    }

    /// A handle that ends [`Node::run`].
    pub fn stop_handle(&self) -> Stop {
        self.stop.clone()
    }

    /// A face for this process: what is returned is the application's end.
    ///
    /// # Errors
    /// [`IoError`] when the kernel gives no socket pair.
    pub fn local_face(&mut self) -> Result<Connection, IoError> {
        let (ours, theirs) = Connection::pair_with(self.limits())?;
        self.add_connection(ours)?;
        Ok(theirs)
    }

    /// The forwarder's totals.
    pub fn counters(&self) -> Counters {
        self.forwarder.total_counters()
    }

    /// Times that [`Node::run`] was woken: by sockets, timers and orders.
    pub fn wakeup_count(&self) -> u64 {
        self.wakeup_count
    }

    /// Packets dropped because the queue of a socket was full.
    pub fn queue_full_count(&self) -> u64 {
        self.links.dropped_full
    }

    /// Serves until `stop`, which comes from [`Node::stop_handle`], is used.
    ///
    /// # Errors
    /// [`NodeError`] when the poller fails. What happens to a face only ends that face.
    pub fn run(&mut self, stop: &Stop) -> Result<(), NodeError> {
        self.forwarder.pin();
        let mut events = Vec::new();
        while !stop.is_set() {
            self.on_time();
            self.wait(&mut events)?;
            self.wakeup_count += 1;
            if let Err(error) = self.on_events(&events) {
                warn!(%error, "a socket could not be watched");
            }
            let packets = std::mem::take(&mut self.turn_packets);
            self.gather.handle_turn(self.links.now_ns, packets, || self.clock.thread_cpu_ns());
        }
        info!("stopped");
        Ok(())
    }

    /// Waits for events, under load after a pause in which several may gather.
    fn wait(&mut self, events: &mut Vec<Event>) -> Result<(), IoError> {
        if let Some(pause) = self.gather.pause() {
            std::thread::sleep(pause);
            self.poller.wait(events, Some(Duration::ZERO))?;
            if !events.is_empty() {
                return Ok(());
            }
            self.gather.handle_turn(self.clock.now_ns(), 0, || self.clock.thread_cpu_ns());
        }
        let timeout = self.timeout();
        self.poller.wait(events, timeout)
    }

    fn on_events(&mut self, events: &[Event]) -> Result<(), IoError> {
        for event in events {
            if event.token.0 == WAKER {
                self.collect_attempts();
                self.serve_orders();
                self.forwarder.collect(&mut self.links);
                self.flush_dirty();
                continue;
            }
            match self.sources.get(&event.token.0).copied() {
                Some(Source::Listener(index)) => self.accept(index)?,
                Some(Source::Shared(index)) => self.on_shared_event(index, event),
                Some(Source::Face(face)) => self.on_face_event(face, event),
                // Closed by an earlier event of this batch.
                None => {}
            }
            self.flush_dirty();
        }
        self.serve_requests();
        Ok(())
    }

    /// Does what is due.
    fn on_time(&mut self) {
        let now_ns = self.clock.now_ns();
        self.links.now_ns = now_ns;
        self.links.handle_timeout();
        self.forwarder.handle_timeout(now_ns, &mut self.links);
        self.start_due_attempts(now_ns);
        if self.listeners_paused_until_ns.is_some_and(|until_ns| until_ns <= now_ns) {
            self.resume_listeners();
        }
        if self.next_sweep_ns <= now_ns {
            self.sweep_idle_peers(now_ns);
        }
        if self.next_tick_ns.is_some_and(|due_ns| due_ns <= now_ns) {
            self.tick(now_ns);
        }
        if self.trim_due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            self.trim(now_ns);
        }
        self.flush_dirty();
    }

    fn timeout(&self) -> Option<Duration> {
        let attempt = self.next_attempt_ns;
        let sweep = (!self.peers.is_empty()).then_some(self.next_sweep_ns);
        let (forwarder, links) = (self.forwarder.poll_timeout(), self.links.poll_timeout());
        let (pause, tick) = (self.listeners_paused_until_ns, self.next_tick_ns);
        let due_ns = [forwarder, links, attempt, pause, sweep, tick, self.trim_due_ns()];
        let due_ns = due_ns.into_iter().flatten().min()?;
        Some(Duration::from_nanos(due_ns.saturating_sub(self.clock.now_ns())))
    }

    /// One message for each shard and one flush for each socket that got packets.
    fn flush_dirty(&mut self) {
        self.answer_refused();
        self.forwarder.flush();
        let dirty = self.links.take_dirty();
        for entry in &dirty {
            match entry {
                Dirty::Face(face) => self.flush_face(*face),
                Dirty::Shared(index) => self.flush_shared(*index),
            }
        }
        self.links.recycle(dirty);
    }

    /// Answers Interests for which a link had no turn left as its peer would: with a Nack.
    fn answer_refused(&mut self) {
        loop {
            let refused = self.links.take_refused();
            if refused.is_empty() {
                return;
            }
            let now_ns = self.links.now_ns;
            for of in refused {
                let (face, header, links) = (of.face, of.header(), &mut self.links);
                self.forwarder.handle_packet(face, &header, &of.interest, now_ns, links);
            }
        }
    }

    /// Returns whether there are as many faces as allowed, UDP faces that peers made aside.
    fn is_full(&self) -> bool {
        self.links.faces.len().saturating_sub(self.peers.len()) >= self.faces_max()
    }

    /// Connections at a time, as configured or as descriptors allow.
    fn faces_max(&self) -> usize {
        self.config.faces_max.min(descriptors::connections_max())
    }

    fn token(&mut self, source: Source) -> u64 {
        self.last_token += 1;
        self.sources.insert(self.last_token, source);
        self.last_token
    }

    fn limits(&self) -> Limits {
        Limits {
            send_bytes_max: self.config.send_bytes_max,
            burst_frames_max: BURST_FRAMES_MAX,
            ..Limits::default()
        }
    }

    fn back_off(&self) -> BackOff {
        BackOff { min_ns: self.config.reconnect_min_ns, max_ns: self.config.reconnect_max_ns }
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("listening", &self.listening())
            .field("faces", &self.links.faces.len())
            .field("forwarder", &self.forwarder)
            .finish_non_exhaustive()
    }
}

fn random_seed() -> Result<[u64; 3], NodeError> {
    let mut seed = [0u64; 3];
    for word in &mut seed {
        let mut octets = [0u8; 8];
        let flags = rustix::rand::GetRandomFlags::empty();
        // Up to 256 octets come whole once the kernel's generator is seeded.
        rustix::rand::getrandom(&mut octets, flags).map_err(|e| NodeError::Random(e.into()))?;
        *word = u64::from_ne_bytes(octets);
    }
    Ok(seed)
}
