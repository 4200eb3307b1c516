//! The catalog as a back-end of the file server: paths are looked up, nothing is read here.

use std::fmt;
use std::sync::Arc;

use byname_catalog::engine::{Engine, EngineError};
use byname_catalog::{Caller, Failure, Reader, Refusal};
use byname_site::SiteName;
use byname_store::backend::{
    Backend, BackendFile, Directory, Found, ListingKind, LocateError, TakeEntry,
};
use byname_transfer::server::{FileStat, ListFailure, Listing};

use crate::describe::{Described, Describer};

/// Times that a state is read while another head changes it.
const TRIES_MAX: u32 = 4;

/// Reads from one committed state; anew, if another head has changed meanwhile what is asked for.
pub(crate) fn steady<T>(
    engine: &dyn Engine,
    read: impl Fn(&Reader<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut tries = 0;
    loop {
        tries += 1;
        match Reader::new(engine, &Caller::Head).and_then(|reader| read(&reader)) {
            Err(Failure::Engine(EngineError::Conflict)) if tries < TRIES_MAX => {}
            result => return result,
        }
    }
}

/// The tree of a site. Names and attributes are there for whoever asks: the head reads.
pub struct CatalogBackend {
    site: SiteName,
    engine: Arc<dyn Engine>,
    /// The engine may be away and come back, or another head may reach it.
    is_shared: bool,
}

impl CatalogBackend {
    /// The tree of a site in an engine.
    pub fn new(site: SiteName, engine: Arc<dyn Engine>) -> Self {
        Self { site, engine, is_shared: false }
    }

    /// Says nothing while the engine is away, instead of that it fails.
    #[must_use]
    pub fn shared(self, is_shared: bool) -> Self {
        Self { is_shared, ..self }
    }

    fn described(&self, path: &[u8]) -> Result<Described, Failure> {
        steady(&*self.engine, |reader| Describer::new(&self.site, reader).path(path))
    }
}

impl fmt::Debug for CatalogBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogBackend").field("site", &self.site).finish_non_exhaustive()
    }
}

impl Backend for CatalogBackend {
    /// A lookup is a few rows that the engine mostly has in memory.
    fn is_ready(&self, _path: &[u8]) -> bool {
        true
    }

    fn locate(&self, path: &[u8]) -> Result<Found, LocateError> {
        match self.described(path) {
            Ok(Described::Object(metadata)) => Ok(Found::Described(metadata)),
            Ok(Described::Directory(stat)) => Ok(Found::Directory(Box::new(Located(stat)))),
            Err(Failure::Refused(Refusal::AccessDenied)) => Err(LocateError::NoPermission),
            Err(Failure::Refused(_)) => Err(LocateError::NotFound),
            // A signed failure would end a reader that waits.
            Err(Failure::Engine(error @ (EngineError::Conflict | EngineError::Failed(_))))
                if self.is_shared =>
            {
                Err(LocateError::Unavailable(std::io::Error::other(error)))
            }
            Err(Failure::Engine(error)) => Err(LocateError::Failed(std::io::Error::other(error))),
        }
    }

    fn versioned_listing(
        &self,
        path: &[u8],
        kind: ListingKind,
        bytes_max: usize,
    ) -> Option<Result<Listing, ListFailure>> {
        // What another head changed meanwhile is read again.
        for _ in 0..TRIES_MAX {
            let Ok(reader) = Reader::new(&*self.engine, &Caller::Head) else { break };
            let describer = Describer::new(&self.site, &reader);
            let listed = match kind {
                ListingKind::Names => describer.listing(path, bytes_max),
                ListingKind::Manifest => describer.manifest(path, bytes_max),
            };
            if !matches!(listed, Err(ListFailure::Unavailable)) {
                return Some(listed);
            }
        }
        Some(Err(match self.is_shared {
            true => ListFailure::Unavailable,
            false => ListFailure::Failed,
        }))
    }

    fn describe(&self, path: &[u8]) -> String {
        String::from_utf8_lossy(path).into_owned()
    }
}

/// A directory of the catalog, of which whole snapshots are made.
#[derive(Debug)]
struct Located(FileStat);

impl Directory for Located {
    fn stat(&self) -> FileStat {
        self.0
    }

    /// Not called: snapshots are made whole.
    fn list(&self, _wants_stat: bool, _take: &mut TakeEntry<'_>) -> Result<(), ListFailure> {
        Err(ListFailure::Failed)
    }

    fn is_unchanged(&self) -> bool {
        true
    }

    fn open(&self, _name: &[u8]) -> Option<Arc<dyn BackendFile>> {
        None
    }
}
