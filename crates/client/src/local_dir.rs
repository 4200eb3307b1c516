//! Directories below the target, reached without ever following a symbolic link.
//!
//! Each step opens one component relative to its parent's descriptor, so neither a link that was
//! there nor one that somebody puts there meanwhile can lead outside of the target.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::ClientError;
use crate::part_file::{Target, disk_error};

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// An open directory.
#[derive(Clone, Debug)]
pub(crate) struct LocalDir {
    fd: Rc<OwnedFd>,
    /// For messages.
    pub(crate) shown: PathBuf,
}

impl LocalDir {
    /// The target itself, made if it is missing. The user named it, so links in it are followed.
    pub(crate) fn root(path: &Path) -> Result<Self, ClientError> {
        std::fs::create_dir_all(path).map_err(|error| disk_error(path, error))?;
        let fd = rustix::fs::open(path, FLAGS, Mode::empty())
            .map_err(|error| disk_error(path, error))?;
        Ok(LocalDir { fd: Rc::new(fd), shown: path.to_owned() })
    }

    /// A directory in this one, made if it is missing.
    pub(crate) fn child(&self, name: &OsStr) -> Result<Self, ClientError> {
        let shown = self.shown.join(name);
        match rustix::fs::mkdirat(&*self.fd, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(disk_error(&shown, error)),
        }
        let flags = FLAGS.union(OFlags::NOFOLLOW);
        match rustix::fs::openat(&*self.fd, name, flags, Mode::empty()) {
            Ok(fd) => Ok(LocalDir { fd: Rc::new(fd), shown }),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let obstacle = "something that is no directory (a symbolic link is not followed)";
                Err(ClientError::InTheWay { path: shown, obstacle })
            }
            Err(error) => Err(disk_error(&shown, error)),
        }
    }

    /// A file in this directory.
    pub(crate) fn file(&self, name: &OsStr) -> Target {
        Target {
            directory: Rc::clone(&self.fd),
            name: name.to_owned(),
            shown: self.shown.join(name),
        }
    }
}
