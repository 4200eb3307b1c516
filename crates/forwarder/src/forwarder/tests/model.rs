//! The PIT against a plain list: whatever is asked, answered and waited for, the same faces get the
//! same answers with the same tokens.

use byname_packet::lp::LpHeader;
use byname_packet::{InterestBuilder, Name};
use proptest::prelude::*;

use crate::config::Config;
use crate::face::FaceId;
use crate::testing::{Bench, MS, data, name};

#[derive(Debug, Clone)]
enum Operation {
    Ask { consumer: usize, name: Name, can_be_prefix: bool, fresh: bool, lifetime_ms: u64 },
    Answer { name: Name },
    Wait { ms: u64 },
    Leave { consumer: usize },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Waiting {
    face: FaceId,
    name: Name,
    can_be_prefix: bool,
    fresh: bool,
    token: Vec<u8>,
    expires_ns: u64,
}

fn a_name() -> impl Strategy<Value = Name> {
    proptest::collection::vec(0u8..2, 0..4).prop_map(|components| {
        components.iter().fold(name("/a"), |name, c| name.with_generic(&[*c]))
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (0usize..4, a_name(), any::<bool>(), any::<bool>(), 1u64..50).prop_map(
            |(consumer, name, can_be_prefix, fresh, lifetime_ms)| {
                Operation::Ask { consumer, name, can_be_prefix, fresh, lifetime_ms }
            }
        ),
        3 => a_name().prop_map(|name| Operation::Answer { name }),
        2 => (0u64..30).prop_map(|ms| Operation::Wait { ms }),
        1 => (0usize..4).prop_map(|consumer| Operation::Leave { consumer }),
    ]
}

struct Pair {
    bench: Bench,
    producer: FaceId,
    consumers: Vec<FaceId>,
    waiting: Vec<Waiting>,
    asked_count: u32,
}

impl Pair {
    fn new() -> Self {
        let mut bench = Bench::with(Config { cs_entries_max: 0, ..Config::default() });
        let producer = bench.local();
        let consumers = (0..4).map(|_| bench.remote()).collect();
        bench.route("/a", producer, 0);
        Self { bench, producer, consumers, waiting: Vec::new(), asked_count: 0 }
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Ask { .. } => self.ask(&operation),
            Operation::Answer { name } => self.answer(&name),
            Operation::Wait { ms } => {
                self.bench.wait_ms(ms);
                let now_ns = self.bench.now_ns;
                self.waiting.retain(|waiting| waiting.expires_ns > now_ns);
            }
            Operation::Leave { consumer } => {
                let old = self.consumers[consumer];
                self.bench.forwarder.remove_face(old);
                self.waiting.retain(|waiting| waiting.face != old);
                self.consumers[consumer] = self.bench.remote();
            }
        }
    }

    fn ask(&mut self, operation: &Operation) {
        let Operation::Ask { consumer, name, can_be_prefix, fresh, lifetime_ms } = operation else {
            return;
        };
        self.asked_count += 1;
        let token = self.asked_count.to_be_bytes();
        let mut wire = Vec::new();
        InterestBuilder::new(name.view())
            .can_be_prefix(*can_be_prefix)
            .must_be_fresh(*fresh)
            .lifetime_ms(*lifetime_ms)
            .nonce(token)
            .encode(&mut wire);
        let waiting = Waiting {
            face: self.consumers[*consumer],
            name: name.clone(),
            can_be_prefix: *can_be_prefix,
            fresh: *fresh,
            token: token.to_vec(),
            expires_ns: self.bench.now_ns + lifetime_ms * MS,
        };
        let header = LpHeader { pit_token: Some(&token), ..LpHeader::default() };
        for sent in self.bench.packet(waiting.face, &header, &wire) {
            assert_eq!((sent.face, sent.nack), (self.producer, None));
        }
        self.waiting.retain(|known| {
            (known.face, &known.name, known.can_be_prefix, known.fresh)
                != (waiting.face, &waiting.name, waiting.can_be_prefix, waiting.fresh)
        });
        self.waiting.push(waiting);
    }

    fn answer(&mut self, name: &Name) {
        let (satisfied, waiting): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(|waiting| {
            waiting.name == *name
                || waiting.can_be_prefix && waiting.name.view().is_prefix_of(name.view())
        });
        self.waiting = waiting;
        let mut expected: Vec<(FaceId, Vec<u8>)> =
            satisfied.into_iter().map(|waiting| (waiting.face, waiting.token)).collect();
        let wire = data(&name.to_string(), 0);
        let sent = self.bench.packet(self.producer, &LpHeader::default(), &wire);
        let mut got: Vec<(FaceId, Vec<u8>)> =
            sent.into_iter().map(|sent| (sent.face, sent.token.unwrap())).collect();
        expected.sort();
        got.sort();
        assert_eq!(got, expected, "for {name}");
    }
}

proptest! {
    #[test]
    fn the_same_faces_get_the_same_answers(
        operations in proptest::collection::vec(operation(), 1..60)
    ) {
        let mut pair = Pair::new();
        for operation in operations {
            pair.apply(operation);
        }
        pair.bench.wait_ms(100);
        prop_assert_eq!(pair.bench.forwarder.pending_count(), 0);
        prop_assert_eq!(pair.bench.forwarder.poll_timeout(), None);
    }
}
