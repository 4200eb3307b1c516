//! The Interest pipeline: checks, content store, PIT, strategy.

use byname_packet::Interest;
use byname_packet::lp::{CACHE_POLICY_NO_CACHE, LpHeader, nack_reason};

use super::choice::Lookup;
use super::end::NackSender;
use super::sending::Sending;
use super::{Arrival, Handled, Pipeline};
use crate::content_store::Match;
use crate::counters::DropReason;
use crate::face::{FaceId, LinkType};
use crate::hash::Prefixes;
use crate::pit::{LIFETIME_MAX_MS, PitEntry, PitIndex, Request, Selectors, Shed};
use crate::records::{InRecord, PitToken};
use crate::strategy::Decision;
use crate::tx::Tx;
use crate::{hint, scope};

/// Interests that may be given up for one that is larger.
const SHED_MAX: usize = 16;

/// `IncomingFaceId` of what comes from the content store, as in NFD.
const CONTENT_STORE_FACE_ID: u64 = 254;

/// An Interest that has passed the first checks.
struct Accepted<'a> {
    interest: &'a Interest<'a>,
    nonce: [u8; 4],
    hop_limit: Option<u8>,
    token: PitToken,
    prefixes: &'a Prefixes,
}

impl Pipeline {
    pub(super) fn on_interest(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        tx: &mut dyn Tx,
    ) -> Result<Handled, DropReason> {
        let header = arrival.header;
        if header.cache_policy.is_some() || header.prefix_announcement.is_some() {
            return Err(DropReason::ForbiddenHeader);
        }
        if header.next_hop_face_id.is_some() && !self.has_local_fields(arrival.face) {
            return Err(DropReason::LocalFieldsDisabled);
        }
        // spec: NDN Packet Format §3 "HopLimit": zero on receipt is dropped, else it is
        // decremented.
        let hop_limit = match interest.hop_limit {
            Some(hops) => Some(hops.checked_sub(1).ok_or(DropReason::HopLimitReached)?),
            None => None,
        };
        let name = interest.name;
        if scope::is_localhost(name) && !self.is_local(arrival.face) {
            return Err(DropReason::ScopeViolation);
        }
        let token = PitToken::new(header.pit_token).ok_or(DropReason::ForbiddenHeader)?;
        if scope::is_management(name) {
            return Ok(Handled::IsForManagement);
        }
        if let Some(hint) = &interest.forwarding_hint {
            if hint::is_localhost(hint) && !self.is_local(arrival.face) {
                return Err(DropReason::ScopeViolation);
            }
            if hint::has_arrived(hint, &self.regions) {
                return self.on_arrived(arrival, interest, tx);
            }
        }
        let nonce = interest.nonce.unwrap_or_else(|| self.rng.nonce());
        let mut prefixes = std::mem::take(&mut self.scratch.prefixes);
        self.hasher.prefixes(name, &mut prefixes);
        let accepted = Accepted { interest, nonce, hop_limit, token, prefixes: &prefixes };
        let result = self.on_accepted(arrival, &accepted, tx);
        self.scratch.prefixes = prefixes;
        result.map(|()| Handled::Completely)
    }

    /// Goes on without the hint, so that it aggregates with what is asked for by name.
    fn on_arrived(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        tx: &mut dyn Tx,
    ) -> Result<Handled, DropReason> {
        let mut wire = std::mem::take(&mut self.scratch.unhinted);
        wire.clear();
        interest.encode_without_hint(&mut wire);
        let result = match Interest::decode(&wire) {
            Ok(interest) => self.on_interest(arrival, &interest, tx),
            Err(_) => Err(DropReason::Malformed),
        };
        self.scratch.unhinted = wire;
        result
    }

    fn on_accepted(
        &mut self,
        arrival: &Arrival<'_>,
        accepted: &Accepted<'_>,
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        let hash = accepted.prefixes.whole();
        if self.dead_nonces.contains(&self.hasher, (hash, accepted.nonce), arrival.now_ns) {
            return Err(self.on_loop(arrival, accepted, tx));
        }
        let selectors = Selectors::of(accepted.interest, &self.hasher);
        let known = self.pit.find(hash, accepted.interest.name, selectors);
        match known.and_then(|index| self.pit.get(index)) {
            Some(entry) => {
                let point_to_point = self.link_type(arrival.face) == LinkType::PointToPoint;
                if is_looped(entry, arrival.face, accepted.nonce, point_to_point) {
                    return Err(self.on_loop(arrival, accepted, tx));
                }
            }
            None => {
                if self.answer_from_store(arrival, accepted, tx) {
                    return Ok(());
                }
            }
        }
        let mut wire = std::mem::take(&mut self.scratch.wire);
        wire.clear();
        accepted.interest.encode_forwarded(accepted.nonce, accepted.hop_limit, &mut wire);
        let index = known
            .or_else(|| {
                let request = Request {
                    face: arrival.face,
                    name: accepted.interest.name,
                    prefixes: accepted.prefixes,
                    selectors,
                    wire: &wire,
                    now_ns: arrival.now_ns,
                };
                self.make_room(&request);
                self.pit.insert(&request)
            })
            .ok_or(DropReason::PitFull);
        let result = index.and_then(|index| {
            self.note_waiting(index, arrival, accepted);
            self.forward(index, arrival, accepted, (&wire, tx))
        });
        self.scratch.wire = wire;
        result
    }

    /// Gives up what the face has waited for long, when it has used up its share of the PIT, and
    /// one with another hint when the name has many.
    fn make_room(&mut self, request: &Request<'_>) {
        if request.selectors.hint_hash != 0
            && let Some(index) = self.pit.surplus_hint(request.prefixes.whole(), request.name)
        {
            let charged = self.pit.get(index).and_then(|entry| entry.records.incoming.first());
            let face = charged.map_or(request.face, |record| record.face);
            self.count_drop(face, DropReason::PitShed);
            self.give_up(index, request.now_ns);
        }
        for _ in 0..SHED_MAX {
            if self.pit.has_room(request.face, request.wire.len()) {
                return;
            }
            let Some(shed) = self.pit.pop_impatient(request.face, request.now_ns) else { return };
            self.count_drop(request.face, DropReason::PitShed);
            if let Shed::Ends(index) = shed {
                self.give_up(index, request.now_ns);
            }
        }
    }

    fn on_loop(
        &mut self,
        arrival: &Arrival<'_>,
        accepted: &Accepted<'_>,
        tx: &mut dyn Tx,
    ) -> DropReason {
        let header = LpHeader {
            pit_token: accepted.token.get(),
            nack: Some(nack_reason::DUPLICATE),
            ..LpHeader::default()
        };
        let (faces, counters) = (&mut self.faces, &mut self.counters);
        let mut nacks = NackSender { faces, counters, tx };
        nacks.send(arrival.face, &header, accepted.interest.wire());
        DropReason::LoopedInterest
    }

    fn answer_from_store(
        &mut self,
        arrival: &Arrival<'_>,
        accepted: &Accepted<'_>,
        tx: &mut dyn Tx,
    ) -> bool {
        let (interest, prefixes) = (accepted.interest, accepted.prefixes);
        if interest.past_caches {
            return false;
        }
        let found = self.cs.find_match(interest, prefixes, arrival.face, arrival.now_ns);
        let Some(Match { packet, is_fresh }) = found else {
            self.counters.cs_misses += 1;
            return false;
        };
        self.counters.cs_hits += 1;
        let is_traced = self.tracer.is_asked(arrival.header);
        if is_traced {
            self.tracer.note_cached();
        }
        if let Some(to) = self.faces.get_mut(arrival.face) {
            let not_fresh = interest.can_be_prefix && !is_fresh;
            let header = LpHeader {
                pit_token: accepted.token.get(),
                // The next store counts the freshness from when the packet comes: it would answer
                // with it who asks for what is said now. So would those who wait for that.
                cache_policy: not_fresh.then_some(CACHE_POLICY_NO_CACHE),
                not_fresh,
                path_trace: is_traced.then(|| self.tracer.trace_for(to.info.local)),
                incoming_face_id: to.options.local_fields.then_some(CONTENT_STORE_FACE_ID),
                ..LpHeader::default()
            };
            self.counters.out_data += 1;
            to.send_data(arrival.face, &header, packet, tx);
        }
        true
    }

    /// Adds or renews the in-record of the face that asks.
    fn note_waiting(&mut self, index: PitIndex, arrival: &Arrival<'_>, accepted: &Accepted<'_>) {
        let lifetime_ms = accepted.interest.lifetime_ms_or_default().min(LIFETIME_MAX_MS);
        let record = InRecord {
            face: arrival.face,
            nonce: accepted.nonce,
            expires_ns: arrival.now_ns.saturating_add(lifetime_ms * 1_000_000),
            token: accepted.token,
            is_traced: self.tracer.is_asked(arrival.header),
        };
        let Some(entry) = self.pit.get_mut(index) else { return };
        match entry.records.incoming.iter_mut().find(|known| known.face == arrival.face) {
            Some(known) => *known = record,
            None => entry.records.incoming.push(record),
        }
        self.pit.reschedule(index);
    }

    fn forward(
        &mut self,
        index: PitIndex,
        arrival: &Arrival<'_>,
        accepted: &Accepted<'_>,
        (wire, tx): (&[u8], &mut dyn Tx),
    ) -> Result<(), DropReason> {
        let sending = Sending { nonce: accepted.nonce, wire, arrival };
        if let Some(face) = arrival.header.next_hop_face_id {
            let decision = self.obey(FaceId(face), accepted);
            return self.carry_out(index, decision, &sending, tx);
        }
        let lookup = Lookup {
            name: accepted.interest.name,
            prefixes: accepted.prefixes,
            hint: accepted.interest.forwarding_hint,
            hop_limit: accepted.hop_limit,
            waiting: &[arrival.face],
        };
        let decision = self.decide(index, &lookup, arrival.now_ns, |strategy, context, send| {
            strategy.on_interest(context, send)
        });
        self.carry_out(index, decision, &sending, tx)
    }

    /// Obeys an application that names the next hop (`NextHopFaceId`).
    fn obey(&mut self, face: FaceId, accepted: &Accepted<'_>) -> Decision {
        self.scratch.send.clear();
        let stays_here =
            scope::is_localhost(accepted.interest.name) || accepted.hop_limit == Some(0);
        match self.faces.get(face) {
            Some(to) if to.up && (to.info.local || !stays_here) => {
                self.scratch.send.push(face);
                Decision::Forward
            }
            _ => Decision::Reject(nack_reason::NO_ROUTE),
        }
    }
}

/// Returns whether a nonce shows that the Interest came back. On a point-to-point link the same
/// nonce from the same face is a retransmission.
fn is_looped(entry: &PitEntry, from: FaceId, nonce: [u8; 4], point_to_point: bool) -> bool {
    let repeats = entry.records.incoming.iter().any(|r| r.face == from && r.nonce == nonce);
    if repeats && point_to_point {
        return false;
    }
    repeats
        || entry.records.incoming.iter().any(|record| record.nonce == nonce)
        || entry.records.outgoing.iter().any(|record| record.nonce == nonce)
}
