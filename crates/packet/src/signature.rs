//! SignatureInfo, and the interface through which packets get signed.
//!
//! The codec knows where the signed portion begins and ends; who signs, and with what, is behind
//! [`Signer`]. Real keys live in the `security` crate; the two key-less signatures live here.

mod time;

use crate::digest::sha256;
use crate::error::DecodeError;
use crate::name::NameRef;
use crate::{tlv, types};
use thiserror::Error;

pub use time::{format_iso, parse_iso};

/// Assigned signature types.
pub mod signature_type {
    /// SHA-256 digest: integrity against accidents, no authentication.
    pub const SHA256: u64 = 0;
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    pub const RSA: u64 = 1;
    /// ECDSA with SHA-256, ASN.1 DER.
    pub const ECDSA: u64 = 3;
    /// HMAC with SHA-256.
    pub const HMAC: u64 = 4;
    /// Ed25519 over the signed portion itself.
    pub const ED25519: u64 = 5;
    /// No signature: an empty value.
    pub const NULL: u64 = 200;
}

/// Why something could not be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SignError {
    /// The cryptographic library refused.
    #[error("the key could not sign")]
    Failed,
    /// A planned packet needs a signature of fixed length.
    #[error("this signature type has no fixed length, the packet cannot be planned")]
    VariableLength,
    /// The packet would exceed what NDN software accepts.
    #[error("the packet would have {len} octets, more than {max}")]
    TooLarge {
        /// Octets it would have.
        len: usize,
        /// The limit.
        max: usize,
    },
}

/// Something that signs packets.
pub trait Signer {
    /// The number in SignatureType.
    fn signature_type(&self) -> u64;

    /// The name in KeyLocator, if any.
    fn key_locator(&self) -> Option<NameRef<'_>>;

    /// Upper bound of the signature's octets. Exact unless [`Signer::has_fixed_len`] says
    /// otherwise.
    fn signature_len_max(&self) -> usize;

    /// True if every signature has [`Signer::signature_len_max`] octets.
    fn has_fixed_len(&self) -> bool {
        self.signature_type() != signature_type::ECDSA
    }

    /// Signs the concatenation of `parts` into `out` and returns the octets written.
    ///
    /// # Errors
    /// [`SignError::Failed`] when the key cannot sign.
    fn sign(&self, parts: &[&[u8]], out: &mut [u8]) -> Result<usize, SignError>;
}

/// No signature; integrity comes from elsewhere (the hash tree).
#[derive(Debug, Clone, Copy, Default)]
pub struct NullSigner;

impl Signer for NullSigner {
    fn signature_type(&self) -> u64 {
        signature_type::NULL
    }

    fn key_locator(&self) -> Option<NameRef<'_>> {
        None
    }

    fn signature_len_max(&self) -> usize {
        0
    }

    fn sign(&self, _parts: &[&[u8]], _out: &mut [u8]) -> Result<usize, SignError> {
        Ok(0)
    }
}

/// A SHA-256 digest in place of a signature.
#[derive(Debug, Clone, Copy, Default)]
pub struct DigestSigner;

impl Signer for DigestSigner {
    fn signature_type(&self) -> u64 {
        signature_type::SHA256
    }

    fn key_locator(&self) -> Option<NameRef<'_>> {
        None
    }

    fn signature_len_max(&self) -> usize {
        32
    }

    fn sign(&self, parts: &[&[u8]], out: &mut [u8]) -> Result<usize, SignError> {
        let target = out.get_mut(..32).ok_or(SignError::Failed)?;
        target.copy_from_slice(&sha256(parts));
        Ok(32)
    }
}

/// Where the key of a signature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyLocator<'a> {
    /// The name of a certificate or key.
    Name(NameRef<'a>),
    /// A digest of the key.
    Digest(&'a [u8]),
}

/// When a certificate is valid, in seconds since the Unix epoch, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidityPeriod {
    /// First moment.
    pub not_before_s: u64,
    /// Last moment.
    pub not_after_s: u64,
}

/// Decoded SignatureInfo or InterestSignatureInfo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureInfo<'a> {
    /// See [`signature_type`].
    pub signature_type: u64,
    /// Where the key is.
    pub key_locator: Option<KeyLocator<'a>>,
    /// SignatureNonce.
    pub nonce: Option<&'a [u8]>,
    /// SignatureTime in milliseconds since the Unix epoch.
    pub time_ms: Option<u64>,
    /// SignatureSeqNum.
    pub seq_num: Option<u64>,
    /// Validity of a certificate.
    pub validity: Option<ValidityPeriod>,
    /// The value of AdditionalDescription: a sequence of entries, see [`descriptions`].
    pub additional_description: Option<&'a [u8]>,
}

impl<'a> SignatureInfo<'a> {
    /// Reads the value of a SignatureInfo element.
    ///
    /// SignatureType comes first, KeyLocator second; the others stand in any order, as deployed
    /// software writes them in order of insertion.
    ///
    /// # Errors
    /// [`DecodeError`] for what is missing, malformed, repeated or unknown and critical.
    pub fn from_value(value: &'a [u8]) -> Result<Self, DecodeError> {
        const WITHIN: &str = "SignatureInfo";
        let mut reader = tlv::Reader::new(value);
        let missing = DecodeError::Missing { element: "SignatureType", within: WITHIN };
        let first = reader.read()?.ok_or(missing)?;
        if first.typ != types::SIGNATURE_TYPE {
            return Err(missing);
        }
        let mut info = Self {
            signature_type: tlv::read_nni(first.value, "SignatureType")?,
            key_locator: None,
            nonce: None,
            time_ms: None,
            seq_num: None,
            validity: None,
            additional_description: None,
        };
        let mut locator_may_stand = true;
        while let Some(element) = reader.read()? {
            if element.typ == types::KEY_LOCATOR && !locator_may_stand {
                return Err(DecodeError::OutOfOrder { typ: element.typ, within: WITHIN });
            }
            locator_may_stand &= !is_known(element.typ);
            info.take(element)?;
        }
        Ok(info)
    }

    fn take(&mut self, element: tlv::Element<'a>) -> Result<(), DecodeError> {
        const WITHIN: &str = "SignatureInfo";
        let value = element.value;
        match element.typ {
            types::KEY_LOCATOR => self.key_locator = decode_key_locator(value)?,
            types::SIGNATURE_NONCE if self.nonce.is_none() => {
                if value.is_empty() {
                    return Err(DecodeError::BadLength { element: "SignatureNonce", len: 0 });
                }
                self.nonce = Some(value);
            }
            types::SIGNATURE_TIME if self.time_ms.is_none() => {
                self.time_ms = Some(tlv::read_nni(value, "SignatureTime")?);
            }
            types::SIGNATURE_SEQ_NUM if self.seq_num.is_none() => {
                self.seq_num = Some(tlv::read_nni(value, "SignatureSeqNum")?);
            }
            // 253 is odd, yet the certificate format introduced it as an extension that old
            // software may ignore; a second one is still refused.
            types::VALIDITY_PERIOD if self.validity.is_none() => {
                self.validity = Some(decode_validity(value)?);
            }
            types::ADDITIONAL_DESCRIPTION if self.additional_description.is_none() => {
                self.additional_description = Some(value);
            }
            types::SIGNATURE_TYPE | types::VALIDITY_PERIOD => {
                return Err(DecodeError::OutOfOrder { typ: element.typ, within: WITHIN });
            }
            typ if is_known(typ) => {}
            typ if types::is_critical(typ) => {
                return Err(DecodeError::UnknownCritical { typ, within: WITHIN });
            }
            _ => {}
        }
        Ok(())
    }

    /// The name in KeyLocator.
    pub fn key_name(&self) -> Option<NameRef<'a>> {
        match self.key_locator {
            Some(KeyLocator::Name(name)) => Some(name),
            _ => None,
        }
    }
}

fn is_known(typ: u32) -> bool {
    matches!(
        typ,
        types::KEY_LOCATOR
            | types::VALIDITY_PERIOD
            | types::SIGNATURE_NONCE
            | types::SIGNATURE_TIME
            | types::SIGNATURE_SEQ_NUM
            | types::ADDITIONAL_DESCRIPTION
    )
}

/// `None` for an empty locator, which some signers write: it says as much as none.
fn decode_key_locator(value: &[u8]) -> Result<Option<KeyLocator<'_>>, DecodeError> {
    const WITHIN: &str = "KeyLocator";
    let mut reader = tlv::Reader::new(value);
    let mut locator = None;
    while let Some(element) = reader.read()? {
        locator = match element.typ {
            typ @ (types::NAME | types::KEY_DIGEST) if locator.is_some() => {
                return Err(DecodeError::OutOfOrder { typ, within: WITHIN });
            }
            types::NAME => Some(KeyLocator::Name(NameRef::from_value(element.value)?)),
            types::KEY_DIGEST => Some(KeyLocator::Digest(element.value)),
            typ if types::is_critical(typ) => {
                return Err(DecodeError::UnknownCritical { typ, within: WITHIN });
            }
            _ => locator,
        }
    }
    Ok(locator)
}

pub(crate) fn decode_validity(value: &[u8]) -> Result<ValidityPeriod, DecodeError> {
    const WITHIN: &str = "ValidityPeriod";
    const ORDER: [u32; 2] = [types::NOT_BEFORE, types::NOT_AFTER];
    let mut reader = tlv::OrderedReader::new(value, &ORDER, WITHIN);
    let (mut not_before_s, mut not_after_s) = (None, None);
    while let Some(element) = reader.read()? {
        let (name, target) = match element.typ {
            types::NOT_BEFORE => ("NotBefore", &mut not_before_s),
            _ => ("NotAfter", &mut not_after_s),
        };
        let bad = DecodeError::BadValue { element: name };
        *target = Some(parse_iso(element.value).ok_or(bad)?);
    }
    let missing = |element| DecodeError::Missing { element, within: WITHIN };
    Ok(ValidityPeriod {
        not_before_s: not_before_s.ok_or(missing("NotBefore"))?,
        not_after_s: not_after_s.ok_or(missing("NotAfter"))?,
    })
}

/// The entries of an AdditionalDescription value; malformed entries end the iteration.
pub fn descriptions(value: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut reader = tlv::Reader::new(value);
    std::iter::from_fn(move || {
        let entry = reader.read().ok()??;
        let mut fields = tlv::Reader::new(entry.value);
        let key = fields.read().ok()??;
        let text = fields.read().ok()??;
        let typed = entry.typ == types::DESCRIPTION_ENTRY
            && key.typ == types::DESCRIPTION_KEY
            && text.typ == types::DESCRIPTION_VALUE;
        typed.then_some((key.value, text.value))
    })
}

/// Elements that a signer adds besides type and key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InfoExtra<'a> {
    pub(crate) nonce: Option<&'a [u8]>,
    pub(crate) time_ms: Option<u64>,
    pub(crate) seq_num: Option<u64>,
    pub(crate) validity: Option<ValidityPeriod>,
    /// Whole elements, after all others.
    pub(crate) extension: &'a [u8],
}

/// Octets of the value that [`write_info_value`] appends.
pub(crate) fn info_value_len(signer: &dyn Signer, extra: &InfoExtra<'_>) -> usize {
    const VALIDITY_VALUE_LEN: usize = 2 * (3 + 1 + 15);
    let mut len = tlv::nni_element_len(types::SIGNATURE_TYPE, signer.signature_type());
    if let Some(name) = signer.key_locator() {
        len += tlv::element_len(types::KEY_LOCATOR, name.wire_len());
    }
    len += extra.nonce.map_or(0, |nonce| tlv::element_len(types::SIGNATURE_NONCE, nonce.len()));
    len += extra.time_ms.map_or(0, |ms| tlv::nni_element_len(types::SIGNATURE_TIME, ms));
    len += extra.seq_num.map_or(0, |n| tlv::nni_element_len(types::SIGNATURE_SEQ_NUM, n));
    if extra.validity.is_some() {
        len += tlv::element_len(types::VALIDITY_PERIOD, VALIDITY_VALUE_LEN);
    }
    len + extra.extension.len()
}

/// Appends the value of a SignatureInfo element.
pub(crate) fn write_info_value(out: &mut Vec<u8>, signer: &dyn Signer, extra: &InfoExtra<'_>) {
    tlv::write_nni(out, types::SIGNATURE_TYPE, signer.signature_type());
    if let Some(name) = signer.key_locator() {
        tlv::write_tl(out, types::KEY_LOCATOR, name.wire_len());
        name.encode(out);
    }
    if let Some(nonce) = extra.nonce {
        tlv::write_element(out, types::SIGNATURE_NONCE, nonce);
    }
    if let Some(ms) = extra.time_ms {
        tlv::write_nni(out, types::SIGNATURE_TIME, ms);
    }
    if let Some(number) = extra.seq_num {
        tlv::write_nni(out, types::SIGNATURE_SEQ_NUM, number);
    }
    if let Some(validity) = extra.validity {
        tlv::write_tl(out, types::VALIDITY_PERIOD, 2 * (3 + 1 + 15));
        tlv::write_element(out, types::NOT_BEFORE, format_iso(validity.not_before_s).as_bytes());
        tlv::write_element(out, types::NOT_AFTER, format_iso(validity.not_after_s).as_bytes());
    }
    out.extend_from_slice(extra.extension);
}
