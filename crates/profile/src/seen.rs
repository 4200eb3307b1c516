//! The newest version seen of each name, kept between runs, so that nobody can pass off an old
//! version as the current one.
//!
//! [`text`] says what stands in the file. A change is made under a lock: the file is read again,
//! what this run has learned is put in, and the whole is renamed into place. So programs that end
//! at once lose nothing of one another, and a name that was forgotten meanwhile is not brought back
//! by a run that had only read it. A run that has learned nothing leaves the file alone, unless it
//! is so long that the order will soon say what is dropped.

mod text;

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use byname_packet::Name;
use byname_transfer::versions::{DirectoryVersions, NAMES_MAX, Remembered, VersionMemory};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use text::{Contents, Text};
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

/// Part of a memory that may have to be kept, apart from the memory: a disk takes its time.
pub(crate) struct Snapshot {
    /// Names in the order of [`VersionMemory::iter`], their versions, and whether each was learned.
    names: Vec<(Name, u64, bool)>,
    /// In the order of [`VersionMemory::directories`].
    directories: Vec<(Name, Arc<DirectoryVersions>)>,
    /// What was learned of directories later than this is new.
    kept: u64,
    tick: u64,
}

impl Snapshot {
    /// Entries of a directory that were learned.
    fn learned<'a>(
        &self,
        entries: &'a DirectoryVersions,
    ) -> impl Iterator<Item = text::Entry<'a>> + use<'a> {
        let kept = self.kept;
        entries.iter().filter(move |(_, versions)| versions.learned > kept)
    }

    /// The file, if there was none.
    fn to_text(&self) -> Text {
        let mut text = Text::default();
        for (directory, entries) in &self.directories {
            text.push_directory(directory, self.learned(entries));
        }
        for (name, version, _) in self.names.iter().filter(|(_, _, is_learned)| *is_learned) {
            text.push_name(name, *version);
        }
        text
    }

    /// Adds to what stands in the file, in the order of use, so that what was used last is the last
    /// to be dropped. What was only read from the file, and was forgotten there meanwhile, does not
    /// come back.
    fn merge_into(self, contents: Contents) -> VersionMemory {
        let names: HashSet<Name> = contents.names.iter().map(|(name, _)| name.clone()).collect();
        let directories = contents.directories.iter().map(|(directory, _)| directory.clone());
        let directories: HashSet<Name> = directories.collect();
        let mut merged = VersionMemory::default();
        contents.restore(&mut merged);
        for (directory, entries) in &self.directories {
            let learned: DirectoryVersions = self.learned(entries).collect();
            if !learned.is_empty() || directories.contains(directory) {
                merged.insert_directory(directory, learned);
            }
        }
        for (name, version, is_learned) in self.names {
            if is_learned || names.contains(&name) {
                merged.insert(name, version);
            }
        }
        merged
    }
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
        let path = self.path();
        Contents::parse(&read(&path)?).map_err(of_line(&path))?.restore(memory);
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
        let (path, tick) = (self.path(), snapshot.tick);
        let octets = read(&path)?;
        let contents = Contents::parse(&octets).map_err(of_line(&path))?;
        let text = match octets.is_empty() {
            true => snapshot.to_text(),
            false => Text::of(&snapshot.merge_into(contents)),
        };
        self.write(&text)?;
        self.kept = tick;
        Ok(())
    }

    /// Forgets a name and what is below it; returns how many names that were.
    ///
    /// # Errors
    /// [`SeenError`]; the file is then as before.
    pub fn forget(&mut self, prefix: &Name) -> Result<usize, SeenError> {
        let _lock = self.lock()?;
        let path = self.path();
        let octets = read(&path)?;
        let mut contents = Contents::parse(&octets).map_err(of_line(&path))?;
        let count = contents.forget(prefix);
        if count > 0 {
            let mut memory = VersionMemory::default();
            contents.restore(&mut memory);
            self.write(&Text::of(&memory))?;
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
    fn write(&self, text: &Text) -> Result<(), SeenError> {
        let path = self.path();
        let temporary = self.directory.join(".seen-versions.tmp");
        let written = File::create(&temporary)
            .and_then(|mut out| out.write_all(text.last_lines(FILE_BYTES_MAX)))
            .and_then(|()| std::fs::rename(&temporary, &path));
        written.map_err(disk(&path))
    }
}

/// What has to be written of a memory of which the file knows all until `kept`; `None` if nothing.
pub(crate) fn snapshot(memory: &VersionMemory, kept: u64) -> Option<Snapshot> {
    if memory.name_count() < ORDERED_FROM && !memory.has_learned_since(kept) {
        return None;
    }
    let name = |it: Remembered<'_>| (it.name.clone(), it.version, it.learned > kept);
    let directories = memory.directories().map(|(name, entries)| (name.clone(), entries.clone()));
    Some(Snapshot {
        names: memory.iter().map(name).collect(),
        directories: directories.collect(),
        kept,
        tick: memory.tick(),
    })
}

fn disk(path: &Path) -> impl FnOnce(std::io::Error) -> SeenError {
    let path = path.to_owned();
    move |source| SeenError::Disk { path, source }
}

fn of_line(path: &Path) -> impl FnOnce(usize) -> SeenError {
    let path = path.to_owned();
    move |line| SeenError::Line { path, line }
}

/// The text of the file; empty if there is none.
fn read(path: &Path) -> Result<String, SeenError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(disk(path)(error)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(disk(path))?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(SeenError::TooLong { path: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|_| SeenError::NotText { path: path.to_owned() })
}
