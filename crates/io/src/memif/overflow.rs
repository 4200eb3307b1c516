//! Frames for which the ring had no room when they came: bounded, in order, in private memory.

use std::collections::VecDeque;

use crate::error::QueueFull;
use crate::run::ByteRun;

/// Bytes that a frame costs beyond its content, so that empty ones are bounded too.
const ENTRY_BYTES: usize = size_of::<usize>();

#[derive(Debug)]
pub(super) struct Overflow {
    run: ByteRun,
    lengths: VecDeque<usize>,
    bytes_max: usize,
}

impl Overflow {
    pub(super) fn new(bytes_max: usize) -> Self {
        Overflow { run: ByteRun::new(bytes_max), lengths: VecDeque::new(), bytes_max }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.run.len()
    }

    /// Bytes that wait, frames counting a little more than their length.
    pub(super) fn cost_bytes(&self) -> usize {
        self.run.len() + self.lengths.len() * ENTRY_BYTES
    }

    pub(super) fn append(&mut self, parts: &[&[u8]]) -> Result<(), QueueFull> {
        self.reserve(parts.iter().map(|part| part.len()).sum())?;
        self.run.append(parts);
        Ok(())
    }

    /// Appends a frame that is yet to be written.
    pub(super) fn extend(&mut self, frame_bytes: usize) -> Result<&mut [u8], QueueFull> {
        self.reserve(frame_bytes)?;
        Ok(self.run.extend(frame_bytes))
    }

    fn reserve(&mut self, frame_bytes: usize) -> Result<(), QueueFull> {
        let (queued_bytes, bytes_max) = (self.cost_bytes(), self.bytes_max);
        if frame_bytes.saturating_add(ENTRY_BYTES) > bytes_max - queued_bytes {
            return Err(QueueFull { frame_bytes, queued_bytes, bytes_max });
        }
        self.lengths.push_back(frame_bytes);
        Ok(())
    }

    pub(super) fn first(&self) -> Option<&[u8]> {
        let length = *self.lengths.front()?;
        Some(&self.run.as_slice()[..length])
    }

    pub(super) fn remove_first(&mut self) {
        if let Some(length) = self.lengths.pop_front() {
            self.run.consume(length);
        }
    }

    /// Takes up to `count` frames away from the end; says how many there were.
    pub(super) fn take_back(&mut self, count: usize) -> usize {
        let count = count.min(self.lengths.len());
        for _ in 0..count {
            if let Some(length) = self.lengths.pop_back() {
                self.run.take_back(length);
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_bounded_list() {
        let mut overflow = Overflow::new(1000);
        let mut model: VecDeque<Vec<u8>> = VecDeque::new();
        for step in 0u32..20_000 {
            let random = step.wrapping_mul(2_654_435_761) >> 16;
            let frame = vec![step as u8; (random % 90) as usize];
            match random % 5 {
                0 | 1 => {
                    match overflow.append(&[&frame[..frame.len() / 2], &frame[frame.len() / 2..]]) {
                        Ok(()) => model.push_back(frame),
                        Err(_) => assert!(overflow.cost_bytes() + frame.len() + ENTRY_BYTES > 1000),
                    }
                }
                2 => {
                    if let Ok(room) = overflow.extend(frame.len()) {
                        room.copy_from_slice(&frame);
                        model.push_back(frame);
                    }
                }
                3 => assert_eq!(overflow.take_back(1), usize::from(model.pop_back().is_some())),
                _ => {
                    overflow.remove_first();
                    model.pop_front();
                }
            }
            assert_eq!(overflow.first(), model.front().map(Vec::as_slice), "step {step}");
            assert_eq!(overflow.is_empty(), model.is_empty());
        }
    }
}
