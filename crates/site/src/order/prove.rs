//! Orders to prove that a disk has a content, by the head, and what answers them.
//!
//! ```text
//! Interest  <disk>/prove/<digest>, signed by the site's key
//! parameters = LeaseEpoch Generation Challenge ContentId
//! content    = (LeaseEpoch Proof) / Refused
//! ```
//! The challenge is 32 random octets that were in no order before, so no proof can have been kept
//! for it; `byname_security::tree` says what the proof of a challenge is. No cache answers: the
//! name has the digest of the challenge.

use byname_catalog::id::{ContentId, LeaseEpoch};
use byname_packet::{Data, DecodeError, Interest, InterestBuilder, NameRef, SignError, Signer};
use byname_security::tree::PROOF_BYTES_MAX;
use byname_security::trust::Validator;

use super::answer::{decode_refusal, sign};
use super::{DiskRefusal, DiskView, signed_by_head};
use crate::authentic::Check;
use crate::codec::{Fields, Writer, bad_length, bad_value};
use crate::names::{DiskName, SiteName};
use crate::numbers as tag;
use crate::parts::{read_content_id, write_content_id};
use crate::stamp::Stamp;

/// An order to prove that a content is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prove {
    /// Term of the head.
    pub epoch: LeaseEpoch,
    /// Generation of the disk.
    pub generation: u64,
    /// Random octets that say what is to be shown.
    pub challenge: [u8; 32],
    /// Which content.
    pub content: ContentId,
}

/// Answer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProveAnswer {
    /// The proof, if it is one.
    Proof {
        /// The highest epoch that the disk has seen.
        epoch: LeaseEpoch,
        /// As `byname_security::tree::is_proof` takes it.
        proof: Vec<u8>,
    },
    /// There is none.
    Refused(DiskRefusal),
}

impl Prove {
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
        writer.octets(tag::CHALLENGE, &self.challenge);
        write_content_id(&mut writer, self.content);
        let name = site.prove(disk);
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
        let disk = site.parse_prove(interest.name).ok_or(bad_value(tag::NAME))?;
        let mut fields = Fields::new(interest.application_parameters.unwrap_or_default(), "prove");
        let epoch = LeaseEpoch(fields.number(tag::LEASE_EPOCH)?);
        let generation = fields.number(tag::GENERATION)?;
        let challenge = fields.array(tag::CHALLENGE)?;
        let content = read_content_id(&mut fields)?;
        fields.end()?;
        Ok((disk, Self { epoch, generation, challenge, content }))
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

impl ProveAnswer {
    /// The packet, signed by the disk.
    ///
    /// # Errors
    /// [`SignError`] of the signer.
    pub fn encode(&self, name: NameRef<'_>, signer: &dyn Signer) -> Result<Vec<u8>, SignError> {
        let mut writer = Writer::default();
        match self {
            Self::Proof { epoch, proof } => {
                writer.number(tag::LEASE_EPOCH, *epoch);
                writer.octets(tag::PROOF, proof);
            }
            Self::Refused(refusal) => writer.number(tag::REFUSED, *refusal as u8),
        }
        sign(name, false, &writer, signer)
    }

    /// Takes an answer apart. Nothing is verified.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that is no answer.
    pub fn decode(data: &Data<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::new(data.content, "answer to a challenge");
        let answer = if let Some(refusal) = decode_refusal(&mut fields)? {
            Self::Refused(refusal)
        } else {
            let epoch = LeaseEpoch(fields.number(tag::LEASE_EPOCH)?);
            let proof = fields.octets(tag::PROOF)?;
            if proof.len() > PROOF_BYTES_MAX {
                return Err(bad_length(proof, tag::PROOF));
            }
            Self::Proof { epoch, proof: proof.to_vec() }
        };
        fields.end_of_known()?;
        Ok(answer)
    }
}
