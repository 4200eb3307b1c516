//! Content that is newer than the rows: it becomes part of the site by what its ticket says.

use crate::codec::key;
use crate::engine::{Engine, EngineError};
use crate::id::{ContentId, DiskId, InodeId, TransactionNumber};
use crate::name::{EntryName, NAME_BYTES_MAX};
use crate::record::{
    Acls, Checksums, Content, Dentry, Detail, Inode, KeptVersion, Kind, Times, dentry_key,
    inode_key,
};
use crate::view::View;

/// Where files go whose place is not known.
pub(crate) const LOST_AND_FOUND: &[u8] = b"lost+found";

/// A content, and where its ticket says that it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundContent {
    /// The content.
    pub content: ContentId,
    /// Octets.
    pub size: u64,
    /// Root of its hash tree.
    pub root: [u8; 32],
    /// Checksums of the whole.
    pub checksums: Checksums,
    /// Disks that have it.
    pub disks: Vec<DiskId>,
    /// When it was written, as far as that is known.
    pub written_ns: u64,
    /// Of a new file: its directory, name, owner, group and mode.
    pub file: Option<FoundFile>,
}

/// A file as it was to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// The directory.
    pub directory: InodeId,
    /// The name in it.
    pub name: EntryName,
    /// The owner.
    pub owner: String,
    /// The group.
    pub group: String,
    /// Permission bits.
    pub mode: u16,
}

/// What became of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption {
    /// It is the newest version of a file that the rows have.
    Rewritten,
    /// It is a file in its directory.
    Placed,
    /// It is a file in `lost+found`: its directory is not known, or its name is taken.
    Misplaced,
    /// It is no part of the site: nothing says what file it is, or the file is gone.
    Left,
}

/// Makes content a part of the rows in an engine. `fresh` is a number that nothing has yet.
///
/// # Errors
/// [`EngineError`].
pub fn adopt(
    engine: &dyn Engine,
    found: &FoundContent,
    fresh: InodeId,
) -> Result<Adoption, EngineError> {
    let transaction = engine.begin()?;
    let mut view = View::new(&*transaction);
    let id = found.content.inode;
    let adoption = match (view.record::<Inode>(&inode_key(id))?, &found.file) {
        (Some(inode), _) => rewrite(&mut view, (id, inode), found),
        (None, Some(file)) => place(&mut view, (found, file), fresh)?,
        (None, None) => Adoption::Left,
    };
    let writes = view.into_writes();
    transaction.commit(&writes)?;
    Ok(adoption)
}

impl FoundContent {
    fn to_content(&self) -> Content {
        Content {
            version: self.content.version,
            size: self.size,
            root: self.root,
            checksums: self.checksums,
            replicas: self.disks.clone(),
        }
    }
}

fn rewrite(
    view: &mut View<'_>,
    (id, mut inode): (InodeId, Inode),
    found: &FoundContent,
) -> Adoption {
    let Some(current) = inode.content().cloned() else { return Adoption::Left };
    if inode.link_count == 0 || current.version >= found.content.version {
        return Adoption::Left;
    }
    if !current.replicas.is_empty() {
        let key = key([id.0, current.version.0]);
        view.set(key, &KeptVersion { content: current });
    }
    inode.detail = Detail::File(found.to_content());
    inode.times.modified_ns = inode.times.modified_ns.max(found.written_ns);
    inode.times.changed_ns = inode.times.changed_ns.max(found.written_ns);
    view.set(inode_key(id), &inode);
    Adoption::Rewritten
}

fn place(
    view: &mut View<'_>,
    (found, file): (&FoundContent, &FoundFile),
    fresh: InodeId,
) -> Result<Adoption, EngineError> {
    let above: Option<Inode> = view.record(&inode_key(file.directory))?;
    let above = above.filter(|above| above.is_directory() && above.link_count > 0);
    let is_taken = view.record::<Dentry>(&dentry_key(file.directory, &file.name))?.is_some();
    let (directory, above, name, adoption) = match above.filter(|_| !is_taken) {
        Some(above) => (file.directory, above, file.name.clone(), Adoption::Placed),
        None => match lost_and_found(view, found.written_ns, fresh)? {
            Some((id, above)) => (id, above, unique_name(found, file), Adoption::Misplaced),
            None => return Ok(Adoption::Left),
        },
    };
    let inode = Inode {
        mode: file.mode,
        owner: file.owner.clone(),
        group: file.group.clone(),
        link_count: 1,
        times: times(found.written_ns),
        binding: TransactionNumber(0),
        tree: above.tree,
        policy: above.policy.clone(),
        detail: Detail::File(found.to_content()),
        acls: Acls::default(),
        versions: above.versions.inherited(),
    }
    .inheriting(&above);
    let id = found.content.inode;
    view.set(inode_key(id), &inode);
    let entry = Dentry { inode: id, kind: Kind::File, placed: TransactionNumber(0) };
    view.set(dentry_key(directory, &name), &entry);
    Ok(adoption)
}

/// The directory for what has no place, which is made; `None` if something else has its name.
pub(crate) fn lost_and_found(
    view: &mut View<'_>,
    now_ns: u64,
    fresh: InodeId,
) -> Result<Option<(InodeId, Inode)>, EngineError> {
    let (Ok(name), Some(root)) =
        (EntryName::new(LOST_AND_FOUND), view.record::<Inode>(&inode_key(InodeId::ROOT))?)
    else {
        return Ok(None);
    };
    let entry_key = dentry_key(InodeId::ROOT, &name);
    if let Some(entry) = view.record::<Dentry>(&entry_key)? {
        let found = view.record::<Inode>(&inode_key(entry.inode))?;
        return Ok(found.filter(Inode::is_directory).map(|inode| (entry.inode, inode)));
    }
    let directory = Inode {
        mode: 0o700,
        link_count: 2,
        times: times(now_ns),
        binding: TransactionNumber(0),
        detail: Detail::Directory { parent: InodeId::ROOT },
        acls: Acls::default(),
        ..root.clone()
    };
    let root = Inode { link_count: root.link_count + 1, ..root };
    view.set(inode_key(InodeId::ROOT), &root);
    view.set(inode_key(fresh), &directory);
    let entry = Dentry { inode: fresh, kind: Kind::Directory, placed: TransactionNumber(0) };
    view.set(entry_key, &entry);
    Ok(Some((fresh, directory)))
}

fn times(at_ns: u64) -> Times {
    Times { created_ns: at_ns, modified_ns: at_ns, changed_ns: at_ns }
}

/// The number of a file keeps files of one name apart.
fn unique_name(found: &FoundContent, file: &FoundFile) -> EntryName {
    let mut name = format!("{:x}-", found.content.inode.0).into_bytes();
    name.extend_from_slice(file.name.as_bytes());
    name.truncate(NAME_BYTES_MAX);
    EntryName::new(name).unwrap_or_else(|_| file.name.clone())
}
