//! Least recently used: what was used longest ago goes first. A scan of many files that nobody
//! reads again pushes out everything else; it is here to be compared with.

use std::collections::BTreeSet;

use super::{EntryIndex, Policy, Standing};

/// See the module.
#[derive(Debug, Default)]
pub struct Lru {
    by_use: BTreeSet<(u64, EntryIndex)>,
}

impl Policy for Lru {
    fn restore(&mut self, entry: EntryIndex, _bytes: u64, standing: Standing) {
        self.by_use.insert((standing.used_ns, entry));
    }

    fn victim(&mut self, _now_ns: u64) -> Option<EntryIndex> {
        self.by_use.pop_first().map(|(_, entry)| entry)
    }

    fn changed(&mut self) -> Vec<(EntryIndex, Standing)> {
        Vec::new()
    }
}
