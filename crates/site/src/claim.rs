//! Claims: the writer's signed word of what content is. Kept with every replica, they outlive the
//! catalog.

use byname_catalog::id::ContentId;
use byname_packet::{Data, DataBuilder, DecodeError, SignError, Signer};

use crate::codec::{Fields, Writer, bad_value};
use crate::names::SiteName;
use crate::numbers as tag;

/// What a writer says of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The content; it is in the packet's name.
    pub content: ContentId,
    /// Octets.
    pub size: u64,
    /// Root of the hash tree.
    pub root: [u8; 32],
}

impl Claim {
    /// The packet, signed with the key that has the ticket.
    ///
    /// # Errors
    /// [`SignError`] of the signer.
    pub fn encode(&self, site: &SiteName, signer: &dyn Signer) -> Result<Vec<u8>, SignError> {
        let mut writer = Writer::default();
        writer.number(tag::SIZE, self.size);
        writer.octets(tag::CONTENT_ROOT, &self.root);
        let name = site.claim(self.content);
        let mut wire = Vec::new();
        let builder = DataBuilder::new(name.view());
        builder.encode(&writer.0, signer, &mut wire)?;
        Ok(wire)
    }

    /// Takes a claim apart. Nothing is verified.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that is no claim of this site.
    pub fn decode(site: &SiteName, data: &Data<'_>) -> Result<Self, DecodeError> {
        let content = site.parse_claim(data.name).ok_or(bad_value(tag::NAME))?;
        let mut fields = Fields::new(data.content, "claim");
        let size = fields.number(tag::SIZE)?;
        let root = fields.array(tag::CONTENT_ROOT)?;
        fields.end_of_known()?;
        Ok(Self { content, size, root })
    }
}
