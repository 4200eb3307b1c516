//! The choice of next hops: which may be used, and which the strategy takes.

use byname_packet::lp::LpHeader;
use byname_packet::{ForwardingHint, Interest, NameRef};
use smallvec::SmallVec;

use super::sending::Sending;
use super::{Arrival, Pipeline};
use crate::face::{FaceId, LinkType};
use crate::hash::Prefixes;
use crate::pit::{Measured, PitIndex};
use crate::rib::{NextHop, NextHops};
use crate::strategy::{Chosen, Context, Decision, Measures, Strategy};
use crate::tx::Tx;
use crate::{hint, scope};

/// The facts that decide which next hops are eligible.
pub(super) struct Lookup<'a> {
    pub(super) name: NameRef<'a>,
    pub(super) prefixes: &'a Prefixes,
    pub(super) hint: Option<ForwardingHint<'a>>,
    pub(super) hop_limit: Option<u8>,
    /// Faces on whose behalf it would be sent.
    pub(super) waiting: &'a [FaceId],
}

impl Pipeline {
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
                let records = &mut entry.records;
                records.outgoing.retain(|r| faces.get(r.face).is_some_and(|face| face.up));
                let namespace = namespace.and_then(|of_route| match strategy.measures() {
                    Measures::Nothing => None,
                    Measures::PerRoute => Some(of_route),
                    Measures::PerChoice => (hops.len() > 1).then_some(of_route),
                    Measures::PerObject => {
                        let of_object = lookup.prefixes.parent().map(|prefix| prefix.hash);
                        let measurements = &self.measurements;
                        of_object
                            .filter(|hash| measurements.has_room_for_object(*hash))
                            .or(namespace)
                    }
                });
                entry.measured = namespace
                    .map(|namespace| Measured { strategy: Chosen::clone(strategy), namespace });
                let mut context = Context {
                    records,
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
        let hint = lookup.hint.as_ref();
        let localhost = scope::is_localhost(lookup.name) || hint.is_some_and(hint::is_localhost);
        let localhop = scope::is_localhop(lookup.name) || hint.is_some_and(hint::is_localhop);
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

    /// The FIB entry that applies: that of the first delegation with one, or of the name.
    fn look_up(&self, lookup: &Lookup<'_>) -> Option<(&NextHops, u64)> {
        let Some(hint) = lookup.hint else {
            return self.fib.longest_match_at(lookup.name, lookup.prefixes);
        };
        let mut prefixes = Prefixes::default();
        hint.names().find_map(|delegation| {
            self.hasher.prefixes(delegation, &mut prefixes);
            self.fib.longest_match_at(delegation, &prefixes)
        })
    }

    /// Asks the strategy of a pending Interest anew, and carries out what it says.
    pub(super) fn reconsider(
        &mut self,
        index: PitIndex,
        now_ns: u64,
        tx: &mut dyn Tx,
        ask: impl FnOnce(&dyn Strategy, &mut Context<'_>, &mut Vec<FaceId>) -> Decision,
    ) {
        let Some(entry) = self.pit.get(index) else { return };
        // An entry may live a moment longer than those who wait.
        let still = || entry.records.incoming.iter().filter(|record| record.expires_ns > now_ns);
        let Some(latest) = still().next_back() else { return };
        let (face, nonce) = (latest.face, latest.nonce);
        let waiting: SmallVec<[FaceId; 4]> = still().map(|record| record.face).collect();
        let mut wire = std::mem::take(&mut self.scratch.wire);
        entry.encode_with_nonce(nonce, &mut wire);
        if let Ok(interest) = Interest::decode(&wire) {
            let mut prefixes = std::mem::take(&mut self.scratch.prefixes);
            self.hasher.prefixes(interest.name, &mut prefixes);
            let lookup = Lookup {
                name: interest.name,
                prefixes: &prefixes,
                hint: interest.forwarding_hint,
                hop_limit: interest.hop_limit,
                waiting: &waiting,
            };
            let decision = self.decide(index, &lookup, now_ns, ask);
            // Only the consumers' own packets carry marks and the like.
            let arrival = Arrival { face, header: &LpHeader::default(), now_ns };
            let sending = Sending { nonce, wire: &wire, arrival: &arrival };
            // Waiting for other faces or passing a Nack on are proper outcomes here.
            let _ = self.carry_out(index, decision, &sending, tx);
            self.scratch.prefixes = prefixes;
        }
        self.scratch.wire = wire;
    }
}
