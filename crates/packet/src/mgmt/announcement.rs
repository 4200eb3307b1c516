//! Prefix announcements: signed Data by which a producer says which prefix it serves.
//!
//! spec: NDN Prefix Announcement protocol: named `<prefix>/32=PA/v=<number>/seg=0`, ContentType 5;
//! the content holds ExpirationPeriod (milliseconds) and may hold a ValidityPeriod.

use super::{for_each_field, types};
use crate::component::Component;
use crate::data::{ContentType, Data};
use crate::error::DecodeError;
use crate::name::Name;
use crate::signature::{ValidityPeriod, decode_validity};
use crate::tlv;

/// Components behind the prefix.
const SUFFIX_LEN: usize = 3;

/// Content of a prefix announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixAnnouncement {
    /// The prefix that is served.
    pub prefix: Name,
    /// Lifetime of a route made of it, in milliseconds.
    pub expiration_period_ms: u64,
    /// When it may be used at all.
    pub validity: Option<ValidityPeriod>,
}

impl PrefixAnnouncement {
    /// Reads the announcement that a Data packet carries.
    ///
    /// # Errors
    /// [`DecodeError`] when the packet is something else, or malformed.
    pub fn from_data(data: &Data<'_>) -> Result<Self, DecodeError> {
        const WITHIN: &str = "PrefixAnnouncement";
        let bad = |element| DecodeError::BadValue { element };
        if data.meta.content_type != ContentType::PREFIX_ANNOUNCEMENT {
            return Err(bad("ContentType of a prefix announcement"));
        }
        let count = data.name.count();
        let from_end = |n: usize| count.checked_sub(n).and_then(|index| data.name.get(index));
        let is_named = from_end(3).is_some_and(|c| c == Component::keyword(b"PA"))
            && from_end(2).is_some_and(|c| c.version().is_some())
            && from_end(1).is_some_and(|c| c.segment() == Some(0));
        if !is_named {
            return Err(bad("Name of a prefix announcement"));
        }
        let (mut expiration_period_ms, mut validity) = (None, None);
        for_each_field(data.content, WITHIN, None, |element| {
            match element.typ {
                types::EXPIRATION_PERIOD => {
                    let period = tlv::read_nni(element.value, "ExpirationPeriod")?;
                    expiration_period_ms = Some(period);
                }
                crate::types::VALIDITY_PERIOD => validity = Some(decode_validity(element.value)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let missing = DecodeError::Missing { element: "ExpirationPeriod", within: WITHIN };
        Ok(Self {
            prefix: data.name.without_last(SUFFIX_LEN).to_name(),
            expiration_period_ms: expiration_period_ms.ok_or(missing)?,
            validity,
        })
    }
}
