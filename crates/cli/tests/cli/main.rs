//! The binary as its users meet it: real processes, sockets, homes and files.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

mod acls;
mod auditing;
mod backups;
#[path = "../../../traffic/examples/faults/relay.rs"]
mod bad_network;
mod balancing;
mod broken_disks;
mod c_interface;
mod cache;
mod choosing;
#[allow(dead_code)]
#[path = "../../../postgres/tests/it/cluster.rs"]
mod cluster;
mod commanding;
mod comparing;
mod cuts;
mod damages;
mod databases;
mod dead_holder;
mod direct;
mod disks;
mod doors;
mod draining;
mod errors;
mod fair_shares;
mod faults;
mod first_contact;
#[path = "../../../profile/examples/five_lines.rs"]
mod five_lines;
#[path = "../../../traffic/examples/metadata_flood/flood.rs"]
mod flood;
mod floods;
mod forwarding;
mod growing;
mod harness;
mod head_outages;
mod histories;
mod idle;
mod joining;
mod keys;
mod killed;
mod leases;
mod library;
mod links;
mod loans;
mod manifests;
mod measuring;
mod mirrors;
mod outages;
mod packets;
mod pausing;
mod pending;
mod policies;
mod proving;
#[allow(dead_code, unreachable_pub)]
#[path = "../../../transfer/tests/support/publisher.rs"]
mod publisher;
#[allow(dead_code)]
#[path = "../../../client/tests/client/server.rs"]
mod publisher_server;
mod publishing;
mod put_trees;
mod puts;
mod reading;
mod rebuilding;
mod refusals;
#[path = "../../examples/tampering_relay/relay.rs"]
mod relay;
mod remote;
mod remotes;
mod reserving;
mod resizing;
mod rollback;
mod row_damages;
mod scale;
mod scrubbing;
mod seals;
mod service;
mod sessions;
mod several_heads;
mod site_kills;
mod site_sessions;
mod sites;
mod surroundings;
mod tampering;
mod terminal;
mod told;
mod traces;
mod traffic;
mod trash;
mod trees;
mod upgrades;
mod versions;
mod watching;
mod ways;
mod writing;
