//! Interruptions, changes and disks that do not take what is written.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use byname_client::{
    Client, ClientConfig, ClientError, DownloadOptions, FileOutcome, FileReport, NoProgress, Stop,
};
use byname_packet::Name;
use byname_packet::lp::nack_reason;
use byname_transfer::error::ReadError;

use super::publisher::{Publisher, Reply, sample};
use super::server::{Server, trusting};

const SIZE: usize = 6_000_000;

fn download(client: &mut Client, name: &Name, target: &Path) -> Result<FileReport, ClientError> {
    client.download(name, target, DownloadOptions::default(), &mut NoProgress)
}

fn with_file(bytes: &[u8]) -> (Publisher, Name) {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, bytes);
    (publisher, name)
}

/// A client that is stopped after so many replies.
fn stopped_after(replies: u64, bytes: &[u8]) -> (Server, Client, Name) {
    let (publisher, name) = with_file(bytes);
    let stop = Stop::default();
    let config = ClientConfig { stop: stop.clone(), ..trusting(&publisher) };
    let mut left = replies;
    let (server, connection) = Server::start(
        publisher,
        Box::new(move |_, reply| {
            left = left.saturating_sub(1);
            if left == 0 {
                stop.request();
                return Reply::Silence;
            }
            reply
        }),
    );
    (server, Client::with_connection(connection, config).expect("a client"), name)
}

#[test]
fn runs_that_are_interrupted_anywhere_add_up_to_the_whole_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let bytes = sample(SIZE);
    for replies in [1, 2, 3, 170, 170, 170, 170] {
        let (_server, mut client, name) = stopped_after(replies, &bytes);
        let error = download(&mut client, &name, &target).expect_err("it is stopped");
        assert!(matches!(error, ClientError::Interrupted), "{error}");
        assert!(!target.exists());
    }
    let (publisher, name) = with_file(&bytes);
    let (_server, mut client) = Server::honest(publisher);
    let report = download(&mut client, &name, &target).expect("it arrives");
    assert!(std::fs::read(&target).expect("the file") == bytes);
    // More than any of them can have had; what was answered last is lost with each.
    assert!(report.reused_bytes > 170 * 8192, "{report:?}");
    assert_eq!(report.reused_bytes + report.fetched_bytes, SIZE as u64);
}

#[test]
fn whatever_an_earlier_run_left_does_no_harm() {
    let bytes = sample(SIZE);
    let mangled = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut part = bytes.clone();
        change(&mut part);
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("f");
        std::fs::write(directory.path().join(".f.byname-part"), &part).expect("disk");
        let (publisher, name) = with_file(&bytes);
        let (_server, mut client) = Server::honest(publisher);
        let report = download(&mut client, &name, &target).expect("it arrives");
        assert!(std::fs::read(&target).expect("the file") == bytes);
        assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 1);
        report.fetched_bytes
    };
    assert_eq!(mangled(&|_| {}), 0, "a whole one is not fetched again");
    assert_eq!(mangled(&|part| part[3_000_000] ^= 1), 8192);
    assert_eq!(mangled(&|part| part.truncate(part.len() - 1)), (SIZE % 8192) as u64);
    assert_eq!(mangled(&|part| part.extend_from_slice(b"more")), 0);
    assert_eq!(mangled(&|part| part.fill(0)), SIZE as u64);
    assert_eq!(mangled(&Vec::clear), SIZE as u64);
}

#[test]
fn a_silent_server_ends_the_run_and_the_next_one_goes_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let bytes = sample(SIZE);
    let (publisher, name) = with_file(&bytes);
    let config =
        ClientConfig { timeout: std::time::Duration::from_millis(700), ..trusting(&publisher) };
    let mut replies = 0;
    let (_server, connection) = Server::start(
        publisher,
        Box::new(move |_, reply| {
            replies += 1;
            if replies > 200 { Reply::Silence } else { reply }
        }),
    );
    let mut client = Client::with_connection(connection, config).expect("a client");
    let error = download(&mut client, &name, &target).expect_err("it is silent");
    assert!(matches!(error, ClientError::Read(ReadError::TimeOut { .. })), "{error}");
    let (publisher, name) = with_file(&bytes);
    let (_server, mut client) = Server::honest(publisher);
    let report = download(&mut client, &name, &target).expect("it arrives");
    assert!(report.reused_bytes > 100 * 8192);
    assert!(std::fs::read(&target).expect("the file") == bytes);
}

#[test]
fn loss_duplicates_and_congestion_do_not_matter() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let bytes = sample(SIZE);
    let (publisher, name) = with_file(&bytes);
    let mut number = 0u64;
    let (_server, mut client) = Server::meddled(
        publisher,
        Box::new(move |_, reply| {
            number += 1;
            match number * 7919 % 40 {
                0 => Reply::Silence,
                1 => Reply::Nack(nack_reason::CONGESTION),
                2 => Reply::Nack(nack_reason::DUPLICATE),
                _ => reply,
            }
        }),
    );
    download(&mut client, &name, &target).expect("it arrives");
    assert!(std::fs::read(&target).expect("the file") == bytes);
}

/// Publishes a new version whenever `due` says so, told by the number of the reply.
fn changing(due: fn(u64) -> bool) -> (Server, Client, Name, Arc<AtomicU64>) {
    let (publisher, name) = with_file(&sample(SIZE));
    let config = trusting(&publisher);
    let shared: Arc<Mutex<Option<Arc<Mutex<Publisher>>>>> = Arc::default();
    let version = Arc::new(AtomicU64::new(1000));
    let (mut number, handle, newest) = (0, Arc::clone(&shared), Arc::clone(&version));
    let (server, connection) = Server::start(
        publisher,
        Box::new(move |_, reply| {
            number += 1;
            if due(number) {
                let version = newest.fetch_add(1, Ordering::Relaxed) + 1;
                let handle = handle.lock().expect("no panic");
                let publisher = handle.as_ref().expect("it is set before the first request");
                let mut bytes = sample(SIZE);
                bytes[..8].copy_from_slice(&version.to_be_bytes());
                publisher.lock().expect("no panic").publish("f", version, &bytes);
            }
            reply
        }),
    );
    *shared.lock().expect("no panic") = Some(Arc::clone(&server.publisher));
    (server, Client::with_connection(connection, config).expect("a client"), name, version)
}

#[test]
fn a_version_that_changes_meanwhile_starts_over_and_never_mixes() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let (_server, mut client, name, version) = changing(|number| number == 300);
    let report = download(&mut client, &name, &target).expect("it arrives");
    let mut expected = sample(SIZE);
    expected[..8].copy_from_slice(&version.load(Ordering::Relaxed).to_be_bytes());
    assert_eq!(report.version, 1001);
    assert!(std::fs::read(&target).expect("the file") == expected);
    assert!(report.reused_bytes > 0, "what is the same in both versions is kept");
}

#[test]
fn a_file_that_keeps_changing_is_given_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let (_server, mut client, name, _) = changing(|number| number % 4 == 0);
    let error = download(&mut client, &name, &target).expect_err("it never holds still");
    assert!(matches!(error, ClientError::KeepsChanging { .. }), "{error}");
    assert!(!target.exists());
}

#[test]
fn two_runs_at_once_do_not_write_the_same_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let part = std::fs::File::create(directory.path().join(".f.byname-part")).expect("disk");
    rustix::fs::flock(&part, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
    let (publisher, name) = with_file(&sample(SIZE));
    let (_server, mut client) = Server::honest(publisher);
    let error = download(&mut client, &name, &target).expect_err("it is locked");
    assert!(matches!(error, ClientError::Busy { .. }), "{error}");
    drop(part);
    download(&mut client, &name, &target).expect("it is free");
}

#[test]
fn a_full_disk_is_told_and_leaves_no_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
        .arg(directory.path())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        // Past the runner's capture, so that `make test` counts it.
        let _ = writeln!(std::io::stderr(), "SKIPPED: mounting a small tmpfs needs root");
        return;
    }
    let target = directory.path().join("f");
    let (publisher, name) = with_file(&sample(SIZE));
    let (_server, mut client) = Server::honest(publisher);
    let result = download(&mut client, &name, &target);
    let is_there = target.exists();
    let unmounted = std::process::Command::new("umount").arg(directory.path()).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    let error = result.expect_err("it does not fit");
    let ClientError::LocalDisk { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    assert!(!is_there);
}

#[test]
fn an_identical_target_is_not_fetched_and_a_different_one_is_replaced() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let bytes = sample(SIZE);
    std::fs::write(&target, &bytes).expect("disk");
    let (publisher, name) = with_file(&bytes);
    let (_server, mut client) = Server::honest(publisher);
    let report = download(&mut client, &name, &target).expect("it is there");
    assert_eq!((report.outcome, report.fetched_bytes), (FileOutcome::Identical, 0));
    let mut changed = bytes.clone();
    changed[4_000_000] ^= 1;
    std::fs::write(&target, &changed).expect("disk");
    let keep = DownloadOptions { no_clobber: true, ..DownloadOptions::default() };
    let report = client.download(&name, &target, keep, &mut NoProgress).expect("it is kept");
    assert_eq!(report.outcome, FileOutcome::Kept);
    assert!(std::fs::read(&target).expect("the file") == changed);
    let sync = DownloadOptions { sync: true, ..DownloadOptions::default() };
    let report = client.download(&name, &target, sync, &mut NoProgress).expect("it arrives");
    assert_eq!(report.outcome, FileOutcome::Fetched);
    assert!(std::fs::read(&target).expect("the file") == bytes);
}

#[test]
fn a_link_at_the_target_is_replaced_and_not_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (elsewhere, target) = (directory.path().join("elsewhere"), directory.path().join("f"));
    std::fs::write(&elsewhere, b"precious").expect("disk");
    std::os::unix::fs::symlink(&elsewhere, &target).expect("disk");
    let (publisher, name) = with_file(b"new");
    let (_server, mut client) = Server::honest(publisher);
    download(&mut client, &name, &target).expect("it arrives");
    assert_eq!(std::fs::read(&elsewhere).expect("the file"), b"precious");
    assert_eq!(std::fs::read(&target).expect("the file"), b"new");
    let part = directory.path().join(".g.byname-part");
    std::os::unix::fs::symlink(&elsewhere, &part).expect("disk");
    let error = download(&mut client, &name, &directory.path().join("g")).expect_err("a link");
    assert!(matches!(error, ClientError::InTheWay { .. }), "{error}");
    assert_eq!(std::fs::read(&elsewhere).expect("the file"), b"precious");
}

#[test]
fn what_the_local_disk_refuses_is_told_with_the_path() {
    let directory = tempfile::tempdir().expect("a directory");
    let (publisher, name) = with_file(b"content");
    let (_server, mut client) = Server::honest(publisher);
    let missing = directory.path().join("no/such/f");
    let error = download(&mut client, &name, &missing).expect_err("no directory");
    assert!(error.to_string().contains("no/such"), "{error}");
    let long = directory.path().join("n".repeat(256));
    let error = download(&mut client, &name, &long).expect_err("too long");
    assert!(matches!(error, ClientError::LocalDisk { .. }), "{error}");
    let longest = directory.path().join("n".repeat(255));
    download(&mut client, &name, &longest).expect("just short enough");
    let directory_there = directory.path().join("d");
    std::fs::create_dir(&directory_there).expect("disk");
    let error = download(&mut client, &name, &directory_there).expect_err("a directory");
    assert!(matches!(error, ClientError::InTheWay { .. }), "{error}");
}

#[test]
fn a_new_version_is_found_even_if_refusals_are_swallowed() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let (publisher, name) = with_file(&sample(SIZE));
    let config =
        ClientConfig { timeout: std::time::Duration::from_secs(1), ..trusting(&publisher) };
    let shared: Arc<Mutex<Option<Arc<Mutex<Publisher>>>>> = Arc::default();
    let (mut number, handle) = (0, Arc::clone(&shared));
    let (server, connection) = Server::start(
        publisher,
        Box::new(move |_, reply| {
            number += 1;
            if number == 200 {
                let handle = handle.lock().expect("no panic");
                let publisher = handle.as_ref().expect("it is set before the first request");
                publisher.lock().expect("no panic").publish("f", 2000, b"short and new");
            }
            if matches!(reply, Reply::Nack(_)) { Reply::Silence } else { reply }
        }),
    );
    *shared.lock().expect("no panic") = Some(Arc::clone(&server.publisher));
    let mut client = Client::with_connection(connection, config).expect("a client");
    let report = download(&mut client, &name, &target).expect("it arrives");
    assert_eq!(report.version, 2000);
    assert_eq!(std::fs::read(&target).expect("the file"), b"short and new");
}

#[test]
fn a_forwarder_that_restarts_in_mid_transfer_loses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let endpoint: byname_io::Endpoint =
        format!("unix://{}", directory.path().join("s").display()).parse().expect("an endpoint");
    let bytes = sample(SIZE);
    let (publisher, name) = with_file(&bytes);
    let config = trusting(&publisher);
    let publisher = Arc::new(Mutex::new(publisher));
    let first = Server::listen(&endpoint, Arc::clone(&publisher), Some(250));
    let mut client = Client::connect(std::slice::from_ref(&endpoint), config).expect("a client");
    let again = std::thread::spawn(move || {
        first.join().expect("no panic");
        std::thread::sleep(std::time::Duration::from_millis(300));
        Server::listen(&endpoint, publisher, None)
    });
    let report = download(&mut client, &name, &target).expect("it arrives");
    assert_eq!((report.fetched_bytes, report.reused_bytes), (SIZE as u64, 0));
    assert!(std::fs::read(&target).expect("the file") == bytes);
    drop(client);
    again.join().expect("no panic").join().expect("no panic");
}
