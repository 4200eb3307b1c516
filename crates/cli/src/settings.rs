//! The user's profile for a command, and the forwarder's part of the configuration.
//!
//! `byname-profile` reads the files; the options that only a forwarder has are checked and read
//! here, by [`ForwarderFile`]. They are checked for every command, so that a mistake is noticed
//! before the forwarder is started the next time.

use crate::exit::{Failure, Outcome};
use byname_node::{ForwarderFile, NodeConfig};
use byname_profile::settings::{ConfigFile, FORWARDER_SECTION, OPTIONS, Origin, Value};
use byname_profile::{Environment, Paths, Profile, Settings};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The profile with these paths and the environment of this process.
///
/// # Errors
/// A mistake in the files or the environment.
pub(crate) fn profile(paths: &Paths) -> Outcome<Profile> {
    let profile = Profile::at(paths.clone(), Environment::of_process())?;
    check_all(profile.settings())?;
    Ok(profile)
}

/// The settings of one file in place of the usual ones.
///
/// # Errors
/// As [`profile`], and when the file is not there.
pub(crate) fn load_only(file: &Path) -> Outcome<Settings> {
    let settings = Settings::load_only(file, &Environment::of_process())?;
    check_all(&settings)?;
    Ok(settings)
}

fn check_all(settings: &Settings) -> Outcome {
    settings.files().iter().try_for_each(|file| check_forwarder(&file.path, &file.text))
}

/// Checks a file and counts the options in it.
pub(crate) fn check(path: &Path, text: &str) -> Outcome<usize> {
    let count = byname_profile::settings::check(path, text)?;
    check_forwarder(path, text)?;
    Ok(count + sections(path, text)?.len())
}

/// An option that only the forwarder has.
#[derive(Debug)]
struct ForwarderOption {
    value: toml::Value,
    origin: Origin,
}

/// The forwarder's manual: each option of its section with its default, commented out where there
/// is none.
const MANUAL: &str = include_str!("../../../deploy/byname-forward.toml");

/// Options of the forwarder that only files have, set or not, by their names without the section;
/// `None` is the value of one that is not set and has no default.
pub(crate) fn all_forwarder_options(
    settings: &Settings,
) -> Outcome<BTreeMap<String, (Option<toml::Value>, Origin)>> {
    let mut all: BTreeMap<String, (Option<toml::Value>, Origin)> = BTreeMap::new();
    for (name, value) in manual() {
        let is_known = OPTIONS.iter().any(|option| own_name(option.name) == Some(&name));
        if !is_known {
            all.insert(name, (value, Origin::Default));
        }
    }
    for (name, ForwarderOption { value, origin }) in forwarder_options(settings)? {
        all.insert(name, (Some(value), origin));
    }
    Ok(all)
}

/// Names and defaults as the manual has them.
fn manual() -> Vec<(String, Option<toml::Value>)> {
    let mut found = Vec::new();
    for line in MANUAL.lines().take_while(|line| !line.starts_with("#[[")) {
        let is_unset = line.starts_with('#');
        let Ok(table) = line.trim_start_matches('#').parse::<toml::Table>() else { continue };
        for (name, value) in table.into_iter().filter(|(_, value)| !value.is_table()) {
            // The sample is for a service of the system, whose group may connect.
            let value = if name == "socket_mode" { "0600".into() } else { value };
            found.push((name, (!is_unset).then_some(value)));
        }
    }
    for name in ["route", "face", "allow_register"] {
        found.push((name.to_owned(), Some(toml::Value::Array(Vec::new()))));
    }
    let by_default = toml::Table::from_iter([("/".to_owned(), "best-route".into())]);
    found.push(("strategy".to_owned(), Some(toml::Value::Table(by_default))));
    found
}

/// Options of the forwarder that only files have, by their names without the section.
fn forwarder_options(settings: &Settings) -> Outcome<BTreeMap<String, ForwarderOption>> {
    let mut options = BTreeMap::new();
    for ConfigFile { path, text } in settings.files() {
        for (option, value) in sections(path, text)? {
            let origin = Origin::File(path.clone());
            options.insert(option, ForwarderOption { value, origin });
        }
    }
    Ok(options)
}

/// The `[forwarder]` section: what the files say, and the environment over it.
///
/// # Errors
/// Two files may be right each and wrong together.
pub(crate) fn forwarder(settings: &Settings) -> Outcome<ForwarderFile> {
    let options = forwarder_options(settings)?.into_iter();
    let mut table: toml::Table = options.map(|(name, option)| (name, option.value)).collect();
    for (option, setting) in settings.all() {
        if setting.origin == Origin::Default {
            continue;
        }
        if let Some(name) = own_name(option.name) {
            table.insert(name.to_owned(), toml_value(&setting.value));
        }
    }
    table.try_into().map_err(|error| Failure::usage(format!("[{FORWARDER_SECTION}]: {error}")))
}

/// An option of the forwarder without its section.
fn own_name(option: &str) -> Option<&str> {
    option.strip_prefix(FORWARDER_SECTION)?.strip_prefix('.')
}

fn toml_value(value: &Value) -> toml::Value {
    match value {
        Value::Text(text) => toml::Value::String(text.clone()),
        // Read from 64 bits with a sign.
        Value::Number(number) => toml::Value::Integer(i64::try_from(*number).unwrap_or(i64::MAX)),
        Value::Switch(switch) => toml::Value::Boolean(*switch),
        Value::List(items) => toml::Value::from(items.clone()),
    }
}

/// Options of a file's `[forwarder]` section that only the forwarder knows.
fn sections(path: &Path, text: &str) -> Outcome<toml::Table> {
    let mut table: toml::Table = text.parse().map_err(|error| wrong(path, &error))?;
    let Some(toml::Value::Table(mut options)) = table.remove(FORWARDER_SECTION) else {
        return Ok(toml::Table::new());
    };
    options.retain(|name, _| !OPTIONS.iter().any(|option| own_name(option.name) == Some(name)));
    Ok(options)
}

/// Checks the `[forwarder]` section of a file. Errors name the line.
fn check_forwarder(path: &Path, text: &str) -> Outcome {
    #[derive(Deserialize)]
    struct Sections {
        #[serde(default)]
        forwarder: ForwarderFile,
    }
    let sections: Sections = toml::from_str(text).map_err(|error| wrong(path, &error))?;
    sections.forwarder.apply(&mut NodeConfig::default()).map_err(|error| wrong(path, &error))
}

fn wrong(path: &Path, cause: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("{}: {cause}", path.display()))
        .hint("`byname config show` lists every option")
}

#[cfg(test)]
mod tests {
    use super::check;
    use std::path::Path;

    #[test]
    fn a_file_is_counted_and_mistakes_are_named() {
        let file = Path::new("byname.toml");
        let good = "[client]\nretries = 9\n[forwarder]\nlisten = [\"udp://*\"]\npit_entries = 99\n";
        assert_eq!(check(file, good).unwrap(), 3);
        for (bad, word) in [
            ("[client]\nretires = 9\n", "retires"),
            ("[client\n", "byname.toml:1"),
            ("[forwarder]\npit_entires = 9\n", "pit_entires"),
            ("[forwarder]\nudp_mtu = 9\n", "udp_mtu"),
            ("[[forwarder.route]]\nprefix = \"/a\"\n", "line 1"),
        ] {
            let failure = check(file, bad).unwrap_err();
            assert!(failure.message.contains(word), "{}", failure.message);
        }
    }
}
