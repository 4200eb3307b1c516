//! Input of a trust decision: the same for Data and for signed Interests.

use byname_packet::{Data, Interest, KeyLocator, NameRef};

use crate::verify::{VerifyError, VerifyKey, verify_signature};

/// A signed packet, taken apart.
#[derive(Debug, Clone)]
pub struct Signed<'a> {
    /// The name that must lie in the key's namespace. For a command it is what the command is
    /// about (the prefix to register), not where it was sent.
    pub name: NameRef<'a>,
    /// SignatureType.
    pub signature_type: u64,
    /// Where the key is.
    pub key_locator: Option<KeyLocator<'a>>,
    /// The signed portion.
    pub parts: Vec<&'a [u8]>,
    /// The signature.
    pub value: &'a [u8],
}

impl<'a> Signed<'a> {
    /// A signed Interest whose effect is on `subject`; `None` if it carries no signature.
    pub fn from_interest(interest: &Interest<'a>, subject: NameRef<'a>) -> Option<Self> {
        let info = interest.signature_info?;
        Some(Self {
            name: subject,
            signature_type: info.signature_type,
            key_locator: info.key_locator,
            parts: interest.signed_portion()?.to_vec(),
            value: interest.signature_value?,
        })
    }

    /// Checks the signature with a key.
    ///
    /// # Errors
    /// [`VerifyError`] if the signature does not count.
    pub fn verify(&self, key: VerifyKey<'_>) -> Result<(), VerifyError> {
        verify_signature(self.signature_type, key, &self.parts, self.value)
    }
}

impl<'a> From<&Data<'a>> for Signed<'a> {
    fn from(data: &Data<'a>) -> Self {
        Self {
            name: data.name,
            signature_type: data.signature_info.signature_type,
            key_locator: data.signature_info.key_locator,
            parts: vec![data.signed_portion()],
            value: data.signature_value,
        }
    }
}
