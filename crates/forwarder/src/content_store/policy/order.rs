//! The interface between the store and a policy.

/// An order in which packets go.
pub(in crate::content_store) trait Policy: std::fmt::Debug + Send {
    /// A packet has come in.
    fn on_insert(&mut self, index: u32);

    /// A packet has answered an Interest.
    fn on_hit(&mut self, index: u32);

    /// A packet has gone, for whatever reason.
    fn on_remove(&mut self, index: u32);

    /// The packet to go next; `None` when there is none.
    fn victim(&self) -> Option<u32>;
}
