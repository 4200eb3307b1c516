//! The Interest pipeline: checks, content store, PIT, strategy.

use byname_packet::lp::{LpHeader, nack_reason};
use byname_packet::{ForwardingHint, Interest, NameRef};

use super::nack::send_nack;
use super::{Arrival, Forwarder, Tx};
use crate::counters::DropReason;
use crate::face::{FaceId, LinkType};
use crate::hash::Prefixes;
use crate::management;
use crate::pit::{
    InRecord, Measured, OutRecord, PitEntry, PitIndex, PitToken, Request, Selectors, Shed,
};
use crate::rib::{NextHop, NextHops};
use crate::scope;
use crate::strategy::{Chosen, Context, Decision, Strategy};

/// Longer lifetimes are cut: a PIT entry must end some day.
pub(crate) const LIFETIME_MAX_MS: u64 = 600_000;

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

/// What decides which next hops are eligible.
pub(super) struct Lookup<'a> {
    pub(super) name: NameRef<'a>,
    pub(super) prefixes: &'a Prefixes,
    pub(super) hint: Option<ForwardingHint<'a>>,
    pub(super) hop_limit: Option<u8>,
    /// Faces on whose behalf it would be sent.
    pub(super) waiting: &'a [FaceId],
}

impl Forwarder {
    pub(super) fn on_interest(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
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
        if management::is_for_us(name) {
            return self.on_management(arrival, interest, tx);
        }
        let nonce = interest.nonce.unwrap_or_else(|| self.rng.nonce());
        let mut prefixes = std::mem::take(&mut self.scratch.prefixes);
        self.hasher.prefixes(name, &mut prefixes);
        let accepted = Accepted { interest, nonce, hop_limit, token, prefixes: &prefixes };
        let result = self.on_accepted(arrival, &accepted, tx);
        self.scratch.prefixes = prefixes;
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

    /// Gives up what the face has waited for long, when it has used up its share of the PIT.
    fn make_room(&mut self, request: &Request<'_>) {
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
        let packet = (&header, accepted.interest.wire());
        send_nack((&mut self.faces, &mut self.counters), arrival.face, packet, tx);
        DropReason::LoopedInterest
    }

    fn answer_from_store(
        &mut self,
        arrival: &Arrival<'_>,
        accepted: &Accepted<'_>,
        tx: &mut dyn Tx,
    ) -> bool {
        let (interest, prefixes) = (accepted.interest, accepted.prefixes);
        let found = self.cs.find_match(interest, prefixes, arrival.face, arrival.now_ns);
        let Some(packet) = found else {
            self.counters.cs_misses += 1;
            return false;
        };
        self.counters.cs_hits += 1;
        if let Some(to) = self.faces.get_mut(arrival.face) {
            let header = LpHeader {
                pit_token: accepted.token.get(),
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
        };
        let Some(entry) = self.pit.get_mut(index) else { return };
        match entry.in_records.iter_mut().find(|known| known.face == arrival.face) {
            Some(known) => *known = record,
            None => entry.in_records.push(record),
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

    /// What an application says with `NextHopFaceId`: this way and no other.
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

    /// Collects the eligible next hops and asks the strategy; faces to send to are then in scratch.
    pub(super) fn decide(
        &mut self,
        index: PitIndex,
        lookup: &Lookup<'_>,
        now_ns: u64,
        ask: impl FnOnce(&dyn Strategy, &mut Context<'_>, &mut Vec<FaceId>) -> Decision,
    ) -> Decision {
        let mut hops = std::mem::take(&mut self.scratch.hops);
        let namespace = self.eligible_hops(lookup, &mut hops);
        self.scratch.send.clear();
        let mut wake_at_ns = None;
        let strategy = self.strategies.longest_match(lookup.name, lookup.prefixes);
        let faces = &self.faces;
        let decision = match (strategy, self.pit.get_mut(index)) {
            (Some(strategy), Some(entry)) => {
                // What was sent over a link that is lost will not be answered.
                entry.out_records.retain(|r| faces.get(r.face).is_some_and(|face| face.up));
                let namespace = namespace.filter(|_| strategy.measures());
                entry.measured = namespace
                    .map(|namespace| Measured { strategy: Chosen::clone(strategy), namespace });
                let mut context = Context {
                    entry,
                    hops: &hops,
                    now_ns,
                    random: self.rng.next_u64(),
                    namespace: namespace.and_then(|at| self.measurements.at(at, now_ns)),
                    wake_at_ns: None,
                };
                let decision = ask(&**strategy, &mut context, &mut self.scratch.send);
                wake_at_ns = context.wake_at_ns;
                decision
            }
            _ => Decision::Suppress,
        };
        if let Some(at_ns) = wake_at_ns {
            self.pit.wake_at(index, at_ns);
        }
        self.scratch.hops = hops;
        decision
    }

    /// Replaces `out` by the next hops that may be used; the hash of the prefix they are for.
    fn eligible_hops(&self, lookup: &Lookup<'_>, out: &mut Vec<NextHop>) -> Option<u64> {
        out.clear();
        let (hops, namespace) = self.look_up(lookup)?;
        let localhost = scope::is_localhost(lookup.name);
        let localhop = scope::is_localhop(lookup.name);
        for hop in hops {
            let Some(face) = self.faces.get(hop.face).filter(|face| face.up) else { continue };
            let local = face.info.local;
            if !local && (localhost || lookup.hop_limit == Some(0)) {
                continue;
            }
            let goes_back =
                |from: FaceId| from == hop.face && face.info.link_type != LinkType::AdHoc;
            let serves = |from: &&FaceId| {
                !goes_back(**from) && (!localhop || local || self.is_local(**from))
            };
            if lookup.waiting.iter().any(|from| serves(&from)) {
                out.push(*hop);
            }
        }
        Some(namespace)
    }

    /// The FIB entry that applies: of the first delegation with one, unless we are in its region.
    fn look_up(&self, lookup: &Lookup<'_>) -> Option<(&NextHops, u64)> {
        let in_region = |hint: &ForwardingHint<'_>| {
            hint.names().any(|d| self.config.regions.iter().any(|r| d.is_prefix_of(r.view())))
        };
        if let Some(hint) = lookup.hint.filter(|hint| !in_region(hint)) {
            let mut prefixes = Prefixes::default();
            for delegation in hint.names() {
                self.hasher.prefixes(delegation, &mut prefixes);
                if let Some(found) = self.fib.longest_match_at(delegation, &prefixes) {
                    return Some(found);
                }
            }
        }
        self.fib.longest_match_at(lookup.name, lookup.prefixes)
    }

    pub(super) fn carry_out(
        &mut self,
        index: PitIndex,
        decision: Decision,
        sending: &Sending<'_>,
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        match decision {
            Decision::Forward => {
                let faces = std::mem::take(&mut self.scratch.send);
                for face in &faces {
                    self.send_interest(index, *face, sending, tx);
                }
                self.scratch.send = faces;
                Ok(())
            }
            Decision::Probe => {
                let mut faces = std::mem::take(&mut self.scratch.send);
                let probed = faces.pop();
                for face in &faces {
                    self.send_interest(index, *face, sending, tx);
                }
                self.scratch.send = faces;
                if let Some(face) = probed {
                    self.send_probe(index, face, sending, tx);
                }
                Ok(())
            }
            Decision::Suppress => Err(DropReason::Suppressed),
            Decision::Reject(reason) => {
                self.reject(index, reason, sending.arrival.now_ns, tx);
                Err(DropReason::NoRoute)
            }
        }
    }

    /// Sends an Interest with a nonce of its own.
    fn send_probe(
        &mut self,
        index: PitIndex,
        face: FaceId,
        sending: &Sending<'_>,
        tx: &mut dyn Tx,
    ) {
        let nonce = self.rng.nonce();
        let mut wire = Vec::new();
        if let Some(entry) = self.pit.get(index) {
            entry.encode_with_nonce(nonce, &mut wire);
        }
        let probe = Sending { nonce, wire: &wire, arrival: sending.arrival };
        self.send_interest(index, face, &probe, tx);
    }

    fn send_interest(
        &mut self,
        index: PitIndex,
        face: FaceId,
        sending: &Sending<'_>,
        tx: &mut dyn Tx,
    ) {
        let now_ns = sending.arrival.now_ns;
        let Some(entry) = self.pit.get_mut(index) else { return };
        let expires_ns = entry.expires_ns;
        let mut replaced = None;
        match entry.out_record_mut(face) {
            Some(record) => {
                replaced = Some(record.nonce).filter(|nonce| *nonce != sending.nonce);
                record.nonce = sending.nonce;
                record.sent_ns = now_ns;
                record.expires_ns = expires_ns;
                record.nacked = None;
            }
            None => entry.out_records.push(OutRecord {
                face,
                nonce: sending.nonce,
                sent_ns: now_ns,
                expires_ns,
                nacked: None,
                suppression_ns: 0,
            }),
        }
        if let Some(nonce) = replaced {
            let hash = entry.hash;
            self.dead_nonces.insert(&self.hasher, (hash, nonce), now_ns);
        }
        let Some(to) = self.faces.get_mut(face) else { return };
        to.counters.out_interests += 1;
        to.counters.out_bytes += sending.wire.len() as u64;
        self.counters.out_interests += 1;
        let header = LpHeader {
            pit_token: self.shard_token.as_ref().map(|token| &token[..]),
            congestion_mark: sending.arrival.header.congestion_mark,
            non_discovery: sending.arrival.header.non_discovery,
            incoming_face_id: to.options.local_fields.then_some(sending.arrival.face.0),
            ..LpHeader::default()
        };
        tx.send(face, &header, sending.wire);
    }
}

/// An Interest on its way out.
pub(super) struct Sending<'a> {
    pub(super) nonce: [u8; 4],
    pub(super) wire: &'a [u8],
    pub(super) arrival: &'a Arrival<'a>,
}

/// Whether a nonce shows that the Interest came back. On a point-to-point link the same nonce from
/// the same face is a retransmission.
fn is_looped(entry: &PitEntry, from: FaceId, nonce: [u8; 4], point_to_point: bool) -> bool {
    let repeats = entry.in_records.iter().any(|r| r.face == from && r.nonce == nonce);
    if repeats && point_to_point {
        return false;
    }
    repeats
        || entry.in_records.iter().any(|record| record.nonce == nonce)
        || entry.out_records.iter().any(|record| record.nonce == nonce)
}
