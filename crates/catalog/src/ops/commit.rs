//! Commit: one transaction that makes what the disks have the file's content.
//!
//! A receipt is a vote. Those of disks that were asked, are of the same generation still, and have
//! exactly the content that the writer signed are counted, each disk once; a single one that does
//! not fit refuses all, because then somebody is wrong about what is being committed.

use crate::attached::check_attached;
use crate::command::{Answer, Commit, Entry, Receipt};
use crate::execution::{EntryPlace, Execution};
use crate::id::{ContentId, DiskId, SessionId};
use crate::quota::{Account, settle};
use crate::record::{
    Acls, Attempt, Checksums, Content, Detail, EMPTY_ROOT, Inode, SITE_KEY, Site, Target, Times,
    Usage,
};
use crate::refusal::{Failure, Refusal};
use crate::rights::{GROUP_EXECUTE, SET_GROUP, SET_USER};

use super::attempt::receipts_needed;
use super::namespace::{ONE_INODE, charged};

impl Execution<'_> {
    pub(super) fn commit(
        &mut self,
        session: SessionId,
        commit: &Commit,
    ) -> Result<Answer, Failure> {
        let attempt = self.own_attempt(commit.content)?;
        if commit.size > attempt.size_max {
            return Err(Refusal::TooLarge.into());
        }
        let is_empty = commit.root == EMPTY_ROOT && commit.checksums == Checksums::EMPTY;
        if commit.size == 0 && !is_empty {
            return Err(Refusal::ForeignReceipt.into());
        }
        let replicas = self.count_receipts(commit, &attempt)?;
        if replicas.len() < usize::from(receipts_needed(&attempt, commit.size)) {
            return Err(Refusal::TooFewReceipts.into());
        }
        let content = Content {
            version: commit.content.version,
            size: commit.size,
            root: commit.root,
            checksums: commit.checksums,
            replicas,
        };
        self.end_attempt(commit.content, &attempt)?;
        self.add_replicas(commit.content.inode, &content)?;
        let inode = match &attempt.target {
            Target::NewFile { .. } => self.publish(commit, &attempt, content)?,
            Target::NextVersion { .. } => {
                self.check_unchanged_lease(session, commit.content.inode, &attempt)?;
                self.supersede(commit, &attempt, content)?
            }
        };
        Ok(Answer::Entry(Entry { id: commit.content.inode, inode }))
    }

    /// The disks that have the content.
    fn count_receipts(&self, commit: &Commit, attempt: &Attempt) -> Result<Vec<DiskId>, Failure> {
        let site: Option<Site> = self.view.record(SITE_KEY)?;
        let mut disks = Vec::new();
        for receipt in &commit.receipts {
            let is_of_site = site.as_ref().is_some_and(|site| site.name == receipt.site);
            if !is_of_site || !fits(receipt, commit) {
                return Err(Refusal::ForeignReceipt.into());
            }
            let is_asked = attempt.disks.contains(&receipt.disk);
            if !is_asked || self.disk(receipt.disk)?.generation != receipt.generation {
                return Err(Refusal::UnknownDisk.into());
            }
            if !disks.contains(&receipt.disk) {
                disks.push(receipt.disk);
            }
        }
        // Content without octets is nowhere, whoever has confirmed it.
        Ok(if commit.size == 0 { Vec::new() } else { disks })
    }

    /// Gives a new file its name.
    fn publish(
        &mut self,
        commit: &Commit,
        attempt: &Attempt,
        content: Content,
    ) -> Result<Inode, Failure> {
        let Target::NewFile { directory, name, mode } = &attempt.target else {
            return Err(Refusal::AttemptEnded.into());
        };
        let above: Option<Inode> = self.view.record(&crate::record::inode_key(*directory))?;
        let above = above.ok_or(Refusal::DirectoryGone)?;
        match check_attached(&self.view, (*directory, &above)) {
            Err(Failure::Refused(_)) => return Err(Refusal::DirectoryGone.into()),
            attached => attached?,
        }
        if self.dentry(*directory, name)?.is_some() {
            return Err(Refusal::NameTaken.into());
        }
        let inode = Inode {
            mode: *mode,
            owner: attempt.owner.clone(),
            group: attempt.group.clone(),
            link_count: 1,
            times: Times {
                created_ns: self.now_ns,
                modified_ns: commit.modified_ns.unwrap_or(self.now_ns),
                changed_ns: self.now_ns,
            },
            binding: self.number,
            tree: above.tree,
            policy: attempt.policy.clone(),
            detail: Detail::File(content),
            acls: Acls { access: attempt.access.clone(), default: None },
            versions: above.versions.inherited(),
        };
        let used = Usage { bytes: commit.size, ..ONE_INODE };
        let booked = (&Account::of_attempt(attempt), attempt.reserved());
        settle(&mut self.view, &[booked], &[(&Account::of(&inode), used)])?;
        let at = EntryPlace { id: *directory, inode: above, name: name.clone() };
        self.enter(at, commit.content.inode, &inode);
        Ok(inode)
    }

    /// Makes it the next version of a file, whatever the file is called by now.
    fn supersede(
        &mut self,
        commit: &Commit,
        attempt: &Attempt,
        content: Content,
    ) -> Result<Inode, Failure> {
        let id = commit.content.inode;
        let inode: Option<Inode> = self.view.record(&crate::record::inode_key(id))?;
        let mut inode = inode.ok_or(Refusal::AttemptEnded)?;
        let current = inode.content().map(|content| content.version);
        if !matches!(attempt.target, Target::NextVersion { base } if Some(base) == current) {
            return Err(Refusal::BaseChanged.into());
        }
        let old = (&Account::of(&inode), charged(&inode));
        if attempt.policy_is_own {
            inode.policy = attempt.policy.clone();
        }
        self.replace_content(id, &mut inode, content)?;
        let new = (&Account::of(&inode), charged(&inode));
        // At once, so that nobody meets his limit who stays below it.
        let booked = (&Account::of_attempt(attempt), attempt.reserved());
        settle(&mut self.view, &[booked, old], &[new])?;
        if !self.caller.is_operator {
            clear_set_ids(&mut inode);
        }
        inode.times.modified_ns = commit.modified_ns.unwrap_or(self.now_ns);
        self.touch(&mut inode);
        self.set_inode(id, &inode);
        Ok(inode)
    }
}

/// True if a receipt is about just what is committed.
fn fits(receipt: &Receipt, commit: &Commit) -> bool {
    let of: ContentId = receipt.content;
    of == commit.content
        && receipt.size == commit.size
        && receipt.root == commit.root
        && receipt.checksums == commit.checksums
}

/// Content that others than operators write runs under nobody else's name.
pub(super) fn clear_set_ids(inode: &mut Inode) {
    inode.mode &= !SET_USER;
    if inode.mode & GROUP_EXECUTE != 0 {
        inode.mode &= !SET_GROUP;
    }
}
