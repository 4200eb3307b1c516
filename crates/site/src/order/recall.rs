//! Orders to give back what a catalog is made again from, by whoever has the site's key: rows that
//! were kept, and records of contents.
//!
//! ```text
//! Interest  <disk>/recall/<digest>, signed by the site's key
//! parameters = [Edition Offset] / [ContentId]
//! content    = Copies / Octets / Record / Refused
//! ```
//! They have no epoch: whoever makes the catalog again does not know it yet, and changes nothing.
//! The same answers tell a head what was kept.

use byname_catalog::Checksums;
use byname_catalog::id::{ContentId, LeaseEpoch, TransactionNumber};
use byname_packet::{Data, DecodeError, Interest, InterestBuilder, NameRef, SignError, Signer};
use byname_security::trust::Validator;

use super::answer::{decode_refusal, sign};
use super::{CopyPoint, DiskRefusal, signed_by_head};
use crate::authentic::Check;
use crate::codec::{Fields, Writer, bad_length, bad_value};
use crate::names::{DiskName, SiteName};
use crate::numbers as tag;
use crate::parts::{read_checksums, read_content_id, write_checksums, write_content_id};
use crate::stamp::Stamp;

/// Most octets of a copy in an answer.
pub const COPY_PAGE_BYTES: usize = 6144;

/// An order to give something back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recall {
    /// What there is.
    State,
    /// What is stored of a copy, from a place in it.
    Copy {
        /// The copy.
        edition: u64,
        /// The place.
        offset: u64,
    },
    /// The record of a content.
    Record(ContentId),
}

/// A copy of the catalog's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CatalogCopy {
    /// Its number.
    pub edition: u64,
    /// Octets of rows.
    pub length: u64,
    /// Octets of rows up to where they were first complete; 0 before.
    pub base: u64,
    /// Octets on the disk: the orders, as they are read back.
    pub stored: u64,
    /// Where among these the last order begins.
    pub last: u64,
    /// Digest of the rows, as in [`CopyPoint`].
    pub digest: [u8; 32],
    /// The transaction of the last complete state in it; 0 if there is none.
    pub through: TransactionNumber,
}

/// What a disk can give back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyState {
    /// The highest epoch that the disk has seen.
    pub epoch: LeaseEpoch,
    /// Generation of the disk.
    pub generation: u64,
    /// The highest number of a content that it has or had.
    pub highest: u64,
    /// The copy that has a complete state.
    pub complete: Option<CatalogCopy>,
    /// A later one that has none yet.
    pub building: Option<CatalogCopy>,
}

/// What a disk keeps beside a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRecord {
    /// The head has said that the content is part of the site.
    pub is_settled: bool,
    /// Checksums of the whole, computed by the disk.
    pub checksums: Checksums,
    /// The ticket it was written by.
    pub ticket: Vec<u8>,
    /// The writer's claim.
    pub claim: Vec<u8>,
}

/// Answer to an order to keep, or to give something back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyAnswer {
    /// What there is, on stable storage.
    State(CopyState),
    /// Octets of a copy; none behind its end.
    Octets(Vec<u8>),
    /// A record.
    Record(Box<KeptRecord>),
    /// It is not done.
    Refused(DiskRefusal),
}

impl CatalogCopy {
    /// The place behind its last order.
    pub fn end(&self) -> CopyPoint {
        CopyPoint { length: self.length, digest: self.digest, through: self.through }
    }
}

impl Recall {
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
        match self {
            Self::State => {}
            Self::Copy { edition, offset } => {
                writer.number(tag::EDITION, *edition);
                writer.number(tag::OFFSET, *offset);
            }
            Self::Record(content) => write_content_id(&mut writer, *content),
        }
        let name = site.recall(disk);
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
        let disk = site.parse_recall(interest.name).ok_or(bad_value(tag::NAME))?;
        let parameters = interest.application_parameters.unwrap_or_default();
        let mut fields = Fields::new(parameters, "recall");
        let order = if let Some(edition) = fields.optional_number(tag::EDITION)? {
            Self::Copy { edition, offset: fields.number(tag::OFFSET)? }
        } else if fields.peek()?.is_some() {
            Self::Record(read_content_id(&mut fields)?)
        } else {
            Self::State
        };
        fields.end()?;
        Ok((disk, order))
    }

    /// Checks that the site's key signed it.
    pub fn check(
        site: &SiteName,
        interest: &Interest<'_>,
        (validator, now_s): (&mut Validator, u64),
    ) -> Check<(), DiskRefusal> {
        signed_by_head(site, interest, validator, now_s)
    }
}

impl CopyAnswer {
    /// The packet, signed by the disk.
    ///
    /// # Errors
    /// [`SignError`]; `TooLarge` for a record that fits no packet.
    pub fn encode(&self, name: NameRef<'_>, signer: &dyn Signer) -> Result<Vec<u8>, SignError> {
        let mut writer = Writer::default();
        match self {
            Self::State(state) => writer.nested(tag::COPIES, |writer| write_state(writer, state)),
            Self::Octets(octets) => writer.octets(tag::OCTETS, octets),
            Self::Record(record) => writer.nested(tag::RECORD, |writer| {
                writer.flag(tag::SETTLED, record.is_settled);
                write_checksums(writer, record.checksums);
                writer.0.extend_from_slice(&record.ticket);
                writer.0.extend_from_slice(&record.claim);
            }),
            Self::Refused(refusal) => writer.number(tag::REFUSED, *refusal as u8),
        }
        sign(name, false, &writer, signer)
    }

    /// Takes an answer apart. Nothing is verified.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that is no answer.
    pub fn decode(data: &Data<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::new(data.content, "answer about a copy");
        let answer = if let Some(refusal) = decode_refusal(&mut fields)? {
            Self::Refused(refusal)
        } else if let Some(mut record) = fields.optional_nested(tag::RECORD)? {
            let is_settled = record.flag(tag::SETTLED)?;
            let checksums = read_checksums(&mut record)?;
            let ticket = record.wire(tag::DATA)?.to_vec();
            let claim = record.wire(tag::DATA)?.to_vec();
            record.end_of_known()?;
            Self::Record(Box::new(KeptRecord { is_settled, checksums, ticket, claim }))
        } else if let Some(octets) = fields.optional(tag::OCTETS)? {
            if octets.len() > COPY_PAGE_BYTES {
                return Err(bad_length(octets, tag::OCTETS));
            }
            Self::Octets(octets.to_vec())
        } else {
            Self::State(read_state(fields.nested(tag::COPIES)?)?)
        };
        fields.end_of_known()?;
        Ok(answer)
    }
}

fn write_state(writer: &mut Writer, state: &CopyState) {
    writer.number(tag::LEASE_EPOCH, state.epoch);
    writer.number(tag::GENERATION, state.generation);
    writer.number(tag::HIGHEST, state.highest);
    for (tag, copy) in [(tag::COMPLETE, state.complete), (tag::BUILDING, state.building)] {
        let Some(copy) = copy else { continue };
        writer.nested(tag, |writer| {
            writer.number(tag::EDITION, copy.edition);
            writer.number(tag::LENGTH, copy.length);
            writer.number(tag::BASE, copy.base);
            writer.number(tag::STORED, copy.stored);
            writer.number(tag::LAST_ORDER, copy.last);
            writer.octets(tag::COPY_DIGEST, &copy.digest);
            writer.number(tag::THROUGH, copy.through);
        });
    }
}

fn read_state(mut fields: Fields<'_>) -> Result<CopyState, DecodeError> {
    let epoch = LeaseEpoch(fields.number(tag::LEASE_EPOCH)?);
    let generation = fields.number(tag::GENERATION)?;
    let highest = fields.number(tag::HIGHEST)?;
    let complete = fields.optional_nested(tag::COMPLETE)?.map(read_copy).transpose()?;
    let building = fields.optional_nested(tag::BUILDING)?.map(read_copy).transpose()?;
    fields.end_of_known()?;
    Ok(CopyState { epoch, generation, highest, complete, building })
}

fn read_copy(mut fields: Fields<'_>) -> Result<CatalogCopy, DecodeError> {
    let edition = fields.number(tag::EDITION)?;
    let length = fields.number(tag::LENGTH)?;
    let base = fields.number(tag::BASE)?;
    let stored = fields.number(tag::STORED)?;
    let last = fields.number(tag::LAST_ORDER)?;
    let digest = fields.array(tag::COPY_DIGEST)?;
    let through = TransactionNumber(fields.number(tag::THROUGH)?);
    fields.end_of_known()?;
    Ok(CatalogCopy { edition, length, base, stored, last, digest, through })
}
