//! The file server as a reader sees it: packets over a socket pair, no forwarder in between.
#![allow(clippy::unwrap_used)]

#[path = "serving/attach.rs"]
mod attach;
#[path = "serving/attributes.rs"]
mod attributes;
#[path = "serving/changes.rs"]
mod changes;
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
#[path = "serving/pending.rs"]
mod pending;
#[path = "serving/requests.rs"]
mod requests;
#[path = "serving/state.rs"]
mod state;
#[path = "serving/workers.rs"]
mod workers;
