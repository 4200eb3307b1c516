//! Names below a site's prefix P.
//!
//! | name | of |
//! |---|---|
//! | `P/32=catalog/<op>/<digest>` | a command |
//! | `P/32=file/seq=<id>/v=V` | content; `32=claim` below it is the writer's word |
//! | `P/32=disk/<place>/seq=<disk>` | a disk; orders and `32=receipt/…` are below it |
//! | `P/32=join/<text>` | nobody: the namespace of a key whose holder asks to become a disk |
//! | `P/32=session/seq=<id>/<key id>` | the keys of a session, in KeyLocators |
//! | `P/32=user/<u>` | a user; `32=at/seq=<n>` below it is one of his writers |
//! | `P/32=door/<d>` | a door, which acts for users; its writers are below it likewise |
//!
//! The keys of users, doors, disks and writers have these names as their namespaces, so the name of
//! a signer's certificate says who signed ([`SiteName::identity`]).

use byname_catalog::id::{ContentId, DiskId, InodeId, SessionId, Version};
use byname_packet::{Component, Name, NameRef, NumberComponent, types};
use byname_security::tree::Hash;
use byname_transfer::naming::{self, ContentName};

const CATALOG: &[u8] = b"catalog";
const DISK: &[u8] = b"disk";
const JOIN: &[u8] = b"join";
const SESSION: &[u8] = b"session";
const USER: &[u8] = b"user";
const DOOR: &[u8] = b"door";
const WRITER: &[u8] = b"at";
const CLAIM: &[u8] = b"claim";
const RECEIPT: &[u8] = b"receipt";
const INSERT: &[u8] = b"insert";
const DROP: &[u8] = b"drop";
const LIST: &[u8] = b"list";
const PROVE: &[u8] = b"prove";
const KEEP: &[u8] = b"keep";
const RECALL: &[u8] = b"recall";

/// Longest prefix of a site, in octets of its TLV-VALUE: every name below it must leave room for
/// whole segments.
const SITE_BYTES_MAX: usize = 256;
/// Room kept in each packet of a content for a signature.
const SIGNATURE_RESERVE_BYTES: usize = 256;
/// Longest name of a user or place, in octets.
const LABEL_BYTES_MAX: usize = byname_catalog::LABEL_BYTES_MAX;

/// Digits of the digest in the namespace of one who asks to become a disk.
const APPLICANT_DIGITS: usize = 16;

/// Name of a site: one or more generic components.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteName(Name);

/// A disk, as names have it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskName {
    /// The place it is in: the label that the catalog has for it.
    pub place: String,
    /// Its number.
    pub id: DiskId,
}

/// Owner of a key, as the key's namespace says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Identity {
    /// The site: its heads.
    Site,
    /// A user.
    User(String),
    /// A door.
    Door(String),
    /// A disk.
    Disk(DiskName),
    /// Whoever may write this content.
    Writer(ContentId),
}

impl SiteName {
    /// Takes a name; `None` if it is empty, longer than 256 octets, or has other than generic
    /// components.
    pub fn new(name: Name) -> Option<Self> {
        let view = name.view();
        let is_plain = view.components().all(|component| component.typ == types::GENERIC);
        let is_short = (1..=SITE_BYTES_MAX).contains(&view.value().len());
        (is_plain && is_short).then_some(Self(name))
    }

    /// P.
    pub fn view(&self) -> NameRef<'_> {
        self.0.view()
    }

    /// P as catalog and receipts have it: its TLV-VALUE.
    pub fn octets(&self) -> &[u8] {
        self.view().value()
    }

    /// Commands of a kind; the Interest appends the digest of its parameters.
    pub fn command(&self, operation: &str) -> Name {
        self.0.with_keyword(CATALOG).with_generic(operation.as_bytes())
    }

    /// The operation of a command's name, digest included.
    pub(crate) fn operation<'a>(&self, name: NameRef<'a>) -> Option<&'a [u8]> {
        match self.below(name)?.as_slice() {
            [keyword, operation, _digest]
                if keyword.is_keyword(CATALOG) && operation.typ == types::GENERIC =>
            {
                Some(operation.value)
            }
            _ => None,
        }
    }

    /// Keys of a session.
    pub fn session_keys(&self, session: SessionId, key_id: &[u8; 8]) -> Name {
        let name = self.0.with_keyword(SESSION).with(sequence(session.0).as_component());
        name.with_generic(key_id)
    }

    /// The session that a KeyLocator names keys of.
    pub fn parse_session_keys(&self, name: NameRef<'_>) -> Option<SessionId> {
        match self.below(name)?.as_slice() {
            [keyword, number, key_id]
                if keyword.is_keyword(SESSION)
                    && key_id.typ == types::GENERIC
                    && key_id.value.len() == 8 =>
            {
                number.sequence().map(SessionId)
            }
            _ => None,
        }
    }

    /// A disk.
    pub fn disk(&self, disk: &DiskName) -> Name {
        let name = self.0.with_keyword(DISK).with_generic(disk.place.as_bytes());
        name.with(sequence(disk.id.0).as_component())
    }

    /// Where a disk takes orders to pull content.
    pub fn insert(&self, disk: &DiskName) -> Name {
        self.disk(disk).with_generic(INSERT)
    }

    /// Where a disk takes orders to drop content.
    pub fn drop(&self, disk: &DiskName) -> Name {
        self.disk(disk).with_generic(DROP)
    }

    /// Where a disk takes orders to list what it has.
    pub fn list(&self, disk: &DiskName) -> Name {
        self.disk(disk).with_generic(LIST)
    }

    /// Where a disk takes orders to prove that it has a content.
    pub fn prove(&self, disk: &DiskName) -> Name {
        self.disk(disk).with_generic(PROVE)
    }

    /// Where a disk takes orders to keep rows of the catalog.
    pub fn keep(&self, disk: &DiskName) -> Name {
        self.disk(disk).with_generic(KEEP)
    }

    /// Where a disk takes orders to give back what a catalog is made again from.
    pub fn recall(&self, disk: &DiskName) -> Name {
        self.disk(disk).with_generic(RECALL)
    }

    /// Whoever asks that a directory becomes a disk: a namespace of nobody in the site.
    pub fn applicant(&self, directory: &[u8]) -> Name {
        let digest = Hash::of(directory).to_string();
        self.0.with_keyword(JOIN).with_generic(&digest.as_bytes()[..APPLICANT_DIGITS])
    }

    /// True for a namespace of this kind.
    pub fn is_applicant(&self, namespace: NameRef<'_>) -> bool {
        let below = self.below(namespace).unwrap_or_default();
        matches!(below.as_slice(), [keyword, _] if keyword.is_keyword(JOIN))
    }

    /// A user: the namespace of his keys.
    pub fn user(&self, user: &str) -> Name {
        self.0.with_keyword(USER).with_generic(user.as_bytes())
    }

    /// A door: the namespace of its keys.
    pub fn door(&self, door: &str) -> Name {
        self.0.with_keyword(DOOR).with_generic(door.as_bytes())
    }

    /// A writer of a user's or a door's: the prefix it registers, and the hint that leads to it.
    pub fn writer(&self, of: &Name, number: u64) -> Name {
        of.with_keyword(WRITER).with(sequence(number).as_component())
    }

    /// Content: the versioned name that its segments are below, and the namespace of its writer.
    pub fn content(&self, content: ContentId) -> Name {
        let name = ContentName { prefix: self.view(), id: content.inode.0 }.to_name();
        name.with_version(content.version.0)
    }

    /// Octets in every segment of content but the last.
    pub fn segment_size(&self, content: ContentId) -> usize {
        let octets = self.content(content).view().value().len();
        let size = naming::segment_size_for(octets + SIGNATURE_RESERVE_BYTES);
        size.expect("the name of a site leaves room for a segment")
    }

    /// What the writer says of content.
    pub fn claim(&self, content: ContentId) -> Name {
        self.content(content).with_keyword(CLAIM)
    }

    /// What a disk says of content.
    pub fn receipt(&self, disk: &DiskName, content: ContentId) -> Name {
        let name = self.disk(disk).with_keyword(RECEIPT);
        name.with(sequence(content.inode.0).as_component()).with_version(content.version.0)
    }

    /// The content that a name is the versioned name of.
    pub fn parse_content(&self, name: NameRef<'_>) -> Option<ContentId> {
        let version = Version(name.last()?.version()?);
        let ContentName { prefix, id } = ContentName::parse(name.without_last(1))?;
        (prefix == self.view()).then_some(ContentId { inode: InodeId(id), version })
    }

    pub(crate) fn parse_claim(&self, name: NameRef<'_>) -> Option<ContentId> {
        name.last().filter(|last| last.is_keyword(CLAIM))?;
        self.parse_content(name.without_last(1))
    }

    /// The disk that a name is the name of.
    pub fn parse_disk(&self, name: NameRef<'_>) -> Option<DiskName> {
        match self.below(name)?.as_slice() {
            [keyword, place, id] if keyword.is_keyword(DISK) => {
                Some(DiskName { place: label(*place)?, id: DiskId(id.sequence()?) })
            }
            _ => None,
        }
    }

    pub(crate) fn parse_receipt(&self, name: NameRef<'_>) -> Option<(DiskName, ContentId)> {
        let disk = self.parse_disk(name.without_last(3))?;
        let at = name.count().checked_sub(3)?;
        name.get(at).filter(|keyword| keyword.is_keyword(RECEIPT))?;
        let inode = InodeId(name.get(at + 1)?.sequence()?);
        Some((disk, ContentId { inode, version: Version(name.last()?.version()?) }))
    }

    /// The disk that an order to pull is for; the name has its digest.
    pub fn parse_insert(&self, name: NameRef<'_>) -> Option<DiskName> {
        self.parse_order(name, INSERT)
    }

    /// The disk that an order to drop is for; the name has its digest.
    pub fn parse_drop(&self, name: NameRef<'_>) -> Option<DiskName> {
        self.parse_order(name, DROP)
    }

    /// The disk that an order to list is for; the name has its digest.
    pub fn parse_list(&self, name: NameRef<'_>) -> Option<DiskName> {
        self.parse_order(name, LIST)
    }

    /// The disk that an order to prove something is for; the name has its digest.
    pub fn parse_prove(&self, name: NameRef<'_>) -> Option<DiskName> {
        self.parse_order(name, PROVE)
    }

    /// The disk that an order to keep rows is for; the name has its digest.
    pub fn parse_keep(&self, name: NameRef<'_>) -> Option<DiskName> {
        self.parse_order(name, KEEP)
    }

    /// The disk that an order to give something back is for; the name has its digest.
    pub fn parse_recall(&self, name: NameRef<'_>) -> Option<DiskName> {
        self.parse_order(name, RECALL)
    }

    fn parse_order(&self, name: NameRef<'_>, word: &[u8]) -> Option<DiskName> {
        name.last().filter(|last| last.typ == types::PARAMETERS_SHA256_DIGEST)?;
        let order = name.without_last(1);
        order.last().filter(|last| *last == Component::generic(word))?;
        self.parse_disk(order.without_last(1))
    }

    /// Owner of a key by its namespace; `None` if that is none of this site's.
    pub fn identity(&self, namespace: NameRef<'_>) -> Option<Identity> {
        if namespace == self.view() {
            return Some(Identity::Site);
        }
        if let Some(content) = self.parse_content(namespace) {
            return Some(Identity::Writer(content));
        }
        if let Some(disk) = self.parse_disk(namespace) {
            return Some(Identity::Disk(disk));
        }
        match self.below(namespace)?.as_slice() {
            [keyword, user] if keyword.is_keyword(USER) => Some(Identity::User(label(*user)?)),
            [keyword, door] if keyword.is_keyword(DOOR) => Some(Identity::Door(label(*door)?)),
            _ => None,
        }
    }

    /// Components below P; `None` if there is something else before.
    fn below<'a>(&self, name: NameRef<'a>) -> Option<Vec<Component<'a>>> {
        /// Names told apart here have fewer.
        const COMPONENTS_MAX: usize = 8;
        if !self.view().is_prefix_of(name) {
            return None;
        }
        Some(name.suffix(self.view().count()).components().take(COMPONENTS_MAX).collect())
    }
}

/// A name of a user or place: UTF-8 without spaces, control characters and slashes.
fn label(component: Component<'_>) -> Option<String> {
    let text = std::str::from_utf8(component.value).ok()?;
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace() && c != '/';
    let is_label = component.typ == types::GENERIC
        && (1..=LABEL_BYTES_MAX).contains(&text.len())
        && text.chars().all(is_plain);
    is_label.then(|| text.to_owned())
}

fn sequence(number: u64) -> NumberComponent {
    NumberComponent::new(types::SEQUENCE_NUM, number)
}
