//! Access control lists by names of users and groups, as acl(5) has them.
//!
//! An inode's mode is the list's short form: its owner's and others' rights are the list's, and its
//! group bits are the *mask* where there is a list, which bounds all whom it names and the group.
//! So `chmod` needs to know nothing of lists. What the mode cannot say is in [`Named`].

use std::fmt;
use std::str::FromStr;

use crate::codec::{Decoder, Encoder, Malformed};
use crate::name::check_label;
use crate::refusal::Refusal;

/// Most users and groups that one list names.
pub const ACL_NAMES_MAX: usize = 32;
const ALL: u8 = 0o7;

/// Rights of somebody: read 4, write 2, execute 1.
type Rights = u8;

/// What a list has beyond a mode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Named {
    /// Rights of the group, before the mask.
    pub group: Rights,
    /// Users by name, in order, before the mask.
    pub users: Vec<(String, Rights)>,
    /// Other groups by name, in order, before the mask.
    pub groups: Vec<(String, Rights)>,
}

impl Named {
    pub(crate) fn encode(&self, encoder: &mut Encoder) {
        encoder.octet(self.group);
        for list in [&self.users, &self.groups] {
            encoder.number(list.len() as u64);
            for (name, rights) in list {
                encoder.octets(name.as_bytes());
                encoder.octet(*rights);
            }
        }
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let group = rights_of(decoder)?;
        let mut list = || decoder.list(|decoder| Ok((decoder.text()?, rights_of(decoder)?)));
        Ok(Self { group, users: list()?, groups: list()? })
    }

    /// Puts names in order; none may be there twice.
    fn sort(&mut self) -> Result<(), Refusal> {
        for list in [&mut self.users, &mut self.groups] {
            list.sort();
            if list.windows(2).any(|two| two[0].0 == two[1].0) {
                return Err(Refusal::BadAcl);
            }
        }
        Ok(())
    }
}

fn rights_of(decoder: &mut Decoder<'_>) -> Result<Rights, Malformed> {
    Some(decoder.octet()?).filter(|rights| *rights <= ALL).ok_or(Malformed)
}

/// A whole list. As text, it is that of setfacl(1): `u::rwx,u:anna:r-x,g::r-x,m::rwx,o::---`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl {
    /// Rights of the owner.
    pub owner: Rights,
    /// Rights of all who are not named and not in the group.
    pub other: Rights,
    /// Most that named users, named groups and the group have; needed if anybody is named.
    pub mask: Option<Rights>,
    /// Everybody else.
    pub named: Named,
}

impl Acl {
    /// The list of an inode with this mode, and this beside it.
    pub(crate) fn of_mode(mode: u16, named: Option<&Named>) -> Self {
        let class = |shift: u16| (mode >> shift) as u8 & ALL;
        let (mask, named) = match named {
            Some(named) => (Some(class(3)), named.clone()),
            None => (None, Named { group: class(3), ..Named::default() }),
        };
        Self { owner: class(6), other: class(0), mask, named }
    }

    /// The list that says what permission bits say.
    pub fn of_bits(mode: u16) -> Self {
        Self::of_mode(mode, None)
    }

    /// Permission bits that say what the list says, as far as bits can.
    pub fn permission_bits(&self) -> u16 {
        let group = self.mask.unwrap_or(self.named.group);
        u16::from(self.owner) << 6 | u16::from(group) << 3 | u16::from(self.other)
    }

    /// What a mode cannot say of it; none if that is all.
    pub(crate) fn beyond_mode(&self) -> Option<Box<Named>> {
        self.mask.map(|_| Box::new(self.named.clone()))
    }

    /// What something gets that is made with a mode in a directory with this default list: its mode
    /// and what is beside it. Neither grants what the other does not.
    pub(crate) fn inherited(&self, mode: u16) -> (u16, Option<Box<Named>>) {
        let made = mode & (self.permission_bits() | !0o777);
        (made, self.beyond_mode())
    }

    /// Puts names in order and checks what a list has to have.
    ///
    /// # Errors
    /// [`Refusal::BadAcl`], [`Refusal::BadLabel`].
    pub fn check(&mut self) -> Result<(), Refusal> {
        let Named { users, groups, .. } = &self.named;
        let count = users.len() + groups.len();
        if count > ACL_NAMES_MAX || (count > 0 && self.mask.is_none()) {
            return Err(Refusal::BadAcl);
        }
        users.iter().chain(groups).try_for_each(|(name, _)| check_name(name))?;
        self.named.sort()
    }

    pub(crate) fn encode(&self, encoder: &mut Encoder) {
        encoder.octet(self.owner);
        encoder.octet(self.other);
        encoder.octet(self.mask.map_or(u8::MAX, |mask| mask));
        self.named.encode(encoder);
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            owner: rights_of(decoder)?,
            other: rights_of(decoder)?,
            mask: match decoder.octet()? {
                u8::MAX => None,
                mask if mask <= ALL => Some(mask),
                _ => return Err(Malformed),
            },
            named: Named::decode(decoder)?,
        })
    }
}

/// A name that a list's text can have.
fn check_name(name: &str) -> Result<(), Refusal> {
    if name.contains([',', ':']) {
        return Err(Refusal::BadAcl);
    }
    check_label(name)
}

/// Rights as text: `rwx`, with `-` for what is missing.
struct Shown(Rights);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bit = |bit: u8, char: char| if self.0 & bit == 0 { '-' } else { char };
        write!(f, "{}{}{}", bit(4, 'r'), bit(2, 'w'), bit(1, 'x'))
    }
}

impl fmt::Display for Acl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "u::{}", Shown(self.owner))?;
        for (name, rights) in &self.named.users {
            write!(f, ",u:{name}:{}", Shown(*rights))?;
        }
        write!(f, ",g::{}", Shown(self.named.group))?;
        for (name, rights) in &self.named.groups {
            write!(f, ",g:{name}:{}", Shown(*rights))?;
        }
        if let Some(mask) = self.mask {
            write!(f, ",m::{}", Shown(mask))?;
        }
        write!(f, ",o::{}", Shown(self.other))
    }
}

impl FromStr for Acl {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let (mut owner, mut group, mut mask, mut other) = (None, None, None, None);
        let mut named = Named::default();
        for entry in text.split(',') {
            let AclEntry { who, rights } = entry.parse()?;
            let rights = rights.ok_or(Refusal::BadAcl)?;
            let place = match who {
                AclWho::Owner => &mut owner,
                AclWho::Group => &mut group,
                AclWho::Mask => &mut mask,
                AclWho::Other => &mut other,
                AclWho::User(name) => {
                    named.users.push((name, rights));
                    continue;
                }
                AclWho::NamedGroup(name) => {
                    named.groups.push((name, rights));
                    continue;
                }
            };
            if place.replace(rights).is_some() {
                return Err(Refusal::BadAcl);
            }
        }
        named.group = group.ok_or(Refusal::BadAcl)?;
        let (owner, other) = (owner.ok_or(Refusal::BadAcl)?, other.ok_or(Refusal::BadAcl)?);
        let mut acl = Self { owner, other, mask, named };
        acl.check()?;
        Ok(acl)
    }
}

/// Whom an entry of a list is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AclWho {
    /// The owner.
    Owner,
    /// A user by name.
    User(String),
    /// The group of the inode.
    Group,
    /// A group by name.
    NamedGroup(String),
    /// All of these but the owner, at most.
    Mask,
    /// All others.
    Other,
}

/// An entry of a list as text: `u:anna:rw-`; rights may be missing where it is to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AclEntry {
    /// Whom it is about.
    pub who: AclWho,
    /// His rights.
    pub rights: Option<u8>,
}

impl FromStr for AclEntry {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let parts: Vec<&str> = text.trim().split(':').collect();
        let (kind, name, rights) = match parts.as_slice() {
            // `m:rx` and `o:rx` name nobody.
            [kind @ ("m" | "mask" | "o" | "other"), rights] => (*kind, "", *rights),
            [kind @ ("m" | "mask" | "o" | "other")] => (*kind, "", ""),
            [kind, name] => (*kind, *name, ""),
            [kind, name, rights] => (*kind, *name, *rights),
            _ => return Err(Refusal::BadAcl),
        };
        if !name.is_empty() {
            check_name(name)?;
        }
        let who = match (kind, name) {
            ("u" | "user", "") => AclWho::Owner,
            ("u" | "user", name) => AclWho::User(name.to_owned()),
            ("g" | "group", "") => AclWho::Group,
            ("g" | "group", name) => AclWho::NamedGroup(name.to_owned()),
            ("m" | "mask", "") => AclWho::Mask,
            ("o" | "other", "") => AclWho::Other,
            _ => return Err(Refusal::BadAcl),
        };
        Ok(Self { who, rights: (!rights.is_empty()).then(|| read_rights(rights)).transpose()? })
    }
}

/// `rwx` in any order with `-` for nothing, or an octal digit.
fn read_rights(text: &str) -> Result<Rights, Refusal> {
    if let Ok(digit) = text.parse::<u8>() {
        return Some(digit).filter(|digit| *digit <= ALL).ok_or(Refusal::BadAcl);
    }
    text.chars().try_fold(0, |rights, char| match char {
        'r' => Ok(rights | 4),
        'w' => Ok(rights | 2),
        'x' => Ok(rights | 1),
        '-' => Ok(rights),
        _ => Err(Refusal::BadAcl),
    })
}

/// The lists of an inode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Acls {
    /// What its mode does not say of who may do what.
    pub access: Option<Box<Named>>,
    /// What is made in it begins with this; a directory's alone.
    pub default: Option<Box<Acl>>,
}

impl Acls {
    /// Ends a record. There is nothing where there are no lists, as it was before there were any.
    pub(crate) fn encode_tail(&self, encoder: &mut Encoder) {
        if self != &Self::default() {
            self.encode(encoder);
        }
    }

    /// The same where something follows.
    pub(crate) fn encode(&self, encoder: &mut Encoder) {
        encoder.octet(self.access.is_some().into());
        self.access.iter().for_each(|named| named.encode(encoder));
        encoder.octet(self.default.is_some().into());
        self.default.iter().for_each(|acl| acl.encode(encoder));
    }

    pub(crate) fn decode_tail(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        if decoder.0.is_empty() {
            return Ok(Self::default());
        }
        let access = decoder.flag()?.then(|| Named::decode(decoder)).transpose()?;
        let default = decoder.flag()?.then(|| Acl::decode(decoder)).transpose()?;
        Ok(Self { access: access.map(Box::new), default: default.map(Box::new) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_text_and_octets() {
        let text = "u::rwx,u:anna:r--,u:bert:---,g::r-x,g:cms:rw-,m::rwx,o::--x";
        let acl: Acl = text.parse().unwrap();
        assert_eq!(acl.to_string(), text);
        let other = "other:--x , group::rx,user::7,g:cms:6,u:bert:-,m:7,u:anna:4";
        assert_eq!(other.parse(), Ok(acl.clone()));
        let tail = Acls { access: acl.beyond_mode(), default: Some(Box::new(acl)) };
        for acls in [tail.clone(), Acls { default: None, ..tail }, Acls::default()] {
            let mut encoder = Encoder::default();
            acls.encode_tail(&mut encoder);
            assert_eq!(Acls::decode_tail(&mut Decoder(&encoder.0)), Ok(acls));
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for bad in [
            "",
            "u::rwx",
            "u::rwx,g::r-x",
            "u::rwx,g::r-x,o::---,u:anna:r--",
            "u::rwx,g::r-x,o::---,u:anna:r--,u:anna:r-x,m::rwx",
            "u::rwx,g::r-x,o::---,o::r--",
            "u::rwz,g::r-x,o::---",
            "u::8,g::r-x,o::---",
            "u::rwx,g::r-x,o:x:---",
            "u::rwx,g::r-x,o::---,m::rwx,u:a b:r--",
            "d:u::rwx,g::r-x,o::---",
        ] {
            assert!(bad.parse::<Acl>().is_err(), "{bad}");
        }
        let many: Vec<String> = (0..=ACL_NAMES_MAX).map(|n| format!("u:u{n}:r")).collect();
        let text = |count| format!("u::7,g::5,o::0,m::7,{}", many[..count].join(","));
        assert!(text(ACL_NAMES_MAX).parse::<Acl>().is_ok());
        assert_eq!(text(ACL_NAMES_MAX + 1).parse::<Acl>(), Err(Refusal::BadAcl));
    }
}
