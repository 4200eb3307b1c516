//! News from the receiving half of a link to the sending one.

/// News from the receiving half of a reliable link for the sending half.
#[derive(Debug, Default)]
pub struct Feedback {
    /// TxSequences that the peer acknowledged.
    pub(crate) acks: Vec<u64>,
    /// TxSequences to be acknowledged.
    pub(crate) received: Vec<u64>,
}

impl Feedback {
    /// True if there are no news: always so without reliability.
    pub fn is_empty(&self) -> bool {
        self.acks.is_empty() && self.received.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.acks.clear();
        self.received.clear();
    }
}
