//! A disk that takes its time holds up the download that uses it, and no other call of the session.
//!
//! Only a [`Session`] can show that: a `Client` has one call at a time.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use byname_client::disk::{Disk, DiskHook, DiskStep};
use byname_client::{
    Client, ClientConfig, ClientError, DownloadOptions, FileOutcome, RemoteFile, Session,
    SessionOptions, Stop,
};
use byname_packet::{Name, types};

use super::publisher::{Publisher, sample};
use super::server::{Meddler, Server, trusting};
use super::{Log, SIZE, Silent, StopAtFirstBytes, logging};

/// A gate stays shut for at most so long, so that a session that waits for it ends the test.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Open,
    Read,
    Write,
    Resize,
    Sync,
    SyncAll,
    Name,
}

fn kind_of(step: &DiskStep<'_>) -> (Kind, PathBuf) {
    let (kind, target) = match step {
        DiskStep::Open { target } => (Kind::Open, target),
        DiskStep::Read { target, .. } => (Kind::Read, target),
        DiskStep::Write { target, .. } => (Kind::Write, target),
        DiskStep::Resize { target, .. } => (Kind::Resize, target),
        DiskStep::Sync { target } => (Kind::Sync, target),
        DiskStep::SyncAll { target } => (Kind::SyncAll, target),
        DiskStep::Name { target, .. } => (Kind::Name, target),
    };
    (kind, target.to_path_buf())
}

#[derive(Default)]
struct GateState {
    is_reached: bool,
    is_open: bool,
    was_forced: bool,
    error: Option<io::ErrorKind>,
}

/// A disk on which one kind of step does not end before the gate is opened.
struct Gate {
    kind: Kind,
    /// File that it is about.
    name: &'static str,
    state: Mutex<GateState>,
    changed: Condvar,
}

impl Gate {
    fn at(kind: Kind, name: &'static str) -> Arc<Self> {
        let (state, changed) = Default::default();
        Arc::new(Gate { kind, name, state, changed })
    }

    /// Waits until somebody stands before it.
    fn wait(&self) {
        let state = self.state.lock().expect("no panic");
        let waited = self.changed.wait_timeout_while(state, PATIENCE, |state| !state.is_reached);
        assert!(waited.expect("no panic").0.is_reached, "nobody came to {:?}", self.kind);
    }

    fn open(&self) {
        self.state.lock().expect("no panic").is_open = true;
        self.changed.notify_all();
    }

    fn fail(&self, error: io::ErrorKind) {
        self.state.lock().expect("no panic").error = Some(error);
        self.open();
    }

    /// True if what was done until now was done while the gate was shut.
    fn was_shut(&self) -> bool {
        !self.state.lock().expect("no panic").was_forced
    }
}

impl DiskHook for Gate {
    fn before(&self, step: DiskStep<'_>) -> io::Result<usize> {
        let (kind, target) = kind_of(&step);
        if kind == self.kind && target.ends_with(self.name) {
            let mut state = self.state.lock().expect("no panic");
            state.is_reached = true;
            self.changed.notify_all();
            let waited = self.changed.wait_timeout_while(state, PATIENCE, |state| !state.is_open);
            let (mut state, timeout) = waited.expect("no panic");
            if timeout.timed_out() {
                (state.is_open, state.was_forced) = (true, true);
            }
            if let Some(error) = state.error {
                return Err(error.into());
            }
        }
        Ok(usize::MAX)
    }
}

/// A session whose disk has this gate.
fn session_at(gate: &Arc<Gate>, publisher: Publisher, config: ClientConfig) -> (Server, Session) {
    meddled_session_at(gate, publisher, config, Box::new(|_, reply| reply))
}

fn meddled_session_at(
    gate: &Arc<Gate>,
    publisher: Publisher,
    config: ClientConfig,
    meddler: Meddler,
) -> (Server, Session) {
    let disk = Disk::hooked(Arc::clone(gate) as Arc<dyn DiskHook>);
    let config = ClientConfig { disk, ..config };
    let (server, connection) = Server::start(publisher, meddler);
    let client = Client::with_connection(connection, config).expect("a client");
    (server, Session::start(client, SessionOptions::default()).expect("a thread"))
}

/// Other calls go on: a status, and ranges of an open file that were not read before.
fn others_go_on(session: &Session, name: &Name, file: &RemoteFile, bytes: &[u8]) {
    assert_eq!(session.stat(name).expect("it is there").size, Some(bytes.len() as u64));
    let mut buffer = [0; 300];
    for offset in [0, 100_000, 2_000_000] {
        let count = file.read_at(&mut buffer, offset).expect("it is there");
        assert!(buffer[..count] == bytes[offset as usize..][..count]);
    }
}

/// A download waits at a gate while other calls go on, and arrives when it is opened.
fn passes(kind: Kind, options: DownloadOptions, prepare: impl FnOnce(&Path)) {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    prepare(&target);
    let (gate, bytes) = (Gate::at(kind, "f"), sample(SIZE));
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &bytes);
    let config = trusting(&publisher);
    let (_server, session) = session_at(&gate, publisher, config);
    let file = session.open(&name).expect("it is there");
    let before = std::fs::read(&target).ok();
    std::thread::scope(|scope| {
        let download = scope.spawn(|| session.download(&name, &target, options));
        gate.wait();
        others_go_on(&session, &name, &file, &bytes);
        assert!(std::fs::read(&target).ok() == before, "nothing new is there before it is whole");
        assert!(gate.was_shut(), "other calls waited for the disk");
        gate.open();
        let report = download.join().expect("no panic").expect("it arrives");
        assert_eq!(report.outcome, FileOutcome::Fetched);
    });
    assert!(std::fs::read(&target).expect("it is in place") == bytes);
}

#[test]
fn a_part_file_that_takes_long_to_open_holds_up_nobody() {
    passes(Kind::Open, DownloadOptions::default(), |_| {});
}

#[test]
fn a_write_that_takes_long_holds_up_nobody() {
    passes(Kind::Write, DownloadOptions::default(), |_| {});
}

#[test]
fn a_length_that_takes_long_holds_up_nobody() {
    passes(Kind::Resize, DownloadOptions::default(), |_| {});
}

#[test]
fn a_sync_that_takes_long_holds_up_nobody() {
    passes(Kind::Sync, DownloadOptions { sync: true, ..DownloadOptions::default() }, |_| {});
}

#[test]
fn a_rename_that_takes_long_holds_up_nobody() {
    passes(Kind::Name, DownloadOptions::default(), |_| {});
}

#[test]
fn a_comparison_that_takes_long_holds_up_nobody() {
    passes(Kind::Read, DownloadOptions::default(), |target| {
        std::fs::write(target, vec![7; SIZE]).expect("a file");
    });
}

#[test]
fn an_older_version_that_takes_long_to_read_holds_up_nobody() {
    passes(Kind::Read, DownloadOptions::default(), |target| {
        std::fs::write(target, &sample(SIZE)[..SIZE / 2]).expect("a file");
    });
}

#[test]
fn a_tree_on_a_disk_that_takes_long_holds_up_nobody() {
    let small = [("a", &b"small"[..]), ("b", b"files")];
    // A small file is opened, written and named, larger ones get their names after one sync.
    for (kind, sync) in [(Kind::Open, false), (Kind::Name, false), (Kind::SyncAll, true)] {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("d");
        // One sync is for all files; which of them it names depends on which came first.
        let file = if sync { "" } else { "a" };
        let (gate, bytes) = (Gate::at(kind, file), sample(SIZE));
        let mut publisher = Publisher::new("/lab", 1);
        let name = publisher.publish("f", 1000, &bytes);
        let root = publisher.publish_manifest("d", 1000, &small);
        let config = trusting(&publisher);
        let (_server, session) = session_at(&gate, publisher, config);
        let file = session.open(&name).expect("it is there");
        let options = DownloadOptions { sync, ..DownloadOptions::default() };
        std::thread::scope(|scope| {
            let tree = session.download_tree_later(&root, &target, options, |_| true);
            let tree = scope.spawn(|| tree.wait());
            gate.wait();
            others_go_on(&session, &name, &file, &bytes);
            assert!(gate.was_shut(), "{kind:?}: other calls waited for the disk");
            assert!(!target.join("a").exists(), "{kind:?}");
            gate.open();
            let report = tree.join().expect("no panic").expect("it arrives");
            assert_eq!((report.fetched_count, report.failed_count), (2, 0), "{kind:?}");
        });
        for (name, content) in small {
            assert_eq!(std::fs::read(target.join(name)).expect("it is in place"), content);
        }
    }
}

#[test]
fn a_file_whose_disk_hangs_holds_up_no_other_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let (gate, bytes) = (Gate::at(Kind::Write, "f"), sample(SIZE));
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &bytes);
    let config = trusting(&publisher);
    let (_server, session) = session_at(&gate, publisher, config);
    let (hanging, other) = (directory.path().join("f"), directory.path().join("other"));
    std::thread::scope(|scope| {
        let download = scope.spawn(|| session.download(&name, &hanging, Default::default()));
        gate.wait();
        session.download(&name, &other, Default::default()).expect("it arrives");
        assert!(gate.was_shut(), "one download waited for the other");
        gate.open();
        download.join().expect("no panic").expect("it arrives");
    });
    assert!(std::fs::read(&hanging).ok() == std::fs::read(&other).ok());
}

/// Segments of content that were asked for.
fn content_count(log: &Log) -> usize {
    let log = log.lock().expect("no panic");
    let is_content = |name: &&Name| {
        let is_segment = name.view().last().is_some_and(|last| last.segment().is_some());
        is_segment && name.view().components().all(|part| part.typ != types::KEYWORD)
    };
    log.iter().filter(is_content).count()
}

#[test]
fn no_more_is_asked_for_than_the_disk_takes() {
    const LARGE: usize = 48 << 20;
    const WINDOW: usize = 64;
    /// Units of what may wait for the disk, and of one buffer.
    const QUEUED: usize = (8 << 20) / 8192 + 16;
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let (gate, bytes) = (Gate::at(Kind::Write, "f"), sample(LARGE));
    let (log, meddler) = logging();
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &bytes);
    let small = publisher.publish("small", 1000, &sample(SIZE));
    let config = ClientConfig { window_max: WINDOW, ..trusting(&publisher) };
    let (_server, session) = meddled_session_at(&gate, publisher, config, meddler);
    let file = session.open(&small).expect("it is there");
    std::thread::scope(|scope| {
        let download = scope.spawn(|| session.download(&name, &target, Default::default()));
        gate.wait();
        // Until nothing more is asked for, and for a while after.
        let (mut count, mut calm) = (0, 0);
        while calm < 20 {
            others_go_on(&session, &small, &file, &sample(SIZE));
            std::thread::sleep(Duration::from_millis(20));
            let now = content_count(&log);
            calm = if now == count { calm + 1 } else { 0 };
            count = now;
        }
        assert!(gate.was_shut(), "other calls waited for the disk");
        // The reads of others are among them.
        assert!(count <= QUEUED + 2 * WINDOW, "{count} segments with a disk that takes none");
        assert!(count > QUEUED / 2, "{count} segments are less than may wait");
        gate.open();
        let report = download.join().expect("no panic").expect("it arrives");
        assert_eq!(report.fetched_bytes, LARGE as u64);
    });
    assert!(std::fs::read(&target).expect("it is in place") == bytes);
}

#[test]
fn an_error_of_the_disk_is_the_answer_although_all_bytes_have_come() {
    for kind in [Kind::Open, Kind::Write, Kind::Resize, Kind::Sync, Kind::Name] {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("f");
        let gate = Gate::at(kind, "f");
        let mut publisher = Publisher::new("/lab", 1);
        let name = publisher.publish("f", 1000, &sample(SIZE));
        let config = trusting(&publisher);
        let (_server, session) = session_at(&gate, publisher, config);
        let options = DownloadOptions { sync: true, ..DownloadOptions::default() };
        let error = std::thread::scope(|scope| {
            let download = scope.spawn(|| session.download(&name, &target, options));
            gate.wait();
            gate.fail(io::ErrorKind::StorageFull);
            download.join().expect("no panic").expect_err("the disk is full")
        });
        let ClientError::LocalDisk { source, .. } = &error else { panic!("{kind:?}: {error}") };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull, "{kind:?}");
        assert!(!target.exists(), "{kind:?}");
        session.stat(&name).expect("other calls go on");
    }
}

#[test]
fn a_call_that_is_stopped_is_answered_when_its_file_is_free() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let gate = Gate::at(Kind::Write, "f");
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(SIZE));
    let config = trusting(&publisher);
    let (_server, session) = session_at(&gate, publisher, config);
    let stop = Stop::default();
    let stopped = std::thread::scope(|scope| {
        let call = session.download_later(&name, &target, Default::default());
        let call = call.watched_by(StopAtFirstBytes(stop.clone())).stopped_by(&stop);
        let call = scope.spawn(|| call.wait());
        gate.wait();
        session.stat(&name).expect("other calls go on");
        gate.open();
        call.join().expect("no panic")
    });
    assert!(matches!(stopped, Err(ClientError::Interrupted)), "{stopped:?}");
    assert!(!target.exists());
    let report = session.download(&name, &target, Default::default()).expect("it is free");
    assert!(report.reused_bytes > 0, "what had come was written: {report:?}");
}

#[test]
fn the_next_download_of_a_file_waits_for_one_that_was_dropped() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let gate = Gate::at(Kind::Write, "f");
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(SIZE));
    let config = trusting(&publisher);
    let (_server, session) = session_at(&gate, publisher, config);
    let mut dropped =
        Box::pin(session.download_later(&name, &target, Default::default()).watched_by(Silent));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(Future::poll(dropped.as_mut(), &mut context).is_pending());
    gate.wait();
    drop(dropped);
    std::thread::scope(|scope| {
        let next = scope.spawn(|| session.download(&name, &target, Default::default()));
        session.stat(&name).expect("other calls go on");
        gate.open();
        next.join().expect("no panic").expect("the file is not busy");
    });
    assert!(std::fs::read(&target).expect("it is in place") == sample(SIZE));
}

#[test]
fn a_session_that_is_dropped_leaves_its_file_free() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let gate = Gate::at(Kind::Write, "f");
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(SIZE));
    let config = trusting(&publisher);
    let (server, session) = session_at(&gate, publisher, config.clone());
    let mut dropped = Box::pin(session.download_later(&name, &target, Default::default()));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(Future::poll(dropped.as_mut(), &mut context).is_pending());
    gate.wait();
    drop((dropped, session));
    // The connection ends with the engine, which does not wait for the disk.
    while !server.is_finished() && gate.was_shut() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(gate.was_shut(), "the engine waited for the disk");
    gate.open();
    let mut publisher = Publisher::new("/lab", 1);
    publisher.publish("f", 1000, &sample(SIZE));
    let (_server, connection) = Server::start(publisher, Box::new(|_, reply| reply));
    let mut client = Client::with_connection(connection, config).expect("a client");
    let report = loop {
        match client.download(&name, &target, Default::default(), &mut Silent) {
            Err(ClientError::Busy { .. }) => std::thread::sleep(Duration::from_millis(5)),
            report => break report.expect("it arrives"),
        }
    };
    // Where all had come before the session was dropped, the disk's thread has ended the file.
    let is_whole = matches!(report.outcome, FileOutcome::Identical);
    assert!(is_whole || report.reused_bytes > 0, "{report:?}");
    assert!(std::fs::read(&target).expect("it is in place") == sample(SIZE));
}
