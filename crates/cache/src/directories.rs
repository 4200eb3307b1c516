//! Packets of directories, which are kept with their places in the tree.
//!
//! A directory gets its packet when the first whole file below it is placed, and not again with
//! each further one: the packet of a directory with many entries is larger than they are.

use std::path::Path;

use byname_packet::{Name, NameRef};

use crate::layout::Layout;
use crate::place::{self, Place};
use crate::version::DirectoryPacket;

/// Packets kept for files that are placed below them.
const DIRECTORIES_MAX: usize = 256;

#[derive(Debug)]
struct Directory {
    name: Name,
    packet: DirectoryPacket,
    /// The directory that has it already.
    attached: Option<Place>,
}

/// See the module. Oldest first.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    known: Vec<Directory>,
}

impl Directories {
    /// Keeps the packet of a directory, in place of its last one.
    pub(crate) fn keep(&mut self, name: Name, packet: DirectoryPacket) {
        self.known.retain(|known| known.name != name || known.packet.slot != packet.slot);
        if self.known.len() >= DIRECTORIES_MAX {
            self.known.remove(0);
        }
        self.known.push(Directory { name, packet, attached: None });
    }

    /// Attaches their packets to the directories at or above a name that do not have them yet.
    pub(crate) fn attach_above(&mut self, layout: &Layout, copies: &Path, name: NameRef<'_>) {
        for known in &mut self.known {
            if known.name.view().is_prefix_of(name) {
                let Directory { name, packet, attached } = known;
                *attached = place::attach(layout, copies, name.view(), packet, *attached);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::sync::Arc;

    use byname_io::Attachments;

    use super::*;

    #[test]
    fn a_directory_gets_its_packet_once_and_one_that_is_made_anew_again() {
        let top = tempfile::tempdir().unwrap();
        let (layout, copies) = (Layout::new(top.path()), top.path().join("copies"));
        let (name, file): (Name, Name) =
            ("/lab/run7".parse().unwrap(), "/lab/run7/file".parse().unwrap());
        let path = layout.tree().join("lab/run7");
        let held = || {
            let directory = File::open(&path).unwrap();
            Attachments::new(copies.clone()).get(&directory, "manifest", 1 << 20).unwrap()
        };
        let octets = Arc::new(vec![7; 100_000]);
        let mut directories = Directories::default();
        let packet = |octets: &Arc<Vec<u8>>| DirectoryPacket {
            slot: "manifest",
            octets: Arc::clone(octets),
        };
        directories.keep(name.clone(), packet(&octets));
        directories.attach_above(&layout, &copies, file.view());
        assert!(!copies.exists(), "there is no such directory yet");

        fs::create_dir_all(&path).unwrap();
        directories.attach_above(&layout, &copies, file.view());
        assert_eq!(held().as_ref(), Some(&*octets));
        fs::remove_dir_all(&copies).unwrap();
        directories.attach_above(&layout, &copies, file.view());
        assert_eq!(held(), None, "it is not written with each file");

        fs::rename(&path, layout.tree().join("away")).unwrap();
        fs::create_dir(&path).unwrap();
        directories.attach_above(&layout, &copies, file.view());
        assert_eq!(held().as_ref(), Some(&*octets), "another directory of that name");

        let newer = Arc::new(vec![8; 100_000]);
        directories.keep(name, packet(&newer));
        directories.attach_above(&layout, &copies, file.view());
        assert_eq!(held(), Some(newer.to_vec()));
    }
}
