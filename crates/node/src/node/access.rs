//! Users who may connect to a Unix socket: its file's mode and group.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::config::SocketAccess;
use crate::error::NodeError;

/// Opens a socket's file, which is born private, to those who may connect.
pub(super) fn grant(path: &Path, access: SocketAccess) -> Result<(), NodeError> {
    let failed = |source| NodeError::Access { path: path.to_owned(), source };
    if let Some(gid) = access.gid {
        std::os::unix::fs::chown(path, None, Some(gid)).map_err(failed)?;
    }
    // In this order, so that at no moment another group has what this one is meant to have.
    if access.mode != SocketAccess::default().mode {
        std::fs::set_permissions(path, Permissions::from_mode(access.mode)).map_err(failed)?;
    }
    Ok(())
}
