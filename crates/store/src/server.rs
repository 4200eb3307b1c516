//! The file server: one thread, its peers, the engine and its executor.
//!
//! Peers are a forwarder, at which prefixes are registered, and clients that connect directly.
//! Requests of each are taken in turn, and only while there is room for answers to it: a slow peer
//! slows its own requests down, nothing is dropped. When the forwarder goes away, the server
//! connects again with growing pauses and registers its prefixes again; a fetch in flight goes on
//! where it was.

mod access;
mod askers;
mod config;
mod datagrams;
mod face;
mod faces;
mod handle;
mod sending;
mod service;
mod upstream;

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use byname_face::CommandClock;
use byname_io::{Clock, ConnectError, Connection, Endpoint, Event, IoError, Poller, Token, poller};
use byname_packet::Name;
use byname_packet::lp::trace::{FROM_MIRROR, FROM_PUBLISHER};
use byname_transfer::server::{
    FaceId, FixedData, Mount, Now, SegmentBurst, SegmentSent, Server, SharedSigner,
};

type Backends = (Vec<Arc<dyn Backend>>, Option<AheadThread>);

pub use access::{AccessRecord, AccessSink};
pub use config::{FileServerConfig, MountConfig, MountSource};
pub use handle::ServerHandle;
pub use service::Service;

use crate::backend::Backend;
use crate::error::StoreError;
use crate::executor::{Executor, Reading};
use crate::mirror::NoKey;
use crate::state::StateDir;
use crate::summing::SummingThread;
use crate::watch::ahead::{AheadThread, NewContents, NewFiles};
use crate::workers::Workers;
use access::Accesses;
use config::ForBackend;
use faces::{Faces, PeerBounds};
use service::Recipients;
use upstream::Upstream;

const WAKE: Token = Token(1);
/// Tokens up to this are not of faces.
const OWN_TOKENS: u64 = 1;
/// Requests of one face taken at a time: as many as are read and sent as one burst.
const BURST_MAX: usize = 64;
/// Turns of all faces before new requests are received.
const ROUNDS_MAX: usize = 16;

/// Events of the face to the forwarder.
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

/// A file server that is not attached yet. See the module's documentation.
pub struct FileServer {
    engine: Server,
    /// Answers what no files are behind.
    service: Option<Box<dyn Service>>,
    executor: Executor,
    /// Hashes what is new in watched trees.
    ahead: Option<AheadThread>,
    poller: Poller,
    clock: Clock,
    prefixes: Vec<(Name, SharedSigner)>,
    /// Time for which they are registered.
    registered_ns: Option<u64>,
    /// Of the commands that register them, however often the forwarder comes back.
    command_clock: CommandClock,
    handle: ServerHandle,
    /// Segments that were sent; empty between steps.
    sent: Vec<(SegmentBurst, SegmentSent)>,
    faces: Faces,
    /// Where a burst waits whose first packet gets a congestion mark; empty between steps.
    marking: Connection,
    /// `None` if nobody keeps a log.
    accesses: Option<Accesses>,
    /// Trace of what is answered here.
    path_trace: &'static [u8],
}

impl FileServer {
    /// Takes contents of a mount that are to be hashed before anybody asks for them; `None` unless
    /// [`FileServerConfig::hashes_ahead`] is set.
    pub fn new_contents(&self, mount: usize) -> Option<NewContents> {
        self.ahead.as_ref()?.contents(mount)
    }

    /// Opens the state directory and the mounts, and starts the workers.
    ///
    /// # Errors
    /// [`StoreError`] of what cannot be opened; [`crate::StateError::Locked`] if another server
    /// runs.
    pub fn new(config: FileServerConfig) -> Result<Self, StoreError> {
        let state = Arc::new(StateDir::open(&config.state_dir, config.tree_bytes_max)?);
        let (backends, ahead) = backends(&config, &state)?;
        let (mut mounts, mut prefixes) = (Vec::new(), Vec::new());
        for mount in config.mounts {
            let contents = matches!(mount.source, MountSource::Contents(_));
            if !contents {
                prefixes.push((mount.prefix.clone(), mount.signer.clone()));
            }
            let signer = match &config.mirror {
                Some(_) => Arc::new(NoKey) as SharedSigner,
                None => mount.signer,
            };
            mounts.push(Mount { prefix: mount.prefix, signer, contents });
        }
        prefixes.extend(config.also_register);
        let mut engine = Server::new(config.engine, mounts);
        for mount in 0..backends.len() {
            if let Some(mirror) = &config.mirror {
                engine.mirror(mount, mirror.options);
            }
            if let Some(signer) = &config.segment_signer {
                engine.sign_segments(mount, signer.clone());
            }
        }
        for wire in config.certificates {
            engine.add_fixed(FixedData { wire }).map_err(StoreError::Certificate)?;
        }
        let path_trace = if config.mirror.is_some() { FROM_MIRROR } else { FROM_PUBLISHER };
        let is_summed = config.mirror.is_none() && !config.checksums.is_empty();
        let summing = is_summed.then(|| SummingThread::start(state.clone(), config.checksums));
        let summing = summing.transpose()?;
        let mut poller = Poller::new()?;
        let waker = poller.waker(WAKE)?;
        let handle = ServerHandle::new(waker.clone(), ahead.as_ref().map(AheadThread::counters));
        let reading = Reading::new(config.reader, waker.clone())?;
        let workers =
            Workers::start(state, (config.worker_threads.max(1), config.attributes), waker)?;
        let mut executor = Executor::new(backends, workers, reading, summing);
        if config.data_workers > 1 {
            let helpers = config.data_workers.min(config::DATA_WORKERS_MAX) - 1;
            executor.help(helpers, handle.waker.clone())?;
        }
        let faces = Faces::new(&PeerBounds {
            connection_bytes_max: config.connection_bytes_max,
            silent_ns: config.silent_peer_ns,
            unvalidated: config.udp_unvalidated,
        });
        Ok(Self {
            engine,
            service: None,
            executor,
            ahead,
            poller,
            clock: Clock::new(),
            prefixes: outermost(prefixes),
            registered_ns: config.registered_ns,
            command_clock: CommandClock::new(),
            handle,
            sent: Vec::new(),
            faces,
            marking: Connection::held()?,
            accesses: None,
            path_trace,
        })
    }

    /// For other threads.
    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// The prefixes that are registered with the forwarder.
    pub fn prefixes(&self) -> impl Iterator<Item = &Name> {
        self.prefixes.iter().map(|(prefix, _)| prefix)
    }

    /// Has a service answer names of its own below the registered prefixes.
    pub fn add_service(&mut self, service: Box<dyn Service>) {
        self.service = Some(service);
    }

    /// Hands records of what each peer gets to `sink`.
    pub fn log_accesses(&mut self, sink: Arc<dyn AccessSink>) {
        self.accesses = Some(Accesses::new(sink));
    }

    /// Listens for clients, at most [`CLIENTS_MAX`] at a time; says where, with the port that was
    /// chosen. They are served once the server runs.
    ///
    /// # Errors
    /// [`StoreError::Bind`].
    pub fn listen(&mut self, endpoint: &Endpoint) -> Result<Endpoint, StoreError> {
        self.faces.listen(endpoint, &self.poller)
    }

    /// A connection for a client in this process, over memory that both share.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn connect_local(&mut self) -> Result<Connection, StoreError> {
        let (ours, theirs) = Connection::pair_in_memory()?;
        self.add_client(ours)?;
        Ok(theirs)
    }

    /// Takes a client by a connection that exists.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn add_client(&mut self, connection: Connection) -> Result<(), StoreError> {
        let now_ns = self.clock.now_ns();
        self.faces.add(connection, None, &self.poller, now_ns)?;
        Ok(())
    }

    /// Serves a forwarder, by connections that `connect` makes, and clients until it is stopped.
    ///
    /// # Errors
    /// [`StoreError`] if the first connection or registration fails; later ones are tried again.
    pub fn run(
        mut self,
        connect: &mut dyn FnMut() -> Result<Connection, ConnectError>,
        on_event: &mut dyn FnMut(ServerEvent<'_>),
    ) -> Result<(), StoreError> {
        let mut upstream = Upstream::new(connect, on_event);
        while !self.is_over() {
            self.attach(&mut upstream)?;
            let step = self.step(Some(&mut upstream));
            match step {
                Err(error @ StoreError::Register(_)) => self.lose(&mut upstream, Some(error))?,
                step => step?,
            }
            // What ended while something was sent to it announces no event any more.
            self.take_ended(&mut upstream)?;
            self.wait(self.upstream_due_ns(&upstream))?;
            self.take_ended(&mut upstream)?;
        }
        self.executor.store_roots();
        Ok(())
    }

    /// Serves clients only, without any forwarder, until it is stopped.
    ///
    /// # Errors
    /// [`StoreError::Io`] if waiting fails.
    pub fn run_alone(mut self) -> Result<(), StoreError> {
        while !self.is_over() {
            self.step(None)?;
            self.wait(None)?;
            self.faces.take_ended();
        }
        self.executor.store_roots();
        Ok(())
    }

    /// Serves over one connection, without registering anything, until it closes or is stopped.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the connection fails.
    pub fn run_direct(mut self, connection: Connection) -> Result<(), StoreError> {
        let now_ns = self.clock.now_ns();
        let face = self.faces.add(connection, None, &self.poller, now_ns)?;
        while !self.is_over() && self.faces.has(face) {
            self.step(None)?;
            if self.faces.has(face) {
                self.wait(None)?;
            }
        }
        self.executor.store_roots();
        let ended = self.faces.take_ended().into_iter().find(|(ended, _)| *ended == face);
        ended.and_then(|(_, why)| why).map_or(Ok(()), Err)
    }

    fn is_over(&self) -> bool {
        self.handle.is_over.load(Ordering::Relaxed)
    }

    fn now(&self) -> Now {
        Now { now_ns: self.clock.now_ns(), unix_ns: self.clock.unix_ns() }
    }

    /// Does everything that can be done without waiting.
    fn step(&mut self, upstream: Option<&mut Upstream<'_>>) -> Result<(), StoreError> {
        let now = self.now();
        for (id, completion) in self.executor.take_done() {
            self.engine.handle_completion(id, completion, now);
        }
        self.send_read(now);
        self.engine.handle_timeout(now);
        if let Some(service) = &mut self.service {
            service.handle_timeout(now);
        }
        if let Some(accesses) = &mut self.accesses {
            accesses.handle_timeout(now.now_ns);
        }
        self.faces.open_entrances(&self.poller, now.now_ns);
        self.faces.trim(now.now_ns);
        self.register(upstream, now)?;
        self.pump(now);
        let mut order = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let mut taken = 0;
            self.faces.round(&mut order);
            for face in &order {
                taken += self.take_requests(*face)?;
            }
            if taken == 0 {
                break;
            }
        }
        self.faces.flush_all(&self.poller, now.now_ns)?;
        let faces = &self.faces;
        self.executor.begin_reads(&|face| faces.has_room(face));
        Ok(())
    }

    /// Takes a burst of requests of one face and does what it asks.
    fn take_requests(&mut self, face: FaceId) -> Result<usize, StoreError> {
        let now = self.now();
        if self.executor.is_behind(face) {
            return Ok(0);
        }
        if !self.faces.has_room(face) {
            self.faces.flush(face, now.now_ns);
        }
        let service = self.service.as_deref_mut();
        let mut recipients =
            Recipients { engine: &mut self.engine, service, path_trace: self.path_trace };
        let taken = self.faces.take_requests((face, BURST_MAX), &mut recipients, now)?;
        if taken > 0 {
            self.pump(now);
        }
        Ok(taken)
    }

    /// Waits for events, at most until `due_ns`, and takes what they are about.
    fn wait(&mut self, due_ns: Option<u64>) -> Result<(), IoError> {
        self.publish_counters();
        let timeout = self.timeout(due_ns);
        let mut events: Vec<Event> = Vec::with_capacity(poller::EVENTS_MAX);
        self.poller.wait(&mut events, timeout)?;
        let now_ns = self.clock.now_ns();
        for event in &events {
            if event.token != WAKE && (event.readable || event.hangup) {
                self.faces.on_event(event.token, &self.poller, now_ns);
            }
        }
        Ok(())
    }

    fn timeout(&self, due_ns: Option<u64>) -> Option<Duration> {
        if self.faces.is_busy(&|face| self.executor.is_behind(face)) {
            return Some(Duration::ZERO);
        }
        let service = self.service.as_ref().and_then(|service| service.poll_timeout());
        let logged = self.accesses.as_ref().and_then(Accesses::poll_timeout);
        let faces = self.faces.poll_timeout(self.clock.now_ns());
        let due = [self.engine.poll_timeout(), faces, service, logged, due_ns];
        let due_ns = due.into_iter().flatten().min()?;
        Some(Duration::from_nanos(due_ns.saturating_sub(self.clock.now_ns())))
    }

    fn publish_counters(&self) {
        let mut counters = self.handle.counters.lock().unwrap_or_else(PoisonError::into_inner);
        *counters = self.engine.counters();
        self.handle.marks.store(self.faces.marked(), Ordering::Relaxed);
        let (connection_bytes, stalled) = self.faces.memory();
        self.handle.connection_bytes.store(connection_bytes, Ordering::Relaxed);
        self.handle.unvalidated.store(self.faces.unvalidated(), Ordering::Relaxed);
        self.handle.stalled.store(stalled, Ordering::Relaxed);
        self.handle.faces.store(self.faces.len(), Ordering::Relaxed);
        self.handle.handed_over.store(self.executor.handed_over(), Ordering::Relaxed);
    }
}

/// The back-ends of all mounts, and who hashes what is new in them if they are watched.
fn backends(config: &FileServerConfig, state: &Arc<StateDir>) -> Result<Backends, StoreError> {
    let is_watched = config.watch && config.mirror.is_none();
    let new_files = (is_watched || config.hashes_ahead).then(Arc::<NewFiles>::default);
    let mut backends = Vec::new();
    for (number, mount) in config.mounts.iter().enumerate() {
        backends.push(mount.backend(&ForBackend {
            number,
            state: state.identity(),
            copies: config.mirror.as_ref().map(|mirror| mirror.copies.as_path()),
            new_files: new_files.as_ref().filter(|_| is_watched),
        })?);
    }
    let ahead = new_files.map(|new_files| {
        let of = (is_watched.then(|| config.engine.quiet()), config.attributes);
        AheadThread::start(new_files, backends.clone(), state.clone(), of)
    });
    Ok((backends, ahead.transpose()?))
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
