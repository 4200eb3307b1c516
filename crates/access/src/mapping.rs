//! Who somebody is at a site whom a door has authenticated: a table that its administrator writes.
//!
//! Rows are looked at in their order, and the first that fits decides; whoever fits none is nobody.
//! A row has a method and patterns, and a user, or says that there is none. What a row makes of a
//! name has to be a name that a site can have for a user: `root/admin` is nobody, rather than
//! somebody else.
//!
//! Nothing here reads a file or a clock but [`MappingTable::read`].

mod error;
mod parse;
mod pattern;

use std::fmt;

use byname_catalog::LABEL_BYTES_MAX;

pub use error::{MappingError, RowError};

use pattern::Pattern;

/// Longest table, in octets.
const TABLE_BYTES_MAX: usize = 1 << 20;
/// Most rows of a table.
const ROWS_MAX: usize = 4096;
/// Most memberships of somebody that are looked at, and most groups of a row.
pub const MEMBERSHIPS_MAX: usize = 64;
/// Longest name that somebody may have, in octets.
const NAME_BYTES_MAX: usize = 4096;

/// How somebody showed who he is: XRootD's names of protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Kerberos: the name is a principal.
    Krb5,
    /// A bearer token: the name is what the door's library has made of it.
    Token,
    /// A certificate: the name is its subject, memberships are VOMS's.
    Gsi,
    /// What a client says of itself, and nobody has checked.
    Unix,
    /// A shared secret, whose holder says for whom he acts.
    Sss,
    /// The machine: the name is its name.
    Host,
}

impl Method {
    const ALL: [(&'static str, Self); 7] = [
        ("krb5", Self::Krb5),
        ("token", Self::Token),
        ("ztn", Self::Token),
        ("gsi", Self::Gsi),
        ("unix", Self::Unix),
        ("sss", Self::Sss),
        ("host", Self::Host),
    ];

    /// The method of this name, as XRootD or a table has it.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, method)| method)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.into_iter().find(|(_, method)| method == self);
        out.write_str(name.map_or("", |(name, _)| name))
    }
}

/// A group that somebody is in, and as what. What a method does not say is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Membership {
    /// Virtual organisation.
    pub vo: String,
    /// Role.
    pub role: String,
    /// Group.
    pub group: String,
}

/// Somebody as a door has authenticated him.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presented {
    /// How.
    pub method: Method,
    /// His name there.
    pub name: String,
    /// What else is known of him.
    pub memberships: Vec<Membership>,
}

impl Presented {
    /// Somebody with lists that go together column by column, as XRootD has them; what one of them
    /// lacks is empty.
    pub fn with_columns(
        (method, name): (Method, String),
        vos: &[String],
        roles: &[String],
        groups: &[String],
    ) -> Self {
        let count = vos.len().max(roles.len()).max(groups.len()).min(MEMBERSHIPS_MAX);
        let at = |list: &[String], index: usize| list.get(index).cloned().unwrap_or_default();
        let membership = |index| Membership {
            vo: at(vos, index),
            role: at(roles, index),
            group: at(groups, index),
        };
        Self { method, name, memberships: (0..count).map(membership).collect() }
    }
}

/// A row of a table, by its number from 1, and the line where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPlace {
    /// Its number.
    pub number: usize,
    /// Its line.
    pub line: usize,
}

impl fmt::Display for RowPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "row {} (line {})", self.number, self.line)
    }
}

/// A user of the site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
    /// The user.
    pub user: String,
    /// Groups that he acts in; if there are none, those count that the site has him in.
    pub groups: Vec<String>,
    /// The row that says so.
    pub row: RowPlace,
}

/// Reason for which somebody is no user of the site.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// No row fits.
    #[error("no row fits")]
    NoRow,
    /// A row says so.
    #[error("{0} denies it")]
    Row(RowPlace),
    /// What a row makes of the name is no name.
    #[error("{row} makes {text:?} of it, which no user or group can be called")]
    BadLabel {
        /// The row.
        row: RowPlace,
        /// What it makes.
        text: String,
    },
    /// The name is too long to be looked at.
    #[error("the name is longer than {NAME_BYTES_MAX} octets")]
    TooLong,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingTable {
    rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    place: RowPlace,
    method: Method,
    name: Option<Pattern>,
    vo: Option<Pattern>,
    role: Option<Pattern>,
    group: Option<Pattern>,
    /// User and groups, in which `$1` is what the first star of the name stands for; none denies.
    target: Option<(String, Vec<String>)>,
}

impl MappingTable {
    /// Who somebody is.
    ///
    /// # Errors
    /// [`Denial`], with the row that decides.
    pub fn map(&self, who: &Presented) -> Result<Mapped, Denial> {
        if who.name.len() > NAME_BYTES_MAX {
            return Err(Denial::TooLong);
        }
        let fitting = self.rows.iter().find_map(|row| Some((row, row.fits(who)?)));
        let (row, stars) = fitting.ok_or(Denial::NoRow)?;
        let (user, groups) = row.target.as_ref().ok_or(Denial::Row(row.place))?;
        let label = |template: &String| {
            let text = filled(template, &stars);
            if is_label(&text) { Ok(text) } else { Err(Denial::BadLabel { row: row.place, text }) }
        };
        let groups = groups.iter().map(label).collect::<Result<_, _>>()?;
        Ok(Mapped { user: label(user)?, groups, row: row.place })
    }

    /// Rows.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }
}

impl Row {
    /// What the stars of the name's pattern stand for, if the row is about somebody.
    fn fits<'a>(&self, who: &'a Presented) -> Option<Vec<&'a str>> {
        if self.method != who.method {
            return None;
        }
        let stars = match &self.name {
            Some(pattern) => pattern.stars(&who.name)?,
            None => Vec::new(),
        };
        let fits = |pattern: &Option<Pattern>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.stars(text).is_some())
        };
        let wants_none = [&self.vo, &self.role, &self.group].into_iter().all(Option::is_none);
        let is_member = |of: &Membership| {
            fits(&self.vo, &of.vo) && fits(&self.role, &of.role) && fits(&self.group, &of.group)
        };
        let memberships = who.memberships.iter().take(MEMBERSHIPS_MAX);
        (wants_none || memberships.into_iter().any(is_member)).then_some(stars)
    }
}

/// A template with what stars stand for.
fn filled(template: &str, stars: &[&str]) -> String {
    let (mut text, mut chars) = (String::new(), template.chars());
    while let Some(char) = chars.next() {
        let number =
            if char == '$' { chars.next().and_then(|digit| digit.to_digit(10)) } else { None };
        match number.and_then(|number| stars.get((number as usize).checked_sub(1)?)) {
            Some(star) => text.push_str(star),
            None => text.push(char),
        }
    }
    text
}

/// True for what a site may call a user or a group.
fn is_label(text: &str) -> bool {
    let is_plain = |char: char| !char.is_control() && !char.is_whitespace() && char != '/';
    (1..=LABEL_BYTES_MAX).contains(&text.len()) && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests;
