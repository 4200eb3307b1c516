//! Publishers that know nothing of roots: each packet proves itself, or nobody asks.

use std::path::Path;

use byname_client::{Client, ClientConfig, ClientError, DownloadOptions, NoProgress};
use byname_packet::Name;
use byname_security::trust::{TrustError, UnknownKeys};
use byname_transfer::error::ReadError;

use super::publisher::{Publisher, sample};
use super::server::{Server, trusting};

const SIZE: usize = 3_000_001;

fn foreign(signs_segments: bool, segment_bytes: usize) -> (Publisher, Name) {
    let mut publisher = Publisher::new("/lab", 1);
    publisher.is_foreign = true;
    publisher.signs_segments = signs_segments;
    let name = publisher.publish("f", 1000, &sample(SIZE));
    publisher.object_mut(&name).segment_bytes = segment_bytes;
    (publisher, name)
}

fn download(client: &mut Client, name: &Name, target: &Path) -> Result<u64, ClientError> {
    let options = DownloadOptions::default();
    client.download(name, target, options, &mut NoProgress).map(|report| report.size)
}

#[test]
fn signed_packets_are_read_without_a_root() {
    let directory = tempfile::tempdir().expect("a directory");
    for segment_bytes in [8000, 1300] {
        let target = directory.path().join(segment_bytes.to_string());
        let (publisher, name) = foreign(true, segment_bytes);
        let (_server, mut client) = Server::honest(publisher);
        assert_eq!(download(&mut client, &name, &target).expect("it arrives"), SIZE as u64);
        assert!(std::fs::read(target).expect("the file") == sample(SIZE));
    }
}

#[test]
fn unsigned_packets_need_the_flag_that_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let (publisher, name) = foreign(false, 8000);
    let (_server, mut client) = Server::honest(publisher);
    let error = download(&mut client, &name, &target).expect_err("nobody signed it");
    assert!(
        matches!(error, ClientError::Read(ReadError::Trust(TrustError::Unsigned { .. }))),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 0);
    let (publisher, name) = foreign(false, 8000);
    let mut config = ClientConfig::default();
    config.trust.unknown_keys = UnknownKeys::Insecure;
    let (_server, connection) = Server::start(publisher, Box::new(|_, reply| reply));
    let mut client = Client::with_connection(connection, config).expect("a client");
    download(&mut client, &name, &target).expect("the user wants it all the same");
    assert!(std::fs::read(target).expect("the file") == sample(SIZE));
}

#[test]
fn a_forged_packet_among_signed_ones_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let (publisher, name) = foreign(true, 8000);
    let (mut impostor, _) = foreign(true, 8000);
    impostor.signer = Publisher::new("/lab", 2).signer;
    let config = trusting(&publisher);
    let (_server, connection) = Server::start(
        publisher,
        Box::new(move |interest, reply| {
            let segment = interest.name.last().and_then(|last| last.segment());
            if segment == Some(200) { impostor.answer(interest) } else { reply }
        }),
    );
    let mut client = Client::with_connection(connection, config).expect("a client");
    let error = download(&mut client, &name, &target).expect_err("it is forged");
    assert!(matches!(error, ClientError::Read(ReadError::Trust(_))), "{error}");
    assert!(!target.exists());
}
