//! Refusals, waits, and the error for each failure.

use std::time::Duration;

use byname_client::{Client, ClientConfig, ClientError, DownloadOptions, NoProgress};
use byname_packet::lp::nack_reason;
use byname_packet::{Interest, Name};
use byname_security::trust::{TrustError, UnknownKeys};
use byname_transfer::error::{ErrorClass, ReadError};
use byname_transfer::metadata::{Absence, ContentRoot};
use byname_transfer::naming::{self, Part, Request};

use super::publisher::{Publisher, Reply, flip_content_bit, sample};
use super::server::{Meddler, Server, trusting};

const SIZE: usize = 3_000_000;

fn request_of(interest: &Interest<'_>) -> Option<Request> {
    naming::parse(interest.name).map(|parsed| parsed.request)
}

fn is_segment(interest: &Interest<'_>, wanted: Part) -> bool {
    matches!(request_of(interest), Some(Request::Segment { part, .. }) if part == wanted)
}

fn is_metadata(interest: &Interest<'_>) -> bool {
    matches!(request_of(interest), Some(Request::Metadata { .. }))
}

/// Downloads `/lab/f` and expects a failure that leaves nothing that looks like a file.
fn refused(client: &mut Client, name: &Name) -> ClientError {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let result = client.download(name, &target, DownloadOptions::default(), &mut NoProgress);
    assert!(!target.exists(), "nothing that looks whole is left");
    result.expect_err("it must be refused")
}

fn with_file() -> (Publisher, Name) {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(SIZE));
    (publisher, name)
}

fn meddled(meddler: Meddler) -> ClientError {
    let (publisher, name) = with_file();
    let (_server, mut client) = Server::meddled(publisher, meddler);
    refused(&mut client, &name)
}

/// Flips a bit in every reply that `is_victim` picks.
fn flipping(is_victim: fn(&Interest<'_>) -> bool, at: usize) -> Meddler {
    Box::new(move |interest, reply| match reply {
        Reply::Data(mut wire) if is_victim(interest) => {
            flip_content_bit(&mut wire, at);
            Reply::Data(wire)
        }
        other => other,
    })
}

#[test]
fn one_flipped_bit_in_the_data_is_refused() {
    let error = meddled(flipping(
        |interest| {
            let is_content = is_segment(interest, Part::Content);
            is_content && interest.name.last().and_then(|it| it.segment()) == Some(300)
        },
        5000,
    ));
    assert!(matches!(error, ClientError::Read(ReadError::BadUnit { unit: 300, .. })), "{error}");
    assert_eq!(error.class(), ErrorClass::Corrupt);
}

#[test]
fn one_flipped_bit_in_a_tree_node_is_refused() {
    let error = meddled(flipping(|interest| is_segment(interest, Part::Tree(1)), 77));
    assert!(matches!(error, ClientError::Read(ReadError::BadNode { level: 1, .. })), "{error}");
}

#[test]
fn any_flipped_bit_in_the_description_is_refused() {
    for at in (0..110).step_by(13) {
        let error = meddled(flipping(is_metadata, at));
        assert!(
            matches!(error, ClientError::Read(ReadError::Trust(TrustError::BadSignature { .. }))),
            "{at}: {error}"
        );
    }
}

#[test]
fn any_flipped_bit_in_a_certificate_is_refused() {
    let error = meddled(flipping(|interest| request_of(interest).is_none(), 40));
    assert!(matches!(error, ClientError::Read(ReadError::Trust(_))), "{error}");
}

#[test]
fn a_flipped_bit_in_a_listing_is_refused() {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish_listing("d", 1000, &[b"a", b"b/", b"c"]);
    let meddler = flipping(|interest| is_segment(interest, Part::Content), 2);
    let (_server, mut client) = Server::meddled(publisher, meddler);
    let error = client.list(&name).expect_err("it must be refused");
    assert!(matches!(error, ClientError::Read(ReadError::BadUnit { unit: 0, .. })), "{error}");
}

#[test]
fn a_bit_that_flips_once_is_repaired_by_asking_again() {
    let (publisher, name) = with_file();
    let mut flips = 0;
    let (_server, mut client) = Server::meddled(
        publisher,
        Box::new(move |interest, reply| match reply {
            Reply::Data(mut wire) if flips < 2 && request_of(interest).is_some() => {
                if !is_metadata(interest) {
                    flips += 1;
                    flip_content_bit(&mut wire, 9);
                }
                Reply::Data(wire)
            }
            other => other,
        }),
    );
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let options = DownloadOptions::default();
    client.download(&name, &target, options, &mut NoProgress).expect("it is repaired");
    assert!(std::fs::read(target).expect("the file") == sample(SIZE));
}

#[test]
fn an_unknown_key_is_refused_and_named() {
    let (publisher, name) = with_file();
    let key = publisher.key_id();
    let (_server, connection) = Server::start(publisher, Box::new(|_, reply| reply));
    let mut client =
        Client::with_connection(connection, ClientConfig::default()).expect("a client");
    let error = refused(&mut client, &name);
    let ClientError::Read(ReadError::Trust(TrustError::UnknownKey { key_id, .. })) = &error else {
        panic!("{error}");
    };
    assert_eq!(*key_id, key);
    assert!(error.to_string().contains(&key.to_string()));
}

#[test]
fn another_key_than_the_trusted_one_is_refused() {
    let (impostor, name) = with_file();
    let config = trusting(&Publisher::new("/lab", 2));
    let (_server, connection) = Server::start(impostor, Box::new(|_, reply| reply));
    let mut client = Client::with_connection(connection, config).expect("a client");
    let error = refused(&mut client, &name);
    assert!(
        matches!(error, ClientError::Read(ReadError::Trust(TrustError::KeyMismatch { .. }))),
        "{error}"
    );
}

#[test]
fn insecure_reads_what_an_unknown_key_signed_but_still_checks_the_root() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = ClientConfig::default();
    config.trust.unknown_keys = UnknownKeys::Insecure;
    let (publisher, name) = with_file();
    let (_server, connection) = Server::start(publisher, Box::new(|_, reply| reply));
    let mut client = Client::with_connection(connection, config.clone()).expect("a client");
    let target = directory.path().join("f");
    client
        .download(&name, &target, DownloadOptions::default(), &mut NoProgress)
        .expect("it is read");
    let (publisher, name) = with_file();
    let meddler = flipping(|interest| is_segment(interest, Part::Content), 1);
    let (_server, connection) = Server::start(publisher, meddler);
    let mut client = Client::with_connection(connection, config).expect("a client");
    let error = refused(&mut client, &name);
    assert!(matches!(error, ClientError::Read(ReadError::BadUnit { .. })), "{error}");
}

#[test]
fn a_description_of_another_name_is_refused() {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(100));
    let other = publisher.publish("g", 1000, &sample(100));
    let metadata = publisher.metadata(other.view(), &publisher.objects[&other]);
    let signer = publisher.signer.clone();
    let (_server, mut client) = Server::meddled(
        publisher,
        Box::new(move |interest, reply| {
            if !is_metadata(interest) {
                return reply;
            }
            // Signed by the right key under the right name, but about another file.
            let name = interest.name.to_name().with_version(1).with_segment(0);
            let (mut content, mut wire) = (Vec::new(), Vec::new());
            metadata.encode(&mut content);
            byname_packet::DataBuilder::new(name.view())
                .encode(&content, &signer, &mut wire)
                .expect("it can be signed");
            Reply::Data(wire)
        }),
    );
    let error = refused(&mut client, &name);
    assert!(matches!(error, ClientError::Read(ReadError::Protocol { .. })), "{error}");
}

#[test]
fn an_older_version_than_one_seen_is_refused() {
    let (publisher, name) = with_file();
    let (server, mut client) = Server::honest(publisher);
    assert_eq!(client.stat(&name).expect("it is there").version, 1000);
    server.publisher.lock().expect("no panic").object_mut(&name).version = 999;
    let error = refused(&mut client, &name);
    assert!(
        matches!(error, ClientError::Read(ReadError::RolledBack { seen: 1000, got: 999, .. })),
        "{error}"
    );
    assert!(client.versions_mut().reset(&name));
    assert_eq!(client.stat(&name).expect("the user said so").version, 999);
}

#[test]
fn absences_are_told_apart() {
    let (mut publisher, name) = with_file();
    let missing = publisher.name("missing");
    publisher.object_mut(&name).absence = Some(Absence::NoPermission);
    let (_server, mut client) = Server::honest(publisher);
    let error = refused(&mut client, &missing);
    assert!(matches!(error, ClientError::Read(ReadError::NotFound { .. })), "{error}");
    let error = refused(&mut client, &name);
    assert!(matches!(error, ClientError::Read(ReadError::NoPermission { .. })), "{error}");
}

#[test]
fn a_forged_absence_is_refused() {
    let (publisher, name) = with_file();
    let impostor = Publisher::new("/lab", 2);
    let (_server, mut client) = Server::meddled(
        publisher,
        Box::new(
            move |interest, reply| {
                if is_metadata(interest) { impostor.answer(interest) } else { reply }
            },
        ),
    );
    let error = refused(&mut client, &name);
    assert!(matches!(error, ClientError::Read(ReadError::Trust(_))), "{error}");
}

#[test]
fn no_route_and_silence_are_told_apart() {
    let error = meddled(Box::new(|_, _| Reply::Nack(nack_reason::NO_ROUTE)));
    assert!(matches!(error, ClientError::Read(ReadError::NoRoute { .. })), "{error}");
    let error = meddled(Box::new(|_, _| Reply::Silence));
    assert!(matches!(error, ClientError::Read(ReadError::TimeOut { .. })), "{error}");
    let error =
        meddled(Box::new(
            |interest, reply| {
                if request_of(interest).is_none() { Reply::Silence } else { reply }
            },
        ));
    assert!(
        matches!(error, ClientError::Read(ReadError::Trust(TrustError::NoCertificate { .. }))),
        "{error}"
    );
}

#[test]
fn being_written_and_root_pending_are_waited_for() {
    let (mut publisher, name) = with_file();
    let object = publisher.object_mut(&name);
    let root = std::mem::replace(&mut object.root, ContentRoot::Pending);
    object.absence = Some(Absence::BeingWritten { retry_ms: 10 });
    let (server, mut client) = Server::honest(publisher);
    let publisher = server.publisher.clone();
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(120));
        publisher.lock().expect("no panic").object_mut(&name).absence = None;
        std::thread::sleep(Duration::from_millis(120));
        publisher.lock().expect("no panic").object_mut(&name).root = root;
        name
    });
    let name = Name::from_path("/lab/f").expect("a name");
    let discovered = client.lookup(&name).expect("it is there in the end");
    assert_eq!(discovered.metadata.root, root);
    assert_eq!(writer.join().expect("no panic"), name);
}

#[test]
fn a_file_that_is_written_for_too_long_has_its_own_error() {
    let (mut publisher, name) = with_file();
    publisher.object_mut(&name).absence = Some(Absence::BeingWritten { retry_ms: 10 });
    let mut config = trusting(&publisher);
    config.no_progress = Duration::from_millis(300);
    let (_server, connection) = Server::start(publisher, Box::new(|_, reply| reply));
    let mut client = Client::with_connection(connection, config).expect("a client");
    let error = refused(&mut client, &name);
    assert!(matches!(error, ClientError::Read(ReadError::BeingWritten { .. })), "{error}");
}

#[test]
fn a_transfer_slower_than_asked_for_ends() {
    for (min_bytes_per_second, ends) in [(0, false), (1 << 30, true)] {
        let mut publisher = Publisher::new("/lab", 1);
        let name = publisher.publish("f", 1000, &sample(800_000));
        let mut config = trusting(&publisher);
        config.no_progress = Duration::from_millis(200);
        config.bytes_per_second = Some(1 << 20);
        config.min_bytes_per_second = min_bytes_per_second;
        let (_server, connection) = Server::start(publisher, Box::new(|_, reply| reply));
        let mut client = Client::with_connection(connection, config).expect("a client");
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("f");
        let options = DownloadOptions::default();
        let result = client.download(&name, &target, options, &mut NoProgress);
        assert_eq!(matches!(result, Err(ClientError::NoProgress { .. })), ends);
        assert_eq!(target.exists(), !ends);
    }
}

#[test]
fn no_forwarder_is_an_error_that_says_where_it_was_looked_for() {
    let endpoint = "unix:///nowhere/byname-test.sock".parse().expect("an endpoint");
    let error = Client::connect(&[endpoint], ClientConfig::default()).err().expect("nobody there");
    assert!(error.to_string().contains("unix:///nowhere/byname-test.sock"), "{error}");
    let error = Client::connect(&[], ClientConfig::default()).err().expect("nowhere to go");
    assert!(matches!(error, ClientError::NoEndpoint));
}

#[test]
fn a_connection_that_closes_is_an_error() {
    let (publisher, name) = with_file();
    let config = trusting(&publisher);
    let (near, far) = byname_io::Connection::pair().expect("a pair");
    let mut client = Client::with_connection(near, config).expect("a client");
    drop(far);
    let error = refused(&mut client, &name);
    assert!(matches!(error, ClientError::Disconnected { .. }), "{error}");
}

#[test]
fn a_directory_is_no_file_and_a_file_no_directory() {
    let (mut publisher, file) = with_file();
    let directory = publisher.publish_listing("d", 1000, &[b"f"]);
    let (_server, mut client) = Server::honest(publisher);
    let error = refused(&mut client, &directory);
    assert!(error.to_string().contains("it is a directory"), "{error}");
    let error = client.list(&file).expect_err("it is a file");
    assert!(error.to_string().contains("it is a file"), "{error}");
    assert!(client.open(&directory).is_err());
}
