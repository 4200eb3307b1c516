//! Datagrams that wait to be sent: one run of bytes, and a list of how long each is.
//!
//! Invariant: `cost_bytes` never exceeds `bytes_max`, and the lengths add up to the run.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::batch::Outgoing;
use crate::error::QueueFull;
use crate::limits::DATAGRAM_BATCH;
use crate::run::ByteRun;

/// What a datagram costs beyond its bytes, so that empty ones are bounded too.
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

    /// The datagrams to send next, at most one batch.
    pub(super) fn next_batch(&self) -> impl Iterator<Item = Outgoing<'_>> {
        let mut rest = self.run.as_slice();
        self.entries.iter().take(DATAGRAM_BATCH).map(move |entry| {
            let (bytes, after) = rest.split_at(entry.length);
            rest = after;
            Outgoing { bytes, peer: entry.peer }
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
            assert!(queue.run.allocated() <= 8000);
            let next: Vec<&[u8]> = queue.next_batch().map(|outgoing| outgoing.bytes).collect();
            assert!(next.iter().eq(model.iter().take(DATAGRAM_BATCH)), "step {step}");
            assert_eq!(queue.is_empty(), model.is_empty());
        }
    }
}
