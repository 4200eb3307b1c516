//! Doors: programs that act for users whom they have authenticated, and for whom they may.

use crate::codec::{Decoder, Encoder, Malformed};
use crate::engine::Table;
use crate::record::User;
use crate::refusal::Refusal;
use crate::view::Record;

/// Most names of one kind in a grant.
pub const GRANT_NAMES_MAX: usize = 256;

/// For whom a door may speak. Nobody, unless it says so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grant {
    /// All users but operators.
    pub is_for_all: bool,
    /// These users, operators too.
    pub users: Vec<String>,
    /// Users that the catalog has in one of these groups, but no operators.
    pub groups: Vec<String>,
    /// Groups that it may say a user is in, though the catalog does not.
    pub asserted: Vec<String>,
}

/// A door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    /// For whom it may speak.
    pub grant: Grant,
}

/// A user for whom a door speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpokenFor {
    /// Name of the door.
    pub door: String,
    /// The user.
    pub user: String,
    /// Groups that the door says the user is in; the first is that of new files. If there are none,
    /// those count that the catalog has.
    pub groups: Vec<String>,
}

impl Grant {
    /// Checks that a door may say what it says: who it is for, and in which groups that is.
    pub(crate) fn check(&self, spoken: &SpokenFor, user: &User) -> Result<(), Refusal> {
        let has = |names: &[String], name: &String| names.contains(name);
        let is_named = has(&self.users, &spoken.user);
        let is_in_group = user.groups.iter().any(|group| has(&self.groups, group));
        if !is_named && user.is_operator {
            return Err(Refusal::MayNotSpeakForOperator);
        }
        if !is_named && !self.is_for_all && !is_in_group {
            return Err(Refusal::MayNotSpeakFor);
        }
        let may_say = |group: &String| has(&user.groups, group) || has(&self.asserted, group);
        if !spoken.groups.iter().all(may_say) {
            return Err(Refusal::MayNotAssertGroup);
        }
        Ok(())
    }
}

impl Record for Door {
    const TABLE: Table = Table::Door;

    fn encode(&self, encoder: &mut Encoder) {
        let Grant { is_for_all, users, groups, asserted } = &self.grant;
        encoder.octet((*is_for_all).into());
        for names in [users, groups, asserted] {
            encoder.number(names.len() as u64);
            names.iter().for_each(|name| encoder.octets(name.as_bytes()));
        }
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            grant: Grant {
                is_for_all: decoder.flag()?,
                users: decoder.list(Decoder::text)?,
                groups: decoder.list(Decoder::text)?,
                asserted: decoder.list(Decoder::text)?,
            },
        })
    }
}
