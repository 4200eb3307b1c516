//! The file server as a reader sees it: packets over a socket pair, no forwarder in between.
#![allow(clippy::unwrap_used)]

/// A test of what every back-end must give, for each of them.
macro_rules! over_backends {
    ($test:ident) => {
        mod $test {
            use crate::client::World;

            #[test]
            fn in_a_directory() {
                super::$test(World::new());
            }

            #[test]
            fn in_memory() {
                super::$test(World::memory());
            }

            #[test]
            fn in_memory_that_has_to_be_waited_for() {
                super::$test(World::remote());
            }
        }
    };
}

#[path = "serving/attach.rs"]
mod attach;
#[path = "serving/attributes.rs"]
mod attributes;
#[path = "serving/backends.rs"]
mod backends;
#[path = "serving/changes.rs"]
mod changes;
#[path = "serving/checksums.rs"]
mod checksums;
#[path = "serving/client.rs"]
mod client;
#[path = "serving/cold.rs"]
mod cold;
#[path = "serving/direct.rs"]
mod direct;
#[path = "serving/exposure.rs"]
mod exposure;
#[path = "serving/files.rs"]
mod files;
#[path = "serving/listings.rs"]
mod listings;
#[path = "serving/manifests.rs"]
mod manifests;
#[path = "serving/mirrors.rs"]
mod mirrors;
#[path = "serving/one_file.rs"]
mod one_file;
#[path = "serving/pending.rs"]
mod pending;
#[path = "serving/requests.rs"]
mod requests;
#[path = "serving/state.rs"]
mod state;
#[path = "serving/watching.rs"]
mod watching;
#[path = "serving/workers.rs"]
mod workers;
