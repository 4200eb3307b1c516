//! Datagrams that wait to be sent: one run of bytes, and a list of where each begins.
//!
//! Invariant: `cost_bytes` never exceeds `bytes_max`, and the run at most doubles it, since it is
//! compacted as soon as half of it has been sent.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::batch::Outgoing;
use crate::error::QueueFull;
use crate::limits::DATAGRAM_BATCH;

/// What a datagram costs beyond its bytes, so that empty ones are bounded too.
const ENTRY_BYTES: usize = size_of::<Entry>();

#[derive(Debug)]
pub(super) struct SendQueue {
    bytes: Vec<u8>,
    /// How many bytes have been cut off the front of `bytes`.
    base: usize,
    entries: VecDeque<Entry>,
    cost_bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Entry {
    peer: Option<SocketAddr>,
    /// Counted from the first byte since the queue was last empty.
    start: usize,
    length: usize,
}

impl SendQueue {
    pub(super) fn new(bytes_max: usize) -> Self {
        SendQueue { bytes: Vec::new(), base: 0, entries: VecDeque::new(), cost_bytes: 0, bytes_max }
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
        let frame_bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        if frame_bytes + ENTRY_BYTES > self.bytes_max - self.cost_bytes {
            let (queued_bytes, bytes_max) = (self.cost_bytes, self.bytes_max);
            return Err(QueueFull { frame_bytes, queued_bytes, bytes_max });
        }
        self.compact();
        let start = self.base + self.bytes.len();
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.entries.push_back(Entry { peer, start, length: frame_bytes });
        self.cost_bytes += frame_bytes + ENTRY_BYTES;
        Ok(())
    }

    /// The datagrams to send next, at most one batch.
    pub(super) fn next_batch(&self) -> impl Iterator<Item = Outgoing<'_>> {
        self.entries.iter().take(DATAGRAM_BATCH).map(|entry| {
            let start = entry.start - self.base;
            Outgoing { bytes: &self.bytes[start..start + entry.length], peer: entry.peer }
        })
    }

    /// Forgets the first `count` datagrams.
    pub(super) fn sent(&mut self, count: usize) {
        for entry in self.entries.drain(..count.min(self.entries.len())) {
            self.cost_bytes -= entry.length + ENTRY_BYTES;
        }
        if self.entries.is_empty() {
            self.bytes.clear();
            self.base = 0;
        }
    }

    fn compact(&mut self) {
        let sent = self.entries.front().map_or(0, |first| first.start - self.base);
        if sent > self.bytes.len() / 2 {
            self.bytes.drain(..sent);
            self.base += sent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the queue would send, against a plain list.
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
            assert!(queue.bytes.len() <= 8000);
            let next: Vec<&[u8]> = queue.next_batch().map(|outgoing| outgoing.bytes).collect();
            assert!(next.iter().eq(model.iter().take(DATAGRAM_BATCH)), "step {step}");
            assert_eq!(queue.is_empty(), model.is_empty());
        }
    }
}
