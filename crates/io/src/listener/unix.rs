//! The file of a listening Unix socket: private from its first moment, and never another's.
//!
//! Two processes that find the same stale file must not delete each other's fresh one, so looking,
//! deleting, binding and listening happen under a lock on the directory.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, fchmod, flock};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::bind::bind_error;
use crate::connection::peer_credentials;
use crate::endpoint::{Endpoint, UNIX_PATH_BYTES_MAX};
use crate::error::{BindError, EndpointError};
use crate::port_owner::{self, PortOwner};

/// Connections that wait for `accept`.
const BACKLOG: i32 = 1024;

/// Number and length of waits for somebody else's lock on the directory. After
/// that it is ignored: a stranger's lock on /tmp must not keep us from starting.
const LOCK_ATTEMPTS_MAX: usize = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// A socket file we made.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// The state of a path.
enum Occupant {
    Nobody,
    Stale,
    Live(Option<PortOwner>),
}

/// Listens at `path`, replacing a socket that nobody answers.
pub(super) fn bind(
    endpoint: &Endpoint,
    path: &Path,
    kind: Type,
) -> Result<(Socket, SocketFile), BindError> {
    let failed = |operation| move |error| bind_error(endpoint, operation, error);
    if path.as_os_str().len() > UNIX_PATH_BYTES_MAX {
        let path = path.to_owned();
        return Err(EndpointError::PathTooLong { path, max: UNIX_PATH_BYTES_MAX }.into());
    }
    let parent = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed("mkdir"))?;
    let _lock = lock(parent);
    match occupant(endpoint, path, kind)? {
        Occupant::Nobody => {}
        Occupant::Stale => remove(path).map_err(failed("unlink"))?,
        Occupant::Live(owner) => {
            return Err(BindError::InUse { uri: endpoint.to_string(), owner });
        }
    }
    let socket = new_socket(kind).map_err(failed("socket"))?;
    // On Linux the file gets the mode of the socket's own inode, less the umask, in the same step
    // that creates it: there is no moment in which others could connect.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)
        .map_err(|e| bind_error(endpoint, "fchmod", e.into()))?;
    let address = SockAddr::unix(path).map_err(failed("address"))?;
    socket.bind(&address).map_err(failed("bind"))?;
    let file = SocketFile::of(path).map_err(failed("stat"))?;
    socket.listen(BACKLOG).map_err(failed("listen"))?;
    Ok((socket, file))
}

fn new_socket(kind: Type) -> io::Result<Socket> {
    Socket::new(Domain::UNIX, kind.nonblocking(), None)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn occupant(endpoint: &Endpoint, path: &Path, kind: Type) -> Result<Occupant, BindError> {
    let failed = |operation| move |error| bind_error(endpoint, operation, error);
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {}
        Ok(_) => return Err(BindError::NotASocket { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Occupant::Nobody),
        Err(error) => return Err(failed("stat")(error)),
    }
    let probe = new_socket(kind).map_err(failed("socket"))?;
    let address = SockAddr::unix(path).map_err(failed("address"))?;
    match probe.connect(&address) {
        Ok(()) => {
            let pid = peer_credentials(&probe).and_then(|peer| peer.pid);
            Ok(Occupant::Live(pid.map(port_owner::process)))
        }
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => Ok(Occupant::Stale),
            io::ErrorKind::NotFound => Ok(Occupant::Nobody),
            io::ErrorKind::PermissionDenied => Err(failed("connect")(error)),
            // A full queue of waiting connections, or a socket of another type: in use.
            _ => Ok(Occupant::Live(None)),
        },
    }
}

/// An exclusive lock on a directory, held until the file is dropped.
fn lock(directory: &Path) -> Option<File> {
    let file = File::open(directory).ok()?;
    for _ in 0..LOCK_ATTEMPTS_MAX {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(file),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {
                thread::sleep(LOCK_PAUSE);
            }
            Err(_) => return None,
        }
    }
    None
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        let found = fs::symlink_metadata(path)?;
        Ok(SocketFile { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }

    pub(super) fn is_ours(&self) -> bool {
        let same = |found: Metadata| found.dev() == self.device && found.ino() == self.inode;
        fs::symlink_metadata(&self.path).is_ok_and(same)
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _lock = self.path.parent().and_then(lock);
        if self.is_ours() {
            let _ = fs::remove_file(&self.path);
        }
    }
}
