//! Listings and manifests of what is on the disk, as a file server reads them from a directory.

use byname_packet::Name;
use byname_security::tree::Tree;
use byname_transfer::listing::{self, write_entry};
use byname_transfer::manifest::{self, Entry, Version, write_header};
use byname_transfer::naming;
use byname_transfer::server::{
    FileStat, ListFailure, Listing, Quiet, Record, RecordKey, Subject, next_version,
};

use crate::disk::{Child, Disk, File};

/// Files up to this size are hashed for a manifest.
const HASHED_BYTES_MAX: u64 = 128 << 10;

/// Which manifest is wanted.
pub(super) struct Wanted {
    pub(super) path: Vec<u8>,
    pub(super) name: Name,
    pub(super) bytes_max: usize,
    pub(super) quiet: Quiet,
    pub(super) signature_bytes: usize,
    pub(super) unix_ns: u64,
}

/// The plain listing of a directory.
pub(super) fn list(disk: &Disk, path: &[u8], bytes_max: usize) -> Result<Listing, ListFailure> {
    let stat = disk.find_directory(path).ok_or(ListFailure::NotFound)?;
    let mut payload = Vec::new();
    for (name, child) in disk.children(path) {
        let is_directory = matches!(child, Child::Directory(_));
        write_entry(&mut payload, listing::Entry { name: &name, is_directory });
    }
    whole(stat, payload, bytes_max)
}

/// The manifest of a directory. Versions that its files get are durable then.
pub(super) fn describe(disk: &mut Disk, wanted: &Wanted) -> Result<Listing, ListFailure> {
    let stat = disk.find_directory(&wanted.path).ok_or(ListFailure::NotFound)?;
    let children = disk.children(&wanted.path);
    let mut payload = Vec::new();
    write_header(&mut payload, children.len() as u64);
    for (name, child) in &children {
        let (stat, size, version) = match child {
            Child::Directory(stat) => (*stat, None, None),
            Child::File(file) => (file.stat(), Some(file.size), version(disk, wanted, name, file)),
        };
        let mtime_ns = Some(stat.mtime_ns);
        let entry = Entry { mtime_ns, size, version, ..Entry::new(name, stat.mode) };
        entry.encode(&mut payload);
    }
    debug_assert!(manifest::check(&payload).is_ok(), "children are sorted and their names safe");
    whole(stat, payload, wanted.bytes_max)
}

fn whole(stat: FileStat, payload: Vec<u8>, bytes_max: usize) -> Result<Listing, ListFailure> {
    if payload.len() > bytes_max {
        return Err(ListFailure::TooLarge);
    }
    let tree = Tree::of(&payload);
    let (root, levels) = (*tree.root.as_bytes(), tree.levels);
    Ok(Listing { stat, changes: None, payload, root, levels, versioned: None })
}

/// The version of a file in its state, made durable; none while it is too young for one.
fn version(disk: &mut Disk, wanted: &Wanted, name: &[u8], file: &File) -> Option<Version> {
    let named = wanted.name.with_generic(name);
    let key = RecordKey { name: named.view().value().to_vec(), listing: false };
    let stat = file.stat();
    let subject = Subject::File(stat.state.fingerprint);
    let recalled = disk.recall(&key, Some(&stat.state));
    let number = match recalled.record.filter(|record| record.subject == subject) {
        Some(record) => record.version,
        None => {
            if wanted.quiet.unsettled_ns(&stat, wanted.unix_ns, 0) > 0 {
                return None;
            }
            let version = next_version(stat.mtime_ns, &recalled);
            disk.announce(key, Record { subject, version }).then_some(version)?
        }
    };
    let mut root = recalled.root;
    if file.size <= HASHED_BYTES_MAX && root.is_none() {
        let tree = file.tree();
        let computed = *tree.root.as_bytes();
        root = disk.keep_tree(stat.state, tree).then_some(computed);
    }
    let octets = named.with_version(number).view().value().len() + wanted.signature_bytes;
    let segment_bytes = naming::segment_size_for(octets)? as u64;
    Some(Version { number, segment_bytes, root })
}
