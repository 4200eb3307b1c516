//! Keys, certificates, signers, verifiers, trust policy and the BLAKE3 hash tree. Sans-I/O.
//!
//! One signature covers a whole file version: the signed metadata names the root of a hash tree
//! ([`tree`]), and every 8 KiB unit is checked against that root in any order. Who may sign
//! which name is decided by [`trust`] alone. Nothing here reads a clock, a file or a socket;
//! the wall clock is an argument. The only randomness is inside ECDSA (key generation and the
//! per-signature nonce), which the cryptographic library draws itself.

pub mod base64;
pub mod batch;
pub mod cert;
pub mod command;
pub mod exchange;
pub mod foreign;
pub mod key;
pub mod safe_bag;
pub mod tree;
pub mod trust;
pub mod verify;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
