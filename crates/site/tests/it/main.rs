//! Tests of a site's protocol: what is accepted, and what an attacker may try.

#![allow(clippy::unwrap_used)]

mod commands;
mod orders;
mod replies;
mod support;
mod tickets;
mod vectors;
