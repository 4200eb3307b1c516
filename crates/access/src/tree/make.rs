//! Directories and empty files.

use byname_catalog::{Command, Create, PolicyChanges, Publish, Refusal};
use byname_packet::Name;

use super::Tree;
use crate::error::AccessError;

impl Tree {
    /// Makes a directory.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn make_directory(&mut self, name: &Name, mode: u16) -> Result<(), AccessError> {
        let place = self.place(name)?;
        self.run(name, Command::MakeDirectory { place, mode })
    }

    /// Makes a directory and what is missing above it; what is there already is fine.
    ///
    /// # Errors
    /// [`AccessError`], about the first name that is in the way.
    pub fn make_path(&mut self, name: &Name, mode: u16) -> Result<(), AccessError> {
        // Mostly the directory above is there: what is missing is found from below.
        let top = self.account().site.view().count();
        let (depth, mut at) = (name.view().count(), name.view().count());
        while at <= depth && at > top {
            let one = name.view().prefix(at).to_name();
            let place = self.place(&one)?;
            match self.execute(Command::MakeDirectory { place, mode })? {
                Ok(_) => at += 1,
                Err(Refusal::Exists) if at < depth => at += 1,
                Err(Refusal::Exists) => return self.check_directory(name),
                Err(Refusal::NotFound) if at > top + 1 => at -= 1,
                Err(refusal) => return Err(AccessError::at(one.view(), refusal)),
            }
        }
        Ok(())
    }

    fn check_directory(&mut self, name: &Name) -> Result<(), AccessError> {
        match self.describe(name)?.is_directory() {
            true => Ok(()),
            false => Err(AccessError::at(name.view(), Refusal::Exists)),
        }
    }

    /// Makes an empty file. What somebody else has made meanwhile stays.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn make_empty(&mut self, name: &Name, mode: u16) -> Result<(), AccessError> {
        let create = Create {
            place: self.place(name)?,
            mode,
            size_max: 0,
            publish: Publish::Whole,
            exclusive: true,
            policy: PolicyChanges::default(),
        };
        match self.execute(Command::Create(create))? {
            Ok(_) | Err(Refusal::Exists) => Ok(()),
            Err(refusal) => Err(AccessError::at(name.view(), refusal)),
        }
    }
}
