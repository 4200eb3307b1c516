//! News from the receiving half of a link to the sending one.

/// News from the receiving half of a link for the sending half.
#[derive(Debug, Default)]
pub struct Feedback {
    /// TxSequences that the peer acknowledged.
    pub(crate) acks: Vec<u64>,
    /// TxSequences to be acknowledged.
    pub(crate) received: Vec<u64>,
    /// Token that the peer wants back.
    pub(crate) address_token: Option<u64>,
    /// Token that the peer returned.
    pub(crate) returned_token: Option<u64>,
}

impl Feedback {
    /// True if there are no news: mostly so without reliability.
    pub fn is_empty(&self) -> bool {
        let tokens = self.address_token.or(self.returned_token);
        self.acks.is_empty() && self.received.is_empty() && tokens.is_none()
    }

    pub(crate) fn clear(&mut self) {
        self.acks.clear();
        self.received.clear();
        (self.address_token, self.returned_token) = (None, None);
    }
}
