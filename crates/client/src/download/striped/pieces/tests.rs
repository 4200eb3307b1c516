//! Sources with given rates over virtual time, and any order of events against a reference model.

use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;
const STEP_NS: u64 = MS;

/// A source that brings so much a second of each piece it has, in order.
struct Player {
    bytes_per_s: u64,
    work: Vec<(PieceId, Range<u64>)>,
    /// Bytes that have come and are not handed in.
    credit: u64,
    idle_ns: u64,
}

/// Runs sources until the file is there; the time it took.
fn play(pieces: &mut Pieces, rates: &[u64]) -> (u64, Vec<Player>) {
    let player = |rate: &u64| Player { bytes_per_s: *rate, work: vec![], credit: 0, idle_ns: 0 };
    let mut players = rates.iter().map(player).collect::<Vec<_>>();
    let mut now_ns = 0;
    while !pieces.is_complete() {
        now_ns += STEP_NS;
        assert!(now_ns < 600_000 * MS, "it does not end: {pieces:?}");
        for (source, player) in players.iter_mut().enumerate() {
            turn(pieces, source, player, now_ns);
        }
    }
    (now_ns, players)
}

fn turn(pieces: &mut Pieces, source: usize, player: &mut Player, now_ns: u64) {
    player.work.retain(|(id, range)| {
        let goes_on = pieces.is_wanted(source, *id) && !range.is_empty();
        if !goes_on {
            pieces.end(source, *id, now_ns);
        }
        goes_on
    });
    while player.work.len() < 2 {
        let Some(Assignment { id, range }) = pieces.take(source, now_ns) else { break };
        assert!(!range.is_empty());
        player.work.push((id, range));
    }
    let Some((id, range)) = player.work.first_mut() else {
        player.idle_ns += STEP_NS;
        player.credit = 0;
        return;
    };
    player.credit += player.bytes_per_s * STEP_NS / SECOND_NS;
    let bytes = player.credit.min(range.end - range.start);
    player.credit -= bytes;
    pieces.deliver(source, *id, range.start..range.start + bytes);
    range.start += bytes;
}

#[test]
fn a_slow_source_does_not_hold_the_end() {
    // Alone the fast one would need 0.64 s, the slow one 640 s.
    for rates in [[100 * MIB, MIB / 10], [MIB / 10, 100 * MIB], [100 * MIB, 0]] {
        let mut pieces = Pieces::new(64 * MIB, 2);
        let (took_ns, players) = play(&mut pieces, &rates);
        assert!(took_ns < 1_000 * MS, "{rates:?}: {} ms", took_ns / MS);
        let fast = usize::from(rates[1] > rates[0]);
        assert!(pieces.bytes_of(fast) > 62 * MIB, "{rates:?}");
        assert!(players[fast].idle_ns < 250 * MS, "{rates:?}: {} ns", players[fast].idle_ns);
    }
}

#[test]
fn pieces_follow_the_rates_and_nobody_is_idle_for_long() {
    let mut pieces = Pieces::new(400 * MIB, 3);
    let (took_ns, players) = play(&mut pieces, &[40 * MIB, 40 * MIB, 20 * MIB]);
    // All three together need 4 s.
    assert!(took_ns < 4_200 * MS, "{} ms", took_ns / MS);
    assert!((70..=90).contains(&(pieces.bytes_of(2) / MIB)), "{}", pieces.bytes_of(2) / MIB);
    for player in players {
        assert!(player.idle_ns < 200 * MS, "{} ms", player.idle_ns / MS);
    }
    assert!((0..3).all(|source| !pieces.is_left(source)));
}

#[test]
fn a_source_slower_than_a_quarter_of_the_others_is_left_and_one_just_above_is_not() {
    let mut pieces = Pieces::new(400 * MIB, 3);
    play(&mut pieces, &[40 * MIB, 40 * MIB, 9 * MIB]);
    assert_eq!([0, 1, 2].map(|source| pieces.is_left(source)), [false, false, true]);
    let mut pieces = Pieces::new(400 * MIB, 3);
    play(&mut pieces, &[40 * MIB, 40 * MIB, 12 * MIB]);
    assert_eq!([0, 1, 2].map(|source| pieces.is_left(source)), [false; 3]);
}

#[test]
fn the_only_source_is_never_left_for_its_rate() {
    let mut pieces = Pieces::new(8 * MIB, 2);
    pieces.leave(0);
    play(&mut pieces, &[0, MIB / 2]);
    assert!(!pieces.is_left(1));
}

#[test]
fn what_came_twice_counts_once() {
    let mut pieces = Pieces::new(2 * MIB, 2);
    let first = pieces.take(0, 0).expect("a piece");
    let second = pieces.take(1, 1_000 * MS).expect("it is taken over");
    assert_eq!(first, second);
    assert_eq!(pieces.deliver(0, first.id, 0..MIB), MIB);
    assert_eq!(pieces.deliver(1, first.id, MIB / 2..2 * MIB), MIB);
    assert!(pieces.is_complete() && !pieces.is_wanted(0, first.id));
    assert_eq!((pieces.bytes_of(0), pieces.bytes_of(1)), (MIB, MIB));
}

#[derive(Debug, Clone)]
enum Step {
    Take(usize),
    Deliver(usize, u64, u64),
    End(usize),
    Leave(usize),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        4 => (0..3_usize).prop_map(Step::Take),
        6 => (0..3_usize, 0..8_u64, 1..9_u64).prop_map(|(a, b, c)| Step::Deliver(a, b, c)),
        3 => (0..3_usize).prop_map(Step::End),
        1 => (0..2_usize).prop_map(Step::Leave),
    ];
    proptest::collection::vec((0..400_u64, step), 1..200)
}

proptest! {
    /// Whatever happens, a byte is verified, or it waits or is missing in exactly one piece, and
    /// whoever is not left gets the file done.
    #[test]
    fn every_byte_is_assigned_until_it_is_verified(
        size in 1..40 * MIB,
        steps in steps(),
    ) {
        let mut pieces = Pieces::new(size, 3);
        let mut work: [Vec<Assignment>; 3] = Default::default();
        let (mut now_ns, mut verified) = (0, 0);
        for (pause_ms, step) in steps {
            now_ns += pause_ms * MS;
            match step {
                Step::Take(source) => work[source].extend(pieces.take(source, now_ns)),
                Step::Deliver(source, eighth, count) => {
                    let Some(Assignment { id, range }) = work[source].first() else { continue };
                    let part = (range.end - range.start).div_ceil(8);
                    let start = (range.start + eighth * part).min(range.end);
                    let span = start..(start + count * part).min(range.end);
                    verified += pieces.deliver(source, *id, span);
                }
                Step::End(source) if !work[source].is_empty() => {
                    let id = work[source].remove(0).id;
                    pieces.end(source, id, now_ns);
                }
                Step::Leave(source) => pieces.leave(source),
                Step::End(_) => {}
            }
            check(&pieces, size, verified);
        }
        prop_assert_eq!((0..3).map(|source| pieces.bytes_of(source)).sum::<u64>(), verified);
        for (source, work) in work.iter_mut().enumerate() {
            work.drain(..).for_each(|it| pieces.end(source, it.id, now_ns));
        }
        while !pieces.is_left(2) && !pieces.is_complete() {
            let Some(Assignment { id, range }) = pieces.take(2, now_ns) else {
                prop_assert!(pieces.is_left(2), "nothing for the only one");
                break;
            };
            pieces.deliver(2, id, range);
            pieces.end(2, id, now_ns);
        }
    }
}

fn check(pieces: &Pieces, size: u64, verified: u64) {
    let missing = pieces.pieces.iter().flat_map(|piece| &piece.missing);
    let mut open = missing.chain(&pieces.waiting).cloned().collect::<Vec<_>>();
    open.sort_by_key(|range| range.start);
    assert!(open.iter().all(|range| range.start < range.end && range.end <= size));
    assert!(open.windows(2).all(|pair| pair[0].end <= pair[1].start), "{open:?}");
    let bytes = open.iter().map(|range| range.end - range.start).sum::<u64>();
    assert_eq!(bytes + verified, size);
    for piece in &pieces.pieces {
        assert!((1..=2).contains(&piece.sources.len()), "{piece:?}");
        assert!(piece.sources.iter().all(|source| !pieces.sources[*source].is_left));
    }
}
