//! Links: all that a stranger needs to read a name, in one line that can be pasted.
//!
//! `byname:/lab/run7,via=tcp://host:6363,key=SHA256:…` holds a name, where to ask (any number of
//! times) and the key that is trusted for this name. The text printed has no character that a
//! shell, a mail program or a terminal treats specially. Parsing takes more than printing makes:
//! spaces and UTF-8 as they are, and the older form `byname:/lab?via=…&key=…`, of which a shell
//! without quotes cuts off what is behind the `&`.

use std::fmt;
use std::str::FromStr;

use byname_packet::{Name, UriError};
use byname_security::key::{KeyId, ParseKeyIdError};
use rustix::io::Errno;
use thiserror::Error;

/// Most `via` addresses in a link.
pub const VIA_MAX: usize = 16;

/// Longest link in octets.
pub const LINK_BYTES_MAX: usize = 8192;

const SCHEME: &str = "byname:";

/// A text that is no link.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LinkError {
    /// It does not begin with `byname:`.
    #[error("a link begins with byname:/")]
    NotALink,
    /// It is too long.
    #[error("a link has at most {LINK_BYTES_MAX} characters, not {length}")]
    TooLong {
        /// Octets given.
        length: usize,
    },
    /// The name does not parse.
    #[error("the name in the link cannot be read: {0}")]
    Name(#[from] UriError),
    /// A text without scheme is no name either.
    #[error(transparent)]
    PlainName(UriError),
    /// A part after `?` has no `=`.
    #[error("{part:?} in the link is not via=ADDRESS or key=SHA256:…")]
    NoValue {
        /// The part.
        part: String,
    },
    /// A part after `?` is neither `via` nor `key`.
    #[error(
        "unknown part {name:?} in the link (only via= and key= are known; a `?` of a name is \
         written %3F)"
    )]
    UnknownPart {
        /// The text before the `=`.
        name: String,
    },
    /// An address is no `scheme://rest`.
    #[error("via={address:?} in the link is no address such as tcp://host:6363")]
    Via {
        /// The address.
        address: String,
    },
    /// There are too many addresses.
    #[error("a link has at most {VIA_MAX} via= addresses")]
    TooManyVia,
    /// The key id does not parse.
    #[error("the key in the link cannot be read: {0}")]
    Key(#[from] ParseKeyIdError),
    /// A path stands behind the key.
    #[error(
        "{path:?} stands behind the key: a path goes before the first comma, \
         {SCHEME}{}{path},via=…", name.view().to_user()
    )]
    PathBehindKey {
        /// The name of the link.
        name: Name,
        /// The path, from its slash on.
        path: String,
    },
    /// There are two keys.
    #[error("the link has more than one key=")]
    TwoKeys,
}

impl LinkError {
    /// The errno for programs that know only numbers.
    pub fn errno(&self) -> i32 {
        match self {
            LinkError::NotALink
            | LinkError::TooLong { .. }
            | LinkError::Name(_)
            | LinkError::PlainName(_)
            | LinkError::NoValue { .. }
            | LinkError::UnknownPart { .. }
            | LinkError::Via { .. }
            | LinkError::TooManyVia
            | LinkError::Key(_)
            | LinkError::PathBehindKey { .. }
            | LinkError::TwoKeys => Errno::INVAL.raw_os_error(),
        }
    }
}

/// A name, where to ask for it, and whose signature counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The published name; the key counts for names that begin with it.
    pub name: Name,
    /// Addresses of forwarders, in order of preference.
    pub via: Vec<String>,
    /// The publisher's key.
    pub key: Option<KeyId>,
}

/// True if the text has addresses in the older form and no key: a shell may have cut that off.
pub fn may_be_cut(text: &str) -> bool {
    text.starts_with(SCHEME) && text.contains("?via=") && !text.contains("&key=")
}

impl Link {
    /// A name without address and key: the usual forwarder is asked, and trusted keys count.
    pub fn of_name(name: Name) -> Self {
        Self { name, via: Vec::new(), key: None }
    }

    /// A link, or a name as users write it.
    ///
    /// # Errors
    /// [`LinkError`] if it is neither.
    pub fn from_user(text: &str) -> Result<Self, LinkError> {
        if Self::is_link(text) {
            return text.parse();
        }
        Name::from_user(text).map(Self::of_name).map_err(LinkError::PlainName)
    }

    /// True if a text means a link rather than a name.
    pub fn is_link(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// No key has a slash: what begins with one was appended to the link.
    fn parse_key(&self, value: &str) -> Result<KeyId, LinkError> {
        match value.find('/') {
            Some(at) if value[..at].parse::<KeyId>().is_ok() => {
                let (name, path) = (self.name.clone(), value[at..].to_owned());
                Err(LinkError::PathBehindKey { name, path })
            }
            _ => Ok(value.parse()?),
        }
    }

    fn take(&mut self, part: &str) -> Result<(), LinkError> {
        let no_value = || LinkError::NoValue { part: part.to_owned() };
        let (name, value) = part.split_once('=').ok_or_else(no_value)?;
        match name {
            "via" if self.via.len() == VIA_MAX => return Err(LinkError::TooManyVia),
            "via" => self.via.push(parse_address(value)?),
            "key" if self.key.is_some() => return Err(LinkError::TwoKeys),
            "key" => self.key = Some(self.parse_key(value)?),
            _ => return Err(LinkError::UnknownPart { name: name.to_owned() }),
        }
        Ok(())
    }
}

impl FromStr for Link {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > LINK_BYTES_MAX {
            return Err(LinkError::TooLong { length: text.len() });
        }
        let rest = text.strip_prefix(SCHEME).ok_or(LinkError::NotALink)?;
        let (name, query, separator) = parts(rest);
        let mut link = Self { name: Name::from_user(name)?, via: Vec::new(), key: None };
        let mut parts = query.split(separator).filter(|part| !part.is_empty());
        parts.try_for_each(|part| link.take(part))?;
        Ok(link)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The user form has its own escapes, so its % stays.
        write!(f, "{SCHEME}{}", escape(&self.name.view().to_user(), "%/:="))?;
        for address in &self.via {
            write!(f, ",via={}", escape(address, "/:=@"))?;
        }
        if let Some(key) = self.key {
            write!(f, ",key={key}")?;
        }
        Ok(())
    }
}

/// Name, addresses and key, and what stands between these two. A name that somebody typed may
/// have commas and question marks itself.
fn parts(text: &str) -> (&str, &str, char) {
    let forms = [(",via=", ','), (",key=", ','), ("?via=", '&'), ("?key=", '&')];
    let found = forms.iter().filter_map(|(mark, separator)| Some((text.find(mark)?, *separator)));
    let found = found.min().or_else(|| {
        let mut marks = text.match_indices('?').map(|(at, _)| at);
        marks.find(|at| begins_query(&text[at + 1..])).map(|at| (at, '&'))
    });
    found.map_or((text, "", ','), |(at, separator)| (&text[..at], &text[at + 1..], separator))
}

/// True if what stands behind a `?` is no part of a name: nothing at all, or something with a `=`
/// before the next `/`. A mistyped part is to be refused, not looked for as a file.
fn begins_query(text: &str) -> bool {
    text.is_empty() || text.split('/').next().is_some_and(|piece| piece.contains('='))
}

/// A path as it is printed, with those commas and question marks escaped behind which a link could
/// go on: what comes out may be put into a link, in either form.
pub fn for_links(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for (at, c) in path.char_indices() {
        let rest = &path[at + c.len_utf8()..];
        let piece = rest.split('/').next().unwrap_or_default();
        match c {
            ',' if ["via=", "key="].iter().any(|part| rest.starts_with(part)) => {
                out.push_str("%2C")
            }
            '?' if piece.is_empty() || piece.contains('=') => out.push_str("%3F"),
            c => out.push(c),
        }
    }
    out
}

fn escape(text: &str, kept: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let character = char::from(byte);
        if character.is_ascii_alphanumeric()
            || "-._~".contains(character)
            || kept.contains(character)
        {
            out.push(character);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn parse_address(value: &str) -> Result<String, LinkError> {
    let refused = || LinkError::Via { address: value.to_owned() };
    let address = unescape(value).ok_or_else(refused)?;
    let (scheme, rest) = address.split_once("://").ok_or_else(refused)?;
    let scheme_ok = scheme.starts_with(|first: char| first.is_ascii_lowercase())
        && scheme.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if !scheme_ok || rest.is_empty() || rest.chars().any(char::is_control) {
        return Err(refused());
    }
    Ok(address)
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push((high << 4 | low) as u8);
    }
    String::from_utf8(bytes).ok()
}
