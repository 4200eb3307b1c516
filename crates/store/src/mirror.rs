//! Reading what was kept with copies, for mounts that are mirrors.
//!
//! The packets are the publisher's; see `byname_transfer::copies` for their form and
//! [`byname_io::Attachments`] for the place. Whether they fit the copy is for the engine to say.

use std::path::{Path, PathBuf};

use byname_io::Attachments;
use byname_packet::{ContentType, Data, Name, NameRef, SignError, Signer, signature_type};
use byname_security::tree::Tree;
use byname_transfer::copies::{FILE_SLOT, Kept, LISTING_SLOT, MANIFEST_SLOT};
use byname_transfer::server::{FileStat, KeptObject, Listing, MirrorOptions};

use crate::backend::{Backend, BackendFile, Found};

/// Entries looked at for a publisher's certificates when a mirror starts.
const ENTRIES_MAX: usize = 10_000;
/// Octets of what is kept with a file or a directory when only its certificates are wanted.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// Makes a file server a mirror.
#[derive(Debug, Clone)]
pub struct MirrorConfig {
    /// Where packets lie that the file system does not keep.
    pub copies: PathBuf,
    /// Choices about its answers.
    pub options: MirrorOptions,
}

/// Packets that were kept with an open file.
pub(crate) fn read_file(file: &dyn BackendFile, bytes_max: usize) -> Option<KeptObject> {
    decode(FILE_SLOT, file.attachment(FILE_SLOT, bytes_max), None)
}

/// Packets that were kept with the directory at `path`: its listing or manifest.
pub(crate) fn read_directory(
    backend: &dyn Backend,
    path: &[u8],
    is_manifest: bool,
    bytes_max: usize,
) -> Option<KeptObject> {
    let Ok(Found::Directory(found)) = backend.locate(path) else { return None };
    let slot = if is_manifest { MANIFEST_SLOT } else { LISTING_SLOT };
    decode(slot, found.attachment(slot, bytes_max), Some(found.stat()))
}

fn decode(
    slot: &str,
    read: std::io::Result<Option<Vec<u8>>>,
    directory: Option<FileStat>,
) -> Option<KeptObject> {
    let octets = match read {
        Ok(octets) => octets?,
        Err(error) => {
            tracing::warn!(%error, slot, "cannot read what was kept with a copy");
            return None;
        }
    };
    let kept = Kept::decode(&octets).ok()?;
    let listing = match (directory, kept.payload) {
        (None, _) => None,
        (Some(_), None) => return None,
        (Some(stat), Some(payload)) => {
            let tree = Tree::of(payload);
            let root = *tree.root.as_bytes();
            Some(Listing {
                stat,
                changes: None,
                payload: payload.to_vec(),
                root,
                levels: tree.levels,
                versioned: None,
            })
        }
    };
    let certificates = kept.certificates().map(<[u8]>::to_vec).collect();
    Some(KeptObject { packet: kept.packet.to_vec(), certificates, listing })
}

/// The publisher's certificates that were kept with the first thing of a tree that has any, with
/// the names under which they are to be found.
///
/// # Errors
/// The error of the directory itself.
pub fn certificates(directory: &Path, copies: &Path) -> std::io::Result<Vec<(Name, Vec<u8>)>> {
    let attachments = Attachments::new(copies.to_owned());
    let mut waiting = std::collections::VecDeque::from([directory.to_owned()]);
    let mut looked_at = 0;
    while let Some(path) = waiting.pop_front() {
        for slot in [MANIFEST_SLOT, LISTING_SLOT] {
            let found = certificates_of(&path, slot, &attachments);
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if path == directory => return Err(error),
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            looked_at += 1;
            if looked_at > ENTRIES_MAX {
                return Ok(Vec::new());
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push_back(entry.path()),
                Ok(kind) if kind.is_file() => {
                    let found = certificates_of(&entry.path(), FILE_SLOT, &attachments);
                    if !found.is_empty() {
                        return Ok(found);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(Vec::new())
}

fn certificates_of(path: &Path, slot: &str, attachments: &Attachments) -> Vec<(Name, Vec<u8>)> {
    let octets = std::fs::File::open(path)
        .ok()
        .and_then(|file| attachments.get(&file, slot, KEPT_BYTES_MAX).ok().flatten());
    let Some(octets) = octets else { return Vec::new() };
    let Ok(kept) = Kept::decode(&octets) else { return Vec::new() };
    let certificates = kept.certificates().filter_map(|wire| {
        let data = Data::decode(wire).ok()?;
        let is_certificate = data.meta.content_type == ContentType::KEY;
        is_certificate.then(|| (data.name.to_name(), wire.to_vec()))
    });
    certificates.collect()
}

/// The key of a mirror: none. What asks it for a signature gets an error.
#[derive(Debug)]
pub(crate) struct NoKey;

impl Signer for NoKey {
    fn signature_type(&self) -> u64 {
        signature_type::NULL
    }

    fn key_locator(&self) -> Option<NameRef<'_>> {
        None
    }

    fn signature_len_max(&self) -> usize {
        0
    }

    fn sign(&self, _parts: &[&[u8]], _out: &mut [u8]) -> Result<usize, SignError> {
        Err(SignError::Failed)
    }
}
