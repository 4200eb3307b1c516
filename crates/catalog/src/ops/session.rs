//! Sessions and holds.

use crate::codec::key_parts;
use crate::command::Answer;
use crate::engine::Table;
use crate::execution::Execution;
use crate::id::{ContentId, InodeId, SessionId, Version};
use crate::record::{
    Expiry, Inode, KeptVersion, Session, User, hold_key, inode_key, session_hold_key, session_key,
    slot_key,
};
use crate::refusal::{Failure, Refusal};

/// Nanoseconds that a session stays open unless it is renewed.
pub const SESSION_NS: u64 = 600_000_000_000;
/// Slots of a session: commands of it that may be in flight.
pub const SLOT_COUNT: u16 = 64;
/// Most open sessions of one user.
const SESSIONS_PER_USER_MAX: u32 = 1024;
/// Most versions that one session holds.
const HOLDS_MAX: u32 = 4096;

impl Execution<'_> {
    pub(super) fn open_session(&mut self) -> Result<Answer, Failure> {
        let key = self.caller.user.as_bytes().to_vec();
        let mut user: User = self.view.record(&key)?.ok_or(Refusal::UnknownUser)?;
        if user.session_count >= SESSIONS_PER_USER_MAX {
            return Err(Refusal::TooManySessions.into());
        }
        user.session_count += 1;
        self.view.set(key, &user);
        let session = SessionId(self.issue()?);
        let expires_ns = self.now_ns.saturating_add(SESSION_NS);
        let record =
            Session { user: self.caller.user.clone(), expires_ns, hold_count: 0, lease_count: 0 };
        self.view.set(session_key(session), &record);
        self.view.mark(Table::Expiry, Expiry::Session(session).key(expires_ns));
        Ok(Answer::Session { session, expires_ns })
    }

    pub(super) fn renew_session(&mut self, id: SessionId) -> Result<Answer, Failure> {
        let mut session = self.session(id)?;
        session.expires_ns = session.expires_ns.max(self.now_ns.saturating_add(SESSION_NS));
        self.view.set(session_key(id), &session);
        Ok(Answer::Session { session: id, expires_ns: session.expires_ns })
    }

    pub(super) fn session(&self, id: SessionId) -> Result<Session, Failure> {
        Ok(self.view.record(&session_key(id))?.ok_or(Refusal::UnknownSession)?)
    }

    pub(super) fn hold(&mut self, id: SessionId, content: ContentId) -> Result<Answer, Failure> {
        let mut session = self.session(id)?;
        let key = session_hold_key(id, content);
        if self.view.has(Table::SessionHold, &key)? {
            return Ok(Answer::Done);
        }
        if session.hold_count >= HOLDS_MAX {
            return Err(Refusal::TooManyHolds.into());
        }
        let inode: Option<Inode> = self.view.record(&inode_key(content.inode))?;
        let current = inode.as_ref().and_then(|inode| inode.content());
        let is_current = current.is_some_and(|current| current.version == content.version);
        if !is_current && self.view.record::<KeptVersion>(&content.key())?.is_none() {
            return Err(Refusal::NoContent.into());
        }
        session.hold_count += 1;
        self.view.set(session_key(id), &session);
        self.view.mark(Table::SessionHold, key);
        self.view.mark(Table::Hold, hold_key(content, id));
        Ok(Answer::Done)
    }

    pub(super) fn release(&mut self, id: SessionId, content: ContentId) -> Result<Answer, Failure> {
        let mut session = self.session(id)?;
        let key = session_hold_key(id, content);
        if self.view.has(Table::SessionHold, &key)? {
            session.hold_count = session.hold_count.saturating_sub(1);
            self.view.set(session_key(id), &session);
            self.view.delete(Table::SessionHold, key);
            self.view.delete(Table::Hold, hold_key(content, id));
        }
        Ok(Answer::Done)
    }

    /// Ends a session with all it holds and all its kept answers.
    pub(super) fn forget_session(
        &mut self,
        id: SessionId,
        session: &Session,
    ) -> Result<(), Failure> {
        let limit = HOLDS_MAX as usize;
        for (key, _) in self.view.prefixed(Table::SessionHold, &session_key(id), limit)? {
            let [_, inode, version] = key_parts(&key).unwrap_or_default();
            let content = ContentId { inode: InodeId(inode), version: Version(version) };
            self.view.delete(Table::SessionHold, key);
            self.view.delete(Table::Hold, hold_key(content, id));
        }
        self.forget_leases(id)?;
        for slot in 0..SLOT_COUNT {
            self.view.delete(Table::Slot, slot_key(id, slot));
        }
        self.view.delete(Table::Session, session_key(id));
        let key = session.user.as_bytes().to_vec();
        if let Some(mut user) = self.view.record::<User>(&key)? {
            user.session_count = user.session_count.saturating_sub(1);
            self.view.set(key, &user);
        }
        Ok(())
    }
}
