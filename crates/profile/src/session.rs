//! A client's session that keeps the versions it has seen, so that a later run is not given older
//! ones.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use byname_cache::Cache;
use byname_packet::Name;

use crate::error::ProfileError;
use crate::seen::{SeenVersions, snapshot};

/// A session of [`byname_client`], used as one. Versions seen are kept when this is dropped; a
/// program that runs for long calls [`keep_versions`](Session::keep_versions) now and then.
#[derive(Debug)]
pub struct Session {
    name: Name,
    client: byname_client::Session,
    seen: Mutex<SeenVersions>,
    cache: Option<Cache>,
    /// Versions were kept before.
    has_kept: AtomicBool,
}

impl Session {
    pub(crate) fn new(
        name: Name,
        client: byname_client::Session,
        seen: SeenVersions,
        cache: Option<Cache>,
    ) -> Self {
        let has_kept = AtomicBool::new(false);
        Self { name, client, seen: Mutex::new(seen), cache, has_kept }
    }

    /// The name that was opened: what to list, and what names of files begin with.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The site cache that it reads through, if it does.
    pub fn cache(&self) -> Option<&Cache> {
        self.cache.as_ref()
    }

    /// Keeps the versions seen so far.
    ///
    /// # Errors
    /// [`ProfileError::Seen`] if the disk refuses, [`ProfileError::Client`] if the session has
    /// ended.
    pub fn keep_versions(&self) -> Result<(), ProfileError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = seen.kept();
        // Copied: the disk must not hold up the session's thread.
        let learned = self.client.with_versions(move |memory| snapshot(memory, kept))?;
        learned.map_or(Ok(()), |learned| seen.save_snapshot(learned))?;
        self.has_kept.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Deref for Session {
    type Target = byname_client::Session;

    fn deref(&self) -> &Self::Target {
        &self.client
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        match self.keep_versions() {
            Ok(()) => {}
            // Whoever stops a session keeps them before; afterwards it cannot be asked.
            Err(error) if self.has_kept.load(Ordering::Relaxed) => {
                tracing::debug!(%error, "versions seen are not kept again");
            }
            Err(error) => tracing::warn!(%error, "versions seen will not be remembered"),
        }
    }
}
