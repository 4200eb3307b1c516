//! A list of numbers in which each can be moved or taken out in constant time.

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Link {
    older: u32,
    newer: u32,
}

/// Numbers from old to new.
#[derive(Debug)]
pub(super) struct List {
    links: Vec<Link>,
    oldest: u32,
    newest: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { links: Vec::new(), oldest: NONE, newest: NONE }
    }
}

impl List {
    /// Adds a number that is not in the list, as the newest.
    pub(super) fn push(&mut self, index: u32) {
        if self.links.len() <= index as usize {
            self.links.resize(index as usize + 1, Link { older: NONE, newer: NONE });
        }
        let older = std::mem::replace(&mut self.newest, index);
        self.links[index as usize] = Link { older, newer: NONE };
        match self.links.get_mut(older as usize) {
            Some(link) => link.newer = index,
            None => self.oldest = index,
        }
    }

    /// Takes out a number that is in the list.
    pub(super) fn remove(&mut self, index: u32) {
        let Some(Link { older, newer }) = self.links.get(index as usize).copied() else { return };
        match self.links.get_mut(older as usize) {
            Some(link) => link.newer = newer,
            None => self.oldest = newer,
        }
        match self.links.get_mut(newer as usize) {
            Some(link) => link.older = older,
            None => self.newest = older,
        }
    }

    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }
}
