//! Orders to list what a disk has, by the head, and the pages that answer them.
//!
//! ```text
//! Interest  <disk>/list/<digest>, signed by the site's key
//! parameters = LeaseEpoch Generation [Reread] [ContentId]
//! content    = (LeaseEpoch 0*64Listed [Last]) / Refused
//! ```
//! A page begins after the ContentId and is in the order of contents. With Reread, each root is
//! that of the octets as they are read now; without, the one that the disk keeps beside them.

use byname_catalog::id::{ContentId, LeaseEpoch};
use byname_packet::{Data, DecodeError, Interest, InterestBuilder, NameRef, SignError, Signer};
use byname_security::trust::Validator;

use super::answer::{decode_refusal, sign};
use super::{DiskRefusal, DiskView, signed_by_head};
use crate::authentic::Check;
use crate::codec::{Fields, Writer, bad_value};
use crate::names::{DiskName, SiteName};
use crate::numbers as tag;
use crate::parts::{read_content_id, write_content_id};
use crate::stamp::Stamp;

/// Most contents in a page.
pub const LISTED_MAX: usize = 64;

/// An order to list contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Term of the head.
    pub epoch: LeaseEpoch,
    /// Generation of the disk.
    pub generation: u64,
    /// The octets are read and hashed anew.
    pub is_reread: bool,
    /// The page begins after this; at the beginning if absent.
    pub after: Option<ContentId>,
}

/// A content that a disk has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// Which.
    pub content: ContentId,
    /// Octets.
    pub size: u64,
    /// Root of the hash tree.
    pub root: [u8; 32],
}

/// Answer to an order to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListAnswer {
    /// A page.
    Page {
        /// The highest epoch that the disk has seen.
        epoch: LeaseEpoch,
        /// Contents in ascending order, 64 at most.
        contents: Vec<Listed>,
        /// Nothing comes after them.
        is_last: bool,
    },
    /// There is none.
    Refused(DiskRefusal),
}

impl List {
    /// The Interest to one disk, signed by the site's key.
    ///
    /// # Errors
    /// [`SignError`] of the signer.
    pub fn encode(
        &self,
        site: &SiteName,
        disk: &DiskName,
        signer: &dyn Signer,
        stamp: Stamp,
    ) -> Result<Vec<u8>, SignError> {
        let mut writer = Writer::default();
        writer.number(tag::LEASE_EPOCH, self.epoch);
        writer.number(tag::GENERATION, self.generation);
        writer.flag(tag::REREAD, self.is_reread);
        if let Some(after) = self.after {
            write_content_id(&mut writer, after);
        }
        let name = site.list(disk);
        let builder = InterestBuilder::new(name.view()).application_parameters(&writer.0);
        stamp.sign(&builder, signer)
    }

    /// Takes an order apart. Nothing is verified.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that is no such order to a disk of this site.
    pub fn decode(
        site: &SiteName,
        interest: &Interest<'_>,
    ) -> Result<(DiskName, Self), DecodeError> {
        let disk = site.parse_list(interest.name).ok_or(bad_value(tag::NAME))?;
        let mut fields = Fields::new(interest.application_parameters.unwrap_or_default(), "list");
        let epoch = LeaseEpoch(fields.number(tag::LEASE_EPOCH)?);
        let generation = fields.number(tag::GENERATION)?;
        let is_reread = fields.flag(tag::REREAD)?;
        let after = fields.peek()?.map(|_| read_content_id(&mut fields)).transpose()?;
        fields.end()?;
        Ok((disk, Self { epoch, generation, is_reread, after }))
    }

    /// Everything that can be checked without a look at the disk: that the site's key signed it,
    /// for this generation, by a head that has not lost the lease.
    pub fn check(
        &self,
        site: &SiteName,
        interest: &Interest<'_>,
        disk: DiskView<'_>,
        (validator, now_s): (&mut Validator, u64),
    ) -> Check<(), DiskRefusal> {
        match signed_by_head(site, interest, validator, now_s) {
            Check::Accepted(()) => disk.check_term(self.epoch, self.generation),
            other => other,
        }
    }
}

impl ListAnswer {
    /// The packet, signed by the disk.
    ///
    /// # Errors
    /// [`SignError`] of the signer.
    pub fn encode(&self, name: NameRef<'_>, signer: &dyn Signer) -> Result<Vec<u8>, SignError> {
        let mut writer = Writer::default();
        match self {
            Self::Page { epoch, contents, is_last } => {
                writer.number(tag::LEASE_EPOCH, *epoch);
                for Listed { content, size, root } in contents {
                    writer.nested(tag::LISTED, |writer| {
                        write_content_id(writer, *content);
                        writer.number(tag::SIZE, *size);
                        writer.octets(tag::CONTENT_ROOT, root);
                    });
                }
                writer.flag(tag::LAST, *is_last);
            }
            Self::Refused(refusal) => writer.number(tag::REFUSED, *refusal as u8),
        }
        sign(name, true, &writer, signer)
    }

    /// Takes an answer apart. Nothing is verified.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that is no answer, also if its contents do not ascend.
    pub fn decode(data: &Data<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::new(data.content, "answer to a list");
        if let Some(refusal) = decode_refusal(&mut fields)? {
            fields.end_of_known()?;
            return Ok(Self::Refused(refusal));
        }
        let epoch = LeaseEpoch(fields.number(tag::LEASE_EPOCH)?);
        let mut contents: Vec<Listed> = Vec::new();
        while let Some(mut listed) = fields.optional_nested(tag::LISTED)? {
            let content = read_content_id(&mut listed)?;
            let (size, root) = (listed.number(tag::SIZE)?, listed.array(tag::CONTENT_ROOT)?);
            listed.end_of_known()?;
            let ascends = contents.last().is_none_or(|last| last.content < content);
            if contents.len() >= LISTED_MAX || !ascends {
                return Err(bad_value(tag::LISTED));
            }
            contents.push(Listed { content, size, root });
        }
        let is_last = fields.flag(tag::LAST)?;
        fields.end_of_known()?;
        // An empty page that is not the last would be asked for again for ever.
        if contents.is_empty() && !is_last {
            return Err(bad_value(tag::LISTED));
        }
        Ok(Self::Page { epoch, contents, is_last })
    }
}
