//! Files as named objects: the file-server engine and the client engine. Sans-I/O.

pub mod attributes;
mod authenticate;
pub mod checksums;
pub mod congestion;
pub mod copies;
pub mod delegations;
pub mod discovery;
pub mod error;
pub mod fetch;
pub mod flow;
pub mod freshness;
pub mod listing;
pub mod manifest;
pub mod media_type;
pub mod metadata;
pub mod naming;
pub mod numbers;
mod pacing;
pub mod reader;
pub mod request;
mod rounds;
pub mod rtt;
pub mod server;
pub mod sharing;
pub mod verify;
pub mod versions;
