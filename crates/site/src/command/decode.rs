//! Commands out of their elements.

use byname_catalog::id::{DiskId, InodeId};
use byname_catalog::{
    Acl, AddDisk, AddKey, AttributeChanges, Command, Commit, Create, DiskChanges, GRANT_NAMES_MAX,
    Grant, KeyHolder, LendKey, Limits, Publish, Rename, RestoreTrash, SetAcl, SetDoor, SetXattr,
    Subject, TimeChange, TrashPolicy,
};
use byname_packet::DecodeError;

use crate::codec::{Fields, bad_value};
use crate::numbers::{self as tag, Tag};
use crate::parts::{
    optional_bool, read_checksums, read_content_id, read_contents, read_place, read_policy,
    read_policy_changes, read_texts, state_of,
};

/// Most groups of one user.
const GROUPS_MAX: usize = 64;
/// Longest name and value of an extended attribute, in octets.
const XATTR_NAME_BYTES_MAX: usize = 255;
const XATTR_VALUE_BYTES_MAX: usize = 4096;
/// Longest target of a symbolic link, in octets.
const TARGET_BYTES_MAX: usize = 4095;
/// Longest name of a key, in octets.
const KEY_NAME_BYTES_MAX: usize = 1024;

pub(super) fn read(operation: &[u8], fields: &mut Fields<'_>) -> Result<Command, DecodeError> {
    Ok(match operation {
        b"mkdir" => {
            Command::MakeDirectory { place: read_place(fields)?, mode: fields.pair(tag::MODE)? }
        }
        b"rmdir" => Command::RemoveDirectory { place: read_place(fields)? },
        b"unlink" => Command::Unlink { place: read_place(fields)? },
        b"remove-all" => Command::RemoveAll { place: read_place(fields)? },
        b"restore-trash" => Command::RestoreTrash(RestoreTrash {
            item: InodeId(fields.number(tag::INODE_ID)?),
            to: fields.peek()?.map(|_| read_place(fields)).transpose()?,
        }),
        b"purge-trash" => Command::PurgeTrash { item: InodeId(fields.number(tag::INODE_ID)?) },
        b"rename" => Command::Rename(Rename {
            from: read_place(fields)?,
            to: read_place(fields)?,
            no_replace: fields.flag(tag::NO_REPLACE)?,
        }),
        b"link" => Command::Link { existing: read_place(fields)?, place: read_place(fields)? },
        b"symlink" => Command::MakeSymlink {
            place: read_place(fields)?,
            target: bounded(fields, tag::LINK_TARGET, TARGET_BYTES_MAX)?,
        },
        b"setattr" => {
            Command::SetAttributes { place: read_place(fields)?, changes: read_changes(fields)? }
        }
        b"setxattr" => Command::SetXattr(SetXattr {
            place: read_place(fields)?,
            name: bounded(fields, tag::XATTR_NAME, XATTR_NAME_BYTES_MAX)?,
            value: bounded(fields, tag::XATTR_VALUE, XATTR_VALUE_BYTES_MAX)?,
            must_exist: optional_bool(fields, tag::MUST_EXIST)?,
        }),
        b"removexattr" => Command::RemoveXattr {
            place: read_place(fields)?,
            name: bounded(fields, tag::XATTR_NAME, XATTR_NAME_BYTES_MAX)?,
        },
        b"set-acl" => Command::SetAcl(SetAcl {
            place: read_place(fields)?,
            is_default: fields.flag(tag::DEFAULT_ACL)?,
            acl: fields.optional_text(tag::ACL)?.map(|acl| read_acl(&acl)).transpose()?,
        }),
        b"create" => Command::Create(read_create(fields)?),
        b"extend" => Command::Extend { content: read_content_id(fields)? },
        b"commit" => Command::Commit(read_commit(fields)?),
        b"abort" => Command::Abort { content: read_content_id(fields)? },
        b"replace-disk" => Command::ReplaceDisk {
            content: read_content_id(fields)?,
            disk: DiskId(fields.number(tag::DISK_ID)?),
        },
        b"resolve" => Command::Resolve {
            generation: fields.number(tag::GENERATION)?,
            content: read_content_id(fields)?,
        },
        b"hold" => Command::Hold { content: read_content_id(fields)? },
        b"release" => Command::Release { content: read_content_id(fields)? },
        b"lease" => Command::Lease { place: read_place(fields)? },
        b"end-lease" => Command::EndLease { place: read_place(fields)? },
        b"open-session" => Command::OpenSession,
        b"renew-session" => Command::RenewSession,
        b"end-session" => Command::EndSession,
        _ => return read_administration(operation, fields),
    })
}

fn read_administration(operation: &[u8], fields: &mut Fields<'_>) -> Result<Command, DecodeError> {
    Ok(match operation {
        b"expire" => Command::Expire { limit: fields.number(tag::LIMIT)? },
        b"collect" => Command::Collect { limit: fields.number(tag::LIMIT)? },
        b"dropped" => Command::Dropped {
            disk: DiskId(fields.number(tag::DISK_ID)?),
            contents: read_contents(fields)?,
        },
        b"drop-replica" => Command::DropReplica {
            content: read_content_id(fields)?,
            disk: DiskId(fields.number(tag::DISK_ID)?),
        },
        b"set-user" => Command::SetUser {
            user: fields.text(tag::USER)?,
            groups: read_texts(fields, tag::GROUP, GROUPS_MAX)?,
            is_operator: fields.flag(tag::OPERATOR)?,
        },
        b"set-door" => Command::SetDoor(read_door(fields)?),
        b"remove-door" => Command::RemoveDoor { door: fields.text(tag::DOOR)? },
        b"add-disk" => Command::AddDisk(AddDisk {
            space: fields.text(tag::SPACE)?,
            server: fields.text(tag::SERVER)?,
            label: fields.text(tag::LABEL)?,
            capacity_bytes: fields.number(tag::CAPACITY)?,
        }),
        b"set-disk" => Command::SetDisk {
            disk: DiskId(fields.number(tag::DISK_ID)?),
            changes: read_disk_changes(fields)?,
        },
        b"remove-disk" => Command::RemoveDisk { disk: DiskId(fields.number(tag::DISK_ID)?) },
        b"set-policy" => {
            Command::SetPolicy { place: read_place(fields)?, policy: read_policy(fields)? }
        }
        b"set-versions" => Command::SetVersions {
            place: read_place(fields)?,
            wanted: fields.number(tag::VERSION_COUNT)?,
        },
        b"set-trash" => {
            Command::SetTrash { place: read_place(fields)?, policy: read_trash(fields)? }
        }
        b"set-pattern" => Command::SetPattern {
            pattern: fields.text(tag::PATTERN)?,
            changes: Some(read_policy_changes(fields)?).filter(|changes| !changes.is_empty()),
        },
        b"set-limits" => {
            Command::SetLimits { subject: read_subject(fields)?, limits: read_limits(fields)? }
        }
        b"make-tree" => Command::MakeTree { place: read_place(fields)? },
        b"trim-log" => Command::TrimLog {
            below: fields.number(tag::LOG_NUMBER)?,
            limit: fields.number(tag::LIMIT)?,
        },
        b"raise-epoch" => Command::RaiseEpoch { epoch: fields.number(tag::CATALOG_EPOCH)? },
        _ => return read_of_key(operation, fields),
    })
}

fn read_of_key(operation: &[u8], fields: &mut Fields<'_>) -> Result<Command, DecodeError> {
    Ok(match operation {
        b"add-key" => Command::AddKey(AddKey {
            holder: read_holder(fields)?,
            name: bounded(fields, tag::KEY_NAME, KEY_NAME_BYTES_MAX)?,
            certificate: fields.wire(tag::DATA)?.to_vec(),
        }),
        b"remove-key" => {
            Command::RemoveKey { name: bounded(fields, tag::KEY_NAME, KEY_NAME_BYTES_MAX)? }
        }
        b"lend-key" => Command::LendKey(LendKey {
            lender: Vec::new(),
            name: bounded(fields, tag::KEY_NAME, KEY_NAME_BYTES_MAX)?,
            expires_ns: fields.number(tag::EXPIRES)?,
            certificate: fields.wire(tag::DATA)?.to_vec(),
        }),
        b"recall-key" => {
            Command::RecallKey { name: bounded(fields, tag::KEY_NAME, KEY_NAME_BYTES_MAX)? }
        }
        _ => return Err(bad_value(tag::COMMAND)),
    })
}

fn read_trash(fields: &mut Fields<'_>) -> Result<TrashPolicy, DecodeError> {
    let (keep_ns, bytes_max) = (fields.number(tag::TRASH_TIME)?, fields.number(tag::BYTES_MAX)?);
    Ok(TrashPolicy { is_on: !fields.flag(tag::TRASH_OFF)?, keep_ns, bytes_max })
}

fn bounded(fields: &mut Fields<'_>, tag: Tag, bytes_max: usize) -> Result<Vec<u8>, DecodeError> {
    let value = fields.octets(tag)?;
    if value.len() > bytes_max {
        return Err(DecodeError::BadLength { element: tag.name, len: value.len() });
    }
    Ok(value.to_vec())
}

/// A list as text has one way to be written: what is signed is what is executed.
fn read_acl(text: &str) -> Result<Acl, DecodeError> {
    let acl: Acl = text.parse().map_err(|_| bad_value(tag::ACL))?;
    if acl.to_string() == text { Ok(acl) } else { Err(bad_value(tag::ACL)) }
}

fn read_changes(fields: &mut Fields<'_>) -> Result<AttributeChanges, DecodeError> {
    Ok(AttributeChanges {
        mode: fields.optional_pair(tag::MODE)?,
        owner: fields.optional_text(tag::OWNER)?,
        group: fields.optional_text(tag::GROUP)?,
        modified: match fields.flag(tag::MODIFIED_NOW)? {
            true => Some(TimeChange::Now),
            false => fields.optional_number(tag::MTIME)?.map(TimeChange::At),
        },
        size: fields.optional_number(tag::SIZE)?,
    })
}

fn read_create(fields: &mut Fields<'_>) -> Result<Create, DecodeError> {
    Ok(Create {
        place: read_place(fields)?,
        mode: fields.pair(tag::MODE)?,
        size_max: fields.number(tag::SIZE_MAX)?,
        publish: match (fields.flag(tag::AT_ONCE)?, fields.flag(tag::WHOLE)?) {
            (true, true) => return Err(bad_value(tag::WHOLE)),
            (true, false) => Publish::AtOnce,
            (false, true) => Publish::Whole,
            (false, false) => Publish::AtCommit,
        },
        exclusive: fields.flag(tag::EXCLUSIVE)?,
        policy: read_policy_changes(fields)?,
    })
}

fn read_commit(fields: &mut Fields<'_>) -> Result<Commit, DecodeError> {
    Ok(Commit {
        content: read_content_id(fields)?,
        size: fields.number(tag::SIZE)?,
        root: fields.array(tag::CONTENT_ROOT)?,
        checksums: read_checksums(fields)?,
        modified_ns: fields.optional_number(tag::MTIME)?,
        receipts: Vec::new(),
    })
}

fn read_disk_changes(fields: &mut Fields<'_>) -> Result<DiskChanges, DecodeError> {
    Ok(DiskChanges {
        state: fields.optional_number(tag::DISK_STATE)?.map(state_of).transpose()?,
        is_up: optional_bool(fields, tag::IS_UP)?,
        capacity_bytes: fields.optional_number(tag::CAPACITY)?,
        is_new_generation: fields.flag(tag::NEW_GENERATION)?,
        load: fields.optional_number(tag::LOAD)?,
        drain_bytes_per_s: fields.optional_number(tag::DRAIN_RATE)?,
        server: fields.optional_text(tag::SERVER)?,
    })
}

fn read_holder(fields: &mut Fields<'_>) -> Result<KeyHolder, DecodeError> {
    if let Some(user) = fields.optional_text(tag::USER)? {
        return Ok(KeyHolder::User(user));
    }
    if let Some(door) = fields.optional_text(tag::DOOR)? {
        return Ok(KeyHolder::Door(door));
    }
    Ok(KeyHolder::Disk(DiskId(fields.number(tag::DISK_ID)?)))
}

fn read_door(fields: &mut Fields<'_>) -> Result<SetDoor, DecodeError> {
    let door = fields.text(tag::DOOR)?;
    let grant = Grant {
        is_for_all: fields.flag(tag::FOR_ALL)?,
        users: read_texts(fields, tag::USER, GRANT_NAMES_MAX)?,
        groups: read_texts(fields, tag::GROUP, GRANT_NAMES_MAX)?,
        asserted: read_texts(fields, tag::ASSERTED, GRANT_NAMES_MAX)?,
    };
    Ok(SetDoor { door, grant })
}

fn read_limits(fields: &mut Fields<'_>) -> Result<Limits, DecodeError> {
    let none = Limits::NONE;
    Ok(Limits {
        inodes: fields.number(tag::INODES_MAX)?,
        bytes: fields.number(tag::BYTES_MAX)?,
        soft_inodes: fields.optional_number(tag::SOFT_INODES)?.unwrap_or(none.soft_inodes),
        soft_bytes: fields.optional_number(tag::SOFT_BYTES)?.unwrap_or(none.soft_bytes),
        grace_ns: fields.optional_number(tag::GRACE)?.unwrap_or(none.grace_ns),
    })
}

fn read_subject(fields: &mut Fields<'_>) -> Result<Subject, DecodeError> {
    if let Some(user) = fields.optional_text(tag::USER)? {
        return Ok(Subject::User(user));
    }
    if let Some(group) = fields.optional_text(tag::GROUP)? {
        return Ok(Subject::Group(group));
    }
    if let Some(space) = fields.optional_text(tag::SPACE)? {
        return Ok(Subject::Space(space));
    }
    Ok(Subject::Tree(InodeId(fields.number(tag::INODE_ID)?)))
}
