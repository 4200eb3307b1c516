//! Write leases: one session at a time may change the content of a file.
//!
//! A lease belongs to a session and ends with it: who renews the session keeps it. It is optional:
//! of two who write without one the first commit wins. Who takes a lease is told so at once, and
//! so is everybody else who wants to begin; what was begun before it is refused at its commit. A
//! commit under a lease that has ended meanwhile is refused too, whoever has it now.

use crate::codec::key_parts;
use crate::command::{Answer, Entry};
use crate::engine::Table;
use crate::execution::Execution;
use crate::id::{InodeId, SessionId};
use crate::name::Place;
use crate::record::{
    Attempt, Detail, Session, WriteLease, inode_key, session_key, session_lease_key,
};
use crate::refusal::{Failure, Refusal};
use crate::rights::WRITE;

/// Most leases of one session.
const LEASES_MAX: u32 = 4096;

impl Execution<'_> {
    /// Takes the lease of a file; the answer says what the file is now.
    pub(super) fn lease(&mut self, id: SessionId, place: &Place) -> Result<Answer, Failure> {
        let (file, inode) = self.object(place)?;
        match inode.detail {
            Detail::File(_) => self.caller.check(&inode, WRITE)?,
            Detail::Directory { .. } => return Err(Refusal::IsDirectory.into()),
            Detail::Symlink { .. } => return Err(Refusal::SymbolicLink.into()),
        }
        match self.lease_of(file)? {
            Some(lease) if lease.session == id => {}
            Some(_) => return Err(Refusal::Leased.into()),
            None => self.add_lease(id, file)?,
        }
        Ok(Answer::Entry(Entry { id: file, inode }))
    }

    fn add_lease(&mut self, id: SessionId, file: InodeId) -> Result<(), Failure> {
        let mut session = self.session(id)?;
        if session.lease_count >= LEASES_MAX {
            return Err(Refusal::TooManyLeases.into());
        }
        session.lease_count += 1;
        self.view.set(session_key(id), &session);
        let lease = WriteLease { session: id, user: session.user, number: self.issue()? };
        self.view.set(inode_key(file), &lease);
        self.view.mark(Table::SessionLease, session_lease_key(id, file));
        Ok(())
    }

    /// Ends the lease of a file: its holder may, and others of the same user, the file's owner, and
    /// operators, should the holder be gone.
    pub(super) fn end_lease(&mut self, id: SessionId, place: &Place) -> Result<Answer, Failure> {
        let (file, inode) = self.object(place)?;
        if let Some(lease) = self.lease_of(file)? {
            let is_own = lease.session == id || lease.user == self.caller.user;
            if !is_own && !self.caller.owns(&inode) {
                return Err(Refusal::NotOwner.into());
            }
            self.drop_lease(file, &lease)?;
        }
        Ok(Answer::Done)
    }

    pub(crate) fn lease_of(&self, file: InodeId) -> Result<Option<WriteLease>, Failure> {
        Ok(self.view.record(&inode_key(file))?)
    }

    /// Checks that nobody else has the lease; the number of one's own, if one has it.
    pub(super) fn check_lease(
        &self,
        session: SessionId,
        file: InodeId,
    ) -> Result<Option<u64>, Failure> {
        match self.lease_of(file)? {
            Some(lease) if lease.session != session => Err(Refusal::Leased.into()),
            lease => Ok(lease.map(|lease| lease.number)),
        }
    }

    /// Checks that the lease is what it was when an attempt was opened, or one's own by now.
    pub(super) fn check_unchanged_lease(
        &self,
        session: SessionId,
        file: InodeId,
        attempt: &Attempt,
    ) -> Result<(), Failure> {
        let is_unchanged = match (attempt.lease, self.lease_of(file)?) {
            (None, None) => true,
            (None, Some(lease)) => lease.session == session,
            (Some(number), lease) => lease.is_some_and(|lease| lease.number == number),
        };
        if is_unchanged { Ok(()) } else { Err(Refusal::LeaseLost.into()) }
    }

    fn drop_lease(&mut self, file: InodeId, lease: &WriteLease) -> Result<(), Failure> {
        self.view.delete(Table::WriteLease, inode_key(file));
        self.view.delete(Table::SessionLease, session_lease_key(lease.session, file));
        let key = session_key(lease.session);
        if let Some(mut session) = self.view.record::<Session>(&key)? {
            session.lease_count = session.lease_count.saturating_sub(1);
            self.view.set(key, &session);
        }
        Ok(())
    }

    /// Ends the lease of a file that goes.
    pub(super) fn forget_lease(&mut self, file: InodeId) -> Result<(), Failure> {
        match self.lease_of(file)? {
            Some(lease) => self.drop_lease(file, &lease),
            None => Ok(()),
        }
    }

    /// Ends all leases of a session that ends.
    pub(super) fn forget_leases(&mut self, id: SessionId) -> Result<(), Failure> {
        let limit = LEASES_MAX as usize;
        for (key, _) in self.view.prefixed(Table::SessionLease, &session_key(id), limit)? {
            let [_, file] = key_parts(&key).unwrap_or_default();
            self.view.delete(Table::SessionLease, key);
            self.view.delete(Table::WriteLease, inode_key(InodeId(file)));
        }
        Ok(())
    }
}
