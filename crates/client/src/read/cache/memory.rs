//! Unit cache in memory: one bound for all files of a session, and a scan that pushes out scans.
//!
//! As in 2Q, units that came stand in a queue, in the order of their coming (`recent`). One that is
//! read again after others have come moves to a list by last use (`reused`), which has at most half
//! of the memory. What is dropped is the front of the queue, so reading a long file once pushes
//! out nothing that was read again. Reads of one unit in quick succession are one use, and so is
//! the first read of what was read ahead.

use std::collections::{BTreeMap, HashMap};

use super::{UnitCache, UnitKey};

/// Memory that a unit takes besides its bytes, roughly.
const OVERHEAD_BYTES: usize = 256;

/// Part of the bound that has to come in between for a read to be another use.
const REUSE_DIVISOR: usize = 8;

#[derive(Debug)]
struct Unit {
    bytes: Box<[u8]>,
    /// Its place in the list that it is in.
    turn: u64,
    is_reused: bool,
    /// Bytes that had come to the cache when it was first used; `None` if nobody has.
    used_at: Option<u64>,
}

impl Unit {
    fn cost(&self) -> usize {
        self.bytes.len() + OVERHEAD_BYTES
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct MemoryCache {
    bytes_max: usize,
    units: HashMap<UnitKey, Unit>,
    recent: BTreeMap<u64, UnitKey>,
    reused: BTreeMap<u64, UnitKey>,
    bytes: usize,
    reused_bytes: usize,
    inserted_bytes: u64,
    turn: u64,
}

impl MemoryCache {
    /// Holds at most `bytes_max`, with what it takes to find them.
    pub(crate) fn new(bytes_max: usize) -> Self {
        MemoryCache {
            bytes_max,
            units: HashMap::new(),
            recent: BTreeMap::new(),
            reused: BTreeMap::new(),
            bytes: 0,
            reused_bytes: 0,
            inserted_bytes: 0,
            turn: 0,
        }
    }

    /// Moves to the end of the reused, and what is too much there back to the recent.
    fn reuse(&mut self, key: &UnitKey) {
        let Some(unit) = self.units.get_mut(key) else { return };
        let list = if unit.is_reused { &mut self.reused } else { &mut self.recent };
        let Some(key) = list.remove(&unit.turn) else { return };
        if !unit.is_reused {
            unit.is_reused = true;
            self.reused_bytes += unit.cost();
        }
        self.turn += 1;
        unit.turn = self.turn;
        self.reused.insert(self.turn, key);
        while self.reused_bytes > self.bytes_max / 2
            && let Some((_, key)) = self.reused.pop_first()
        {
            self.demote(key);
        }
    }

    fn demote(&mut self, key: UnitKey) {
        let Some(unit) = self.units.get_mut(&key) else { return };
        self.turn += 1;
        (unit.turn, unit.is_reused) = (self.turn, false);
        unit.used_at = Some(self.inserted_bytes);
        self.reused_bytes -= unit.cost();
        self.recent.insert(self.turn, key);
    }

    fn drop_first(&mut self) {
        let first = self.recent.pop_first().or_else(|| self.reused.pop_first());
        if let Some((_, key)) = first
            && let Some(unit) = self.units.remove(&key)
        {
            self.bytes -= unit.cost();
            self.reused_bytes -= if unit.is_reused { unit.cost() } else { 0 };
        }
    }
}

impl UnitCache for MemoryCache {
    fn insert(&mut self, key: UnitKey, bytes: &[u8], is_unread: bool) {
        let cost = bytes.len() + OVERHEAD_BYTES;
        if cost > self.bytes_max || self.units.contains_key(&key) {
            return;
        }
        while self.bytes + cost > self.bytes_max {
            self.drop_first();
        }
        self.inserted_bytes += cost as u64;
        self.bytes += cost;
        self.turn += 1;
        let used_at = (!is_unread).then_some(self.inserted_bytes);
        let unit = Unit { bytes: bytes.into(), turn: self.turn, is_reused: false, used_at };
        self.recent.insert(self.turn, key.clone());
        self.units.insert(key, unit);
    }

    fn contains(&self, key: &UnitKey) -> bool {
        self.units.contains_key(key)
    }

    fn get(&mut self, key: &UnitKey) -> Option<&[u8]> {
        let unit = self.units.get_mut(key)?;
        let used_at = *unit.used_at.get_or_insert(self.inserted_bytes);
        let between = self.inserted_bytes - used_at;
        if unit.is_reused || between >= (self.bytes_max / REUSE_DIVISOR) as u64 {
            self.reuse(key);
        }
        self.units.get(key).map(|unit| &*unit.bytes)
    }
}

#[cfg(test)]
mod tests;
