//! One file of a backup.
//!
//! ```text
//! file  = "byname-backup 1\n" frame*
//! frame = kind:1 length:4 payload
//! kinds : 1 about (JSON, first) · 2 rows · 3 transaction (JSON) · 4 end (JSON) · 6 seal
//!         5 sum (last)
//! ```
//! `rows` are changes as `byname_catalog::RowChange` writes them, whole ones. The sum is BLAKE3 of
//! all octets before its frame: a file that is torn or altered is refused. The seal is a Data
//! packet of the head about BLAKE3 of all before it (`seal`). A file has its name when
//! it is whole and synced, and not before.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use byname_catalog::id::TransactionNumber;
use serde_json::Value;

use super::error::BackupError;
use super::source::BackupSource;

const MAGIC: &[u8; 16] = b"byname-backup 1\n";
/// What names of files with all rows begin with.
pub(super) const SNAPSHOT: &str = "snapshot-";
/// What names of files with changes begin with.
pub(super) const SEGMENT: &str = "log-";
/// What their names end in.
pub(super) const SUFFIX: &str = ".byname-backup";
/// Octets before a payload.
const HEADER_BYTES: usize = 5;
/// No payload is longer: a change has 64 KiB at most.
const PAYLOAD_BYTES_MAX: usize = 256 << 10;

/// What a frame has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum FrameKind {
    About = 1,
    Rows = 2,
    Transaction = 3,
    End = 4,
    Sum = 5,
    Seal = 6,
}

impl FrameKind {
    fn from_number(number: u8) -> Option<Self> {
        let all = [Self::About, Self::Rows, Self::Transaction, Self::End, Self::Sum, Self::Seal];
        all.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// A file being written. Dropped before [`PartWriter::finish`], it leaves nothing.
pub(super) struct PartWriter {
    file: BufWriter<File>,
    hasher: blake3::Hasher,
    temporary: PathBuf,
}

impl PartWriter {
    /// Begins a file that will lie in this directory.
    pub(super) fn begin(directory: &Path, about: &Value) -> Result<Self, BackupError> {
        // For its owner alone: it has what only operators may ask for.
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600);
        let (temporary, file) = fresh(directory, "part", |path| options.open(path))?;
        let file = BufWriter::new(file);
        let mut part = Self { file, hasher: blake3::Hasher::new(), temporary };
        part.write(MAGIC)?;
        part.json(FrameKind::About, about)?;
        Ok(part)
    }

    pub(super) fn json(&mut self, kind: FrameKind, value: &Value) -> Result<(), BackupError> {
        self.frame(kind, value.to_string().as_bytes())
    }

    pub(super) fn frame(&mut self, kind: FrameKind, payload: &[u8]) -> Result<(), BackupError> {
        self.write(&[kind as u8])?;
        self.write(&(payload.len() as u32).to_be_bytes())?;
        self.write(payload)
    }

    fn write(&mut self, octets: &[u8]) -> Result<(), BackupError> {
        self.hasher.update(octets);
        self.file.write_all(octets).map_err(of(&self.temporary))
    }

    /// Has the file sealed, and gives it its name.
    pub(super) fn finish(
        mut self,
        path: &Path,
        end: &Value,
        source: &mut dyn BackupSource,
    ) -> Result<(), BackupError> {
        self.json(FrameKind::End, end)?;
        let seal = source.seal(self.hasher.finalize().as_bytes())?;
        self.frame(FrameKind::Seal, &seal)?;
        let sum = *self.hasher.finalize().as_bytes();
        self.frame(FrameKind::Sum, &sum)?;
        let mut place = || {
            self.file.flush()?;
            self.file.get_ref().sync_all()?;
            fs::rename(&self.temporary, path)?;
            File::open(directory_of(path))?.sync_all()
        };
        place().map_err(of(path))
    }
}

impl Drop for PartWriter {
    fn drop(&mut self) {
        // It is gone if it has got its name.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// The directory of a file.
pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Makes something in a directory under a name that nobody has.
pub(super) fn fresh<T>(
    directory: &Path,
    what: &str,
    make: impl Fn(&Path) -> std::io::Result<T>,
) -> Result<(PathBuf, T), BackupError> {
    let mut number = 0;
    loop {
        let name = format!(".byname-backup-{what}.{}.{number}", std::process::id());
        let path = directory.join(name);
        match make(&path) {
            Ok(made) => return Ok((path, made)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < 100 => {
                number += 1;
            }
            Err(error) => return Err(of(&path)(error)),
        }
    }
}

/// What a file is called: what it has, and the numbers of its transactions.
pub(super) fn part_name(kind: &str, numbers: &[TransactionNumber]) -> String {
    let numbers: Vec<String> = numbers.iter().map(|number| format!("{:016x}", number.0)).collect();
    format!("{kind}{}{SUFFIX}", numbers.join("-"))
}

/// The highest transaction of each part's name, so that nobody has to read all of it.
pub(super) fn ends(paths: &BTreeMap<String, PathBuf>) -> Option<TransactionNumber> {
    let end = |name: &String| {
        let numbers = name.strip_suffix(SUFFIX)?.rsplit('-').next()?;
        u64::from_str_radix(numbers, 16).ok()
    };
    paths.keys().filter_map(end).max().map(TransactionNumber)
}

/// What a file of a backup says about itself before anything else.
pub(super) fn about(path: &Path) -> Result<Value, BackupError> {
    let mut reader = PartReader::open(path)?;
    reader.about()
}

/// A file being read, from its beginning to its end.
pub(super) struct PartReader {
    file: BufReader<File>,
    hasher: blake3::Hasher,
    path: PathBuf,
    /// What the seal has to be about, and the seal.
    sealed: Option<([u8; 32], Vec<u8>)>,
}

impl PartReader {
    pub(super) fn open(path: &Path) -> Result<Self, BackupError> {
        let file = BufReader::new(File::open(path).map_err(of(path))?);
        let (hasher, path) = (blake3::Hasher::new(), path.to_owned());
        let mut part = Self { file, hasher, path, sealed: None };
        let mut magic = [0; MAGIC.len()];
        part.read(&mut magic)?;
        if magic != *MAGIC {
            return Err(part.damaged("it is no backup, or one of another version"));
        }
        Ok(part)
    }

    pub(super) fn about(&mut self) -> Result<Value, BackupError> {
        match self.frame()? {
            (FrameKind::About, payload) => self.parsed(&payload),
            _ => Err(self.damaged("it does not say what it is")),
        }
    }

    /// The next frame. Behind the one with the sum there is nothing.
    pub(super) fn frame(&mut self) -> Result<(FrameKind, Vec<u8>), BackupError> {
        let sum = *self.hasher.finalize().as_bytes();
        let mut header = [0; HEADER_BYTES];
        self.read(&mut header)?;
        let [kind, length @ ..] = header;
        let length = u32::from_be_bytes(length) as usize;
        let kind = FrameKind::from_number(kind).filter(|_| length <= PAYLOAD_BYTES_MAX);
        let kind = kind.ok_or_else(|| self.damaged("there is something that is no part of it"))?;
        let mut payload = vec![0; length];
        self.read(&mut payload)?;
        if kind == FrameKind::Sum {
            let is_end = self.file.read(&mut [0]).map_err(of(&self.path))? == 0;
            if payload != sum || !is_end {
                return Err(self.damaged("its sum is another"));
            }
        }
        if kind == FrameKind::Seal && self.sealed.replace((sum, payload.clone())).is_some() {
            return Err(self.damaged("it has two seals"));
        }
        Ok((kind, payload))
    }

    /// What the seal has to be about, and the seal, once it has been read.
    pub(super) fn sealed(&self) -> Option<&([u8; 32], Vec<u8>)> {
        self.sealed.as_ref()
    }

    pub(super) fn parsed(&self, payload: &[u8]) -> Result<Value, BackupError> {
        serde_json::from_slice(payload).map_err(|_| self.damaged("a line of it cannot be read"))
    }

    pub(super) fn damaged(&self, what: &'static str) -> BackupError {
        BackupError::Damaged { path: self.path.clone(), what }
    }

    fn read(&mut self, octets: &mut [u8]) -> Result<(), BackupError> {
        match self.file.read_exact(octets) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(self.damaged("it is torn: its end is missing"))
            }
            read => {
                self.hasher.update(octets);
                read.map_err(of(&self.path))
            }
        }
    }
}

pub(super) fn of(path: &Path) -> impl FnOnce(std::io::Error) -> BackupError + use<> {
    let path = path.to_owned();
    move |source| BackupError::File { path, source }
}
