//! The head without sockets: commands as Interests, answers as Data, a catalog in memory.

#![allow(clippy::unwrap_used)]

mod activity;
mod commands;
mod doors;
mod fsck;
mod paths;
mod proving;
mod queries;
mod rebuild;
mod repairing;
mod sessions;
mod support;
