//! Who may use the room in the window next: several fetches share one flow fairly by bytes.
//!
//! Every fetch carries a [`Share`]: how many bytes it was granted, on a clock that all fetches of
//! the flow have in common. While others wait, nobody may be more than a quantum ahead of the one
//! that got least (start-time fair queueing; what deficit round robin does, without rounds, since
//! fetches come and go at every turn). A newcomer starts at the present, not at zero. What a
//! person waits for counts an eighth, and has a few places beyond the window: it is served almost
//! at once, and cannot push the bulk aside.
//!
//! Invariants: a fetch that stops asking is forgotten after [`SEEN_NS`], so nobody waits for the
//! dead; at most [`WAITERS_MAX`] are remembered, more compete unregulated.

/// Most fetches among which room is divided.
pub const WAITERS_MAX: usize = 1024;
/// Head start of one fetch over another.
pub const QUANTUM_BYTES: u64 = 8 * 8192;
/// Places beyond the window for [`Class::Prompt`].
pub const PROMPT_RESERVE: usize = 16;
/// Time for which a fetch that no longer asks keeps others back.
pub const SEEN_NS: u64 = 20_000_000;
const PROMPT_WEIGHT: u64 = 8;

/// Who waits for the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// A transfer.
    #[default]
    Bulk,
    /// A person or a program that does nothing else meanwhile: metadata, nodes, small ranges.
    Prompt,
}

/// The account of one fetch.
#[derive(Debug, Default)]
pub(crate) struct Share {
    class: Class,
    granted: u64,
    /// Up to here no comparison is needed.
    limit: u64,
    place: Option<usize>,
}

impl Share {
    pub(crate) fn new(class: Class) -> Self {
        Share { class, ..Share::default() }
    }

    pub(crate) fn class(&self) -> Class {
        self.class
    }

    /// Its next requests are for somebody else.
    pub(crate) fn set_class(&mut self, class: Class) {
        self.class = class;
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    granted: u64,
    seen_ns: u64,
}

/// The fetches that want more than they get.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    waiters: Vec<Option<Waiter>>,
    free: Vec<usize>,
    waiter_count: usize,
    /// The grant of the fetch served last: the present.
    clock: u64,
}

impl Sharing {
    /// True if it is the turn of this fetch, given that there is room.
    pub(crate) fn is_turn(&mut self, share: &mut Share, now_ns: u64) -> bool {
        let others = self.waiter_count - usize::from(share.place.is_some());
        if others == 0 || share.granted < share.limit {
            return true;
        }
        share.granted = self.present(share);
        let least = self.least_other(share.place, now_ns).unwrap_or(share.granted);
        share.limit = least.saturating_add(QUANTUM_BYTES);
        share.granted < share.limit
    }

    /// It wants more than it gets.
    pub(crate) fn wait(&mut self, share: &mut Share, now_ns: u64) {
        share.granted = self.present(share);
        let waiter = Waiter { granted: share.granted, seen_ns: now_ns };
        if let Some(place) = share.place {
            self.waiters[place] = Some(waiter);
        } else if let Some(place) = self.free.pop() {
            self.waiters[place] = Some(waiter);
            self.waiter_count += 1;
            share.place = Some(place);
        } else if self.waiters.len() < WAITERS_MAX {
            share.place = Some(self.waiters.len());
            self.waiters.push(Some(waiter));
            self.waiter_count += 1;
        }
    }

    /// True if any fetch wants more than it gets.
    pub(crate) fn has_waiters(&self) -> bool {
        self.waiter_count > 0
    }

    /// It wants nothing more for now.
    pub(crate) fn leave(&mut self, share: &mut Share) {
        if let Some(place) = share.place.take() {
            self.waiters[place] = None;
            self.free.push(place);
            self.waiter_count -= 1;
        }
        share.limit = 0;
    }

    pub(crate) fn grant(&mut self, share: &mut Share, bytes: u64, now_ns: u64) {
        self.clock = self.clock.max(share.granted);
        let weight = if share.class == Class::Prompt { PROMPT_WEIGHT } else { 1 };
        share.granted = share.granted.saturating_add(bytes / weight);
        if let Some(place) = share.place {
            self.waiters[place] = Some(Waiter { granted: share.granted, seen_ns: now_ns });
        }
    }

    /// Whoever did not wait has no claim from before.
    fn present(&self, share: &Share) -> u64 {
        if share.place.is_some() { share.granted } else { share.granted.max(self.clock) }
    }

    fn least_other(&self, own: Option<usize>, now_ns: u64) -> Option<u64> {
        let others = self.waiters.iter().enumerate().filter(|(place, _)| Some(*place) != own);
        let alive = others
            .filter_map(|(_, waiter)| waiter.as_ref())
            .filter(|waiter| now_ns.saturating_sub(waiter.seen_ns) <= SEEN_NS);
        alive.map(|waiter| waiter.granted).min()
    }
}
