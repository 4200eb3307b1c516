//! Ghosts: keys of entries that were removed a short while ago. What is missed so soon is worth
//! more than what comes for the first time.

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::io;
use std::path::Path;

/// Ghosts kept: 512 KiB.
const GHOSTS_MAX: usize = 65_536;

/// Newest last.
#[derive(Debug, Default)]
pub(crate) struct Ghosts {
    order: VecDeque<u64>,
    present: HashSet<u64>,
}

impl Ghosts {
    /// Those of a file; none if there is no such file or it is damaged.
    pub(crate) fn load(path: &Path) -> Self {
        let octets = fs::read(path).unwrap_or_default();
        let mut ghosts = Ghosts::default();
        for ghost in octets.chunks_exact(8).take(GHOSTS_MAX) {
            ghosts.insert(u64::from_be_bytes(ghost.try_into().expect("eight octets")));
        }
        ghosts
    }

    pub(crate) fn insert(&mut self, ghost: u64) {
        if self.present.insert(ghost) {
            self.order.push_back(ghost);
        }
        while self.order.len() > GHOSTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.present.remove(&oldest);
        }
    }

    pub(crate) fn contains(&self, ghost: u64) -> bool {
        self.present.contains(&ghost)
    }

    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        let octets: Vec<u8> = self.order.iter().flat_map(|ghost| ghost.to_be_bytes()).collect();
        crate::files::replace(path, &octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_ghosts_come_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ghosts");
        let mut ghosts = Ghosts::load(&path);
        (0..GHOSTS_MAX as u64 + 10).for_each(|ghost| ghosts.insert(ghost));
        ghosts.save(&path).expect("saved");
        let again = Ghosts::load(&path);
        assert!(!again.contains(9) && again.contains(10));
        assert!(again.contains(GHOSTS_MAX as u64 + 9));
    }
}
