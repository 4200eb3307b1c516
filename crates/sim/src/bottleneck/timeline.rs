//! The agenda, in the order of time and, at one instant, of its planning.
//!
//! Most of it is planned in the order in which it happens: what enters a line first leaves it
//! first. Such events wait in lanes, where they cost an addition; only the others need a heap,
//! and with it the logarithm of what is in flight.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A time, the place in the order of planning, and what happens.
type Planned<E> = (u64, u64, E);

/// Events to come.
pub(super) struct Timeline<E> {
    lanes: Vec<VecDeque<Planned<E>>>,
    others: BinaryHeap<Reverse<Planned<E>>>,
    count: u64,
}

impl<E: Copy + Ord> Timeline<E> {
    pub(super) fn new() -> Self {
        Timeline { lanes: Vec::new(), others: BinaryHeap::new(), count: 0 }
    }

    /// One more lane; returns its number.
    pub(super) fn add_lane(&mut self) -> usize {
        self.lanes.push(VecDeque::new());
        self.lanes.len() - 1
    }

    /// Plans something; with a lane, what usually happens after all that is in that lane.
    pub(super) fn plan(&mut self, at_ns: u64, lane: Option<usize>, event: E) {
        self.count += 1;
        let planned = (at_ns, self.count, event);
        match lane.map(|lane| &mut self.lanes[lane]) {
            Some(lane) if lane.back().is_none_or(|last| last.0 <= at_ns) => {
                lane.push_back(planned);
            }
            _ => self.others.push(Reverse(planned)),
        }
    }

    /// The next event, if it happens by `end_ns`.
    pub(super) fn pop_until(&mut self, end_ns: u64) -> Option<(u64, E)> {
        let other = self.others.peek().map(|Reverse((at_ns, order, _))| (*at_ns, *order));
        let first = |lane: &VecDeque<Planned<E>>| lane.front().map(|it| (it.0, it.1));
        let lanes = self.lanes.iter().enumerate();
        let lane = lanes.filter_map(|(place, lane)| first(lane).map(|key| (key, place))).min();
        let next = [lane.map(|(key, _)| key), other].into_iter().flatten().min()?;
        if next.0 > end_ns {
            return None;
        }
        let planned = match lane {
            Some((key, place)) if key == next => self.lanes[place].pop_front(),
            _ => self.others.pop().map(|Reverse(planned)| planned),
        };
        planned.map(|(at_ns, _, event)| (at_ns, event))
    }

    /// Number of events planned so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn whatever_the_lane_events_come_in_the_order_of_time_and_planning() {
        let (mut random, mut timeline) = (Random::new(3), Timeline::new());
        let lanes = [None, Some(timeline.add_lane()), Some(timeline.add_lane())];
        let mut expected: Vec<(u64, u64)> = (0..1000)
            .map(|order| {
                let at_ns = order / 2 + random.below(20);
                timeline.plan(at_ns, lanes[random.below(3) as usize], order);
                (at_ns, order)
            })
            .collect();
        expected.sort_unstable();
        let got: Vec<_> = std::iter::from_fn(|| timeline.pop_until(300)).collect();
        assert!(got.iter().all(|(at_ns, _)| *at_ns <= 300) && got.len() > 500);
        let rest: Vec<_> = std::iter::from_fn(|| timeline.pop_until(u64::MAX)).collect();
        assert_eq!([got, rest].concat(), expected);
        assert_eq!(timeline.count(), 1000);
    }
}
