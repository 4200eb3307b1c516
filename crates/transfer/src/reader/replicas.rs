//! Replicas of a content: which of them each Interest names, and when caches are passed by.
//!
//! Every reader begins with the same one ([`delegations::preferred`]), so that Interests aggregate
//! on their way. After a Nack or a time-out the next one is named. A replica that missed
//! [`MISSES_MAX`] in a row is passed over for a while: without that, a dead one would cost a
//! time-out for each segment of its part.
//!
//! What came and was refused is asked for past caches: a cache may hold what a stranger's hint
//! brought. If that is refused too, the next replica is asked.

use std::collections::HashMap;

use byname_packet::{Name, NumberComponent};

use crate::delegations;
use crate::fetch::NackKind;
use crate::naming::ContentName;
use crate::request::Request;

/// Requests in a row that a replica may leave without an answer: some are lost on any path.
const MISSES_MAX: u32 = 32;
/// Time for which it is passed over then.
const PASSED_OVER_NS: u64 = 5_000_000_000;
/// Answers that did not verify after which everything is asked for past caches.
const DOUBTS_MAX: u32 = 16;
/// First answers that are held against no source, because a cache may have given them: what was in
/// flight before the first of them was found out.
const DOUBTS_FREE: u32 = 512;
/// Segments of which something is kept: more than are ever in flight. Beyond that all is forgotten.
const ASKED_MAX: usize = 65_536;

/// A segment: the place of its part, its number.
type Segment = (usize, u64);

/// What is known of the requests for one segment.
#[derive(Debug, Default)]
struct Asked {
    /// The replica named last, if any is.
    replica: usize,
    /// Requests sent.
    count: u32,
    /// Replicas, one after the other, that refused it, and that said that it is gone.
    refusals: usize,
    gone: usize,
    /// Answers that did not verify.
    bad: u32,
}

#[derive(Debug, Default)]
struct Health {
    misses: u32,
    until_ns: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Replicas {
    names: Vec<Name>,
    health: Vec<Health>,
    id: u64,
    /// Segments whose first answer did not verify.
    doubts: u32,
    /// Segments in flight or to be asked for again; without replicas only those refused.
    asked: HashMap<Segment, Asked>,
}

impl Replicas {
    /// The replicas of the object with this versioned name.
    pub(super) fn new(versioned: &Name, names: Vec<Name>) -> Self {
        let content = ContentName::parse(versioned.view().without_last(1));
        let health = names.iter().map(|_| Health::default()).collect();
        Replicas {
            names,
            health,
            id: content.map_or(0, |content| content.id),
            doubts: 0,
            asked: HashMap::new(),
        }
    }

    /// The Interest for a segment of the part `name`.
    pub(super) fn request(&mut self, name: &Name, segment: Segment, now_ns: u64) -> Request {
        let number = NumberComponent::segment(segment.1);
        let mut request = Request::exact(name.with(number.as_component()));
        if self.names.is_empty() {
            let asked = self.asked.get(&segment);
            let is_doubted = asked.is_some_and(|asked| asked.bad > 0);
            request.past_caches = is_doubted || self.doubts >= DOUBTS_MAX;
            return request;
        }
        if self.asked.len() >= ASKED_MAX {
            self.asked.clear();
        }
        let first = delegations::preferred(self.id, segment.1, self.names.len()).unwrap_or(0);
        let asked = self.asked.entry(segment).or_default();
        let mut wanted = first;
        if asked.count > 0 {
            let is_doubted_once = asked.bad == 1;
            wanted = if is_doubted_once { asked.replica } else { asked.replica + 1 };
            if asked.bad == 0 && asked.refusals == 0 {
                note_missed(&mut self.health[asked.replica], now_ns);
            }
        }
        asked.replica = nearest(&self.health, wanted, now_ns);
        asked.count += 1;
        request.past_caches = asked.bad > 0 || self.doubts >= DOUBTS_MAX;
        request.hint = self.names.get(asked.replica).cloned();
        request
    }

    /// Its Data came.
    pub(super) fn on_data(&mut self, segment: Segment) {
        let Some(asked) = self.asked.get_mut(&segment) else { return };
        if let Some(health) = self.health.get_mut(asked.replica) {
            *health = Health::default();
        }
        if asked.bad == 0 {
            self.asked.remove(&segment);
        } else {
            asked.refusals = 0;
        }
    }

    /// What came did not verify. True if it may have come from a cache.
    pub(super) fn on_bad(&mut self, segment: Segment) -> bool {
        if self.asked.len() >= ASKED_MAX {
            self.asked.clear();
        }
        let first = delegations::preferred(self.id, segment.1, self.names.len()).unwrap_or(0);
        let new = || Asked { replica: first, count: 1, ..Asked::default() };
        let asked = self.asked.entry(segment).or_insert_with(new);
        asked.bad += 1;
        let is_first = asked.bad == 1;
        self.doubts = self.doubts.saturating_add(u32::from(is_first));
        is_first && self.doubts <= DOUBTS_FREE
    }

    /// A Nack came; what it means, since another replica may have what one has not.
    pub(super) fn on_nack(&mut self, segment: Segment, kind: NackKind) -> NackKind {
        if !matches!(kind, NackKind::NoRoute | NackKind::Gone) || self.names.len() < 2 {
            return kind;
        }
        let Some(asked) = self.asked.get_mut(&segment) else { return kind };
        asked.refusals += 1;
        asked.gone += usize::from(kind == NackKind::Gone);
        match () {
            () if asked.gone >= self.names.len() => NackKind::Gone,
            () if asked.refusals.is_multiple_of(self.names.len()) => NackKind::NoRoute,
            () => NackKind::Elsewhere,
        }
    }
}

fn note_missed(health: &mut Health, now_ns: u64) {
    health.misses += 1;
    if health.misses >= MISSES_MAX {
        health.until_ns = now_ns.saturating_add(PASSED_OVER_NS);
    }
}

/// The first replica from `wanted` on that is not passed over; that one if all are.
fn nearest(health: &[Health], wanted: usize, now_ns: u64) -> usize {
    let count = health.len().max(1);
    let from_wanted = (0..count).map(|step| (wanted + step) % count);
    let answers = |index: &usize| health.get(*index).is_some_and(|one| one.until_ns <= now_ns);
    from_wanted.clone().find(answers).unwrap_or(wanted % count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEC: u64 = 1_000_000_000;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    fn replicas(count: u64) -> (Name, Replicas) {
        let versioned = name("/site/32=file/seq=7/v=1");
        let names = (0..count).map(|number| name("/site").with_version(number)).collect();
        let replicas = Replicas::new(&versioned, names);
        (versioned, replicas)
    }

    fn hint_of(request: &Request) -> usize {
        let last = request.hint.as_ref().unwrap().view().last().unwrap();
        last.version().unwrap() as usize
    }

    #[test]
    fn each_interest_names_one_replica_the_same_for_every_reader() {
        let (versioned, mut replicas) = replicas(3);
        for segment in [0, 1, 2047, 2048, 10_000] {
            let first = delegations::preferred(7, segment, 3).unwrap();
            assert_eq!(hint_of(&replicas.request(&versioned, (0, segment), 0)), first);
        }
    }

    #[test]
    fn after_a_time_out_or_a_nack_the_next_one_is_named() {
        let (versioned, mut replicas) = replicas(3);
        let first = hint_of(&replicas.request(&versioned, (0, 5), 0));
        let second = replicas.request(&versioned, (0, 5), SEC);
        assert_eq!((hint_of(&second), second.past_caches), ((first + 1) % 3, false));
        assert_eq!(replicas.on_nack((0, 5), NackKind::NoRoute), NackKind::Elsewhere);
        assert_eq!(hint_of(&replicas.request(&versioned, (0, 5), SEC)), (first + 2) % 3);
    }

    #[test]
    fn content_is_gone_when_every_replica_says_so() {
        let (versioned, mut replicas) = replicas(2);
        replicas.request(&versioned, (0, 5), 0);
        assert_eq!(replicas.on_nack((0, 5), NackKind::Gone), NackKind::Elsewhere);
        replicas.request(&versioned, (0, 5), 0);
        assert_eq!(replicas.on_nack((0, 5), NackKind::Gone), NackKind::Gone);
        replicas.request(&versioned, (0, 6), 0);
        assert_eq!(replicas.on_nack((0, 6), NackKind::Congestion), NackKind::Congestion);
    }

    #[test]
    fn a_dead_replica_is_passed_over_and_tried_again_later() {
        let (versioned, mut replicas) = replicas(2);
        let missed = u64::from(MISSES_MAX);
        let first = hint_of(&replicas.request(&versioned, (0, 0), 0));
        (1..missed).for_each(|segment| {
            replicas.request(&versioned, (0, segment), 0);
        });
        (0..missed).for_each(|segment| {
            let other = replicas.request(&versioned, (0, segment), SEC);
            assert_eq!(hint_of(&other), 1 - first);
            replicas.on_data((0, segment));
        });
        assert_eq!(hint_of(&replicas.request(&versioned, (0, 100), SEC)), 1 - first);
        assert_eq!(hint_of(&replicas.request(&versioned, (0, 101), 7 * SEC)), first);
        assert_eq!(replicas.asked.len(), 2, "what was answered is forgotten");
    }

    #[test]
    fn a_bad_answer_is_asked_for_past_caches_once_and_then_elsewhere() {
        let (versioned, mut replicas) = replicas(2);
        let first = hint_of(&replicas.request(&versioned, (0, 0), 0));
        replicas.on_data((0, 0));
        replicas.on_bad((0, 0));
        let again = replicas.request(&versioned, (0, 0), 0);
        assert_eq!((hint_of(&again), again.past_caches), (first, true));
        replicas.on_data((0, 0));
        replicas.on_bad((0, 0));
        let other = replicas.request(&versioned, (0, 0), 0);
        assert_eq!((hint_of(&other), other.past_caches), (1 - first, true));
    }

    #[test]
    fn after_many_bad_answers_caches_are_not_asked_at_all() {
        let (versioned, mut replicas) = replicas(2);
        let bad = (0..u64::from(DOUBTS_MAX)).filter(|segment| replicas.on_bad((0, *segment)));
        assert_eq!(bad.count(), DOUBTS_MAX as usize, "held against nobody");
        assert!(replicas.request(&versioned, (0, 1000), 0).past_caches);
        assert!(!replicas.on_bad((0, 0)), "the second answer came past caches");
    }

    #[test]
    fn who_makes_everything_up_is_found_out() {
        let (_, mut replicas) = replicas(0);
        let free = (0..10_000).filter(|segment| replicas.on_bad((0, *segment))).count();
        assert_eq!(free, DOUBTS_FREE as usize);
    }

    #[test]
    fn without_replicas_only_what_was_refused_is_kept() {
        let (versioned, mut replicas) = replicas(0);
        let request = replicas.request(&versioned, (0, 0), 0);
        assert_eq!((request.hint, request.past_caches, replicas.asked.len()), (None, false, 0));
        replicas.on_bad((0, 0));
        assert!(replicas.request(&versioned, (0, 0), 0).past_caches);
    }
}
