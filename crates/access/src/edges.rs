//! Local files that grow and are written again and again: what was hashed of them.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use byname_writer::{Edge, Source, WriterError};

/// Files that are remembered, the latest last.
const FILES_MAX: usize = 64;

/// Device and inode.
type Key = (u64, u64);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Edges(Mutex<VecDeque<(Key, Edge)>>);

impl Edges {
    /// A file to which octets were only added since it was here last.
    pub(crate) fn grown(
        &self,
        path: &Path,
        file: File,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Source, WriterError> {
        let key = key(path, &file)?;
        let mut edge = self.take(key).unwrap_or_default();
        let source = Source::grown(path, file, &mut edge, is_stopped)?;
        let mut edges = self.lock();
        // Somebody else may have put the same file meanwhile.
        edges.retain(|(of, _)| *of != key);
        if edges.len() >= FILES_MAX {
            edges.pop_front();
        }
        edges.push_back((key, edge));
        Ok(source)
    }

    /// A file of which nothing is known: it may have the number of one that is gone.
    pub(crate) fn whole(
        &self,
        path: &Path,
        file: File,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Source, WriterError> {
        self.take(key(path, &file)?);
        Source::of_file(path, file, is_stopped)
    }

    fn take(&self, key: Key) -> Option<Edge> {
        let mut edges = self.lock();
        let at = edges.iter().position(|(of, _)| *of == key)?;
        edges.remove(at).map(|(_, edge)| edge)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Key, Edge)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(path: &Path, file: &File) -> Result<Key, WriterError> {
    let metadata = file.metadata();
    let failed = |source: io::Error| WriterError::Local { path: path.to_owned(), source };
    metadata.map(|metadata| (metadata.dev(), metadata.ino())).map_err(failed)
}

#[cfg(test)]
mod tests {
    use byname_security::tree::Hash;

    use super::*;

    fn root(edges: &Edges, path: &Path, is_grown: bool) -> [u8; 32] {
        let file = File::open(path).unwrap();
        let source = match is_grown {
            true => edges.grown(path, file, &|| false),
            false => edges.whole(path, file, &|| false),
        };
        source.unwrap().root()
    }

    #[test]
    fn what_was_hashed_counts_until_a_file_comes_as_another_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let (edges, octets) = (Edges::default(), vec![7; 100_000]);
        let root_of = |octets: &[u8]| *Hash::of(octets).as_bytes();
        std::fs::write(&path, &octets).unwrap();
        assert_eq!(root(&edges, &path, true), root_of(&octets));
        // The same inode, as if the system had given it out again.
        let other = vec![8; 120_000];
        std::fs::write(&path, &other).unwrap();
        assert_eq!(root(&edges, &path, false), root_of(&other));
        assert_eq!(root(&edges, &path, true), root_of(&other));
        assert_eq!(edges.lock().len(), 1);
    }
}
