//! The client against a publisher on the other end of a socket pair.

#[path = "../../transfer/tests/support/publisher.rs"]
#[allow(dead_code, unreachable_pub)]
mod publisher;

#[path = "client/blame.rs"]
mod blame;
#[path = "client/contents.rs"]
mod contents;
#[path = "client/delta.rs"]
mod delta;
#[path = "client/download.rs"]
mod download;
#[path = "client/foreign.rs"]
mod foreign;
#[path = "client/refuse.rs"]
mod refuse;
#[path = "client/resume.rs"]
mod resume;
#[path = "client/server.rs"]
#[allow(dead_code)]
mod server;
#[path = "client/session.rs"]
mod session;
#[path = "client/site_cache.rs"]
mod site_cache;
#[path = "client/striped.rs"]
mod striped;
#[path = "client/tree.rs"]
mod tree;
