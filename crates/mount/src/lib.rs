//! A published tree as a read-only directory of this machine: FUSE over a client's session.
//!
//! The kernel asks by inode. A file's inode stands for one *version* of a name, so its attributes
//! and pages never change and the kernel may keep them for ever; only the step from a name to a
//! version is asked for again, when it is older than [`MountOptions::freshness`]. A directory's
//! inode stands for its name, so a shell's working directory survives changes.
//!
//! `inodes`, `attributes`, `snapshot`, `snapshots`, `owners` and `xattrs` are rules without I/O;
//! `tree` asks the sessions of `sources` by them; `filesystem` translates the kernel's requests
//! into calls of `tree`; `mounting` attaches it to a directory.
//!
//! Threads: fuser's threads take requests and answer at once what is in memory. A request that has
//! to wait becomes a task ([`tasks`]); the session's thread wakes it, two threads of this crate run
//! it and answer the kernel. Nothing waits on fuser's threads, so one slow file holds up no other.

mod attributes;
mod complaints;
mod error;
mod files;
mod filesystem;
mod flight;
mod inodes;
mod interrupts;
mod landing;
mod levels;
mod mounting;
mod owners;
mod passing;
mod rooms;
mod snapshot;
mod snapshots;
mod sources;
mod tasks;
mod tree;
mod xattrs;

pub use error::MountError;
pub use filesystem::OnEnd;
pub use levels::{MountLevels, MountMeter};
pub use mounting::{Ending, INODES_HELD_MAX, Mount, MountOptions, unmount};
pub use rooms::{AskRoom, Room};
pub use sources::{PublishedTree, TREES_MAX, Trees};
