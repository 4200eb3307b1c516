//! Counts made anew from inodes, entries, attempts, versions and sessions.

use std::collections::{BTreeMap, BTreeSet};

use super::{Inconsistency, content_of, report};
use crate::codec::key_parts;
use crate::engine::{EngineError, Rows, Table};
use crate::id::{ContentId, DiskId, InodeId, SessionId};
use crate::quota::{Account, counts_spaces};
use crate::record::{
    Attempt, Content, Dentry, Detail, DiskUsage, Expiry, Inode, KeptVersion, Kind, Replica, SPACES,
    Session, TrashItem, TrashUsage, Usage, disk_key, inode_key, user_session_key,
};

/// An inode, as far as names are concerned.
#[derive(Debug)]
struct Named {
    kind: Kind,
    link_count: u32,
    parent: Option<InodeId>,
    counted: u32,
    is_detached: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    inodes: BTreeMap<InodeId, Named>,
    pub(crate) usage: BTreeMap<Vec<u8>, Usage>,
    pub(crate) disks: BTreeMap<Vec<u8>, DiskUsage>,
    pub(crate) replicas: BTreeMap<Vec<u8>, Replica>,
    pub(crate) sessions: BTreeMap<Vec<u8>, u32>,
    pub(crate) user_sessions: BTreeSet<Vec<u8>>,
    /// Octets of old versions, as inodes say, and as there are.
    pub(crate) versions: BTreeMap<InodeId, (u64, u64)>,
    /// Old versions of which no content was seen.
    pub(crate) old_versions: BTreeSet<Vec<u8>>,
    pub(crate) trash: BTreeMap<Vec<u8>, TrashUsage>,
    pub(crate) trash_order: BTreeSet<Vec<u8>>,
    pub(crate) attempts: BTreeMap<Vec<u8>, u32>,
    pub(crate) due: Vec<Expiry>,
    pub(crate) highest: u64,
    pub(super) found: Vec<Inconsistency>,
}

impl Tally {
    /// Leaves out what a catalog does not count that no head of this version has led.
    pub(crate) fn as_counted(&mut self, rows: &dyn Rows) -> Result<(), EngineError> {
        if !counts_spaces(rows)? {
            self.usage.retain(|key, _| !key.starts_with(SPACES));
        }
        Ok(())
    }

    pub(super) fn inode(&mut self, key: &[u8], inode: Inode) {
        let Ok([id]) = key_parts(key) else {
            return report(&mut self.found, Table::Inode, key, "a malformed key");
        };
        let id = InodeId(id);
        self.highest = self.highest.max(id.0);
        let parent = match inode.detail {
            Detail::Directory { parent } => Some(parent),
            _ => None,
        };
        if let Some(content) = inode.content() {
            self.content(id, content);
        }
        if inode.link_count == 0 {
            self.due.push(Expiry::Nameless(id));
        } else {
            let used = Usage { inodes: 1, bytes: inode.charged_bytes(), ..Usage::default() };
            self.book(&Account::of(&inode), used);
        }
        if inode.versions.bytes > 0 {
            self.versions.entry(id).or_default().0 = inode.versions.bytes;
        }
        let (kind, link_count) = (inode.kind(), inode.link_count);
        self.inodes.insert(id, Named { kind, link_count, parent, counted: 0, is_detached: false });
    }

    pub(super) fn dentry(&mut self, key: &[u8], dentry: Dentry) {
        let directory = key.first_chunk().map(|id| InodeId(u64::from_be_bytes(*id)));
        let is_in_directory = directory
            .and_then(|id| self.inodes.get(&id))
            .is_some_and(|above| above.kind == Kind::Directory);
        if !is_in_directory {
            report(&mut self.found, Table::Dentry, key, "is in no directory");
        }
        match self.inodes.get_mut(&dentry.inode) {
            Some(named) if named.kind == dentry.kind => {
                named.counted += 1;
                if named.kind == Kind::Directory && named.parent != directory {
                    report(&mut self.found, Table::Dentry, key, "its directory is another");
                }
            }
            _ => report(&mut self.found, Table::Dentry, key, "leads to nothing of its type"),
        }
        if dentry.kind == Kind::Directory
            && let Some(above) = directory.and_then(|id| self.inodes.get_mut(&id))
        {
            above.counted += 1;
        }
    }

    pub(super) fn detached(&mut self, key: &[u8]) {
        let id = key_parts(key).ok().map(|[id]| InodeId(id));
        match id.and_then(|id| self.inodes.get_mut(&id).map(|named| (id, named))) {
            Some((id, named)) if named.kind == Kind::Directory && named.parent == Some(id) => {
                // What leads to it is the row that has it collected.
                named.is_detached = true;
            }
            _ => report(&mut self.found, Table::Detached, key, "is no directory without a name"),
        }
    }

    pub(super) fn trash_item(&mut self, key: &[u8], item: &TrashItem) {
        let id = key_parts(key).ok().map(|[id]| InodeId(id));
        let known = id.and_then(|id| self.inodes.get_mut(&id).map(|named| (id, named)));
        let Some((id, named)) = known.filter(|(_, named)| named.kind == item.kind) else {
            return report(&mut self.found, Table::Trash, key, "leads to nothing of its type");
        };
        // The row takes the place of the entry.
        match named.kind {
            Kind::Directory if named.parent != Some(id) || named.is_detached => {
                report(&mut self.found, Table::Trash, key, "is no directory without a name");
            }
            Kind::Directory => named.is_detached = true,
            Kind::File | Kind::Symlink => named.counted += 1,
        }
        let usage = self.trash.entry(inode_key(item.tree)).or_default();
        usage.items += 1;
        usage.bytes += item.bytes();
        self.trash_order.insert(item.order_key(id));
        if item.measure.is_none() {
            self.trash_order.insert(item.unmeasured_key(id));
        }
    }

    /// Names are counted when all entries are known. A directory has its own `.` beside, and the
    /// top one has `..` in place of a name.
    pub(super) fn finish_names(&mut self) {
        for (id, named) in &self.inodes {
            let is_directory = named.kind == Kind::Directory;
            let own =
                u32::from(is_directory) + u32::from(*id == InodeId::ROOT || named.is_detached);
            if named.counted + own != named.link_count {
                report(&mut self.found, Table::Inode, &inode_key(*id), "links are miscounted");
            }
            let is_own_parent = named.parent == Some(*id) && *id != InodeId::ROOT;
            if is_own_parent != named.is_detached {
                report(&mut self.found, Table::Inode, &inode_key(*id), "nothing collects it");
            }
        }
    }

    pub(super) fn attempt(&mut self, key: &[u8], attempt: &Attempt) {
        let Some(content) = content_of(key) else {
            return report(&mut self.found, Table::Attempt, key, "a malformed key");
        };
        self.highest = self.highest.max(content.inode.0).max(content.version.0);
        self.book(&Account::of_attempt(attempt), attempt.reserved());
        for disk in &attempt.disks {
            self.disks.entry(disk_key(*disk)).or_default().reserved_bytes += attempt.size_max;
        }
        *self.attempts.entry(attempt.user.as_bytes().to_vec()).or_default() += 1;
        self.due.push(Expiry::Attempt(content));
    }

    pub(super) fn kept(&mut self, key: &[u8], kept: &KeptVersion) {
        let Some(content) = content_of(key) else {
            return report(&mut self.found, Table::Kept, key, "a malformed key");
        };
        self.content(content.inode, &kept.content);
        if self.old_versions.remove(key) {
            self.versions.entry(content.inode).or_default().1 += kept.content.size;
        } else {
            self.due.push(Expiry::Kept(content));
        }
    }

    pub(super) fn old_version(&mut self, key: &[u8]) {
        let is_of_file = content_of(key)
            .and_then(|content| self.inodes.get(&content.inode))
            .is_some_and(|named| named.kind == Kind::File);
        if is_of_file {
            self.old_versions.insert(key.to_vec());
        } else {
            report(&mut self.found, Table::OldVersion, key, "is of no file");
        }
    }

    pub(super) fn finish_versions(&mut self) {
        for key in &self.old_versions {
            report(&mut self.found, Table::OldVersion, key, "has no content");
        }
        self.versions.retain(|_, (said, counted)| said != counted);
        for id in self.versions.keys() {
            report(&mut self.found, Table::Inode, &inode_key(*id), "old versions are miscounted");
        }
    }

    pub(super) fn session(&mut self, key: &[u8], session: &Session) {
        let Ok([id]) = key_parts(key) else {
            return report(&mut self.found, Table::Session, key, "a malformed key");
        };
        self.highest = self.highest.max(id);
        *self.sessions.entry(session.user.as_bytes().to_vec()).or_default() += 1;
        self.user_sessions.insert(user_session_key(SessionId(id), session));
        self.due.push(Expiry::Session(SessionId(id)));
    }

    fn content(&mut self, id: InodeId, content: &Content) {
        self.highest = self.highest.max(content.version.0);
        let of = ContentId { inode: id, version: content.version };
        for disk in &content.replicas {
            let disk: DiskId = *disk;
            self.disks.entry(disk_key(disk)).or_default().used_bytes += content.size;
            self.replicas.insert(Replica::key(disk, of), Replica { size: content.size });
        }
    }

    fn book(&mut self, account: &Account, amount: Usage) {
        for subject in account.subjects() {
            let usage = self.usage.entry(subject.key()).or_default();
            usage.inodes += amount.inodes;
            usage.bytes += amount.bytes;
            usage.reserved_inodes += amount.reserved_inodes;
            usage.reserved_bytes += amount.reserved_bytes;
        }
    }
}
