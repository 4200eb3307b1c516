//! The two forms of signed commands.
//!
//! v0.3: the signature is in the Interest, and a digest of it is the name's last component. v0.2:
//! the name's last four components are timestamp, nonce, SignatureInfo and SignatureValue, and the
//! signature covers all before the value.

use byname_packet::mgmt::ControlParameters;
use byname_packet::signature::SignatureInfo;
use byname_packet::{Component, Interest, Name, NameRef, tlv, types};

use crate::trust::Signed;

/// Components before ControlParameters: scope, `nfd`, module, verb.
const PREFIX_LEN: usize = 4;

/// A command's signature, taken apart.
pub(super) struct Form<'a> {
    pub(super) time_ms: u64,
    info: SignatureInfo<'a>,
    parts: Vec<&'a [u8]>,
    value: &'a [u8],
}

impl<'a> Form<'a> {
    /// `None` if there is no signature with a time, or it is malformed.
    pub(super) fn of(interest: &Interest<'a>) -> Option<Self> {
        if let Some(info) = interest.signature_info {
            if !interest.check_parameters_digest() {
                return None;
            }
            let parts = interest.signed_portion()?.to_vec();
            let (time_ms, value) = (info.time_ms?, interest.signature_value?);
            return Some(Self { time_ms, info, parts, value });
        }
        let name = without_digest(interest.name);
        if name.count() < PREFIX_LEN + 1 + 4 {
            return None;
        }
        let from_end = |index: usize| name.get(name.count() - index).map(|it| it.value);
        let info = tlv::read_only(from_end(2)?, types::SIGNATURE_INFO, "command").ok()?;
        let value = tlv::read_only(from_end(1)?, types::SIGNATURE_VALUE, "command").ok()?;
        Some(Self {
            time_ms: tlv::read_nni(from_end(4)?, "timestamp").ok()?,
            info: SignatureInfo::from_value(info.value).ok()?,
            parts: vec![name.without_last(1).value()],
            value: value.value,
        })
    }

    /// The signature, as one of a command about `subject`.
    pub(super) fn signed<'b>(&self, subject: NameRef<'b>) -> Signed<'b>
    where
        'a: 'b,
    {
        Signed {
            name: subject,
            signature_type: self.info.signature_type,
            key_locator: self.info.key_locator,
            parts: self.parts.clone(),
            value: self.value,
        }
    }
}

/// The name in the command's ControlParameters.
pub(super) fn prefix(interest: &Interest<'_>) -> Option<Name> {
    let component = interest.name.get(PREFIX_LEN)?;
    ControlParameters::decode(component.value).ok()?.name
}

fn without_digest(name: NameRef<'_>) -> NameRef<'_> {
    let is_digest = |last: Component<'_>| last.typ == types::PARAMETERS_SHA256_DIGEST;
    if name.last().is_some_and(is_digest) { name.without_last(1) } else { name }
}
