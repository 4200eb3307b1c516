//! Opens a link as one user: whom to trust, whom to ask, what was seen before, what is configured.
//!
//! A door (mount, C ABI, XRootD plug-in, Python) and the command line open everything through a
//! [`Profile`]. Nothing here is global, prints, asks or ends a process: two profiles can live in
//! one process, and every error carries its facts and a number ([`ProfileError::errno`]).
//!
//! A program that reads needs this crate alone, and one call:
//! ```no_run
//! # fn main() -> Result<(), byname_profile::ProfileError> {
//! let session = byname_profile::open("byname:/lab,via=tcp://host:6363,key=SHA256:…")?;
//! for entry in session.list(session.name())?.entries() {
//!     println!("{}", String::from_utf8_lossy(entry.name));
//! }
//! let mut head = [0; 100];
//! let file = session.open(&session.name().with_generic(b"events.root"))?;
//! let filled = file.read_at(&mut head, 0)?;
//! # let _ = filled;
//! # Ok(())
//! # }
//! ```
//! With a profile of its own it goes like this:
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
pub mod units;

mod errno;

/// What a program that reads meets, so that it depends on this crate alone.
pub use byname_client::{
    ClientError, DownloadOptions, FileKind, Listing, Pending, RemoteFile, SessionOptions, Stat,
};
pub use byname_packet::Name;
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

/// Opens a link, a name or a bookmark (`lab:run7`) for reading, as the user who runs this process.
///
/// # Errors
/// [`ProfileError`]; it names what is wrong with the text, the configuration, the address or the
/// key.
pub fn open(text: &str) -> Result<Session, ProfileError> {
    let profile = Profile::load()?;
    profile.open(&profile.link(text)?)
}
