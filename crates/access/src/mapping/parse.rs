//! From the text of a table to its rows. Every mistake is told with its line.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{MappingError, Mistake, RowError};
use super::pattern::Pattern;
use super::{
    MEMBERSHIPS_MAX, MappingTable, Method, ROWS_MAX, Row, RowPlace, TABLE_BYTES_MAX, is_label,
};

/// The section of a row.
const SECTION: &str = "map";

impl MappingTable {
    /// A table in a file.
    ///
    /// # Errors
    /// [`MappingError`], with the line of a mistake.
    pub fn read(path: &Path) -> Result<Self, MappingError> {
        let unreadable = |source| MappingError::Unreadable { path: path.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        let mut octets = Vec::new();
        let limit = TABLE_BYTES_MAX as u64 + 1;
        file.take(limit).read_to_end(&mut octets).map_err(unreadable)?;
        if octets.len() > TABLE_BYTES_MAX {
            return Err(MappingError::TooLong { path: path.to_owned() });
        }
        let text = String::from_utf8(octets);
        let text = text.map_err(|_| MappingError::NotText { path: path.to_owned() })?;
        Self::parse(&text).map_err(|source| MappingError::Row { path: path.to_owned(), source })
    }

    /// A table.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn parse(text: &str) -> Result<Self, RowError> {
        let line = |at: usize| 1 + text.bytes().take(at).filter(|octet| *octet == b'\n').count();
        let document = DeTable::parse(text).map_err(|error| RowError {
            line: error.span().map_or(1, |span| line(span.start)),
            what: Mistake::Syntax(error.message().to_owned()),
        })?;
        let mut rows = Vec::new();
        for (key, value) in document.get_ref() {
            let at = line(key.span().start);
            let array = value.get_ref().as_array().filter(|_| key.get_ref() == SECTION);
            let Some(array) = array else {
                return Err(RowError { line: at, what: Mistake::NoRow(key.get_ref().to_string()) });
            };
            if array.len() > ROWS_MAX {
                return Err(RowError { line: at, what: Mistake::TooManyRows });
            }
            for (index, row) in array.iter().enumerate() {
                let place = RowPlace { number: index + 1, line: line(row.span().start) };
                let Some(table) = row.get_ref().as_table() else {
                    let what = Mistake::NoRow(key.get_ref().to_string());
                    return Err(RowError { line: place.line, what });
                };
                let failed = |(at, what): (Option<usize>, Mistake)| RowError {
                    line: at.map_or(place.line, line),
                    what,
                };
                rows.push(Fields(table).row(place).map_err(failed)?);
            }
        }
        Ok(Self { rows })
    }
}

/// Options of a row. A mistake has its octet in the text, or is about all of the row.
struct Fields<'a>(&'a DeTable<'a>);

type Taken<T> = Result<T, (Option<usize>, Mistake)>;

impl Fields<'_> {
    fn row(&self, place: RowPlace) -> Taken<Row> {
        const KEYS: [&str; 8] = ["method", "name", "vo", "role", "group", "user", "groups", "deny"];
        for key in self.0.keys() {
            if !KEYS.contains(&key.get_ref().as_ref()) {
                let what = Mistake::UnknownKey(key.get_ref().to_string());
                return Err((Some(key.span().start), what));
            }
        }
        let (method, at) = self.text("method")?.ok_or((None, Mistake::NoMethod))?;
        let method = Method::of(method).ok_or((Some(at), Mistake::BadMethod(method.to_owned())))?;
        let name = self.pattern("name")?;
        let stars = name.as_ref().map_or(0, Pattern::star_count);
        let user = self.template("user", stars)?;
        let groups = self.groups(stars)?;
        let target = match (user, self.is_denial()?) {
            (Some(user), false) => Some((user, groups)),
            (None, true) if groups.is_empty() => None,
            (None, true) => return Err((None, Mistake::GroupsOfNobody)),
            _ => return Err((None, Mistake::NoTarget)),
        };
        let (vo, role) = (self.pattern("vo")?, self.pattern("role")?);
        Ok(Row { place, method, name, vo, role, group: self.pattern("group")?, target })
    }

    fn value(&self, key: &str) -> Option<&Spanned<DeValue<'_>>> {
        self.0.iter().find(|(known, _)| known.get_ref() == key).map(|(_, value)| value)
    }

    fn text(&self, key: &str) -> Taken<Option<(&str, usize)>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let at = value.span().start;
        let wrong = || (Some(at), Mistake::Kind { key: key.to_owned(), wanted: "text" });
        Ok(Some((value.get_ref().as_str().ok_or_else(wrong)?, at)))
    }

    fn pattern(&self, key: &str) -> Taken<Option<Pattern>> {
        let Some((text, at)) = self.text(key)? else { return Ok(None) };
        let pattern = Pattern::new(text);
        pattern.map(Some).ok_or((Some(at), Mistake::BadPattern(key.to_owned())))
    }

    fn template(&self, key: &str, stars: usize) -> Taken<Option<String>> {
        let text = self.text(key)?;
        text.map(|(text, at)| checked(text, stars).map_err(|what| (Some(at), what))).transpose()
    }

    fn groups(&self, stars: usize) -> Taken<Vec<String>> {
        let Some(value) = self.value("groups") else { return Ok(Vec::new()) };
        let at = value.span().start;
        let wrong = || {
            let (key, wanted) = ("groups".to_owned(), "list of texts");
            (Some(at), Mistake::Kind { key, wanted })
        };
        let items = value.get_ref().as_array().ok_or_else(wrong)?;
        if items.len() > MEMBERSHIPS_MAX {
            return Err((Some(at), Mistake::TooManyGroups));
        }
        let group = |item: &Spanned<DeValue<'_>>| {
            let text = item.get_ref().as_str().ok_or_else(wrong)?;
            checked(text, stars).map_err(|what| (Some(item.span().start), what))
        };
        items.iter().map(group).collect()
    }

    fn is_denial(&self) -> Taken<bool> {
        let Some(value) = self.value("deny") else { return Ok(false) };
        let wanted = "switch: true or false";
        let wrong = Mistake::Kind { key: "deny".to_owned(), wanted };
        value.get_ref().as_bool().ok_or((Some(value.span().start), wrong))
    }
}

/// A template whose stars the name's pattern has, and which may make a name.
fn checked(text: &str, stars: usize) -> Result<String, Mistake> {
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        let is_star = char == '$';
        let number = if is_star { chars.next().and_then(|digit| digit.to_digit(10)) } else { None };
        let is_there = number.is_some_and(|number| (1..=stars).contains(&(number as usize)));
        if is_star && !is_there {
            return Err(Mistake::BadTemplate(text.to_owned()));
        }
    }
    if is_label(text) { Ok(text.to_owned()) } else { Err(Mistake::BadLabel(text.to_owned())) }
}
