//! The engine: one event loop for any number of jobs, without I/O.
//!
//! [`machine`] is the loop: frames in, frames out, deadlines. [`job`] is what it runs, [`run`] the
//! jobs of one source, [`routes`] says which of them waits for a packet, [`sources`] which of
//! several peers is asked, [`source_names`] what they are called, [`outage`] that nothing
//! comes, and [`answers`] which paths answers took. [`held`] are signed answers that wait for the
//! rest of their burst. [`shared`] is what all jobs share, [`completion`] is where answers for
//! callers are left.
//! Nothing here touches a socket, a file, a clock or a thread.

pub(crate) mod answers;
pub(crate) mod completion;
mod held;
pub(crate) mod job;
pub(crate) mod machine;
pub(crate) mod outage;
pub(crate) mod path;
pub(crate) mod random;
pub(crate) mod routes;
pub(crate) mod run;
pub(crate) mod shared;
pub(crate) mod source_names;
pub(crate) mod sources;
