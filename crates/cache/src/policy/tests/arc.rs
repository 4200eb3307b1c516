//! ARC, to compare with: two lists of what is there and two of what was, and a share between them
//! that follows what is missed. (Megiddo and Modha, "ARC: a self-tuning, low overhead replacement
//! cache", FAST 2003.) It decides at each read, so it is no [`Policy`](super::Policy) of rounds.

use std::collections::{BTreeMap, HashMap};

use super::Cached;

/// The lists, with their names in the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum List {
    /// T1: read once, lately.
    Once,
    /// T2: read at least twice, lately.
    Often,
    /// B1: was in T1.
    OnceGone,
    /// B2: was in T2.
    OftenGone,
}

/// A cache of entries of one size.
pub(super) struct Arc {
    entries_max: usize,
    /// Wanted length of T1.
    share: usize,
    /// Each oldest first.
    lists: HashMap<List, BTreeMap<u64, u64>>,
    places: HashMap<u64, (List, u64)>,
    turns: u64,
}

impl Arc {
    pub(super) fn new(entries_max: usize) -> Self {
        let lists = [List::Once, List::Often, List::OnceGone, List::OftenGone];
        let lists = lists.into_iter().map(|list| (list, BTreeMap::new())).collect();
        Arc { entries_max, share: 0, lists, places: HashMap::new(), turns: 0 }
    }

    fn len(&self, list: List) -> usize {
        self.lists[&list].len()
    }

    fn put(&mut self, key: u64, list: List) {
        self.take(key);
        self.turns += 1;
        self.lists.get_mut(&list).expect("one of four").insert(self.turns, key);
        self.places.insert(key, (list, self.turns));
    }

    fn take(&mut self, key: u64) {
        if let Some((list, turn)) = self.places.remove(&key) {
            self.lists.get_mut(&list).expect("one of four").remove(&turn);
        }
    }

    fn oldest(&self, list: List) -> Option<u64> {
        self.lists[&list].first_key_value().map(|(_, key)| *key)
    }

    /// REPLACE of the paper.
    fn replace(&mut self, is_often_gone: bool) {
        let once = self.len(List::Once);
        let from_once = once > 0 && (once > self.share || (is_often_gone && once == self.share));
        let (from, to) = match from_once {
            true => (List::Once, List::OnceGone),
            false => (List::Often, List::OftenGone),
        };
        if let Some(key) = self.oldest(from) {
            self.put(key, to);
        }
    }

    /// Case IV of the paper: neither there nor remembered.
    fn make_room(&mut self) {
        let (once, once_gone) = (self.len(List::Once), self.len(List::OnceGone));
        let all = once + once_gone + self.len(List::Often) + self.len(List::OftenGone);
        if once + once_gone == self.entries_max {
            let is_full_of_once = once == self.entries_max;
            let list = if is_full_of_once { List::Once } else { List::OnceGone };
            self.oldest(list).into_iter().for_each(|key| self.take(key));
            if !is_full_of_once {
                self.replace(false);
            }
        } else if all >= self.entries_max {
            if all == 2 * self.entries_max {
                self.oldest(List::OftenGone).into_iter().for_each(|key| self.take(key));
            }
            self.replace(false);
        }
    }
}

impl Cached for Arc {
    fn read(&mut self, key: u64) -> bool {
        let (once_gone, often_gone) = (self.len(List::OnceGone), self.len(List::OftenGone));
        match self.places.get(&key).map(|(list, _)| *list) {
            Some(List::Once | List::Often) => {
                self.put(key, List::Often);
                return true;
            }
            Some(List::OnceGone) => {
                let step = (often_gone / once_gone.max(1)).max(1);
                self.share = (self.share + step).min(self.entries_max);
                self.replace(false);
                self.put(key, List::Often);
            }
            Some(List::OftenGone) => {
                let step = (once_gone / often_gone.max(1)).max(1);
                self.share = self.share.saturating_sub(step);
                self.replace(true);
                self.put(key, List::Often);
            }
            None => {
                self.make_room();
                self.put(key, List::Once);
            }
        }
        false
    }
}
