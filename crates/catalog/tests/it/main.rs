//! The catalog over its engines: one suite for all, and the scenarios of the design by name.

#![allow(clippy::unwrap_used)]

mod engines;
mod scenarios;
mod storage;
mod support;
