//! The audit log in files of the head's directory: lines of JSON, the oldest file goes when there
//! are too many.
//!
//! Lines are written before the answers of their batch leave, and are not synced: a machine that
//! loses its power may lose the last seconds of them. What was *changed* is in the change log.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// Directory of the files, in the head's.
pub(crate) const AUDIT_DIRECTORY: &str = "audit";
/// Octets after which a file is followed by another.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Files that are kept.
const FILES_MAX: usize = 16;
/// Octets that one question reads, at most.
const READ_BYTES_MAX: u64 = 256 << 10;
const SUFFIX: &str = ".jsonl";

/// A place in the log: behind so many octets of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Position {
    file: u64,
    offset: u64,
}

impl Position {
    /// `FILE:OFFSET`; nothing is the beginning.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let (file, offset) = text.split_once(':')?;
        Some(Self { file: file.parse().ok()?, offset: offset.parse().ok()? })
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

/// The files.
#[derive(Debug)]
pub(crate) struct AuditFiles {
    directory: PathBuf,
    /// Octets of a file, at most, and number of files.
    bounds: (u64, usize),
    current: Mutex<Option<Current>>,
}

/// The file that is written.
#[derive(Debug)]
struct Current {
    file: File,
    bytes: u64,
}

impl AuditFiles {
    /// Those of a head. They are made when there is something to be written.
    pub(crate) fn new(directory: &Path) -> Self {
        Self::bounded(directory, (FILE_BYTES_MAX, FILES_MAX))
    }

    fn bounded(directory: &Path, bounds: (u64, usize)) -> Self {
        let directory = directory.join(AUDIT_DIRECTORY);
        Self { directory, bounds, current: Mutex::new(None) }
    }

    /// Adds lines.
    ///
    /// # Errors
    /// [`std::io::Error`]; some of them may be there, and the last may be cut short.
    pub(crate) fn write(&self, lines: &[Value]) -> std::io::Result<()> {
        let mut octets = Vec::new();
        for line in lines {
            octets.extend_from_slice(line.to_string().as_bytes());
            octets.push(b'\n');
        }
        let mut guard = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let mut current = match guard.take() {
            Some(current) if current.bytes < self.bounds.0 => current,
            _ => self.next_file()?,
        };
        current.file.write_all(&octets)?;
        current.bytes += octets.len() as u64;
        *guard = Some(current);
        Ok(())
    }

    /// The last file if it has room, or one behind it.
    fn next_file(&self) -> std::io::Result<Current> {
        // Its lines have names that modes may keep from others.
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let numbers = self.numbers()?;
        let last = numbers.last().copied().unwrap_or(0);
        let (mut file, mut bytes) = self.append(last.max(1))?;
        if bytes >= self.bounds.0 {
            (file, bytes) = self.append(last + 1)?;
        }
        if bytes > 0 && !ends_with_a_line(&file)? {
            // What wrote it was killed within a line.
            file.write_all(b"\n")?;
            bytes += 1;
        }
        let kept = self.numbers()?;
        for old in kept.iter().take(kept.len().saturating_sub(self.bounds.1)) {
            std::fs::remove_file(self.path(*old))?;
        }
        Ok(Current { file, bytes })
    }

    fn append(&self, number: u64) -> std::io::Result<(File, u64)> {
        let mut options = OpenOptions::new();
        let file =
            options.read(true).append(true).create(true).mode(0o600).open(self.path(number))?;
        let bytes = file.metadata()?.len();
        Ok((file, bytes))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number:010}{SUFFIX}"))
    }

    /// Numbers of the files, in order.
    fn numbers(&self) -> std::io::Result<Vec<u64>> {
        let entries = match std::fs::read_dir(&self.directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut numbers = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            let number: Option<u64> =
                name.to_str().and_then(|name| name.strip_suffix(SUFFIX)?.parse().ok());
            numbers.extend(number);
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Lines behind a place, each with the place behind it, until `take` wants no more. If the
    /// file of that place is gone, those of the oldest that is left come.
    ///
    /// # Errors
    /// [`std::io::Error`].
    pub(crate) fn read(
        &self,
        after: Position,
        mut take: impl FnMut(Value, Position) -> bool,
    ) -> std::io::Result<()> {
        let mut left = READ_BYTES_MAX;
        for number in self.numbers()?.into_iter().filter(|number| *number >= after.file) {
            let mut file = match File::open(self.path(number)) {
                // It was the oldest, and went just now.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                file => file?,
            };
            let mut offset = if number == after.file { after.offset } else { 0 };
            file.seek(SeekFrom::Start(offset))?;
            let mut lines = BufReader::new(file);
            let mut line = Vec::new();
            while left > 0 {
                line.clear();
                let bytes =
                    lines.by_ref().take(READ_BYTES_MAX).read_until(b'\n', &mut line)? as u64;
                // What is still being written has no end yet.
                if line.last() != Some(&b'\n') {
                    break;
                }
                offset += bytes;
                left = left.saturating_sub(bytes);
                let Ok(value) = serde_json::from_slice(&line) else { continue };
                if !take(value, Position { file: number, offset }) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

fn ends_with_a_line(file: &File) -> std::io::Result<bool> {
    let mut last = [0];
    let mut file = file;
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn all(files: &AuditFiles, after: Position) -> Vec<(u64, Position)> {
        let mut found = Vec::new();
        let take = |line: Value, at| {
            found.push((line["n"].as_u64().unwrap(), at));
            true
        };
        files.read(after, take).unwrap();
        found
    }

    #[test]
    fn files_follow_each_other_and_the_oldest_goes() {
        let directory = tempfile::tempdir().unwrap();
        let files = AuditFiles::bounded(directory.path(), (100, 3));
        assert_eq!(all(&files, Position::default()), []);
        for n in 0..100_u64 {
            files.write(&[json!({ "n": n })]).unwrap();
        }
        let found = all(&files, Position::default());
        let (first, last) = (found[0].0, found.last().unwrap().0);
        assert_eq!(last, 99);
        assert!((70..95).contains(&first), "three files of about twelve lines: {first}");
        assert!(found.windows(2).all(|two| two[1].0 == two[0].0 + 1 && two[0].1 < two[1].1));
        // From each place the rest comes, and nothing from the end.
        for (index, (_, at)) in found.iter().enumerate() {
            assert_eq!(all(&files, *at), found[index + 1..]);
            assert_eq!(Position::read(&at.to_string()), Some(*at));
        }
        assert_eq!(Position::read("x"), None);
    }

    #[test]
    fn a_line_that_was_cut_short_spoils_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let files = AuditFiles::bounded(directory.path(), (1000, 3));
        files.write(&[json!({ "n": 1 })]).unwrap();
        let path = files.path(1);
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(b"{\"n\":2").unwrap();
        assert_eq!(all(&files, Position::default()).len(), 1);
        let files = AuditFiles::bounded(directory.path(), (1000, 3));
        files.write(&[json!({ "n": 3 })]).unwrap();
        let found: Vec<u64> = all(&files, Position::default()).iter().map(|(n, _)| *n).collect();
        assert_eq!(found, [1, 3]);
    }
}
