//! The contents of a disk without some that are there: those that do not fit together, or should be
//! gone, and could not be moved or removed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use byname_catalog::id::ContentId;
use byname_store::backend::posix::Posix;
use byname_store::backend::{Backend, Found, LocateError};
use byname_transfer::naming::content_path;

/// Contents that are there and must not be served. Clones are the same set.
#[derive(Debug, Clone, Default)]
pub struct Hidden(Arc<Mutex<BTreeSet<Vec<u8>>>>);

impl Hidden {
    pub(crate) fn new<'a>(contents: impl Iterator<Item = &'a ContentId>) -> Self {
        Self(Arc::new(Mutex::new(contents.map(path).collect())))
    }

    /// True if the content at this path, as readers name it, must not be served.
    pub fn has_path(&self, path: &[u8]) -> bool {
        self.paths().contains(path)
    }

    pub(crate) fn remove(&self, content: ContentId) {
        self.paths().remove(&path(&content));
    }

    fn paths(&self) -> MutexGuard<'_, BTreeSet<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn path(content: &ContentId) -> Vec<u8> {
    content_path(content.inode.0, content.version.0)
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) objects: Posix,
    pub(crate) hidden: Hidden,
}

impl Backend for Shown {
    fn is_ready(&self, path: &[u8]) -> bool {
        self.objects.is_ready(path)
    }

    fn locate(&self, path: &[u8]) -> Result<Found, LocateError> {
        match self.hidden.has_path(path) {
            true => Err(LocateError::NotFound),
            false => self.objects.locate(path),
        }
    }

    fn describe(&self, path: &[u8]) -> String {
        self.objects.describe(path)
    }
}
