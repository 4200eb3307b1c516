//! Descriptions of what the catalog has: metadata, listings and manifests, each from one committed
//! state.
//!
//! Files and links are described with the name of their content, which a rename does not change.
//! Versions of directories are numbers of transactions: a listing has that of the directory's last
//! change, a manifest the latest of the directory's and its entries'. Any change of either payload
//! belongs to a later transaction than all that were announced, so they never go back, and every
//! head announces the same.

use byname_catalog::engine::EngineError;
use byname_catalog::id::{ContentId, DiskId, InodeId, TransactionNumber, Version};
use byname_catalog::{
    Content, Detail, DiskState, EntryName, Failure, Inode, Kind, ListedEntry, PAGE_ROWS_MAX, Place,
    Reader, Refusal, Resolved,
};
use byname_packet::Name;
use byname_security::tree::Tree;
use byname_site::{DiskName, SiteName};
use byname_transfer::attributes::{Attributes, Checksums};
use byname_transfer::listing::write_entry;
use byname_transfer::metadata::{ContentRoot, Extras, Metadata};
use byname_transfer::naming::{self, ContentName};
use byname_transfer::server::{
    FileStat, FileState, Fingerprint, ListFailure, Listing, VersionedListing,
};
use byname_transfer::{listing, manifest, media_type};

const REGULAR: u16 = 0o100_000;
const DIRECTORY: u16 = 0o040_000;
/// Mode of a link: a regular file that nobody executes or writes, for readers that know no links.
const LINK_MODE: u16 = 0o100_444;

/// What a path leads to.
#[derive(Debug)]
pub enum Described {
    /// A file or link.
    Object(Box<Metadata>),
    /// A directory.
    Directory(FileStat),
}

/// One committed state of a site, to be described.
pub struct Describer<'a> {
    site: &'a SiteName,
    reader: &'a Reader<'a>,
}

impl<'a> Describer<'a> {
    /// Describes what a reader sees.
    pub fn new(site: &'a SiteName, reader: &'a Reader<'a>) -> Self {
        Self { site, reader }
    }

    /// Describes what a path leads to: entries with `/` between them, as back-ends have it.
    ///
    /// # Errors
    /// [`Failure`]; `Refused` for what is not there.
    pub fn path(&self, path: &[u8]) -> Result<Described, Failure> {
        let found = self.reader.resolve(&Place::path(path)?)?;
        match found.inode.detail {
            Detail::Directory { .. } => Ok(Described::Directory(self.directory_stat(&found)?)),
            _ => {
                let mut object = self.object(&found)?;
                let name = path.rsplit(|octet| *octet == b'/').next().unwrap_or(path);
                if let (Detail::File(_), Some(extras)) = (&found.inode.detail, &mut object.extras) {
                    extras.media_type = media_type::of_name(name).map(str::to_owned);
                }
                Ok(Described::Object(Box::new(object)))
            }
        }
    }

    /// Facts about a file, link or directory, in the form in which readers know them. A directory
    /// has the name of the site in place of its own, and no listing.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn metadata(&self, found: &Resolved) -> Result<Metadata, Failure> {
        if !found.inode.is_directory() {
            return self.object(found);
        }
        Ok(Metadata {
            mode: Some(DIRECTORY | found.inode.mode),
            ctime_ns: Some(found.inode.times.changed_ns),
            mtime_ns: Some(found.inode.times.modified_ns),
            extras: Some(Box::new(extras(found))),
            ..Metadata::new(self.site.view().to_name())
        })
    }

    /// The names in a directory.
    ///
    /// # Errors
    /// [`ListFailure`], `TooLarge` if the payload would exceed `bytes_max`.
    pub fn listing(&self, path: &[u8], bytes_max: usize) -> Result<Listing, ListFailure> {
        let directory = self.directory(path)?;
        let mut payload = Vec::new();
        self.each_entry(directory.id, &mut |entry| {
            let is_directory = entry.inode.is_directory();
            let entry = listing::Entry { name: entry.name.as_bytes(), is_directory };
            write_entry(&mut payload, entry);
            if payload.len() > bytes_max { Err(ListFailure::TooLarge) } else { Ok(()) }
        })?;
        self.snapshot(&directory, directory.binding(), payload)
    }

    /// The entries of a directory with what is known of them.
    ///
    /// # Errors
    /// [`ListFailure`], `TooLarge` if the payload would exceed `bytes_max`.
    pub fn manifest(&self, path: &[u8], bytes_max: usize) -> Result<Listing, ListFailure> {
        let directory = self.directory(path)?;
        let mut latest = directory.binding();
        let (mut count, mut entries) = (0, Vec::new());
        self.each_entry(directory.id, &mut |entry| {
            let placed = directory.placed.max(entry.placed);
            let ListedEntry { name, id, inode, .. } = entry;
            let found = Resolved { id, inode, placed };
            latest = latest.max(found.binding());
            count += 1;
            self.write_manifest_entry(&name, &found, &mut entries);
            if entries.len() > bytes_max { Err(ListFailure::TooLarge) } else { Ok(()) }
        })?;
        let mut payload = Vec::with_capacity(entries.len() + 16);
        manifest::write_header(&mut payload, count);
        payload.append(&mut entries);
        self.snapshot(&directory, latest, payload)
    }

    /// Octets of content that lie in the catalog itself: those of a link, or none.
    ///
    /// # Errors
    /// [`Failure`]; `Refused` for content that lies on disks, or nowhere.
    pub fn own_content(&self, content: ContentId) -> Result<Vec<u8>, Failure> {
        let place = Place::inode(content.inode);
        match self.reader.entry(&place).map(|entry| entry.inode.detail) {
            Ok(Detail::Symlink { target }) if content == link_content(content.inode) => Ok(target),
            _ if self.reader.content(content)?.size == 0 => Ok(Vec::new()),
            _ => Err(Refusal::NoContent.into()),
        }
    }

    /// Octets in every segment of content but the last.
    pub fn segment_bytes(&self, content: ContentId) -> u64 {
        self.site.segment_size(content) as u64
    }

    fn object(&self, found: &Resolved) -> Result<Metadata, Failure> {
        match &found.inode.detail {
            Detail::File(content) => self.file(found, content),
            Detail::Symlink { target } => Ok(self.link(found, target)),
            Detail::Directory { .. } => Err(Refusal::IsDirectory.into()),
        }
    }

    fn file(&self, found: &Resolved, content: &Content) -> Result<Metadata, Failure> {
        let id = ContentId { inode: found.id, version: content.version };
        let extras = Extras {
            checksums: checksums(content),
            forwarding_hint: self.replicas(&content.replicas)?,
            ..extras(found)
        };
        Ok(Metadata {
            mode: Some(REGULAR | found.inode.mode),
            root: ContentRoot::Known(content.root),
            extras: Some(Box::new(extras)),
            ..self.content_metadata(id, &found.inode)
        })
    }

    fn link(&self, found: &Resolved, target: &[u8]) -> Metadata {
        let extras = Extras { link_target: Some(target.to_vec()), ..extras(found) };
        Metadata {
            mode: Some(LINK_MODE),
            root: ContentRoot::Known(*Tree::of(target).root.as_bytes()),
            extras: Some(Box::new(extras)),
            ..self.content_metadata(link_content(found.id), &found.inode)
        }
    }

    /// What follows from size and times alone.
    fn content_metadata(&self, id: ContentId, inode: &Inode) -> Metadata {
        let (size, segment_bytes) = (inode.size(), self.segment_bytes(id));
        Metadata {
            last_segment: Some(naming::last_segment(size, segment_bytes)),
            segment_size: Some(segment_bytes),
            size: Some(size),
            ctime_ns: Some(inode.times.changed_ns),
            mtime_ns: Some(inode.times.modified_ns),
            ..Metadata::new(self.site.content(id))
        }
    }

    /// Names of the disks that have content. Those that do not answer, or are not to be asked, are
    /// left out while there are others.
    /// Names of disks that content is on: of those that answer, if any does.
    pub(crate) fn replicas(&self, replicas: &[DiskId]) -> Result<Vec<Name>, Failure> {
        let (mut asked, mut others) = (Vec::new(), Vec::new());
        for id in replicas {
            let disk = self.reader.disk(*id)?;
            let is_asked = disk.is_up && disk.state != DiskState::Off;
            let name = self.site.disk(&DiskName { place: disk.label, id: *id });
            if is_asked { &mut asked } else { &mut others }.push(name);
        }
        Ok(if asked.is_empty() { others } else { asked })
    }

    fn directory(&self, path: &[u8]) -> Result<Resolved, ListFailure> {
        let place = Place::path(path).map_err(|_| ListFailure::NotFound)?;
        let found = self.reader.resolve(&place).map_err(list_failure)?;
        if found.inode.is_directory() { Ok(found) } else { Err(ListFailure::NotFound) }
    }

    /// State and attributes of a directory. Any transaction of the site makes it another state: so
    /// a snapshot is read again when an entry's attributes changed, which the directory's do not
    /// show.
    fn directory_stat(&self, found: &Resolved) -> Result<FileStat, Failure> {
        let last: TransactionNumber = self.reader.last_transaction()?;
        let mut object = [0; 16];
        object[..8].copy_from_slice(&found.id.0.to_be_bytes());
        let mut state = [0; 24];
        state[..8].copy_from_slice(&last.0.to_be_bytes());
        let fingerprint = Fingerprint::new(object, state);
        Ok(FileStat {
            state: FileState { fingerprint, size: 0 },
            mode: DIRECTORY | found.inode.mode,
            mtime_ns: found.inode.times.modified_ns,
            ctime_ns: Some(found.inode.times.changed_ns),
        })
    }

    fn each_entry(
        &self,
        directory: InodeId,
        take: &mut dyn FnMut(ListedEntry) -> Result<(), ListFailure>,
    ) -> Result<(), ListFailure> {
        let place = Place::inode(directory);
        let mut after: Option<EntryName> = None;
        loop {
            let page = self.reader.list(&place, after.as_ref(), PAGE_ROWS_MAX);
            let page = page.map_err(list_failure)?;
            let is_last = page.len() < PAGE_ROWS_MAX;
            after = page.last().map(|entry| entry.name.clone());
            page.into_iter().try_for_each(&mut *take)?;
            if is_last {
                return Ok(());
            }
        }
    }

    fn snapshot(
        &self,
        directory: &Resolved,
        version: TransactionNumber,
        payload: Vec<u8>,
    ) -> Result<Listing, ListFailure> {
        let stat = self.directory_stat(directory).map_err(list_failure)?;
        let tree = Tree::of(&payload);
        let versioned = VersionedListing { version: announced(version), extras: extras(directory) };
        Ok(Listing {
            stat,
            changes: None,
            payload,
            root: *tree.root.as_bytes(),
            levels: tree.levels,
            versioned: Some(Box::new(versioned)),
        })
    }

    fn write_manifest_entry(&self, name: &EntryName, found: &Resolved, out: &mut Vec<u8>) {
        let inode = &found.inode;
        let attributes = Attributes {
            owner: Some(&inode.owner),
            group: Some(&inode.group),
            binding: Some(announced(found.binding())),
            ..Attributes::default()
        };
        let mode = match inode.kind() {
            Kind::Directory => DIRECTORY | inode.mode,
            Kind::File => REGULAR | inode.mode,
            Kind::Symlink => LINK_MODE,
        };
        let entry = manifest::Entry {
            mtime_ns: Some(inode.times.modified_ns),
            attributes,
            ..manifest::Entry::new(name.as_bytes(), mode)
        };
        match &inode.detail {
            Detail::Directory { .. } => entry.encode(out),
            Detail::Symlink { target } => {
                let attributes = Attributes { link_target: Some(target), ..attributes };
                manifest::Entry { attributes, ..entry }.encode(out);
            }
            Detail::File(content) => {
                let id = ContentId { inode: found.id, version: content.version };
                let version = manifest::Version {
                    number: content.version.0,
                    segment_bytes: self.segment_bytes(id),
                    root: Some(content.root),
                };
                let (checksums, media_type) =
                    (checksums(content), media_type::of_name(name.as_bytes()));
                let attributes = Attributes { checksums, media_type, ..attributes };
                let name = ContentName { prefix: self.site.view(), id: found.id.0 };
                let content = manifest::Content { name, version };
                let size = Some(inode.size());
                let file = manifest::Entry { size, content: Some(content), attributes, ..entry };
                file.encode(out);
            }
        }
    }
}

/// Name of a link's target as content. A link is never rewritten, so its own number, which nothing
/// else has, does for a version.
fn link_content(id: InodeId) -> ContentId {
    ContentId { inode: id, version: Version(id.0) }
}

fn extras(found: &Resolved) -> Extras {
    Extras {
        owner: Some(found.inode.owner.clone()),
        group: Some(found.inode.group.clone()),
        binding: Some(announced(found.binding())),
        ..Extras::default()
    }
}

/// A transaction's number as Binding or version: above 0, also of a site in which nothing has
/// happened yet.
fn announced(number: TransactionNumber) -> u64 {
    number.0.max(1)
}

fn checksums(content: &Content) -> Checksums {
    Checksums {
        adler32: Some(content.checksums.adler32.to_be_bytes()),
        crc32c: Some(content.checksums.crc32c.to_be_bytes()),
        ..Checksums::default()
    }
}

fn list_failure(failure: Failure) -> ListFailure {
    match failure {
        Failure::Refused(Refusal::AccessDenied) => ListFailure::NoPermission,
        Failure::Refused(_) => ListFailure::NotFound,
        Failure::Engine(EngineError::Conflict | EngineError::Failed(_)) => ListFailure::Unavailable,
        Failure::Engine(error) => {
            tracing::warn!(%error, "cannot list");
            ListFailure::Failed
        }
    }
}
