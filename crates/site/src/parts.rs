//! Elements that several messages share.

use byname_catalog::id::{ContentId, DiskId, InodeId, TransactionNumber, Version};
use byname_catalog::{
    Acls, Checksums, Content, Detail, DiskState, Entry, EntryName, Inode, PATH_NAMES_MAX, Place,
    Policy, PolicyChanges, Resolution, Times, Versions,
};
use byname_packet::DecodeError;
use byname_transfer::attributes;

use crate::codec::{Fields, Writer, bad_value};
use crate::numbers::{self as tag, Tag};

/// Most contents in one order to drop.
pub const CONTENTS_MAX: usize = 256;
/// Most disks in one message.
pub(crate) const DISKS_MAX: usize = 16;

pub(crate) fn write_place(writer: &mut Writer, place: &Place) {
    writer.nested(tag::PLACE, |writer| {
        writer.number(tag::INODE_ID, place.base);
        place.names.iter().for_each(|name| writer.octets(tag::ENTRY_NAME, name.as_bytes()));
    });
}

pub(crate) fn read_place(fields: &mut Fields<'_>) -> Result<Place, DecodeError> {
    let mut inner = fields.nested(tag::PLACE)?;
    let base = InodeId(inner.number(tag::INODE_ID)?);
    let mut names = Vec::new();
    while let Some(name) = inner.optional(tag::ENTRY_NAME)? {
        if names.len() >= PATH_NAMES_MAX {
            return Err(bad_value(tag::PLACE));
        }
        names.push(entry_name(name)?);
    }
    inner.end()?;
    Ok(Place { base, names })
}

pub(crate) fn entry_name(octets: &[u8]) -> Result<EntryName, DecodeError> {
    EntryName::new(octets).map_err(|_| bad_value(tag::ENTRY_NAME))
}

/// Contents to the end, as many as one order names.
/// Names of one kind, as many as there are.
pub(crate) fn read_texts(
    fields: &mut Fields<'_>,
    tag: Tag,
    count_max: usize,
) -> Result<Vec<String>, DecodeError> {
    let mut texts = Vec::new();
    while let Some(text) = fields.optional_text(tag)? {
        if texts.len() >= count_max {
            return Err(bad_value(tag));
        }
        texts.push(text);
    }
    Ok(texts)
}

pub(crate) fn read_contents(fields: &mut Fields<'_>) -> Result<Vec<ContentId>, DecodeError> {
    let mut contents = Vec::new();
    while fields.peek()?.is_some() {
        if contents.len() >= CONTENTS_MAX {
            return Err(bad_value(tag::CONTENT_ID));
        }
        contents.push(read_content_id(fields)?);
    }
    Ok(contents)
}

pub(crate) fn write_content_id(writer: &mut Writer, content: ContentId) {
    writer.nested(tag::CONTENT_ID, |writer| {
        writer.number(tag::INODE_ID, content.inode);
        writer.number(tag::VERSION_ID, content.version);
    });
}

pub(crate) fn read_content_id(fields: &mut Fields<'_>) -> Result<ContentId, DecodeError> {
    let mut inner = fields.nested(tag::CONTENT_ID)?;
    let inode = InodeId(inner.number(tag::INODE_ID)?);
    let version = Version(inner.number(tag::VERSION_ID)?);
    inner.end()?;
    Ok(ContentId { inode, version })
}

/// Checksums as metadata have them; both of these are there.
pub(crate) fn write_checksums(writer: &mut Writer, checksums: Checksums) {
    let wire = attributes::Checksums {
        adler32: Some(checksums.adler32.to_be_bytes()),
        crc32c: Some(checksums.crc32c.to_be_bytes()),
        ..attributes::Checksums::default()
    };
    wire.encode(&mut writer.0);
}

pub(crate) fn read_checksums(fields: &mut Fields<'_>) -> Result<Checksums, DecodeError> {
    let found = attributes::Checksums::decode(fields.octets(tag::CHECKSUMS)?)?;
    let missing = |element| DecodeError::Missing { element, within: tag::CHECKSUMS.name };
    Ok(Checksums {
        adler32: u32::from_be_bytes(found.adler32.ok_or(missing("Adler32"))?),
        crc32c: u32::from_be_bytes(found.crc32c.ok_or(missing("Crc32c"))?),
    })
}

pub(crate) fn write_policy(writer: &mut Writer, policy: &Policy) {
    writer.nested(tag::POLICY, |writer| {
        writer.text(tag::SPACE, &policy.space);
        writer.number(tag::REPLICA_COUNT, policy.replica_count);
        writer.number(tag::RECEIPT_COUNT, policy.receipt_count);
    });
}

pub(crate) fn read_policy(fields: &mut Fields<'_>) -> Result<Policy, DecodeError> {
    let mut inner = fields.nested(tag::POLICY)?;
    let policy = Policy {
        space: inner.text(tag::SPACE)?,
        replica_count: inner.number(tag::REPLICA_COUNT)?,
        receipt_count: inner.number(tag::RECEIPT_COUNT)?,
    };
    inner.end()?;
    Ok(policy)
}

/// Changes of a policy; no element if there are none.
pub(crate) fn write_policy_changes(writer: &mut Writer, changes: &PolicyChanges) {
    if changes.is_empty() {
        return;
    }
    writer.nested(tag::POLICY_CHANGES, |writer| {
        if let Some(space) = &changes.space {
            writer.text(tag::SPACE, space);
        }
        if let Some(count) = changes.replica_count {
            writer.number(tag::REPLICA_COUNT, count);
        }
        if let Some(count) = changes.receipt_count {
            writer.number(tag::RECEIPT_COUNT, count);
        }
    });
}

pub(crate) fn read_policy_changes(fields: &mut Fields<'_>) -> Result<PolicyChanges, DecodeError> {
    let Some(mut inner) = fields.optional_nested(tag::POLICY_CHANGES)? else {
        return Ok(PolicyChanges::default());
    };
    let changes = PolicyChanges {
        space: inner.optional_text(tag::SPACE)?,
        replica_count: inner.optional_number(tag::REPLICA_COUNT)?,
        receipt_count: inner.optional_number(tag::RECEIPT_COUNT)?,
    };
    inner.end()?;
    match changes.is_empty() {
        true => Err(bad_value(tag::POLICY_CHANGES)),
        false => Ok(changes),
    }
}

pub(crate) fn state_number(state: DiskState) -> u64 {
    match state {
        DiskState::ReadWrite => 0,
        DiskState::ReadOnly => 1,
        DiskState::Drain => 2,
        DiskState::Off => 3,
    }
}

pub(crate) fn state_of(number: u64) -> Result<DiskState, DecodeError> {
    Ok(match number {
        0 => DiskState::ReadWrite,
        1 => DiskState::ReadOnly,
        2 => DiskState::Drain,
        3 => DiskState::Off,
        _ => return Err(bad_value(tag::DISK_STATE)),
    })
}

pub(crate) fn resolution_number(resolution: Resolution) -> u64 {
    match resolution {
        Resolution::Keep => 0,
        Resolution::Wait => 1,
        Resolution::Drop => 2,
        Resolution::Unknown => 3,
    }
}

pub(crate) fn resolution_of(number: u64) -> Result<Resolution, DecodeError> {
    Ok(match number {
        0 => Resolution::Keep,
        1 => Resolution::Wait,
        2 => Resolution::Drop,
        3 => Resolution::Unknown,
        _ => return Err(bad_value(tag::RESOLUTION)),
    })
}

/// A flag that may also be absent.
pub(crate) fn optional_bool(
    fields: &mut Fields<'_>,
    tag: Tag,
) -> Result<Option<bool>, DecodeError> {
    match fields.optional_number::<u8>(tag)? {
        None => Ok(None),
        Some(0) => Ok(Some(false)),
        Some(1) => Ok(Some(true)),
        Some(_) => Err(bad_value(tag)),
    }
}

pub(crate) fn write_entry(writer: &mut Writer, entry: &Entry) {
    let inode = &entry.inode;
    writer.nested(tag::ENTRY, |writer| {
        writer.number(tag::INODE_ID, entry.id);
        writer.pair(tag::MODE, inode.mode);
        writer.text(tag::OWNER, &inode.owner);
        writer.text(tag::GROUP, &inode.group);
        writer.number(tag::LINK_COUNT, inode.link_count);
        writer.number(tag::BTIME, inode.times.created_ns);
        writer.number(tag::MTIME, inode.times.modified_ns);
        writer.number(tag::CTIME, inode.times.changed_ns);
        writer.number(tag::BINDING, inode.binding);
        writer.number(tag::TREE, inode.tree);
        write_policy(writer, &inode.policy);
        match &inode.detail {
            Detail::File(content) => write_content(writer, content),
            Detail::Directory { parent } => writer.number(tag::PARENT, *parent),
            Detail::Symlink { target } => writer.octets(tag::LINK_TARGET, target),
        }
    });
}

pub(crate) fn read_entry(value: &[u8]) -> Result<Entry, DecodeError> {
    let mut inner = Fields::new(value, tag::ENTRY.name);
    let id = InodeId(inner.number(tag::INODE_ID)?);
    let inode = Inode {
        mode: inner.pair(tag::MODE)?,
        owner: inner.text(tag::OWNER)?,
        group: inner.text(tag::GROUP)?,
        link_count: inner.number(tag::LINK_COUNT)?,
        times: Times {
            created_ns: inner.number(tag::BTIME)?,
            modified_ns: inner.number(tag::MTIME)?,
            changed_ns: inner.number(tag::CTIME)?,
        },
        binding: TransactionNumber(inner.number(tag::BINDING)?),
        tree: InodeId(inner.number(tag::TREE)?),
        policy: read_policy(&mut inner)?,
        detail: read_detail(&mut inner)?,
        acls: Acls::default(),
        versions: Versions::default(),
    };
    inner.end_of_known()?;
    Ok(Entry { id, inode })
}

fn read_detail(fields: &mut Fields<'_>) -> Result<Detail, DecodeError> {
    if let Some(inner) = fields.optional_nested(tag::FILE_CONTENT)? {
        return Ok(Detail::File(read_content(inner)?));
    }
    if let Some(parent) = fields.optional_number(tag::PARENT)? {
        return Ok(Detail::Directory { parent: InodeId(parent) });
    }
    let target = fields.octets(tag::LINK_TARGET)?;
    if target.is_empty() || target.len() > attributes::LINK_TARGET_BYTES_MAX {
        return Err(bad_value(tag::LINK_TARGET));
    }
    Ok(Detail::Symlink { target: target.to_vec() })
}

fn write_content(writer: &mut Writer, content: &Content) {
    writer.nested(tag::FILE_CONTENT, |writer| {
        writer.number(tag::VERSION_ID, content.version);
        writer.number(tag::SIZE, content.size);
        writer.octets(tag::CONTENT_ROOT, &content.root);
        write_checksums(writer, content.checksums);
        content.replicas.iter().for_each(|disk| writer.number(tag::DISK_ID, *disk));
    });
}

fn read_content(mut fields: Fields<'_>) -> Result<Content, DecodeError> {
    let version = Version(fields.number(tag::VERSION_ID)?);
    let size = fields.number(tag::SIZE)?;
    let root = fields.array(tag::CONTENT_ROOT)?;
    let checksums = read_checksums(&mut fields)?;
    let mut replicas = Vec::new();
    while let Some(disk) = fields.optional_number(tag::DISK_ID)? {
        if replicas.len() >= DISKS_MAX {
            return Err(bad_value(tag::DISK_ID));
        }
        replicas.push(DiskId(disk));
    }
    fields.end_of_known()?;
    Ok(Content { version, size, root, checksums, replicas })
}
