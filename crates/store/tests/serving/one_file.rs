//! The exercise of docs/decisions/0013-backend-seam.md: a back-end that serves one file from
//! memory, written with nothing but what the crate exports.

use std::io::{ErrorKind, IoSliceMut};
use std::sync::Arc;

use byname_store::backend::{
    Backend, BackendFile, Content, Directory, DirectoryEntry, Found, LocateError, TakeEntry,
};
use byname_store::{FileServerConfig, MountConfig, MountSource};
use byname_transfer::server::{FileStat, FileState, Fingerprint, ListFailure};

use super::client::{Peer, World, pattern};

const NAME: &[u8] = b"only";

/// The file, and the directory that it lies in.
#[derive(Debug, Clone)]
struct OneFile(Arc<Vec<u8>>);

impl OneFile {
    fn state(&self, object: u8) -> FileStat {
        let mut state = [0; 24];
        state.copy_from_slice(&blake3::hash(&self.0).as_bytes()[..24]);
        let size = self.0.len() as u64;
        let state = FileState { fingerprint: Fingerprint::new([object; 16], state), size };
        FileStat { state, mode: 0o100_644, mtime_ns: 1, ctime_ns: None }
    }

    fn range(&self, offset: u64) -> &[u8] {
        &self.0[self.0.len().min(offset as usize)..]
    }
}

impl Backend for OneFile {
    fn is_ready(&self, _path: &[u8]) -> bool {
        true
    }

    fn locate(&self, path: &[u8]) -> Result<Found, LocateError> {
        match path {
            b"" => Ok(Found::Directory(Box::new(self.clone()))),
            NAME => Ok(Found::File(Arc::new(self.clone()))),
            _ => Err(LocateError::NotFound),
        }
    }

    fn describe(&self, path: &[u8]) -> String {
        String::from_utf8_lossy(path).into_owned()
    }
}

impl Content for OneFile {
    fn read_ready(&self, places: &mut [IoSliceMut<'_>], offset: u64) -> std::io::Result<usize> {
        let mut done = 0;
        for place in places {
            let rest = self.range(offset + done as u64);
            let len = rest.len().min(place.len());
            place[..len].copy_from_slice(&rest[..len]);
            done += len;
        }
        Ok(done)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        let found = self.range(offset).get(..buffer.len()).ok_or(ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(found);
        Ok(())
    }

    fn is_unchanged(&self) -> bool {
        true
    }
}

impl BackendFile for OneFile {
    fn stat(&self) -> FileStat {
        self.state(1)
    }
}

impl Directory for OneFile {
    fn stat(&self) -> FileStat {
        FileStat { mode: 0o040_755, ..self.state(2) }
    }

    fn list(&self, _wants_stat: bool, take: &mut TakeEntry<'_>) -> Result<(), ListFailure> {
        let stat = Some(self.state(1));
        take(DirectoryEntry { name: NAME, is_directory: false, stat, link_target: None })
    }

    fn is_unchanged(&self) -> bool {
        true
    }

    fn open(&self, _name: &[u8]) -> Option<Arc<dyn BackendFile>> {
        Some(Arc::new(self.clone()))
    }
}

#[test]
fn a_back_end_of_one_file_is_published_like_a_directory() {
    let world = World::new();
    let content = pattern(5_000_000);
    let source = MountSource::Backend(Arc::new(OneFile(Arc::new(content.clone()))));
    let mount = MountConfig { source, ..world.config().mounts.remove(0) };
    let mut peer = Peer::start_with(FileServerConfig::new(vec![mount], world.beside("state")));
    assert_eq!(peer.list("/t"), ["only"]);
    let found = peer.metadata("/t/only");
    assert_eq!(peer.fetch(&found), content);
}
