//! What is known beside all states as they were: an answer is the right one, or there is none.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{At, Cache, Known, Stand, after};

type State = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug, Clone)]
enum Op {
    /// A transaction sets and removes keys.
    Commit(Vec<(u8, Option<u8>)>),
    /// Somebody reads at one of the last stands.
    Point(u8, usize),
    Range(u8, u8, usize, usize),
    /// Everything is forgotten, as when the database was put back.
    Reset,
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..24_u8;
    let value = proptest::option::of(any::<u8>());
    prop_oneof![
        3 => proptest::collection::vec((key(), value), 0..4).prop_map(Op::Commit),
        6 => (key(), 0..4_usize).prop_map(|(key, back)| Op::Point(key, back)),
        6 => (key(), key(), 0..6_usize, 0..4_usize)
            .prop_map(|(from, until, limit, back)| Op::Range(from, until, limit, back)),
        1 => Just(Op::Reset),
    ]
}

fn stand(generation: usize) -> Stand {
    Stand { generation: generation as i64, id: [0; 16] }
}

/// The states since the last reset, with where each is read.
struct World {
    cache: Cache,
    states: Vec<(At, State)>,
}

impl World {
    fn new(bytes_max: usize) -> Self {
        let cache = Cache::new(stand(0), bytes_max);
        let states = vec![(cache.now(), State::new())];
        Self { cache, states }
    }

    fn present(&self) -> &State {
        &self.states.last().unwrap().1
    }

    fn back(&self, back: usize) -> (At, State) {
        self.states[self.states.len().saturating_sub(back + 1)].clone()
    }

    fn commit(&mut self, rows: &[(u8, Option<u8>)]) {
        let mut state = self.present().clone();
        let rows: BTreeMap<Vec<u8>, Option<Vec<u8>>> =
            rows.iter().map(|(key, value)| (vec![*key], value.map(|value| vec![value]))).collect();
        for (key, value) in rows.clone() {
            match value {
                Some(value) => drop(state.insert(key, value)),
                None => drop(state.remove(&key)),
            }
        }
        let next = stand(self.cache.stand().generation as usize + 1);
        self.cache.apply(next, rows.into_iter().collect());
        self.states.push((self.cache.now(), state));
    }

    fn point(&mut self, key: u8, back: usize) -> Result<(), TestCaseError> {
        let (at, state) = self.back(back);
        let expected = state.get(&vec![key]).cloned();
        match self.cache.point(&[key], at) {
            Known::Is(value) => prop_assert_eq!(value, expected),
            Known::Moved => prop_assert!(back > 0, "the present is known or can be asked for"),
            Known::Unknown => {
                let value = self.present().get(&vec![key]).cloned();
                self.cache.learn_point(vec![key], value);
            }
        }
        Ok(())
    }

    fn range(
        &mut self,
        span: (&[u8], &[u8]),
        limit: usize,
        back: usize,
    ) -> Result<(), TestCaseError> {
        let (at, state) = self.back(back);
        let of = |state: &State, limit| -> Vec<(Vec<u8>, Vec<u8>)> {
            let inside = state.iter().filter(|(key, _)| span.0 <= &key[..] && &key[..] < span.1);
            inside.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        match self.cache.range(span, limit, at) {
            Known::Is(rows) => prop_assert_eq!(rows, of(&state, limit)),
            Known::Moved => prop_assert!(back > 0, "the present is known or can be asked for"),
            Known::Unknown => {
                let wanted = self.cache.rows_wanted(span, limit, at);
                let rows = of(self.present(), wanted);
                let until = match rows.last() {
                    Some((last, _)) if rows.len() == wanted => after(last),
                    _ => span.1.to_vec(),
                };
                self.cache.learn_span(span.0, &until, rows);
                prop_assert!(self.cache.range(span, limit, at) != Known::Unknown, "it was learned");
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_known_at_a_stand_is_what_was_there(
        ops in proptest::collection::vec(op(), 1..120),
        bytes_max in prop_oneof![Just(1 << 20), Just(1500_usize)],
    ) {
        let mut world = World::new(bytes_max);
        for op in ops {
            match op {
                Op::Commit(rows) => world.commit(&rows),
                Op::Point(key, back) => world.point(key, back)?,
                Op::Range(from, until, limit, back) => {
                    world.range((&[from], &[until]), limit, back)?;
                }
                Op::Reset => {
                    let old = world.cache.now();
                    world.cache.reset(stand(0));
                    prop_assert_eq!(world.cache.point(&[0], old), Known::Moved);
                    world.states = vec![(world.cache.now(), State::new())];
                }
            }
        }
    }
}

#[test]
fn who_reads_at_a_stand_long_ago_is_told_that_it_has_moved() {
    let mut world = World::new(1 << 20);
    let first = world.cache.now();
    world.cache.learn_point(vec![7], None);
    (0..=super::UNDOS_MAX).for_each(|_| world.commit(&[(1, Some(1))]));
    assert_eq!(world.cache.point(&[7], first), Known::Moved);
    assert_eq!(world.cache.point(&[7], world.cache.now()), Known::Is(None));
}
