//! Tickets: leave to write one version of one file.
//!
//! A ticket is an NDN certificate, `<content>/KEY/<keyId>/<issuerId>/v=<n>`, by which the site's
//! key says that the writer's key may sign what is below the content's name. So whoever verifies
//! packets verifies the writer's as any other's, and a stolen ticket is worth nothing without the
//! key. Its terms stand in an element of SignatureInfo that other software ignores.

use byname_catalog::EntryName;
use byname_catalog::id::{ContentId, DiskId, InodeId, LeaseEpoch};
use byname_packet::{
    ContentType, Data, DataBuilder, DecodeError, Name, SignError, Signer, ValidityPeriod, tlv,
    types,
};
use byname_security::cert::{Certificate, CertificateError, FRESHNESS_MS, KEY_COMPONENT};
use byname_security::key::{KeyId, PublicKey};
use thiserror::Error;

use crate::codec::{Fields, Writer, bad_value};
use crate::names::{DiskName, SiteName};
use crate::numbers as tag;
use crate::parts::{DISKS_MAX, entry_name};

/// Seconds before its issue from which a ticket is valid. Clocks of disks decide nothing: the head
/// says whether the attempt is open.
pub const VALIDITY_BEFORE_S: u64 = 2 * 3600;
/// Seconds after the end of the attempt until which a ticket is valid.
pub const VALIDITY_AFTER_S: u64 = 24 * 3600;

const SECOND_NS: u64 = 1_000_000_000;
/// Octets of a key's digest in names.
const KEY_ID_BYTES: usize = 8;

/// Terms of a ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The content; it is in the ticket's name.
    pub content: ContentId,
    /// Term of the head that issued it.
    pub epoch: LeaseEpoch,
    /// Most octets.
    pub size_max: u64,
    /// Receipts that the commit needs.
    pub receipt_count: u8,
    /// End of the attempt, in nanoseconds of the head's clock.
    pub expires_ns: u64,
    /// Disks that may take the content.
    pub disks: Vec<TermsDisk>,
    /// Where the file is, for a catalog that has to be rebuilt from its disks.
    pub origin: Option<Origin>,
}

/// A disk that may take the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermsDisk {
    /// The disk.
    pub name: DiskName,
    /// Its generation.
    pub generation: u64,
}

/// Where a file is, and whose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The directory.
    pub directory: InodeId,
    /// The name in it.
    pub name: EntryName,
    /// Owner.
    pub owner: String,
    /// Group.
    pub group: String,
    /// Permission bits.
    pub mode: u16,
}

/// A ticket: the packet, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    terms: Terms,
    certificate: Certificate,
}

/// Reason for which a packet is no ticket.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TicketError {
    /// It is no certificate.
    #[error("it is no certificate: {0}")]
    Certificate(#[from] CertificateError),
    /// Its namespace is no content of the site.
    #[error("{namespace} is no content of the site")]
    Namespace {
        /// Its namespace.
        namespace: Name,
    },
    /// It has no terms, or malformed ones.
    #[error("its terms are malformed: {0}")]
    Terms(#[from] DecodeError),
}

impl Ticket {
    /// Issues a ticket for a writer's key, by the site's key. The version of the certificate is
    /// `now_s`.
    ///
    /// # Errors
    /// [`SignError`] of the signer.
    pub fn issue(
        site: &SiteName,
        terms: Terms,
        writer: &PublicKey,
        now_s: u64,
        signer: &dyn Signer,
    ) -> Result<Self, SignError> {
        let KeyId(digest) = writer.key_id();
        let name = site.content(terms.content).with_generic(KEY_COMPONENT);
        let name = name.with_generic(&digest[..KEY_ID_BYTES]).with_generic(b"site");
        let name = name.with_version(now_s);
        let validity = ValidityPeriod {
            not_before_s: now_s.saturating_sub(VALIDITY_BEFORE_S),
            not_after_s: (terms.expires_ns / SECOND_NS).saturating_add(VALIDITY_AFTER_S),
        };
        let mut extension = Writer::default();
        extension.nested(tag::TERMS, |writer| write_terms(writer, &terms));
        let mut wire = Vec::new();
        DataBuilder::new(name.view())
            .content_type(ContentType::KEY)
            .freshness_ms(FRESHNESS_MS)
            .validity(validity)
            .signature_extension(&extension.0)
            .encode(&writer.to_der(), signer, &mut wire)?;
        let certificate = Certificate::decode(&wire).map_err(|_| SignError::Failed)?;
        Ok(Self { terms, certificate })
    }

    /// Takes a ticket apart. Nothing is verified.
    ///
    /// # Errors
    /// [`TicketError`] for anything that is no ticket of this site.
    pub fn decode(site: &SiteName, wire: &[u8]) -> Result<Self, TicketError> {
        let certificate = Certificate::decode(wire)?;
        let namespace = certificate.identity();
        let content = site.parse_content(namespace);
        let content =
            content.ok_or_else(|| TicketError::Namespace { namespace: namespace.to_name() })?;
        let terms = read_terms(content, signature_extension(wire)?)?;
        Ok(Self { terms, certificate })
    }

    /// The terms.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The ticket as a certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The packet.
    pub fn wire(&self) -> &[u8] {
        self.certificate.wire()
    }

    /// The terms for one disk, if it may take the content.
    pub fn disk(&self, name: &DiskName) -> Option<&TermsDisk> {
        self.terms.disks.iter().find(|disk| disk.name == *name)
    }
}

/// The value of the terms in a packet's SignatureInfo.
fn signature_extension(wire: &[u8]) -> Result<Fields<'_>, DecodeError> {
    let missing = DecodeError::Missing { element: tag::TERMS.name, within: "SignatureInfo" };
    let mut parts = tlv::Reader::new(Data::decode(wire)?.signed_portion());
    while let Some(part) = parts.read()? {
        if part.typ != types::SIGNATURE_INFO {
            continue;
        }
        let mut elements = tlv::Reader::new(part.value);
        while let Some(element) = elements.read()? {
            if element.typ == tag::TERMS.typ {
                return Ok(Fields::new(element.value, tag::TERMS.name));
            }
        }
    }
    Err(missing)
}

fn write_terms(writer: &mut Writer, terms: &Terms) {
    writer.number(tag::LEASE_EPOCH, terms.epoch);
    writer.number(tag::SIZE_MAX, terms.size_max);
    writer.number(tag::RECEIPT_COUNT, terms.receipt_count);
    writer.number(tag::EXPIRES, terms.expires_ns);
    for TermsDisk { name, generation } in &terms.disks {
        writer.nested(tag::TERMS_DISK, |writer| {
            writer.text(tag::LABEL, &name.place);
            writer.number(tag::DISK_ID, name.id);
            writer.number(tag::GENERATION, *generation);
        });
    }
    if let Some(origin) = &terms.origin {
        writer.nested(tag::ORIGIN, |writer| {
            writer.number(tag::INODE_ID, origin.directory);
            writer.octets(tag::ENTRY_NAME, origin.name.as_bytes());
            writer.text(tag::OWNER, &origin.owner);
            writer.text(tag::GROUP, &origin.group);
            writer.pair(tag::MODE, origin.mode);
        });
    }
}

fn read_terms(content: ContentId, mut fields: Fields<'_>) -> Result<Terms, DecodeError> {
    let epoch = LeaseEpoch(fields.number(tag::LEASE_EPOCH)?);
    let size_max = fields.number(tag::SIZE_MAX)?;
    let receipt_count = fields.number(tag::RECEIPT_COUNT)?;
    let expires_ns = fields.number(tag::EXPIRES)?;
    let mut disks = Vec::new();
    while let Some(mut disk) = fields.optional_nested(tag::TERMS_DISK)? {
        if disks.len() >= DISKS_MAX {
            return Err(bad_value(tag::TERMS_DISK));
        }
        let place = disk.text(tag::LABEL)?;
        let name = DiskName { place, id: DiskId(disk.number(tag::DISK_ID)?) };
        disks.push(TermsDisk { name, generation: disk.number(tag::GENERATION)? });
        disk.end_of_known()?;
    }
    let origin = fields.optional_nested(tag::ORIGIN)?.map(read_origin).transpose()?;
    fields.end_of_known()?;
    Ok(Terms { content, epoch, size_max, receipt_count, expires_ns, disks, origin })
}

fn read_origin(mut fields: Fields<'_>) -> Result<Origin, DecodeError> {
    let origin = Origin {
        directory: InodeId(fields.number(tag::INODE_ID)?),
        name: entry_name(fields.octets(tag::ENTRY_NAME)?)?,
        owner: fields.text(tag::OWNER)?,
        group: fields.text(tag::GROUP)?,
        mode: fields.pair(tag::MODE)?,
    };
    fields.end_of_known()?;
    Ok(origin)
}
