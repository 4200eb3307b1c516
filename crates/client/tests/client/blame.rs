//! What is found out to be bad is held against the source that sent it.

use std::sync::{Arc, Mutex};

use byname_client::{Client, ClientConfig, DownloadOptions, Event, Progress};
use byname_io::Endpoint;
use byname_transfer::naming::{self, Part, Request};

use super::publisher::{Publisher, Reply, flip_content_bit, sample};
use super::server::{Meddler, Server, trusting};

/// The endpoints of what was refused.
#[derive(Default)]
struct Refused(Vec<String>);

impl Progress for Refused {
    fn on_event(&mut self, event: Event<'_>) {
        if let Event::Refused { endpoint, .. } = event {
            self.0.push(endpoint.unwrap_or("nobody").to_owned());
        }
    }
}

/// Alters content and keeps back the tree that would show it.
fn liar() -> Meddler {
    Box::new(|interest, reply| {
        let request = naming::parse(interest.name).map(|parsed| parsed.request);
        match (request, reply) {
            (Some(Request::Segment { part: Part::Tree(_), .. }), _) => Reply::Silence,
            (Some(Request::Segment { part: Part::Content, .. }), Reply::Data(mut wire)) => {
                flip_content_bit(&mut wire, 7);
                Reply::Data(wire)
            }
            (_, reply) => reply,
        }
    })
}

#[test]
fn the_next_source_is_not_left_for_what_the_one_before_had_sent() {
    let mut publisher = Publisher::new("/lab", 1);
    let bytes = sample(3_000_000);
    let name = publisher.publish("f", 1000, &bytes);
    let config = ClientConfig { asks_all: true, ..trusting(&publisher) };
    let publisher = Arc::new(Mutex::new(publisher));
    let directory = tempfile::tempdir().expect("a directory");
    let endpoints =
        ["liar", "honest", "other"].map(|name| Endpoint::Unix(directory.path().join(name)));
    // Ends before anybody can know what it sent.
    let lying = Server::listen_meddling(&endpoints[0], Arc::clone(&publisher), Some(20), liar());
    Server::listen_often(&endpoints[1], &publisher);
    Server::listen_often(&endpoints[2], &publisher);
    let mut client = Client::connect(&endpoints, config).expect("they listen");
    let (target, mut refused) = (directory.path().join("target"), Refused::default());
    let options = DownloadOptions::default();
    client.download(&name, &target, options, &mut refused).expect("it arrives");
    lying.join().expect("no panic");
    assert!(std::fs::read(&target).expect("it is in place") == bytes);
    assert!(refused.0.len() > 3, "enough to be left for: {:?}", refused.0);
    let [liar, honest, _] = endpoints.map(|endpoint| endpoint.to_string());
    assert!(refused.0.iter().all(|endpoint| *endpoint == liar), "{:?}", refused.0);
    assert_eq!(client.endpoint(), honest, "it did nothing wrong");
}
