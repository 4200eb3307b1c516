//! A site's catalog moved from one engine to another, with a proof that both say the same.

use std::path::Path;
use std::sync::Arc;

use byname_catalog::engine::{Engine, EngineError};
use byname_catalog::{Standing, adopt_site, copy_rows, each_row_but_site, give_up_site, site_of};

use crate::engine::{AddressError, EngineAddress};
use crate::head::HeadError;

/// A catalog that was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Its rows.
    pub rows: u64,
    /// Digest of all rows of either engine, but for the one that says which site it is: that is
    /// the new engine's alone.
    pub digest: [u8; 32],
}

/// Reason why a catalog is where it was.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// It is there.
    #[error("the catalog in {directory} is in that engine already")]
    IsThere {
        /// The site's directory.
        directory: String,
    },
    /// Another site, or another state of this one, is there.
    #[error("there is another catalog in that engine")]
    Occupied,
    /// The copy is not what was copied.
    #[error("the copy differs: its digest is {found}, and {wanted} was copied")]
    Differs {
        /// Digest of the copy.
        found: String,
        /// Digest of what was copied.
        wanted: String,
    },
    /// A head has led meanwhile, and may have acknowledged what the copy lacks.
    #[error("a head has led while the catalog was copied: end all heads, and move it again")]
    Changed,
    /// There is no site.
    #[error(transparent)]
    NoSite(#[from] HeadError),
    /// An engine or the directory failed.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A row could not be read or written.
    #[error("a row cannot be copied: {0}")]
    Engine(#[from] EngineError),
}

/// Moves the catalog of a site's directory to an engine. Interrupted at any moment it is called
/// again, and goes on; until it has ended the catalog is where it was, or in neither for use.
///
/// # Errors
/// [`MoveError`]; also if a head runs.
pub fn move_engine(
    directory: &Path,
    to: &EngineAddress,
    progress: &mut dyn FnMut(u64),
) -> Result<Moved, MoveError> {
    let no_site = || HeadError::NoSite { directory: directory.to_owned() };
    let from = EngineAddress::of(directory)?.ok_or_else(no_site)?;
    if from == *to {
        return Err(MoveError::IsThere { directory: directory.display().to_string() });
    }
    let old: Arc<dyn Engine> = from.open(directory)?.alone()?;
    let new: Arc<dyn Engine> = to.open(directory)?.alone()?;
    let (old, new) = (&*old, &*new);
    let is_new_there = site_of(new)?.is_some();
    let is_old_there = site_of(old)?.is_some();
    let since = Standing::of(old)?;
    if !is_new_there {
        if !is_old_there {
            return Err(no_site().into());
        }
        copy_rows(old, new, progress)?;
    }
    let (wanted, rows) = digest(old)?;
    let (found, _) = digest(new)?;
    if found != wanted {
        if is_new_there {
            return Err(MoveError::Occupied);
        }
        let (found, wanted) = (found.to_hex().to_string(), wanted.to_hex().to_string());
        return Err(MoveError::Differs { found, wanted });
    }
    if is_old_there {
        adopt_site(old, new)?;
        if !give_up_site(old, &since)? {
            give_up_site(new, &Standing::of(new)?)?;
            return Err(MoveError::Changed);
        }
    }
    to.note(directory)?;
    Ok(Moved { rows, digest: *wanted.as_bytes() })
}

fn digest(engine: &dyn Engine) -> Result<(blake3::Hash, u64), EngineError> {
    let (mut hasher, mut count) = (blake3::Hasher::new(), 0);
    each_row_but_site(engine, &mut |table, key, value| {
        count += 1;
        hasher.update(&[table as u8]);
        for octets in [key, value] {
            hasher.update(&(octets.len() as u64).to_be_bytes());
            hasher.update(octets);
        }
    })?;
    Ok((hasher.finalize(), count))
}
