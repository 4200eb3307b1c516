//! Walking a published tree, and a local one beside it.

use crate::progress::ListingNotices;
use byname_client::{Client, ClientError, ListedEntry};
use byname_packet::Name;
use byname_transfer::manifest::Entry;
use byname_transfer::naming::is_safe_entry;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One entry of a published tree.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) name: Name,
    /// Relative to the directory asked for; `None` if an entry on the way makes no safe path.
    pub(crate) path: Option<PathBuf>,
    pub(crate) is_directory: bool,
    /// The entry of the directory's manifest, if it was asked for and the publisher has one.
    pub(crate) details: Option<Entry<'a>>,
    /// Links that were followed on the way to it.
    pub(crate) links: u8,
}

impl<'a> Found<'a> {
    /// Target of the symbolic link that it is.
    pub(crate) fn link_target(&self) -> Option<&'a [u8]> {
        self.details?.attributes.link_target
    }
}

/// Detail that is wanted of each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Names,
    Details,
}

/// Takes an entry; true to descend into it.
type Visit<'a> = dyn FnMut(&mut Client, &Found<'_>) -> Result<bool, ClientError> + 'a;

/// Calls `visit` for everything below `name`, each directory before what is in it; directories for
/// which it answers false are not entered, and links as well. At most one listing per level is
/// held.
pub(crate) fn published(
    client: &mut Client,
    name: &Name,
    wanted: Wanted,
    visit: &mut Visit<'_>,
) -> Result<(), ClientError> {
    let place = Place { path: Some(PathBuf::new()), links: 0 };
    below(client, name, place, wanted, visit)
}

/// Place of a directory below the one asked for.
struct Place {
    path: Option<PathBuf>,
    links: u8,
}

fn below(
    client: &mut Client,
    name: &Name,
    Place { path, links }: Place,
    wanted: Wanted,
    visit: &mut Visit<'_>,
) -> Result<(), ClientError> {
    let listing = match wanted {
        Wanted::Names => client.list_watched(name, &mut ListingNotices)?,
        Wanted::Details => client.list_resolved_watched(name, &mut ListingNotices)?,
    };
    for ListedEntry { entry, details } in listing.listed() {
        let safe = path.as_ref().filter(|_| is_safe_entry(entry.name));
        let found = Found {
            name: name.with_generic(entry.name),
            path: safe.map(|path| path.join(OsStr::from_bytes(entry.name))),
            is_directory: entry.is_directory,
            details,
            links,
        };
        let is_link = found.link_target().is_some();
        if visit(client, &found)? && (found.is_directory || is_link) {
            let links = links.saturating_add(u8::from(is_link));
            below(client, &found.name, Place { path: found.path, links }, wanted, visit)?;
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
