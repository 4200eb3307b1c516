//! The names of the content store in NDN's canonical order, which is the order of their octets.
//!
//! Most packets are segments of few objects, and most come and go without a search by prefix. So a
//! segment is kept as a number in a list of its parent's (the name without the segment number),
//! and only other names are kept in full. Within one parent numbers are in canonical order: it puts
//! shorter encodings first, and only the shortest encoding of a number counts as one here.
//!
//! Nothing is put in order before somebody searches: until then a packet only waits in a queue. A
//! search puts the newest packets in order first and a bounded number of them, and may miss what is
//! still waiting; traffic without searches by prefix pays nothing for them.
//!
//! The greatest segment below a prefix need not belong to the greatest parent, but nearly: if it
//! belongs to another parent, then to one that is a prefix of the greatest. [`Order::last_below`]
//! rests on that.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use byname_packet::{Component, NameRef, tlv};

/// Packets looked at in each of the three parts of a search.
const SCAN_MAX: usize = 64;

/// Packets put in order for one search at most.
const SETTLED_MAX: usize = 4096;

/// In place of a packet that has gone.
const GONE: u32 = u32::MAX;

/// The names in a content store.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Place of each packet's name.
    places: Vec<Place>,
    /// Packets not yet put in order, the newest last.
    waiting: VecDeque<u32>,
    /// Number taken from the front of `waiting`.
    waiting_from: u64,
    /// Number of those in `waiting` that have gone.
    gone_count: usize,
    names: BTreeMap<Box<[u8]>, u32>,
    /// Place where each parent stands in `segments`.
    parents: BTreeMap<Box<[u8]>, u32>,
    segments: Vec<BTreeMap<u64, u32>>,
    /// Unused places in `segments`.
    free: Vec<u32>,
}

/// Place where a name stands: a packet is found again without a look at it, which has been out of
/// the processor's caches for long when it is driven out.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// In `waiting`, counted from the first packet ever.
    Waiting(u64),
    Full,
    Segment {
        parent: u32,
        number: u64,
    },
}

/// A name and where its last component begins.
pub(super) type SplitName<'a> = (&'a [u8], usize);

impl Order {
    /// Adds a packet whose name is not in it.
    pub(super) fn insert(&mut self, index: u32) {
        let place = Place::Waiting(self.waiting_from + self.waiting.len() as u64);
        self.waiting.push_back(index);
        if self.places.len() <= index as usize {
            self.places.resize(index as usize + 1, Place::Full);
        }
        self.places[index as usize] = place;
    }

    /// Removes a packet.
    pub(super) fn remove(&mut self, index: u32, (name, last_start): SplitName<'_>) {
        match self.places[index as usize] {
            Place::Waiting(at) => self.forget_waiting((at - self.waiting_from) as usize),
            Place::Full => {
                self.names.remove(name);
            }
            Place::Segment { parent, number } => {
                let segments = &mut self.segments[parent as usize];
                segments.remove(&number);
                if segments.is_empty() {
                    self.parents.remove(&name[..last_start]);
                    self.free.push(parent);
                }
            }
        }
    }

    fn forget_waiting(&mut self, at: usize) {
        self.waiting[at] = GONE;
        self.gone_count += 1;
        while self.waiting.front() == Some(&GONE) {
            self.waiting.pop_front();
            self.waiting_from += 1;
            self.gone_count -= 1;
        }
        if self.gone_count > SCAN_MAX && self.gone_count > self.waiting.len() / 2 {
            self.waiting.retain(|index| *index != GONE);
            self.gone_count = 0;
            for (at, index) in self.waiting.iter().enumerate() {
                self.places[*index as usize] = Place::Waiting(self.waiting_from + at as u64);
            }
        }
    }

    /// Puts up to `max` packets in order, the newest first.
    pub(super) fn settle<'s>(&mut self, max: usize, name_of: impl Fn(u32) -> SplitName<'s>) {
        for _ in 0..max {
            let Some(index) = self.waiting.pop_back() else { return };
            if index == GONE {
                self.gone_count -= 1;
                continue;
            }
            self.places[index as usize] = self.put(index, name_of(index));
        }
    }

    fn put(&mut self, index: u32, (name, last_start): SplitName<'_>) -> Place {
        let (parent, last) = name.split_at(last_start);
        let Some(number) = segment_number(last) else {
            self.names.insert(name.into(), index);
            return Place::Full;
        };
        let parent = match self.parents.get(parent) {
            Some(at) => *at,
            None => self.add_parent(parent),
        };
        self.segments[parent as usize].insert(number, index);
        Place::Segment { parent, number }
    }

    fn add_parent(&mut self, parent: &[u8]) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.segments.push(BTreeMap::new());
            self.segments.len() as u32 - 1
        });
        self.parents.insert(parent.into(), at);
        at
    }

    /// The last name in canonical order that continues `prefix` and whose packet is `usable`.
    /// `name_of` returns the name of a packet.
    pub(super) fn last_below<'s>(
        &mut self,
        prefix: NameRef<'_>,
        name_of: impl Fn(u32) -> SplitName<'s>,
        usable: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        self.settle(SETTLED_MAX, &name_of);
        let name_of = |index| name_of(index).0;
        let first = prefix.value();
        let after = end_of_subtree(first);
        let end = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let names = self.names.range::<[u8], _>((Bound::Excluded(first), end)).rev();
        let in_full = names.take(SCAN_MAX).map(|(_, index)| *index).find(|index| usable(*index));
        let segment = self
            .parents
            .range::<[u8], _>((Bound::Included(first), end))
            .rev()
            .flat_map(|(parent, at)| self.segments_of(*at).map(move |index| (parent, index)))
            .take(SCAN_MAX)
            .find(|(_, index)| usable(*index));
        let higher =
            segment.and_then(|(parent, _)| self.last_above(prefix, parent, &usable, name_of));
        let found = [in_full, segment.map(|(_, index)| index), higher];
        found.into_iter().flatten().max_by_key(|index| name_of(*index))
    }

    /// The segments of a parent, the last one first.
    fn segments_of(&self, parent: u32) -> impl Iterator<Item = u32> {
        self.segments[parent as usize].values().rev().copied()
    }

    /// The last usable segment of the parents from `prefix` on that are prefixes of `below`.
    fn last_above<'s>(
        &self,
        prefix: NameRef<'_>,
        below: &[u8],
        usable: impl Fn(u32) -> bool,
        name_of: impl Fn(u32) -> &'s [u8],
    ) -> Option<u32> {
        let mut reader = tlv::Reader::new(&below[prefix.value().len()..]);
        let mut found = None;
        let mut budget = SCAN_MAX;
        while budget > 0 && !reader.is_empty() {
            let parent = &below[..prefix.value().len() + reader.position()];
            budget -= 1;
            for index in self.parents.get(parent).into_iter().flat_map(|at| self.segments_of(*at)) {
                if usable(index) {
                    found = found.into_iter().chain([index]).max_by_key(|index| name_of(*index));
                    break;
                }
                if budget == 0 {
                    break;
                }
                budget -= 1;
            }
            reader.read().ok()?;
        }
        found
    }
}

/// The number of `component` if it is a segment number in its shortest encoding.
pub(super) fn segment_number(component: &[u8]) -> Option<u64> {
    let element = tlv::Reader::new(component).read().ok()??;
    let typ = u16::try_from(element.typ).ok()?;
    Component { typ, value: element.value }.segment()
}

/// The least octet string greater than every string that starts with `prefix`.
fn end_of_subtree(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|octet| *octet != 0xFF)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_subtree_follows_every_name_in_it() {
        assert_eq!(end_of_subtree(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(end_of_subtree(&[8, 1, 0xFF]), Some(vec![8, 2]));
        assert_eq!(end_of_subtree(&[]), None);
        assert_eq!(end_of_subtree(&[0xFF]), None);
    }

    const NAMELESS: SplitName<'static> = (&[], 0);

    /// An order in which so many packets wait.
    fn waiting(count: u32) -> Order {
        let mut order = Order::default();
        (0..count).for_each(|index| order.insert(index));
        order
    }

    #[test]
    fn what_has_gone_takes_no_place_once_it_is_more_than_half() {
        let scan_max = SCAN_MAX as u32;
        let mut order = waiting(100);
        (1..=scan_max).for_each(|index| order.remove(index, NAMELESS));
        assert_eq!((order.waiting.len(), order.gone_count), (100, SCAN_MAX));
        order.remove(scan_max + 1, NAMELESS);
        assert_eq!((order.waiting.len(), order.gone_count), (99 - SCAN_MAX, 0));
        // Those that are left are found where they are now.
        (0..100).filter(|it| !(1..=scan_max + 1).contains(it)).for_each(|index| {
            order.remove(index, NAMELESS);
        });
        assert_eq!((order.waiting.len(), order.gone_count), (0, 0));

        let mut order = waiting(200);
        (1..=100).for_each(|index| order.remove(index, NAMELESS));
        assert_eq!((order.waiting.len(), order.gone_count), (200, 100));
        order.remove(101, NAMELESS);
        assert_eq!((order.waiting.len(), order.gone_count), (99, 0));
        // The first one stood before those that had gone.
        order.remove(0, NAMELESS);
        order.remove(102, NAMELESS);
        assert_eq!((order.waiting.len(), order.gone_count), (97, 0));
    }

    #[test]
    fn what_has_gone_is_not_put_in_order() {
        let names: Vec<Vec<u8>> = (0..10).map(|octet| vec![8, 1, octet]).collect();
        let mut order = waiting(10);
        (3..8).for_each(|index| order.remove(index, (&names[index as usize], 0)));
        assert_eq!(order.gone_count, 5);
        order.settle(4, |index| (&names[index as usize], 0));
        assert_eq!((order.names.len(), order.gone_count), (2, 3), "8, 9 and two gone ones");
        order.settle(usize::MAX, |index| (&names[index as usize], 0));
        assert_eq!((order.names.len(), order.gone_count), (5, 0));
    }

    /// Every reader may search, and stale packets may be many.
    #[test]
    fn a_search_looks_at_so_many_packets_and_no_more() {
        let component = |octet| [8, 1, octet];
        let prefix = component(b'a');
        let below = [prefix, component(b'b')].concat();
        // One usable segment of /a/b, and a thousand of /a that are not.
        let mut names = vec![([&below[..], &[50, 1, 0]].concat(), below.len())];
        for number in 0u16..1000 {
            let number = byname_packet::NumberComponent::segment(number.into());
            let component = number.as_component();
            let mut name = prefix.to_vec();
            tlv::write_element(&mut name, component.typ.into(), component.value);
            names.push((name, prefix.len()));
        }
        let mut order = waiting(names.len() as u32);
        let prefix_name = byname_packet::Name::new().with_generic(b"a");
        let looked_at = std::cell::Cell::new(0);
        let found = order.last_below(
            prefix_name.view(),
            |index| {
                let (name, last_start) = &names[index as usize];
                (name, *last_start)
            },
            |index| {
                looked_at.set(looked_at.get() + 1);
                index == 0
            },
        );
        assert_eq!((found, looked_at.get()), (Some(0), 1 + SCAN_MAX));
    }

    #[test]
    fn only_the_shortest_encoding_is_a_segment_number() {
        assert_eq!(segment_number(&[50, 1, 7]), Some(7));
        assert_eq!(segment_number(&[50, 2, 1, 0]), Some(256));
        assert_eq!(segment_number(&[50, 2, 0, 7]), None);
        assert_eq!(segment_number(&[50, 3, 1, 0, 7]), None);
        assert_eq!(segment_number(&[8, 1, 7]), None);
        assert_eq!(segment_number(&[]), None);
    }
}
