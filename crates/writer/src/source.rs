//! A local file to be written: opened, hashed, and read by those who pull it.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use byname_security::tree::{GROUP_BYTES, Hash, NODE_BYTES, Shape, Tree, UNIT_BYTES};

use crate::edge::Edge;
use crate::error::WriterError;
use crate::hashing::{HashError, tree_of};

const READ_BYTES: usize = 1 << 20;

/// A local file in one state.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    file: File,
    state: State,
    shape: Shape,
    root: [u8; 32],
    levels: Vec<Vec<u8>>,
    /// Permission bits that are not the local file's; it then has no time of its own either.
    mode: Option<u16>,
}

/// A state of a file, as the system tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    mode: u32,
}

impl State {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            mode: metadata.mode(),
        }
    }
}

impl Source {
    /// Opens a regular file and computes its root.
    ///
    /// # Errors
    /// [`WriterError::Local`], [`WriterError::Changed`] if it changes meanwhile, and
    /// [`WriterError::Stopped`].
    pub fn open(path: &Path, is_stopped: &dyn Fn() -> bool) -> Result<Self, WriterError> {
        let file = File::open(path).map_err(|source| local(path, source))?;
        Self::of_file(path, file, is_stopped)
    }

    /// The same for an open file, `path` being its name in messages.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn of_file(
        path: &Path,
        file: File,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, WriterError> {
        let failed = |source| local(path, source);
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(failed(io::Error::new(ErrorKind::InvalidInput, "not a regular file")));
        }
        let state = State::of(&metadata);
        let Tree { root, levels } =
            tree_of(&file, state.size, is_stopped).map_err(|error| match error {
                HashError::Stopped => WriterError::Stopped,
                HashError::Read(source) if source.kind() != ErrorKind::UnexpectedEof => {
                    failed(source)
                }
                // It was cut short meanwhile.
                HashError::Read(_) | HashError::Build(_) => {
                    WriterError::Changed { path: path.to_owned() }
                }
            })?;
        Self::hashed((path, file), state, root, levels)
    }

    /// The same for a file to which octets were only added since `edge` was made or brought up to
    /// date: what was there then is not read.
    ///
    /// # Errors
    /// As [`Source::open`]; [`WriterError::Changed`] if it is shorter by now.
    pub fn grown(
        path: &Path,
        file: File,
        edge: &mut Edge,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, WriterError> {
        let failed = |source| local(path, source);
        let changed = || WriterError::Changed { path: path.to_owned() };
        let state = State::of(&file.metadata().map_err(failed)?);
        let begun = edge.frontier.bytes();
        let whole = state.size - state.size % UNIT_BYTES as u64;
        if whole < begun {
            return Err(changed());
        }
        let mut buffer = vec![0; READ_BYTES.min((whole - begun) as usize)];
        let mut at = begun;
        while at < whole {
            if is_stopped() {
                return Err(WriterError::Stopped);
            }
            let piece = &mut buffer[..READ_BYTES.min((whole - at) as usize)];
            file.read_exact_at(piece, at).map_err(failed)?;
            edge.take(piece);
            at += piece.len() as u64;
        }
        let mut rest = vec![0; (state.size - whole) as usize];
        file.read_exact_at(&mut rest, whole).map_err(failed)?;
        let (root, levels) = match edge.finish(&rest) {
            Some(tree) => tree,
            None => {
                let mut all = vec![0; state.size as usize];
                file.read_exact_at(&mut all, 0).map_err(failed)?;
                (Hash::of(&all), Vec::new())
            }
        };
        Self::hashed((path, file), state, root, levels)
    }

    fn hashed(
        (path, file): (&Path, File),
        state: State,
        root: Hash,
        levels: Vec<Vec<u8>>,
    ) -> Result<Self, WriterError> {
        let (shape, root) = (Shape::new(state.size), *root.as_bytes());
        let source = Self { path: path.to_owned(), file, state, shape, root, levels, mode: None };
        source.check_unchanged()?;
        Ok(source)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Octets.
    pub fn size(&self) -> u64 {
        self.state.size
    }

    /// Root of its hash tree.
    pub fn root(&self) -> [u8; 32] {
        self.root
    }

    /// A file that was only made to be written: it has these permission bits, and no time.
    pub fn made_now(self, mode: u16) -> Self {
        Self { mode: Some(mode), ..self }
    }

    /// Permission bits.
    pub fn mode(&self) -> u16 {
        self.mode.unwrap_or((self.state.mode & 0o777) as u16)
    }

    /// True if its time is that of what is written.
    pub fn keeps_time(&self) -> bool {
        self.mode.is_none()
    }

    /// Time of last modification in nanoseconds since 1970; 0 for earlier ones.
    pub fn modified_ns(&self) -> u64 {
        unix_ns(self.state.modified)
    }

    /// Fails if the file is another one than was hashed.
    pub(crate) fn check_unchanged(&self) -> Result<(), WriterError> {
        let metadata = self.file.metadata().map_err(|source| local(&self.path, source))?;
        if State::of(&metadata) == self.state {
            return Ok(());
        }
        Err(WriterError::Changed { path: self.path.clone() })
    }

    /// Octets of the content.
    pub(crate) fn read(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        let mut octets = vec![0; len];
        self.file.read_exact_at(&mut octets, offset).ok()?;
        Some(octets)
    }

    /// Octets of a level of the tree, counted from 1.
    pub(crate) fn level_bytes(&self, level: u8) -> u64 {
        self.shape.level_bytes(level)
    }

    /// Octets of a level, within what it has.
    pub(crate) fn read_level(&self, level: u8, offset: u64, len: usize) -> Option<Vec<u8>> {
        let kept = self.levels.get(usize::from(level).checked_sub(1)?)?;
        let offset = usize::try_from(offset).ok()?;
        if !kept.is_empty() {
            return kept.get(offset..offset.checked_add(len)?).map(<[u8]>::to_vec);
        }
        // A segment is a node or a part of one.
        let node = (offset / NODE_BYTES) as u64;
        let start = node * GROUP_BYTES as u64;
        let group = (self.size().checked_sub(start)?).min(GROUP_BYTES as u64) as usize;
        let mut values = Vec::with_capacity(NODE_BYTES);
        let first_unit = node * byname_security::tree::FANOUT as u64;
        self.shape.hash_units(first_unit, &self.read(start, group)?, &mut values).ok()?;
        let at = offset % NODE_BYTES;
        values.get(at..at + len).map(<[u8]>::to_vec)
    }
}

/// Time of last modification in nanoseconds since 1970; 0 for earlier ones.
pub(crate) fn modified_ns(metadata: &fs::Metadata) -> u64 {
    unix_ns(State::of(metadata).modified)
}

fn unix_ns((seconds, nanoseconds): (i64, i64)) -> u64 {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds.unsigned_abs())
}

fn local(path: &Path, source: io::Error) -> WriterError {
    WriterError::Local { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files above 4 GiB keep no level 1.
    #[test]
    fn nodes_that_were_not_kept_are_computed_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let content: Vec<u8> = (0..5_000_000_u32).map(|at| (at * 7 + at / 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let mut source = Source::open(&path, &|| false).unwrap();
        let tree = Tree::of(&content);
        assert_eq!(source.root(), *tree.root.as_bytes());
        assert_eq!(source.level_bytes(1), tree.levels[0].len() as u64);
        let grown = {
            let (mut edge, file) = (Edge::default(), File::open(&path).unwrap());
            Source::grown(&path, file, &mut edge, &|| false).unwrap()
        };
        assert_eq!((grown.root(), &grown.levels[1..]), (source.root(), &source.levels[1..]));
        assert!(grown.levels[0].is_empty());
        source.levels[0].clear();
        for len in [8192, 4096, 1024] {
            for (index, segment) in tree.levels[0].chunks(len).enumerate() {
                let offset = (index * len) as u64;
                let found = source.read_level(1, offset, segment.len());
                assert_eq!(found.as_deref(), Some(segment), "{len}, {index}");
            }
        }
        assert_eq!(source.read_level(3, 0, 32), None, "there is no such level");
    }

    /// Wherever it is cut: as if it was hashed as a whole.
    #[test]
    fn of_a_file_that_grows_only_what_is_new_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let content: Vec<u8> = (0..4_300_000_u32).map(|at| (at * 11 + at / 509) as u8).collect();
        let mut edge = Edge::default();
        for size in [0, 5, 8192, 8193, 2 << 20, (2 << 20) + 1, 4 << 20, 4_300_000] {
            // What was hashed is not looked at again.
            let mut octets = content[..size].to_vec();
            octets[..edge.frontier.bytes() as usize].fill(0);
            if edge.frontier.bytes() < UNIT_BYTES as u64 * 2 {
                octets = content[..size].to_vec();
            }
            std::fs::write(&path, &octets).unwrap();
            let grown = Source::grown(&path, File::open(&path).unwrap(), &mut edge, &|| false);
            let (grown, tree) = (grown.unwrap(), Tree::of(&content[..size]));
            assert_eq!(grown.root(), *tree.root.as_bytes(), "{size}");
            assert_eq!(grown.levels.len(), tree.levels.len(), "{size}");
            assert_eq!(grown.levels.get(1..), tree.levels.get(1..), "{size}");
        }
        std::fs::write(&path, &content[..8192]).unwrap();
        let shorter = Source::grown(&path, File::open(&path).unwrap(), &mut edge, &|| false);
        assert!(matches!(shorter, Err(WriterError::Changed { .. })));
    }
}
