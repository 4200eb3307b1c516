//! Everything that follows from other rows, as it follows from them.

use std::collections::{BTreeMap, BTreeSet};

use super::Mending;
use crate::catalog::CatalogError;
use crate::check::{derive, each, each_row};
use crate::codec::key_parts;
use crate::engine::{EngineError, Row, Table};
use crate::record::{
    DiskUsage, Expiry, Inode, Session, Usage, User, WriteLease, session_key, session_lease_key,
};
use crate::view::{Record, decoded, read};

impl Mending<'_> {
    pub(super) fn mend_counts(&mut self) -> Result<(), CatalogError> {
        self.mend_versions()?;
        let mut tally = derive(&self.view)?;
        tally.as_counted(&self.view)?;
        if self.counters.issued < tally.highest {
            let what = "is raised: a higher number is in use";
            self.note(Table::Meta, crate::record::COUNTERS_KEY, what);
            self.counters.issued = tally.highest;
        }
        self.settle(tally.usage, |usage: &Usage| *usage != Usage::default())?;
        self.settle(tally.disks, |usage: &DiskUsage| *usage != DiskUsage::default())?;
        self.settle(tally.replicas, |_| true)?;
        self.settle(tally.trash, |_| true)?;
        self.count_of_users(&tally.sessions, &tally.attempts)?;
        self.mark_all(Table::UserSession, tally.user_sessions)?;
        self.mark_all(Table::TrashOrder, tally.trash_order)?;
        self.mend_drops()?;
        self.mend_leases()?;
        self.mend_due(tally.due)?;
        Ok(())
    }

    /// Old versions have content, and their octets count with their file.
    fn mend_versions(&mut self) -> Result<(), CatalogError> {
        let tally = derive(&self.view)?;
        for (key, _) in self.keys(Table::OldVersion)? {
            let is_file = key_parts(&key).ok().is_some_and(|[id, _]: [u64; 2]| {
                let inode = read::<Inode>(&self.view, &crate::codec::key([id]));
                inode.is_ok_and(|inode| inode.is_some_and(|inode| inode.content().is_some()))
            });
            if !is_file || tally.old_versions.contains(&key) {
                self.delete(Table::OldVersion, &key, "is of nothing: it goes");
            }
        }
        for (id, (_, counted)) in tally.versions {
            let key = crate::record::inode_key(id);
            if let Some(mut inode) = self.view.record::<Inode>(&key)? {
                inode.versions.bytes = counted;
                self.set(key, &inode, "its old versions are counted anew");
            }
        }
        Ok(())
    }

    fn keys(&self, table: Table) -> Result<Vec<Row>, EngineError> {
        let mut rows = Vec::new();
        each_row(&self.view, table, |key, value| {
            rows.push((key.to_vec(), value.to_vec()));
            Ok(())
        })?;
        Ok(rows)
    }

    /// Makes a table what it must be, whatever is in it.
    fn settle<R: Record + PartialEq>(
        &mut self,
        mut wanted: BTreeMap<Vec<u8>, R>,
        counts: impl Fn(&R) -> bool,
    ) -> Result<(), EngineError> {
        wanted.retain(|_, record| counts(record));
        for (key, value) in self.keys(R::TABLE)? {
            let there = decoded::<R>(&value).ok();
            match wanted.remove(&key) {
                Some(record) if there.as_ref() != Some(&record) => {
                    self.set(key, &record, "is counted anew");
                }
                None if there.as_ref().is_none_or(&counts) => {
                    self.delete(R::TABLE, &key, "is of nothing: it goes");
                }
                _ => {}
            }
        }
        for (key, record) in wanted {
            self.set(key, &record, "was missing");
        }
        Ok(())
    }

    fn mark_all(&mut self, table: Table, mut wanted: BTreeSet<Vec<u8>>) -> Result<(), EngineError> {
        for (key, _) in self.keys(table)? {
            if !wanted.remove(&key) {
                self.delete(table, &key, "is of nothing: it goes");
            }
        }
        wanted.into_iter().for_each(|key| self.mark(table, key, "was missing"));
        Ok(())
    }

    fn count_of_users(
        &mut self,
        sessions: &BTreeMap<Vec<u8>, u32>,
        attempts: &BTreeMap<Vec<u8>, u32>,
    ) -> Result<(), EngineError> {
        let mut wrong = Vec::new();
        each(&self.view, |key, user: User| {
            let session_count = sessions.get(key).copied().unwrap_or_default();
            let attempt_count = attempts.get(key).copied().unwrap_or_default();
            if (user.session_count, user.attempt_count) != (session_count, attempt_count) {
                wrong.push((key.to_vec(), User { session_count, attempt_count, ..user }));
            }
        })?;
        for (key, user) in wrong {
            self.set(key, &user, "sessions and attempts are counted anew");
        }
        Ok(())
    }

    fn mend_drops(&mut self) -> Result<(), EngineError> {
        for (key, _) in self.keys(Table::Drop)? {
            if self.view.has(Table::Replica, &key)? {
                self.delete(Table::Drop, &key, "is a replica: it is not dropped");
            }
        }
        Ok(())
    }

    /// Leases are of files, and of open sessions.
    fn mend_leases(&mut self) -> Result<(), EngineError> {
        let (mut wanted, mut counts) = (BTreeSet::new(), BTreeMap::<Vec<u8>, u32>::new());
        for (key, value) in self.keys(Table::WriteLease)? {
            let lease = decoded::<WriteLease>(&value).ok();
            let file: Option<Inode> = read(&self.view, &key)?;
            let is_file = file.is_some_and(|file| file.content().is_some());
            let session = lease.as_ref().map(|lease| session_key(lease.session));
            let is_open = match &session {
                Some(session) => self.view.has(Table::Session, session)?,
                None => false,
            };
            match (lease, key_parts(&key)) {
                (Some(lease), Ok([file])) if is_file && is_open => {
                    wanted.insert(session_lease_key(lease.session, crate::id::InodeId(file)));
                    *counts.entry(session_key(lease.session)).or_default() += 1;
                }
                _ => self.delete(Table::WriteLease, &key, "is nobody's: it goes"),
            }
        }
        self.mark_all(Table::SessionLease, wanted)?;
        let mut wrong = Vec::new();
        each(&self.view, |key, session: Session| {
            let lease_count = counts.get(key).copied().unwrap_or_default();
            if session.lease_count != lease_count {
                wrong.push((key.to_vec(), Session { lease_count, ..session }));
            }
        })?;
        for (key, session) in wrong {
            self.set(key, &session, "its leases are counted anew");
        }
        Ok(())
    }

    /// Everything that ends by itself is looked at.
    fn mend_due(&mut self, due: Vec<Expiry>) -> Result<(), EngineError> {
        let mut planned = BTreeSet::new();
        for (key, _) in self.keys(Table::Expiry)? {
            match key_parts(&key).and_then(Expiry::from_parts) {
                Ok((_, what)) => {
                    planned.insert(what);
                }
                Err(_) => self.delete(Table::Expiry, &key, "is malformed: it goes"),
            }
        }
        for what in due.into_iter().filter(|what| !planned.contains(what)) {
            // What is not to end yet is looked at again, later.
            self.mark(Table::Expiry, what.key(self.now_ns), "is looked at, so that it ends");
        }
        Ok(())
    }
}
