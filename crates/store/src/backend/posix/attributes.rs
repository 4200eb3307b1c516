//! Roots that travel with files: the extended attribute `user.byname.root`.
//!
//! Only where the operator asked for it. The attribute says which size, time of last change and
//! content root belong together, so that a tree that was moved or copied with its attributes
//! (`cp -a`, `rsync -aX`, `tar --xattrs`) need not be hashed again. It is a shortcut and not a
//! proof, so it is believed only where whoever could have written it could have had any content
//! signed anyway: in a file that belongs to the server's user or root and that nobody else may
//! write. Readers check every unit against the root in any case.
//!
//! Invariants: an attribute is written only to a file that is, before and after, in the state that
//! the root was computed of; it changes the file's ctime and nothing else.

use std::fs::File;
use std::os::fd::AsFd;

use byname_packet::tlv;
use byname_transfer::numbers::{CONTENT_ROOT, MTIME, SIZE};
use byname_transfer::server::{FileStat, FileState};
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::path_walk::stat_open;

/// Its name.
pub const ROOT_ATTRIBUTE: &str = "user.byname.root";
/// Octets of it that are read.
const BYTES_MAX: usize = 256;
/// Group and others may write.
const OTHERS_WRITE: u32 = 0o022;

/// True if nobody but the server's user and root can write to a file. An access list that lets
/// anybody else do so shows in the bits of the group.
fn is_ours(file: impl AsFd) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    rustix::fs::fstat(file).is_ok_and(|stat| {
        (stat.st_uid == ours || stat.st_uid == 0) && stat.st_mode & OTHERS_WRITE == 0
    })
}

fn encode(stat: &FileStat, root: &[u8; 32]) -> Vec<u8> {
    let mut out = Vec::new();
    tlv::write_nni(&mut out, SIZE, stat.state.size);
    tlv::write_nni(&mut out, MTIME, stat.mtime_ns);
    tlv::write_element(&mut out, CONTENT_ROOT, root);
    out
}

/// The root in an attribute, if it is of a file of this size and time of last change.
fn decode(octets: &[u8], stat: &FileStat) -> Option<[u8; 32]> {
    let (mut size, mut mtime_ns, mut root) = (None, None, None);
    let mut reader = tlv::Reader::new(octets);
    while let Some(element) = reader.read().ok()? {
        match element.typ {
            SIZE => size = tlv::read_nni(element.value, "Size").ok(),
            MTIME => mtime_ns = tlv::read_nni(element.value, "Mtime").ok(),
            CONTENT_ROOT => root = <[u8; 32]>::try_from(element.value).ok(),
            _ => {}
        }
    }
    let fits = size == Some(stat.state.size) && mtime_ns == Some(stat.mtime_ns);
    root.filter(|_| fits)
}

/// The root that a file's attribute gives for this state, if it is to be believed.
pub(super) fn read(file: &File, stat: &FileStat) -> Option<[u8; 32]> {
    let mut octets = [0; BYTES_MAX];
    let len = rustix::fs::fgetxattr(file, ROOT_ATTRIBUTE, &mut octets[..]).ok()?;
    let root = decode(octets.get(..len)?, stat)?;
    (is_ours(file) && is_in_state(file, &stat.state)).then_some(root)
}

fn is_in_state(file: &File, state: &FileState) -> bool {
    stat_open(file).is_ok_and(|now| now.state == *state)
}

/// Writes the attribute of a file that is in this state; gives the state that it has then, because
/// setting an attribute changes the ctime.
pub(super) fn write(file: &File, stat: &FileStat, root: &[u8; 32]) -> Option<FileState> {
    if !is_ours(file) || read(file, stat) == Some(*root) || !is_in_state(file, &stat.state) {
        return None;
    }
    match rustix::fs::fsetxattr(file, ROOT_ATTRIBUTE, &encode(stat, root), XattrFlags::empty()) {
        Ok(()) => {}
        Err(error @ (Errno::OPNOTSUPP | Errno::ROFS | Errno::ACCESS | Errno::PERM)) => {
            tracing::debug!(%error, "a file takes no attribute");
            return None;
        }
        Err(error) => {
            tracing::warn!(%error, "cannot write the attribute of a file");
            return None;
        }
    }
    let after = stat_open(file).ok()?;
    // Changed meanwhile: then the attribute does not fit and says nothing to anybody.
    let is_same = (after.state.size, after.mtime_ns) == (stat.state.size, stat.mtime_ns);
    is_same.then_some(after.state)
}

#[cfg(test)]
mod tests {
    use byname_transfer::server::Fingerprint;

    use super::*;

    fn stat(size: u64, mtime_ns: u64, other: u8) -> FileStat {
        let fingerprint = Fingerprint::new([other; 16], [other; 24]);
        let state = FileState { fingerprint, size };
        FileStat { state, mode: 0o100_644, mtime_ns, ctime_ns: Some(other.into()) }
    }

    #[test]
    fn it_counts_for_the_size_and_time_that_it_names_and_no_other() {
        let here = stat(300, 4_000_000_000, 5);
        let octets = encode(&here, &[7; 32]);
        assert_eq!(decode(&octets, &here), Some([7; 32]));
        let elsewhere = stat(300, 4_000_000_000, 9);
        assert_eq!(decode(&octets, &elsewhere), Some([7; 32]), "moved or copied");
        for other in [stat(301, 4_000_000_000, 5), stat(300, 4, 5)] {
            assert_eq!(decode(&octets, &other), None);
        }
        for end in 0..octets.len() {
            assert_eq!(decode(&octets[..end], &here), None, "cut to {end}");
        }
    }
}
