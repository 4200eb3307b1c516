//! Values that users type: names, addresses, directories.

use crate::exit::{Code, Failure, Outcome};
use byname_io::Endpoint;
use byname_packet::Name;
use std::path::{Path, PathBuf};

/// Checks that `directory` is one, and makes its path absolute.
pub(crate) fn directory(directory: &Path) -> Outcome<PathBuf> {
    let found = directory.canonicalize().map_err(|e| Failure::disk(directory, e))?;
    if !found.is_dir() {
        let message = format!("{}: is not a directory", directory.display());
        return Err(Failure::new(Code::LocalDisk, message));
    }
    Ok(found)
}

/// Reads URIs.
pub(crate) fn endpoints(uris: &[String]) -> Outcome<Vec<Endpoint>> {
    uris.iter().map(|uri| endpoint(uri)).collect()
}

/// Reads a URI.
pub(crate) fn endpoint(uri: &str) -> Outcome<Endpoint> {
    Ok(uri.parse()?)
}

/// Reads a name as users write it.
pub(crate) fn name(text: &str) -> Outcome<Name> {
    Name::from_user(text).map_err(Failure::usage)
}
