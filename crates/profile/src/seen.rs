//! The newest version seen of each name, kept between runs, so that nobody can pass off an old
//! version as the current one.
//!
//! One line a name, `VERSION NAME`, longest unused first; ` listed` follows where only a manifest
//! announced it. A change is made under a lock: the file is read again, what this run has learned
//! is put in, and the whole is renamed into place. So programs that end at once lose nothing of one
//! another, and a name that was forgotten meanwhile is not brought back by a run that had only read
//! it. A run that has learned nothing leaves the file alone, unless it is so long that the order
//! will soon say what is dropped.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use byname_packet::Name;
use byname_transfer::versions::{NAMES_MAX, Remembered, VersionMemory};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use thiserror::Error;

/// Longest file; with names of usual length it holds all that a memory remembers.
const FILE_BYTES_MAX: usize = 64 << 20;
/// Names from which on the order of the lines is kept even if nothing else has changed.
const ORDERED_FROM: usize = NAMES_MAX / 4;

/// Versions seen that could not be read or kept.
#[derive(Debug, Error)]
pub enum SeenError {
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file is no text, so nobody knows what was seen.
    #[error("{} is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The file is longer than any that is written.
    #[error("{} is longer than {FILE_BYTES_MAX} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// A line says something else.
    #[error("{}:{line}: not a version and a name", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
    },
}

impl SeenError {
    /// The errno for programs that know only numbers. A damaged file is EUCLEAN, as a damaged file
    /// system is: it takes a person to say that nothing of it counts.
    pub fn errno(&self) -> i32 {
        match self {
            SeenError::Disk { source, .. } => crate::errno::of_io(source),
            SeenError::NotText { .. } | SeenError::TooLong { .. } | SeenError::Line { .. } => {
                Errno::UCLEAN.raw_os_error()
            }
        }
    }
}

/// A line of the file.
#[derive(Clone, Debug)]
struct Line {
    name: Name,
    version: u64,
    /// Only a manifest announced it.
    is_listed: bool,
}

impl Line {
    fn of(remembered: Remembered<'_>) -> Self {
        let Remembered { name, version, is_listed, .. } = remembered;
        Line { name: name.clone(), version, is_listed }
    }

    /// As something that was learned just now.
    fn insert_into(&self, memory: &mut VersionMemory) {
        match self.is_listed {
            true => memory.insert_listed(self.name.clone(), self.version),
            false => memory.insert(self.name.clone(), self.version),
        }
    }
}

/// Part of a memory that may have to be kept, apart from the memory: a disk takes its time.
pub(crate) struct Snapshot {
    /// The names, in the order of [`VersionMemory::iter`], and whether each was learned.
    lines: Vec<(Line, bool)>,
    tick: u64,
}

/// The file of versions seen, and up to when it knows what a memory has learned.
#[derive(Debug)]
pub struct SeenVersions {
    directory: PathBuf,
    kept: u64,
}

impl SeenVersions {
    /// The file in a state directory, which need not exist.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), kept: 0 }
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.directory.join("seen-versions")
    }

    /// Puts what the file says into a memory.
    ///
    /// # Errors
    /// [`SeenError`]; the memory is then as before.
    pub fn load(&mut self, memory: &mut VersionMemory) -> Result<(), SeenError> {
        let entries = read(&self.path())?;
        entries.into_iter().for_each(|it| memory.restore(it.name, it.version, it.is_listed));
        Ok(())
    }

    /// Keeps what a memory has learned since it was loaded. What the file knows and this memory
    /// does not, stays.
    ///
    /// # Errors
    /// [`SeenError`]; the file is then as before.
    pub fn save(&mut self, memory: &VersionMemory) -> Result<(), SeenError> {
        snapshot(memory, self.kept).map_or(Ok(()), |snapshot| self.save_snapshot(snapshot))
    }

    /// Up to when the file knows what a memory has learned.
    pub(crate) fn kept(&self) -> u64 {
        self.kept
    }

    /// [`save`](SeenVersions::save) of a [`snapshot`].
    pub(crate) fn save_snapshot(&mut self, snapshot: Snapshot) -> Result<(), SeenError> {
        let _lock = self.lock()?;
        let entries = read(&self.path())?;
        let Snapshot { mut lines, tick } = snapshot;
        let known: HashSet<&Name> = entries.iter().map(|line| &line.name).collect();
        // What was only read from the file, and was forgotten there meanwhile, does not come back.
        lines.retain(|(line, is_learned)| *is_learned || known.contains(&line.name));
        if known.is_empty() {
            self.write(lines.iter().map(|(line, _)| line))?;
        } else {
            let mut merged = VersionMemory::default();
            entries.into_iter().for_each(|it| merged.restore(it.name, it.version, it.is_listed));
            // In their order, so that what was used last is the last to be dropped.
            lines.iter().for_each(|(line, _)| line.insert_into(&mut merged));
            drop(lines);
            let lines: Vec<Line> = merged.iter().map(Line::of).collect();
            self.write(lines.iter())?;
        }
        self.kept = tick;
        Ok(())
    }

    /// Forgets a name and what is below it; returns how many names that were.
    ///
    /// # Errors
    /// [`SeenError`]; the file is then as before.
    pub fn forget(&mut self, prefix: &Name) -> Result<usize, SeenError> {
        let _lock = self.lock()?;
        let mut entries = read(&self.path())?;
        let before = entries.len();
        entries.retain(|line| !prefix.view().is_prefix_of(line.name.view()));
        let count = before - entries.len();
        if count > 0 {
            self.write(entries.iter())?;
        }
        Ok(count)
    }

    /// Waits for the lock, which the system drops with the file or the process. It is held for one
    /// reading and writing of the file.
    fn lock(&self) -> Result<File, SeenError> {
        std::fs::create_dir_all(&self.directory).map_err(disk(&self.directory))?;
        let path = self.directory.join("seen-versions.lock");
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(disk(&path))?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| disk(&path)(std::io::Error::from(error)))?;
        Ok(file)
    }

    /// Replaces the file. The lock is held, so a temporary file that is there was left behind.
    fn write<'a>(&self, lines: impl Iterator<Item = &'a Line>) -> Result<(), SeenError> {
        let mut text = String::new();
        lines.for_each(|line| format(line, &mut text));
        // The longest unused are dropped until the rest fits.
        let excess = text.len().saturating_sub(FILE_BYTES_MAX);
        let is_end = |at: &usize| text.as_bytes()[*at] == b'\n';
        let start = match excess {
            0 => 0,
            _ => (excess - 1..text.len()).find(is_end).map_or(text.len(), |end| end + 1),
        };
        let path = self.path();
        let temporary = self.directory.join(".seen-versions.tmp");
        let written = File::create(&temporary)
            .and_then(|mut out| out.write_all(&text.as_bytes()[start..]))
            .and_then(|()| std::fs::rename(&temporary, &path));
        written.map_err(disk(&path))
    }
}

/// What has to be written of a memory of which the file knows all until `kept`; `None` if nothing.
pub(crate) fn snapshot(memory: &VersionMemory, kept: u64) -> Option<Snapshot> {
    if memory.name_count() < ORDERED_FROM && !memory.has_learned_since(kept) {
        return None;
    }
    let line = |it: Remembered<'_>| (Line::of(it), it.learned > kept);
    Some(Snapshot { lines: memory.iter().map(line).collect(), tick: memory.tick() })
}

fn disk(path: &Path) -> impl FnOnce(std::io::Error) -> SeenError {
    let path = path.to_owned();
    move |source| SeenError::Disk { path, source }
}

/// All entries, longest unused first; none if there is no file.
fn read(path: &Path) -> Result<Vec<Line>, SeenError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(disk(path)(error)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(disk(path))?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(SeenError::TooLong { path: path.to_owned() });
    }
    let text =
        std::str::from_utf8(&bytes).map_err(|_| SeenError::NotText { path: path.to_owned() })?;
    let parsed = text.lines().zip(1..).map(|(line, number)| {
        parse(line).ok_or_else(|| SeenError::Line { path: path.to_owned(), line: number })
    });
    parsed.collect()
}

fn format(Line { name, version, is_listed }: &Line, text: &mut String) {
    let listed = if *is_listed { " listed" } else { "" };
    // Writing to memory does not fail.
    let _ = writeln!(text, "{version} {name}{listed}");
}

fn parse(line: &str) -> Option<Line> {
    let mut words = line.split(' ');
    let (version, name) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let is_listed = match words.next() {
        None => false,
        Some("listed") => words.next().is_none().then_some(true)?,
        Some(_) => return None,
    };
    Some(Line { name, version, is_listed })
}
