//! Versions of a file that were replaced and are kept because its policy says so.

use crate::codec::{Decoder, Encoder, Malformed};
use crate::engine::Table;
use crate::view::Record;

/// What an inode says of old versions of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Versions {
    /// Replaced versions that are kept: of a file its own, of a directory those of files that are
    /// made in it.
    pub wanted: u8,
    /// Octets of those that there are, which count for quota.
    pub bytes: u64,
}

impl Versions {
    /// Nothing where nothing is kept, as it was before anything was.
    pub(crate) fn encode_tail(&self, encoder: &mut Encoder) {
        if self != &Self::default() {
            encoder.octet(self.wanted);
            encoder.number(self.bytes);
        }
    }

    pub(crate) fn decode_tail(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        if decoder.0.is_empty() {
            return Ok(Self::default());
        }
        Ok(Self { wanted: decoder.octet()?, bytes: decoder.number()? })
    }

    /// The same for what is made in a directory that has them.
    pub(crate) fn inherited(&self) -> Self {
        Self { wanted: self.wanted, bytes: 0 }
    }
}

/// A replaced version that is kept beyond the time of its readers. Its content is that of the row
/// with the same key among those kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldVersion {
    /// Time of last modification, in nanoseconds since 1970.
    pub modified_ns: u64,
    /// When it was replaced.
    pub replaced_ns: u64,
    /// Who replaced it.
    pub replaced_by: String,
}

impl Record for OldVersion {
    const TABLE: Table = Table::OldVersion;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.modified_ns);
        encoder.number(self.replaced_ns);
        encoder.octets(self.replaced_by.as_bytes());
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let (modified_ns, replaced_ns) = (decoder.number()?, decoder.number()?);
        Ok(Self { modified_ns, replaced_ns, replaced_by: decoder.text()? })
    }
}
