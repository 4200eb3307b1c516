//! The file server: one thread, one face, the engine and its executor.
//!
//! Requests are taken from the face only while there is room for answers: a slow peer slows its own
//! requests down, nothing is dropped. When the forwarder goes away, the server connects again with
//! growing pauses and registers its prefixes again; a fetch under way goes on where it was.

mod config;
mod face;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use byname_io::{Clock, ConnectError, Connection, Event, Poller, Token, Waker};
use byname_packet::Name;
use byname_transfer::server::{
    Completion, Counters, FixedData, Mount, Now, OpId, SendSegment, Server, SharedSigner,
};

pub use config::{FileServerConfig, MountConfig};

use crate::error::{RegisterError, StoreError};
use crate::executor::Executor;
use crate::register::Registrar;
use crate::state::StateDir;
use crate::workers::Workers;
use face::Face;

const FACE: Token = Token(0);
const WAKE: Token = Token(1);
/// Pause before connecting again: the first, and the longest.
const PAUSE_NS: (u64, u64) = (100_000_000, 5_000_000_000);
/// Requests taken at a time, and so the most segments that are read and sent as one burst.
const BURST_MAX: usize = 32;

/// What happens to the face.
#[derive(Debug)]
pub enum ServerEvent<'a> {
    /// All prefixes are registered: what is published can be reached.
    Ready,
    /// The forwarder went away; the server tries to connect again.
    Disconnected {
        /// Why, if known.
        reason: &'a str,
    },
    /// Connecting or registering again failed; another attempt follows.
    Retrying {
        /// Why.
        error: &'a StoreError,
    },
}

/// Stops a server and looks at it from other threads.
#[derive(Clone)]
pub struct ServerHandle {
    is_over: Arc<AtomicBool>,
    waker: Waker,
    counters: Arc<Mutex<Counters>>,
}

impl ServerHandle {
    /// Makes [`FileServer::run`] return.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.waker.wake();
    }

    /// What the server has done, as of its last pause.
    pub fn counters(&self) -> Counters {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file server that is not attached yet. See the module's documentation.
pub struct FileServer {
    engine: Server,
    executor: Executor,
    poller: Poller,
    clock: Clock,
    prefixes: Vec<(Name, SharedSigner)>,
    handle: ServerHandle,
    /// Segments being sent; empty between steps.
    burst: Vec<(OpId, SendSegment)>,
}

impl FileServer {
    /// Opens the state directory and the mounts, and starts the workers.
    ///
    /// # Errors
    /// [`StoreError`] of what cannot be opened; [`crate::StateError::Locked`] if another server
    /// runs.
    pub fn new(config: FileServerConfig) -> Result<Self, StoreError> {
        let state = Arc::new(StateDir::open(&config.state_dir, config.tree_bytes_max)?);
        let (mut roots, mut mounts, mut prefixes) = (Vec::new(), Vec::new(), Vec::new());
        for mount in config.mounts {
            roots.push(Arc::new(mount.root(state.identity())?));
            prefixes.push((mount.prefix.clone(), mount.signer.clone()));
            mounts.push(Mount { prefix: mount.prefix, signer: mount.signer });
        }
        prefixes.extend(config.also_register);
        let mut engine = Server::new(config.engine, mounts);
        for wire in config.certificates {
            engine.add_fixed(FixedData { wire }).map_err(StoreError::Certificate)?;
        }
        let mut poller = Poller::new()?;
        let waker = poller.waker(WAKE)?;
        let handle = ServerHandle {
            is_over: Arc::default(),
            waker: waker.clone(),
            counters: Arc::default(),
        };
        let workers = Workers::start(state.clone(), config.worker_threads.max(1), waker)?;
        let executor = Executor::new(roots, state, workers);
        let clock = Clock::new();
        let (prefixes, burst) = (outermost(prefixes), Vec::new());
        Ok(Self { engine, executor, poller, clock, prefixes, handle, burst })
    }

    /// For other threads.
    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// The prefixes that are registered with the forwarder.
    pub fn prefixes(&self) -> impl Iterator<Item = &Name> {
        self.prefixes.iter().map(|(prefix, _)| prefix)
    }

    /// Serves over connections that `connect` makes until it is stopped.
    ///
    /// # Errors
    /// [`StoreError`] if the first connection or registration fails; later ones are tried again.
    pub fn run(
        mut self,
        connect: &mut dyn FnMut() -> Result<Connection, ConnectError>,
        on_event: &mut dyn FnMut(ServerEvent<'_>),
    ) -> Result<(), StoreError> {
        let mut pause_ns = PAUSE_NS.0;
        let mut was_ready = false;
        while !self.is_over() {
            let attached = self.attach(connect).and_then(|mut face| {
                self.serve(&mut face, &mut || {
                    was_ready = true;
                    pause_ns = PAUSE_NS.0;
                    on_event(ServerEvent::Ready);
                })
            });
            match attached {
                _ if self.is_over() => break,
                Err(error) if !was_ready => return Err(error),
                Err(StoreError::Io(error)) => {
                    on_event(ServerEvent::Disconnected { reason: &error.to_string() });
                }
                Err(error) => on_event(ServerEvent::Retrying { error: &error }),
                Ok(()) => on_event(ServerEvent::Disconnected { reason: "closed by the peer" }),
            }
            self.pause(pause_ns)?;
            pause_ns = (pause_ns * 2).min(PAUSE_NS.1);
        }
        Ok(())
    }

    /// Serves over one connection, without registering anything, until it closes or is stopped.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the connection fails.
    pub fn run_direct(mut self, connection: Connection) -> Result<(), StoreError> {
        let mut face = Face::new(connection, None);
        self.poller.add(&face.connection, FACE, face.interest())?;
        self.serve(&mut face, &mut || {})
    }

    fn attach(
        &mut self,
        connect: &mut dyn FnMut() -> Result<Connection, ConnectError>,
    ) -> Result<Face, StoreError> {
        let connection = connect()?;
        // A forwarder takes no UDP peer for local: anybody on its machine can forge one.
        let is_udp = connection.remote_uri().starts_with("udp");
        let registrar = Registrar::new(&self.prefixes, connection.is_local() && !is_udp);
        let face = Face::new(connection, Some(registrar));
        self.poller.add(&face.connection, FACE, face.interest())?;
        Ok(face)
    }

    fn is_over(&self) -> bool {
        self.handle.is_over.load(Ordering::Relaxed)
    }

    fn now(&self) -> Now {
        Now { now_ns: self.clock.now_ns(), unix_ns: self.clock.unix_ns() }
    }

    /// Serves until the peer closes (`Ok`), the server is stopped (`Ok`) or something fails.
    fn serve(&mut self, face: &mut Face, on_ready: &mut dyn FnMut()) -> Result<(), StoreError> {
        let mut events = Vec::new();
        let mut interest = face.interest();
        while !self.is_over() && !face.is_closed {
            self.step(face, on_ready)?;
            if face.interest() != interest {
                interest = face.interest();
                self.poller.modify(&face.connection, FACE, interest)?;
            }
            self.publish_counters();
            let timeout = self.timeout(face);
            self.poller.wait(&mut events, timeout)?;
            for event in &events {
                if event.token == FACE && (event.readable || event.hangup) {
                    face.receive()?;
                }
            }
        }
        self.poller.remove(&face.connection)?;
        Ok(())
    }

    /// Does everything that can be done without waiting.
    fn step(&mut self, face: &mut Face, on_ready: &mut dyn FnMut()) -> Result<(), StoreError> {
        let now = self.now();
        for (id, completion) in self.executor.take_done() {
            self.engine.handle_completion(id, completion, now);
        }
        self.engine.handle_timeout(now);
        face.register(now, on_ready)?;
        loop {
            if !face.has_room() {
                face.connection.flush()?;
                if !face.has_room() {
                    return Ok(());
                }
            }
            if !self.advance(face)? {
                break;
            }
        }
        face.connection.flush()?;
        Ok(())
    }

    /// Sends one packet, or else carries out one operation or burst of segments, or else takes
    /// requests; false if there is nothing of these.
    fn advance(&mut self, face: &mut Face) -> Result<bool, StoreError> {
        if let Some(packet) = self.engine.poll_transmit() {
            // There is room: `step` has seen to it.
            let _ = face.connection.queue(&[&packet]);
            return Ok(true);
        }
        let now = self.now();
        self.engine.poll_segments(&mut self.burst, BURST_MAX);
        if !self.burst.is_empty() {
            let sent = self.executor.send(&self.burst, &mut face.connection);
            for ((id, _), sent) in self.burst.drain(..).zip(sent) {
                self.engine.handle_completion(id, Completion::Segment(sent), now);
            }
            return Ok(true);
        }
        if let Some((id, op)) = self.engine.poll_op() {
            let completion = self.executor.execute(id, op, &mut face.connection);
            if let Some(completion) = completion {
                self.engine.handle_completion(id, completion, now);
            }
            return Ok(true);
        }
        for taken in 0..BURST_MAX {
            if !face.next_request(&mut self.engine, now)? {
                return Ok(taken > 0);
            }
        }
        Ok(true)
    }

    fn timeout(&self, face: &Face) -> Option<Duration> {
        if face.is_busy() {
            return Some(Duration::ZERO);
        }
        let due_ns =
            [self.engine.poll_timeout(), face.poll_timeout()].into_iter().flatten().min()?;
        Some(Duration::from_nanos(due_ns.saturating_sub(self.clock.now_ns())))
    }

    fn publish_counters(&self) {
        let mut counters = self.handle.counters.lock().unwrap_or_else(PoisonError::into_inner);
        *counters = self.engine.counters();
    }

    /// Waits, but not when stopped. Results of workers are taken meanwhile.
    fn pause(&mut self, pause_ns: u64) -> Result<(), StoreError> {
        let until_ns = self.clock.now_ns() + pause_ns;
        let mut events: Vec<Event> = Vec::new();
        loop {
            let left_ns = until_ns.saturating_sub(self.clock.now_ns());
            if left_ns == 0 || self.is_over() {
                return Ok(());
            }
            self.poller.wait(&mut events, Some(Duration::from_nanos(left_ns)))?;
            let now = self.now();
            for (id, completion) in self.executor.take_done() {
                self.engine.handle_completion(id, completion, now);
            }
            // Nobody is there any more to whom these could be sent.
            while self.engine.poll_transmit().is_some() {}
        }
    }
}

/// Without what another prefix covers.
fn outermost(mut prefixes: Vec<(Name, SharedSigner)>) -> Vec<(Name, SharedSigner)> {
    prefixes.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut kept: Vec<(Name, SharedSigner)> = Vec::new();
    for (prefix, signer) in prefixes {
        if !kept.iter().any(|(outer, _)| outer.view().is_prefix_of(prefix.view())) {
            kept.push((prefix, signer));
        }
    }
    kept
}
