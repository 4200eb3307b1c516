//! The contents of a disk without some that are there: those that do not fit together, on a file
//! system where they cannot be moved.

use std::collections::BTreeSet;

use byname_catalog::id::ContentId;
use byname_store::backend::posix::Posix;
use byname_store::backend::{Backend, Found, LocateError};
use byname_transfer::naming::content_path;

/// See the module.
#[derive(Debug)]
pub(crate) struct Shown {
    objects: Posix,
    hidden: BTreeSet<Vec<u8>>,
}

impl Shown {
    /// All objects but some.
    pub(crate) fn new<'a>(objects: Posix, hidden: impl Iterator<Item = &'a ContentId>) -> Self {
        let path = |content: &ContentId| content_path(content.inode.0, content.version.0);
        Self { objects, hidden: hidden.map(path).collect() }
    }
}

impl Backend for Shown {
    fn is_ready(&self, path: &[u8]) -> bool {
        self.objects.is_ready(path)
    }

    fn locate(&self, path: &[u8]) -> Result<Found, LocateError> {
        match self.hidden.contains(path) {
            true => Err(LocateError::NotFound),
            false => self.objects.locate(path),
        }
    }

    fn describe(&self, path: &[u8]) -> String {
        self.objects.describe(path)
    }
}
