//! What is in the trash, and what becomes of what is removed.

use std::collections::BTreeMap;

use byname_catalog::id::InodeId;
use byname_catalog::{Entry, Failure, Kind, Place, Reader, TrashItem};
use byname_packet::Name;
use byname_site::SiteName;
use serde_json::{Value, json};

use super::lines::{Lines, ROWS_MAX, number};

/// Pages of other users' things that are looked through for one answer.
const PAGES_MAX: usize = 8;

/// Things in the trash behind one of them: of all users for operators, for others their own.
pub(super) fn items(reader: &Reader<'_>, site: &SiteName, after: &str) -> Result<Vec<u8>, Failure> {
    let mut after = match after {
        "" => None,
        after => Some(InodeId(number(after)?)),
    };
    let (mut lines, mut kept) = (Lines::default(), BTreeMap::new());
    for _ in 0..PAGES_MAX {
        let page = reader.trash(after, ROWS_MAX)?;
        for (id, item) in page.items {
            let keep_ns = match kept.get(&item.tree) {
                Some(keep_ns) => *keep_ns,
                None => reader.trash_of(item.tree)?.1.map(|policy| policy.keep_ns),
            };
            kept.insert(item.tree, keep_ns);
            let until_ns = keep_ns.map(|keep_ns| item.removed_ns.saturating_add(keep_ns));
            if !lines.push(&line(site, (id, &item), until_ns)) {
                lines.push_more(&after.map_or_else(String::new, |last| last.0.to_string()));
                return Ok(lines.0);
            }
            after = Some(id);
        }
        match page.more_after {
            Some(last) => after = Some(last),
            None => return Ok(lines.0),
        }
    }
    lines.push_more(&after.map_or_else(String::new, |last| last.0.to_string()));
    Ok(lines.0)
}

fn line(site: &SiteName, (id, item): (InodeId, &TrashItem), until_ns: Option<u64>) -> Value {
    let is_path = item.place.base == InodeId::ROOT;
    let start = if is_path { site.view().to_name() } else { Name::default() };
    let names = item.place.names.iter();
    let name = names.fold(start, |name, entry| name.with_generic(entry.as_bytes()));
    json!({
        "inode": id.0,
        "name": name.to_string(),
        "directory": Some(item.place.base.0).filter(|_| !is_path),
        "kind": match item.kind {
            Kind::File => "file",
            Kind::Directory => "directory",
            Kind::Symlink => "symlink",
        },
        "owner": item.owner,
        "removed_by": item.removed_by,
        "removed_ns": item.removed_ns,
        "until_ns": until_ns,
        "bytes": item.measure.map(|(bytes, _)| bytes),
        "inodes": item.measure.map(|(_, inodes)| inodes),
    })
}

/// What becomes of what is removed at a place, and what is in the trash of its tree.
pub(super) fn of_tree(reader: &Reader<'_>, place: &Place) -> Result<Vec<u8>, Failure> {
    let Entry { id, inode } = reader.entry(place)?;
    let (own, policy, usage) = reader.trash_of(inode.tree)?;
    let mut lines = Lines::default();
    lines.push(&json!({
        "inode": id.0,
        "tree": inode.tree.0,
        "own": own.is_some(),
        "on": policy.is_some_and(|policy| policy.is_on),
        "keep_ns": policy.map(|policy| policy.keep_ns),
        "bytes_max": policy.map(|policy| policy.bytes_max),
        "items": usage.items,
        "bytes": usage.bytes,
    }));
    Ok(lines.0)
}
