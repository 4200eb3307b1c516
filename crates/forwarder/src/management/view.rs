//! The forwarder as management sees it: read, never written.

use byname_packet::NameRef;

use crate::counters::Counters;
use crate::face::{FaceCounters, FaceId, FaceInfo, FaceOptions};
use crate::rib::{NextHop, Rib};
use crate::strategy::Strategy;

/// A face that clients may see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FaceView<'a> {
    pub(crate) id: FaceId,
    pub(crate) info: &'a FaceInfo,
    pub(crate) options: &'a FaceOptions,
    /// It has lost its link.
    pub(crate) is_down: bool,
}

/// The content stores of all shards together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreView {
    /// Packets they may hold.
    pub(crate) capacity: usize,
    pub(crate) admits: bool,
    pub(crate) serves: bool,
}

/// Figures of all shards together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) counters: Counters,
    pub(crate) fib_entries: usize,
    pub(crate) pit_entries: usize,
    pub(crate) cs_entries: usize,
}

/// Read access to the forwarder's tables. The forwarder's own face is not among the faces.
pub(crate) trait View {
    fn face(&self, id: FaceId) -> Option<FaceView<'_>>;

    /// Shows every face with its counters, in the order of their numbers.
    fn for_each_face(&self, show: &mut dyn FnMut(FaceView<'_>, &FaceCounters));

    fn rib(&self) -> &Rib;

    /// The next hops of exactly `prefix`.
    fn next_hops(&self, prefix: NameRef<'_>) -> Option<&[NextHop]>;

    /// Returns whether a strategy was chosen for exactly `prefix`.
    fn has_strategy(&self, prefix: NameRef<'_>) -> bool;

    /// Prefixes for which a strategy was chosen.
    fn strategy_count(&self) -> usize;

    fn for_each_strategy(&self, show: &mut dyn FnMut(NameRef<'_>, &dyn Strategy));

    fn store(&self) -> StoreView;

    /// The capacity that the content stores have once `wanted` packets are configured.
    fn capacity_for(&self, wanted: usize) -> usize;

    fn totals(&self) -> Totals;
}
