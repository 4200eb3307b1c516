//! Ring size allowed to a client: the more clients a listener has, the smaller.
//!
//! Memory lent by a client counts as ours too once we have written to it. The first clients
//! get the rings they like; of many each has little in flight anyway, and all of them together
//! stay within what a server is meant to need. Clients ask for no more than is offered, ours and
//! others. A ring keeps its size as long as its connection lives.

use std::sync::Arc;

use super::ring::LOG2_RANGE;

/// Clients that are there already, and the largest ring for those who come (as a power of two):
/// with frames of 9 KiB 36 MiB for the first 16 of our clients, 18 MiB for the next 16 and
/// 0.6 MiB for each further one.
const RING_LOG2_FROM: [(usize, u8); 2] = [(32, 6), (16, 7)];

/// The clients of one listener.
#[derive(Debug, Default)]
pub(crate) struct Seats(Arc<()>);

/// A client has it from its first word to the end of its connection.
#[derive(Clone, Debug)]
pub(crate) struct Seat(#[expect(dead_code, reason = "its end counts")] Arc<()>);

impl Seats {
    /// One more client.
    pub(super) fn take(&self) -> Seat {
        Seat(Arc::clone(&self.0))
    }

    /// Logarithm of the ring size offered to the next client.
    pub(super) fn ring_log2_max(&self) -> u8 {
        let taken = Arc::strong_count(&self.0) - 1;
        let found = RING_LOG2_FROM.iter().find(|(from, _)| taken >= *from);
        found.map_or(*LOG2_RANGE.end(), |(_, log2)| *log2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::FRAME_BYTES_MAX;

    #[test]
    fn many_clients_get_smaller_rings_and_the_next_ones_larger_when_they_have_left() {
        let seats = Seats::default();
        let mut taken = Vec::new();
        let mut offered = Vec::new();
        for _ in 0..64 {
            offered.push(seats.ring_log2_max());
            taken.push(seats.take());
        }
        assert!(offered.is_sorted_by(|before, after| before >= after));
        assert_eq!((offered[0], offered[15]), (14, 14), "the first few get what they like");
        assert_eq!((offered[16], offered[32], offered[63]), (7, 6, 6));
        // Our clients take 256 slots at most.
        let slots = |log2: &u8| 1usize << (*log2).min(8);
        let bytes: usize = offered.iter().map(|log2| slots(log2) * FRAME_BYTES_MAX).sum();
        assert!(bytes < 80 << 20, "{bytes} octets for 64 clients");
        taken.truncate(3);
        assert_eq!(seats.ring_log2_max(), 14);
    }
}
