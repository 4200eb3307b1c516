//! Orders to disks, as signed Interests: *insert* by a writer; *drop*, *list*, *prove*, *keep* and
//! *recall* by the head.
//!
//! ```text
//! Interest  <disk>/insert/<digest>, signed with the key that the ticket is for
//! parameters = ForwardingHint ticket:Data claim:Data
//!
//! Interest  <disk>/drop/<digest>, signed by the site's key
//! parameters = LeaseEpoch Generation 0*256ContentId
//! ```
//! An insert is repeated, the same octets but for the Nonce, until the disk has a receipt.

mod answer;
mod keep;
mod list;
mod prove;
mod recall;

use byname_catalog::id::{ContentId, LeaseEpoch};
use byname_packet::{
    Data, DecodeError, Interest, InterestBuilder, KeyLocator, Name, NameRef, SignError, Signer,
};
use byname_security::trust::Validator;

use crate::authentic::{Authentic, Check, Untrusted, check_data, check_interest};
use crate::claim::Claim;
use crate::codec::{Fields, Writer, bad_value};
use crate::names::{DiskName, Identity, SiteName};
use crate::numbers as tag;
use crate::parts::{read_contents, write_content_id};
use crate::stamp::Stamp;
use crate::ticket::Ticket;

pub use crate::parts::CONTENTS_MAX;
pub use answer::{DiskRefusal, DropAnswer, InsertAnswer, ROTTEN_MAX, ScrubState};
pub use keep::{CopyPoint, FRAME_BYTES_MAX, Frame, Keep, ROWS_BYTES_MAX, frame};
pub use list::{LISTED_MAX, List, ListAnswer, Listed};
pub use prove::{Prove, ProveAnswer};
pub use recall::{COPY_PAGE_BYTES, CatalogCopy, CopyAnswer, CopyState, KeptRecord, Recall};

/// State of a disk that orders are compared with.
#[derive(Debug, Clone, Copy)]
pub struct DiskView<'a> {
    /// Its name.
    pub name: &'a DiskName,
    /// Its generation.
    pub generation: u64,
    /// The highest epoch that it has seen.
    pub epoch: LeaseEpoch,
}

/// An order to pull content from a writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insert {
    /// The right to.
    pub ticket: Ticket,
    /// The writer's word, as signed.
    pub claim: Vec<u8>,
    /// The writer's prefix: goes into each Interest for the content.
    pub hint: Name,
}

impl Insert {
    /// The Interest to one disk, signed with the key that the ticket is for.
    ///
    /// # Errors
    /// [`SignError`]; `TooLarge` for what fits no packet.
    pub fn encode(
        &self,
        site: &SiteName,
        disk: &DiskName,
        signer: &dyn Signer,
        stamp: Stamp,
    ) -> Result<Vec<u8>, SignError> {
        let mut writer = Writer::default();
        writer.nested(tag::HINT, |writer| writer.octets(tag::NAME, self.hint.view().value()));
        writer.0.extend_from_slice(self.ticket.wire());
        writer.0.extend_from_slice(&self.claim);
        let name = site.insert(disk);
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
        let disk = site.parse_insert(interest.name).ok_or(bad_value(tag::NAME))?;
        let parameters = interest.application_parameters.unwrap_or_default();
        let mut fields = Fields::new(parameters, "insert");
        let mut hint = fields.nested(tag::HINT)?;
        let name = NameRef::from_value(hint.octets(tag::NAME)?)?.to_name();
        hint.end()?;
        if !is_delegation(name.view()) {
            return Err(bad_value(tag::HINT));
        }
        let ticket = Ticket::decode(site, fields.wire(tag::DATA)?);
        let ticket = ticket.map_err(|_| bad_value(tag::DATA))?;
        let claim = fields.wire(tag::DATA)?.to_vec();
        fields.end()?;
        Ok((disk, Self { ticket, claim, hint: name }))
    }

    /// Everything that can be checked without a look at the disk: that the ticket is the site's,
    /// for this disk, and not of a head that has lost the lease; that its writer signed order and
    /// claim; that the claim keeps within the ticket.
    pub fn check(
        &self,
        site: &SiteName,
        interest: &Interest<'_>,
        disk: DiskView<'_>,
        (validator, now_s): (&mut Validator, u64),
    ) -> Check<Claim, DiskRefusal> {
        let terms = self.ticket.terms();
        let Some(mine) = self.ticket.disk(disk.name) else {
            return Check::Refused(DiskRefusal::NotAsked);
        };
        if mine.generation != disk.generation {
            return Check::Refused(DiskRefusal::OldGeneration);
        }
        if terms.epoch < disk.epoch {
            return Check::Refused(DiskRefusal::OldEpoch);
        }
        // Terms of one ticket must not count for the signature on another.
        let locator = interest.signature_info.and_then(|info| info.key_name());
        if locator != Some(self.ticket.certificate().name())
            || validator.add_certificate(self.ticket.wire()).is_err()
        {
            return Check::Refused(DiskRefusal::NotAuthentic);
        }
        let writer = Identity::Writer(terms.content);
        let order = check_interest(site, interest, validator, now_s);
        if let Some(result) = unless_of(order, &writer) {
            return result;
        }
        let Ok(data) = Data::decode(&self.claim) else {
            return Check::Refused(DiskRefusal::Malformed);
        };
        let Ok(claim) = Claim::decode(site, &data) else {
            return Check::Refused(DiskRefusal::Malformed);
        };
        if claim.content != terms.content || !is_locator(&data, locator) {
            return Check::Refused(DiskRefusal::NotAuthentic);
        }
        if let Some(result) = unless_of(check_data(site, &data, validator, now_s), &writer) {
            return result;
        }
        if claim.size > terms.size_max {
            return Check::Refused(DiskRefusal::TooLarge);
        }
        Check::Accepted(claim)
    }
}

/// The result, unless the packet counts and is this signer's.
fn unless_of(
    check: Check<Authentic, Untrusted>,
    signer: &Identity,
) -> Option<Check<Claim, DiskRefusal>> {
    match check {
        Check::Accepted(Authentic { identity, .. }) if identity == *signer => None,
        Check::Accepted(_) | Check::Refused(_) => Some(Check::Refused(DiskRefusal::NotAuthentic)),
        Check::NeedCertificate(name) => Some(Check::NeedCertificate(name)),
    }
}

fn is_locator(data: &Data<'_>, name: Option<NameRef<'_>>) -> bool {
    matches!((data.signature_info.key_locator, name),
        (Some(KeyLocator::Name(found)), Some(name)) if found == name)
}

/// True for a name that an Interest may be sent towards: not empty, not of this machine or link.
fn is_delegation(name: NameRef<'_>) -> bool {
    let first = name.get(0);
    first.is_some_and(|first| !matches!(first.value, b"localhost" | b"localhop"))
}

/// An order to drop content that is no replica any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drop {
    /// Term of the head.
    pub epoch: LeaseEpoch,
    /// Generation of the disk.
    pub generation: u64,
    /// The contents, 256 at most. None at all asks whether the disk is well.
    pub contents: Vec<ContentId>,
}

impl Drop {
    /// The Interest to one disk, signed by the site's key.
    ///
    /// # Errors
    /// [`SignError`]; `TooLarge` for what fits no packet.
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
        self.contents.iter().for_each(|content| write_content_id(&mut writer, *content));
        let name = site.drop(disk);
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
        let disk = site.parse_drop(interest.name).ok_or(bad_value(tag::NAME))?;
        let parameters = interest.application_parameters.unwrap_or_default();
        let mut fields = Fields::new(parameters, "drop");
        let epoch = LeaseEpoch(fields.number(tag::LEASE_EPOCH)?);
        let generation = fields.number(tag::GENERATION)?;
        let contents = read_contents(&mut fields)?;
        fields.end()?;
        Ok((disk, Self { epoch, generation, contents }))
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

impl DiskView<'_> {
    /// An order of a head is for this generation, in a term that is not over.
    fn check_term(&self, epoch: LeaseEpoch, generation: u64) -> Check<(), DiskRefusal> {
        if generation != self.generation {
            return Check::Refused(DiskRefusal::OldGeneration);
        }
        if epoch < self.epoch {
            return Check::Refused(DiskRefusal::OldEpoch);
        }
        Check::Accepted(())
    }
}

/// An order of a head is signed by the site's key.
fn signed_by_head(
    site: &SiteName,
    interest: &Interest<'_>,
    validator: &mut Validator,
    now_s: u64,
) -> Check<(), DiskRefusal> {
    match check_interest(site, interest, validator, now_s) {
        Check::Accepted(Authentic { identity: Identity::Site, .. }) => Check::Accepted(()),
        Check::Accepted(_) | Check::Refused(_) => Check::Refused(DiskRefusal::NotAuthentic),
        Check::NeedCertificate(name) => Check::NeedCertificate(name),
    }
}
