//! Least recently used: a packet that is asked for stays longer.

use super::list::List;
use super::order::Policy;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Lru {
    list: List,
}

impl Policy for Lru {
    fn on_insert(&mut self, index: u32) {
        self.list.push(index);
    }

    fn on_hit(&mut self, index: u32) {
        self.list.remove(index);
        self.list.push(index);
    }

    fn on_remove(&mut self, index: u32) {
        self.list.remove(index);
    }

    fn victim(&self) -> Option<u32> {
        self.list.oldest()
    }
}
