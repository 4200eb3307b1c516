//! The look through all files for those that have fewer replicas than their policy wants: written
//! when not all disks answered, or after a disk lost what it had.
//!
//! It goes on a bounded number of rows at a time, and begins again only if the catalog has changed
//! since it began, or something was left to do.

use byname_catalog::id::{ContentId, DiskId, InodeId, TransactionNumber};
use byname_catalog::{Content, Detail, DiskState, Failure, Inode, Policy};
use byname_site::Stamp;

use super::{FilesReport, Repairs, SECOND_NS, Scene, Task, Why};

/// Rows of one look, and pages of them.
const PAGE_ROWS: usize = 1024;
const PAGES: usize = 8;
/// Pause between two of them.
const PAUSE_NS: u64 = SECOND_NS;
/// Pause between two looks through everything.
const AGAIN_NS: u64 = 5 * SECOND_NS;
/// Time that a file has after its last change until it lacks something, at most.
const GRACE_NS: u64 = 30 * SECOND_NS;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Files {
    after: Option<InodeId>,
    /// When the look goes on.
    next_ns: u64,
    /// The catalog as of when the look began.
    began_at: Option<TransactionNumber>,
    /// The catalog as of a whole look that left nothing to do.
    clean_at: Option<TransactionNumber>,
    found: FilesReport,
}

impl Repairs {
    /// Begins to make replicas that files lack; true if there are more rows to look at soon.
    pub(super) fn begin_short(
        &mut self,
        scene: &Scene<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<bool, Failure> {
        if self.files.next_ns > scene.now_ns {
            return Ok(false);
        }
        if !self.may_begin() {
            return Ok(true);
        }
        let last = scene.reader.last_transaction()?;
        if self.files.began_at.is_none() {
            // Disks that go and come change what is out of reach, and the catalog with it.
            if self.files.clean_at == Some(last) {
                return Ok(false);
            }
            (self.files.began_at, self.files.found) = (Some(last), FilesReport::default());
        }
        for _ in 0..PAGES {
            let inodes = scene.reader.inodes(self.files.after, PAGE_ROWS)?;
            let is_last = inodes.len() < PAGE_ROWS;
            for (id, inode) in &inodes {
                if !self.may_begin() {
                    // What is left comes when there is allowance again.
                    return Ok(true);
                }
                self.look_at(*id, inode, scene, stamp)?;
                self.look_at_versions(*id, inode, scene, stamp)?;
                self.files.after = Some(*id);
            }
            if is_last {
                self.end_look(scene.now_ns);
                return Ok(false);
            }
        }
        self.files.next_ns = scene.now_ns.saturating_add(PAUSE_NS);
        Ok(false)
    }

    fn end_look(&mut self, now_ns: u64) {
        let found = self.files.found;
        self.desk.tell(|report| report.files = Some(found));
        let is_clean = found == FilesReport::default();
        self.files.clean_at = self.files.began_at.take().filter(|_| is_clean);
        self.files.after = None;
        self.files.next_ns = now_ns.saturating_add(AGAIN_NS);
    }

    fn look_at(
        &mut self,
        id: InodeId,
        inode: &Inode,
        scene: &Scene<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<(), Failure> {
        let Some(content) = inode.content().filter(|it| it.size > 0) else { return Ok(()) };
        if inode.link_count == 0 {
            return Ok(());
        }
        let is_reached = |disk: &DiskId| {
            let disk = scene.disks.get(disk);
            disk.is_some_and(|disk| disk.is_up && disk.state != DiskState::Off)
        };
        let found = &mut self.files.found;
        if content.replicas.is_empty() {
            found.lost += 1;
            return Ok(());
        }
        let wanted = usize::from(inode.policy.replica_count);
        let reached = content.replicas.iter().filter(|disk| is_reached(disk)).count();
        if reached == 0 {
            found.out_of_reach += 1;
        } else if content.replicas.len() < wanted {
            found.short += 1;
            let of = ContentId { inode: id, version: content.version };
            if is_old_enough(inode, self.config.after_ns, scene.unix_ns) {
                self.begin_lacking(of, (content, &inode.policy), scene, stamp)?;
            }
        } else if reached < wanted {
            found.thin += 1;
        }
        Ok(())
    }

    /// Old versions that are kept by policy get what they lack as well.
    fn look_at_versions(
        &mut self,
        id: InodeId,
        inode: &Inode,
        scene: &Scene<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<(), Failure> {
        if inode.versions.bytes == 0 {
            return Ok(());
        }
        for (content, _) in scene.reader.versions(id)? {
            let inode = Inode { detail: Detail::File(content), ..inode.clone() };
            self.look_at(id, &inode, scene, stamp)?;
        }
        Ok(())
    }

    fn begin_lacking(
        &mut self,
        content: ContentId,
        (found, policy): (&Content, &Policy),
        scene: &Scene<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<(), Failure> {
        let task = Task { content, from: None, why: Why::Short };
        self.begin_one(task, &(found.clone(), policy.clone()), scene, stamp).map(drop)
    }
}

/// Disks that were asked when it was written may still be about to have it.
fn is_old_enough(inode: &Inode, after_ns: u64, unix_ns: u64) -> bool {
    let grace_ns = after_ns.min(GRACE_NS);
    unix_ns.abs_diff(inode.times.changed_ns) >= grace_ns
}
