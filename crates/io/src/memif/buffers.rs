//! Where the buffers of a ring are: ours at fixed places, a peer's wherever its descriptors say.

use std::ptr::NonNull;
use std::sync::Arc;

use super::error::MemifError;
use super::region::Region;
use super::ring::Descriptor;

#[derive(Debug, Clone)]
pub(super) enum Buffers {
    /// One for each slot, in our own region 0. What a peer writes into descriptors about the place
    /// is not even looked at.
    Own { region: Arc<Region>, offset: usize, buffer_bytes: usize, slots: u16 },
    /// In the regions of the peer.
    Peer(Arc<[Arc<Region>]>),
}

impl Buffers {
    /// `bytes` bytes of the buffer of a slot.
    pub(super) fn at(
        &self,
        index: u16,
        descriptor: Descriptor,
        bytes: usize,
    ) -> Result<NonNull<u8>, MemifError> {
        let found = match self {
            Buffers::Own { region, buffer_bytes, .. } => {
                let offset = self.own_offset(index);
                if bytes <= *buffer_bytes { region.at(offset, bytes) } else { None }
            }
            Buffers::Peer(regions) => {
                let region = regions.get(usize::from(descriptor.region));
                region.and_then(|it| it.at(descriptor.offset as usize, bytes))
            }
        };
        found.ok_or(MemifError::Descriptor {
            slot: index,
            region: descriptor.region,
            offset: descriptor.offset,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        })
    }

    /// The descriptor of one of our buffers, empty.
    pub(super) fn own_descriptor(&self, index: u16) -> Option<Descriptor> {
        let Buffers::Own { buffer_bytes, .. } = self else { return None };
        let fits = "a region of ours is smaller than 4 GiB";
        let offset = u32::try_from(self.own_offset(index)).expect(fits);
        let bytes = u32::try_from(*buffer_bytes).expect(fits);
        Some(Descriptor { flags: 0, region: 0, bytes, offset })
    }

    fn own_offset(&self, index: u16) -> usize {
        match self {
            Buffers::Own { offset, buffer_bytes, slots, .. } => {
                offset + usize::from(index & (slots - 1)) * buffer_bytes
            }
            Buffers::Peer(_) => 0,
        }
    }
}
