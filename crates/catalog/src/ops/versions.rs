//! Old versions that are kept by policy: the last so many of each file.
//!
//! Their content stays among the versions that are kept for readers, with all that goes with it:
//! replicas, holds, reading by name. A row beside it says that no time ends it. What is one too
//! many becomes a version as any other that was replaced.

use crate::codec::{Malformed, key_parts};
use crate::command::{Answer, Entry};
use crate::engine::{EngineError, Table};
use crate::execution::Execution;
use crate::id::{ContentId, InodeId, Version};
use crate::name::Place;
use crate::quota::{Account, settle};
use crate::record::{Expiry, Inode, KeptVersion, Kind, OldVersion, Usage, inode_key};
use crate::refusal::{Failure, Refusal};

const BAD_KEY: EngineError =
    EngineError::Corrupt { table: Table::OldVersion, what: "a malformed key" };
const NO_CONTENT: EngineError =
    EngineError::Corrupt { table: Table::OldVersion, what: "a version without content" };
const BAD_BYTES: EngineError =
    EngineError::Corrupt { table: Table::Inode, what: "old versions would be below zero" };

impl Execution<'_> {
    /// Says how many replaced versions a file keeps, or what is made in a directory.
    pub(super) fn set_versions(&mut self, place: &Place, wanted: u8) -> Result<Answer, Failure> {
        let (id, mut inode) = self.object(place)?;
        if inode.kind() == Kind::Symlink {
            return Err(Refusal::SymbolicLink.into());
        }
        let charged = |inode: &Inode| Usage { bytes: inode.charged_bytes(), ..Usage::default() };
        let (account, before) = (Account::of(&inode), charged(&inode));
        inode.versions.wanted = wanted;
        self.keep_last(id, &mut inode)?;
        settle(&mut self.view, &[(&account, before)], &[(&account, charged(&inode))])?;
        self.touch(&mut inode);
        self.set_inode(id, &inode);
        Ok(Answer::Entry(Entry { id, inode }))
    }

    /// Keeps a version that was just replaced, if the file's policy says so; true if it does.
    /// The caller books what the file counts for then.
    pub(super) fn keep_replaced(
        &mut self,
        inode: &mut Inode,
        (replaced, size): (ContentId, u64),
    ) -> Result<bool, Failure> {
        if inode.versions.wanted == 0 {
            return Ok(false);
        }
        let old = OldVersion {
            modified_ns: inode.times.modified_ns,
            replaced_ns: self.now_ns,
            replaced_by: self.caller.user.clone(),
        };
        self.view.set(replaced.key(), &old);
        inode.versions.bytes = inode.versions.bytes.checked_add(size).ok_or(BAD_BYTES)?;
        self.keep_last(replaced.inode, inode)?;
        Ok(true)
    }

    /// Lets all go but the last that are wanted.
    fn keep_last(&mut self, id: InodeId, inode: &mut Inode) -> Result<(), Failure> {
        let wanted = usize::from(inode.versions.wanted);
        let most = usize::from(u8::MAX) + 1;
        let rows = self.view.prefixed(Table::OldVersion, &inode_key(id), most)?;
        for (row, _) in rows.iter().take(rows.len().saturating_sub(wanted)) {
            let [_, version] = key_parts(row).map_err(|Malformed| BAD_KEY)?;
            let content = ContentId { inode: id, version: Version(version) };
            let kept: KeptVersion = self.view.record(&content.key())?.ok_or(NO_CONTENT)?;
            self.view.delete(Table::OldVersion, row.clone());
            let left = inode.versions.bytes.checked_sub(kept.content.size);
            inode.versions.bytes = left.ok_or(BAD_BYTES)?;
            let due_ns = self.now_ns.saturating_add(self.terms.kept_ns);
            self.view.mark(Table::Expiry, Expiry::Kept(content).key(due_ns));
        }
        Ok(())
    }

    /// Ends the old versions of a file that is gone.
    pub(super) fn drop_versions(&mut self, id: InodeId) -> Result<(), Failure> {
        for (row, _) in self.view.prefixed(Table::OldVersion, &inode_key(id), usize::MAX)? {
            let kept: KeptVersion = self.view.record(&row)?.ok_or(NO_CONTENT)?;
            self.view.delete(Table::OldVersion, row.clone());
            self.view.delete(Table::Kept, row);
            self.drop_replicas(id, &kept.content)?;
        }
        Ok(())
    }
}
