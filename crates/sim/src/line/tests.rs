//! Histories computed by hand.

use super::*;

const US: u64 = 1000;
const MS: u64 = 1_000_000;

/// 8 Mbit/s: an octet takes a microsecond.
fn config(discipline: Discipline, faults: Faults) -> LineConfig {
    let queue = QueueConfig { bits_per_s: 8_000_000, buffer_bytes: 10_000, discipline };
    LineConfig { queue, delay_ns: 5 * MS, jitter_ns: 0, faults }
}

fn frame(bytes: usize) -> Frame {
    Frame::new(&[], &vec![1; bytes])
}

/// Sends frames of so many octets at these times (in microseconds), and drives the line; says
/// when they come (in microseconds).
fn arrivals(line: &mut Line, frames: &[(u64, usize)]) -> Vec<u64> {
    let mut random = Random::new(1);
    let mut come = Vec::new();
    let mut out = |arrival: Arrival| come.push(arrival.at_ns / US);
    for (at_us, bytes) in frames {
        while let Some(at_ns) = line.next_departure().filter(|at_ns| *at_ns <= at_us * US) {
            line.depart(at_ns, &mut random, &mut out);
        }
        line.send(at_us * US, frame(*bytes), &mut random, &mut out);
    }
    while let Some(at_ns) = line.next_departure() {
        line.depart(at_ns, &mut random, &mut out);
    }
    come
}

#[test]
fn frames_wait_for_those_before_them() {
    // The first is sent from 0 to 1000, the second until 3000, the third finds the line free.
    let frames = [(0, 1000), (500, 2000), (4000, 500)];
    for discipline in [Discipline::DropTail, Discipline::Codel, Discipline::CodelMarks] {
        let mut line = Line::new(config(discipline, Faults::default()));
        assert_eq!(arrivals(&mut line, &frames), [6000, 8000, 9500], "{discipline:?}");
        let counters = line.counters();
        assert_eq!((counters.frames, counters.bytes, counters.drops), (3, 3500, 0));
    }
}

#[test]
fn what_does_not_fit_the_buffer_is_dropped() {
    let frames = [(0, 4000); 4];
    let mut line = Line::new(config(Discipline::DropTail, Faults::default()));
    assert_eq!(arrivals(&mut line, &frames), [9000, 13000]);
    assert_eq!(line.counters().overflows, 2);
    // CoDel's queue does not count what is being sent.
    let mut line = Line::new(config(Discipline::Codel, Faults::default()));
    assert_eq!(arrivals(&mut line, &frames), [9000, 13000, 17000]);
    assert_eq!(line.counters().overflows, 1);
}

#[test]
fn codel_drops_from_a_queue_that_stays_long() {
    // 1000 octets a millisecond leave; ten wait at first, and one comes for each that leaves.
    let mut frames = vec![(0, 1000); 9];
    frames.extend((0..300).map(|number| (number * 1000, 1000)));
    let mut line = Line::new(config(Discipline::Codel, Faults::default()));
    let come = arrivals(&mut line, &frames);
    let counters = line.counters();
    // Above 5 ms from the frame that leaves at 5 ms on; so drops at 105, 205 and 275.7, when still
    // seven wait. The next one would be due at 333.
    assert_eq!(counters.drops, 3, "{counters:?}");
    assert_eq!(come.len() as u64, counters.frames - counters.drops - counters.overflows);
    let mut line = Line::new(config(Discipline::CodelMarks, Faults::default()));
    arrivals(&mut line, &frames);
    let counters = line.counters();
    assert_eq!((counters.marks, counters.drops), (3, 0), "{counters:?}");
}

#[test]
fn the_two_states_lose_as_often_as_their_probabilities_say() {
    let bursts = Bursts { begin: 0.01, end: 0.25 };
    let mut line = Line::new(config(Discipline::DropTail, Faults { bursts, ..Faults::default() }));
    let mut random = Random::new(3);
    let (mut lost, mut runs, mut was_lost) = (0, 0, false);
    for _ in 0..200_000 {
        let is_lost = line.is_lost(&mut random);
        lost += u32::from(is_lost);
        runs += u32::from(is_lost && !was_lost);
        was_lost = is_lost;
    }
    // In the bad state for begin / (begin + end) of the time, 1 / end frames each time.
    let share = f64::from(lost) / 200_000.0;
    assert!((share - 0.01 / 0.26).abs() < 0.003, "{share}");
    let length = f64::from(lost) / f64::from(runs);
    assert!((length - 4.0).abs() < 0.2, "{length}");
}

#[test]
fn a_loss_takes_its_burst_with_it() {
    let faults = Faults { loss: 0.001, burst: 5, ..Faults::default() };
    let mut line = Line::new(config(Discipline::DropTail, faults));
    let mut random = Random::new(4);
    let history: Vec<bool> = (0..50_000).map(|_| line.is_lost(&mut random)).collect();
    let runs: Vec<usize> =
        history.chunk_by(|one, next| one == next).filter(|run| run[0]).map(<[bool]>::len).collect();
    assert!(runs.len() > 20);
    // Two bursts may touch.
    assert!(runs.iter().all(|run| run % 5 == 0), "{runs:?}");
}

#[test]
fn jitter_keeps_the_order_and_disorder_does_not() {
    let sent: Vec<(u64, usize)> = (0..500).map(|number| (number * 100, 10)).collect();
    let calm = config(Discipline::DropTail, Faults::default());
    let mut line = Line::new(LineConfig { jitter_ns: MS, ..calm });
    assert!(arrivals(&mut line, &sent).is_sorted());
    let seldom: Vec<(u64, usize)> = (0..500).map(|number| (number * 2000, 10)).collect();
    let mut line = Line::new(LineConfig { jitter_ns: MS, ..calm });
    let come = arrivals(&mut line, &seldom);
    let took = || come.iter().zip(&seldom).map(|(come, (sent, _))| come - sent);
    assert!(took().min() < Some(5100) && took().max() > Some(5900), "{:?}", took().max());
    assert!(took().all(|us| (5010..=6010).contains(&us)));

    let faults = Faults { disorder: 0.1, late_ns: MS, duplication: 0.1, ..Faults::default() };
    let mut line = Line::new(config(Discipline::DropTail, faults));
    let come = arrivals(&mut line, &sent);
    assert!(!come.is_sorted());
    assert!((530..570).contains(&come.len()), "{} of 500 came", come.len());
}

#[test]
fn a_line_that_is_down_loses_everything() {
    let mut line = Line::new(config(Discipline::DropTail, Faults::default()));
    line.is_up = false;
    let left = arrivals(&mut line, &[(0, 100), (500, 100)]);
    assert!(left.is_empty(), "{left:?}");
    line.is_up = true;
    assert_eq!(arrivals(&mut line, &[(1000, 100)]), [6100]);
    assert_eq!(line.counters().losses, 2);
}

#[test]
fn corruption_changes_one_bit() {
    let faults = Faults { corruption: 1.0, ..Faults::default() };
    let mut line = Line::new(config(Discipline::DropTail, faults));
    let mut come = Vec::new();
    line.send(0, frame(64), &mut Random::new(9), &mut |arrival| come.push(arrival.frame));
    let mut scratch = Vec::new();
    let bits: u32 = come[0].bytes(&mut scratch).iter().map(|octet| (octet ^ 1).count_ones()).sum();
    assert_eq!(bits, 1);
}
