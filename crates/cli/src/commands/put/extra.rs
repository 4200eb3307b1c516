//! What only the site has, which `--delete` removes.

use super::list;
use crate::commands::filter::{Candidate, Filter};
use crate::commands::writing::about;
use crate::exit::Outcome;
use crate::target::Session;
use byname_access::Tree;
use byname_catalog::{Command, Refusal};
use byname_packet::Name;
use byname_writer::Published;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Something that only the site has.
#[derive(Debug)]
pub(super) struct Extra {
    /// Relative to what is uploaded.
    pub(super) path: PathBuf,
    pub(super) published: Published,
}

/// Removal of what only the site has. What the filter leaves out stays, and so do the directories
/// that it is in.
pub(super) struct Removal<'a> {
    pub(super) tree: &'a mut Tree,
    pub(super) reader: &'a mut Session,
    pub(super) filter: &'a mut Filter,
    /// Only tell what would be removed.
    pub(super) is_dry: bool,
    /// Takes what is gone: its path, and true for a directory.
    pub(super) on_removed: &'a mut dyn FnMut(&Path, bool),
    /// Takes what could not be removed.
    pub(super) on_failed: &'a mut dyn FnMut(String),
}

impl Removal<'_> {
    /// Removes one thing with all that is in it, what is in a directory before it. False if it, or
    /// something in it, stays.
    pub(super) fn remove(&mut self, top: &Name, extra: &Extra) -> Outcome<bool> {
        let Extra { path, published } = extra;
        let is_directory = *published == Published::Directory;
        let (size, mtime_ns) = match published {
            Published::File { size, modified_ns, .. } => (*size, *modified_ns),
            _ => (None, None),
        };
        if self.filter.excludes(Candidate { path, is_directory, size, mtime_ns }) {
            return Ok(false);
        }
        let entries = path.iter().map(OsStr::as_bytes);
        let name = entries.fold(top.clone(), |name, entry| name.with_generic(entry));
        let place = self.tree.place(&name)?;
        if is_directory {
            let mut is_empty = true;
            for (entry, published) in list(self.reader, &self.tree.account().site.clone(), &place)?
            {
                let path = path.join(OsStr::from_bytes(&entry));
                is_empty &= self.remove(top, &Extra { path, published })?;
            }
            if !is_empty {
                return Ok(false);
            }
        }
        if !self.is_dry {
            let command = match is_directory {
                true => Command::RemoveDirectory { place },
                false => Command::Unlink { place },
            };
            match self.tree.execute(command)? {
                Ok(_) | Err(Refusal::NotFound) => {}
                // Something came meanwhile.
                Err(Refusal::NotEmpty) => return Ok(false),
                Err(refusal) => {
                    (self.on_failed)(about(&name, refusal).message);
                    return Ok(false);
                }
            }
        }
        (self.on_removed)(path, is_directory);
        Ok(true)
    }
}
