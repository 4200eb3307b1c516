//! Opens a link as one user: whom to trust, whom to ask, what was seen before, what is configured.
//!
//! A door (mount, C ABI, XRootD plug-in, Python) and the command line open everything through a
//! [`Profile`]. Nothing here is global, prints, asks or ends a process: two profiles can live in
//! one process, and every error carries its facts and a number ([`ProfileError::errno`]).
//!
//! ```no_run
#![doc = include_str!("../examples/five_lines.rs")]
//! ```

pub mod endpoints;
pub mod environment;
pub mod error;
pub mod link;
pub mod paths;
pub mod profile;
pub mod remotes;
pub mod seen;
pub mod session;
pub mod settings;
pub mod trust;

mod errno;

pub use environment::Environment;
pub use error::ProfileError;
pub use link::{Link, LinkError};
pub use paths::{Paths, PathsError};
pub use profile::{Endpoints, OpenOptions, Profile};
pub use remotes::{RemoteError, Remotes};
pub use seen::{SeenError, SeenVersions};
pub use session::Session;
pub use settings::{ConfigError, Settings};
pub use trust::UnknownKey;
