//! Certificates in NDN format: Data packets that say which names a key may sign, and until when.
//!
//! The name is `/<identity>/KEY/<keyId>/<issuerId>/v=<version>`, the content the public key in
//! DER. `<identity>` is the namespace of the key. A certificate proves nothing by itself: a
//! self-signed one counts if its key is an anchor, another one if its issuer counts.

use byname_packet::signature::format_iso;
use byname_packet::{
    Component, ContentType, Data, DataBuilder, DecodeError, KeyLocator, Name, NameRef, SignError,
    Signer, ValidityPeriod,
};
use thiserror::Error;

use crate::key::{KeyError, KeyId, PublicKey};
use crate::verify::{VerifyError, VerifyKey, verify_signature};

/// The component that separates the identity from the key.
pub const KEY_COMPONENT: &[u8] = b"KEY";

/// Issuer id of a certificate that its own key signed.
pub const SELF_ISSUER: &[u8] = b"self";

/// Time for which caches may answer with a certificate, in milliseconds.
pub const FRESHNESS_MS: u64 = 3_600_000;

/// Components after the identity: `KEY`, key id, issuer id, version.
const TRAILING_COMPONENTS: usize = 4;

/// Why a packet is no usable certificate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CertificateError {
    /// Not a well-formed Data packet.
    #[error("it is no well-formed Data packet: {0}")]
    Packet(#[from] DecodeError),
    /// The content type is not Key.
    #[error("its content type is {content_type}, not 2 (Key)")]
    ContentType {
        /// Content type found.
        content_type: u64,
    },
    /// The name does not end in `/KEY/<keyId>/<issuerId>/<version>`.
    #[error("its name {name} is not /<identity>/KEY/<keyId>/<issuerId>/<version>")]
    Name {
        /// Name found.
        name: Name,
    },
    /// There is no validity period.
    #[error("it has no validity period")]
    NoValidity,
    /// The validity period ends before it begins.
    #[error("its validity period ends before it begins")]
    EmptyValidity,
    /// The content is no public key of a known kind.
    #[error("{0}")]
    Key(#[from] KeyError),
}

/// Why a certificate could not be issued.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IssueError {
    /// The key name does not end in `/KEY/<keyId>`.
    #[error("{name} is no key name: it does not end in /KEY/<keyId>")]
    KeyName {
        /// Name given.
        name: Name,
    },
    /// The validity period ends before it begins.
    #[error("the validity period ends before it begins")]
    EmptyValidity,
    /// The signer failed.
    #[error("the certificate could not be signed: {0}")]
    Sign(#[from] SignError),
}

/// Why a certificate does not count now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidityError {
    /// It ended at this Unix time in seconds.
    Expired(u64),
    /// It begins at this Unix time in seconds.
    NotYetValid(u64),
}

/// Content of a new certificate.
#[derive(Debug, Clone)]
pub struct CertificateRequest<'a> {
    /// `/<identity>/KEY/<keyId>`.
    pub key_name: NameRef<'a>,
    /// The key certified.
    pub public_key: &'a PublicKey,
    /// Who certifies: [`SELF_ISSUER`], or the key id component of the issuing key.
    pub issuer_id: &'a [u8],
    /// Version component, higher for later certificates.
    pub version: u64,
    /// When it counts.
    pub validity: ValidityPeriod,
}

impl CertificateRequest<'_> {
    /// The name the certificate will have; a self-signing key needs it as its locator.
    pub fn certificate_name(&self) -> Name {
        let mut name = self.key_name.to_name();
        name.push_generic(self.issuer_id);
        name.push_version(self.version);
        name
    }

    /// Makes the certificate.
    ///
    /// # Errors
    /// [`IssueError`] for a name that is no key name, an empty period, or a failing signer.
    pub fn issue(&self, signer: &dyn Signer) -> Result<Certificate, IssueError> {
        if key_component_at(self.key_name, 2).is_none() {
            return Err(IssueError::KeyName { name: self.key_name.to_name() });
        }
        if self.validity.not_before_s > self.validity.not_after_s {
            return Err(IssueError::EmptyValidity);
        }
        let name = self.certificate_name();
        let mut wire = Vec::new();
        DataBuilder::new(name.view())
            .content_type(ContentType::KEY)
            .freshness_ms(FRESHNESS_MS)
            .validity(self.validity)
            .encode(&self.public_key.to_der(), signer, &mut wire)?;
        Ok(Certificate::decode(&wire).expect("what was just encoded from checked parts decodes"))
    }
}

/// A certificate: the packet as received, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    wire: Vec<u8>,
    name: Name,
    public_key: PublicKey,
    key_id: KeyId,
    validity: ValidityPeriod,
    issuer: Option<Name>,
}

impl Certificate {
    /// Reads a certificate. Nothing is verified yet.
    ///
    /// # Errors
    /// [`CertificateError`] for anything that is no certificate of a known kind.
    pub fn decode(wire: &[u8]) -> Result<Self, CertificateError> {
        let data = Data::decode(wire)?;
        if data.meta.content_type != ContentType::KEY {
            return Err(CertificateError::ContentType { content_type: data.meta.content_type });
        }
        if key_component_at(data.name, TRAILING_COMPONENTS).is_none() {
            return Err(CertificateError::Name { name: data.name.to_name() });
        }
        let validity = data.signature_info.validity.ok_or(CertificateError::NoValidity)?;
        if validity.not_before_s > validity.not_after_s {
            return Err(CertificateError::EmptyValidity);
        }
        let public_key = PublicKey::from_der(data.content)?;
        let issuer = match data.signature_info.key_locator {
            Some(KeyLocator::Name(name)) => Some(name.to_name()),
            _ => None,
        };
        let key_id = public_key.key_id();
        let name = data.name.to_name();
        Ok(Self { wire: wire.to_vec(), name, public_key, key_id, validity, issuer })
    }

    /// The packet.
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }

    /// The certificate's name.
    pub fn name(&self) -> NameRef<'_> {
        self.name.view()
    }

    /// `/<identity>/KEY/<keyId>`.
    pub fn key_name(&self) -> NameRef<'_> {
        self.name.view().without_last(2)
    }

    /// The namespace in which the key may sign.
    pub fn identity(&self) -> NameRef<'_> {
        self.name.view().without_last(TRAILING_COMPONENTS)
    }

    /// The name under which the key's self-signed certificates are.
    pub fn own_name(&self) -> Name {
        self.key_name().to_name().with_generic(SELF_ISSUER)
    }

    /// The component that tells apart the keys of an identity.
    pub fn key_component(&self) -> Component<'_> {
        self.key_name().last().expect("a certificate's name was checked to have it")
    }

    /// The certified key.
    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// The certified key's digest.
    pub fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// When it counts.
    pub fn validity(&self) -> ValidityPeriod {
        self.validity
    }

    /// The name of the issuer's certificate or key, if the packet names one.
    pub fn issuer(&self) -> Option<NameRef<'_>> {
        self.issuer.as_ref().map(Name::view)
    }

    /// True if the packet names its own key as the issuer.
    pub fn is_self_signed(&self) -> bool {
        self.issuer().is_some_and(|issuer| self.key_name().is_prefix_of(issuer))
    }

    /// True if the certificate counts at the Unix time `now_s`.
    ///
    /// # Errors
    /// [`ValidityError`] says which end of the period was missed.
    pub fn check_validity(&self, now_s: u64) -> Result<(), ValidityError> {
        if now_s < self.validity.not_before_s {
            return Err(ValidityError::NotYetValid(self.validity.not_before_s));
        }
        if now_s > self.validity.not_after_s {
            return Err(ValidityError::Expired(self.validity.not_after_s));
        }
        Ok(())
    }

    /// Checks that the owner of `issuer` signed this certificate.
    ///
    /// # Errors
    /// [`VerifyError`]; a digest in place of a signature counts as unsigned.
    pub fn verify_signed_by(&self, issuer: &PublicKey) -> Result<(), VerifyError> {
        let data = Data::decode(&self.wire).expect("the packet was decoded before");
        let signature_type = data.signature_info.signature_type;
        if signature_type == byname_packet::signature_type::SHA256 {
            return Err(VerifyError::Unsigned);
        }
        let parts = [data.signed_portion()];
        verify_signature(signature_type, VerifyKey::Public(issuer), &parts, data.signature_value)
    }
}

/// True if `name` can name a key or certificate: `KEY` is its second, third or fourth component
/// from the end.
pub fn is_key_locator(name: NameRef<'_>) -> bool {
    (2..=TRAILING_COMPONENTS).any(|from_end| key_component_at(name, from_end).is_some())
}

fn key_component_at(name: NameRef<'_>, from_end: usize) -> Option<Component<'_>> {
    let component = name.get(name.count().checked_sub(from_end)?)?;
    (component == Component::generic(KEY_COMPONENT)).then_some(component)
}

/// A Unix time as people read it, such as `2026-11-21 07:58:00 UTC`.
pub fn format_time(unix_s: u64) -> String {
    let iso = format_iso(unix_s);
    match (iso.get(..4), iso.get(4..6), iso.get(6..8), iso.get(9..11), iso.get(11..13)) {
        (Some(year), Some(month), Some(day), Some(hour), Some(minute)) => {
            format!("{year}-{month}-{day} {hour}:{minute} UTC")
        }
        _ => iso.to_string(),
    }
}
