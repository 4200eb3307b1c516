//! The queue: batches, turns, room, repetitions.

use byname_packet::lp::LpPacket;
use byname_packet::{Interest, InterestBuilder, Name};

use super::*;

const NOW: Now = Now { now_ns: 0, unix_ns: 0 };

fn ask(commands: &mut Commands, asker: (u64, u64), number: u64, now: Now) {
    handle(commands, asker, &command(number, 1), now);
}

/// An Interest with so many octets of parameters.
fn command(number: u64, parameter_bytes: usize) -> Vec<u8> {
    let name: Name = format!("/s/32=catalog/x/{number}").parse().unwrap();
    let parameters = vec![7; parameter_bytes];
    let builder = InterestBuilder::new(name.view()).nonce([0; 4]).lifetime_ms(1000);
    let mut wire = Vec::new();
    builder.application_parameters(&parameters).encode(&mut wire);
    wire
}

fn handle(commands: &mut Commands, asker: (u64, u64), wire: &[u8], now: Now) {
    let interest = Interest::decode(wire).unwrap();
    let arrival = Arrival {
        interest: &interest,
        pit_token: Some(&[asker.0 as u8, asker.1 as u8]),
        congestion_mark: None,
        face: FaceId(asker.0),
        incoming_face_id: Some(asker.1),
        path_trace: None,
    };
    commands.handle_interest(&arrival, now);
}

fn number(waiting: &Waiting) -> u64 {
    let interest = Interest::decode(&waiting.wire).unwrap();
    std::str::from_utf8(interest.name.get(3).unwrap().value).unwrap().parse().unwrap()
}

fn answer_all(commands: &mut Commands, batch: &[Waiting]) {
    let answers = batch.iter().map(|waiting| CommandAnswer::Data(waiting.wire.clone()));
    commands.handle_answers(answers.collect());
}

/// Face, PIT token and Nack reason of what is sent.
fn sent(commands: &mut Commands) -> Vec<(u64, Vec<u8>, Option<u64>)> {
    let sent = std::iter::from_fn(|| commands.poll_transmit());
    sent.map(|packet| {
        let link = LpPacket::decode(&packet.wire).unwrap();
        (packet.face.0, link.header.pit_token.unwrap().to_vec(), link.header.nack)
    })
    .collect()
}

#[test]
fn what_comes_while_a_batch_is_in_flight_makes_the_next() {
    let mut commands = Commands::default();
    assert_eq!(commands.poll_batch(NOW), None);
    ask(&mut commands, (1, 1), 1, NOW);
    let first = commands.poll_batch(NOW).unwrap();
    assert_eq!(first.iter().map(number).collect::<Vec<_>>(), [1]);
    ask(&mut commands, (1, 1), 2, NOW);
    ask(&mut commands, (2, 1), 3, NOW);
    assert_eq!(commands.poll_batch(NOW), None, "one at a time");
    let levels = commands.levels();
    assert_eq!((levels.waiting, levels.in_flight), (2, 1));
    answer_all(&mut commands, &first);
    assert_eq!(sent(&mut commands), [(1, vec![1, 1], None)]);
    let later = Now { now_ns: 40, ..NOW };
    let second = commands.poll_batch(later).unwrap();
    let levels = commands.levels();
    assert_eq!((levels.waiting, levels.in_flight), (0, 2));
    let counters = commands.counters();
    assert_eq!((counters.waited_ns, counters.longest_wait_ns), (80, 40));
    assert_eq!(second.iter().map(number).collect::<Vec<_>>(), [3, 2], "behind the last turn");
    answer_all(&mut commands, &second);
    assert_eq!(sent(&mut commands).len(), 2);
    assert_eq!((commands.pending(), commands.levels()), (0, CommandLevels::default()));
}

#[test]
fn a_repeated_interest_joins_the_one_that_waits_or_is_in_flight() {
    let mut commands = Commands::default();
    ask(&mut commands, (1, 1), 7, NOW);
    ask(&mut commands, (1, 2), 7, NOW);
    let batch = commands.poll_batch(NOW).unwrap();
    assert_eq!(batch.len(), 1);
    ask(&mut commands, (2, 1), 7, NOW);
    answer_all(&mut commands, &batch);
    let to: Vec<_> = sent(&mut commands).into_iter().map(|(_, token, _)| token).collect();
    assert_eq!(to, [vec![1, 1], vec![1, 2], vec![2, 1]]);
    assert_eq!(commands.poll_batch(NOW), None, "it was executed once");
    assert_eq!(commands.counters().joined, 2);
}

/// A forwarder drops a Nack to a Nonce that has been replaced: whoever asks would hear nothing of a
/// head that does not lead any more, and wait.
#[test]
fn a_nack_has_the_nonce_of_the_last_repetition() {
    let mut commands = Commands::default();
    let wires = [[1; 4], [2; 4]].map(|nonce| {
        let mut wire = Vec::new();
        Interest::decode(&command(7, 1)).unwrap().encode_forwarded(nonce, None, &mut wire);
        wire
    });
    handle(&mut commands, (1, 1), &wires[0], NOW);
    commands.poll_batch(NOW).unwrap();
    for _ in 0..2 * ECHOES_MAX {
        handle(&mut commands, (1, 1), &wires[1], NOW);
    }
    commands.handle_answers(vec![CommandAnswer::Nack]);
    let packet = commands.poll_transmit().unwrap();
    let link = LpPacket::decode(&packet.wire).unwrap();
    assert_eq!(link.fragment.map(<[u8]>::to_vec), Some(wires[1].clone()));
    assert_eq!(commands.poll_transmit(), None, "one answer is enough for one who asks");
}

#[test]
fn who_repeats_a_command_waits_for_its_answer() {
    let mut commands = Commands::default();
    ask(&mut commands, (1, 1), 1, NOW);
    ask(&mut commands, (1, 1), 1, Now { now_ns: 900_000_000, ..NOW });
    let batch = commands.poll_batch(Now { now_ns: 1_500_000_000, ..NOW }).unwrap();
    assert_eq!((batch.len(), commands.counters().expired), (1, 0));
}

#[test]
fn who_sends_many_delays_himself() {
    let mut commands = Commands::default();
    for number in 0..1000 {
        ask(&mut commands, (1, 1), number, NOW);
    }
    ask(&mut commands, (1, 2), 5000, NOW);
    let batch = commands.poll_batch(NOW).unwrap();
    assert_eq!(batch.len(), BATCH_MAX);
    let place = batch.iter().position(|waiting| number(waiting) == 5000);
    assert!(place.is_some_and(|place| place < 2), "{place:?}");
}

#[test]
fn nobody_takes_the_room_of_others() {
    let mut commands = Commands::default();
    for number in 0..COMMANDS_MAX as u64 {
        ask(&mut commands, (1, 1), number, NOW);
    }
    let refused = sent(&mut commands);
    assert_eq!(refused.len(), COMMANDS_MAX / 2);
    assert!(refused.iter().all(|(_, _, nack)| *nack == Some(nack_reason::CONGESTION)));
    ask(&mut commands, (1, 2), 1_000_000, NOW);
    assert_eq!(sent(&mut commands), [], "there is room for another");
}

/// Few large commands fill the memory as many small ones do.
#[test]
fn nobody_takes_the_memory_of_others() {
    let mut commands = Commands::default();
    let large = 8000;
    for number in 0..2 * (COMMAND_BYTES_MAX / large) as u64 {
        handle(&mut commands, (1, 1), &command(number, large), NOW);
    }
    assert!(commands.bytes <= COMMAND_BYTES_MAX / 2, "{}", commands.bytes);
    assert!(!sent(&mut commands).is_empty(), "more than half was asked for");
    handle(&mut commands, (1, 2), &command(1_000_000, large), NOW);
    assert_eq!(sent(&mut commands), [], "there is room for another");
    while let Some(batch) = commands.poll_batch(NOW) {
        answer_all(&mut commands, &batch);
    }
    assert_eq!((commands.pending(), commands.bytes), (0, 0));
}

/// Whoever sees a command's name may send other octets under it: they are not what the name says,
/// so they must not be executed in its place.
#[test]
fn a_command_is_not_held_up_by_others_octets_under_its_name() {
    let mut commands = Commands::default();
    let genuine = command(1, 10);
    let mut altered = genuine.clone();
    *altered.last_mut().unwrap() ^= 1;
    handle(&mut commands, (1, 1), &altered, NOW);
    assert_eq!(commands.poll_batch(NOW), None);
    assert_eq!(sent(&mut commands), [], "not even a Nack, which forwarders would give to others");
    handle(&mut commands, (1, 2), &genuine, NOW);
    let batch = commands.poll_batch(NOW).unwrap();
    assert_eq!(batch.iter().map(|it| &it.wire).collect::<Vec<_>>(), [&genuine]);
    assert_eq!((commands.counters().forged, commands.counters().joined), (1, 0));
}

#[test]
fn what_nobody_waits_for_is_not_executed() {
    let mut commands = Commands::default();
    ask(&mut commands, (1, 1), 1, NOW);
    let late = Now { now_ns: 1_000_000_000, unix_ns: 0 };
    ask(&mut commands, (1, 1), 2, late);
    let batch = commands.poll_batch(late).unwrap();
    assert_eq!(batch.iter().map(number).collect::<Vec<_>>(), [2]);
    assert_eq!(commands.counters().expired, 1);
    commands.handle_answers(vec![CommandAnswer::Nack]);
    assert_eq!(sent(&mut commands), [(1, vec![1, 1], Some(nack_reason::NONE))]);
    assert_eq!((commands.pending(), commands.bytes), (0, 0));
}
