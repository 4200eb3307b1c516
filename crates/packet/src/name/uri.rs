//! Textual forms of names: the NDN URI scheme and byname's path form.
//!
//! The URI form can express every component; the path form is for people: every component is
//! generic, spaces and UTF-8 stand as they are, and only what would be ambiguous is escaped.
//! spec: NDN Packet Format §2 "NDN URI Scheme", naming conventions rev 3.

use super::{Name, NameRef};
use crate::component::{Component, NumberComponent};
use crate::error::UriError;
use crate::types;
use std::fmt::{self, Display, Formatter, Write};
use std::str::FromStr;

const MARKERS: [(&str, u16); 5] = [
    ("seg", types::SEGMENT),
    ("off", types::BYTE_OFFSET),
    ("v", types::VERSION),
    ("t", types::TIMESTAMP),
    ("seq", types::SEQUENCE_NUM),
];
const DIGESTS: [(&str, u16); 2] = [
    ("sha256digest", types::IMPLICIT_SHA256_DIGEST),
    ("params-sha256", types::PARAMETERS_SHA256_DIGEST),
];

impl FromStr for Name {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let path = text.strip_prefix("ndn:").unwrap_or(text);
        let Some(path) = path.strip_prefix('/') else {
            return Err(UriError::NoSlash { text: text.to_owned() });
        };
        let mut name = Name::new();
        if path.is_empty() {
            return Ok(name);
        }
        // One slash at the end is tolerated, as at the end of a folder's path.
        let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
        for part in path.split('/') {
            if part.is_empty() {
                return Err(UriError::EmptyComponent { text: text.to_owned() });
            }
            push_uri_component(&mut name, part)?;
        }
        Ok(name)
    }
}

fn push_uri_component(name: &mut Name, part: &str) -> Result<(), UriError> {
    let bad_value = || UriError::BadValue { component: part.to_owned() };
    let Some((marker, text)) = part.split_once('=') else {
        name.push_generic(&unescape_periods(part)?);
        return Ok(());
    };
    if let Some((_, typ)) = MARKERS.iter().find(|(known, _)| *known == marker) {
        let number = parse_decimal(text).ok_or_else(bad_value)?;
        name.push(NumberComponent::new(*typ, number).as_component());
        return Ok(());
    }
    if let Some((_, typ)) = DIGESTS.iter().find(|(known, _)| *known == marker) {
        let octets = decode_hex(text).filter(|octets| octets.len() == 32).ok_or_else(bad_value)?;
        name.push(Component { typ: *typ, value: &octets });
        return Ok(());
    }
    let typ = parse_decimal(marker).and_then(|typ| u16::try_from(typ).ok()).filter(|typ| *typ != 0);
    let typ = typ.ok_or_else(|| UriError::BadType { component: part.to_owned() })?;
    let value = unescape_periods(text)?;
    Component::decode(&encoded(typ, &value)).map_err(|_| bad_value())?;
    name.push(Component { typ, value: &value });
    Ok(())
}

/// Reads a decimal number in its one form: no sign, no leading zeros.
fn parse_decimal(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|octet| octet.is_ascii_digit());
    let is_shortest = text == "0" || !text.starts_with('0');
    if is_plain && is_shortest { text.parse().ok() } else { None }
}

fn encoded(typ: u16, value: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    Component { typ, value }.encode(&mut wire);
    wire
}

/// Undoes percent escapes, and the three extra periods of a component of periods only.
fn unescape_periods(text: &str) -> Result<Vec<u8>, UriError> {
    if !text.is_empty() && text.bytes().all(|octet| octet == b'.') {
        return match text.len() {
            1 | 2 => Err(UriError::DotComponent { text: text.to_owned() }),
            len => Ok(vec![b'.'; len - 3]),
        };
    }
    unescape(text)
}

fn unescape(text: &str) -> Result<Vec<u8>, UriError> {
    let bad = || UriError::BadEscape { component: text.to_owned() };
    let mut out = Vec::with_capacity(text.len());
    let mut octets = text.bytes();
    while let Some(octet) = octets.next() {
        if octet != b'%' {
            out.push(octet);
            continue;
        }
        let high = octets.next().and_then(hex_digit).ok_or_else(bad)?;
        let low = octets.next().and_then(hex_digit).ok_or_else(bad)?;
        out.push(high << 4 | low);
    }
    Ok(out)
}

fn hex_digit(octet: u8) -> Option<u8> {
    char::from(octet).to_digit(16).map(|digit| digit as u8)
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.bytes().map(hex_digit).collect();
    let digits = digits?;
    (digits.len() % 2 == 0).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

impl Display for NameRef<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_char('/');
        }
        for component in self.components() {
            write!(f, "/{component}")?;
        }
        Ok(())
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.view(), f)
    }
}

impl fmt::Debug for NameRef<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ndn:{self}")
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ndn:{self}")
    }
}

impl Display for Component<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some((marker, _)) = DIGESTS.iter().find(|(_, typ)| *typ == self.typ) {
            write!(f, "{marker}=")?;
            return self.value.iter().try_for_each(|octet| write!(f, "{octet:02x}"));
        }
        let marker = MARKERS.iter().find(|(_, typ)| *typ == self.typ);
        if let Some(((marker, typ), number)) = marker.and_then(|m| Some((m, self.number(m.1)?))) {
            debug_assert_eq!(*typ, self.typ);
            return write!(f, "{marker}={number}");
        }
        if self.typ != types::GENERIC {
            write!(f, "{}=", self.typ)?;
        }
        write_escaped(f, self.value)
    }
}

fn write_escaped(f: &mut Formatter<'_>, value: &[u8]) -> fmt::Result {
    if value.iter().all(|octet| *octet == b'.') {
        f.write_str("...")?;
    }
    for octet in value {
        match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                f.write_char(char::from(*octet))?;
            }
            _ => write!(f, "%{octet:02X}")?,
        }
    }
    Ok(())
}

impl Name {
    /// Reads the path form: `/` between generic components, `%XX` decoded, everything else literal.
    ///
    /// Repeated and trailing slashes are ignored, as in a file path.
    ///
    /// # Errors
    /// [`UriError`] when the text does not start with `/`, has a broken escape, or a component `.`
    /// or `..`.
    pub fn from_path(text: &str) -> Result<Self, UriError> {
        if !text.starts_with('/') {
            return Err(UriError::NoSlash { text: text.to_owned() });
        }
        let mut name = Name::new();
        for part in text.split('/').filter(|part| !part.is_empty()) {
            let value = unescape(part)?;
            if value == b"." || value == b".." {
                return Err(UriError::DotComponent { text: text.to_owned() });
            }
            name.push_generic(&value);
        }
        Ok(name)
    }

    /// Reads what a user types: `ndn:/…` in the URI form, anything else in the path form.
    ///
    /// # Errors
    /// [`UriError`], as [`Name::from_path`] and `Name::from_str`.
    pub fn from_user(text: &str) -> Result<Self, UriError> {
        if text.starts_with("ndn:") { text.parse() } else { Self::from_path(text) }
    }
}

impl NameRef<'_> {
    /// The form that [`Name::from_user`] reads back: a path where all components are generic and
    /// not empty, else `ndn:` and the URI form.
    pub fn to_user(&self) -> String {
        let plain = |c: Component<'_>| {
            c.typ == types::GENERIC && !c.value.is_empty() && c.value != b"." && c.value != b".."
        };
        if !self.components().all(plain) {
            return format!("ndn:{self}");
        }
        if self.is_empty() {
            return "/".to_owned();
        }
        let mut out = String::new();
        for component in self.components() {
            out.push('/');
            escape_path_component(component.value, &mut out);
        }
        out
    }
}

/// Appends `value` so that it can be pasted back into a path and harms no terminal.
///
/// UTF-8 stays readable; `%`, `/`, octets that are not UTF-8, control characters and those that
/// reorder or hide text are escaped.
pub fn escape_path_component(value: &[u8], out: &mut String) {
    for chunk in value.utf8_chunks() {
        for character in chunk.valid().chars() {
            if matches!(character, '%' | '/') || is_misleading(character) {
                let mut buffer = [0; 4];
                push_hex(character.encode_utf8(&mut buffer).as_bytes(), out);
            } else {
                out.push(character);
            }
        }
        push_hex(chunk.invalid(), out);
    }
}

/// True if a terminal would show something else than what stands there.
fn is_misleading(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
            | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

fn push_hex(octets: &[u8], out: &mut String) {
    for octet in octets {
        // Writing to a String cannot fail.
        let _ = write!(out, "%{octet:02X}");
    }
}
