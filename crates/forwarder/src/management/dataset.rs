//! Status datasets: a snapshot of a table, cut into segments.
//!
//! Segment 0 answers the first request; the snapshot is kept so that the segments asked for next,
//! by some clients segment 0 once more, belong to it. Snapshots are kept up to a count and a size,
//! the oldest goes first. FinalBlockId stands in every segment, because some clients look for it in
//! the first and some in the last.

use std::collections::VecDeque;

use byname_packet::{DataBuilder, DigestSigner, Name, NameRef, NumberComponent};

use super::response::FRESHNESS_MS;

/// Octets of payload in a segment.
const SEGMENT_BYTES: usize = 8000;

/// Snapshots kept.
const SNAPSHOTS_MAX: usize = 64;

/// Octets of the snapshots kept. The newest is kept whatever its size, which the tables bound.
const SNAPSHOT_BYTES_MAX: usize = 16 << 20;

/// The snapshots kept.
#[derive(Debug, Default)]
pub(super) struct Published {
    snapshots: VecDeque<(Name, Vec<u8>)>,
    last_version: u64,
}

impl Published {
    /// Keeps `payload` as the next version below `prefix` and returns the Data of segment 0.
    pub(super) fn publish(
        &mut self,
        prefix: NameRef<'_>,
        payload: Vec<u8>,
        now_ms: u64,
    ) -> Option<Vec<u8>> {
        self.last_version = now_ms.max(self.last_version + 1);
        let name = prefix.to_name().with_version(self.last_version);
        let first = encode_segment(&name, &payload, 0);
        let held = |snapshots: &VecDeque<(Name, Vec<u8>)>| -> usize {
            snapshots.iter().map(|(_, payload)| payload.len()).sum()
        };
        while self.snapshots.len() >= SNAPSHOTS_MAX
            || !self.snapshots.is_empty()
                && held(&self.snapshots) + payload.len() > SNAPSHOT_BYTES_MAX
        {
            self.snapshots.pop_front();
        }
        self.snapshots.push_back((name, payload));
        first
    }

    /// Segment 0 of a snapshot below `prefix` that is as fresh as its packets say.
    pub(super) fn recent(&self, prefix: NameRef<'_>, now_ms: u64) -> Option<Vec<u8>> {
        let (name, payload) = self.snapshots.iter().rev().find(|(name, _)| {
            let version = name.view().last().and_then(|last| last.version());
            name.view().without_last(1) == prefix
                && version.is_some_and(|made_ms| now_ms < made_ms.saturating_add(FRESHNESS_MS))
        })?;
        encode_segment(name, payload, 0)
    }

    /// The Data of exactly this name, if it is a segment of a snapshot kept.
    pub(super) fn segment(&self, name: NameRef<'_>) -> Option<Vec<u8>> {
        let index = name.last()?.segment()?;
        let prefix = name.without_last(1);
        let (name, payload) = self.snapshots.iter().find(|(name, _)| name.view() == prefix)?;
        encode_segment(name, payload, index)
    }
}

fn encode_segment(name: &Name, payload: &[u8], index: u64) -> Option<Vec<u8>> {
    let last = payload.len().saturating_sub(1) / SEGMENT_BYTES;
    let index_usize = usize::try_from(index).ok().filter(|index| *index <= last)?;
    let start = index_usize * SEGMENT_BYTES;
    let content = &payload[start..payload.len().min(start + SEGMENT_BYTES)];
    let name = name.with_segment(index);
    let mut packet = Vec::with_capacity(content.len() + 256);
    DataBuilder::new(name.view())
        .freshness_ms(FRESHNESS_MS)
        .final_block_id(NumberComponent::segment(last as u64).as_component())
        .encode(content, &DigestSigner, &mut packet)
        .ok()?;
    Some(packet)
}
