//! The C interface: sessions, listings and reads by name, and changes of a site, for programs in
//! any language.
//!
//! `include/byname.h` is the contract, made from [`abi`] and [`entry`] by `cargo xtask header`. An
//! entry point turns pointers into values ([`memory`]) and handles into things ([`handles`]), and
//! runs inside [`guard::entry`], which turns errors into numbers and texts and lets no panic out.
//! Everything else is safe code over `byname_profile::Session` and `byname_access::SharedSite`.
//!
//! Invariants: no pointer of a caller is kept beyond the call that it was given to, which ends,
//! for a started call, when its call-back has run; no address of ours is given out; whatever
//! numbers a caller passes as handles, only the table of handles sees them.

#![allow(unsafe_code)]

pub mod abi;
pub mod entry;

mod attributes;
mod call;
mod dispatcher;
mod door;
mod fault;
mod file;
mod guard;
mod handles;
mod listing;
mod memory;
mod page;
mod session;
mod site;
mod symbols;
