//! What ends by itself, and what a disk is told about content that it has.
//!
//! A row in the table of due work says when to look, not that something ends: what was extended or
//! is held gets another row, later. Until the head has looked, nothing has ended, whatever clocks
//! say; so there is one outcome for everybody.

use crate::codec::{Malformed, key, key_parts};
use crate::command::{Answer, Resolution};
use crate::engine::{EngineError, Rows, Span, Table};
use crate::execution::Execution;
use crate::id::{ContentId, DiskId, InodeId, SessionId};
use crate::quota::{Account, credit};
use crate::record::{
    Attempt, Expiry, Inode, KeptVersion, Replica, Session, inode_key, session_key,
};
use crate::refusal::{Failure, Refusal};

/// Most rows that one command looks at.
const EXPIRE_MAX: usize = 256;

impl Execution<'_> {
    /// Looks at what is due, the longest due first.
    pub(super) fn expire(&mut self, limit: usize) -> Result<Answer, Failure> {
        let until = key([self.now_ns.saturating_add(1)]);
        let span = Span { from: &[], until: Some(&until) };
        let due = self.view.range(Table::Expiry, span, limit.min(EXPIRE_MAX))?;
        for (row, _) in &due {
            let malformed =
                |Malformed| EngineError::Corrupt { table: Table::Expiry, what: "a malformed key" };
            let parts = key_parts(row).map_err(malformed)?;
            let (_, what) = Expiry::from_parts(parts).map_err(malformed)?;
            self.view.delete(Table::Expiry, row.clone());
            if let Some(again_ns) = self.end(what)? {
                self.view.mark(Table::Expiry, what.key(again_ns));
            }
        }
        Ok(Answer::Count(due.len()))
    }

    /// Ends something, or says when to look again.
    pub(super) fn end(&mut self, what: Expiry) -> Result<Option<u64>, Failure> {
        let later = self.now_ns.saturating_add(self.terms.kept_ns);
        match what {
            Expiry::Attempt(content) => {
                let attempt: Option<Attempt> = self.view.record(&content.key())?;
                match attempt {
                    Some(attempt) if attempt.expires_ns > self.now_ns => {
                        return Ok(Some(attempt.expires_ns));
                    }
                    Some(attempt) => self.give_up(content, &attempt)?,
                    None => {}
                }
            }
            Expiry::Kept(content) => {
                if self.view.has_any(Table::Hold, &content.key())? {
                    return Ok(Some(later));
                }
                self.end_kept(content)?;
            }
            Expiry::Nameless(inode) => return self.end_nameless(inode, later),
            Expiry::Session(session) => return self.end_session(session),
        }
        Ok(None)
    }

    /// Ends a version that nothing leads to, whoever holds it. Rows of those who do go with their
    /// sessions.
    pub(super) fn end_held(&mut self, what: Expiry) -> Result<(), Failure> {
        match what {
            Expiry::Kept(content) => self.end_kept(content),
            Expiry::Nameless(inode) => self.forget_nameless(inode),
            Expiry::Attempt(_) | Expiry::Session(_) => Ok(()),
        }
    }

    fn end_kept(&mut self, content: ContentId) -> Result<(), Failure> {
        if self.view.has(Table::OldVersion, &content.key())? {
            return Ok(());
        }
        if let Some(kept) = self.view.record::<KeptVersion>(&content.key())? {
            self.view.delete(Table::Kept, content.key());
            self.drop_replicas(content.inode, &kept.content)?;
        }
        Ok(())
    }

    /// A file without names goes when nobody reads or writes it any more.
    fn end_nameless(&mut self, id: InodeId, later: u64) -> Result<Option<u64>, Failure> {
        let key = inode_key(id);
        let is_held = self.view.has_any(Table::Hold, &key)?;
        if is_held || self.view.has_any(Table::Attempt, &key)? {
            return Ok(Some(later));
        }
        self.forget_nameless(id).map(|()| None)
    }

    fn forget_nameless(&mut self, id: InodeId) -> Result<(), Failure> {
        if let Some(inode) = self.view.record::<Inode>(&inode_key(id))? {
            if let Some(content) = inode.content() {
                self.drop_replicas(id, content)?;
            }
            self.drop_versions(id)?;
            self.forget_lease(id)?;
            self.forget_inode(id)?;
        }
        Ok(())
    }

    fn end_session(&mut self, id: SessionId) -> Result<Option<u64>, Failure> {
        let session: Option<Session> = self.view.record(&session_key(id))?;
        match session {
            Some(session) if session.expires_ns > self.now_ns => Ok(Some(session.expires_ns)),
            Some(session) => self.forget_session(id, &session).map(|()| None),
            None => Ok(None),
        }
    }

    /// Ends an attempt whatever its writer thinks.
    fn give_up(&mut self, content: ContentId, attempt: &Attempt) -> Result<(), Failure> {
        self.end_attempt(content, attempt)?;
        credit(&mut self.view, &Account::of_attempt(attempt), attempt.reserved())
    }

    /// Says what a disk does with content. That an attempt is over is recorded with the answer.
    pub(super) fn resolve(
        &mut self,
        disk: DiskId,
        generation: u64,
        content: ContentId,
    ) -> Result<Answer, Failure> {
        if self.disk(disk)?.generation != generation {
            return Err(Refusal::UnknownDisk.into());
        }
        let attempt: Option<Attempt> = self.view.record(&content.key())?;
        let has_replica = self.view.record::<Replica>(&Replica::key(disk, content))?.is_some();
        let is_known = self.counters.has_issued(content.version.0);
        let resolution = match attempt {
            _ if has_replica => Resolution::Keep,
            Some(attempt) if attempt.expires_ns <= self.now_ns => {
                self.give_up(content, &attempt)?;
                Resolution::Drop
            }
            Some(attempt) if attempt.disks.contains(&disk) => Resolution::Wait,
            Some(_) => Resolution::Drop,
            None if is_known => {
                // A receipt that this disk gave before it asked must not count any more.
                self.view.mark(Table::Drop, Replica::key(disk, content));
                Resolution::Drop
            }
            None => Resolution::Unknown,
        };
        Ok(Answer::Resolved(resolution))
    }
}
