//! The Data pipeline: PIT match, content store, answers to every face that waits.

use byname_packet::Data;
use byname_packet::lp::{CACHE_POLICY_NO_CACHE, LpHeader};
use smallvec::SmallVec;

use super::{Arrival, Forwarder, Tx};
use crate::counters::DropReason;
use crate::dead_nonce;
use crate::face::{FaceId, LinkType};
use crate::pit::{Arrived, PitEntry, PitIndex, PitToken};
use crate::scope;

impl Forwarder {
    pub(super) fn on_data(
        &mut self,
        arrival: &Arrival<'_>,
        data: &Data<'_>,
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        if arrival.header.non_discovery || arrival.header.next_hop_face_id.is_some() {
            return Err(DropReason::ForbiddenHeader);
        }
        if scope::is_localhost(data.name) && !self.is_local(arrival.face) {
            return Err(DropReason::ScopeViolation);
        }
        let mut satisfied = std::mem::take(&mut self.scratch.satisfied);
        self.hasher.prefixes(data.name, &mut self.scratch.prefixes);
        let arrived = Arrived {
            name: data.name,
            wire: data.wire(),
            prefixes: &self.scratch.prefixes,
            hasher: &self.hasher,
            face: arrival.face,
        };
        self.pit.satisfied_by(&arrived, &mut satisfied);
        let result = if satisfied.is_empty() {
            Err(DropReason::UnsolicitedData)
        } else {
            self.satisfy(arrival, data, &satisfied, tx);
            Ok(())
        };
        self.scratch.satisfied = satisfied;
        result
    }

    fn satisfy(
        &mut self,
        arrival: &Arrival<'_>,
        data: &Data<'_>,
        satisfied: &[PitIndex],
        tx: &mut dyn Tx,
    ) {
        let now_ns = arrival.now_ns;
        let may_cache = arrival.header.cache_policy != Some(CACHE_POLICY_NO_CACHE);
        let cached = may_cache && self.cs.insert(&self.scratch.prefixes, data, now_ns);
        // One copy for each face and token, however many entries it satisfies.
        let mut answered: SmallVec<[(FaceId, PitToken); 1]> = SmallVec::new();
        for index in satisfied {
            let Some(entry) = self.pit.remove(*index) else { continue };
            self.counters.satisfied_interests += 1;
            for record in &entry.in_records {
                let goes_back =
                    record.face == arrival.face && self.link_type(record.face) != LinkType::AdHoc;
                let is_late = record.expires_ns <= now_ns;
                if goes_back || is_late || answered.contains(&(record.face, record.token)) {
                    continue;
                }
                answered.push((record.face, record.token));
                let header = LpHeader {
                    pit_token: record.token.get(),
                    cache_policy: arrival.header.cache_policy,
                    congestion_mark: arrival.header.congestion_mark,
                    ..LpHeader::default()
                };
                self.send_data(record.face, &header, data.wire(), tx);
            }
            self.bury_satisfied(&entry, data, cached, now_ns);
        }
    }

    /// An Interest that still circles would mostly be answered by the content store; where it would
    /// not, its nonces are remembered.
    fn bury_satisfied(&mut self, entry: &PitEntry, data: &Data<'_>, cached: bool, now_ns: u64) {
        let stale_soon = data.meta.freshness_ms < dead_nonce::LIFETIME_NS / 1_000_000;
        if !cached || entry.selectors.must_be_fresh && stale_soon {
            self.bury(entry, now_ns);
        }
    }

    /// Remembers the nonces under which an entry was sent.
    pub(super) fn bury(&mut self, entry: &PitEntry, now_ns: u64) {
        for record in &entry.out_records {
            self.dead_nonces.insert(entry.hash, record.nonce, now_ns);
        }
    }
}
