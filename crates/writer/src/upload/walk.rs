//! One directory of an upload beside what the site lists in it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use byname_catalog::{Command, EntryName, Place, Refusal};

use super::{
    BATCH_MAX, Change, Directory, Item, LocalEntry, NewDirectory, Published, PublishedEntries,
    Upload, UploadError, UploadEvent, Walk, local_error,
};
use crate::error::WriterError;
use crate::source::modified_ns;

/// A local entry, and what the site has of its name.
struct Found {
    local: PathBuf,
    /// Relative to what is uploaded.
    path: PathBuf,
    place: Place,
    metadata: fs::Metadata,
    published: Option<Published>,
}

impl Directory {
    /// Itself, to be made at the site.
    pub(super) fn made(&self, mode: u16) -> NewDirectory {
        let (local, path) = (self.local.clone(), self.path.clone());
        NewDirectory { local, path, place: self.place.clone(), mode }
    }
}

impl<E> Upload<'_, E> {
    /// Goes through one directory; files that have to be read go to the batch.
    pub(super) fn directory(
        &mut self,
        directory: &Directory,
        walk: &mut Walk,
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
        for (local, metadata) in local {
            let name = local.file_name().unwrap_or_default().to_owned();
            let path = directory.path.join(&name);
            let found = published.remove(name.as_bytes());
            if !(self.accepts)(LocalEntry { path: &path, metadata: &metadata }) {
                continue;
            }
            let mut place = directory.place.clone();
            match EntryName::new(name.as_bytes()) {
                Ok(name) => place.names.push(name),
                Err(refusal) => {
                    self.fail(&local, refusal.into())?;
                    continue;
                }
            }
            let found = Found { local, path, place, metadata, published: found };
            if !self.entry(found, directory, walk)? {
                return Ok(());
            }
        }
        self.tell_extras(directory, &published);
        Ok(())
    }

    /// False if the directory that it goes into cannot be made.
    fn entry(
        &mut self,
        found: Found,
        directory: &Directory,
        walk: &mut Walk,
    ) -> Result<bool, UploadError<E>> {
        let kind = found.metadata.file_type();
        if kind.is_dir() {
            self.enter(found, directory, walk)?;
            return Ok(true);
        }
        if !kind.is_symlink() && !kind.is_file() {
            (self.on_event)(UploadEvent::Skipped { path: &found.local });
            return Ok(true);
        }
        if !self.make_pending(directory, walk)? {
            return Ok(false);
        }
        match kind.is_symlink() {
            true => self.symlink(found)?,
            false => self.file(found, walk)?,
        }
        Ok(true)
    }

    fn tell_extras(&mut self, directory: &Directory, published: &PublishedEntries) {
        for (name, published) in published {
            let path = directory.path.join(OsStr::from_bytes(name));
            (self.on_event)(UploadEvent::Extra { path: &path, published });
        }
    }

    /// Takes a directory to those that are looked into, and makes it unless it is there.
    fn enter(
        &mut self,
        Found { local, path, place, metadata, published }: Found,
        above: &Directory,
        walk: &mut Walk,
    ) -> Result<(), WriterError> {
        let is_new = match published {
            Some(Published::Directory) => false,
            Some(_) => return self.fail(&local, Refusal::NotDirectory.into()),
            None => true,
        };
        let mut pending = above.pending.clone();
        let mut directory = Directory { local, path, place, is_new, pending: Vec::new() };
        if is_new {
            pending.push(directory.made(mode(&metadata)));
        }
        directory.pending = pending;
        if !self.options.prunes_empty {
            if !self.make_pending(&directory, walk)? {
                return Ok(());
            }
            directory.pending.clear();
        }
        walk.ahead.push(directory);
        Ok(())
    }

    /// Makes the directories that something is now written into; false if one cannot be made.
    pub(super) fn make_pending(
        &mut self,
        directory: &Directory,
        walk: &mut Walk,
    ) -> Result<bool, WriterError> {
        for NewDirectory { local, path, place, mode } in &directory.pending {
            if walk.made.contains(path) {
                continue;
            }
            let made = match self.options.is_dry {
                true => {
                    if !path.as_os_str().is_empty() {
                        let change = Change::Directory;
                        (self.on_event)(UploadEvent::Change { path, change });
                    }
                    Ok(())
                }
                false => self.make_directory(place, *mode),
            };
            match made {
                Ok(()) => {}
                // The list was older than the directory.
                Err(WriterError::Refused(Refusal::Exists)) if !path.as_os_str().is_empty() => {}
                // There is nothing to go on with.
                Err(error) if path.as_os_str().is_empty() => return Err(error),
                Err(error) => return self.fail(local, error).map(|()| false),
            }
            if self.options.prunes_empty {
                walk.made.insert(path.clone());
            }
        }
        Ok(true)
    }

    fn symlink(&mut self, found: Found) -> Result<(), WriterError> {
        let Found { local, path, place, published, .. } = found;
        let target = match fs::read_link(&local) {
            Ok(target) => target.into_os_string().into_encoded_bytes(),
            Err(error) => return self.fail(&local, local_error(&local, error)),
        };
        match &published {
            Some(Published::Symlink(there)) if *there == target => {
                (self.on_event)(UploadEvent::Identical { size: 0 });
                return Ok(());
            }
            Some(_) if self.options.no_clobber => {
                (self.on_event)(UploadEvent::Kept { size: 0 });
                return Ok(());
            }
            Some(Published::Directory) => {
                return self.fail(&local, Refusal::IsDirectory.into());
            }
            _ => {}
        }
        let replaces = published.is_some();
        if self.options.is_dry {
            let change = Change::Link { target: &target, replaces };
            (self.on_event)(UploadEvent::Change { path: &path, change });
            return Ok(());
        }
        match self.make_symlink(place, target, replaces) {
            Ok(()) => {
                (self.on_event)(UploadEvent::Written { path: &local, size: 0 });
                Ok(())
            }
            Err(error) => self.fail(&local, error),
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
    fn file(&mut self, found: Found, walk: &mut Walk) -> Result<(), UploadError<E>> {
        let Found { local, path, place, metadata, published } = found;
        let size = metadata.len();
        (self.on_event)(UploadEvent::Planned { size });
        let is_same = match &published {
            Some(Published::File { size: there, modified_ns: Some(at_ns), .. }) => {
                (*there, *at_ns) == (Some(size), modified_ns(&metadata))
            }
            _ => false,
        };
        let refusal = match &published {
            Some(Published::Directory) => Some(Refusal::IsDirectory),
            Some(Published::Symlink(_)) => Some(Refusal::SymbolicLink),
            _ => None,
        };
        if is_same && !self.options.reads_all {
            (self.on_event)(UploadEvent::Identical { size });
        } else if published.is_some() && self.options.no_clobber {
            (self.on_event)(UploadEvent::Kept { size });
        } else if let Some(refusal) = refusal {
            self.fail(&local, refusal.into())?;
        } else {
            walk.batch.push(Item { local, path, place, published });
            if walk.batch.len() >= BATCH_MAX {
                self.write(&mut walk.batch)?;
            }
        }
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

/// Permission bits of a new directory.
pub(super) fn mode(metadata: &fs::Metadata) -> u16 {
    (metadata.mode() & 0o777) as u16
}
