//! Options from environment, files and defaults, and where each came from.
//!
//! One table lists every option ([`OPTIONS`]); the files, `BYNAME_*` and what is shown to users
//! are all read off it, so an option cannot exist in one place only. Precedence: the caller's
//! flags, environment, user's file, system's file, default.
//!
//! The forwarder has many more options, in the files only, in the section [`FORWARDER_SECTION`].
//! They mean nothing to a reader and are left to whoever runs a forwarder, with the texts of the
//! files ([`Settings::files`]).

mod error;
mod parse;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::paths::{Paths, SYSTEM_CONFIG};

pub use error::{ConfigError, WrongValue};
pub use parse::check;

/// The section with options that only a forwarder knows.
pub const FORWARDER_SECTION: &str = "forwarder";

/// Longest configuration file.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// The kind of value that an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A whole number, not negative.
    Number,
    /// Bytes: a whole number, or a text with a unit (see [`units`](crate::units)).
    Size,
    /// True or false.
    Switch,
    /// Texts; in the environment separated by commas.
    List,
}

/// An option's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Of [`Kind::Text`].
    Text(String),
    /// Of [`Kind::Number`] and [`Kind::Size`].
    Number(u64),
    /// Of [`Kind::Switch`].
    Switch(bool),
    /// Of [`Kind::List`].
    List(Vec<String>),
}

/// As it would be written in a file.
impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &String| toml::Value::String(text.clone());
        match self {
            Value::Text(text) => quoted(text).fmt(out),
            Value::Number(number) => number.fmt(out),
            Value::Switch(switch) => switch.fmt(out),
            Value::List(items) => toml::Value::Array(items.iter().map(quoted).collect()).fmt(out),
        }
    }
}

/// One option there is.
#[derive(Debug)]
pub struct Opt {
    /// `section.name` in the files.
    pub name: &'static str,
    /// Its variable.
    pub variable: &'static str,
    /// The kind of value it takes.
    pub kind: Kind,
    /// As it would be written in the environment.
    pub default: &'static str,
    /// A few words for people.
    pub help: &'static str,
}

const fn opt(
    name: &'static str,
    variable: &'static str,
    kind: Kind,
    default: &'static str,
    help: &'static str,
) -> Opt {
    Opt { name, variable, kind, default, help }
}

/// Every option there is, but for those of the forwarder that only files have.
pub const OPTIONS: &[Opt] = &[
    opt("client.connect", "BYNAME_CONNECT", Kind::Text, "", "forwarder to use (URI)"),
    opt("client.timeout_s", "BYNAME_TIMEOUT", Kind::Number, "15", "silence that counts as failure"),
    opt("client.retries", "BYNAME_RETRIES", Kind::Number, "5", "retransmissions of one Interest"),
    opt("client.transfers", "BYNAME_TRANSFERS", Kind::Number, "8", "files fetched side by side"),
    opt("client.bwlimit", "BYNAME_BWLIMIT", Kind::Size, "0", "bytes per second, 0 for no limit"),
    opt("cache.enabled", "BYNAME_CACHE", Kind::Switch, "false", "read through the site cache"),
    opt("cache.directory", "BYNAME_CACHE_DIR", Kind::Text, "", "place of the site cache"),
    opt("cache.size_mib", "BYNAME_CACHE_MIB", Kind::Number, "20480", "most that the cache holds"),
    opt(
        "cache.files",
        "BYNAME_CACHE_FILES",
        Kind::Number,
        "1000000",
        "most contents that the cache holds",
    ),
    opt(
        "cache.free_mib",
        "BYNAME_CACHE_FREE_MIB",
        Kind::Number,
        "1024",
        "room that the cache leaves free on its file system",
    ),
    opt(
        "cache.service",
        "BYNAME_CACHE_SERVICE",
        Kind::Text,
        "",
        "socket of the machine's site cache, in place of one's own",
    ),
    opt("forwarder.listen", "BYNAME_LISTEN", Kind::List, "", "addresses to listen on (URIs)"),
    opt(
        "forwarder.content_store_mib",
        "BYNAME_CONTENT_STORE_MIB",
        Kind::Number,
        "64",
        "memory for packets kept to answer repeated requests",
    ),
    opt(
        "forwarder.silent_face_s",
        "BYNAME_SILENT_FACE_S",
        Kind::Number,
        "10",
        "silence after which a connection gives way to a new one",
    ),
    opt(
        "forwarder.udp_unvalidated_kib_s",
        "BYNAME_FORWARDER_UDP_UNVALIDATED_KIB_S",
        Kind::Number,
        "4096",
        "KiB/s to a UDP machine that has not shown that it receives",
    ),
    opt(
        "forwarder.udp_unvalidated_all_kib_s",
        "BYNAME_FORWARDER_UDP_UNVALIDATED_ALL_KIB_S",
        Kind::Number,
        "65536",
        "the same, to all such machines together",
    ),
    opt("server.hidden", "BYNAME_HIDDEN", Kind::Switch, "false", "publish dot-files"),
    opt("server.private", "BYNAME_PRIVATE", Kind::Switch, "false", "publish owner-only files"),
    opt(
        "server.freshness_ms",
        "BYNAME_FRESHNESS_MS",
        Kind::Number,
        "1000",
        "freshness of metadata",
    ),
    opt(
        "server.watch",
        "BYNAME_WATCH",
        Kind::Switch,
        "false",
        "watch published directories, hash new files ahead",
    ),
    opt(
        "server.quiet_ms",
        "BYNAME_QUIET_MS",
        Kind::Number,
        "100",
        "rest before a file is published",
    ),
    opt("server.workers", "BYNAME_WORKERS", Kind::Number, "1", "threads that read for readers"),
    opt("server.open_files", "BYNAME_OPEN_FILES", Kind::Number, "256", "files kept open"),
    opt("server.access_log", "BYNAME_ACCESS_LOG", Kind::Text, "", "file for what readers got"),
    opt(
        "server.access_sample",
        "BYNAME_ACCESS_SAMPLE",
        Kind::Number,
        "1",
        "one object in so many is recorded there, 0 for none",
    ),
    opt(
        "server.silent_peer_s",
        "BYNAME_SILENT_PEER_S",
        Kind::Number,
        "10",
        "silence after which a reader gives way to a new one",
    ),
    opt(
        "server.udp_unvalidated_kib_s",
        "BYNAME_UDP_UNVALIDATED_KIB_S",
        Kind::Number,
        "4096",
        "KiB/s to a UDP machine that has not shown that it receives",
    ),
    opt(
        "server.udp_unvalidated_all_kib_s",
        "BYNAME_UDP_UNVALIDATED_ALL_KIB_S",
        Kind::Number,
        "65536",
        "the same, to all such machines together",
    ),
];

/// Origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody has set it.
    Default,
    /// A file.
    File(PathBuf),
    /// A variable.
    Environment(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => out.write_str("default"),
            Origin::File(path) => path.display().fmt(out),
            Origin::Environment(variable) => write!(out, "environment {variable}"),
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The value.
    pub value: Value,
    /// Its origin.
    pub origin: Origin,
}

/// A file that was read.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    /// The file.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
}

/// All options with their values.
#[derive(Debug, Clone)]
pub struct Settings {
    values: BTreeMap<&'static str, Setting>,
    files: Vec<ConfigFile>,
}

impl Settings {
    /// Defaults, the system's file, the user's file, the environment.
    ///
    /// # Errors
    /// [`ConfigError`]: a file that cannot be read or parsed, an unknown option, or a value of the
    /// wrong kind; each names the file and line, or the variable.
    pub fn load(paths: &Paths, environment: &Environment) -> Result<Self, ConfigError> {
        Self::load_files(&[Path::new(SYSTEM_CONFIG), &paths.config_file], environment)
    }

    /// Defaults, those of the files that are there, later files over earlier ones, the environment.
    pub(crate) fn load_files(
        files: &[&Path],
        environment: &Environment,
    ) -> Result<Self, ConfigError> {
        let mut settings = Self::defaults();
        for file in files {
            if let Some(text) = parse::read(file)? {
                settings.add_file(file, text)?;
            }
        }
        settings.add_environment(environment)?;
        Ok(settings)
    }

    /// Defaults, one file in place of the usual ones, the environment.
    ///
    /// # Errors
    /// As [`Settings::load`], and when the file is not there.
    pub fn load_only(file: &Path, environment: &Environment) -> Result<Self, ConfigError> {
        let text = parse::read(file)?.ok_or_else(|| ConfigError::Unreadable {
            path: file.to_owned(),
            source: std::io::Error::from(rustix::io::Errno::NOENT),
        })?;
        let mut settings = Self::defaults();
        settings.add_file(file, text)?;
        settings.add_environment(environment)?;
        Ok(settings)
    }

    /// Defaults alone.
    pub fn defaults() -> Self {
        let setting = |option: &'static Opt| {
            let value = parse::from_text(option, option.default);
            let value = value.expect("defaults are of their kind, as a test shows");
            (option.name, Setting { value, origin: Origin::Default })
        };
        Self { values: OPTIONS.iter().map(setting).collect(), files: Vec::new() }
    }

    fn add_file(&mut self, path: &Path, text: String) -> Result<(), ConfigError> {
        for (option, value) in parse::options(path, &text)? {
            let origin = Origin::File(path.to_owned());
            self.values.insert(option.name, Setting { value, origin });
        }
        self.files.push(ConfigFile { path: path.to_owned(), text });
        Ok(())
    }

    fn add_environment(&mut self, environment: &Environment) -> Result<(), ConfigError> {
        for option in OPTIONS {
            let Some(text) = environment.value(option.variable) else { continue };
            let value = parse::from_variable(option, text)?;
            let origin = Origin::Environment(option.variable);
            self.values.insert(option.name, Setting { value, origin });
        }
        Ok(())
    }

    /// The files that were read, the system's first.
    pub fn files(&self) -> &[ConfigFile] {
        &self.files
    }

    /// Every option with its value, in the order of the table.
    pub fn all(&self) -> impl Iterator<Item = (&'static Opt, &Setting)> {
        OPTIONS.iter().filter_map(|option| Some((option, self.values.get(option.name)?)))
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name).map(|setting| &setting.value)
    }

    /// True if nobody has set an option.
    pub fn is_default(&self, name: &str) -> bool {
        self.values.get(name).is_none_or(|setting| setting.origin == Origin::Default)
    }

    /// A text; `None` when empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Value::Text(text)) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// A number; 0 for an option that takes none.
    pub fn number(&self, name: &str) -> u64 {
        match self.get(name) {
            Some(Value::Number(number)) => *number,
            _ => 0,
        }
    }

    /// A switch; off for an option that is none.
    pub fn switch(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::Switch(true)))
    }

    /// A list of texts.
    pub fn list(&self, name: &str) -> &[String] {
        match self.get(name) {
            Some(Value::List(items)) => items,
            _ => &[],
        }
    }
}
