//! What is taken where nothing is given: a site's directory, the user's name.

use crate::commands::daemon::state_name;
use crate::exit::{Failure, Outcome};
use crate::typed::name;
use byname_profile::Paths;
use std::path::{Path, PathBuf};

/// The directory of a site's catalog: the one that was given, or the usual one of its name.
pub(crate) fn directory(site: Option<&str>, dir: Option<&Path>, paths: &Paths) -> Outcome<PathBuf> {
    match (dir, site) {
        (Some(dir), _) => Ok(dir.to_owned()),
        (None, Some(site)) => Ok(paths.state.join("site").join(state_name(&name(site)?))),
        (None, None) => Err(Failure::usage("which site? Give its name, or --dir DIR")),
    }
}

/// Name of the user who runs this, if it can be one of a site.
pub(crate) fn own_user() -> String {
    let named = ["USER", "LOGNAME"].into_iter().filter_map(|it| std::env::var(it).ok());
    let mut plain = named.filter(|it| !it.is_empty() && !it.contains([' ', '/']));
    plain.next().unwrap_or_else(|| "operator".to_owned())
}
