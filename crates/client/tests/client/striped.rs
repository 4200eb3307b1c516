//! A large file from several sources of which one is slow.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use byname_client::{Client, ClientConfig, DownloadOptions, NoProgress};
use byname_io::Endpoint;

use super::publisher::{Publisher, sample};
use super::server::{Server, trusting};

const MIB: u64 = 1 << 20;
const SIZE: u64 = 24 * MIB;

#[test]
fn a_slow_source_brings_what_it_can_and_does_not_hold_the_end() {
    let mut publisher = Publisher::new("/lab", 1);
    let bytes = sample(SIZE as usize);
    let name = publisher.publish("f", 1000, &bytes);
    let config = ClientConfig { asks_all: true, ..trusting(&publisher) };
    let publisher = Arc::new(Mutex::new(publisher));
    let directory = tempfile::tempdir().expect("a directory");
    let endpoints = ["fast", "slow"].map(|name| Endpoint::Unix(directory.path().join(name)));
    Server::listen_often(&endpoints[0], &publisher);
    // About 0.8 MB/s: a piece of 8 MiB would take 10 s.
    Server::listen_slowly(&endpoints[1], &publisher, Duration::from_millis(10));
    let mut client = Client::connect(&endpoints, config).expect("they listen");
    let target = directory.path().join("target");
    let options = DownloadOptions::default();
    let report = client.download(&name, &target, options, &mut NoProgress).expect("it arrives");
    assert!(std::fs::read(&target).expect("it is in place") == bytes);
    assert_eq!((report.fetched_bytes, report.reused_bytes), (SIZE, 0));
    let of = |endpoint: &Endpoint| {
        let endpoint = endpoint.to_string();
        let source = report.sources.iter().find(|source| source.endpoint == endpoint);
        source.expect("it was asked").bytes
    };
    let (fast, slow) = (of(&endpoints[0]), of(&endpoints[1]));
    assert_eq!(fast + slow, SIZE, "every byte counts once");
    // What it had in hand was taken over.
    assert!(slow < 4 * MIB, "{:?}", report.sources);
}
