//! Attributes of one version of a name: what metadata and manifests say, as `stat` wants it.

use std::sync::Arc;

use byname_client::{FileKind, ListedEntry, Listing, Stat, TrustLevel};
use byname_security::key::KeyId;
use byname_security::trust::Trusted;
use byname_transfer::attributes::{Checksums, ObjectKind};

/// Permission bits, with set-user-id, set-group-id and sticky.
const PERMISSIONS: u16 = 0o7777;

/// Kind of what a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    File,
    Directory,
    Link,
}

/// Signer of a description, and why it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Publisher {
    pub(crate) key: Option<KeyId>,
    pub(crate) trust: TrustLevel,
}

/// Attributes of one version. All that comes from the same manifest shares its publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) kind: Kind,
    /// Permission bits as published, or what everybody may do where nothing is published.
    pub(crate) permissions: u16,
    pub(crate) size: u64,
    pub(crate) mtime_ns: u64,
    pub(crate) version: Option<u64>,
    pub(crate) root: Option<[u8; 32]>,
    pub(crate) owner: Option<Box<str>>,
    pub(crate) group: Option<Box<str>>,
    pub(crate) link_target: Option<Box<[u8]>>,
    pub(crate) checksums: Checksums,
    pub(crate) media_type: Option<Box<str>>,
    pub(crate) publisher: Arc<Publisher>,
}

impl Attributes {
    /// The attributes that a description of the name itself gives.
    pub(crate) fn of_stat(stat: &Stat) -> Self {
        let kind = match stat.kind {
            FileKind::Directory => Kind::Directory,
            FileKind::Symlink => Kind::Link,
            _ => Kind::File,
        };
        let publisher = Publisher { key: stat.publisher_key, trust: stat.trust };
        let link_target = stat.link_target.as_deref().map(Box::from);
        Attributes {
            kind,
            permissions: permissions(kind, stat.mode.unwrap_or(0)),
            size: size(kind, stat.size, link_target.as_deref()),
            mtime_ns: stat.mtime_ns.unwrap_or(0),
            version: Some(stat.version),
            root: stat.root.map(|root| root.0),
            owner: stat.owner.as_deref().map(Box::from),
            group: stat.group.as_deref().map(Box::from),
            link_target,
            checksums: stat.checksums,
            media_type: stat.media_type.as_deref().map(Box::from),
            publisher: Arc::new(publisher),
        }
    }

    /// The attributes that a manifest gives of an entry. `None` if it does not say enough: of a
    /// file its version and size.
    pub(crate) fn of_entry(listed: &ListedEntry<'_>, publisher: &Arc<Publisher>) -> Option<Self> {
        let entry = listed.details?;
        let kind = match entry.kind() {
            ObjectKind::File => Kind::File,
            ObjectKind::Directory => Kind::Directory,
            ObjectKind::Link => Kind::Link,
        };
        let version = entry.version.or(entry.content.map(|content| content.version));
        let is_described = match kind {
            Kind::File => version.is_some() && entry.size.is_some(),
            Kind::Directory => entry.mtime_ns.is_some(),
            Kind::Link => true,
        };
        if !is_described {
            return None;
        }
        let link_target = entry.attributes.link_target;
        Some(Attributes {
            kind,
            permissions: permissions(kind, entry.mode),
            size: size(kind, entry.size, link_target),
            mtime_ns: entry.mtime_ns.unwrap_or(0),
            version: version.map(|version| version.number),
            root: version.and_then(|version| version.root),
            owner: entry.attributes.owner.map(Box::from),
            group: entry.attributes.group.map(Box::from),
            link_target: link_target.map(Box::from),
            checksums: entry.attributes.checksums,
            media_type: entry.attributes.media_type.map(Box::from),
            publisher: Arc::clone(publisher),
        })
    }
}

impl Attributes {
    /// Stands in for what a directory does not say of an entry. Nobody is shown it: the kernel gets
    /// no time for which it counts.
    pub(crate) fn undescribed(kind: Kind) -> Self {
        Attributes {
            kind,
            permissions: permissions(kind, 0),
            size: size(kind, None, None),
            mtime_ns: 0,
            version: None,
            root: None,
            owner: None,
            group: None,
            link_target: None,
            checksums: Checksums::default(),
            media_type: None,
            publisher: Arc::new(Publisher { key: None, trust: TrustLevel::Insecure }),
        }
    }

    /// True if a file has no version, so that nothing is known of it.
    pub(crate) fn is_undescribed(&self) -> bool {
        self.kind == Kind::File && self.version.is_none()
    }

    /// Number that, beside the name, makes the identity of an inode: the version of a file, a
    /// digest of the target of a link, nothing of a directory.
    pub(crate) fn identity(&self) -> Option<u64> {
        match (self.kind, &self.link_target) {
            (Kind::Directory, _) => None,
            (Kind::Link, Some(target)) => {
                let hash = blake3::hash(target);
                let (first, _) = hash.as_bytes().split_first_chunk()?;
                Some(u64::from_be_bytes(*first))
            }
            (Kind::File | Kind::Link, _) => self.version,
        }
    }
}

/// The publisher of all entries of a manifest.
pub(crate) fn publisher_of(listing: &Listing) -> Arc<Publisher> {
    let (key, trust) = match &listing.discovered.trust {
        Trusted::Anchored { key, .. } => (Some(*key), TrustLevel::Anchored),
        Trusted::FirstUse { key, .. } => (Some(*key), TrustLevel::FirstUse),
        Trusted::Insecure => (None, TrustLevel::Insecure),
    };
    Arc::new(Publisher { key, trust })
}

fn permissions(kind: Kind, mode: u16) -> u16 {
    let published = mode & PERMISSIONS;
    match kind {
        Kind::Link => 0o777,
        Kind::File if published == 0 => 0o444,
        Kind::Directory if published == 0 => 0o555,
        Kind::File | Kind::Directory => published,
    }
}

/// A directory's own size says nothing to a reader; it has the one that most file systems give.
fn size(kind: Kind, published: Option<u64>, link_target: Option<&[u8]>) -> u64 {
    match kind {
        Kind::File => published.unwrap_or(0),
        Kind::Directory => 4096,
        Kind::Link => link_target.map_or(0, |target| target.len() as u64),
    }
}
