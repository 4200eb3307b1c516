//! What users do with the files and directories of a site.
//!
//! Each is one command to the head, or several, each of which happens whole or not at all.

mod attempt;
mod attributes;
mod make;
mod remove;
mod resize;
mod versions;

pub use attributes::{Overdrawn, Room, Xattr};
pub use versions::FileVersion;

use byname_catalog::{Command, Place, Refusal, Rename};
use byname_client::Stop;
use byname_packet::Name;
use byname_security::base64;
use byname_site::SiteAnswer;
use serde_json::Value;

use crate::account::Account;
use crate::described::{Described, Entries};
use crate::error::AccessError;
use crate::head::HeadSession;
use crate::place::place;

/// A user at the site above the names that something is done with.
pub struct Tree {
    account: Account,
    head: HeadSession,
    stop: Stop,
}

impl Tree {
    /// Connects to a forwarder. Nothing is sent yet.
    ///
    /// # Errors
    /// [`AccessError::NoForwarder`].
    pub fn open(account: Account) -> Result<Self, AccessError> {
        let head = HeadSession::open(&account)?;
        Ok(Self { account, head, stop: Stop::default() })
    }

    /// Gives up when this says so.
    #[must_use]
    pub fn stopped_by(self, stop: &Stop) -> Self {
        Self { head: self.head.stopped_by(stop.clone()), stop: stop.clone(), ..self }
    }

    /// Who acts.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The place of a name.
    ///
    /// # Errors
    /// As [`place`].
    pub fn place(&self, name: &Name) -> Result<Place, AccessError> {
        place(&self.account.site, name.view())
    }

    /// Lines of a query about a name, which no cache answers.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn query(&mut self, subject: &str, name: &Name) -> Result<Vec<Value>, AccessError> {
        self.place(name)?;
        self.head.query(&format!("{subject} {name}")).map_err(|error| error.about(name))
    }

    /// Lines of a query about the site.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn ask(&mut self, question: &str) -> Result<Vec<Value>, AccessError> {
        self.head.query(question)
    }

    /// Sends a command.
    ///
    /// # Errors
    /// [`AccessError`] of what is no outcome.
    pub fn execute(
        &mut self,
        command: Command,
    ) -> Result<Result<SiteAnswer, Refusal>, AccessError> {
        self.head.execute(command)
    }

    /// Sends a command about a name; every refusal is a failure.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn run(&mut self, name: &Name, command: Command) -> Result<(), AccessError> {
        self.head.run(command).map(drop).map_err(|error| error.about(name))
    }

    /// What a name leads to, as the head has it now.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn describe(&mut self, name: &Name) -> Result<Described, AccessError> {
        let lines = self.query("describe", name)?;
        let line = lines.first().ok_or(AccessError::OtherAnswer)?;
        Described::of(name.clone(), line, self.head.trusted()?)
    }

    /// The same to who may use it so: read 4, write 2, execute or search 1; and search all above.
    /// An operator may everything. A symbolic link is not followed, nor any on the way.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn describe_for(&mut self, name: &Name, wanted: u16) -> Result<Described, AccessError> {
        self.place(name)?;
        let answer = self.head.query(&format!("access {name} {wanted}"));
        let lines = answer.map_err(|error| error.about(name))?;
        let line = lines.first().ok_or(AccessError::OtherAnswer)?;
        Described::of(name.clone(), line, self.head.trusted()?)
    }

    /// Entries of a directory as the head has them now, in the order of their names, behind one of
    /// them; from the beginning behind none.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn entries(&mut self, name: &Name, after: &[u8]) -> Result<Entries, AccessError> {
        self.place(name)?;
        let after = base64::encode_url(after);
        let page = self.head.query_after(&format!("entries {name}"), &after);
        let (lines, more) = page.map_err(|error| error.about(name))?;
        let entries = Described::entries(name, &lines, &self.head.trusted()?)?;
        Ok(Entries { entries, is_last: more.is_none() })
    }

    /// All entries of a directory.
    pub(crate) fn all_entries(
        &mut self,
        name: &Name,
    ) -> Result<Vec<(Vec<u8>, Described)>, AccessError> {
        let mut all: Vec<(Vec<u8>, Described)> = Vec::new();
        loop {
            let after = all.last().map(|(name, _)| name.clone()).unwrap_or_default();
            let Entries { entries, is_last } = self.entries(name, &after)?;
            all.extend(entries);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Gives an entry another name. What has it is replaced, unless `no_replace`: a directory only
    /// if it is empty.
    ///
    /// # Errors
    /// [`AccessError`] of what is no outcome.
    pub fn rename(
        &mut self,
        from: &Name,
        to: &Name,
        no_replace: bool,
    ) -> Result<Result<(), Refusal>, AccessError> {
        let rename = Rename { from: self.place(from)?, to: self.place(to)?, no_replace };
        Ok(self.execute(Command::Rename(rename))?.map(drop))
    }
}
