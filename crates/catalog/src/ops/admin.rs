//! What operators of a site do: users, disks, limits, trees, epochs.

use crate::codec::{key, key_parts};
use crate::command::{AddDisk, Answer, DiskChanges};
use crate::engine::{Rows, Span, Table};
use crate::execution::Execution;
use crate::id::{ContentId, DiskId, InodeId, LeaseEpoch, Version, epoch_of, epoch_start};
use crate::name::{Place, check_label};
use crate::quota::{Account, settle};
use crate::record::{
    DISK_LOAD_MAX, Detail, Disk, DiskState, DiskUsage, Inode, KeptVersion, Key, KeyHolder,
    LEASE_KEY, Lease, Limited, Limits, Replica, Subject, Usage, User, disk_key, inode_key,
};
use crate::refusal::{Failure, Refusal};
use crate::view::decoded;

use super::content::DiskBooking;
use super::namespace::ONE_INODE;

/// Most disks of a site.
pub(super) const DISKS_MAX: usize = 1024;
/// Most groups of a user.
const GROUPS_MAX: usize = 64;
/// Most records that one command drops from the log, or replicas of a disk made anew.
const PAGE_MAX: usize = 1024;

impl Execution<'_> {
    pub(super) fn set_user(
        &mut self,
        user: &str,
        groups: &[String],
        is_operator: bool,
    ) -> Result<Answer, Failure> {
        check_label(user)?;
        groups.iter().try_for_each(|group| check_label(group))?;
        if groups.is_empty() {
            return Err(Refusal::BadLabel.into());
        }
        if groups.len() > GROUPS_MAX {
            return Err(Refusal::TooManyGroups.into());
        }
        let key = user.as_bytes().to_vec();
        let old: Option<User> = self.view.record(&key)?;
        let (session_count, attempt_count) =
            old.map_or((0, 0), |old| (old.session_count, old.attempt_count));
        let groups = groups.to_vec();
        self.view.set(key, &User { groups, is_operator, session_count, attempt_count });
        Ok(Answer::Done)
    }

    pub(super) fn add_disk(&mut self, add: &AddDisk) -> Result<Answer, Failure> {
        [&add.space, &add.server, &add.label].into_iter().try_for_each(|name| check_label(name))?;
        if self.view.range(Table::Disk, Span::ALL, DISKS_MAX)?.len() >= DISKS_MAX {
            return Err(Refusal::TooManyDisks.into());
        }
        let id = DiskId(self.issue()?);
        let disk = Disk {
            space: add.space.clone(),
            server: add.server.clone(),
            label: add.label.clone(),
            generation: 1,
            state: DiskState::ReadWrite,
            is_up: true,
            capacity_bytes: add.capacity_bytes,
            load: 0,
            drain_bytes_per_s: u64::MAX,
        };
        self.view.set(disk_key(id), &disk);
        Ok(Answer::Disk(id))
    }

    pub(super) fn set_disk(
        &mut self,
        id: DiskId,
        changes: &DiskChanges,
    ) -> Result<Answer, Failure> {
        let mut disk = self.disk(id)?;
        changes.server.iter().try_for_each(|server| check_label(server))?;
        if changes.is_new_generation {
            self.forget_replicas(id)?;
            disk.generation += 1;
        }
        disk.state = changes.state.unwrap_or(disk.state);
        disk.is_up = changes.is_up.unwrap_or(disk.is_up);
        disk.capacity_bytes = changes.capacity_bytes.unwrap_or(disk.capacity_bytes);
        disk.load = changes.load.map_or(disk.load, |load| load.min(DISK_LOAD_MAX));
        disk.drain_bytes_per_s = changes.drain_bytes_per_s.unwrap_or(disk.drain_bytes_per_s);
        disk.server = changes.server.clone().unwrap_or(disk.server);
        self.view.set(disk_key(id), &disk);
        Ok(Answer::Done)
    }

    /// Removes a disk that people have turned off and that has no replica: its keys count no more,
    /// and what it was still to drop is forgotten. Its number is never given again.
    pub(super) fn remove_disk(&mut self, id: DiskId) -> Result<Answer, Failure> {
        let (disk, row) = (self.disk(id)?, disk_key(id));
        let usage: DiskUsage = self.view.record(&row)?.unwrap_or_default();
        let has_replica = !self.view.prefixed(Table::Replica, &row, 1)?.is_empty();
        let drops = self.view.prefixed(Table::Drop, &row, usize::MAX)?;
        if disk.state != DiskState::Off || has_replica || usage.reserved_bytes != 0 {
            return Err(Refusal::DiskInUse.into());
        }
        for (name, value) in self.view.range(Table::Key, Span::ALL, usize::MAX)? {
            let key: Key = decoded(&value)?;
            if key.holder == KeyHolder::Disk(id) {
                self.view.delete(Table::Key, name);
            }
        }
        drops.into_iter().for_each(|(key, _)| self.view.delete(Table::Drop, key));
        self.view.delete(Table::DiskUsage, row.clone());
        self.view.delete(Table::Disk, row);
        Ok(Answer::Done)
    }

    /// A disk that is made anew has nothing. One with more than a page of replicas is emptied by
    /// other means first.
    fn forget_replicas(&mut self, id: DiskId) -> Result<(), Failure> {
        let rows = self.view.prefixed(Table::Replica, &disk_key(id), PAGE_MAX + 1)?;
        if rows.len() > PAGE_MAX {
            return Err(Refusal::DiskInUse.into());
        }
        for (row, value) in rows {
            let replica: Replica = decoded(&value)?;
            let [_, inode, version] = key_parts(&row).unwrap_or_default();
            let content = ContentId { inode: InodeId(inode), version: Version(version) };
            self.view.delete(Table::Replica, Replica::key(id, content));
            self.forget_replica(id, content)?;
            let change = DiskBooking { less_used: replica.size, ..DiskBooking::default() };
            self.book_disk(id, change)?;
        }
        Ok(())
    }

    /// Takes a disk out of the list of a version's replicas.
    fn forget_replica(&mut self, disk: DiskId, content: ContentId) -> Result<(), Failure> {
        let inode: Option<Inode> = self.view.record(&inode_key(content.inode))?;
        if let Some(mut inode) = inode
            && let Detail::File(current) = &mut inode.detail
            && current.version == content.version
        {
            current.replicas.retain(|one| *one != disk);
            self.touch(&mut inode);
            self.set_inode(content.inode, &inode);
        } else if let Some(mut kept) = self.view.record::<KeptVersion>(&content.key())? {
            kept.content.replicas.retain(|one| *one != disk);
            self.view.set(content.key(), &kept);
        }
        Ok(())
    }

    pub(super) fn set_limits(
        &mut self,
        subject: &Subject,
        limits: Limits,
    ) -> Result<Answer, Failure> {
        match subject {
            Subject::User(name) | Subject::Group(name) | Subject::Space(name) => {
                check_label(name)?;
            }
            Subject::Tree(id) => {
                if self.inode(*id)?.tree != *id {
                    return Err(Refusal::NotDirectory.into());
                }
            }
        }
        let key = subject.key();
        let known: Option<Limited> = self.view.record(&key)?;
        let usage: Usage = self.view.record(&key)?.unwrap_or_default();
        let over = known.unwrap_or(Limited::NONE).over;
        self.view.set(key, &Limited { limits, over }.at(&usage, self.now_ns));
        Ok(Answer::Done)
    }

    pub(super) fn make_tree(&mut self, place: &Place) -> Result<Answer, Failure> {
        let (id, mut inode) = self.object(place)?;
        self.check_empty_directory(id, &inode)?;
        let before = Account::of(&inode);
        inode.tree = id;
        let after = Account::of(&inode);
        settle(&mut self.view, &[(&before, ONE_INODE)], &[(&after, ONE_INODE)])?;
        self.touch(&mut inode);
        self.set_inode(id, &inode);
        Ok(Answer::Done)
    }

    pub(super) fn trim_log(&mut self, below: u64, limit: usize) -> Result<Answer, Failure> {
        let until = key([below]);
        let span = Span { from: &[], until: Some(&until) };
        let rows = self.view.range(Table::Log, span, limit.min(PAGE_MAX))?;
        let count = rows.len();
        rows.into_iter().for_each(|(key, _)| self.view.delete(Table::Log, key));
        Ok(Answer::Count(count))
    }

    /// Starts an epoch above all that were. The lease goes on under a number of the new epoch, so
    /// disks obey it and nothing older.
    pub(super) fn raise_epoch(&mut self, epoch: u16) -> Result<Answer, Failure> {
        let lease: Option<Lease> = self.view.record(LEASE_KEY)?;
        let mut lease = lease.ok_or(Refusal::OldEpoch)?;
        let numbers = [self.counters.issued, self.counters.transaction, lease.epoch.0];
        if numbers.into_iter().any(|number| epoch <= epoch_of(number)) {
            return Err(Refusal::OldEpoch.into());
        }
        let start = epoch_start(epoch);
        self.counters.former.push(self.counters.issued);
        self.counters.issued = start;
        self.number.0 = start + 1;
        lease.epoch = LeaseEpoch(start);
        self.view.set(LEASE_KEY.to_vec(), &lease);
        Ok(Answer::Done)
    }
}
