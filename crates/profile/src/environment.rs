//! Variables of the environment, read once.
//!
//! A library must not look at the environment whenever it likes: another thread may change it, and
//! a host program may want to give other values. So everything below asks this snapshot.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Variables with their values.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: HashMap<OsString, OsString>,
}

impl Environment {
    /// The variables of this process now.
    pub fn of_process() -> Self {
        Self { variables: std::env::vars_os().collect() }
    }

    /// No variables but these.
    pub fn of<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let owned = |(name, value): (&str, &str)| (name.into(), value.into());
        Self { variables: variables.into_iter().map(owned).collect() }
    }

    /// A value as it stands.
    pub(crate) fn value(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A value that is a path; none if it is empty.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.value(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }
}
