//! Directories that were made for nothing, because a filter left out all that is in them.
//!
//! A directory lives as long as its cursor and the directories below it. The last of them to go
//! takes it off the disk again if it was made by this run and nothing was meant for it.

use std::cell::Cell;
use std::ffi::OsString;
use std::rc::Rc;

use crate::download::disk_queue::DiskQueue;
use crate::download::local_dir::LocalDir;

/// A directory below the target that is removed unless something is fetched into it.
pub(crate) struct PrunedDir {
    above: Option<Rc<PrunedDir>>,
    parent: LocalDir,
    name: OsString,
    /// One queue for the whole tree, so that a directory goes before the one that it is in.
    disk: DiskQueue,
    is_new: Cell<bool>,
    is_needed: Cell<bool>,
}

impl PrunedDir {
    pub(super) fn new(
        above: Option<Rc<PrunedDir>>,
        (parent, name): (LocalDir, OsString),
        disk: DiskQueue,
    ) -> Rc<Self> {
        let (is_new, is_needed) = (Cell::new(false), Cell::new(false));
        Rc::new(PrunedDir { above, parent, name, disk, is_new, is_needed })
    }

    /// It was made by this run.
    pub(super) fn set_new(&self) {
        self.is_new.set(true);
    }

    /// Something goes into it, and so into those that it is in.
    pub(super) fn set_needed(&self) {
        let mut current = Some(self);
        while let Some(directory) = current.filter(|directory| !directory.is_needed.get()) {
            directory.is_needed.set(true);
            current = directory.above.as_deref();
        }
    }
}

impl Drop for PrunedDir {
    fn drop(&mut self) {
        if self.is_new.get() && !self.is_needed.get() {
            let (parent, name) = (self.parent.clone(), std::mem::take(&mut self.name));
            self.disk.post(move |_| parent.remove_empty(&name));
        }
    }
}
