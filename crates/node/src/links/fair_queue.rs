//! Interests that wait for a link, one queue for each face they came from.
//!
//! Deficit round robin over their octets: every face with Interests is served in turn, whatever it
//! has waiting, so a face with thousands delays one with a single Interest by one turn. A face may
//! hold as much as is free: a single one gets half of the room, n greedy ones n parts of n + 1, and
//! whoever comes next finds room.

use std::collections::{BTreeMap, VecDeque};

use byname_forwarder::FaceId;

/// Octets that a face may send in a turn: a few Interests of usual length.
const QUANTUM_BYTES: usize = 512;

/// Frames of one face; never empty.
#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// Octets that it may send in this turn.
    deficit: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct FairQueue {
    queues: BTreeMap<FaceId, Queue>,
    /// Faces with frames; the first one's turn is next.
    order: VecDeque<FaceId>,
    bytes: usize,
}

impl FairQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// True if so many octets from `from` find room: that face does not have its share of
    /// `bytes_max` yet.
    pub(super) fn has_room(&self, from: FaceId, bytes: usize, bytes_max: usize) -> bool {
        let held = self.queues.get(&from).map_or(0, |queue| queue.bytes);
        let free = bytes_max.saturating_sub(self.bytes);
        held <= free && bytes <= free
    }

    /// Takes a frame that came from `from`.
    pub(super) fn push(&mut self, from: FaceId, frame: &[u8]) {
        let queue = self.queues.entry(from).or_default();
        if queue.frames.is_empty() {
            self.order.push_back(from);
        }
        queue.frames.push_back(frame.into());
        queue.bytes += frame.len();
        self.bytes += frame.len();
    }

    /// The next frame.
    pub(super) fn pop(&mut self) -> Option<Box<[u8]>> {
        loop {
            let from = *self.order.front()?;
            let queue = self.queues.get_mut(&from)?;
            let len = queue.frames.front()?.len();
            if queue.deficit < len {
                queue.deficit += QUANTUM_BYTES;
                self.order.rotate_left(1);
                continue;
            }
            let frame = queue.frames.pop_front()?;
            queue.deficit -= len;
            queue.bytes -= len;
            self.bytes -= len;
            if queue.frames.is_empty() {
                self.queues.remove(&from);
                self.order.pop_front();
            }
            return Some(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a frame if there is room.
    fn offer(queue: &mut FairQueue, from: u64, frame: &[u8], bytes_max: usize) -> bool {
        let has_room = queue.has_room(FaceId(from), frame.len(), bytes_max);
        if has_room {
            queue.push(FaceId(from), frame);
        }
        has_room
    }

    fn drain(queue: &mut FairQueue) -> Vec<u8> {
        std::iter::from_fn(|| queue.pop()).map(|frame| frame[0]).collect()
    }

    #[test]
    fn one_interest_waits_for_a_turn_of_everybody_else_whatever_they_have_waiting() {
        let mut queue = FairQueue::default();
        for _ in 0..1000 {
            queue.push(FaceId(1), &[1; 100]);
            queue.push(FaceId(2), &[2; 100]);
        }
        queue.push(FaceId(3), &[3; 100]);
        let order = drain(&mut queue);
        let at = order.iter().position(|of| *of == 3).unwrap();
        assert!(at <= 2 * QUANTUM_BYTES.div_ceil(100), "{at}");
        assert_eq!(order.len(), 2001);
        assert!(queue.is_empty() && queue.queues.is_empty() && queue.bytes == 0);
    }

    #[test]
    fn octets_are_shared_and_not_frames() {
        let mut queue = FairQueue::default();
        (0..40).for_each(|_| queue.push(FaceId(1), &[1; 5000]));
        (0..2000).for_each(|_| queue.push(FaceId(2), &[2; 100]));
        let first: Vec<u8> = drain(&mut queue)[..1020].to_vec();
        let large = first.iter().filter(|of| **of == 1).count();
        assert!((19..=21).contains(&large), "{large}");
    }

    #[test]
    fn nobody_holds_more_than_is_free_and_order_is_kept_within_a_face() {
        let mut queue = FairQueue::default();
        let taken = (0..100u8).filter(|at| offer(&mut queue, 1, &[*at], 50)).count();
        assert_eq!(taken, 26);
        let taken = (0..100).filter(|_| offer(&mut queue, 2, &[200], 50)).count();
        assert_eq!(taken, 13);
        assert!(offer(&mut queue, 3, &[201], 50));
        let order = drain(&mut queue);
        assert!(order.iter().filter(|of| **of < 100).is_sorted());
        assert!(!offer(&mut queue, 1, &[0; 51], 50));
        assert!(offer(&mut queue, 1, &[0; 50], 50));
    }
}
