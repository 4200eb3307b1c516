//! Lookups: from a name to what its publisher has signed about it, without I/O.
//!
//! [`name`] finds the current version of a name, with the help of manifests ([`fallback`]) where
//! nobody answers for it; [`list_job`] reads a directory, [`listing`] is what comes of that,
//! [`sorted`] the same with positions, and [`resolved`] makes of an entry of a manifest what a
//! lookup of its name would have given. Nothing here touches a socket, a file, a clock or a thread.

mod fallback;
pub(crate) mod list_job;
pub(crate) mod listing;
pub(crate) mod name;
pub(crate) mod resolved;
pub(crate) mod sorted;
pub(crate) mod stage;
pub(crate) mod stat;
