//! A local file or tree is written to a site: what is the same there stays, the rest is written.
//!
//! Directories are walked one after the other; each is compared with what the site lists in it.
//! Files that have to be read are hashed on a thread of their own, ahead of those being written.
//! A file is left alone if size and time are the same, or size and content; so an upload that
//! broke off is resumed by starting it again. What only the site has is told, and stays.

mod batch;
mod walk;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use byname_catalog::{Command, Place, PolicyChanges};

use crate::error::WriterError;
use crate::writer::Writer;

/// Files that are gathered before they are written.
const BATCH_MAX: usize = 1024;
/// Rights that an owner needs to write in a directory.
const OWNER_RIGHTS: u16 = 0o700;

/// How an upload compares and writes.
#[derive(Debug, Clone, Default)]
pub struct UploadOptions {
    /// Compare contents, also of files whose size and time are the same.
    pub reads_all: bool,
    /// Leave alone what the site has something else for.
    pub no_clobber: bool,
    /// Make no directory into which nothing is written.
    pub prunes_empty: bool,
    /// Write nothing, but tell each [`Change`].
    pub is_dry: bool,
    /// How the policy of files differs from the one they would have, or have.
    pub policy: PolicyChanges,
}

/// A local entry below the directory that is uploaded.
#[derive(Debug, Clone, Copy)]
pub struct LocalEntry<'a> {
    /// Its path relative to that directory.
    pub path: &'a Path,
    /// What the system says of it.
    pub metadata: &'a fs::Metadata,
}

/// Decides whether an entry is written, or a directory entered.
pub type Accept<'a> = dyn FnMut(LocalEntry<'_>) -> bool + 'a;

/// A change of the site that an upload would make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// A new directory.
    Directory,
    /// A new file.
    File {
        /// Octets.
        size: u64,
    },
    /// A new version of a file.
    Version {
        /// Octets.
        size: u64,
        /// The file has as many.
        is_same_size: bool,
        /// The file has this time.
        is_same_time: bool,
    },
    /// Another time of a file whose content is the same.
    Time {
        /// Octets.
        size: u64,
    },
    /// A symbolic link.
    Link {
        /// Its target.
        target: &'a [u8],
        /// It takes the place of something.
        replaces: bool,
    },
}

/// An entry of the site, as its list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// A file.
    File {
        /// Octets.
        size: Option<u64>,
        /// Time of last modification, in nanoseconds since 1970.
        modified_ns: Option<u64>,
        /// Root of its hash tree.
        root: Option<[u8; 32]>,
    },
    /// A directory.
    Directory,
    /// A symbolic link with its target.
    Symlink(Vec<u8>),
}

/// Entries of a directory of the site, by their names.
pub type PublishedEntries = BTreeMap<Vec<u8>, Published>;

/// Lists a directory of the site.
pub type List<'a, E> = dyn FnMut(&Place) -> Result<PublishedEntries, E> + 'a;

/// Something that happened to an entry, which is told by its local path.
#[derive(Debug)]
pub enum UploadEvent<'a> {
    /// A file is there, to be compared and maybe written.
    Planned {
        /// Octets.
        size: u64,
    },
    /// A file or symbolic link was written.
    Written {
        /// The entry.
        path: &'a Path,
        /// Octets.
        size: u64,
    },
    /// It is there already.
    Identical {
        /// Octets.
        size: u64,
    },
    /// It could not be written.
    Failed {
        /// The entry.
        path: &'a Path,
        /// Why.
        error: WriterError,
    },
    /// It is neither file, directory nor symbolic link.
    Skipped {
        /// The entry.
        path: &'a Path,
    },
    /// Something else is there, and stays.
    Kept {
        /// Octets.
        size: u64,
    },
    /// It would be written.
    Change {
        /// Relative to what is uploaded.
        path: &'a Path,
        /// How.
        change: Change<'a>,
    },
    /// The site has it, and there is nothing local of this name.
    Extra {
        /// Relative to what is uploaded.
        path: &'a Path,
        /// What it is.
        published: &'a Published,
    },
    /// Disks have so many octets more.
    Received {
        /// The octets.
        bytes: u64,
    },
}

/// Reason why an upload ended.
#[derive(Debug, thiserror::Error)]
pub enum UploadError<E> {
    /// Nothing can be written any more.
    #[error(transparent)]
    Writer(#[from] WriterError),
    /// A directory of the site could not be listed.
    #[error("cannot list what is there")]
    List(E),
}

/// A file to be compared and written.
#[derive(Debug)]
struct Item {
    local: PathBuf,
    /// Relative to what is uploaded.
    path: PathBuf,
    place: Place,
    published: Option<Published>,
}

/// A directory to be walked.
#[derive(Debug)]
struct Directory {
    local: PathBuf,
    /// Relative to what is uploaded.
    path: PathBuf,
    place: Place,
    /// The site has none of this name: nothing is in it.
    is_new: bool,
    /// Directories down to this one that are made with the first thing in it.
    pending: Vec<NewDirectory>,
}

/// A directory to be made at the site.
#[derive(Debug, Clone)]
struct NewDirectory {
    local: PathBuf,
    path: PathBuf,
    place: Place,
    mode: u16,
}

/// An upload. What happens is told by events; an entry that fails ends nothing.
pub struct Upload<'a, E> {
    /// The writer.
    pub writer: &'a mut Writer,
    /// What the site has.
    pub list: &'a mut List<'a, E>,
    /// Decides what is written of a tree.
    pub accepts: &'a mut Accept<'a>,
    /// Takes what happens.
    pub on_event: &'a mut dyn FnMut(UploadEvent<'_>),
    /// True if it shall stop.
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
    /// How it compares and writes.
    pub options: UploadOptions,
}

/// Files that wait to be written, [`BATCH_MAX`] at most.
type Batch = Vec<Item>;

/// A walk through a local tree.
#[derive(Debug, Default)]
struct Walk {
    /// Directories to be looked into.
    ahead: Vec<Directory>,
    batch: Batch,
    /// Directories that were made with what is in them.
    made: HashSet<PathBuf>,
}

impl<E> Upload<'_, E> {
    /// Writes what is in a local directory into a directory of the site, which is made unless
    /// `exists`.
    ///
    /// # Errors
    /// What ends the whole: the connection, the head, a list that cannot be had, a wish to stop.
    pub fn tree(
        &mut self,
        local: &Path,
        place: &Place,
        exists: bool,
    ) -> Result<(), UploadError<E>> {
        let metadata = fs::metadata(local).map_err(|error| local_error(local, error))?;
        let mut top = Directory {
            local: local.to_owned(),
            path: PathBuf::new(),
            place: place.clone(),
            is_new: !exists,
            pending: Vec::new(),
        };
        let mut walk = Walk::default();
        if !exists {
            // It was asked for by name: an upload of nothing makes it all the same.
            let mode = walk::mode(&metadata);
            top.pending.push(top.made(mode));
            self.make_pending(&top, &mut walk)?;
            top.pending.clear();
        }
        walk.ahead.push(top);
        while let Some(directory) = walk.ahead.pop() {
            self.directory(&directory, &mut walk)?;
        }
        self.write(&mut walk.batch)
    }

    fn make_directory(&mut self, place: &Place, mode: u16) -> Result<(), WriterError> {
        let mode = mode | OWNER_RIGHTS;
        let command = Command::MakeDirectory { place: place.clone(), mode };
        self.writer.execute(command, self.is_stopped).map(drop)
    }

    /// Tells that an entry failed; what concerns all entries ends the upload.
    fn fail(&mut self, path: &Path, error: WriterError) -> Result<(), WriterError> {
        if error.ends_all() {
            return Err(error);
        }
        (self.on_event)(UploadEvent::Failed { path, error });
        Ok(())
    }
}

fn local_error(path: &Path, source: io::Error) -> WriterError {
    WriterError::Local { path: path.to_owned(), source }
}
