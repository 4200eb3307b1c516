//! Opening a version: whether it is still the current one, and which way it is read.

use std::fs::File;
use std::io;
use std::sync::Arc;

use byname_client::{ClientError, RemoteFile, ResolvedEntry};
use byname_transfer::error::ReadError;
use fuser::BackingId;
use rustix::io::Errno;

use super::Tree;
use crate::attributes::{Attributes, Kind};
use crate::files::OpenFile;
use crate::inodes::Inode;

/// Tells the kernel of a file that it may read in place of one of the mount.
pub(crate) type Register<'a> = dyn Fn(File) -> io::Result<BackingId> + Sync + 'a;

impl Tree {
    /// Opens the version that an inode stands for. ESTALE if another one is current: the kernel
    /// then looks the name up again and opens what it finds.
    pub(crate) async fn open(
        &self,
        number: u64,
        register: &Register<'_>,
    ) -> Result<(u64, OpenFile), i32> {
        let inode = self.inode(number)?;
        match inode.attributes.kind {
            Kind::File => {}
            Kind::Directory => return Err(Errno::ISDIR.raw_os_error()),
            Kind::Link => return Err(Errno::LOOP.raw_os_error()),
        }
        let (since_ns, now_ns) = (self.since_ns(), self.now_ns());
        let is_current = inode.seen_ns >= since_ns;
        if is_current && let Some(shared) = self.files().share(number) {
            return Ok(shared);
        }
        let resolved = match is_current {
            true => self.resolved(&inode, since_ns),
            false => None,
        };
        let session = self.sources.session(&inode.name);
        let opening = match &resolved {
            Some(entry) => session.open_entry_later(entry),
            None => session.open_later(&inode.name),
        };
        let file = match opening.await {
            Ok(file) => file,
            Err(ClientError::Read(ReadError::NotFound { .. })) => return Err(self.replaced(&inode)),
            Err(error) => return Err(self.errno(&inode.name, &error)),
        };
        if Some(file.stat().version) != inode.attributes.version {
            return Err(self.replaced(&inode));
        }
        if resolved.is_none() {
            self.inodes().renew(number, Arc::new(Attributes::of_stat(file.stat())), now_ns);
        }
        let backing = self.backing(number, &file, register).await;
        Ok(self.files().insert(number, OpenFile { file, backing }))
    }

    /// What the kernel reads in place of a file, if it may.
    async fn backing(
        &self,
        number: u64,
        file: &RemoteFile,
        register: &Register<'_>,
    ) -> Option<Arc<BackingId>> {
        // Whoever has it open has decided for all.
        if !self.passing.is_on() || self.files().is_open(number) {
            return None;
        }
        let attributes = Attributes::of_stat(file.stat());
        let content = self.cached(&attributes).filter(|_| self.is_cacheable(&attributes))?;
        let whole = self.passing.file(&content).await?;
        self.passing.registered(register(whole))
    }

    /// The version of an inode as the manifest of its directory describes it.
    fn resolved(&self, inode: &Inode, since_ns: u64) -> Option<ResolvedEntry> {
        let (snapshot, _) = self.snapshots().peek(inode.parent, since_ns)?;
        let resolved = snapshot.resolve(inode.name.view().last()?.value)?;
        (Some(resolved.stat().version) == inode.attributes.version).then_some(resolved)
    }

    /// The name of an inode stands for something else by now.
    fn replaced(&self, inode: &Inode) -> i32 {
        let now_ns = self.now_ns();
        self.snapshots().expire(inode.parent, now_ns);
        if let Some(last) = inode.name.view().last() {
            self.tell_change(inode.parent, last.value);
        }
        Errno::STALE.raw_os_error()
    }
}
