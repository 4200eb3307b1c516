//! Contents read at a bounded rate, and more slowly while others wait for the disk.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Weak;
use std::time::{Duration, Instant};

use byname_catalog::id::ContentId;
use byname_site::Listed;
use byname_transfer::naming::content_path;
use rustix::fs::{Advice, fadvise};

use crate::load::LoadMeter;

/// Octets read at once.
const CHUNK_BYTES: usize = 256 << 10;
/// Octets that a content counts for besides its own: it is opened, too.
const CONTENT_BYTES: u64 = 4096;
/// Load from which on others go first, in hundredths of a thread that waits.
const BUSY: u64 = 100;
/// Pause while the disk is busy.
const BUSY_PAUSE: Duration = Duration::from_millis(250);
/// Pauses in a row: a disk that is always busy is read, too.
const BUSY_PAUSES_MAX: u32 = 40;
/// Longest sleep after which it is looked whether the disk is served any more.
const NAP: Duration = Duration::from_millis(500);

/// See the module.
pub(crate) struct Pacer<'a> {
    load: &'a LoadMeter,
    alive: &'a Weak<()>,
    /// When the next octets may be read.
    next: Instant,
    chunk: Vec<u8>,
}

impl<'a> Pacer<'a> {
    /// Until `alive` is gone.
    pub(crate) fn new(load: &'a LoadMeter, alive: &'a Weak<()>) -> Self {
        Self { load, alive, next: Instant::now(), chunk: vec![0; CHUNK_BYTES] }
    }

    /// Reads contents below a directory; those that are not what they should be. Nothing if the
    /// disk is not served any more.
    pub(crate) fn rotten(
        &mut self,
        objects: &Path,
        contents: &[Listed],
        bytes_per_s: u64,
    ) -> Option<Vec<ContentId>> {
        let mut rotten = Vec::new();
        for wanted in contents {
            let content = wanted.content;
            let path = content_path(content.inode.0, content.version.0);
            let path = objects.join(String::from_utf8_lossy(&path).as_ref());
            if !self.is_good(&path, wanted, bytes_per_s)? {
                rotten.push(content);
            }
        }
        Some(rotten)
    }

    /// True if a file can be read and is what it should be.
    fn is_good(&mut self, path: &Path, wanted: &Listed, bytes_per_s: u64) -> Option<bool> {
        self.wait(CONTENT_BYTES, bytes_per_s)?;
        let Ok(mut file) = File::open(path) else { return Some(false) };
        // What lies in memory says nothing about the medium. Where that cannot be asked for it is
        // read all the same.
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
        let mut hasher = blake3::Hasher::new();
        loop {
            match file.read(&mut self.chunk) {
                Ok(0) => break,
                Ok(len) => {
                    hasher.update(&self.chunk[..len]);
                    self.wait(len as u64, bytes_per_s)?;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "cannot be read");
                    return Some(false);
                }
            }
        }
        // Nobody has asked for it: others' pages stay.
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
        Some((hasher.count(), *hasher.finalize().as_bytes()) == (wanted.size, wanted.root))
    }

    /// Waits until so many more octets may be read.
    fn wait(&mut self, bytes: u64, bytes_per_s: u64) -> Option<()> {
        let now = Instant::now();
        // What was not read while there was time is not caught up with.
        self.next =
            self.next.max(now) + Duration::from_secs_f64(bytes as f64 / bytes_per_s.max(1) as f64);
        let mut pauses = 0;
        while self.load.hundredths() >= BUSY && pauses < BUSY_PAUSES_MAX {
            self.alive.upgrade()?;
            std::thread::sleep(BUSY_PAUSE);
            pauses += 1;
        }
        loop {
            self.alive.upgrade()?;
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(());
            }
            std::thread::sleep(left.min(NAP));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use byname_catalog::id::{InodeId, Version};

    use super::*;

    fn store(objects: &Path, inode: u64, octets: &[u8]) -> Listed {
        let path = content_path(inode, 1);
        let path = objects.join(String::from_utf8(path.to_vec()).unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, octets).unwrap();
        let content = ContentId { inode: InodeId(inode), version: Version(1) };
        Listed { content, size: octets.len() as u64, root: *blake3::hash(octets).as_bytes() }
    }

    #[test]
    fn what_differs_is_rotten_and_no_more_is_read_than_may_be() {
        let directory = tempfile::tempdir().unwrap();
        let good = store(directory.path(), 1, &vec![1; 2 * CHUNK_BYTES]);
        let bad = Listed { root: [0; 32], ..store(directory.path(), 2, b"rot") };
        let content = ContentId { inode: InodeId(3), version: Version(1) };
        let gone = Listed { content, size: 0, root: *blake3::hash(b"").as_bytes() };
        let (load, alive) = (LoadMeter::default(), Arc::new(()));
        let weak = Arc::downgrade(&alive);
        let mut pacer = Pacer::new(&load, &weak);
        let began = Instant::now();
        let rotten = pacer.rotten(directory.path(), &[good, bad, gone], 1 << 20).unwrap();
        assert_eq!(rotten, [bad.content, gone.content]);
        assert!(began.elapsed() >= Duration::from_millis(500), "half a MiB at one a second");
    }

    #[test]
    fn who_is_not_served_any_more_is_not_read_to_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let large = store(directory.path(), 1, &vec![1; 4 * CHUNK_BYTES]);
        let (load, alive) = (LoadMeter::default(), Arc::new(()));
        let weak = Arc::downgrade(&alive);
        drop(alive);
        let mut pacer = Pacer::new(&load, &weak);
        assert_eq!(pacer.rotten(directory.path(), &[large], 1), None);
    }
}
