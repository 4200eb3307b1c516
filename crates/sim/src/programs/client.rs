//! A client: the production download, with its part file, resume and rename, over a real directory.
//!
//! A crash drops the transfer at whatever it is doing; a restart makes a new one over what the
//! directory has. A transfer that ends with an error is tried again after a while, as a user would.
//! A client that may ask several sources has one seat at each: see [`Client::seats`].

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use byname_client::disk::Disk;
use byname_client::transfer::{self, Channel, Peers, Transfer, TransferOutcome};
use byname_client::{ClientConfig, DownloadOptions, Event, Progress};
use byname_packet::Name;
use byname_security::key::KeyId;
use tempfile::TempDir;

use super::local_disk::{Content, LocalDisk};
use crate::program::{Crash, Now, Program};
use crate::random::Random;
use crate::world::MS;

/// Interval at which an idle seat checks whether it is in use by now.
const LOOK_NS: u64 = 10 * MS;
/// Interval between checks of due work; a job with work to do at once may take several.
const PAUSE_NS: u64 = MS / 10;
/// Lives and attempts that are remembered with what became of them.
const ENDS_MAX: usize = 1000;

/// A fetch.
#[derive(Clone, Debug)]
pub struct ClientOrder {
    /// Published name of the file, or of the directory.
    pub name: Name,
    /// Prefix and key of its publisher.
    pub anchor: (Name, KeyId),
    /// Below the directory of the client: the file, or the directory that a tree goes to.
    pub target: PathBuf,
    /// True if it is a directory with everything below it.
    pub is_tree: bool,
    /// Contents that may come to stand where: paths below the directory of the client.
    pub versions: BTreeMap<PathBuf, Vec<Content>>,
    /// As for every client.
    pub options: DownloadOptions,
    /// As for every client, but for trust and disk.
    pub config: ClientConfig,
    /// When to begin.
    pub start_ns: u64,
    /// After a failure, how long until it is tried again.
    pub again_ns: Option<u64>,
}

/// Totals of all lives of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Octets that came over the network and were verified.
    pub fetched: u64,
    /// Octets that were there already: counted again by every life that finds them.
    pub reused: u64,
    /// Pieces that did not verify.
    pub refused: u64,
    /// Transfers begun.
    pub begun: u64,
    /// Transfers that failed.
    pub failed: u64,
    /// Crashes in the middle of one.
    pub crashes: u64,
    /// Files in place.
    pub files: u64,
}

struct Counting(Rc<RefCell<Tally>>);

impl Progress for Counting {
    fn on_event(&mut self, event: Event<'_>) {
        let mut tally = self.0.borrow_mut();
        match event {
            Event::Fetched { bytes } => tally.fetched += bytes,
            Event::Reused { bytes } => tally.reused += bytes,
            Event::Refused { .. } => tally.refused += 1,
            Event::FileDone { .. } => tally.files += 1,
            _ => {}
        }
    }
}

struct ClientState {
    order: ClientOrder,
    directory: Rc<TempDir>,
    disk: Arc<LocalDisk>,
    transfer: Option<Transfer>,
    random: Random,
    /// True if there is somebody to connect to, by seat.
    faces: Vec<bool>,
    /// The seat whose connection is in use.
    active: usize,
    is_down: bool,
    /// When the next transfer begins.
    begin_ns: Option<u64>,
    tally: Rc<RefCell<Tally>>,
    errors: VecDeque<String>,
    finished_ns: Option<u64>,
    broken: Option<String>,
}

/// See the module.
pub struct Client {
    state: Rc<RefCell<ClientState>>,
    seat: usize,
    looked_ns: u64,
}

impl Client {
    /// A client with one connection, to the forwarder of its host, over an empty directory.
    pub fn new(order: ClientOrder, seed: u64) -> Self {
        Client::seats(order, 1, seed).remove(0)
    }

    /// A client with a connection to each of several forwarders, to be added to one host each. If
    /// the configuration says so, the next one is asked when one is gone, silent or lies.
    ///
    /// # Panics
    /// If there is no directory to be had for temporary files.
    pub fn seats(order: ClientOrder, count: usize, seed: u64) -> Vec<Self> {
        let directory = Rc::new(tempfile::tempdir().expect("a directory for temporary files"));
        let root = directory.path();
        let versions =
            order.versions.iter().map(|(path, versions)| (root.join(path), versions.clone()));
        let disk = LocalDisk::new(versions.collect(), order.options.sync, seed);
        let state = ClientState {
            begin_ns: Some(order.start_ns),
            order,
            directory,
            disk: Arc::new(disk),
            transfer: None,
            random: Random::new(seed),
            faces: vec![true; count],
            active: 0,
            is_down: false,
            tally: Rc::default(),
            errors: VecDeque::new(),
            finished_ns: None,
            broken: None,
        };
        let state = Rc::new(RefCell::new(state));
        let seat = |seat| Client { state: Rc::clone(&state), seat, looked_ns: 0 };
        (0..count).map(seat).collect()
    }

    /// The disk, to let it fail, or to look at it.
    pub fn disk(&self) -> Arc<LocalDisk> {
        Arc::clone(&self.state.borrow().disk)
    }

    /// Where everything goes.
    pub fn directory(&self) -> PathBuf {
        self.state.borrow().directory.path().to_owned()
    }

    /// Totals of all its lives.
    pub fn tally(&self) -> Tally {
        *self.state.borrow().tally.borrow()
    }

    /// Why transfers failed, the newest last.
    pub fn errors(&self) -> Vec<String> {
        self.state.borrow().errors.iter().cloned().collect()
    }

    /// When everything was in place.
    pub fn finished_ns(&self) -> Option<u64> {
        self.state.borrow().finished_ns
    }

    /// The seat whose connection is in use.
    pub fn active_seat(&self) -> usize {
        self.state.borrow().active
    }

    /// Begins once more, to fetch what is new.
    pub fn order_again(&mut self, at_ns: u64) {
        let mut state = self.state.borrow_mut();
        state.begin_ns = Some(at_ns);
        state.finished_ns = None;
    }

    /// One more version may come to stand at a path below the directory.
    pub fn publish(&mut self, path: &Path, version: Content) {
        let state = self.state.borrow();
        state.disk.publish(&state.directory.path().join(path), version);
    }

    fn is_active(&self) -> bool {
        self.state.borrow().active == self.seat
    }
}

impl ClientState {
    fn begin(&mut self, now: Now) {
        let mut config = self.order.config.clone();
        config.trust.add_anchor(self.order.anchor.0.clone(), self.order.anchor.1);
        config.disk = Disk::hooked(Arc::clone(&self.disk) as Arc<_>);
        let order = transfer::TransferOrder {
            name: self.order.name.clone(),
            target: self.directory.path().join(&self.order.target),
            config,
            options: self.order.options,
            progress: Box::new(Counting(Rc::clone(&self.tally))),
        };
        let source_count = if self.order.config.asks_all { self.faces.len() } else { 1 };
        let seed = self.random.draw();
        let peers = Peers { source_count, channel: Channel::Stream, seed };
        self.active = 0;
        self.tally.borrow_mut().begun += 1;
        let mut transfer = match self.order.is_tree {
            true => Transfer::tree(order, Box::new(|_| true), peers, clocks(now)),
            false => Transfer::file(order, peers, clocks(now)),
        };
        if !self.faces[0] {
            transfer.handle_disconnected(clocks(now));
        }
        self.transfer = Some(transfer);
    }

    fn fail(&mut self, error: String, now: Now) {
        self.tally.borrow_mut().failed += 1;
        self.errors.push_back(error);
        if self.errors.len() > ENDS_MAX {
            self.errors.pop_front();
        }
        self.begin_ns = self.order.again_ns.map(|pause_ns| now.now_ns + pause_ns);
    }

    /// Goes on with whatever the last event made possible.
    fn step(&mut self, now: Now) {
        if self.is_down {
            return;
        }
        if self.begin_ns.is_some_and(|at_ns| at_ns <= now.now_ns) {
            self.begin_ns = None;
            self.begin(now);
        }
        let Some(transfer) = &mut self.transfer else { return };
        while let Some(connect) = transfer.poll_connect(clocks(now)) {
            if self.faces[connect.source] {
                self.active = connect.source;
                transfer.handle_connected(Channel::Stream, clocks(now));
            } else {
                transfer.handle_connect_failed(clocks(now));
            }
        }
        let ended = match transfer.outcome() {
            None => return,
            Some(TransferOutcome::File(Ok(_))) => Ok(()),
            Some(TransferOutcome::Tree(Ok(report))) if report.is_complete() => Ok(()),
            Some(TransferOutcome::Tree(Ok(report))) => Err(format!("{:?}", report.failures)),
            Some(TransferOutcome::File(Err(error)) | TransferOutcome::Tree(Err(error))) => {
                Err(error.to_string())
            }
        };
        self.transfer = None;
        self.disk.check_targets();
        match ended {
            Ok(()) => self.finish(now),
            Err(error) => self.fail(error, now),
        }
    }

    /// The client says that everything is in place: so it must be.
    fn finish(&mut self, now: Now) {
        self.finished_ns = Some(now.now_ns);
        let root = self.directory.path();
        let is_missing = |path: &&PathBuf| !root.join(path).is_file();
        if let Some(missing) = self.order.versions.keys().find(is_missing) {
            self.broken = Some(format!("{} is said to be in place", missing.display()));
        }
    }
}

fn clocks(now: Now) -> transfer::Now {
    transfer::Now { now_ns: now.now_ns, unix_ns: now.unix_ns }
}

impl Program for Client {
    fn handle_frame(&mut self, frame: &[u8], now: Now) {
        let is_active = self.is_active();
        let mut state = self.state.borrow_mut();
        if let Some(transfer) = state.transfer.as_mut().filter(|_| is_active) {
            transfer.handle_frame(frame, clocks(now));
        }
        state.step(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        let is_active = self.is_active();
        self.looked_ns = now.now_ns;
        let mut state = self.state.borrow_mut();
        if let Some(transfer) = state.transfer.as_mut().filter(|_| is_active) {
            transfer.handle_timeout(clocks(now));
        }
        state.step(now);
    }

    fn poll_frame(&mut self, now: Now) -> Option<Vec<u8>> {
        let is_active = self.is_active();
        let mut state = self.state.borrow_mut();
        state.transfer.as_mut().filter(|_| is_active)?.poll_frame(clocks(now))
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        let is_active = self.is_active();
        let mut state = self.state.borrow_mut();
        let begin_ns = state.begin_ns.filter(|_| !state.is_down);
        let is_face_up = state.faces[self.seat];
        match &mut state.transfer {
            // Without a connection nothing can be sent, whatever is due: drivers pause then.
            Some(transfer) if is_active => {
                let pause_ns = if is_face_up { PAUSE_NS } else { LOOK_NS };
                transfer.poll_timeout().map(|at_ns| at_ns.max(self.looked_ns + pause_ns))
            }
            Some(_) => Some(self.looked_ns + LOOK_NS),
            None if self.seat == 0 => begin_ns,
            // The first seat begins; this one has to notice.
            None => begin_ns.map(|at_ns| at_ns.max(self.looked_ns) + LOOK_NS),
        }
    }

    fn fault(&self) -> Option<String> {
        let state = self.state.borrow();
        let levels = state.transfer.as_ref().map(Transfer::levels);
        let full = levels.and_then(|levels| levels.overfull());
        let told = full.map(|(what, held, max)| {
            format!("tables are bounded: {held} {what} at a client, allowed are {max}")
        });
        state.broken.clone().or_else(|| state.disk.fault()).or(told)
    }

    fn crash(&mut self, how: Crash, _now: Now) {
        let mut state = self.state.borrow_mut();
        state.is_down = true;
        if state.transfer.take().is_some() {
            state.tally.borrow_mut().crashes += 1;
        }
        if how == Crash::Power {
            state.disk.cut_power();
        }
        state.disk.check_targets();
    }

    fn restart(&mut self, now: Now) {
        let mut state = self.state.borrow_mut();
        state.is_down = false;
        if state.finished_ns.is_none() {
            state.begin_ns = Some(now.now_ns);
        }
        state.step(now);
    }

    fn handle_face(&mut self, is_up: bool, now: Now) {
        let is_active = self.is_active();
        let mut state = self.state.borrow_mut();
        let seat = self.seat;
        state.faces[seat] = is_up;
        if let Some(transfer) = state.transfer.as_mut().filter(|_| is_active && !is_up) {
            transfer.handle_disconnected(clocks(now));
        }
        state.step(now);
    }
}
