//! Keeping the publisher's signed packets with what was fetched, so that a copy can be served.
//!
//! Keeping never fails a transfer: what cannot be kept is counted. The format is
//! [`byname_transfer::copies`], the place [`byname_io::Attachments`].

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use byname_io::Attachments;
use byname_transfer::copies::{self, FILE_SLOT, LISTING_SLOT, MANIFEST_SLOT};
use byname_transfer::discovery::Discovered;

/// Keeps packets with copies, and counts.
#[derive(Debug)]
pub struct Copies {
    attachments: Attachments,
    kept: AtomicU64,
    failed: AtomicU64,
}

impl Copies {
    /// `directory` takes what file systems do not.
    pub fn new(directory: PathBuf) -> Self {
        let (kept, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        Copies { attachments: Attachments::new(directory), kept, failed }
    }

    /// Packets that were kept.
    pub fn kept_count(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Packets that could not be kept: those copies cannot be served.
    pub fn failed_count(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Keeps the description of a file that is whole, with its times set.
    pub fn keep_file(&self, file: impl AsFd, discovered: &Discovered) {
        self.keep(file, FILE_SLOT, copies::encode(discovered, None));
    }

    /// Keeps the description and payload of a directory's listing, or of its manifest.
    pub fn keep_directory(
        &self,
        directory: impl AsFd,
        is_manifest: bool,
        discovered: &Discovered,
        payload: &[u8],
    ) {
        let slot = if is_manifest { MANIFEST_SLOT } else { LISTING_SLOT };
        self.keep(directory, slot, copies::encode(discovered, Some(payload)));
    }

    fn keep(&self, file: impl AsFd, slot: &str, octets: Option<Vec<u8>>) {
        let kept = match octets {
            Some(octets) => self.attachments.set(file, slot, &octets),
            None => return,
        };
        match kept {
            Ok(()) => self.kept.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                tracing::debug!(%error, slot, "the publisher's packet was not kept with the copy");
                self.failed.fetch_add(1, Ordering::Relaxed)
            }
        };
    }
}
