//! Turns: whoever asks is served one request after the other, in a circle with all others who ask.
//!
//! Deficit round robin with a request as its quantum: what an asker has waiting does not count, so
//! one with thousands delays one with a single request by one turn. Each queue is bounded by who
//! fills it; an asker without requests is not known here.

use std::collections::{HashMap, VecDeque};

use super::arrival::Asker;

/// Requests in queues, one for each asker.
pub(super) struct Turns<T> {
    /// None of them is empty.
    queues: HashMap<Asker, VecDeque<T>>,
    /// Those with a queue; the first one's turn is next.
    order: VecDeque<Asker>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { queues: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T> Turns<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Askers with requests, `asker` among them.
    pub(super) fn askers_with(&self, asker: Asker) -> usize {
        self.order.len() + usize::from(!self.queues.contains_key(&asker))
    }

    /// Requests of one asker.
    pub(super) fn len_of(&self, asker: Asker) -> usize {
        self.queues.get(&asker).map_or(0, VecDeque::len)
    }

    pub(super) fn push(&mut self, asker: Asker, request: T) {
        let queue = self.queues.entry(asker).or_default();
        if queue.is_empty() {
            self.order.push_back(asker);
        }
        queue.push_back(request);
    }

    /// The next request: the oldest of the asker whose turn it is. Those whose oldest one may not
    /// begin yet are passed over.
    pub(super) fn pop(&mut self, may_begin: impl Fn(&T) -> bool) -> Option<T> {
        for _ in 0..self.order.len() {
            let asker = self.order.pop_front()?;
            let queue = self.queues.get_mut(&asker)?;
            if !queue.front().is_some_and(&may_begin) {
                self.order.push_back(asker);
                continue;
            }
            let request = queue.pop_front();
            if queue.is_empty() {
                self.queues.remove(&asker);
            } else {
                self.order.push_back(asker);
            }
            return request;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::FaceId;
    use super::*;

    fn asker(face: u64, behind: Option<u64>) -> Asker {
        Asker { face: FaceId(face), behind }
    }

    fn drain(turns: &mut Turns<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| turns.pop(|_| true)).collect()
    }

    #[test]
    fn a_single_request_waits_for_one_turn_of_everybody_else() {
        let mut turns = Turns::default();
        let (one, other, late) = (asker(1, None), asker(1, Some(300)), asker(1, Some(301)));
        (0..1000).for_each(|_| turns.push(one, "one"));
        (0..2).for_each(|_| turns.push(other, "other"));
        assert_eq!(turns.pop(|_| true), Some("one"));
        turns.push(late, "late");
        let order = drain(&mut turns);
        assert_eq!(order[..4], ["other", "one", "late", "other"]);
        assert_eq!(order.len(), 1002);
        assert!(turns.is_empty() && turns.queues.is_empty());
    }

    #[test]
    fn who_may_not_begin_is_passed_over_and_keeps_its_place() {
        let mut turns = Turns::default();
        turns.push(asker(1, None), "costly");
        turns.push(asker(2, None), "cheap");
        turns.push(asker(3, None), "costly too");
        assert_eq!(turns.pop(|it| *it == "cheap"), Some("cheap"));
        assert_eq!(turns.pop(|it| *it == "cheap"), None);
        assert_eq!((turns.len_of(asker(1, None)), turns.len_of(asker(2, None))), (1, 0));
        assert_eq!((turns.askers_with(asker(1, None)), turns.askers_with(asker(2, None))), (2, 3));
        assert_eq!(drain(&mut turns), ["costly too", "costly"]);
    }
}
