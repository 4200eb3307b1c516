//! Quotas of users, groups, trees and spaces, and the policies of new files by their names.

use byname_catalog::id::InodeId;
use byname_catalog::{Detail, EntryName, Failure, Place, Quota, Reader, Subject};
use byname_security::base64;
use serde_json::{Value, json};

use super::lines::{Lines, ROWS_MAX, number};

/// Pages of a directory that are searched for the name of a tree: any user may ask.
const PAGES_MAX: usize = 64;

/// Quotas behind one of them: of all for operators, for others their own and those of trees and
/// spaces.
pub(super) fn quotas(reader: &Reader<'_>, after: &str, unix_ns: u64) -> Result<Vec<u8>, Failure> {
    let mut after = subject(after)?;
    let mut rows = Vec::new();
    // What a user may not see takes no line, and must not end the list.
    while rows.len() < ROWS_MAX {
        let page = reader.quotas(after.as_ref(), ROWS_MAX)?;
        after = page.last().map(|quota| quota.subject.clone());
        let is_last = page.len() < ROWS_MAX;
        for quota in page.into_iter().filter(|quota| reader.concerns(&quota.subject)) {
            rows.push((key(&quota.subject), line(reader, &quota, unix_ns)?));
        }
        if is_last {
            break;
        }
    }
    Ok(Lines::of(rows.into_iter()))
}

fn line(reader: &Reader<'_>, quota: &Quota, unix_ns: u64) -> Result<Value, Failure> {
    let mut line = figures(quota, unix_ns);
    if let Subject::Tree(id) = quota.subject {
        line["name"] = path(reader, id)?.into();
    }
    Ok(line)
}

/// What is used, what may be, and the seconds for which who is above a soft limit may still grow.
/// A tree is called by its number.
pub(super) fn figures(quota: &Quota, unix_ns: u64) -> Value {
    let (usage, limits) = (quota.usage, quota.limits);
    let (kind, name) = match &quota.subject {
        Subject::User(name) => ("user", name.clone()),
        Subject::Group(name) => ("group", name.clone()),
        Subject::Tree(id) => ("tree", format!("#{}", id.0)),
        Subject::Space(name) => ("space", name.clone()),
    };
    json!({
        "kind": kind,
        "name": name,
        "inodes": usage.inodes,
        "bytes": usage.bytes,
        "reserved_inodes": usage.reserved_inodes,
        "reserved_bytes": usage.reserved_bytes,
        "inodes_max": limits.inodes,
        "bytes_max": limits.bytes,
        "soft_inodes": limits.soft_inodes,
        "soft_bytes": limits.soft_bytes,
        "grace_ns": limits.grace_ns,
        "grace_left_s": quota.grace_left_ns(unix_ns).map(|left_ns| left_ns / 1_000_000_000),
    })
}

/// How a row is asked for again.
fn key(subject: &Subject) -> String {
    match subject {
        Subject::User(name) => format!("user-{}", base64::encode_url(name.as_bytes())),
        Subject::Group(name) => format!("group-{}", base64::encode_url(name.as_bytes())),
        Subject::Tree(id) => format!("tree-{}", id.0),
        Subject::Space(name) => format!("space-{}", base64::encode_url(name.as_bytes())),
    }
}

fn subject(key: &str) -> Result<Option<Subject>, Failure> {
    let bad = || byname_catalog::Refusal::BadName;
    let text = |text: &str| {
        let octets = base64::decode_url(text).map_err(|_| bad())?;
        String::from_utf8(octets).map_err(|_| bad())
    };
    Ok(match key.split_once('-') {
        None if key.is_empty() => None,
        Some(("user", name)) => Some(Subject::User(text(name)?)),
        Some(("group", name)) => Some(Subject::Group(text(name)?)),
        Some(("space", name)) => Some(Subject::Space(text(name)?)),
        Some(("tree", id)) => Some(Subject::Tree(InodeId(number(id)?))),
        _ => return Err(bad().into()),
    })
}

/// The path of a directory below the site, as a URI without the site's name; of one that this user
/// may not look up, or that is one of very many, its number.
fn path(reader: &Reader<'_>, mut id: InodeId) -> Result<String, Failure> {
    let (mut names, asked) = (Vec::new(), id);
    while id != InodeId::ROOT {
        let inode = match reader.entry(&Place::inode(id)) {
            // It is in the trash, say, or below what this user may not search.
            Err(Failure::Refused(_)) => return Ok(format!("#{}", asked.0)),
            entry => entry?.inode,
        };
        let Detail::Directory { parent } = inode.detail else {
            return Ok(format!("#{}", asked.0));
        };
        match name_in(reader, parent, id)? {
            Some(name) => names.push(name),
            None => return Ok(format!("#{}", asked.0)),
        }
        id = parent;
    }
    let names = names.iter().rev().map(EntryName::as_bytes);
    let path = names.fold(byname_packet::Name::default(), |path, name| path.with_generic(name));
    Ok(path.to_string())
}

fn name_in(
    reader: &Reader<'_>,
    directory: InodeId,
    id: InodeId,
) -> Result<Option<EntryName>, Failure> {
    let mut after: Option<EntryName> = None;
    for _ in 0..PAGES_MAX {
        let page = match reader.list(&Place::inode(directory), after.as_ref(), ROWS_MAX) {
            Err(Failure::Refused(_)) => return Ok(None),
            page => page?,
        };
        if let Some(found) = page.iter().find(|entry| entry.id == id) {
            return Ok(Some(found.name.clone()));
        }
        if page.len() < ROWS_MAX {
            return Ok(None);
        }
        after = page.last().map(|entry| entry.name.clone());
    }
    Ok(None)
}

/// Patterns of names, each with what differs for new files that fit it.
pub(super) fn patterns(reader: &Reader<'_>, after: &str) -> Result<Vec<u8>, Failure> {
    let all = reader.patterns()?;
    let key = |pattern: &str| base64::encode_url(pattern.as_bytes());
    let from = match all.iter().position(|(pattern, _)| key(pattern) == after) {
        Some(position) => position + 1,
        None => 0,
    };
    let row = |(pattern, changes): &(String, byname_catalog::PolicyChanges)| {
        let line = json!({
            "pattern": pattern,
            "space": changes.space,
            "replicas": changes.replica_count,
            "receipts": changes.receipt_count,
        });
        (key(pattern), line)
    };
    Ok(Lines::of(all[from..].iter().map(row)))
}
