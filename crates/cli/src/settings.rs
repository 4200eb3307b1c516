//! Options from flags, environment, files and defaults, and where each came from.
//!
//! One table lists every option; the files, `BYNAME_*`, `config show` and `config check` are all
//! read off it, so an option cannot exist in one place only. Precedence: flag, environment, user
//! file, system file, default. The forwarder has many more options, in the files only: they are
//! checked and read by [`ForwarderFile`], and kept here as they stand.

use crate::exit::{Code, Failure, Outcome};
use crate::paths::{Paths, SYSTEM_CONFIG};
use byname_node::{ForwarderFile, NodeConfig};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What an option holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    Switch,
    List,
}

/// One option.
#[derive(Debug)]
pub(crate) struct Key {
    /// `section.name` in the files.
    pub(crate) name: &'static str,
    pub(crate) env: &'static str,
    pub(crate) kind: Kind,
    /// As it would be written in the environment.
    pub(crate) default: &'static str,
    pub(crate) help: &'static str,
}

const fn key(
    name: &'static str,
    env: &'static str,
    kind: Kind,
    default: &'static str,
    help: &'static str,
) -> Key {
    Key { name, env, kind, default, help }
}

/// Every option there is.
pub(crate) const KEYS: &[Key] = &[
    key("client.connect", "BYNAME_CONNECT", Kind::Text, "", "forwarder to use (URI)"),
    key("client.timeout_s", "BYNAME_TIMEOUT", Kind::Number, "15", "silence that counts as failure"),
    key("client.retries", "BYNAME_RETRIES", Kind::Number, "5", "retransmissions of one Interest"),
    key("client.transfers", "BYNAME_TRANSFERS", Kind::Number, "8", "files fetched side by side"),
    key("client.bwlimit", "BYNAME_BWLIMIT", Kind::Number, "0", "octets per second, 0 for no limit"),
    key("forwarder.listen", "BYNAME_LISTEN", Kind::List, "", "addresses to listen on (URIs)"),
    key(
        "forwarder.content_store_mib",
        "BYNAME_CONTENT_STORE_MIB",
        Kind::Number,
        "64",
        "memory for packets kept to answer repeated requests",
    ),
    key("server.hidden", "BYNAME_HIDDEN", Kind::Switch, "false", "publish dot-files"),
    key("server.private", "BYNAME_PRIVATE", Kind::Switch, "false", "publish owner-only files"),
    key(
        "server.freshness_ms",
        "BYNAME_FRESHNESS_MS",
        Kind::Number,
        "1000",
        "freshness of metadata",
    ),
    key(
        "server.quiet_ms",
        "BYNAME_QUIET_MS",
        Kind::Number,
        "100",
        "rest before a file is published",
    ),
    key("server.workers", "BYNAME_WORKERS", Kind::Number, "1", "threads that read for readers"),
    key("server.open_files", "BYNAME_OPEN_FILES", Kind::Number, "256", "files kept open"),
];

/// The origin of values that nobody has set.
const DEFAULT: &str = "default";

/// A value and where it came from.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) value: toml::Value,
    pub(crate) origin: String,
}

/// All options with their values.
#[derive(Debug)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, Setting>,
    /// The `[forwarder]` sections of all files, and where each option came from.
    forwarder: BTreeMap<String, Setting>,
}

/// What stands in a file.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) options: Vec<(&'static Key, toml::Value)>,
    pub(crate) forwarder: toml::Table,
}

/// The section in which the forwarder's own options stand.
const FORWARDER: &str = "forwarder";

impl Settings {
    /// Reads defaults, files and environment.
    ///
    /// # Errors
    /// A file that cannot be read or parsed, an unknown option, or a value of the wrong kind; each
    /// names the file or variable.
    pub(crate) fn load(paths: &Paths) -> Outcome<Self> {
        Self::load_files(&[PathBuf::from(SYSTEM_CONFIG), paths.config_file.clone()])
    }

    /// Reads one file in place of the usual ones.
    ///
    /// # Errors
    /// As [`Settings::load`], and when the file is not there.
    pub(crate) fn load_only(file: &Path) -> Outcome<Self> {
        if let Err(error) = std::fs::metadata(file) {
            return Err(Failure::disk(file, error));
        }
        Self::load_files(&[file.to_owned()])
    }

    fn load_files(files: &[PathBuf]) -> Outcome<Self> {
        let mut settings = Self::defaults()?;
        for file in files {
            settings.add_file(file)?;
        }
        for key in KEYS {
            if let Ok(text) = std::env::var(key.env) {
                let value = parse(key, &text).map_err(|failure| {
                    let cause = failure.message;
                    Failure::usage(format!("environment variable {}: {cause}", key.env))
                })?;
                settings.put(key, value, format!("environment {}", key.env));
            }
        }
        Ok(settings)
    }

    pub(crate) fn defaults() -> Outcome<Self> {
        let mut settings = Self { values: BTreeMap::new(), forwarder: BTreeMap::new() };
        for key in KEYS {
            settings.put(key, parse(key, key.default)?, DEFAULT.into());
        }
        Ok(settings)
    }

    fn put(&mut self, key: &'static Key, value: toml::Value, origin: String) {
        self.values.insert(key.name, Setting { value, origin });
    }

    fn add_file(&mut self, file: &Path) -> Outcome {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Failure::disk(file, error)),
        };
        let parsed = parse_file(file, &text)?;
        let origin = file.display().to_string();
        for (key, value) in parsed.options {
            self.put(key, value, origin.clone());
        }
        for (option, value) in parsed.forwarder {
            self.forwarder.insert(option, Setting { value, origin: origin.clone() });
        }
        Ok(())
    }

    /// Options of the forwarder that only files have, as `forwarder.name`.
    pub(crate) fn forwarder_options(&self) -> impl Iterator<Item = (String, &Setting)> {
        self.forwarder.iter().map(|(option, setting)| (format!("{FORWARDER}.{option}"), setting))
    }

    /// The `[forwarder]` section: what the files say, and the environment over it.
    ///
    /// # Errors
    /// What two files say may be right each and wrong together.
    pub(crate) fn forwarder(&self) -> Outcome<ForwarderFile> {
        let mut table = toml::Table::new();
        for (option, setting) in &self.forwarder {
            table.insert(option.clone(), setting.value.clone());
        }
        for (key, setting) in self.all() {
            let is_set = setting.origin != DEFAULT;
            if let Some(option) = key.name.strip_prefix("forwarder.").filter(|_| is_set) {
                table.insert(option.to_owned(), setting.value.clone());
            }
        }
        table.try_into().map_err(|error| Failure::usage(format!("[{FORWARDER}]: {error}")))
    }

    /// Every option with its value, in the order of the table.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static Key, &Setting)> {
        KEYS.iter().filter_map(|key| Some((key, self.values.get(key.name)?)))
    }

    fn get(&self, name: &str) -> &toml::Value {
        &self.values.get(name).expect("every option has a default").value
    }

    /// A text; `None` when empty.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name).as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// A number that is not negative.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.get(name).as_integer().and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
    }

    /// A switch.
    pub(crate) fn switch(&self, name: &str) -> bool {
        self.get(name).as_bool().unwrap_or(false)
    }

    /// A list of texts.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let items = self.get(name).as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }
}

fn parse(key: &Key, text: &str) -> Outcome<toml::Value> {
    let wrong = |wanted: &str| Failure::usage(format!("{} wants {wanted}, not {text:?}", key.name));
    match key.kind {
        Kind::Text => Ok(toml::Value::String(text.to_owned())),
        Kind::Number => match text.parse::<i64>() {
            Ok(number) if number >= 0 => Ok(toml::Value::Integer(number)),
            _ => Err(wrong("a whole number")),
        },
        Kind::Switch => match text {
            "1" | "true" | "yes" | "on" => Ok(toml::Value::Boolean(true)),
            "0" | "false" | "no" | "off" | "" => Ok(toml::Value::Boolean(false)),
            _ => Err(wrong("true or false")),
        },
        Kind::List => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            Ok(toml::Value::Array(items.map(|item| toml::Value::String(item.into())).collect()))
        }
    }
}

fn is_kind(kind: Kind, value: &toml::Value) -> bool {
    match kind {
        Kind::Text => value.is_str(),
        Kind::Number => value.as_integer().is_some_and(|number| number >= 0),
        Kind::Switch => value.is_bool(),
        Kind::List => value.as_array().is_some_and(|items| items.iter().all(toml::Value::is_str)),
    }
}

/// Reads a file's options.
///
/// # Errors
/// Names the file and what is wrong in it.
pub(crate) fn parse_file(file: &Path, text: &str) -> Outcome<Parsed> {
    let fail = |cause: String| {
        Failure::new(Code::Usage, format!("{}: {cause}", file.display()))
            .hint("`byname config show` lists every option")
    };
    let table: toml::Table = text.parse().map_err(|error| fail(format!("{error}")))?;
    check_forwarder(text).map_err(|error| fail(error.to_string()))?;
    let mut parsed = Parsed::default();
    for (section, content) in table {
        let toml::Value::Table(options) = content else {
            return Err(fail(format!("option {section:?} stands outside a [section]")));
        };
        for (option, value) in options {
            let name = format!("{section}.{option}");
            let known = KEYS.iter().find(|key| key.name == name);
            let Some(key) = known else {
                if section != FORWARDER {
                    return Err(fail(format!("unknown option {name}")));
                }
                parsed.forwarder.insert(option, value);
                continue;
            };
            if !is_kind(key.kind, &value) {
                return Err(fail(format!("{name} wants {:?}, not {value}", key.kind)));
            }
            parsed.options.push((key, value));
        }
    }
    Ok(parsed)
}

/// Whether a node can be had with the `[forwarder]` section of a file. Errors name the line.
fn check_forwarder(text: &str) -> Result<(), ForwarderError> {
    #[derive(Deserialize)]
    struct Sections {
        #[serde(default)]
        forwarder: ForwarderFile,
    }
    let sections: Sections = toml::from_str(text)?;
    Ok(sections.forwarder.apply(&mut NodeConfig::default())?)
}

/// What is wrong with a `[forwarder]` section.
#[derive(Debug, thiserror::Error)]
enum ForwarderError {
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    #[error(transparent)]
    Value(#[from] byname_node::file::FileError),
}

#[cfg(test)]
mod tests {
    use super::{KEYS, Settings, parse_file};
    use std::path::Path;

    #[test]
    fn defaults_are_of_their_kind() {
        let settings = Settings::defaults().unwrap();
        assert_eq!(settings.all().count(), KEYS.len());
        assert_eq!(settings.number("client.timeout_s"), 15);
        assert!(!settings.switch("server.hidden"));
    }

    #[test]
    fn a_file_overrides_and_mistakes_are_named() {
        let file = Path::new("byname.toml");
        let good = "[client]\nretries = 9\n[forwarder]\nlisten = [\"udp://*\"]\n";
        assert_eq!(parse_file(file, good).unwrap().options.len(), 2);
        for (bad, word) in [
            ("[client]\nretires = 9\n", "retires"),
            ("[client]\nretries = \"x\"\n", "client.retries"),
            ("retries = 9\n", "outside"),
            ("[client\n", "byname.toml"),
            ("[client]\nretries = -1\n", "client.retries"),
            ("[forwarder]\npit_entires = 9\n", "pit_entires"),
            ("[forwarder]\nudp_mtu = 9\n", "udp_mtu"),
            ("[[forwarder.route]]\nprefix = \"/a\"\n", "line 1"),
        ] {
            let failure = parse_file(file, bad).unwrap_err();
            assert!(failure.message.contains(word), "{}", failure.message);
        }
    }
}
