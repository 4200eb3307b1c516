//! Attempts that are opened before it is known what they shall write.
//!
//! An attempt's commit wants the version to be there still that was there when it was opened. So
//! who looks afterwards and finds a version that he knows has either that one for his base, or his
//! commit fails.

use byname_catalog::id::ContentId;
use byname_catalog::{Command, Create, Refusal};
use byname_packet::Name;
use byname_site::{SiteAnswer, Ticket};

use super::Tree;
use crate::error::AccessError;

impl Tree {
    /// Opens an attempt.
    pub(crate) fn begin(&mut self, name: &Name, create: Create) -> Result<Ticket, AccessError> {
        let answer = self.execute(Command::Create(create))?;
        match answer.map_err(|refusal| AccessError::at(name.view(), refusal))? {
            SiteAnswer::Ticket(ticket) => Ok(ticket),
            _ => Err(AccessError::OtherAnswer),
        }
    }

    /// Gives an attempt up.
    pub(crate) fn abort(&mut self, name: &Name, content: ContentId) -> Result<(), AccessError> {
        self.run(name, Command::Abort { content })
    }

    /// Opens an attempt for what comes after a version.
    ///
    /// # Errors
    /// [`Refusal::BaseChanged`] if another version is there, or none.
    pub(crate) fn begin_after(
        &mut self,
        name: &Name,
        create: Create,
        base: u64,
    ) -> Result<Ticket, AccessError> {
        let ticket = self.begin(name, create)?;
        let content = ticket.terms().content;
        let changed = AccessError::at(name.view(), Refusal::BaseChanged);
        let error = match self.describe(name) {
            Ok(there) if (there.inode, there.version()) == (content.inode.0, base) => {
                return Ok(ticket);
            }
            Err(error) if error.refusal() != Some(Refusal::NotFound) => error,
            _ => changed,
        };
        // The attempt ends by itself, should this fail as well.
        let _ = self.abort(name, content);
        Err(error)
    }
}
