//! Proofs that a content is there, made of its octets as they are read for it: nothing that was
//! kept beside them helps.

use std::io;

use byname_catalog::id::ContentId;
use byname_packet::Name;
use byname_security::tree;

use crate::directory::DiskDirectory;

/// A proof that the head wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofWork {
    /// The name of the order's Interest.
    pub name: Name,
    /// The content.
    pub content: ContentId,
    /// Its octets.
    pub size: u64,
    /// What draws those that are shown.
    pub challenge: [u8; 32],
}

impl ProofWork {
    /// Makes it of what lies on the disk; `None` if that cannot be read to its end.
    pub fn carry_out(&self, directory: &DiskDirectory) -> Option<Vec<u8>> {
        let mut read = |offset: u64, into: &mut [u8]| -> io::Result<()> {
            let octets = directory.read_object(self.content, offset, into.len())?;
            if octets.len() != into.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            into.copy_from_slice(&octets);
            Ok(())
        };
        tree::prove(&self.challenge, self.size, &mut read)
            .inspect_err(|error| {
                let (inode, version) = (self.content.inode.0, self.content.version.0);
                tracing::warn!(%error, inode, version, "a content cannot be proved");
            })
            .ok()
    }
}
