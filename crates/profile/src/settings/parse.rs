//! From the texts of files and variables to values.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::{
    ConfigError, FILE_BYTES_MAX, FORWARDER_SECTION, Kind, OPTIONS, Opt, Value, WrongValue,
};

use crate::units;

/// A file's text; `None` if there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(ConfigError::TooLong { path: path.to_owned() });
    }
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| ConfigError::NotText { path: path.to_owned() })
}

/// Checks a file without using it; returns the number of options of [`OPTIONS`] in it.
///
/// # Errors
/// [`ConfigError`] with the line.
pub fn check(path: &Path, text: &str) -> Result<usize, ConfigError> {
    options(path, text).map(|options| options.len())
}

/// The options of a file. Those of the forwarder alone are left out.
pub(super) fn options(path: &Path, text: &str) -> Result<Vec<(&'static Opt, Value)>, ConfigError> {
    let line_of = |span: Range<usize>| line(text, span.start);
    let document = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        line: error.span().map_or(1, line_of),
        message: error.message().to_owned(),
    })?;
    let mut found = Vec::new();
    for (section, content) in document.get_ref() {
        let Some(content) = content.get_ref().as_table() else {
            let (path, key) = (path.to_owned(), section.get_ref().to_string());
            let line = line_of(section.span());
            return Err(ConfigError::OutsideSection { path, line, key });
        };
        for (option, value) in content {
            let key = format!("{}.{}", section.get_ref(), option.get_ref());
            let line = line_of(option.span());
            let Some(option) = OPTIONS.iter().find(|known| known.name == key) else {
                if section.get_ref() == FORWARDER_SECTION {
                    continue;
                }
                return Err(ConfigError::UnknownOption { path: path.to_owned(), line, key });
            };
            let value = from_toml(option.kind, value.get_ref()).ok_or_else(|| {
                let found = text[value.span()].trim().to_owned();
                let wrong = WrongValue { key: option.name, wanted: option.kind, found };
                ConfigError::Value { path: path.to_owned(), line, wrong }
            })?;
            found.push((option, value));
        }
    }
    Ok(found)
}

/// The number, from 1, of the line in which an octet lies.
fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

fn from_toml(kind: Kind, value: &DeValue<'_>) -> Option<Value> {
    match kind {
        Kind::Text => Some(Value::Text(value.as_str()?.to_owned())),
        Kind::Size if value.as_str().is_some() => {
            units::size(value.as_str()?).ok().map(Value::Number)
        }
        Kind::Number | Kind::Size => {
            let number = value.as_integer()?;
            // What TOML calls an integer has 64 bits with a sign.
            let number = i64::from_str_radix(number.as_str(), number.radix()).ok()?;
            u64::try_from(number).ok().map(Value::Number)
        }
        Kind::Switch => value.as_bool().map(Value::Switch),
        Kind::List => {
            let items = value.as_array()?.iter();
            let texts = items.map(|item| item.get_ref().as_str().map(str::to_owned));
            texts.collect::<Option<_>>().map(Value::List)
        }
    }
}

/// The value of a variable.
pub(super) fn from_variable(option: &'static Opt, text: &OsStr) -> Result<Value, ConfigError> {
    let value = text.to_str().and_then(|text| from_text(option, text));
    value.ok_or_else(|| {
        let found = format!("{:?}", text.to_string_lossy());
        let wrong = WrongValue { key: option.name, wanted: option.kind, found };
        ConfigError::Variable { variable: option.variable, wrong }
    })
}

/// A value as it is written in the environment.
pub(super) fn from_text(option: &Opt, text: &str) -> Option<Value> {
    match option.kind {
        Kind::Text => Some(Value::Text(text.to_owned())),
        Kind::Number => {
            text.parse::<i64>().ok().and_then(|n| u64::try_from(n).ok()).map(Value::Number)
        }
        Kind::Size => units::size(text).ok().map(Value::Number),
        Kind::Switch => match text {
            "1" | "true" | "yes" | "on" => Some(Value::Switch(true)),
            "0" | "false" | "no" | "off" | "" => Some(Value::Switch(false)),
            _ => None,
        },
        Kind::List => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            Some(Value::List(items.map(str::to_owned).collect()))
        }
    }
}
