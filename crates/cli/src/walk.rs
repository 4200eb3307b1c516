//! Walking a published tree, and a local one beside it.

use byname_client::{Client, ClientError};
use byname_packet::Name;
use byname_transfer::naming::is_safe_entry;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One entry of a published tree.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) name: Name,
    /// Relative to the directory asked for; `None` if an entry on the way makes no safe path.
    pub(crate) path: Option<PathBuf>,
    pub(crate) is_directory: bool,
}

/// Calls `visit` for everything below `name`, each directory before what is in it; directories for
/// which it answers false are not looked into. At most one listing per level is held.
pub(crate) fn published(
    client: &mut Client,
    name: &Name,
    visit: &mut dyn FnMut(&mut Client, &Found) -> Result<bool, ClientError>,
) -> Result<(), ClientError> {
    below(client, name, Some(PathBuf::new()), visit)
}

fn below(
    client: &mut Client,
    name: &Name,
    path: Option<PathBuf>,
    visit: &mut dyn FnMut(&mut Client, &Found) -> Result<bool, ClientError>,
) -> Result<(), ClientError> {
    let listing = client.list(name)?;
    for entry in listing.entries() {
        let safe = path.as_ref().filter(|_| is_safe_entry(entry.name));
        let found = Found {
            name: name.with_generic(entry.name),
            path: safe.map(|path| path.join(OsStr::from_bytes(entry.name))),
            is_directory: entry.is_directory,
        };
        if visit(client, &found)? && found.is_directory {
            below(client, &found.name, found.path, visit)?;
        }
    }
    Ok(())
}

/// Everything below a local directory, relative to it, without following links. byname's part files
/// are left out.
pub(crate) fn local(root: &Path) -> std::io::Result<Vec<(PathBuf, std::fs::FileType)>> {
    let mut found = Vec::new();
    let mut ahead = vec![PathBuf::new()];
    while let Some(directory) = ahead.pop() {
        for entry in std::fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let path = directory.join(entry.file_name());
            if entry.file_name().as_bytes().ends_with(b".byname-part") {
                continue;
            }
            if kind.is_dir() {
                ahead.push(path.clone());
            }
            found.push((path, kind));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}
