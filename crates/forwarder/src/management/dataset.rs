//! Status datasets: a snapshot of a table, cut into segments.
//!
//! Segment 0 answers the first request; the snapshot is kept so that the segments asked for next,
//! by some clients segment 0 once more, belong to it. Snapshots are kept up to a count and a size,
//! the oldest goes first. FinalBlockId stands in every segment, because some clients look for it in
//! the first and some in the last.

use std::collections::VecDeque;

use byname_packet::mgmt::{self, CsInfo, FaceStatus, FibEntry, GeneralStatus, RibEntry};
use byname_packet::{DataBuilder, DigestSigner, Name, NameRef, NumberComponent, tlv};

use super::FRESHNESS_MS;
use crate::face::{Face, FaceId, LinkType, Persistency};
use crate::forwarder::Forwarder;
use crate::strategy;

/// Octets of payload in a segment.
const SEGMENT_BYTES: usize = 8000;

/// Snapshots kept.
const SNAPSHOTS_MAX: usize = 64;

/// Octets of the snapshots kept. The newest is kept whatever its size, which the tables bound.
const SNAPSHOT_BYTES_MAX: usize = 16 << 20;

/// CsInfo flags: admits and serves.
const CS_ADMIT_AND_SERVE: u64 = 3;

/// FaceStatus of local faces.
const SCOPE_NON_LOCAL: u64 = 0;
const SCOPE_LOCAL: u64 = 1;

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

impl Forwarder {
    /// The payload of a dataset; `None` for one that does not exist.
    pub(super) fn dataset_payload(
        &self,
        module: &[u8],
        verb: &[u8],
        now_ns: u64,
    ) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        match (module, verb) {
            (b"status", b"general") => self.general_status(now_ns).encode(&mut out),
            (b"faces", b"list") => {
                for (id, face) in self.faces.iter() {
                    face_status(id, face).encode(&mut out);
                }
            }
            (b"fib", b"list") => self.encode_fib(&mut out),
            (b"rib", b"list") => self.encode_rib(now_ns, &mut out),
            (b"cs", b"info") => self.cs_info().encode(&mut out),
            (b"strategy-choice", b"list") => self.encode_strategies(&mut out),
            _ => return None,
        }
        Some(out)
    }

    fn general_status(&self, now_ns: u64) -> GeneralStatus {
        let counters = &self.counters;
        GeneralStatus {
            version: self.config.version.clone(),
            start_timestamp_ms: self.config.start_unix_ns / 1_000_000,
            current_timestamp_ms: self.unix_ms(now_ns),
            name_tree_entry_count: 0,
            fib_entry_count: self.fib.len() as u64,
            pit_entry_count: self.pit.len() as u64,
            measurements_entry_count: 0,
            cs_entry_count: self.cs.len() as u64,
            in_interest_count: counters.in_interests,
            in_data_count: counters.in_data,
            in_nack_count: counters.in_nacks,
            out_interest_count: counters.out_interests,
            out_data_count: counters.out_data,
            out_nack_count: counters.out_nacks,
            satisfied_interest_count: counters.satisfied_interests,
            unsatisfied_interest_count: counters.unsatisfied_interests,
        }
    }

    fn encode_fib(&self, out: &mut Vec<u8>) {
        for (prefix, hops) in self.fib.iter() {
            let next_hops = hops
                .iter()
                .map(|hop| mgmt::NextHop { face_id: hop.face.0, cost: hop.cost })
                .collect();
            FibEntry { name: prefix.to_name(), next_hops }.encode(out);
        }
    }

    fn encode_rib(&self, now_ns: u64, out: &mut Vec<u8>) {
        let left_ms = |at: u64| at.saturating_sub(now_ns) / 1_000_000;
        for (prefix, routes) in self.rib.iter() {
            let routes = routes
                .iter()
                .map(|route| mgmt::Route {
                    face_id: route.face.0,
                    origin: route.origin,
                    cost: route.cost,
                    flags: route.flags,
                    expiration_period_ms: route.expires_ns.map(left_ms),
                })
                .collect();
            RibEntry { name: prefix.clone(), routes }.encode(out);
        }
    }

    fn cs_info(&self) -> CsInfo {
        CsInfo {
            capacity: self.cs.entries_max() as u64,
            flags: CS_ADMIT_AND_SERVE,
            entry_count: self.cs.len() as u64,
            hit_count: self.counters.cs_hits,
            miss_count: self.counters.cs_misses,
        }
    }

    fn encode_strategies(&self, out: &mut Vec<u8>) {
        for (prefix, chosen) in self.strategies.iter() {
            let instance = strategy::instance_name(*chosen);
            let mut value = Vec::new();
            prefix.encode(&mut value);
            tlv::write_tl(&mut value, mgmt::types::STRATEGY, instance.view().wire_len());
            instance.view().encode(&mut value);
            tlv::write_element(out, mgmt::types::DATASET_ENTRY, &value);
        }
    }
}

fn face_status(id: FaceId, face: &Face) -> FaceStatus {
    let (info, counters) = (&face.info, &face.counters);
    FaceStatus {
        face_id: id.0,
        uri: info.remote_uri.clone(),
        local_uri: info.local_uri.clone(),
        expiration_period_ms: None,
        scope: if info.local { SCOPE_LOCAL } else { SCOPE_NON_LOCAL },
        persistency: match info.persistency {
            Persistency::Persistent => 0,
            Persistency::OnDemand => 1,
            Persistency::Permanent => 2,
        },
        link_type: match info.link_type {
            LinkType::PointToPoint => 0,
            LinkType::MultiAccess => 1,
            LinkType::AdHoc => 2,
        },
        mtu: info.mtu_bytes.map(|bytes| bytes as u64),
        in_interest_count: counters.in_interests,
        in_data_count: counters.in_data,
        in_nack_count: counters.in_nacks,
        out_interest_count: counters.out_interests,
        out_data_count: counters.out_data,
        out_nack_count: counters.out_nacks,
        in_bytes: counters.in_bytes,
        out_bytes: counters.out_bytes,
        flags: 0,
    }
}
