//! What a path leads to, for those who change it: its state, its room, its extended attributes.
//! Nothing of this is cached anywhere.

use byname_catalog::{
    Content, DiskState, Entry, EntryName, Failure, Inode, ListedEntry, PATH_NAMES_MAX, Place,
    Reader, Refusal, Resolved, Subject,
};
use byname_packet::Name;
use byname_security::base64;
use byname_site::SiteName;
use serde_json::{Value, json};

use crate::describe::Describer;

use super::limits::figures;
use super::lines::Lines;
use super::state_name;

/// Entries that are read for one answer: hardly more have room in it.
const PAGE_ENTRIES_MAX: usize = 24;
/// Type of a generic component.
const GENERIC: u16 = 8;

/// The place of a name, as a URI.
pub(super) fn of(site: &SiteName, name: &str) -> Result<Place, Failure> {
    let name: Name = name.parse().map_err(|_| Refusal::BadName)?;
    if !site.view().is_prefix_of(name.view()) {
        return Err(Refusal::NotFound.into());
    }
    let mut place = Place::path("")?;
    for component in name.view().suffix(site.view().count()).components() {
        if component.typ != GENERIC {
            return Err(Refusal::BadName.into());
        }
        place.names.push(EntryName::new(component.value)?);
    }
    match place.names.len() > PATH_NAMES_MAX {
        true => Err(Refusal::NameTooLong.into()),
        false => Ok(place),
    }
}

/// Usage and limits of the tree that a place is in and of whom else it counts for who asks, as far
/// as they have limits, and the disks of its space.
pub(super) fn room(reader: &Reader<'_>, place: &Place, unix_ns: u64) -> Result<Vec<u8>, Failure> {
    let Entry { id, inode } = reader.entry(place)?;
    let (mut count, mut capacity_bytes, mut free_bytes) = (0_u64, 0_u64, 0_u64);
    for (id, disk) in reader.disks()? {
        if disk.space != inode.policy.space || disk.state == DiskState::Off {
            continue;
        }
        count += 1;
        capacity_bytes = capacity_bytes.saturating_add(disk.capacity_bytes);
        if disk.state == DiskState::ReadWrite && disk.is_up {
            let usage = reader.disk_usage(id)?;
            let taken = usage.used_bytes.saturating_add(usage.reserved_bytes);
            free_bytes = free_bytes.saturating_add(disk.capacity_bytes.saturating_sub(taken));
        }
    }
    let mut quotas = Vec::new();
    for subject in reader.counted_at(&inode) {
        let quota = reader.quota(subject)?;
        if !quota.limits.is_none() {
            quotas.push(figures(&quota, unix_ns));
        }
    }
    let mut line = figures(&reader.quota(Subject::Tree(inode.tree))?, unix_ns);
    let place = json!({
        "quotas": quotas,
        "space": inode.policy.space,
        "replicas": inode.policy.replica_count,
        "receipts": inode.policy.receipt_count,
        "inode": id.0,
        "tree": inode.tree.0,
        "disks": count,
        "capacity_bytes": capacity_bytes,
        "free_bytes": free_bytes,
    });
    if let (Value::Object(line), Value::Object(place)) = (&mut line, place) {
        line.extend(place);
    }
    let mut lines = Lines::default();
    lines.push(&line);
    Ok(lines.0)
}

/// What a name leads to: the line that `entries` has of it.
pub(super) fn describe(
    reader: &Reader<'_>,
    site: &SiteName,
    name: &str,
) -> Result<Vec<u8>, Failure> {
    let found = reader.resolve(&of(site, name)?)?;
    let mut lines = Lines::default();
    lines.push(&described(&Describer::new(site, reader), &found)?);
    Ok(lines.0)
}

/// The same to who may use it so: read 4, write 2, execute or search 1.
pub(super) fn access(
    reader: &Reader<'_>,
    site: &SiteName,
    (name, wanted): (&str, &str),
) -> Result<Vec<u8>, Failure> {
    let wanted = wanted.parse().ok().filter(|wanted| *wanted <= 7).ok_or(Refusal::BadName)?;
    let found = reader.resolve_for(&of(site, name)?, wanted)?;
    let mut lines = Lines::default();
    lines.push(&described(&Describer::new(site, reader), &found)?);
    Ok(lines.0)
}

/// Entries of a directory behind `after`, each with what is known of it: names, and metadata as
/// readers know them, in base64.
pub(super) fn entries(
    reader: &Reader<'_>,
    site: &SiteName,
    (name, after): (&str, &str),
) -> Result<Vec<u8>, Failure> {
    let directory = reader.resolve(&of(site, name)?)?;
    let after = match after {
        "" => None,
        after => {
            let octets = base64::decode_url(after).map_err(|_| Refusal::BadName)?;
            Some(EntryName::new(octets)?)
        }
    };
    let describer = Describer::new(site, reader);
    let page = reader.list(&Place::inode(directory.id), after.as_ref(), PAGE_ENTRIES_MAX)?;
    let (mut lines, mut last, is_full) =
        (Lines::default(), String::new(), page.len() == PAGE_ENTRIES_MAX);
    let mut has_room = true;
    for entry in page {
        let ListedEntry { name, id, inode, placed } = entry;
        let found = Resolved { id, inode, placed: directory.placed.max(placed) };
        let name = base64::encode_url(name.as_bytes());
        let mut line = described(&describer, &found)?;
        line["name"] = name.clone().into();
        has_room = lines.push(&line);
        if !has_room {
            break;
        }
        last = name;
    }
    if is_full || !has_room {
        lines.push_more(&last);
    }
    Ok(lines.0)
}

pub(super) fn described(describer: &Describer<'_>, found: &Resolved) -> Result<Value, Failure> {
    let mut metadata = Vec::new();
    describer.metadata(found)?.encode(&mut metadata);
    Ok(json!({
        "inode": found.id.0,
        "binding": found.binding().0.max(1),
        "replicas": found.inode.policy.replica_count,
        "metadata": base64::encode_url(&metadata),
    }))
}

/// Number, version, size and mode of a file.
pub(super) fn content(reader: &Reader<'_>, place: &Place) -> Result<Vec<u8>, Failure> {
    let entry = reader.entry(place)?;
    let content = content_of(&entry.inode)?;
    let mut lines = Lines::default();
    lines.push(&json!({
        "inode": entry.id.0,
        "version": content.version.0,
        "size": content.size,
        "mode": entry.inode.mode,
    }));
    Ok(lines.0)
}

/// Who alone may write a file, if there is somebody, and until when if he does nothing more.
pub(super) fn lease(reader: &Reader<'_>, place: &Place) -> Result<Vec<u8>, Failure> {
    let mut lines = Lines::default();
    if let Some((lease, until_ns)) = reader.lease(reader.entry(place)?.id)? {
        lines.push(&json!({ "user": lease.user, "until_ns": until_ns }));
    }
    Ok(lines.0)
}

/// Extended attributes with names behind `after`: both in base64, as they are any octets.
pub(super) fn xattrs(reader: &Reader<'_>, place: &Place, after: &str) -> Result<Vec<u8>, Failure> {
    let after = base64::decode_url(after).map_err(|_| Refusal::BadName)?;
    let mut rows = Vec::new();
    for name in reader.xattrs(place)?.into_iter().filter(|name| *name > after) {
        let value = base64::encode_url(&reader.xattr(place, &name)?);
        let name = base64::encode_url(&name);
        rows.push((name.clone(), json!({ "name": name, "value": value })));
    }
    Ok(Lines::of(rows.into_iter()))
}

/// Who may do what with something, and what is made in it begins with.
pub(super) fn acl(reader: &Reader<'_>, place: &Place) -> Result<Vec<u8>, Failure> {
    let inode = reader.entry(place)?.inode;
    let mut lines = Lines::default();
    lines.push(&json!({
        "owner": inode.owner,
        "group": inode.group,
        "mode": inode.mode,
        "directory": inode.is_directory(),
        "access": inode.access_acl().to_string(),
        "default": inode.acls.default.as_ref().map(|acl| acl.to_string()),
    }));
    Ok(lines.0)
}

/// The disks that a file is on, each with what else is known of it. An empty file is on none.
pub(super) fn replicas(reader: &Reader<'_>, place: &Place) -> Result<Vec<u8>, Failure> {
    let Entry { id: file, inode } = reader.entry(place)?;
    let content = content_of(&inode)?;
    let mut lines = Lines::default();
    for id in &content.replicas {
        let disk = reader.disk(*id)?;
        lines.push(&json!({
            "disk": id.0,
            "server": disk.server,
            "place": disk.label,
            "space": disk.space,
            "state": state_name(disk.state),
            "up": disk.is_up,
            "bytes": content.size,
            "wanted": inode.policy.replica_count,
            "inode": file.0,
            "version": content.version.0,
        }));
    }
    Ok(lines.0)
}

fn content_of(inode: &Inode) -> Result<&Content, Refusal> {
    match inode.content() {
        Some(content) => Ok(content),
        None if inode.is_directory() => Err(Refusal::IsDirectory),
        None => Err(Refusal::NotFile),
    }
}
