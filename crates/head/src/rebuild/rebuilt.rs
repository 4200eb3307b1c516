//! A catalog that was put together, and the way to where it belongs.
//!
//! One of which no disk was asked has a mark beside it: its numbers may be below what disks have
//! seen, and its term above that of the head they obey, so no head serves it.

use std::path::{Path, PathBuf};

use super::error::RebuildError;
use super::report::RebuildReport;
use crate::engine::{ENGINE_FILE, EngineAddress};
use crate::head::LOOK_FILE;

/// A catalog that was put together.
#[derive(Debug)]
pub struct Rebuilt {
    /// What is in it, and what is not.
    pub report: RebuildReport,
    pub(super) new_path: PathBuf,
    pub(super) directory: PathBuf,
    /// No disk was asked.
    pub(super) is_for_a_look: bool,
}

impl Rebuilt {
    /// Moves it to where it belongs.
    ///
    /// # Errors
    /// [`RebuildError`].
    pub fn place(self) -> Result<RebuildReport, RebuildError> {
        let Self { report, new_path, directory, is_for_a_look } = self;
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| RebuildError::File { path, source }
        };
        let mark = directory.join(LOOK_FILE);
        match is_for_a_look {
            true => std::fs::write(&mark, "no disk was asked\n").map_err(failed(&mark))?,
            false => remove(&mark)?,
        }
        std::fs::rename(&new_path, directory.join(ENGINE_FILE)).map_err(failed(&new_path))?;
        let opened = std::fs::File::open(&directory).and_then(|it| it.sync_all());
        opened.map_err(failed(&directory))?;
        // A database that the directory had the address of has no catalog.
        EngineAddress::Embedded.note(&directory)?;
        Ok(report)
    }

    /// Removes it.
    ///
    /// # Errors
    /// [`RebuildError`].
    pub fn discard(self) -> Result<RebuildReport, RebuildError> {
        remove(&self.new_path)?;
        Ok(self.report)
    }
}

/// Removes a file that need not be there.
pub(super) fn remove(path: &Path) -> Result<(), RebuildError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(RebuildError::File { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}
