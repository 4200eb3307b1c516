//! The functions of the interface, by what they are about.
//!
//! All of them have one safety contract, which `byname.h` gives at its top: pointers are NULL or
//! lead to what they say, and memory of a started call is left alone until its call-back.

#![allow(clippy::missing_safety_doc, reason = "the contract is one for all: see above")]

pub mod calls;
pub mod doors;
pub mod files;
pub mod listings;
pub mod loans;
pub mod sessions;
pub mod site_acls;
pub mod site_files;
pub mod sites;
