//! Taking a backup: rows and changes asked of a head that goes on meanwhile.
//!
//! Rows come page by page, each of another state; the changes since before the first page, applied
//! behind them, give all rows as of one transaction. Asking for them costs the head what questions
//! cost, and it answers others between them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use byname_catalog::engine::{EmbeddedEngine, Engine};
use byname_catalog::id::TransactionNumber;
use byname_catalog::{RowChange, Staging, site_of};
use byname_packet::NameRef;
use byname_security::base64;
use serde_json::{Value, json};

use super::error::BackupError;
use super::part::{
    FrameKind, PartWriter, SEGMENT, SNAPSHOT, SUFFIX, directory_of, ends, fresh, of, part_name,
};
use super::rows::{Staged, digest, each_row, hex};
use super::source::BackupSource;
use super::{Backup, lines};

/// Octets of rows in a frame; it may be longer by one row.
const FRAME_BYTES: usize = 64 << 10;
/// How often rows are asked for from the beginning, where a row changes all the time.
const RESTARTS_MAX: usize = 1000;

/// Says how many rows, or transactions, there are so far.
pub(super) type Progress<'a> = dyn FnMut(u64) + 'a;

/// Files that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The file with all rows, and what is in it.
    pub snapshot: Option<(PathBuf, Staged)>,
    /// The file with changes, from where and up to where.
    pub segment: Option<(PathBuf, TransactionNumber, TransactionNumber)>,
}

/// All rows as of one transaction, in one file.
///
/// # Errors
/// [`BackupError`]; there is no file of that name then, or the one of before.
pub fn take(
    source: &mut dyn BackupSource,
    path: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<Taken, BackupError> {
    let directory = directory_of(path);
    let snapshot = snapshot(source, directory, Some(path), progress)?;
    Ok(Taken { snapshot: Some(snapshot), segment: None })
}

/// What is new since the last time, in a directory: changes, or all rows if it is empty, if the
/// head's log does not go back so far, or if that is wanted.
///
/// # Errors
/// [`BackupError`]; what was there stays.
pub fn take_into(
    source: &mut dyn BackupSource,
    directory: &Path,
    is_full: bool,
    progress: &mut dyn FnMut(u64),
) -> Result<Taken, BackupError> {
    fs::create_dir_all(directory).map_err(of(directory))?;
    let mut parts = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(of(directory))? {
        let entry = entry.map_err(of(directory))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && name.ends_with(SUFFIX) {
            parts.insert(name, entry.path());
        }
    }
    let Some(last) = ends(&parts) else {
        let snapshot = snapshot(source, directory, None, progress)?;
        return Ok(Taken { snapshot: Some(snapshot), segment: None });
    };
    let found = Backup::open(directory)?.site().to_owned();
    if found != source.site() {
        return Err(BackupError::OtherSite { found });
    }
    let mut taken = Taken { snapshot: None, segment: None };
    if is_full {
        taken.snapshot = Some(snapshot(source, directory, None, progress)?);
    }
    // Also behind all rows: so there is no time that an older snapshot does not lead to.
    match segment(source, directory, last, progress) {
        Ok(segment) => taken.segment = segment,
        Err(BackupError::Gap { .. }) if taken.snapshot.is_some() => {}
        Err(BackupError::Gap { .. }) => {
            taken.snapshot = Some(snapshot(source, directory, None, progress)?);
        }
        Err(error) => return Err(error),
    }
    Ok(taken)
}

/// Rows put together in a directory of their own, which goes when this does.
pub(super) struct Workspace {
    engine: EmbeddedEngine,
    path: PathBuf,
}

impl Workspace {
    pub(super) fn new(directory: &Path) -> Result<Self, BackupError> {
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700);
        let (path, ()) = fresh(directory, "rows", |path| builder.create(path))?;
        Ok(Self { engine: EmbeddedEngine::open(&path.join("rows.redb"))?, path })
    }

    pub(super) fn engine(&self) -> &dyn Engine {
        &self.engine
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // Nobody needs it; should it stay, the next one has another name.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn snapshot(
    source: &mut dyn BackupSource,
    directory: &Path,
    path: Option<&Path>,
    progress: &mut Progress<'_>,
) -> Result<(PathBuf, Staged), BackupError> {
    let workspace = Workspace::new(directory)?;
    let engine = workspace.engine();
    let staged = stage_own(source, engine, progress)?;
    let about = json!({
        "kind": "snapshot",
        "site": source.site(),
        "transaction": staged.through.0,
        "at_ns": staged.at_ns,
        "rows": staged.rows,
        "digest": hex(&staged.digest),
    });
    let mut part = PartWriter::begin(directory, &about)?;
    let mut rows = Vec::new();
    each_row(engine, &mut |row| {
        row.encode(&mut rows);
        if rows.len() >= FRAME_BYTES {
            part.frame(FrameKind::Rows, &std::mem::take(&mut rows))?;
        }
        Ok::<(), BackupError>(())
    })?;
    part.frame(FrameKind::Rows, &rows)?;
    let usual = || directory.join(part_name(SNAPSHOT, &[staged.through]));
    let path = path.map_or_else(usual, Path::to_owned);
    part.finish(&path, &json!({ "rows": staged.rows }), source)?;
    Ok((path, staged))
}

/// All rows of a head as lines of JSON. `directory` is where they are put together.
///
/// # Errors
/// [`BackupError`]; what was written is of no use then.
pub fn export_lines(
    source: &mut dyn BackupSource,
    directory: &Path,
    out: &mut dyn Write,
) -> Result<Staged, BackupError> {
    let workspace = Workspace::new(directory)?;
    let staged = stage_own(source, workspace.engine(), &mut |_| {})?;
    lines::write(workspace.engine(), (&source.site(), &staged), out)?;
    Ok(staged)
}

/// Puts all rows together, if they are those of the source's site.
fn stage_own(
    source: &mut dyn BackupSource,
    engine: &dyn Engine,
    progress: &mut Progress<'_>,
) -> Result<Staged, BackupError> {
    let mut staged = stage(source, engine, progress)?;
    (staged.digest, staged.rows) = digest(engine)?;
    let name = site_of(engine)?.ok_or(BackupError::OtherAnswer)?;
    let name = NameRef::from_value(&name).map_err(|_| BackupError::OtherAnswer)?;
    match name.to_string() == source.site() {
        true => Ok(staged),
        false => Err(BackupError::OtherSite { found: name.to_string() }),
    }
}

/// Puts all rows together, as of the last transaction of the answer.
fn stage(
    source: &mut dyn BackupSource,
    engine: &dyn Engine,
    progress: &mut Progress<'_>,
) -> Result<Staged, BackupError> {
    let mut staging = Staging::new(engine);
    let (mut place, mut from) = (String::new(), None);
    // Octets of a row of which more are to come, and its digest.
    let (mut pending, mut digest) = (Vec::new(), None::<String>);
    let (mut count, mut restarts) = (0, 0);
    let at = loop {
        let lines = source.ask("backup-rows", &place)?;
        let line = lines.first().ok_or(BackupError::OtherAnswer)?;
        let [until, until_ns] = fields(line, ["transaction", "at_ns"])?;
        let at = (until, until_ns);
        from.get_or_insert(at);
        let row = line["row"].as_str().map(str::to_owned);
        if !pending.is_empty() && row != digest {
            // The row changed: it is asked for from its beginning.
            pending.clear();
            restarts += 1;
            place = format!("{}:0", place.rsplit_once(':').map_or("", |(row, _)| row));
            if restarts > RESTARTS_MAX {
                return Err(BackupError::OtherAnswer);
            }
            continue;
        }
        digest = row;
        pending.extend(octets(line, "rows")?);
        count += apply(&mut pending, &mut staging)?;
        progress(count);
        match line["next"].as_str() {
            Some(next) if next != place => place = next.to_owned(),
            Some(_) => return Err(BackupError::OtherAnswer),
            None => break at,
        }
    };
    if !pending.is_empty() {
        return Err(BackupError::OtherAnswer);
    }
    let from = from.unwrap_or(at);
    let mut last = from;
    if from.0 < at.0 {
        each_change(source, (from.0, at.0), &mut |event| {
            match event {
                Event::Transaction { number, at_ns, .. } => last = (number, at_ns),
                Event::Changes(changes) => {
                    pending.extend_from_slice(changes);
                    apply(&mut pending, &mut staging)?;
                }
            }
            Ok(())
        })?;
    }
    staging.flush()?;
    Ok(Staged { through: TransactionNumber(last.0), at_ns: last.1, ..Staged::default() })
}

/// Applies the changes that are all there, and leaves the others; how many.
fn apply(octets: &mut Vec<u8>, staging: &mut Staging<'_>) -> Result<u64, BackupError> {
    let (mut rest, mut count) = (octets.as_slice(), 0);
    while let Some((change, behind)) =
        RowChange::first(rest).map_err(|_| BackupError::OtherAnswer)?
    {
        staging.apply(change)?;
        rest = behind;
        count += 1;
    }
    *octets = rest.to_vec();
    Ok(count)
}

/// What comes of the log.
enum Event<'a> {
    Transaction {
        number: u64,
        at_ns: u64,
        line: &'a Value,
    },
    /// Octets of changes of the transaction before.
    Changes(&'a [u8]),
}

/// Calls for transactions behind one of them, up to another one at least.
fn each_change(
    source: &mut dyn BackupSource,
    (after, until): (u64, u64),
    take: &mut dyn FnMut(Event<'_>) -> Result<(), BackupError>,
) -> Result<u64, BackupError> {
    let mut done = after;
    // Octets of the transaction behind that are there.
    let mut offset = 0;
    while done < until {
        let place = match offset {
            0 => done.to_string(),
            offset => format!("{done}:{offset}"),
        };
        let lines = source.ask("backup-log", &place)?;
        let (first, records) = lines.split_first().ok_or(BackupError::OtherAnswer)?;
        let before = (done, offset);
        for line in records {
            let [number, at_ns] = fields(line, ["transaction", "at_ns"])?;
            let [start, length] = fields(line, ["offset", "length"])?;
            if number != done + 1 {
                return Err(BackupError::Gap { after: TransactionNumber(done) });
            }
            if start != offset {
                return Err(BackupError::OtherAnswer);
            }
            if offset == 0 {
                take(Event::Transaction { number, at_ns, line })?;
            }
            let changes = octets(line, "changes")?;
            take(Event::Changes(&changes))?;
            offset += changes.len() as u64;
            if offset >= length {
                (done, offset) = (number, 0);
            }
        }
        if (done, offset) == before {
            // There is nothing behind it, though there should be.
            let is_gap = first["last"].as_u64() != Some(done) || done < until;
            return match is_gap {
                true => Err(BackupError::Gap { after: TransactionNumber(done) }),
                false => Ok(done),
            };
        }
    }
    Ok(done)
}

/// What was changed since a transaction; no file if that is nothing.
fn segment(
    source: &mut dyn BackupSource,
    directory: &Path,
    after: TransactionNumber,
    progress: &mut Progress<'_>,
) -> Result<Option<(PathBuf, TransactionNumber, TransactionNumber)>, BackupError> {
    let lines = source.ask("backup-log", &after.0.to_string())?;
    let last = lines.first().and_then(|line| line["last"].as_u64());
    let last = last.ok_or(BackupError::OtherAnswer)?;
    if last == after.0 {
        return Ok(None);
    }
    if last < after.0 {
        // The head's catalog is an older one than this backup.
        return Err(BackupError::Gap { after });
    }
    let about = json!({ "kind": "log", "site": source.site(), "transaction": after.0, "at_ns": 0 });
    let mut part = PartWriter::begin(directory, &about)?;
    let mut count = 0;
    let mut pending = Vec::new();
    let through = each_change(source, (after.0, last), &mut |event| match event {
        Event::Transaction { line, .. } => {
            count += 1;
            progress(count);
            let kept = ["transaction", "epoch", "at_ns", "user", "command"];
            let record = kept.iter().map(|name| ((*name).to_owned(), line[*name].clone()));
            part.json(FrameKind::Transaction, &Value::Object(record.collect()))
        }
        Event::Changes(changes) => {
            pending.extend_from_slice(changes);
            write_whole(&mut pending, &mut part)
        }
    })?;
    let through = TransactionNumber(through);
    let path = directory.join(part_name(SEGMENT, &[after, through]));
    part.finish(&path, &json!({ "transaction": through.0, "count": count }), source)?;
    Ok(Some((path, after, through)))
}

/// Writes the changes that are all there, and leaves the others.
fn write_whole(octets: &mut Vec<u8>, part: &mut PartWriter) -> Result<(), BackupError> {
    let mut rest = octets.as_slice();
    while let Some((_, behind)) = RowChange::first(rest).map_err(|_| BackupError::OtherAnswer)? {
        rest = behind;
    }
    let length = octets.len() - rest.len();
    if length > 0 {
        part.frame(FrameKind::Rows, &octets[..length])?;
    }
    octets.drain(..length);
    Ok(())
}

fn octets(line: &Value, field: &str) -> Result<Vec<u8>, BackupError> {
    let text = line[field].as_str().ok_or(BackupError::OtherAnswer)?;
    base64::decode_url(text).map_err(|_| BackupError::OtherAnswer)
}

/// Fields of a JSON object by their names.
fn fields(value: &Value, names: [&str; 2]) -> Result<[u64; 2], BackupError> {
    let number = |name: &str| value[name].as_u64().ok_or(BackupError::OtherAnswer);
    Ok([number(names[0])?, number(names[1])?])
}
