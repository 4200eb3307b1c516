//! Elements of commands, in the order in which they stand.

use byname_catalog::{
    AddDisk, AddKey, AttributeChanges, Command, Commit, Create, DiskChanges, Grant, KeyHolder,
    LendKey, Limits, Publish, Rename, RestoreTrash, SetAcl, SetDoor, SetXattr, Subject, TimeChange,
    TrashPolicy,
};

use crate::codec::Writer;
use crate::numbers as tag;
use crate::parts::{
    state_number, write_checksums, write_content_id, write_place, write_policy,
    write_policy_changes,
};

pub(super) fn write(writer: &mut Writer, command: &Command) {
    match command {
        Command::MakeDirectory { place, mode } => {
            write_place(writer, place);
            writer.pair(tag::MODE, *mode);
        }
        Command::RemoveDirectory { place }
        | Command::Unlink { place }
        | Command::RemoveAll { place }
        | Command::Lease { place }
        | Command::EndLease { place }
        | Command::MakeTree { place } => write_place(writer, place),
        Command::RestoreTrash(RestoreTrash { item, to }) => {
            writer.number(tag::INODE_ID, *item);
            to.iter().for_each(|place| write_place(writer, place));
        }
        Command::PurgeTrash { item } => writer.number(tag::INODE_ID, *item),
        Command::Rename(Rename { from, to, no_replace }) => {
            write_place(writer, from);
            write_place(writer, to);
            writer.flag(tag::NO_REPLACE, *no_replace);
        }
        Command::Link { existing, place } => {
            write_place(writer, existing);
            write_place(writer, place);
        }
        Command::MakeSymlink { place, target } => {
            write_place(writer, place);
            writer.octets(tag::LINK_TARGET, target);
        }
        Command::SetAttributes { place, changes } => {
            write_place(writer, place);
            write_changes(writer, changes);
        }
        Command::SetXattr(set) => write_xattr(writer, set),
        Command::RemoveXattr { place, name } => {
            write_place(writer, place);
            writer.octets(tag::XATTR_NAME, name);
        }
        Command::SetAcl(SetAcl { place, is_default, acl }) => {
            write_place(writer, place);
            writer.flag(tag::DEFAULT_ACL, *is_default);
            if let Some(acl) = acl {
                writer.text(tag::ACL, &acl.to_string());
            }
        }
        Command::Create(create) => write_create(writer, create),
        Command::Extend { content }
        | Command::Abort { content }
        | Command::Hold { content }
        | Command::Release { content } => write_content_id(writer, *content),
        Command::Commit(commit) => write_commit(writer, commit),
        Command::ReplaceDisk { content, disk } => {
            write_content_id(writer, *content);
            writer.number(tag::DISK_ID, *disk);
        }
        Command::Resolve { generation, content } => {
            writer.number(tag::GENERATION, *generation);
            write_content_id(writer, *content);
        }
        Command::OpenSession | Command::RenewSession | Command::EndSession => {}
        administration => write_administration(writer, administration),
    }
}

fn write_administration(writer: &mut Writer, command: &Command) {
    match command {
        Command::Expire { limit } | Command::Collect { limit } => {
            writer.number(tag::LIMIT, *limit as u64);
        }
        Command::Dropped { disk, contents } => {
            writer.number(tag::DISK_ID, *disk);
            contents.iter().for_each(|content| write_content_id(writer, *content));
        }
        Command::DropReplica { content, disk } => {
            write_content_id(writer, *content);
            writer.number(tag::DISK_ID, *disk);
        }
        Command::SetUser { user, groups, is_operator } => {
            writer.text(tag::USER, user);
            groups.iter().for_each(|group| writer.text(tag::GROUP, group));
            writer.flag(tag::OPERATOR, *is_operator);
        }
        Command::SetDoor(set) => write_door(writer, set),
        Command::RemoveDoor { door } => writer.text(tag::DOOR, door),
        Command::AddDisk(disk) => write_disk(writer, disk),
        Command::SetDisk { disk, changes } => {
            writer.number(tag::DISK_ID, *disk);
            write_disk_changes(writer, changes);
        }
        Command::RemoveDisk { disk } => writer.number(tag::DISK_ID, *disk),
        Command::SetPolicy { place, policy } => {
            write_place(writer, place);
            write_policy(writer, policy);
        }
        Command::SetVersions { place, wanted } => {
            write_place(writer, place);
            writer.number(tag::VERSION_COUNT, *wanted);
        }
        Command::SetTrash { place, policy } => {
            write_place(writer, place);
            write_trash(writer, policy);
        }
        Command::SetPattern { pattern, changes } => {
            writer.text(tag::PATTERN, pattern);
            if let Some(changes) = changes {
                write_policy_changes(writer, changes);
            }
        }
        Command::SetLimits { subject, limits } => {
            match subject {
                Subject::User(user) => writer.text(tag::USER, user),
                Subject::Group(group) => writer.text(tag::GROUP, group),
                Subject::Tree(inode) => writer.number(tag::INODE_ID, *inode),
                Subject::Space(space) => writer.text(tag::SPACE, space),
            }
            write_limits(writer, limits);
        }
        Command::TrimLog { below, limit } => {
            writer.number(tag::LOG_NUMBER, *below);
            writer.number(tag::LIMIT, *limit as u64);
        }
        Command::RaiseEpoch { epoch } => writer.number(tag::CATALOG_EPOCH, *epoch),
        of_key => write_of_key(writer, of_key),
    }
}

fn write_of_key(writer: &mut Writer, command: &Command) {
    match command {
        Command::AddKey(add) => write_key(writer, add),
        Command::RemoveKey { name } | Command::RecallKey { name } => {
            writer.octets(tag::KEY_NAME, name);
        }
        Command::LendKey(LendKey { lender: _, name, certificate, expires_ns }) => {
            writer.octets(tag::KEY_NAME, name);
            writer.number(tag::EXPIRES, *expires_ns);
            writer.0.extend_from_slice(certificate);
        }
        _ => {}
    }
}

/// Limits; what is as by default is left out.
fn write_limits(writer: &mut Writer, limits: &Limits) {
    let none = Limits::NONE;
    writer.number(tag::INODES_MAX, limits.inodes);
    writer.number(tag::BYTES_MAX, limits.bytes);
    for (tag, value, default) in [
        (tag::SOFT_INODES, limits.soft_inodes, none.soft_inodes),
        (tag::SOFT_BYTES, limits.soft_bytes, none.soft_bytes),
        (tag::GRACE, limits.grace_ns, none.grace_ns),
    ] {
        if value != default {
            writer.number(tag, value);
        }
    }
}

fn write_key(writer: &mut Writer, AddKey { holder, name, certificate }: &AddKey) {
    match holder {
        KeyHolder::User(user) => writer.text(tag::USER, user),
        KeyHolder::Disk(disk) => writer.number(tag::DISK_ID, *disk),
        KeyHolder::Door(door) => writer.text(tag::DOOR, door),
    }
    writer.octets(tag::KEY_NAME, name);
    writer.0.extend_from_slice(certificate);
}

fn write_disk(writer: &mut Writer, disk: &AddDisk) {
    let AddDisk { space, server, label, capacity_bytes } = disk;
    writer.text(tag::SPACE, space);
    writer.text(tag::SERVER, server);
    writer.text(tag::LABEL, label);
    writer.number(tag::CAPACITY, *capacity_bytes);
}

fn write_door(writer: &mut Writer, SetDoor { door, grant }: &SetDoor) {
    let Grant { is_for_all, users, groups, asserted } = grant;
    writer.text(tag::DOOR, door);
    writer.flag(tag::FOR_ALL, *is_for_all);
    users.iter().for_each(|user| writer.text(tag::USER, user));
    groups.iter().for_each(|group| writer.text(tag::GROUP, group));
    asserted.iter().for_each(|group| writer.text(tag::ASSERTED, group));
}

fn write_trash(writer: &mut Writer, policy: &TrashPolicy) {
    writer.number(tag::TRASH_TIME, policy.keep_ns);
    writer.number(tag::BYTES_MAX, policy.bytes_max);
    writer.flag(tag::TRASH_OFF, !policy.is_on);
}

fn write_changes(writer: &mut Writer, changes: &AttributeChanges) {
    let AttributeChanges { mode, owner, group, modified, size } = changes;
    if let Some(mode) = mode {
        writer.pair(tag::MODE, *mode);
    }
    if let Some(owner) = owner {
        writer.text(tag::OWNER, owner);
    }
    if let Some(group) = group {
        writer.text(tag::GROUP, group);
    }
    match modified {
        None => {}
        Some(TimeChange::Now) => writer.flag(tag::MODIFIED_NOW, true),
        Some(TimeChange::At(at_ns)) => writer.number(tag::MTIME, *at_ns),
    }
    if let Some(size) = size {
        writer.number(tag::SIZE, *size);
    }
}

fn write_xattr(writer: &mut Writer, set: &SetXattr) {
    write_place(writer, &set.place);
    writer.octets(tag::XATTR_NAME, &set.name);
    writer.octets(tag::XATTR_VALUE, &set.value);
    if let Some(must_exist) = set.must_exist {
        writer.number(tag::MUST_EXIST, must_exist);
    }
}

fn write_create(writer: &mut Writer, create: &Create) {
    write_place(writer, &create.place);
    writer.pair(tag::MODE, create.mode);
    writer.number(tag::SIZE_MAX, create.size_max);
    writer.flag(tag::AT_ONCE, create.publish == Publish::AtOnce);
    writer.flag(tag::WHOLE, create.publish == Publish::Whole);
    writer.flag(tag::EXCLUSIVE, create.exclusive);
    write_policy_changes(writer, &create.policy);
}

fn write_commit(writer: &mut Writer, commit: &Commit) {
    write_content_id(writer, commit.content);
    writer.number(tag::SIZE, commit.size);
    writer.octets(tag::CONTENT_ROOT, &commit.root);
    write_checksums(writer, commit.checksums);
    if let Some(modified_ns) = commit.modified_ns {
        writer.number(tag::MTIME, modified_ns);
    }
}

fn write_disk_changes(writer: &mut Writer, changes: &DiskChanges) {
    let DiskChanges { state, is_up, capacity_bytes, is_new_generation, load, .. } = *changes;
    if let Some(state) = state {
        writer.number(tag::DISK_STATE, state_number(state));
    }
    if let Some(is_up) = is_up {
        writer.number(tag::IS_UP, is_up);
    }
    if let Some(capacity_bytes) = capacity_bytes {
        writer.number(tag::CAPACITY, capacity_bytes);
    }
    writer.flag(tag::NEW_GENERATION, is_new_generation);
    if let Some(load) = load {
        writer.number(tag::LOAD, load);
    }
    if let Some(rate) = changes.drain_bytes_per_s {
        writer.number(tag::DRAIN_RATE, rate);
    }
    if let Some(server) = &changes.server {
        writer.text(tag::SERVER, server);
    }
}
