//! Datagrams that wait to be sent: one run of bytes, and a list of how long each is.
//!
//! Invariant: `cost_bytes` never exceeds `bytes_max`, and the lengths add up to the run.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::send::{Message, Segmentation};
use crate::error::QueueFull;
use crate::run::ByteRun;

/// The kernel cuts a message into no more datagrams (newer ones allow 128).
const SEGMENTS_MAX: usize = 64;

/// Longest message over IPv4; IPv6 would take 20 more.
const MESSAGE_BYTES_MAX: usize = 65_507;

/// Cost of a datagram beyond its bytes, so that empty ones are bounded too.
const ENTRY_BYTES: usize = size_of::<Entry>();

#[derive(Debug)]
pub(super) struct SendQueue {
    run: ByteRun,
    entries: VecDeque<Entry>,
    cost_bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Entry {
    peer: Option<SocketAddr>,
    length: usize,
}

impl SendQueue {
    pub(super) fn new(bytes_max: usize) -> Self {
        let run = ByteRun::new(bytes_max);
        SendQueue { run, entries: VecDeque::new(), cost_bytes: 0, bytes_max }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn cost_bytes(&self) -> usize {
        self.cost_bytes
    }

    pub(super) fn append(
        &mut self,
        peer: Option<SocketAddr>,
        parts: &[&[u8]],
    ) -> Result<(), QueueFull> {
        self.add_entry(peer, parts.iter().map(|part| part.len()).sum())?;
        self.run.append(parts);
        Ok(())
    }

    /// Appends a datagram that is yet to be written.
    pub(super) fn extend(
        &mut self,
        peer: Option<SocketAddr>,
        frame_bytes: usize,
    ) -> Result<&mut [u8], QueueFull> {
        self.add_entry(peer, frame_bytes)?;
        Ok(self.run.extend(frame_bytes))
    }

    fn add_entry(&mut self, peer: Option<SocketAddr>, length: usize) -> Result<(), QueueFull> {
        if length + ENTRY_BYTES > self.bytes_max - self.cost_bytes {
            let (queued_bytes, bytes_max) = (self.cost_bytes, self.bytes_max);
            return Err(QueueFull { frame_bytes: length, queued_bytes, bytes_max });
        }
        self.entries.push_back(Entry { peer, length });
        self.cost_bytes += length + ENTRY_BYTES;
        Ok(())
    }

    /// The messages to send next, each of as many datagrams as can be segments of it, until
    /// there are `slice_bytes`.
    pub(super) fn messages(
        &self,
        segmentation: Segmentation,
        slice_bytes: usize,
    ) -> impl Iterator<Item = Message<'_>> {
        let mut rest = self.run.as_slice();
        let mut entries = self.entries.iter().peekable();
        let mut left = slice_bytes;
        std::iter::from_fn(move || {
            let first = entries.next().filter(|_| left > 0)?;
            let (mut bytes, mut datagrams) = (first.length, 1);
            if segmentation.allows(first.length) {
                let mut is_complete = false;
                let fits = |entry: &Entry, bytes: usize| {
                    entry.peer == first.peer
                        && (1..=first.length).contains(&entry.length)
                        && bytes + entry.length <= MESSAGE_BYTES_MAX
                };
                while !is_complete
                    && datagrams < SEGMENTS_MAX
                    && let Some(next) = entries.next_if(|entry| fits(entry, bytes))
                {
                    bytes += next.length;
                    datagrams += 1;
                    is_complete = next.length < first.length;
                }
            }
            left = left.saturating_sub(bytes + datagrams * ENTRY_BYTES);
            let (taken, after) = rest.split_at(bytes);
            rest = after;
            let (peer, segment_bytes) = (first.peer, first.length);
            Some(Message { bytes: taken, peer, segment_bytes, datagrams })
        })
    }

    /// Forgets the first `count` datagrams.
    pub(super) fn sent(&mut self, count: usize) {
        for entry in self.entries.drain(..count.min(self.entries.len())) {
            self.run.consume(entry.length);
            self.cost_bytes -= entry.length + ENTRY_BYTES;
        }
    }

    /// Forgets the last `count` datagrams.
    pub(super) fn take_back(&mut self, count: usize) {
        for _ in 0..count {
            let Some(entry) = self.entries.pop_back() else { return };
            self.run.take_back(entry.length);
            self.cost_bytes -= entry.length + ENTRY_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The queue's messages, against a plain list.
    #[test]
    fn it_is_a_bounded_list_of_datagrams() {
        let mut queue = SendQueue::new(4000);
        let mut model: VecDeque<Vec<u8>> = VecDeque::new();
        for step in 0u32..20_000 {
            let random = step.wrapping_mul(2_654_435_761) >> 16;
            if random % 3 < 2 {
                let frame = vec![step as u8; (random % 300) as usize];
                match queue.append(None, &[&frame]) {
                    Ok(()) => model.push_back(frame),
                    Err(full) => {
                        assert_eq!(full.frame_bytes, frame.len());
                        assert!(queue.cost_bytes() + frame.len() + ENTRY_BYTES > 4000);
                    }
                }
            } else {
                let count = (random % 7) as usize;
                queue.sent(count);
                model.drain(..count.min(model.len()));
            }
            assert!(queue.run.allocated() <= 8000);
            let plain = queue.messages(Segmentation::new(false), usize::MAX);
            assert!(plain.map(|message| message.bytes).eq(model.iter()), "step {step}");
            assert_eq!(queue.is_empty(), model.is_empty());
        }
    }
    fn messages(queue: &SendQueue, slice_bytes: usize) -> Vec<(usize, usize)> {
        let messages = queue.messages(Segmentation::new(true), slice_bytes);
        messages.map(|message| (message.segment_bytes, message.datagrams)).collect()
    }

    #[test]
    fn datagrams_of_one_length_are_one_message_and_a_shorter_one_ends_it() {
        let mut queue = SendQueue::new(1 << 20);
        for length in [100, 100, 90, 100, 0, 0, 100, 101, 101, 1] {
            queue.append(None, &[&vec![0; length]]).unwrap();
        }
        let expected = [(100, 3), (100, 1), (0, 1), (0, 1), (100, 1), (101, 3)];
        assert_eq!(messages(&queue, usize::MAX), expected);
    }

    #[test]
    fn a_message_is_for_one_peer_and_bounded() {
        let mut queue = SendQueue::new(4 << 20);
        let peers: [SocketAddr; 2] = ["10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap()];
        for peer in [0, 0, 1, 0] {
            queue.append(Some(peers[peer]), &[&[0; 10]]).unwrap();
        }
        assert_eq!(messages(&queue, usize::MAX), [(10, 2), (10, 1), (10, 1)]);
        queue.sent(4);
        for _ in 0..65 {
            queue.append(None, &[&[0; 10]]).unwrap();
        }
        assert_eq!(messages(&queue, usize::MAX), [(10, 64), (10, 1)]);
        assert_eq!(messages(&queue, 1), [(10, 64)], "a message is never cut short");
        queue.sent(65);
        for _ in 0..8 {
            queue.append(None, &[&[0; 8800]]).unwrap();
        }
        assert_eq!(messages(&queue, usize::MAX), [(8800, 7), (8800, 1)]);
    }

    #[test]
    fn refused_segments_leave_one_by_one_for_a_while() {
        let mut queue = SendQueue::new(1 << 20);
        for _ in 0..3 {
            queue.append(None, &[&[0; 10]]).unwrap();
        }
        let mut segmentation = Segmentation::new(true);
        let count = |segmentation| queue.messages(segmentation, usize::MAX).count();
        let message = queue.messages(segmentation, usize::MAX).next().unwrap();
        segmentation.on_refused(&message, rustix::io::Errno::CONNREFUSED);
        assert_eq!(count(segmentation), 3);
        segmentation.on_sent(3);
        assert_eq!(count(segmentation), 1);
        segmentation.on_refused(&message, rustix::io::Errno::MSGSIZE);
        assert!(!segmentation.allows(10) && segmentation.allows(9));
        segmentation.on_refused(&message, rustix::io::Errno::IO);
        segmentation.on_sent(usize::MAX);
        assert_eq!(count(segmentation), 3, "for good");
    }
}
