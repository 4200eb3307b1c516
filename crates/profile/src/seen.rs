//! The newest version seen of each name, kept between runs, so that nobody can pass off an old
//! version as the current one.
//!
//! One line a name, `VERSION NAME`, longest unused first; ` listed` follows where only a manifest
//! announced it. A change is made under a lock: the file is read again, what this run has learned
//! is put in, and the whole is renamed into place. So programs that end at once lose nothing of one
//! another, and a name that was forgotten meanwhile is not brought back by a run that had only read
//! it. A run that has learned nothing leaves the file alone, unless it is so long that the order
//! will soon say what is dropped.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use byname_packet::Name;
use byname_transfer::versions::{NAMES_MAX, VersionMemory};
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
pub(crate) struct Line {
    name: Name,
    version: u64,
    /// Only a manifest announced it.
    is_listed: bool,
}

impl Line {
    fn insert_into(self, memory: &mut VersionMemory) {
        match self.is_listed {
            true => memory.insert_listed(self.name, self.version),
            false => memory.insert(self.name, self.version),
        }
    }
}

/// All that a memory knows, each kind longest unused first. What manifests announced comes first:
/// it is the first to be dropped.
pub(crate) fn lines(memory: &VersionMemory) -> impl Iterator<Item = Line> {
    let line = |is_listed| {
        move |(name, version): (&Name, u64)| Line { name: name.clone(), version, is_listed }
    };
    memory.iter_listed().map(line(true)).chain(memory.iter().map(line(false)))
}

/// The file of versions seen, and what it said when this run began.
#[derive(Debug)]
pub struct SeenVersions {
    directory: PathBuf,
    loaded: HashMap<Name, Loaded>,
}

/// What the file said of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loaded {
    version: u64,
    is_listed: bool,
}

/// The same by name.
fn loaded(lines: impl Iterator<Item = Line>) -> HashMap<Name, Loaded> {
    lines.map(|Line { name, version, is_listed }| (name, Loaded { version, is_listed })).collect()
}

impl SeenVersions {
    /// The file in a state directory, which need not exist.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), loaded: HashMap::new() }
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
        self.loaded = loaded(entries.iter().cloned());
        entries.into_iter().for_each(|line| line.insert_into(memory));
        Ok(())
    }

    /// Keeps what a memory has learned since it was loaded. What the file knows and this memory
    /// does not, stays.
    ///
    /// # Errors
    /// [`SeenError`]; the file is then as before.
    pub fn save(&mut self, memory: &VersionMemory) -> Result<(), SeenError> {
        self.save_lines(lines(memory).collect())
    }

    /// [`save`](SeenVersions::save) of a memory's [`lines`].
    pub(crate) fn save_lines(&mut self, learned: Vec<Line>) -> Result<(), SeenError> {
        if learned.len() < ORDERED_FROM && !learned.iter().any(|line| self.is_new(line)) {
            return Ok(());
        }
        let _lock = self.lock()?;
        let entries = read(&self.path())?;
        if entries.is_empty() {
            self.write(learned.iter().filter(|line| self.is_learned(line)))?;
        } else {
            self.merge(entries, &learned)?;
        }
        self.loaded = loaded(learned.into_iter());
        Ok(())
    }

    /// The file did not say this.
    fn is_new(&self, line: &Line) -> bool {
        let Line { name, version, is_listed } = line;
        let said = Loaded { version: *version, is_listed: *is_listed };
        self.loaded.get(name) != Some(&said)
    }

    /// The file said nothing of this name, or had an older version.
    fn is_learned(&self, line: &Line) -> bool {
        self.loaded.get(&line.name).is_none_or(|before| before.version < line.version)
    }

    /// Writes what the file says and what was learned.
    fn merge(&self, entries: Vec<Line>, learned: &[Line]) -> Result<(), SeenError> {
        let known: HashSet<&Name> = entries.iter().map(|line| &line.name).collect();
        let is_wanted = |line: &&Line| self.is_learned(line) || known.contains(&line.name);
        let wanted: Vec<&Line> = learned.iter().filter(is_wanted).collect();
        drop(known);
        let mut merged = VersionMemory::default();
        entries.into_iter().for_each(|line| line.insert_into(&mut merged));
        // In their order, so that what was used last is the last to be dropped.
        wanted.into_iter().for_each(|line| line.clone().insert_into(&mut merged));
        let lines: Vec<Line> = lines(&merged).collect();
        self.write(lines.iter())
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
