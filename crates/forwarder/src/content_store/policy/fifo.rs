//! First in, first out: whether a packet is asked for makes no difference.

use super::list::List;
use super::order::Policy;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    list: List,
}

impl Policy for Fifo {
    fn on_insert(&mut self, index: u32) {
        self.list.push(index);
    }

    fn on_hit(&mut self, _index: u32) {}

    fn on_remove(&mut self, index: u32) {
        self.list.remove(index);
    }

    fn victim(&self) -> Option<u32> {
        self.list.oldest()
    }
}
