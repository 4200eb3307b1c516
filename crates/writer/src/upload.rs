//! A local file or tree is written to a site: what is the same there stays, the rest is written.
//!
//! Directories are walked one after the other; each is compared with what the site lists in it.
//! Files that have to be read are hashed on a thread of their own, ahead of those being written.
//! A file is left alone if size and time are the same, or size and content; so an upload that
//! broke off is resumed by starting it again.

mod batch;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use byname_catalog::{Command, EntryName, Place, Refusal};

use crate::error::WriterError;
use crate::source::modified_ns;
use crate::writer::Writer;

/// Files that are gathered before they are written.
const BATCH_MAX: usize = 1024;
/// Rights that an owner needs to write in a directory.
const OWNER_RIGHTS: u16 = 0o700;

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
    place: Place,
    published: Option<Published>,
}

/// A directory to be walked.
#[derive(Debug)]
struct Directory {
    local: PathBuf,
    place: Place,
    /// Just made: nothing is in it.
    is_new: bool,
}

/// An upload. What happens is told by events; an entry that fails ends nothing.
pub struct Upload<'a, E> {
    /// The writer.
    pub writer: &'a mut Writer,
    /// What the site has.
    pub list: &'a mut List<'a, E>,
    /// Takes what happens.
    pub on_event: &'a mut dyn FnMut(UploadEvent<'_>),
    /// True if it shall stop.
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
    /// Compare contents, also of files whose size and time are the same.
    pub reads_all: bool,
}

/// Files that wait to be written, [`BATCH_MAX`] at most.
type Batch = Vec<Item>;

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
        if !exists {
            self.make_directory(place, mode(&metadata))?;
        }
        let top = Directory { local: local.to_owned(), place: place.clone(), is_new: !exists };
        let (mut ahead, mut batch) = (vec![top], Batch::new());
        while let Some(directory) = ahead.pop() {
            self.directory(&directory, &mut ahead, &mut batch)?;
        }
        self.write(&mut batch)
    }

    fn make_directory(&mut self, place: &Place, mode: u16) -> Result<(), WriterError> {
        let mode = mode | OWNER_RIGHTS;
        let command = Command::MakeDirectory { place: place.clone(), mode };
        self.writer.execute(command, self.is_stopped).map(drop)
    }

    /// Goes through one directory; files that have to be read go to the batch.
    fn directory(
        &mut self,
        directory: &Directory,
        ahead: &mut Vec<Directory>,
        batch: &mut Batch,
    ) -> Result<(), UploadError<E>> {
        let local = match entries(&directory.local) {
            Ok(local) => local,
            Err(error) => {
                self.fail(&directory.local, local_error(&directory.local, error))?;
                return Ok(());
            }
        };
        let mut published = match directory.is_new {
            true => PublishedEntries::new(),
            false => (self.list)(&directory.place).map_err(UploadError::List)?,
        };
        for (path, metadata) in local {
            let name = path.file_name().unwrap_or_default().as_bytes();
            let found = published.remove(name);
            let mut place = directory.place.clone();
            match EntryName::new(name) {
                Ok(name) => place.names.push(name),
                Err(refusal) => {
                    self.fail(&path, refusal.into())?;
                    continue;
                }
            }
            let kind = metadata.file_type();
            if kind.is_dir() {
                let is_new = found.is_none();
                if self.enter((&path, mode(&metadata)), &place, found)? {
                    ahead.push(Directory { local: path, place, is_new });
                }
            } else if kind.is_symlink() {
                self.symlink(&path, place, found)?;
            } else if kind.is_file() {
                self.file((path, &metadata), place, found, batch)?;
            } else {
                (self.on_event)(UploadEvent::Skipped { path: &path });
            }
        }
        Ok(())
    }

    /// Makes a directory unless it is there; false if it cannot be.
    fn enter(
        &mut self,
        (path, mode): (&Path, u16),
        place: &Place,
        found: Option<Published>,
    ) -> Result<bool, WriterError> {
        let made = match found {
            Some(Published::Directory) => return Ok(true),
            Some(_) => Err(Refusal::NotDirectory.into()),
            None => self.make_directory(place, mode),
        };
        match made {
            // The list was older than the directory.
            Ok(()) | Err(WriterError::Refused(Refusal::Exists)) => Ok(true),
            Err(error) => self.fail(path, error).map(|()| false),
        }
    }

    fn symlink(
        &mut self,
        path: &Path,
        place: Place,
        found: Option<Published>,
    ) -> Result<(), WriterError> {
        let target = match fs::read_link(path) {
            Ok(target) => target.into_os_string().into_encoded_bytes(),
            Err(error) => return self.fail(path, local_error(path, error)),
        };
        if found == Some(Published::Symlink(target.clone())) {
            (self.on_event)(UploadEvent::Identical { size: 0 });
            return Ok(());
        }
        match self.make_symlink(place, target, found.is_some()) {
            Ok(()) => {
                (self.on_event)(UploadEvent::Written { path, size: 0 });
                Ok(())
            }
            Err(error) => self.fail(path, error),
        }
    }

    fn make_symlink(
        &mut self,
        place: Place,
        target: Vec<u8>,
        replaces: bool,
    ) -> Result<(), WriterError> {
        if replaces {
            let command = Command::Unlink { place: place.clone() };
            self.writer.execute(command, self.is_stopped)?;
        }
        let command = Command::MakeSymlink { place, target };
        self.writer.execute(command, self.is_stopped).map(drop)
    }

    /// A file that is not the same by size and time has to be read.
    fn file(
        &mut self,
        (local, metadata): (PathBuf, &fs::Metadata),
        place: Place,
        published: Option<Published>,
        batch: &mut Batch,
    ) -> Result<(), UploadError<E>> {
        let size = metadata.len();
        (self.on_event)(UploadEvent::Planned { size });
        if !self.reads_all
            && let Some(Published::File { size: there, modified_ns: Some(at_ns), .. }) = &published
            && (*there, *at_ns) == (Some(size), modified_ns(metadata))
        {
            (self.on_event)(UploadEvent::Identical { size });
            return Ok(());
        }
        batch.push(Item { local, place, published });
        if batch.len() < BATCH_MAX { Ok(()) } else { self.write(batch) }
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

/// Entries of a local directory in the order of their names, without following links.
fn entries(directory: &Path) -> io::Result<Vec<(PathBuf, fs::Metadata)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) => found.push((entry.path(), metadata)),
            // Removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

fn mode(metadata: &fs::Metadata) -> u16 {
    (metadata.mode() & 0o777) as u16
}

fn local_error(path: &Path, source: io::Error) -> WriterError {
    WriterError::Local { path: path.to_owned(), source }
}
