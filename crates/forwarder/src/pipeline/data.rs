//! The Data pipeline: PIT match, content store, answers to every face that waits.

use byname_packet::Data;
use byname_packet::lp::trace::{Hop, Origin};
use byname_packet::lp::{CACHE_POLICY_NO_CACHE, LpHeader};
use smallvec::SmallVec;

use super::end::bury;
use super::{Arrival, Pipeline};
use crate::counters::DropReason;
use crate::dead_nonce;
use crate::face::{FaceId, LinkType};
use crate::face_table::FaceTable;
use crate::pit::{Arrived, PitEntry, PitIndex};
use crate::records::PitToken;
use crate::scope;
use crate::strategy::Answer;
use crate::strategy::measurements::Measurements;
use crate::trace::Tracer;
use crate::tx::Tx;

impl Pipeline {
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
            not_fresh: arrival.header.not_fresh,
        };
        self.pit.satisfied_by(&arrived, &mut satisfied);
        let result = if satisfied.is_empty() {
            // What answers nobody shows of no next hop that it is of use.
            if !arrival.header.not_fresh {
                self.note_late_answer(arrival, data);
            }
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
        let header = arrival.header;
        let may_cache = header.cache_policy != Some(CACHE_POLICY_NO_CACHE) && !header.not_fresh;
        let entries = || satisfied.iter().filter_map(|index| self.pit.get(*index));
        // Any of them may have brought it.
        let may_cache = may_cache && entries().all(|entry| entry.may_be_cached(data.name));
        let mut waiting =
            entries().flat_map(|entry| &entry.records.incoming).map(|record| record.face);
        let first = waiting.next().unwrap_or(arrival.face);
        if waiting.any(|other| other != first) {
            self.cs.note_wanted(&self.scratch.prefixes, data.name);
        }
        let cached = may_cache && self.cs.insert(&self.scratch.prefixes, data, first, now_ns);
        // One copy for each face and token, however many entries it satisfies.
        let mut answered: SmallVec<[(FaceId, PitToken); 1]> = SmallVec::new();
        for index in satisfied {
            let entry = self.pit.get(*index);
            let is_to_bury = entry.is_some_and(|entry| self.is_to_bury(entry, data, cached));
            let (faces, counters) = (&mut self.faces, &mut self.counters);
            let (dead_nonces, hasher) = (&mut self.dead_nonces, &self.hasher);
            let (measurements, tracer) = (&mut self.measurements, &mut self.tracer);
            counters.satisfied_interests += 1;
            self.pit.remove(*index, |entry| {
                note_answer(entry, measurements, arrival);
                if entry.records.is_traced() {
                    trace_answer(entry, arrival, faces, tracer);
                }
                for record in &entry.records.incoming {
                    let Some(to) = faces.get_mut(record.face) else { continue };
                    let goes_back =
                        record.face == arrival.face && to.info.link_type != LinkType::AdHoc;
                    let is_late = record.expires_ns <= now_ns;
                    if goes_back || is_late || answered.contains(&(record.face, record.token)) {
                        continue;
                    }
                    answered.push((record.face, record.token));
                    let header = LpHeader {
                        pit_token: record.token.get(),
                        cache_policy: arrival.header.cache_policy,
                        not_fresh: arrival.header.not_fresh,
                        congestion_mark: arrival.header.congestion_mark,
                        incoming_face_id: to.options.local_fields.then_some(arrival.face.0),
                        path_trace: record.is_traced.then(|| tracer.trace_for(to.info.local)),
                        ..LpHeader::default()
                    };
                    counters.out_data += 1;
                    to.send_data(record.face, &header, data.wire(), tx);
                }
                if is_to_bury {
                    bury(entry, dead_nonces, hasher, now_ns);
                }
            });
        }
    }

    /// Notes that the next hop is alive, though another one answered before it or the Interest has
    /// ended. Otherwise one that is always slower could not show that it is back.
    fn note_late_answer(&mut self, arrival: &Arrival<'_>, data: &Data<'_>) {
        let found = self.fib.longest_match_at(data.name, &self.scratch.prefixes);
        if let Some((_, hash)) = found
            && let Some(namespace) = self.measurements.known(hash)
        {
            namespace.on_late_answer(arrival.face);
        }
    }

    /// Returns whether an Interest that still circles must be known by its nonce. Mostly it will be
    /// answered by the content store. Where it would not, and what was asked for left this
    /// machine, or may be asked for again soon because it must be fresh, its nonces are
    /// remembered.
    fn is_to_bury(&self, entry: &PitEntry, data: &Data<'_>, cached: bool) -> bool {
        if entry.selectors.must_be_fresh {
            return !cached || data.meta.freshness_ms < dead_nonce::LIFETIME_NS / 1_000_000;
        }
        !cached && entry.records.outgoing.iter().any(|record| !self.is_local(record.face))
    }
}

/// Tells the strategy, if it wants to know, that an entry is answered.
fn note_answer(entry: &PitEntry, measurements: &mut Measurements, arrival: &Arrival<'_>) {
    let (face, now_ns) = (arrival.face, arrival.now_ns);
    if let Some(measured) = &entry.measured
        && let Some(record) = entry.records.out_record(face)
        && let Some(namespace) = measurements.at(measured.namespace, now_ns)
    {
        let rtt_ns = now_ns.saturating_sub(record.sent_ns);
        measured.strategy.on_data(Answer {
            records: &entry.records,
            face,
            rtt_ns,
            now_ns,
            namespace,
        });
    }
}

/// Adds to the trace from which face an entry is answered.
fn trace_answer(entry: &PitEntry, arrival: &Arrival<'_>, faces: &FaceTable, tracer: &mut Tracer) {
    let from = faces.get(arrival.face).map(|face| &face.info);
    let is_local = from.is_some_and(|info| info.local);
    let sent_ns = entry.records.out_record(arrival.face).map(|record| record.sent_ns);
    let hop = Hop {
        node: None,
        origin: if is_local { Origin::Program } else { Origin::Neighbour },
        peer: from.filter(|_| !is_local).map(|info| &*info.remote_uri),
        waited_us: sent_ns.map(|sent_ns| arrival.now_ns.saturating_sub(sent_ns) / 1000),
    };
    tracer.note(arrival.header.path_trace, hop);
}
