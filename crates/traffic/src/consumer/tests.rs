//! The consumer in made-up time, with the real producer where answers are wanted.

use super::*;
use crate::numbers::{Distribution, Numbers};
use crate::producer::{Producer, ProducerConfig};
use byname_packet::Name;
use byname_packet::lp::LpPacket;

const MS: u64 = 1_000_000;

fn pattern(prefix: &str) -> Pattern {
    Pattern { lifetime_ms: 10, ..Pattern::new(prefix.parse().unwrap()) }
}

fn config(patterns: Vec<Pattern>, load: Load) -> ConsumerConfig {
    ConsumerConfig {
        patterns,
        load,
        duration_ns: None,
        count: None,
        sizes: Some(Sizes::fixed(300).unwrap()),
        checks_content: true,
    }
}

fn producer(prefixes: &[&str]) -> Producer {
    Producer::new(ProducerConfig {
        prefixes: prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect(),
        ..ProducerConfig::new(Sizes::fixed(300).unwrap())
    })
}

fn frames(consumer: &mut Consumer, now_ns: u64) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| consumer.poll_interest(now_ns).map(<[u8]>::to_vec)).collect()
}

/// Lets the producer answer a frame and the consumer judge the answer.
fn exchange(consumer: &mut Consumer, producer: &mut Producer, frame: &[u8], now_ns: u64) {
    let lp = LpPacket::decode(frame).unwrap();
    if !producer.handle_packet(&lp.header, lp.fragment.unwrap()) {
        return;
    }
    let mut answer = Vec::new();
    producer.poll_reply(&mut |reply| {
        answer.resize(reply.frame_len(), 0);
        reply.write(&mut answer);
        true
    });
    let lp = LpPacket::decode(&answer).unwrap();
    consumer.handle_packet(&lp.header, lp.fragment.unwrap(), now_ns);
}

#[test]
fn a_window_is_kept_full_until_the_count_is_reached() {
    let mut consumer = Consumer::new(
        ConsumerConfig { count: Some(10), ..config(vec![pattern("/a")], Load::Window(4)) },
        1,
    )
    .unwrap();
    let mut producer = producer(&["/a"]);
    let mut sent = frames(&mut consumer, 5);
    assert_eq!(sent.len(), 4);
    let mut total = 0;
    while let Some(frame) = sent.pop() {
        total += 1;
        exchange(&mut consumer, &mut producer, &frame, 5 + total * MS);
        sent.extend(frames(&mut consumer, 5 + total * MS));
    }
    let report = consumer.report(99 * MS);
    assert!(consumer.is_done(99 * MS));
    let counters = PatternCounters { interests: 10, data: 10, ..PatternCounters::default() };
    assert_eq!(report.total(), counters);
    assert_eq!((report.content_bytes, report.elapsed_ns), (3000, 10 * MS));
    assert_eq!(report.latency.count(), 10);
    assert!(report.latency.min_ns() >= MS - MS / 1000, "{}", report.latency.min_ns());
}

#[test]
fn what_is_not_answered_is_given_up_and_what_comes_then_is_unexpected() {
    let mut consumer = Consumer::new(config(vec![pattern("/a")], Load::Window(2)), 1).unwrap();
    let mut producer = producer(&["/a"]);
    let first = frames(&mut consumer, 0);
    assert_eq!(consumer.poll_timeout(), Some(10 * MS));
    consumer.handle_timeout(10 * MS - 1);
    assert!(frames(&mut consumer, 10 * MS - 1).is_empty());
    consumer.handle_timeout(10 * MS);
    assert_eq!(frames(&mut consumer, 10 * MS).len(), 2);
    exchange(&mut consumer, &mut producer, &first[0], 11 * MS);
    let report = consumer.report(11 * MS);
    assert_eq!((report.total().timeouts, report.total().data, report.unexpected), (2, 0, 1));
}

#[test]
fn wrong_content_and_wrong_names_are_no_answers() {
    let mut consumer = Consumer::new(config(vec![pattern("/a")], Load::Window(3)), 1).unwrap();
    let sent = frames(&mut consumer, 0);
    let answers: Vec<Vec<u8>> = sent
        .iter()
        .map(|frame| {
            let mut producer = producer(&["/a"]);
            let lp = LpPacket::decode(frame).unwrap();
            assert!(producer.handle_packet(&lp.header, lp.fragment.unwrap()));
            let mut answer = Vec::new();
            producer.poll_reply(&mut |reply| {
                answer.resize(reply.frame_len(), 0);
                reply.write(&mut answer);
                true
            });
            answer
        })
        .collect();
    let [first, second, third] = &answers[..] else { panic!() };
    let (first, second, third) =
        [first, second, third].map(|frame| LpPacket::decode(frame).unwrap()).into();
    // The token of one with the packet of another.
    consumer.handle_packet(&first.header, second.fragment.unwrap(), 1);
    assert_eq!((consumer.report(1).unexpected, consumer.report(1).total().data), (1, 0));
    // No token: found by name.
    consumer.handle_packet(&LpHeader::default(), second.fragment.unwrap(), 1);
    assert_eq!(consumer.report(1).total().data, 1);
    // One bit of the content flipped.
    let mut flipped = third.fragment.unwrap().to_vec();
    let at = flipped.len() - 50;
    flipped[at] ^= 1;
    consumer.handle_packet(&third.header, &flipped, 1);
    assert_eq!(consumer.report(1).total().mismatches, 1);
    // A Nack.
    let nack = LpHeader { nack: Some(150), ..first.header };
    let interest = LpPacket::decode(&sent[0]).unwrap().fragment.unwrap();
    consumer.handle_packet(&nack, interest, 1);
    let report = consumer.report(1);
    assert_eq!((report.total().nacks, report.nacks.get(&150)), (1, Some(&1)));
    assert_eq!(report.unexpected, 1);
}

#[test]
fn lengths_are_checked_where_they_are_known() {
    let other = Some(Sizes::fixed(299).unwrap());
    let config = ConsumerConfig { sizes: other, ..config(vec![pattern("/a")], Load::Window(1)) };
    let mut consumer = Consumer::new(config, 1).unwrap();
    let sent = frames(&mut consumer, 0);
    exchange(&mut consumer, &mut producer(&["/a"]), &sent[0], 1);
    assert_eq!(consumer.report(1).total().mismatches, 1);
}

#[test]
fn a_rate_is_kept_and_counts_what_it_cannot_send() {
    let load = Load::Rate { per_second: 1000.0, outstanding_max: 3 };
    let config = ConsumerConfig { duration_ns: Some(8 * MS), ..config(vec![pattern("/a")], load) };
    let mut consumer = Consumer::new(config, 1).unwrap();
    let mut producer = producer(&["/a"]);
    let first = frames(&mut consumer, MS);
    assert_eq!(first.len(), 1);
    assert_eq!(consumer.poll_timeout(), Some(2 * MS));
    assert!(frames(&mut consumer, 2 * MS - 1).is_empty());
    // Held up for two milliseconds: both leave, the first of them is late already.
    let late = frames(&mut consumer, 3 * MS);
    assert_eq!(late.len(), 2);
    exchange(&mut consumer, &mut producer, &late[0], 3 * MS);
    assert!(consumer.report(MS).latency.max_ns() >= MS);
    // Two wait; of the two that are due at 5 ms one finds room.
    assert_eq!(frames(&mut consumer, 5 * MS).len(), 1);
    assert_eq!(consumer.report(MS).skipped, 1);
    assert!(!consumer.is_done(8 * MS));
    assert!(frames(&mut consumer, 9 * MS).is_empty());
    consumer.handle_timeout(20 * MS);
    assert!(consumer.is_done(20 * MS));
}

#[test]
fn a_mix_has_its_proportions() {
    let patterns =
        vec![Pattern { weight: 3, ..pattern("/a") }, Pattern { weight: 1, ..pattern("/b") }];
    let mut consumer = Consumer::new(config(patterns, Load::Window(4000)), 1).unwrap();
    frames(&mut consumer, 0);
    let report = consumer.report(0);
    let share = report.patterns[1].interests;
    assert!((900..1100).contains(&share), "{share}");
}

#[test]
fn a_name_is_not_asked_for_twice_at_once() {
    let numbers = Numbers { first: 0, range: Some(64), distribution: Distribution::Zipf(1.2) };
    let config = config(vec![Pattern { numbers, ..pattern("/a") }], Load::Window(64));
    let mut consumer = Consumer::new(config, 1).unwrap();
    let mut names: Vec<Name> = frames(&mut consumer, 0)
        .iter()
        .map(|frame| {
            let lp = LpPacket::decode(frame).unwrap();
            Interest::decode(lp.fragment.unwrap()).unwrap().name.to_name()
        })
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 64);
}

#[test]
fn impossible_wishes_are_refused() {
    let refused = |load, patterns| Consumer::new(config(patterns, load), 1).is_err();
    assert!(refused(Load::Window(0), vec![pattern("/a")]));
    assert!(refused(Load::Window(OUTSTANDING_MAX + 1), vec![pattern("/a")]));
    assert!(refused(Load::Rate { per_second: 0.0, outstanding_max: 1 }, vec![pattern("/a")]));
    assert!(refused(Load::Window(1), vec![]));
    assert!(refused(Load::Window(1), vec![Pattern { weight: 0, ..pattern("/a") }]));
}
