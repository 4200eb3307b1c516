//! A catalog as lines of JSON: one object for each row, for people and other programs.
//!
//! The first line says which site it is and as of which transaction, the last how many rows there
//! are and their digest. Each other line has a row as it is (`row`: table, key, value), which is
//! what counts when it is read, and beside it what the row says, which is for reading. Names are
//! parts of NDN names as URIs have them, other octets base64url.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use byname_catalog::engine::{Engine, Table};
use byname_catalog::id::{ContentId, DiskId};
use byname_catalog::{
    BaseRow, Content, Detail, Door, Inode, KeyHolder, Kind, KnownRow, Limits, PolicyChanges,
    RowChange, Staging, Subject,
};
use byname_packet::{Name, NameRef};
use byname_security::base64;
use serde_json::{Value, json};

use super::error::BackupError;
use super::part::of;
use super::rows::{Staged, digest, each_row, hex};

const SCHEMA: u64 = 1;
/// No line is longer: rows have 4 KiB, what they say as much again.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Writes the rows of an engine.
///
/// # Errors
/// [`BackupError`].
pub(super) fn write(
    engine: &dyn Engine,
    (site, staged): (&str, &Staged),
    out: &mut dyn Write,
) -> Result<(), BackupError> {
    let first = json!({
        "schema": SCHEMA,
        "kind": "catalog",
        "site": site,
        "transaction": staged.through.0,
        "at_ns": staged.at_ns,
    });
    line(&first, out)?;
    each_row(engine, &mut |change| {
        let RowChange { table, key, value } = change;
        let row = BaseRow { table, key, value: value.unwrap_or_default() };
        let mut object = said(row.known()?);
        object["schema"] = SCHEMA.into();
        object["row"] = json!({
            "table": row.table as u8,
            "key": base64::encode_url(&row.key),
            "value": base64::encode_url(&row.value),
        });
        line(&object, out)
    })?;
    let digest = hex(&staged.digest);
    line(&json!({ "schema": SCHEMA, "kind": "end", "rows": staged.rows, "digest": digest }), out)
}

fn line(value: &Value, out: &mut dyn Write) -> Result<(), BackupError> {
    writeln!(out, "{value}").map_err(of(Path::new("standard output")))
}

/// What the first line of a file says; none if it is no file of lines.
pub(super) fn about(path: &Path) -> Result<Option<Value>, BackupError> {
    let mut first = [0];
    let read = File::open(path).and_then(|mut file| file.read(&mut first)).map_err(of(path))?;
    if (read, first) != (1, *b"{") {
        return Ok(None);
    }
    let about = Lines::open(path)?.next_line()?;
    match about["schema"] == SCHEMA && about["kind"] == "catalog" {
        true => Ok(Some(about)),
        false => Err(damaged(path, "it is no export of a catalog, or one of another version")),
    }
}

/// Puts the rows of a file together.
pub(super) fn stage(path: &Path, engine: &dyn Engine) -> Result<Staged, BackupError> {
    let mut lines = Lines::open(path)?;
    lines.next_line()?;
    let mut staging = Staging::new(engine);
    let end = loop {
        let line = lines.next_line()?;
        if line["kind"] == "end" {
            break line;
        }
        let change = row(&line["row"]).ok_or_else(|| damaged(path, "a line of it has no row"))?;
        // Only rows from which others follow are taken, as everywhere.
        let mut octets = Vec::new();
        change.encode(&mut octets);
        match RowChange::first(&octets) {
            Ok(Some((change, []))) => staging.apply(change)?,
            _ => return Err(damaged(path, "a row of it is none to begin from")),
        }
    };
    staging.flush()?;
    let (found, rows) = digest(engine)?;
    if end["digest"] != hex(&found) || end["rows"].as_u64() != Some(rows) {
        return Err(damaged(path, "its rows have another digest"));
    }
    Ok(Staged { rows, digest: found, ..Staged::default() })
}

fn row(value: &Value) -> Option<RowChange> {
    let octets = |field: &str| base64::decode_url(value[field].as_str()?).ok();
    let table = Table::from_number(value["table"].as_u64()?.try_into().ok()?)?;
    Some(RowChange { table, key: octets("key")?, value: Some(octets("value")?) })
}

struct Lines<'a> {
    file: BufReader<File>,
    path: &'a Path,
}

impl<'a> Lines<'a> {
    fn open(path: &'a Path) -> Result<Self, BackupError> {
        Ok(Self { file: BufReader::new(File::open(path).map_err(of(path))?), path })
    }

    fn next_line(&mut self) -> Result<Value, BackupError> {
        let mut text = Vec::new();
        let mut bounded = (&mut self.file).take(LINE_BYTES_MAX);
        bounded.read_until(b'\n', &mut text).map_err(of(self.path))?;
        if text.last() != Some(&b'\n') {
            return Err(damaged(self.path, "it is torn: its end is missing"));
        }
        let value = serde_json::from_slice(&text);
        value.map_err(|_| damaged(self.path, "a line of it cannot be read"))
    }
}

fn damaged(path: &Path, what: &'static str) -> BackupError {
    BackupError::Damaged { path: path.to_owned(), what }
}

/// What a row says, with its kind.
fn said(row: KnownRow) -> Value {
    match row {
        KnownRow::Site(name) => {
            let name = NameRef::from_value(&name).map(|name| name.to_string());
            json!({ "kind": "site", "name": name.unwrap_or_default() })
        }
        KnownRow::Counters(transaction, issued) => {
            json!({ "kind": "counters", "transaction": transaction.0, "issued": issued })
        }
        KnownRow::Lease(epoch, head) => json!({ "kind": "lease", "epoch": epoch.0, "head": head }),
        KnownRow::Inode(id, inode) => inode_said(id.0, &inode),
        KnownRow::Entry(directory, name, (inode, kind)) => json!({
            "kind": "entry",
            "directory": directory.0,
            "name": part(&name),
            "inode": inode.0,
            "type": type_name(kind),
        }),
        KnownRow::Xattr(inode, name, value) => json!({
            "kind": "xattr",
            "inode": inode.0,
            "name": part(&name),
            "value": base64::encode_url(&value),
        }),
        KnownRow::Kept(of, content) => {
            let mut object = content_said(&content);
            object["kind"] = "kept".into();
            object["inode"] = of.inode.0.into();
            object
        }
        KnownRow::Limit(subject, limits) => limits_said(subject, &limits),
        KnownRow::User(name, user) => json!({
            "kind": "user",
            "name": name,
            "groups": user.groups,
            "operator": user.is_operator,
        }),
        other => site_said(other),
    }
}

/// The same of limits.
fn limits_said(subject: Subject, limits: &Limits) -> Value {
    let (of, name) = match subject {
        Subject::User(name) => ("user", name),
        Subject::Group(name) => ("group", name),
        Subject::Tree(inode) => ("tree", inode.0.to_string()),
        Subject::Space(name) => ("space", name),
    };
    json!({
        "kind": "quota",
        "of": of,
        "name": name,
        "entries_max": limited(limits.inodes),
        "bytes_max": limited(limits.bytes),
        "entries_soft": limited(limits.soft_inodes),
        "bytes_soft": limited(limits.soft_bytes),
        "grace_s": limits.grace_ns / 1_000_000_000,
    })
}

/// The same of disks, keys, and what disks have to do.
fn site_said(row: KnownRow) -> Value {
    match row {
        KnownRow::Disk(id, disk) => json!({
            "kind": "disk",
            "disk": id.0,
            "space": disk.space,
            "server": disk.server,
            "place": disk.label,
            "generation": disk.generation,
            "state": crate::query::state_name(disk.state),
            "capacity_bytes": disk.capacity_bytes,
        }),
        KnownRow::Key(name, key) => {
            let (holder, of) = match key.holder {
                KeyHolder::User(name) => ("user", name),
                KeyHolder::Disk(disk) => ("disk", disk.0.to_string()),
                KeyHolder::Door(name) => ("door", name),
            };
            json!({
                "kind": "key",
                "name": base64::encode_url(&name),
                "of": holder,
                "holder": of,
                "certificate": base64::encode_url(&key.certificate),
                "lent_until_ns": key.loan.map(|loan| loan.expires_ns),
            })
        }
        KnownRow::Door(name, Door { grant }) => json!({
            "kind": "door",
            "name": name,
            "for_all": grant.is_for_all,
            "for_users": grant.users,
            "for_groups": grant.groups,
            "may_say_groups": grant.asserted,
        }),
        KnownRow::Drop(DiskId(disk), ContentId { inode, version }) => {
            json!({ "kind": "drop", "disk": disk, "inode": inode.0, "version": version.0 })
        }
        KnownRow::Pattern(pattern, policy) => {
            let PolicyChanges { space, replica_count, receipt_count } = policy;
            json!({
                "kind": "policy",
                "pattern": String::from_utf8_lossy(&pattern),
                "space": space,
                "replicas": replica_count,
                "receipts": receipt_count,
            })
        }
        KnownRow::Detached(inode) => json!({ "kind": "removed-tree", "inode": inode.0 }),
        _ => json!({ "kind": "other" }),
    }
}

fn inode_said(id: u64, inode: &Inode) -> Value {
    let mut object = match &inode.detail {
        Detail::File(content) => content_said(content),
        Detail::Directory { parent } => json!({ "parent": parent.0 }),
        Detail::Symlink { target } => json!({ "target": base64::encode_url(target) }),
    };
    object["kind"] = "inode".into();
    object["inode"] = id.into();
    object["type"] = type_name(inode.kind()).into();
    object["mode"] = format!("{:04o}", inode.mode).into();
    object["owner"] = inode.owner.as_str().into();
    object["group"] = inode.group.as_str().into();
    object["links"] = inode.link_count.into();
    object["created_ns"] = inode.times.created_ns.into();
    object["modified_ns"] = inode.times.modified_ns.into();
    object["changed_ns"] = inode.times.changed_ns.into();
    object["binding"] = inode.binding.0.into();
    object["tree"] = inode.tree.0.into();
    object["space"] = inode.policy.space.as_str().into();
    object["replicas_wanted"] = inode.policy.replica_count.into();
    object["receipts"] = inode.policy.receipt_count.into();
    if inode.acls.access.is_some() {
        object["acl"] = inode.access_acl().to_string().into();
    }
    if let Some(default) = &inode.acls.default {
        object["default_acl"] = default.to_string().into();
    }
    object
}

fn content_said(content: &Content) -> Value {
    json!({
        "version": content.version.0,
        "bytes": content.size,
        "blake3": hex(&content.root),
        "adler32": format!("{:08x}", content.checksums.adler32),
        "crc32c": format!("{:08x}", content.checksums.crc32c),
        "disks": content.replicas.iter().map(|disk| disk.0).collect::<Vec<_>>(),
    })
}

fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Directory => "directory",
        Kind::Symlink => "symlink",
    }
}

/// A part of a name as a URI has it, without the slash before it.
fn part(octets: &[u8]) -> String {
    Name::default().with_generic(octets).to_string().trim_start_matches('/').to_owned()
}

/// A limit, unless there is none.
fn limited(max: u64) -> Option<u64> {
    Some(max).filter(|max| *max != u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_catalog::engine::MemoryEngine;
    use byname_catalog::{Policy, Setup, initialise};

    fn catalog() -> MemoryEngine {
        let engine = MemoryEngine::default();
        let policy = Policy { space: "main".into(), replica_count: 1, receipt_count: 1 };
        let site = "/lab".parse::<Name>().unwrap().view().value().to_vec();
        let (operator, group) = ("op".to_owned(), "ops".to_owned());
        initialise(&engine, &Setup { site, operator, group, key: None, policy }, 7).unwrap();
        let mut staging = Staging::new(&engine);
        for (name, value) in [(&b"user.\xff/\n\""[..], vec![0; 4000]), (b"user.%", vec![255])] {
            let key = [&1_u64.to_be_bytes()[..], name].concat();
            staging.apply(RowChange { table: Table::Xattr, key, value: Some(value) }).unwrap();
        }
        staging.flush().unwrap();
        engine
    }

    #[test]
    fn lines_give_the_same_rows_whatever_names_and_values_are() {
        let engine = catalog();
        let (wanted, rows) = digest(&engine).unwrap();
        let staged = Staged { digest: wanted, rows, ..Staged::default() };
        let mut text = Vec::new();
        write(&engine, ("/lab", &staged), &mut text).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lab.jsonl");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(about(&path).unwrap().unwrap()["site"], "/lab");
        let again = MemoryEngine::default();
        assert_eq!(stage(&path, &again).unwrap(), staged);
        assert_eq!(digest(&again).unwrap(), (wanted, rows));
        // What a line says does not count; the row does.
        let text = String::from_utf8(text).unwrap();
        let said = text.replacen("\"owner\":\"op\"", "\"owner\":\"eve\"", 1);
        assert_ne!(said, text);
        std::fs::write(&path, said).unwrap();
        assert!(stage(&path, &MemoryEngine::default()).is_ok());
        let line = text.lines().find(|line| line.contains("xattr")).unwrap();
        for other in [text.replacen(line, "{}", 1), text.replacen(&format!("{line}\n"), "", 1)] {
            std::fs::write(&path, other).unwrap();
            let staged = stage(&path, &MemoryEngine::default());
            assert!(matches!(staged, Err(BackupError::Damaged { .. })));
        }
    }
}
