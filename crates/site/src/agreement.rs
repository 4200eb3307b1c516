//! Keys of a session: agreed upon once, under signatures, so that what follows needs none.
//!
//! ```text
//! Interest  P/32=catalog/agree/<digest>, MustBeFresh, signed by a user
//! parameters = SessionId KeyShare
//! content    = LeaseEpoch Done[KeyShare Expires]            signed by the site
//! ```
//! Both sides salt the common secret with the digest of the Interest's name and the content of the
//! answer. The name has the digest of the user's signature, so keys are equal only for this user's
//! key, this session, this site, this term of a head and these two shares. Commands and answers
//! have keys of their own: neither passes for the other.

use byname_catalog::id::SessionId;
use byname_packet::{
    Data, DecodeError, Interest, InterestBuilder, KeyLocator, NameRef, SignError, SignatureExtra,
    Signer, sha256, signature_type,
};
use byname_security::exchange::{EXCHANGE_SEED_BYTES, Exchange, SHARE_BYTES, random_seed};
use byname_security::key::HmacSigner;

use crate::codec::{Fields, Writer, bad_value};
use crate::names::SiteName;
use crate::numbers as tag;
use crate::stamp::{Stamp, sign_with};

/// The operation of an agreement.
const OPERATION: &str = "agree";
/// The operation of questions.
const QUERY: &str = "query";
const COMMANDS: &[u8] = b"byname session commands";
const ANSWERS: &[u8] = b"byname session answers";
const KEY_ID: &[u8] = b"byname session key id";

/// Where seeds of private numbers come from; `None` if there are none.
pub type SeedSource = Box<dyn FnMut() -> Option<[u8; EXCHANGE_SEED_BYTES]> + Send>;

/// Seeds of the cryptographic library.
pub fn library_seeds() -> SeedSource {
    Box::new(|| random_seed().ok())
}

/// A user's wish for keys of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agree {
    /// The session.
    pub session: SessionId,
    /// The user's share.
    pub share: [u8; SHARE_BYTES],
}

/// What both ends have seen, under signatures.
#[derive(Debug, Clone, Copy)]
pub struct Transcript<'a> {
    /// Name of the Interest, with the digest of its parameters.
    pub name: NameRef<'a>,
    /// Content of its answer.
    pub content: &'a [u8],
}

/// Keys of a session, the same at both ends.
#[derive(Debug, Clone)]
pub struct SessionKeys {
    commands: HmacSigner,
    answers: HmacSigner,
}

impl Agree {
    /// True for the name of such an Interest.
    pub fn is_named(site: &SiteName, name: NameRef<'_>) -> bool {
        site.operation(name) == Some(OPERATION.as_bytes())
    }

    /// The signed Interest, without Nonce.
    ///
    /// # Errors
    /// [`SignError`] of the signer.
    pub fn encode(
        &self,
        site: &SiteName,
        signer: &dyn Signer,
        stamp: Stamp,
    ) -> Result<Vec<u8>, SignError> {
        let mut writer = Writer::default();
        writer.number(tag::SESSION_ID, self.session);
        writer.octets(tag::KEY_SHARE, &self.share);
        let name = site.command(OPERATION);
        let builder = InterestBuilder::new(name.view()).application_parameters(&writer.0);
        stamp.sign(&builder, signer)
    }

    /// Takes an Interest apart. Nothing is verified.
    ///
    /// # Errors
    /// [`DecodeError`] for anything else.
    pub fn decode(site: &SiteName, interest: &Interest<'_>) -> Result<Self, DecodeError> {
        if !Self::is_named(site, interest.name) {
            return Err(bad_value(tag::NAME));
        }
        let parameters = interest.application_parameters.unwrap_or_default();
        let mut fields = Fields::new(parameters, OPERATION);
        let session = SessionId(fields.number(tag::SESSION_ID)?);
        let share = fields.array(tag::KEY_SHARE)?;
        fields.end()?;
        Ok(Self { session, share })
    }
}

impl SessionKeys {
    /// Keys from the share of the other side, the name of the Interest and the content of its
    /// answer; `None` if the share is none.
    pub fn derive(
        site: &SiteName,
        session: SessionId,
        own: Exchange,
        peer: &[u8; SHARE_BYTES],
        transcript: Transcript<'_>,
    ) -> Option<Self> {
        let Transcript { name, content } = transcript;
        let secret = own.agree(peer, &sha256(&[name.value(), content]))?;
        let id = secret.derive(KEY_ID).ok()?;
        let locator = site.session_keys(session, id.first_chunk()?);
        let key = |label| Some(HmacSigner::new(&secret.derive(label).ok()?, locator.clone()));
        Some(Self { commands: key(COMMANDS)?, answers: key(ANSWERS)? })
    }

    /// The name of these keys, in KeyLocators.
    pub fn name(&self) -> NameRef<'_> {
        self.answers.key_locator().unwrap_or_default()
    }

    /// A question under the keys, without Nonce.
    ///
    /// # Errors
    /// [`SignError`]; `TooLarge` for what fits no packet.
    pub fn ask(&self, site: &SiteName, question: &[u8], number: u64) -> Result<Vec<u8>, SignError> {
        let name = site.command(QUERY);
        let builder = InterestBuilder::new(name.view()).application_parameters(question);
        self.seal(&builder, number)
    }

    /// An Interest under the key of commands. Its number is SignatureSeqNum; it has no time.
    pub(crate) fn seal(
        &self,
        builder: &InterestBuilder<'_>,
        number: u64,
    ) -> Result<Vec<u8>, SignError> {
        let extra = SignatureExtra { nonce: None, time_ms: None, seq_num: Some(number) };
        sign_with(builder, &self.commands, extra)
    }

    /// The number of an Interest under the key of commands; `None` for any other, and for one whose
    /// name has not the digest of its parameters.
    pub fn opened(&self, interest: &Interest<'_>) -> Option<u64> {
        let info = interest.signature_info.as_ref()?;
        let is_whole = interest.check_parameters_digest()
            && info.signature_type == signature_type::HMAC
            && info.key_name() == Some(self.name());
        let (parts, value) = (interest.signed_portion()?, interest.signature_value?);
        let is_genuine = is_whole && self.commands.verify(&parts, value);
        info.seq_num.filter(|_| is_genuine)
    }

    /// Signs answers.
    pub fn answers(&self) -> &dyn Signer {
        &self.answers
    }

    /// True for an answer under the key of answers.
    pub fn is_answer(&self, data: &Data<'_>) -> bool {
        matches!(sealed_by(data), SealedBy::Keys(name) if name == self.name())
            && self.answers.verify(&[data.signed_portion()], data.signature_value)
    }
}

/// A signed question to the head, without Nonce.
///
/// # Errors
/// [`SignError`]; `TooLarge` for what fits no packet.
pub fn sign_question(
    site: &SiteName,
    question: &[u8],
    signer: &dyn Signer,
    stamp: Stamp,
) -> Result<Vec<u8>, SignError> {
    let name = site.command(QUERY);
    stamp.sign(&InterestBuilder::new(name.view()).application_parameters(question), signer)
}

/// What an answer of a head is signed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedBy<'a> {
    /// A private key, for everybody to verify.
    Signature,
    /// Keys of a session, by their name.
    Keys(NameRef<'a>),
}

/// What an answer says it is signed with. Nothing is verified.
pub fn sealed_by<'a>(data: &Data<'a>) -> SealedBy<'a> {
    match (data.signature_info.signature_type, data.signature_info.key_locator) {
        (signature_type::HMAC, Some(KeyLocator::Name(name))) => SealedBy::Keys(name),
        _ => SealedBy::Signature,
    }
}

#[cfg(test)]
mod tests;
