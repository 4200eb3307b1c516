//! Receipts: a disk's signed word that content is on stable storage, its vote for the commit.

use byname_catalog::Receipt;
use byname_packet::{Data, DataBuilder, DecodeError, SignError, Signer};

use crate::codec::{Fields, Writer, bad_value};
use crate::names::{DiskName, SiteName};
use crate::numbers as tag;
use crate::parts::{read_checksums, write_checksums};

/// A receipt with the name of its disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedReceipt {
    /// The disk; it is in the packet's name.
    pub disk: DiskName,
    /// What it says, as the catalog has it.
    pub receipt: Receipt,
}

impl SignedReceipt {
    /// The packet, signed by the disk.
    ///
    /// # Errors
    /// [`SignError`] of the signer.
    pub fn encode(&self, site: &SiteName, signer: &dyn Signer) -> Result<Vec<u8>, SignError> {
        let Receipt { generation, content, size, root, checksums, .. } = &self.receipt;
        let mut writer = Writer::default();
        writer.number(tag::GENERATION, *generation);
        writer.number(tag::SIZE, *size);
        writer.octets(tag::CONTENT_ROOT, root);
        write_checksums(&mut writer, *checksums);
        let name = site.receipt(&self.disk, *content);
        let mut wire = Vec::new();
        let builder = DataBuilder::new(name.view());
        builder.encode(&writer.0, signer, &mut wire)?;
        Ok(wire)
    }

    /// Takes a receipt apart. Nothing is verified.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that is no receipt of this site.
    pub fn decode(site: &SiteName, data: &Data<'_>) -> Result<Self, DecodeError> {
        let (disk, content) = site.parse_receipt(data.name).ok_or(bad_value(tag::NAME))?;
        let mut fields = Fields::new(data.content, "receipt");
        let receipt = Receipt {
            site: site.octets().to_vec(),
            disk: disk.id,
            generation: fields.number(tag::GENERATION)?,
            content,
            size: fields.number(tag::SIZE)?,
            root: fields.array(tag::CONTENT_ROOT)?,
            checksums: read_checksums(&mut fields)?,
        };
        fields.end_of_known()?;
        Ok(Self { disk, receipt })
    }
}
