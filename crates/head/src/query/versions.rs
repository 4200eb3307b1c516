//! Versions of a file: the current one, and those that its policy keeps.

use byname_catalog::{Detail, Failure, Inode, Reader, Refusal, Resolved, Times};
use byname_site::SiteName;
use serde_json::Value;

use crate::describe::Describer;

use super::lines::{Lines, number};
use super::place;

/// Versions of a file behind one of them, the oldest first, the current one at last: each with its
/// metadata as readers know them.
pub(super) fn of_file(
    reader: &Reader<'_>,
    site: &SiteName,
    (name, after): (&str, &str),
) -> Result<Vec<u8>, Failure> {
    let after = if after.is_empty() { 0 } else { number(after)? };
    let found = reader.resolve(&place::of(site, name)?)?;
    let current = found.inode.content().ok_or(Refusal::NotFile)?.clone();
    let describer = Describer::new(site, reader);
    let mut rows: Vec<(String, Value)> = Vec::new();
    for (content, old) in reader.versions(found.id)? {
        if content.version.0 <= after {
            continue;
        }
        let times = Times { modified_ns: old.modified_ns, ..found.inode.times };
        let version = content.version.0;
        let detail = Detail::File(content);
        let inode = Inode { times, detail, ..found.inode.clone() };
        let mut row = line(&describer, &Resolved { inode, ..found })?;
        row["replaced_ns"] = old.replaced_ns.into();
        row["replaced_by"] = old.replaced_by.into();
        rows.push((version.to_string(), row));
    }
    if current.version.0 > after {
        rows.push((current.version.0.to_string(), line(&describer, &found)?));
    }
    Ok(Lines::of(rows.into_iter()))
}

fn line(describer: &Describer<'_>, found: &Resolved) -> Result<Value, Failure> {
    let mut row = place::described(describer, found)?;
    if let Some(content) = found.inode.content() {
        row["version"] = content.version.0.into();
        row["size"] = content.size.into();
        row["modified_ns"] = found.inode.times.modified_ns.into();
        let root = content.root.iter().map(|octet| format!("{octet:02x}"));
        row["root"] = root.collect::<String>().into();
    }
    row["wanted"] = found.inode.versions.wanted.into();
    Ok(row)
}
