//! Removing files, and directories with all that is in them.

use byname_catalog::{Command, Refusal};
use byname_packet::Name;

use super::Tree;
use crate::error::AccessError;
use crate::place::below;

/// Times that a directory is listed which is too large when all that was listed is gone.
const ROUNDS: u32 = 5;

impl Tree {
    /// Removes a file or symbolic link.
    ///
    /// # Errors
    /// [`AccessError`] of what is no outcome.
    pub fn unlink(&mut self, name: &Name) -> Result<Result<(), Refusal>, AccessError> {
        let place = self.place(name)?;
        Ok(self.execute(Command::Unlink { place })?.map(drop))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// [`AccessError`] of what is no outcome.
    pub fn remove_empty(&mut self, name: &Name) -> Result<Result<(), Refusal>, AccessError> {
        let place = self.place(name)?;
        Ok(self.execute(Command::RemoveDirectory { place })?.map(drop))
    }

    /// Removes whatever has a name, a directory with all that is in it: it is out of sight at once.
    ///
    /// # Errors
    /// [`AccessError`] of what is no outcome; [`AccessError::KeepsChanging`] if somebody goes on
    /// adding to a directory that is too large for one command.
    pub fn remove_all(&mut self, name: &Name) -> Result<Result<(), Refusal>, AccessError> {
        let place = self.place(name)?;
        match self.execute(Command::RemoveAll { place })? {
            Err(Refusal::TreeTooLarge) => self.remove_in_parts(name),
            removed => Ok(removed.map(drop)),
        }
    }

    /// Removes a directory where the head will not find out at once whether this user may.
    fn remove_in_parts(&mut self, name: &Name) -> Result<Result<(), Refusal>, AccessError> {
        for _ in 0..ROUNDS {
            if let Err(refusal) = self.empty(name)? {
                return Ok(Err(refusal));
            }
            let place = self.place(name)?;
            match self.execute(Command::RemoveAll { place })? {
                Ok(_) | Err(Refusal::NotFound) => return Ok(Ok(())),
                // Somebody adds to it.
                Err(Refusal::TreeTooLarge) => {}
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        Err(AccessError::KeepsChanging { name: name.clone() })
    }

    /// Removes all that is in a directory.
    fn empty(&mut self, name: &Name) -> Result<Result<(), Refusal>, AccessError> {
        let entries = match self.all_entries(name) {
            Err(error) if error.refusal() == Some(Refusal::NotFound) => return Ok(Ok(())),
            entries => entries?,
        };
        for (entry, _) in entries {
            match self.remove_all(&below(name, &entry))? {
                Ok(()) | Err(Refusal::NotFound) => {}
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        Ok(Ok(()))
    }
}
