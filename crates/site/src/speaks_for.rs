//! The user for whom a door sends a command or asks a question.
//!
//! ```text
//! SpeaksFor = User Group*
//! ```
//! It stands first in the parameters, of commands and of questions alike: it is under the door's
//! signature, or the keys of its session. Groups are those that the door says the user is in; if
//! there are none, those of the catalog count. Whether the door may say so is the catalog's matter.

use byname_catalog::SpokenFor;
use byname_packet::DecodeError;

use crate::codec::{Fields, Writer};
use crate::numbers as tag;
use crate::parts::read_texts;

const WITHIN: &str = "parameters";
/// Most groups that a door says a user is in.
const GROUPS_MAX: usize = 64;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpeaksFor {
    /// The user.
    pub user: String,
    /// Groups that the user is said to be in.
    pub groups: Vec<String>,
}

impl SpeaksFor {
    /// The same as the catalog has it, from a door.
    pub fn by(self, door: String) -> SpokenFor {
        let Self { user, groups } = self;
        SpokenFor { door, user, groups }
    }

    /// The parameters of this user's question.
    pub fn asking(&self, question: &[u8]) -> Vec<u8> {
        let mut writer = Writer::default();
        write(&mut writer, Some(self));
        writer.0.extend_from_slice(question);
        writer.0
    }

    /// For whom parameters are, if that is said, and what is behind it. A question is text, which
    /// never begins as this element does.
    ///
    /// # Errors
    /// [`DecodeError`] if the element is malformed.
    pub fn split(parameters: &[u8]) -> Result<(Option<Self>, &[u8]), DecodeError> {
        let mut empty = Writer::default();
        empty.flag(tag::SPEAKS_FOR, true);
        // Its last octet is the length.
        if !parameters.starts_with(&empty.0[..empty.0.len() - 1]) {
            return Ok((None, parameters));
        }
        let wire = Fields::new(parameters, WITHIN).wire(tag::SPEAKS_FOR)?;
        let speaks_for = read(&mut Fields::new(wire, WITHIN))?;
        Ok((speaks_for, &parameters[wire.len()..]))
    }
}

pub(crate) fn write(writer: &mut Writer, speaks_for: Option<&SpeaksFor>) {
    let Some(SpeaksFor { user, groups }) = speaks_for else { return };
    writer.nested(tag::SPEAKS_FOR, |writer| {
        writer.text(tag::USER, user);
        groups.iter().for_each(|group| writer.text(tag::GROUP, group));
    });
}

pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Option<SpeaksFor>, DecodeError> {
    let Some(mut fields) = fields.optional_nested(tag::SPEAKS_FOR)? else { return Ok(None) };
    let user = fields.text(tag::USER)?;
    let groups = read_texts(&mut fields, tag::GROUP, GROUPS_MAX)?;
    fields.end()?;
    Ok(Some(SpeaksFor { user, groups }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_says_for_whom_it_is_asked_or_is_what_it_was() {
        let anna = SpeaksFor { user: "anna".into(), groups: vec!["physics".into()] };
        let asked = anna.asking(b"describe /lab/a");
        assert_eq!(SpeaksFor::split(&asked), Ok((Some(anna), b"describe /lab/a".as_slice())));
        for plain in [b"".as_slice(), b"status", "describe /ä".as_bytes(), &[0xFD], &[0xFD, 0xF7]]
        {
            assert_eq!(SpeaksFor::split(plain), Ok((None, plain)));
        }
        assert!(SpeaksFor::split(&asked[..8]).is_err());
        assert!(SpeaksFor::split(&[0xFD, 0xF7, 0x20, 0]).is_err(), "nobody");
    }
}
