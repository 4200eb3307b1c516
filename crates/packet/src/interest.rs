//! Interest packets: decoding, matching, and the edits a forwarder makes.
//!
//! ```text
//! Interest = 5 LENGTH Name [CanBePrefix] [MustBeFresh] [ForwardingHint] [Nonce] [InterestLifetime]
//!            [HopLimit] [ApplicationParameters [InterestSignatureInfo InterestSignatureValue]]
//! ```
//! spec: NDN Packet Format §3.

mod builder;

use crate::data::Data;
use crate::digest::sha256;
use crate::error::DecodeError;
use crate::name::{Name, NameRef};
use crate::signature::SignatureInfo;
use crate::{tlv, types};

pub use builder::{InterestBuilder, SignatureExtra};

const WITHIN: &str = "Interest";

/// Lifetime of an Interest that does not say, in milliseconds.
pub const DEFAULT_LIFETIME_MS: u64 = 4000;

/// A decoded Interest.
#[derive(Debug, Clone)]
pub struct Interest<'a> {
    /// Name asked for.
    pub name: NameRef<'a>,
    /// The name may be a proper prefix of the Data's name.
    pub can_be_prefix: bool,
    /// Stale Data is not wanted.
    pub must_be_fresh: bool,
    /// Where else the Interest may be forwarded to.
    pub forwarding_hint: Option<ForwardingHint<'a>>,
    /// Reveals loops. Applications may leave it to the forwarder.
    pub nonce: Option<[u8; 4]>,
    /// Lifetime in milliseconds, if stated.
    pub lifetime_ms: Option<u64>,
    /// Hops it may still take.
    pub hop_limit: Option<u8>,
    /// No answer of a cache is wanted: what came from one did not verify. Ours, see
    /// docs/protocol.md §7.1.
    pub past_caches: bool,
    /// Application parameters.
    pub application_parameters: Option<&'a [u8]>,
    /// Signature information.
    pub signature_info: Option<SignatureInfo<'a>>,
    /// Signature.
    pub signature_value: Option<&'a [u8]>,
    wire: &'a [u8],
    at: Offsets,
}

/// Where things stand in the outer value, for signatures and for edits.
#[derive(Debug, Clone, Copy, Default)]
struct Offsets {
    value: usize,
    nonce: Option<usize>,
    hint: Option<(usize, usize)>,
    after_hint: usize,
    hop_limit: Option<usize>,
    parameters: Option<usize>,
    signature_value: Option<usize>,
}

/// The elements in the order in which they must stand.
const ORDER: [u32; 11] = [
    types::NAME,
    types::CAN_BE_PREFIX,
    types::MUST_BE_FRESH,
    types::FORWARDING_HINT,
    types::NONCE,
    types::INTEREST_LIFETIME,
    types::HOP_LIMIT,
    types::PAST_CACHES,
    types::APPLICATION_PARAMETERS,
    types::INTEREST_SIGNATURE_INFO,
    types::INTEREST_SIGNATURE_VALUE,
];

impl<'a> Interest<'a> {
    /// Decodes the one Interest that fills `wire`.
    ///
    /// The parameters digest is not recomputed here, see [`Interest::decode_checked`]; that it is
    /// there exactly when parameters are is checked.
    ///
    /// # Errors
    /// [`DecodeError`] of the first rule broken.
    pub fn decode(wire: &'a [u8]) -> Result<Self, DecodeError> {
        let outer = tlv::read_only(wire, types::INTEREST, WITHIN)?;
        let mut reader = tlv::OrderedReader::new(outer.value, &ORDER, WITHIN);
        let name = reader.read_first("Name")?;
        let (name, parameters_digests) = NameRef::from_counted_value(name.value)?;
        let mut interest = Self {
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            forwarding_hint: None,
            nonce: None,
            lifetime_ms: None,
            hop_limit: None,
            past_caches: false,
            application_parameters: None,
            signature_info: None,
            signature_value: None,
            wire,
            at: Offsets { value: wire.len() - outer.value.len(), ..Offsets::default() },
        };
        interest.at.after_hint = reader.position();
        while let Some(element) = reader.read()? {
            interest.take(element, reader.position())?;
        }
        interest.check(parameters_digests)?;
        Ok(interest)
    }

    /// As [`Interest::decode`], and refuses an Interest whose parameters digest is wrong, which
    /// costs one SHA-256 over the parameters.
    ///
    /// # Errors
    /// As [`Interest::decode`], and `ParametersDigest`.
    pub fn decode_checked(wire: &'a [u8]) -> Result<Self, DecodeError> {
        let interest = Self::decode(wire)?;
        if interest.check_parameters_digest() {
            Ok(interest)
        } else {
            Err(DecodeError::ParametersDigest)
        }
    }

    /// Takes a known element that ends at `end` of the outer value.
    fn take(&mut self, element: tlv::Element<'a>, end: usize) -> Result<(), DecodeError> {
        let value = element.value;
        let start = end - element.wire.len();
        match element.typ {
            types::CAN_BE_PREFIX => {
                self.can_be_prefix = true;
                expect_len(value, 0, "CanBePrefix")?;
            }
            types::MUST_BE_FRESH => {
                self.must_be_fresh = true;
                expect_len(value, 0, "MustBeFresh")?;
            }
            types::FORWARDING_HINT => {
                self.forwarding_hint = ForwardingHint::from_value(value)?;
                self.at.hint = Some((start, end));
            }
            types::NONCE => {
                expect_len(value, 4, "Nonce")?;
                self.nonce = value.try_into().ok();
                self.at.nonce = Some(start);
            }
            types::INTEREST_LIFETIME => {
                self.lifetime_ms = Some(tlv::read_nni(value, "InterestLifetime")?);
            }
            types::HOP_LIMIT => {
                expect_len(value, 1, "HopLimit")?;
                self.hop_limit = value.first().copied();
                self.at.hop_limit = Some(end - 1);
            }
            types::PAST_CACHES => self.past_caches = true,
            types::APPLICATION_PARAMETERS => {
                self.application_parameters = Some(value);
                self.at.parameters = Some(start);
            }
            types::INTEREST_SIGNATURE_INFO => {
                self.signature_info = Some(SignatureInfo::from_value(value)?);
            }
            types::INTEREST_SIGNATURE_VALUE => {
                self.signature_value = Some(value);
                self.at.signature_value = Some(start);
            }
            _ => {}
        }
        let before_nonce = matches!(
            element.typ,
            types::CAN_BE_PREFIX | types::MUST_BE_FRESH | types::FORWARDING_HINT
        );
        if before_nonce {
            self.at.after_hint = end;
        }
        Ok(())
    }

    fn check(&self, digests: usize) -> Result<(), DecodeError> {
        if self.name.is_empty() {
            return Err(DecodeError::BadLength { element: "Name of an Interest", len: 0 });
        }
        if digests > 1 {
            return Err(DecodeError::BadValue { element: "Name with two parameters digests" });
        }
        let missing = |element| Err(DecodeError::Missing { element, within: WITHIN });
        match (self.application_parameters.is_some(), digests) {
            (true, 0) => return missing("ParametersSha256Digest"),
            (false, 1) => return missing("ApplicationParameters"),
            _ => {}
        }
        match (&self.signature_info, self.signature_value) {
            (Some(_), None) => missing("InterestSignatureValue"),
            (None, Some(_)) => missing("InterestSignatureInfo"),
            (Some(_), Some(_)) if self.application_parameters.is_none() => {
                missing("ApplicationParameters")
            }
            (Some(_), Some(_)) if !self.digest_is_last() => {
                Err(DecodeError::BadValue { element: "Name of a signed Interest" })
            }
            _ => Ok(()),
        }
    }

    fn digest_is_last(&self) -> bool {
        self.name.last().is_some_and(|c| c.typ == types::PARAMETERS_SHA256_DIGEST)
    }

    /// The packet as received.
    pub fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// Lifetime in milliseconds with the default of 4 s.
    pub fn lifetime_ms_or_default(&self) -> u64 {
        self.lifetime_ms.unwrap_or(DEFAULT_LIFETIME_MS)
    }

    /// True if the parameters digest in the name is right; true when there are no parameters.
    pub fn check_parameters_digest(&self) -> bool {
        let Some(start) = self.at.parameters else { return true };
        let digest = sha256(&[&self.value()[start..]]);
        let mut components = self.name.components();
        components.any(|c| c.typ == types::PARAMETERS_SHA256_DIGEST && c.value == digest)
    }

    /// The signed portion: the name's components without the parameters digest, then
    /// everything from the parameters up to the signature value. `None` for an unsigned Interest.
    pub fn signed_portion(&self) -> Option<[&'a [u8]; 2]> {
        let (start, end) = (self.at.parameters?, self.at.signature_value?);
        Some([self.name.without_last(1).value(), &self.value()[start..end]])
    }

    fn value(&self) -> &'a [u8] {
        &self.wire[self.at.value..]
    }

    /// Appends this Interest without its forwarding hint, which no signature covers.
    pub fn encode_without_hint(&self, out: &mut Vec<u8>) {
        let value = self.value();
        let (start, end) = self.at.hint.unwrap_or((0, 0));
        tlv::write_tl(out, types::INTEREST, value.len() - (end - start));
        out.extend_from_slice(&value[..start]);
        out.extend_from_slice(&value[end..]);
    }

    /// True if `data` answers this Interest by name. Freshness is the content store's affair.
    pub fn matches(&self, data: &Data<'_>) -> bool {
        if self.name == data.name {
            return true;
        }
        if self.can_be_prefix && self.name.is_prefix_of(data.name) {
            return true;
        }
        let Some(last) = self.name.last() else { return false };
        last.typ == types::IMPLICIT_SHA256_DIGEST
            && self.name.without_last(1) == data.name
            && last.value == data.implicit_digest()
    }

    /// Appends this Interest as a forwarder sends it on: with a nonce, and with `hop_limit` in
    /// place of the one received if there was one.
    pub fn encode_forwarded(&self, nonce: [u8; 4], hop_limit: Option<u8>, out: &mut Vec<u8>) {
        let value = self.value();
        let start = match self.at.nonce {
            Some(_) => {
                let start = out.len() + self.at.value;
                out.extend_from_slice(self.wire);
                start
            }
            None => {
                tlv::write_tl(out, types::INTEREST, value.len() + 6);
                let start = out.len();
                out.extend_from_slice(&value[..self.at.after_hint]);
                tlv::write_element(out, types::NONCE, &nonce);
                out.extend_from_slice(&value[self.at.after_hint..]);
                start
            }
        };
        let shift = if self.at.nonce.is_some() { 0 } else { 6 };
        if let (Some(at), Some(hops)) = (self.at.hop_limit, hop_limit) {
            out[start + at + shift] = hops;
        }
    }
}

fn expect_len(value: &[u8], len: usize, element: &'static str) -> Result<(), DecodeError> {
    if value.len() == len {
        Ok(())
    } else {
        Err(DecodeError::BadLength { element, len: value.len() })
    }
}

/// Names towards which an Interest may be forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwardingHint<'a> {
    value: &'a [u8],
}

impl<'a> ForwardingHint<'a> {
    /// `None` when no delegation is there: such a hint says as much as none.
    fn from_value(value: &'a [u8]) -> Result<Option<Self>, DecodeError> {
        let mut reader = tlv::Reader::new(value);
        let mut has_names = false;
        while let Some(element) = reader.read()? {
            has_names |= delegation_name(element)?.is_some();
        }
        Ok(has_names.then_some(Self { value }))
    }

    /// The delegations' names in order of preference as written.
    pub fn names(&self) -> impl Iterator<Item = NameRef<'a>> {
        let mut reader = tlv::Reader::new(self.value);
        std::iter::from_fn(move || {
            loop {
                let element = reader.read().ok()??;
                if let Ok(Some(name)) = delegation_name(element) {
                    return Some(name);
                }
            }
        })
    }
}

/// The name of a delegation; `None` for an element that may be ignored.
fn delegation_name(element: tlv::Element<'_>) -> Result<Option<NameRef<'_>>, DecodeError> {
    const HINT: &str = "ForwardingHint";
    match element.typ {
        types::NAME => NameRef::from_value(element.value).map(Some),
        types::DELEGATION => {
            let mut reader = tlv::Reader::new(element.value);
            while let Some(inner) = reader.read()? {
                if inner.typ == types::NAME {
                    return NameRef::from_value(inner.value).map(Some);
                }
            }
            Err(DecodeError::Missing { element: "Name", within: "Delegation" })
        }
        typ if types::is_critical(typ) => Err(DecodeError::UnknownCritical { typ, within: HINT }),
        _ => Ok(None),
    }
}

/// A name with a parameters digest placed at its end.
fn with_parameters_digest(name: NameRef<'_>, digest: &[u8; 32]) -> Name {
    name.with(crate::Component { typ: types::PARAMETERS_SHA256_DIGEST, value: digest })
}

#[cfg(test)]
mod tests;
