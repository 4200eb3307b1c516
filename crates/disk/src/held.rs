//! Orders to pull that are answered when the content is stored, so that nobody has to ask how far
//! it is: a small file takes one order, and its writer goes on as soon as it is there.

use std::collections::{BTreeMap, VecDeque};

use byname_catalog::id::ContentId;
use byname_packet::Name;
use byname_site::Claim;
use byname_transfer::server::Echo;

/// Time for which an order is held. Writers wait for 2.5 s before they repeat one.
const HOLD_NS: u64 = 1_000_000_000;
/// Orders that are held, at most.
const HELD_MAX: usize = 2048;

/// An order that waits for its answer.
pub(crate) struct Held {
    /// Name of the order.
    pub(crate) name: Name,
    /// Content that it is about.
    pub(crate) claim: Claim,
    /// Whom to answer.
    pub(crate) echo: Echo,
}

/// See the module.
#[derive(Default)]
pub(crate) struct HeldInserts {
    held: BTreeMap<u64, Held>,
    by_content: BTreeMap<ContentId, Vec<u64>>,
    /// Numbers of orders, by when they are answered at the latest.
    due: VecDeque<(u64, u64)>,
    next: u64,
}

impl HeldInserts {
    /// Holds an order; one for which there is no room comes back.
    pub(crate) fn hold(&mut self, held: Held, now_ns: u64) -> Option<Held> {
        if self.held.len() >= HELD_MAX {
            return Some(held);
        }
        self.next += 1;
        self.by_content.entry(held.claim.content).or_default().push(self.next);
        self.due.push_back((now_ns.saturating_add(HOLD_NS), self.next));
        self.held.insert(self.next, held);
        None
    }

    /// Those about a content.
    pub(crate) fn take(&mut self, content: ContentId) -> Vec<Held> {
        let numbers = self.by_content.remove(&content).unwrap_or_default();
        numbers.iter().filter_map(|number| self.held.remove(number)).collect()
    }

    /// Those that have waited for long enough.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Vec<Held> {
        let mut taken = Vec::new();
        while let Some((due_ns, number)) = self.due.front().copied() {
            let Some(held) = self.held.get(&number) else {
                self.due.pop_front();
                continue;
            };
            if due_ns > now_ns {
                break;
            }
            taken.extend(self.take(held.claim.content));
        }
        taken
    }

    /// When one has waited for long enough; maybe earlier.
    pub(crate) fn due_ns(&self) -> u64 {
        self.due.front().map_or(u64::MAX, |(due_ns, _)| *due_ns)
    }
}
