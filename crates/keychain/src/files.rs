//! Small files that are read whole, checked for permissions, and replaced atomically.
//!
//! A replacement is written to `.tmp-…` in the same directory, synced, renamed, and the directory
//! is synced. Whoever changes a directory holds its lock, so a `.tmp-…` seen under the lock was
//! left by a process that died and is removed.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

/// Mode of directories: nobody else gets in.
const DIR_MODE: u32 = 0o700;
/// Mode of files.
const FILE_MODE: u32 = 0o600;
/// Bits that let others read or change.
pub(crate) const OTHERS_ANY: u32 = 0o077;
/// Bits that let others change.
pub(crate) const OTHERS_WRITE: u32 = 0o022;

const TEMPORARY: &str = ".tmp-";
const LOCK: &str = "lock";

/// A file or directory that cannot be used.
#[derive(Debug, Error)]
pub enum FileError {
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Others could read a key or change what is trusted.
    #[error(
        "{} is open to other users (mode {mode:04o}); run: chmod {fix} '{}'",
        path.display(), path.display()
    )]
    TooOpen {
        /// The file or directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// The argument for chmod.
        fix: &'static str,
    },
    /// The file is longer than any that byname writes.
    #[error("{} is longer than {max} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        max: u64,
    },
    /// The directory has more entries than byname handles.
    #[error("{} has more than {max} entries", path.display())]
    TooMany {
        /// The directory.
        path: PathBuf,
        /// The limit.
        max: usize,
    },
}

/// Makes an [`FileError::Io`] out of a system error.
pub(crate) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    move |source| FileError::Io { action, path, source }
}

/// Creates a private directory with its parents, if missing, and checks who else may use it.
pub(crate) fn ensure_dir(path: &Path, forbidden: u32) -> Result<(), FileError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(DIR_MODE).create(path).map_err(io_error("create", path))?;
    let metadata = fs::metadata(path).map_err(io_error("read", path))?;
    check_mode(path, metadata.mode(), forbidden)
}

fn check_mode(path: &Path, mode: u32, forbidden: u32) -> Result<(), FileError> {
    let mode = mode & 0o7777;
    if mode & forbidden == 0 {
        return Ok(());
    }
    let fix = if forbidden == OTHERS_WRITE { "go-w" } else { "go=" };
    Err(FileError::TooOpen { path: path.to_owned(), mode, fix })
}

/// Reads a file of at most `max` bytes; `None` if there is none.
pub(crate) fn read(path: &Path, max: u64, forbidden: u32) -> Result<Option<Vec<u8>>, FileError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("open", path)(error)),
    };
    let mode = file.metadata().map_err(io_error("read", path))?.mode();
    check_mode(path, mode, forbidden)?;
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes).map_err(io_error("read", path))?;
    if bytes.len() as u64 > max {
        return Err(FileError::TooLong { path: path.to_owned(), max });
    }
    Ok(Some(bytes))
}

/// Names in a directory, sorted, without temporary files and the lock.
pub(crate) fn list(path: &Path, max: usize) -> Result<Vec<String>, FileError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(io_error("list", path))? {
        let entry = entry.map_err(io_error("list", path))?;
        // A name that is not UTF-8 is not byname's.
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') || name == LOCK {
            continue;
        }
        if names.len() == max {
            return Err(FileError::TooMany { path: path.to_owned(), max });
        }
        names.push(name);
    }
    names.sort();
    Ok(names)
}

/// The lock of a directory, held until dropped. The system drops it if the process dies.
pub(crate) struct DirLock {
    _file: File,
}

impl DirLock {
    /// Waits for the lock of `dir`, then removes what a dead process left there.
    pub(crate) fn take(dir: &Path) -> Result<Self, FileError> {
        let path = dir.join(LOCK);
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(FILE_MODE).open(&path);
        let file = file.map_err(io_error("open", &path))?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| io_error("lock", &path)(error.into()))?;
        clean(dir)?;
        Ok(Self { _file: file })
    }
}

/// Removes temporary files and directories. The caller holds the lock that covers `dir`.
pub(crate) fn clean(dir: &Path) -> Result<(), FileError> {
    for entry in fs::read_dir(dir).map_err(io_error("list", dir))? {
        let entry = entry.map_err(io_error("list", dir))?;
        if !entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
            continue;
        }
        let path = entry.path();
        let is_dir = entry.file_type().map_err(io_error("read", &path))?.is_dir();
        let removed = if is_dir { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(io_error("remove", &path))?;
    }
    Ok(())
}

/// Replaces or creates a file: whole or not at all, and on disk when this returns.
pub(crate) fn replace(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), FileError> {
    let temporary = dir.join(format!("{TEMPORARY}{name}"));
    write_new(&temporary, bytes)?;
    let path = dir.join(name);
    fs::rename(&temporary, &path).map_err(io_error("replace", &path))?;
    sync_dir(dir)
}

/// Removes a file, if it is there.
pub(crate) fn remove(dir: &Path, name: &str) -> Result<(), FileError> {
    let path = dir.join(name);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_error("remove", &path)(error))
        }
        _ => Ok(()),
    }
}

/// Creates a directory with its files: all of them or nothing. `false` if it was there already.
pub(crate) fn create_dir_whole(
    parent: &Path,
    name: &str,
    files: &[(String, Vec<u8>)],
) -> Result<bool, FileError> {
    let temporary = parent.join(format!("{TEMPORARY}{name}"));
    let mut builder = DirBuilder::new();
    builder.mode(DIR_MODE).create(&temporary).map_err(io_error("create", &temporary))?;
    for (name, bytes) in files {
        write_new(&temporary.join(name), bytes)?;
    }
    sync_dir(&temporary)?;
    let path = parent.join(name);
    // Renaming onto a directory that is not empty fails, whoever else is at work.
    match fs::rename(&temporary, &path) {
        Ok(()) => sync_dir(parent).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            fs::remove_dir_all(&temporary).map_err(io_error("remove", &temporary))?;
            Ok(false)
        }
        Err(error) => Err(io_error("create", &path)(error)),
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(FILE_MODE).open(path);
    let mut file = file.map_err(io_error("create", path))?;
    let written = file
        // The mode given to open is cut by the umask; ask for what readers will check.
        .set_permissions(Permissions::from_mode(FILE_MODE))
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| file.sync_all());
    written.map_err(io_error("write", path))
}

fn sync_dir(dir: &Path) -> Result<(), FileError> {
    let opened = File::open(dir).map_err(io_error("open", dir))?;
    opened.sync_all().map_err(io_error("sync", dir))
}
