//! Access: every next hop at first, then the one that answered last.
//!
//! For the edge, where several gateways or neighbours may have what is asked for and routes do not
//! say which. The first Interest for an object goes to all next hops. Whoever answers first gets
//! the following Interests alone. If it does not answer one of them within the time-out of its
//! round trips, that Interest goes to all others at once, and whoever answers takes over. What is
//! remembered holds for names that differ in the last component, as the segments of an object do.
//!
//! A retransmission goes to all next hops, unless it comes too early. Nothing is probed: while a
//! next hop answers, nobody else is asked, even if it would be faster.

use std::sync::Arc;

use super::api::{Answer, Chosen, Context, Decision, Measures, Strategy};
use super::parameters::Parameters;
use super::refusal::{common_nack, without_hops};
use super::suppression::Suppression;
use crate::face::FaceId;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct Access {
    suppression: Suppression,
}

impl Access {
    pub(super) fn build(mut parameters: Parameters) -> Option<Chosen> {
        let suppression = Suppression::take(&mut parameters)?;
        parameters.is_empty().then(|| Arc::new(Self { suppression }) as Chosen)
    }
}

impl Strategy for Access {
    fn label(&self) -> (&'static str, u64) {
        ("access", 1)
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        self.suppression.parameters()
    }

    fn measures(&self) -> Measures {
        Measures::PerObject
    }

    fn on_interest(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        if context.hops.is_empty() {
            return without_hops(context);
        }
        let (records, now_ns) = (&mut *context.records, context.now_ns);
        if records.is_awaited(now_ns) {
            let age_ns = now_ns.saturating_sub(records.last_sent_ns().unwrap_or(0));
            if self.suppression.holds_back(&mut records.suppression_ns, age_ns) {
                return Decision::Suppress;
            }
            send.extend(context.hops.iter().map(|hop| hop.face));
            return Decision::Forward;
        }
        records.suppression_ns = 0;
        match ask_last_working(context) {
            Some(face) => send.push(face),
            None => send.extend(context.hops.iter().map(|hop| hop.face)),
        }
        Decision::Forward
    }

    fn on_nack(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        let records = &*context.records;
        let has_refused =
            |face: FaceId| records.out_record(face).is_some_and(|record| record.nacked.is_some());
        if let Some(namespace) = context.namespace.as_deref_mut() {
            namespace.last_working = namespace.last_working.filter(|face| !has_refused(*face));
        }
        if records.is_awaited(context.now_ns) {
            return Decision::Suppress;
        }
        if ask_others(context, send) {
            return Decision::Forward;
        }
        common_nack(context.records, context.now_ns).map_or(Decision::Suppress, Decision::Reject)
    }

    fn on_data(&self, answer: Answer<'_>) {
        answer.namespace.path_mut(answer.face, answer.now_ns).on_answer(answer.rtt_ns);
        answer.namespace.last_working = Some(answer.face);
    }

    fn on_timeout(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        if ask_others(context, send) { Decision::Forward } else { Decision::Suppress }
    }
}

/// The next hop that answered last, if it is still one; its time-out is then set.
fn ask_last_working(context: &mut Context<'_>) -> Option<FaceId> {
    let (hops, now_ns) = (context.hops, context.now_ns);
    let namespace = context.namespace.as_deref_mut()?;
    let face = namespace.last_working.filter(|last| hops.iter().any(|hop| hop.face == *last))?;
    let timeout_ns = namespace.path_mut(face, now_ns).timeout_ns();
    context.wake_at_ns = Some(now_ns.saturating_add(timeout_ns));
    Some(face)
}

/// Sends to every next hop that this Interest has not gone to, or too long ago; false if there is
/// none.
fn ask_others(context: &Context<'_>, send: &mut Vec<FaceId>) -> bool {
    let others = context.hops.iter().map(|hop| hop.face);
    send.extend(others.filter(|face| context.records.is_unused(*face, context.now_ns)));
    !send.is_empty()
}

#[cfg(test)]
mod tests {
    use byname_packet::lp::nack_reason;

    use crate::face::FaceId;
    use crate::strategy::by_name;
    use crate::strategy::measurements::OBJECTS_MAX;
    use crate::testing::{Bench, faces, name};

    /// A consumer and three next hops of `/a`, none better than the others.
    fn edge() -> (Bench, FaceId, [FaceId; 3]) {
        let mut bench = Bench::new();
        let consumer = bench.local();
        let hops = [bench.remote(), bench.remote(), bench.remote()];
        hops.iter().for_each(|hop| bench.route("/a", *hop, 10));
        let strategy = by_name(name("/localhost/nfd/strategy/access").view());
        bench.forwarder.set_strategy(&name("/a"), strategy.expect("a strategy"));
        (bench, consumer, hops)
    }

    /// Asks for a segment; after 20 ms `holder` answers. Who was asked.
    fn fetch(bench: &mut Bench, consumer: FaceId, uri: &str, holder: FaceId) -> Vec<FaceId> {
        let asked = faces(&bench.interest(consumer, uri, 1));
        assert_eq!(faces(&bench.after_ms(20)), [], "an answer in time is waited for");
        assert_eq!(faces(&bench.data(holder, uri, 0)), [consumer]);
        asked
    }

    #[test]
    fn the_first_interest_asks_all_and_the_next_ones_whoever_answered() {
        let (mut bench, consumer, hops) = edge();
        assert_eq!(fetch(&mut bench, consumer, "/a/file/0", hops[1]), hops);
        for segment in 1..20 {
            let uri = format!("/a/file/{segment}");
            assert_eq!(fetch(&mut bench, consumer, &uri, hops[1]), [hops[1]]);
        }
        // Another object may be somewhere else.
        assert_eq!(fetch(&mut bench, consumer, "/a/other/0", hops[2]), hops);
        assert_eq!(fetch(&mut bench, consumer, "/a/other/1", hops[2]), [hops[2]]);
        assert_eq!(fetch(&mut bench, consumer, "/a/file/20", hops[1]), [hops[1]]);
    }

    #[test]
    fn a_holder_that_falls_silent_is_replaced_within_its_time_out() {
        let (mut bench, consumer, hops) = edge();
        for segment in 0..30 {
            fetch(&mut bench, consumer, &format!("/a/file/{segment}"), hops[0]);
        }
        assert_eq!(faces(&bench.interest(consumer, "/a/file/30", 1)), [hops[0]]);
        let sent = bench.after_ms(40);
        assert_eq!(faces(&sent), [hops[1], hops[2]], "within two round trips, without help");
        bench.wait_ms(20);
        bench.data(hops[2], "/a/file/30", 0);
        assert_eq!(fetch(&mut bench, consumer, "/a/file/31", hops[2]), [hops[2]]);
    }

    #[test]
    fn a_retransmission_asks_all_unless_it_is_early() {
        let (mut bench, consumer, hops) = edge();
        fetch(&mut bench, consumer, "/a/file/0", hops[0]);
        assert_eq!(faces(&bench.interest(consumer, "/a/file/1", 1)), [hops[0]]);
        assert_eq!(faces(&bench.interest(consumer, "/a/file/1", 2)), []);
        bench.now_ns += 15_000_000;
        assert_eq!(faces(&bench.interest(consumer, "/a/file/1", 3)), hops);
    }

    #[test]
    fn a_holder_that_refuses_is_left_at_once() {
        let (mut bench, consumer, hops) = edge();
        fetch(&mut bench, consumer, "/a/file/0", hops[0]);
        let sent = bench.interest(consumer, "/a/file/1", 1);
        let others = bench.nack(hops[0], &sent[0].wire, nack_reason::NO_ROUTE);
        assert_eq!(faces(&others), [hops[1], hops[2]]);
        assert_eq!(faces(&bench.nack(hops[1], &others[0].wire, nack_reason::NO_ROUTE)), []);
        let refused = bench.nack(hops[2], &others[1].wire, nack_reason::CONGESTION);
        assert_eq!(faces(&refused), [consumer]);
        assert_eq!(refused[0].nack, Some(nack_reason::CONGESTION), "the mildest");
        assert_eq!(fetch(&mut bench, consumer, "/a/file/2", hops[1]), hops, "it is not trusted");
    }

    #[test]
    fn a_holder_without_route_or_link_is_not_asked() {
        let (mut bench, consumer, hops) = edge();
        fetch(&mut bench, consumer, "/a/file/0", hops[0]);
        bench.forwarder.set_face_up(hops[0], false);
        assert_eq!(fetch(&mut bench, consumer, "/a/file/1", hops[1]), [hops[1], hops[2]]);
        bench.forwarder.remove_route(&name("/a"), hops[1], 0);
        assert_eq!(faces(&bench.interest(consumer, "/a/file/2", 1)), [hops[2]]);
    }

    #[test]
    fn what_is_remembered_is_bounded_by_falling_back_to_the_route() {
        let (mut bench, consumer, hops) = edge();
        for object in 0..OBJECTS_MAX {
            let uri = format!("/a/{object}/0");
            assert_eq!(fetch(&mut bench, consumer, &uri, hops[0]), hops);
        }
        assert_eq!(fetch(&mut bench, consumer, "/a/new/0", hops[1]), hops);
        assert_eq!(fetch(&mut bench, consumer, "/a/newer/0", hops[1]), [hops[1]], "the route's");
        assert_eq!(fetch(&mut bench, consumer, "/a/7/1", hops[0]), [hops[0]], "its own");
    }
}
