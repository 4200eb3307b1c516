//! The durable records: versions by name, roots and checksums by inode.
//!
//! Keys and values have fixed layouts; every value starts with 8 octets of BLAKE3 over key and
//! rest. A value that does not match is a lost record. All pages are checked when the file is
//! opened; the checksums notice what is damaged later.

mod checksums;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use byname_io::Clock;
use byname_transfer::server::{FileState, Fingerprint, Recalled, Record, RecordKey, Subject};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

pub use checksums::ChecksumRecord;

use super::highest_version::HighestVersion;
use crate::error::{StateError, at};
use checksums::CHECKSUMS;

const NAMES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("names-1");
const ROOTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("roots-1");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta-1");
const FLOOR: &str = "version-floor";

/// Octets redb may keep in memory.
const CACHE_BYTES: usize = 16 << 20;
/// Octets of the checksum in front of a value.
const CHECK_BYTES: usize = 8;
/// Roots that wait to be committed.
const FRESH_MAX: usize = 1 << 16;

/// The root of a file in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootRecord {
    /// The state.
    pub fingerprint: Fingerprint,
    /// The root.
    pub root: [u8; 32],
}

#[derive(Debug)]
pub(super) struct Records {
    path: PathBuf,
    /// `None` only while a broken one is being replaced.
    database: RwLock<Option<Database>>,
    floor: AtomicU64,
    highest: HighestVersion,
    /// Roots that are not committed yet: [`FRESH_MAX`] at most.
    fresh: Mutex<HashMap<Fingerprint, [u8; 32]>>,
}

impl Records {
    pub(super) fn open(path: &Path) -> Result<Self, StateError> {
        let records = Self {
            path: path.to_path_buf(),
            database: RwLock::new(None),
            floor: AtomicU64::new(0),
            highest: HighestVersion::open(path.with_file_name("highest-version"))?,
            fresh: Mutex::default(),
        };
        records.look_for_loss()?;
        match records.reopen() {
            Err(error) if is_broken(&error) => records.start_anew(&error)?,
            other => other.map_err(failed(path))?,
        }
        Ok(records)
    }

    /// Notices records that are empty or missing, which would pass for new ones.
    fn look_for_loss(&self) -> Result<(), StateError> {
        let path = &self.path;
        match std::fs::metadata(path) {
            Ok(about) if about.len() > 0 => return Ok(()),
            Ok(_) => {
                tracing::error!(path = %path.display(), "records are empty: starting anew");
                set_aside(path)?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if !self.highest.was_there() {
                    return Ok(());
                }
                tracing::error!(path = %path.display(), "records are missing: starting anew");
            }
            Err(error) => return Err(at(path)(error)),
        }
        self.raise_floor();
        Ok(())
    }

    /// Versions announced before are not known any more: all later ones must be above them.
    fn raise_floor(&self) {
        let floor = Clock::new().unix_ns().max(self.highest.bound());
        self.floor.fetch_max(floor, Ordering::Relaxed);
    }

    fn reopen(&self) -> Result<(), redb::Error> {
        let (database, is_whole) = open_database(&self.path)?;
        if !is_whole {
            tracing::error!(path = %self.path.display(), "records were repaired: some may be lost");
            self.raise_floor();
        }
        // Where it is closed with care if it turns out to be broken.
        *self.database.write().unwrap_or_else(PoisonError::into_inner) = Some(database);
        let known = self.floor.load(Ordering::Relaxed);
        let floor = self.with_database(|database| prepare(database, known))?;
        self.floor.fetch_max(floor, Ordering::Relaxed);
        Ok(())
    }

    /// Moves broken records aside; nothing announced before is known any more.
    fn start_anew(&self, error: &redb::Error) -> Result<(), StateError> {
        let path = &self.path;
        tracing::error!(path = %path.display(), %error, "records are broken: starting anew");
        self.close();
        set_aside(path)?;
        self.raise_floor();
        self.reopen().map_err(failed(path))
    }

    fn close(&self) {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(database) = database.take() {
            close(database);
        }
    }

    fn with_database<T>(
        &self,
        act: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, redb::Error> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        match &*database {
            Some(database) => guarded(|| act(database)),
            None => Err(redb::Error::Corrupted("the database is being replaced".to_owned())),
        }
    }

    /// The record of a name, and the version below which nothing may be announced.
    pub(super) fn name(&self, key: &RecordKey) -> (Option<Record>, u64) {
        let key = name_key(key);
        let record = match self.read(NAMES, &key) {
            Ok(None) => None,
            Ok(Some(body)) => decode_name(&body).or_else(|| self.lost("malformed")),
            Err(error) => self.lost(&error.to_string()),
        };
        (record, self.floor.load(Ordering::Relaxed))
    }

    /// Records of many names and the roots of the files there, in one transaction.
    pub(super) fn all(&self, asked: &[(RecordKey, FileState)]) -> Vec<Recalled> {
        let read = self.with_database(|database| {
            let transaction = database.begin_read()?;
            let (names, roots) = (transaction.open_table(NAMES)?, transaction.open_table(ROOTS)?);
            let sums = transaction.open_table(CHECKSUMS)?;
            let mut found = Vec::with_capacity(asked.len());
            for (key, FileState { fingerprint, .. }) in asked {
                let name = name_key(key);
                let record = match names.get(name.as_slice())? {
                    None => None,
                    Some(value) => body_of(&name, value.value())
                        .and_then(decode_name)
                        .or_else(|| self.lost("malformed")),
                };
                let object = fingerprint.object();
                let root = roots.get(object.as_slice())?.and_then(|value| {
                    let (state, known) = body_of(object, value.value())?.split_at_checked(24)?;
                    (state == fingerprint.state()).then(|| known.try_into().ok())?
                });
                let checksums = checksums::find(&sums, fingerprint)?;
                found.push(Recalled { record, version_floor: 0, root, checksums });
            }
            Ok(found)
        });
        let mut found = read.unwrap_or_else(|error| {
            self.lost(&error.to_string());
            vec![Recalled::default(); asked.len()]
        });
        let (version_floor, fresh) = (self.floor.load(Ordering::Relaxed), self.fresh());
        for (recalled, (_, of)) in found.iter_mut().zip(asked) {
            recalled.version_floor = version_floor;
            recalled.root = fresh.get(&of.fingerprint).copied().or(recalled.root);
        }
        found
    }

    pub(super) fn root(&self, fingerprint: &Fingerprint) -> Option<[u8; 32]> {
        if let Some(root) = self.fresh().get(fingerprint) {
            return Some(*root);
        }
        let body = self.read(ROOTS, fingerprint.object()).ok()??;
        let (state, root) = body.split_at_checked(24)?;
        (state == fingerprint.state()).then(|| root.try_into().ok())?
    }

    /// Roots that cannot be written, and are too many, are computed again.
    pub(super) fn remember(&self, root: RootRecord) {
        let mut fresh = self.fresh();
        if fresh.len() >= FRESH_MAX {
            fresh.clear();
        }
        fresh.insert(root.fingerprint, root.root);
    }

    pub(super) fn commit(
        &self,
        names: &[(RecordKey, Record)],
        roots: &[RootRecord],
    ) -> Result<Vec<bool>, StateError> {
        if let Some(highest) = names.iter().map(|(_, record)| record.version).max() {
            self.highest.raise(highest)?;
        }
        let kept = match self.write(names, roots) {
            Err(error) if is_broken(&error) => {
                self.start_anew(&error)?;
                if !names.is_empty() {
                    // Asked again, they get versions above the floor, which these are below.
                    return Err(failed(&self.path)(error));
                }
                self.write(names, roots).map_err(failed(&self.path))?
            }
            other => other.map_err(failed(&self.path))?,
        };
        let mut fresh = self.fresh();
        for root in roots {
            fresh.remove(&root.fingerprint);
        }
        Ok(kept)
    }

    fn write(
        &self,
        names: &[(RecordKey, Record)],
        roots: &[RootRecord],
    ) -> Result<Vec<bool>, redb::Error> {
        self.with_database(|database| {
            let transaction = database.begin_write()?;
            let mut kept = Vec::with_capacity(names.len());
            {
                let mut meta = transaction.open_table(META)?;
                meta.insert(FLOOR, self.floor.load(Ordering::Relaxed))?;
                let mut table = transaction.open_table(NAMES)?;
                for (key, record) in names {
                    let key = name_key(key);
                    // Two threads may have decided about the same name: the first one counts.
                    let is_above = table.get(key.as_slice())?.is_none_or(|value| {
                        let known = body_of(&key, value.value()).and_then(decode_name);
                        known.is_none_or(|known| known == *record || known.version < record.version)
                    });
                    kept.push(is_above);
                    if is_above {
                        let value = checked(&key, &encode_name(record));
                        table.insert(key.as_slice(), value.as_slice())?;
                    }
                }
                let mut table = transaction.open_table(ROOTS)?;
                for record in roots {
                    let object = record.fingerprint.object();
                    let body = [&record.fingerprint.state()[..], &record.root].concat();
                    table.insert(object.as_slice(), checked(object, &body).as_slice())?;
                }
            }
            transaction.commit()?;
            Ok(kept)
        })
    }

    /// The body of a value whose checksum matches.
    fn read(
        &self,
        table: TableDefinition<'_, &[u8], &[u8]>,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, redb::Error> {
        let value = self.with_database(|database| {
            let transaction = database.begin_read()?;
            let table = transaction.open_table(table)?;
            Ok(table.get(key)?.map(|value| value.value().to_vec()))
        });
        let Some(value) = value? else { return Ok(None) };
        match body_of(key, &value) {
            Some(body) => Ok(Some(body.to_vec())),
            None => Err(redb::Error::Corrupted("checksum does not match".to_owned())),
        }
    }

    /// A version announced before is not known any more: all later ones must be above it.
    fn lost(&self, reason: &str) -> Option<Record> {
        tracing::error!(path = %self.path.display(), reason, "a record is lost");
        self.raise_floor();
        None
    }

    fn fresh(&self) -> MutexGuard<'_, HashMap<Fingerprint, [u8; 32]>> {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        self.close();
    }
}

fn failed(path: &Path) -> impl FnOnce(redb::Error) -> StateError {
    let path = path.to_path_buf();
    move |source| StateError::Records { path, source: Box::new(source) }
}

/// redb asserts what it reads; a broken file must not take the server down.
fn guarded<T>(act: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, redb::Error> {
    catch_unwind(AssertUnwindSafe(act))
        .unwrap_or_else(|_| Err(redb::Error::Corrupted("the database is inconsistent".to_owned())))
}

/// Opens the file and checks every page, which redb does not do by itself; a flipped bit in a key
/// would look like a name never announced. False if something had to be repaired.
fn open_database(path: &Path) -> Result<(Database, bool), redb::Error> {
    let mut database = guarded(|| {
        let mut builder = Database::builder();
        Ok(builder.set_cache_size(CACHE_BYTES).create(path)?)
    })?;
    let checked = guarded(|| Ok(database.check_integrity()?));
    match checked {
        Ok(is_whole) => Ok((database, is_whole)),
        Err(error) => {
            close(database);
            Err(error)
        }
    }
}

/// Closing flushes what is in memory, and may stumble over what is broken.
fn close(database: Database) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(database)));
}

/// True if the file's content is to blame rather than the disk or permissions.
fn is_broken(error: &redb::Error) -> bool {
    match error {
        redb::Error::Corrupted(_) | redb::Error::UpgradeRequired(_) => true,
        redb::Error::Io(error) => matches!(
            error.kind(),
            std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof
        ),
        _ => false,
    }
}

fn set_aside(path: &Path) -> Result<(), StateError> {
    let aside = path.with_extension(format!("broken-{}", Clock::new().unix_ns() / 1_000_000_000));
    std::fs::rename(path, aside).map_err(at(path))
}

/// Makes the tables, and raises the floor that is kept to `floor`.
fn prepare(database: &Database, floor: u64) -> Result<u64, redb::Error> {
    let transaction = database.begin_write()?;
    let floor = {
        transaction.open_table(NAMES)?;
        transaction.open_table(ROOTS)?;
        transaction.open_table(CHECKSUMS)?;
        let mut meta = transaction.open_table(META)?;
        let kept = meta.get(FLOOR)?.map_or(0, |floor| floor.value());
        meta.insert(FLOOR, floor.max(kept))?;
        floor.max(kept)
    };
    transaction.commit()?;
    Ok(floor)
}

fn checksum(key: &[u8], body: &[u8]) -> [u8; CHECK_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(key).update(body);
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&hasher.finalize().as_bytes()[..CHECK_BYTES]);
    check
}

/// Rest of a value after its checksum, if that matches.
fn body_of<'a>(key: &[u8], value: &'a [u8]) -> Option<&'a [u8]> {
    let (check, body) = value.split_at_checked(CHECK_BYTES)?;
    (check == checksum(key, body)).then_some(body)
}

fn checked(key: &[u8], body: &[u8]) -> Vec<u8> {
    [checksum(key, body).as_slice(), body].concat()
}

fn name_key(key: &RecordKey) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[u8::from(key.listing)]).update(&key.name);
    *hasher.finalize().as_bytes()
}

fn encode_name(record: &Record) -> Vec<u8> {
    let mut body = record.version.to_be_bytes().to_vec();
    match &record.subject {
        Subject::File(fingerprint) => {
            body.push(0);
            body.extend_from_slice(fingerprint.as_bytes());
        }
        Subject::Listing(root) => {
            body.push(1);
            body.extend_from_slice(root);
        }
    }
    body
}

fn decode_name(body: &[u8]) -> Option<Record> {
    let (version, rest) = body.split_first_chunk()?;
    let (kind, rest) = rest.split_first()?;
    let subject = match (kind, rest.len()) {
        (0, Fingerprint::BYTES) => Subject::File(Fingerprint::from_bytes(rest.try_into().ok()?)),
        (1, 32) => Subject::Listing(rest.try_into().ok()?),
        _ => return None,
    };
    Some(Record { subject, version: u64::from_be_bytes(*version) })
}

#[cfg(test)]
mod tests;
