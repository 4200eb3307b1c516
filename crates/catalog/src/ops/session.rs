//! Sessions and holds.

use crate::codec::key_parts;
use crate::command::Answer;
use crate::engine::{EngineError, Table};
use crate::execution::Execution;
use crate::id::{ContentId, InodeId, SessionId, Version};
use crate::record::{
    Expiry, Inode, KeptVersion, Session, User, hold_key, inode_key, session_hold_key, session_key,
    user_session_key, user_sessions_prefix,
};
use crate::refusal::{Failure, Refusal};
use crate::rights::READ;

/// Nanoseconds that a session stays open unless it is renewed.
pub const SESSION_NS: u64 = 600_000_000_000;
/// Nanoseconds without a renewal after which a session counts as idle: its user's next one may take
/// its place. Whoever uses a session renews it more often than that.
pub const SESSION_IDLE_NS: u64 = 200_000_000_000;
/// Slots of a session: commands of it that may be in flight.
pub const SLOT_COUNT: u16 = 64;
/// Most open sessions of one user.
const SESSIONS_PER_USER_MAX: u32 = 1024;
/// Idle sessions that are looked at for one that holds nothing.
const IDLE_ROWS: usize = 16;
/// Most versions that one session holds.
const HOLDS_MAX: u32 = 4096;

const BAD_USER_SESSION: EngineError =
    EngineError::Corrupt { table: Table::UserSession, what: "a malformed key" };

impl Execution<'_> {
    pub(super) fn open_session(&mut self) -> Result<Answer, Failure> {
        let key = self.caller.user.as_bytes().to_vec();
        let count = |user: &User| user.session_count;
        let is_full = self.user()?.as_ref().map(count) >= Some(SESSIONS_PER_USER_MAX);
        if is_full && !self.end_idle_session()? {
            return Err(Refusal::TooManySessions.into());
        }
        let mut user = self.user()?.ok_or(Refusal::UnknownUser)?;
        user.session_count += 1;
        self.view.set(key, &user);
        let session = SessionId(self.issue()?);
        let expires_ns = self.now_ns.saturating_add(SESSION_NS);
        let (user, door) = (self.caller.user.clone(), self.caller.door.clone());
        let record = Session { user, expires_ns, hold_count: 0, lease_count: 0, door };
        self.view.set(session_key(session), &record);
        self.view.mark(Table::UserSession, user_session_key(session, &record));
        self.view.mark(Table::Expiry, Expiry::Session(session).key(expires_ns));
        Ok(Answer::Session { session, expires_ns })
    }

    fn user(&self) -> Result<Option<User>, Failure> {
        Ok(self.view.record(self.caller.user.as_bytes())?)
    }

    /// Ends the caller's session that was renewed the longest ago, if it is idle and holds nothing;
    /// sessions of others are not looked at. False if there is none.
    fn end_idle_session(&mut self) -> Result<bool, Failure> {
        let prefix = user_sessions_prefix(&self.caller.user);
        for (row, _) in self.view.prefixed(Table::UserSession, &prefix, IDLE_ROWS)? {
            let parts = key_parts(row.get(prefix.len()..).unwrap_or_default());
            let [expires_ns, id] = parts.map_err(|_| BAD_USER_SESSION)?;
            let is_idle = expires_ns <= self.now_ns.saturating_add(SESSION_NS - SESSION_IDLE_NS);
            if !is_idle {
                return Ok(false);
            }
            let id = SessionId(id);
            let session = self.session(id)?;
            if session.hold_count == 0 && session.lease_count == 0 {
                self.forget_session(id, &session)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn renew_session(&mut self, id: SessionId) -> Result<Answer, Failure> {
        let mut session = self.session(id)?;
        self.view.delete(Table::UserSession, user_session_key(id, &session));
        session.expires_ns = session.expires_ns.max(self.now_ns.saturating_add(SESSION_NS));
        self.view.set(session_key(id), &session);
        self.view.mark(Table::UserSession, user_session_key(id, &session));
        Ok(Answer::Session { session: id, expires_ns: session.expires_ns })
    }

    /// Ends a session because its user says so. The row that looks at its end finds nothing then.
    pub(super) fn close_session(&mut self, id: SessionId) -> Result<Answer, Failure> {
        let session = self.session(id)?;
        self.forget_session(id, &session)?;
        Ok(Answer::Done)
    }

    pub(super) fn session(&self, id: SessionId) -> Result<Session, Failure> {
        Ok(self.view.record(&session_key(id))?.ok_or(Refusal::UnknownSession)?)
    }

    /// Holds a version for who reads it, and may. It may be gone though it was held before: room is
    /// made of what is held, too.
    pub(super) fn hold(&mut self, id: SessionId, content: ContentId) -> Result<Answer, Failure> {
        let mut session = self.session(id)?;
        let inode: Option<Inode> = self.view.record(&inode_key(content.inode))?;
        let inode = inode.ok_or(Refusal::NoContent)?;
        let current = inode.content();
        let is_current = current.is_some_and(|current| current.version == content.version);
        if !is_current && self.view.record::<KeptVersion>(&content.key())?.is_none() {
            return Err(Refusal::NoContent.into());
        }
        self.caller.check(&inode, READ)?;
        let key = session_hold_key(id, content);
        if self.view.has(Table::SessionHold, &key)? {
            return Ok(Answer::Done);
        }
        if session.hold_count >= HOLDS_MAX {
            return Err(Refusal::TooManyHolds.into());
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
        let slots = usize::from(SLOT_COUNT);
        for (slot, _) in self.view.prefixed(Table::Slot, &session_key(id), slots)? {
            self.view.delete(Table::Slot, slot);
        }
        self.view.delete(Table::UserSession, user_session_key(id, session));
        self.view.delete(Table::Session, session_key(id));
        let key = session.user.as_bytes().to_vec();
        if let Some(mut user) = self.view.record::<User>(&key)? {
            user.session_count = user.session_count.saturating_sub(1);
            self.view.set(key, &user);
        }
        Ok(())
    }
}
