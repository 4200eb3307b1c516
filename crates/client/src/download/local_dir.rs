//! Directories below the target, reached without ever following a symbolic link.
//!
//! Each step opens one component relative to its parent's descriptor, so neither a link that was
//! there nor one that somebody puts there meanwhile can lead outside of the target.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::download::context::DownloadOptions;
use crate::download::disk::{Disk, DiskStep};
use crate::download::part_file::{
    Attributes, SUFFIX, Target, disk_error, part_name, set_attributes,
};
use crate::download::progress::FileOutcome;
use crate::error::ClientError;

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What happens to something that stands in the place of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfThere {
    Replace,
    /// It stays, and the caller decides anew.
    Leave,
    /// It stays, which is an error.
    Refuse,
}

/// An open directory.
#[derive(Clone, Debug)]
pub(crate) struct LocalDir {
    fd: Arc<OwnedFd>,
    /// For messages.
    pub(crate) shown: PathBuf,
    /// It was made by this run, so nothing can be in it.
    pub(crate) is_new: bool,
    disk: Disk,
}

impl LocalDir {
    /// The target itself, made if it is missing. The user named it, so links in it are followed.
    pub(crate) fn root(path: &Path, disk: &Disk) -> Result<Self, ClientError> {
        let failed = |error| disk_error(path, error);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        let is_new = match std::fs::create_dir(path) {
            Ok(()) => true,
            // Something else in its place fails to open.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            // An empty path and the like.
            Err(_) => std::fs::create_dir_all(path).map(|()| false).map_err(failed)?,
        };
        let fd = rustix::fs::open(path, FLAGS, Mode::empty())
            .map_err(|error| disk_error(path, error))?;
        let (shown, disk) = (path.to_owned(), disk.clone());
        Ok(LocalDir { fd: Arc::new(fd), shown, is_new, disk })
    }

    /// A directory in this one, made if it is missing.
    pub(crate) fn child(&self, name: &OsStr) -> Result<Self, ClientError> {
        let shown = self.shown.join(name);
        let made = rustix::fs::mkdirat(&*self.fd, name, Mode::from_raw_mode(0o777));
        let is_new = match made {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(disk_error(&shown, error)),
        };
        let flags = FLAGS.union(OFlags::NOFOLLOW);
        match rustix::fs::openat(&*self.fd, name, flags, Mode::empty()) {
            Ok(fd) => Ok(LocalDir { fd: Arc::new(fd), shown, is_new, disk: self.disk.clone() }),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let obstacle = "something that is no directory (a symbolic link is not followed)";
                Err(ClientError::InTheWay { path: shown, obstacle })
            }
            Err(error) => Err(disk_error(&shown, error)),
        }
    }

    /// Makes a symbolic link, or leaves one with this target as it is. It takes the place of
    /// anything but a directory.
    pub(crate) fn symlink(
        &self,
        name: &OsStr,
        target: &[u8],
        options: DownloadOptions,
    ) -> Result<FileOutcome, ClientError> {
        let shown = self.shown.join(name);
        let failed = |error: Errno| disk_error(&shown, error);
        let announced = self.disk.announce(DiskStep::Open { target: &shown });
        announced.map_err(|error| disk_error(&shown, error))?;
        let target = Path::new(OsStr::from_bytes(target));
        let made = rustix::fs::symlinkat(target, &*self.fd, name);
        match made {
            Ok(()) => {}
            Err(Errno::EXIST) if options.no_clobber => return Ok(FileOutcome::Kept),
            Err(Errno::EXIST) => {
                let there = rustix::fs::readlinkat(&*self.fd, name, Vec::new());
                if there.is_ok_and(|there| there.as_bytes() == target.as_os_str().as_bytes()) {
                    return Ok(FileOutcome::Identical);
                }
                self.replace_by_link(name, target)?;
            }
            Err(error) => return Err(failed(error)),
        }
        if options.sync {
            rustix::fs::fsync(&*self.fd).map_err(failed)?;
        }
        Ok(FileOutcome::Fetched)
    }

    /// Puts a link in the place of something else, by the name of a part file.
    fn replace_by_link(&self, name: &OsStr, target: &Path) -> Result<(), ClientError> {
        let shown = self.shown.join(name);
        let passing = part_name(name);
        // What an earlier run left of a file that is a link now.
        match rustix::fs::unlinkat(&*self.fd, &passing, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(disk_error(&shown, error)),
        }
        let made = rustix::fs::symlinkat(target, &*self.fd, &passing);
        made.map_err(|error| disk_error(&shown, error))?;
        let renamed = rustix::fs::renameat(&*self.fd, &passing, &*self.fd, name);
        let Err(error) = renamed else { return Ok(()) };
        // What is in the way is reported; a link left behind would only be in the way, too.
        let _ = rustix::fs::unlinkat(&*self.fd, &passing, AtFlags::empty());
        Err(match error {
            Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST => {
                ClientError::InTheWay { path: shown, obstacle: "a directory" }
            }
            error => disk_error(&shown, error),
        })
    }

    /// Removes a directory in this one if nothing is in it.
    pub(crate) fn remove_empty(&self, name: &OsStr) {
        let removed = rustix::fs::unlinkat(&*self.fd, name, AtFlags::REMOVEDIR);
        if let Err(error) = removed.or_else(|error| match error {
            Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT => Ok(()),
            error => Err(error),
        }) {
            tracing::debug!(%error, path = ?self.shown.join(name), "not removed");
        }
    }

    /// The open directory.
    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// A file in this directory.
    pub(crate) fn file(&self, name: &OsStr) -> Target {
        Target {
            directory: Arc::clone(&self.fd),
            name: name.to_owned(),
            shown: self.shown.join(name),
            disk: self.disk.clone(),
        }
    }

    /// Puts a whole small file in place. False if that cannot be done so: the file system has no
    /// files without names, or something stands where this one would pass through, or in its
    /// place where that is to be left alone.
    ///
    /// A file without a name that gets one when it is whole is the cheapest way to make a file
    /// that is never seen unfinished, and leaves nothing behind when the process dies.
    pub(crate) fn put(
        &self,
        name: &OsStr,
        content: &[u8],
        attributes: Attributes,
        if_there: IfThere,
    ) -> Result<bool, ClientError> {
        let shown = self.shown.join(name);
        let failed = |error: Errno| disk_error(&shown, error);
        let announced = self.disk.announce(DiskStep::Open { target: &shown });
        announced.map_err(|error| disk_error(&shown, error))?;
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&*self.fd, ".", flags, Mode::RUSR | Mode::WUSR);
        let file = match opened {
            Ok(file) => File::from(file),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        let written = self.disk.write_all_at(&file, &shown, content, 0);
        written.map_err(|error| disk_error(&shown, error))?;
        set_attributes(&file, attributes).map_err(failed)?;
        let announced = self.disk.announce(DiskStep::Name { target: &shown, file: &file });
        announced.map_err(|error| disk_error(&shown, error))?;
        match self.link(&file, name) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => match if_there {
                IfThere::Replace => self.replace(&file, name),
                IfThere::Leave => Ok(false),
                IfThere::Refuse => Err(ClientError::Exists { path: shown }),
            },
            Err(Errno::NOENT | Errno::PERM | Errno::OPNOTSUPP) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    fn link(&self, file: &File, name: &OsStr) -> Result<(), Errno> {
        match rustix::fs::linkat(file, "", &*self.fd, name, AtFlags::EMPTY_PATH) {
            // Older kernels want a capability for that.
            Err(Errno::NOENT) => {}
            other => return other,
        }
        use std::os::fd::AsRawFd;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        rustix::fs::linkat(rustix::fs::CWD, path, &*self.fd, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// Puts a whole file in the place of another.
    fn replace(&self, file: &File, name: &OsStr) -> Result<bool, ClientError> {
        const NAME_BYTES_MAX: usize = 255;
        let mut passing = OsString::from(".");
        passing.push(name);
        passing.push(OsStr::from_bytes(SUFFIX));
        if passing.len() > NAME_BYTES_MAX || self.link(file, &passing).is_err() {
            return Ok(false);
        }
        let (directory, flags) = (&*self.fd, RenameFlags::empty());
        let renamed = rustix::fs::renameat_with(directory, &passing, directory, name, flags);
        let Err(error) = renamed else { return Ok(true) };
        // What is in the way is reported; a file left behind would only cost space.
        let _ = rustix::fs::unlinkat(directory, &passing, AtFlags::empty());
        let path = self.shown.join(name);
        Err(match error {
            Errno::ISDIR => ClientError::InTheWay { path, obstacle: "a directory" },
            error => disk_error(&path, error),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_this_run_has_made_is_new_and_one_that_was_there_is_not() {
        let home = tempfile::tempdir().unwrap();
        let (path, disk) = (home.path().join("a/b"), Disk::default());
        assert!(LocalDir::root(&path, &disk).unwrap().is_new);
        assert!(!LocalDir::root(&path, &disk).unwrap().is_new);
        assert!(!LocalDir::root(&path.join("."), &disk).unwrap().is_new);
        std::fs::write(path.join("file"), b"").unwrap();
        assert!(LocalDir::root(&path.join("file"), &disk).is_err());
        std::os::unix::fs::symlink("b", home.path().join("a/link")).unwrap();
        let link = LocalDir::root(&home.path().join("a/link"), &disk).unwrap();
        assert!(!link.is_new && link.file(OsStr::new("file")).stat().unwrap().is_some());
    }

    /// It may have a newer version, which whoever would replace it has to look at first.
    #[test]
    fn what_came_meanwhile_is_left_alone_unless_it_is_to_be_replaced() {
        let home = tempfile::tempdir().unwrap();
        let local = LocalDir::root(home.path(), &Disk::default()).unwrap();
        let name = OsStr::new("file");
        let put = |content: &[u8], if_there| {
            let attributes = Attributes { mode: Some(0o644), mtime_ns: None };
            local.put(name, content, attributes, if_there)
        };
        if !put(b"one", IfThere::Leave).unwrap() {
            return; // a file system without files that have no names
        }
        assert!(!put(b"two", IfThere::Leave).unwrap());
        assert!(matches!(put(b"two", IfThere::Refuse), Err(ClientError::Exists { .. })));
        assert_eq!(std::fs::read(home.path().join("file")).unwrap(), b"one");
        assert!(put(b"two", IfThere::Replace).unwrap());
        assert_eq!(std::fs::read(home.path().join("file")).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
    }
}
