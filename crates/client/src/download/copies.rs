//! Keeping the publisher's signed packets with what was fetched, so that a copy can be served and
//! is never overwritten by an older version.
//!
//! Keeping never fails a transfer: what cannot be kept is counted. The format is
//! [`byname_transfer::copies`], the place [`byname_io::Attachments`].

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use byname_io::Attachments;
use byname_packet::{MAX_PACKET_BYTES, Name, NameRef};
use byname_transfer::copies::{self, FILE_SLOT, LISTING_SLOT, MANIFEST_SLOT};
use byname_transfer::discovery::Discovered;
use byname_transfer::request::Context;

/// Keeps packets with copies, and counts.
#[derive(Debug)]
pub struct Copies {
    attachments: Attachments,
    kept: AtomicU64,
    failed: AtomicU64,
    late: Mutex<Vec<Late>>,
}

/// Description and payload of a directory, as they are kept.
pub(crate) struct DirectoryPacket {
    slot: &'static str,
    octets: Vec<u8>,
}

impl DirectoryPacket {
    /// `None` if it proves no copy.
    pub(crate) fn new(is_manifest: bool, discovered: &Discovered, payload: &[u8]) -> Option<Self> {
        let slot = if is_manifest { MANIFEST_SLOT } else { LISTING_SLOT };
        let octets = copies::encode(discovered, Some(payload))?;
        Some(DirectoryPacket { slot, octets })
    }

    /// For the site cache.
    pub(crate) fn into_cached(self) -> byname_cache::DirectoryPacket {
        byname_cache::DirectoryPacket { slot: self.slot, octets: Arc::new(self.octets) }
    }
}

/// A file that was whole before its publisher knew its root.
#[derive(Debug)]
pub(crate) struct Late {
    pub(crate) name: Name,
    pub(crate) version: u64,
    pub(crate) path: PathBuf,
}

/// Packets of one file: its description and at most eight certificates.
const FILE_BYTES_MAX: usize = 9 * MAX_PACKET_BYTES;
/// Files whose packets are fetched at the end.
const LATE_MAX: usize = 10_000;

impl Copies {
    /// `directory` takes what file systems do not.
    pub fn new(directory: PathBuf) -> Self {
        let (kept, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        Copies { attachments: Attachments::new(directory), kept, failed, late: Mutex::default() }
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

    /// Teaches the memory which version of `name` a file is, by the packet kept with it.
    pub(crate) fn learn(&self, file: impl AsFd, name: NameRef<'_>, context: &mut Context<'_>) {
        if let Ok(Some(octets)) = self.attachments.get(file, FILE_SLOT, FILE_BYTES_MAX) {
            copies::learn(&octets, name, context);
        }
    }

    /// A description without root proves no copy: it is asked for again when all is done.
    pub(crate) fn postpone(&self, name: Name, version: u64, path: PathBuf) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        if late.len() < LATE_MAX {
            late.push(Late { name, version, path });
        } else {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The postponed ones.
    pub(crate) fn take_late(&self) -> Vec<Late> {
        std::mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps a late description, if it is one of the version that was fetched.
    pub(crate) fn keep_late(&self, late: &Late, found: Option<&Discovered>) {
        let found = found.filter(|found| found.version == late.version);
        let found = found.and_then(|found| Some((found, std::fs::File::open(&late.path).ok()?)));
        match found {
            Some((found, file)) => self.keep_file(&file, found),
            None => {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Keeps the description and payload of a directory's listing, or of its manifest.
    pub fn keep_directory(
        &self,
        directory: impl AsFd,
        is_manifest: bool,
        discovered: &Discovered,
        payload: &[u8],
    ) {
        if let Some(packet) = DirectoryPacket::new(is_manifest, discovered, payload) {
            self.keep_packet(directory, packet);
        }
    }

    pub(crate) fn keep_packet(&self, directory: impl AsFd, packet: DirectoryPacket) {
        self.keep(directory, packet.slot, Some(packet.octets));
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
