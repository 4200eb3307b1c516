//! A consumer, a producer and a forwarder in virtual time: the consumer keeps a window of Interests
//! in flight, both handle one packet after the other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;

const US: u64 = 1000;
/// Cost of a turn and of a packet for the forwarder.
const TURN_NS: u64 = 6 * US;
const PACKET_NS: u64 = 4 * US;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Packet {
    Interest,
    Data,
}

/// A closed loop; `work_ns` is what a client takes for a packet, `burst` how many it sends at once.
#[derive(Debug, Clone, Copy)]
struct Clients {
    window: usize,
    work_ns: u64,
    burst: usize,
}

#[derive(Debug, Default)]
struct Run {
    turns: u64,
    packets: u64,
    pauses: u64,
    paused_ns: u64,
}

impl Run {
    fn paused_share(&self, elapsed_ns: u64) -> f64 {
        self.paused_ns as f64 / elapsed_ns as f64
    }
}

/// Plays until `end_ns`, with pauses as `gather` wants them, or never.
fn play(clients: Clients, mut gather: Option<&mut Gather>, end_ns: u64) -> Run {
    let mut run = Run::default();
    let mut arrivals: BinaryHeap<Reverse<(u64, Packet)>> = BinaryHeap::new();
    arrivals.extend((0..clients.window).map(|_| Reverse((1, Packet::Interest))));
    let (mut now_ns, mut cpu_ns, mut free_ns, mut held) = (0, 0, [0u64; 2], [0usize; 2]);
    while now_ns < end_ns {
        let pause = gather.as_ref().and_then(|gather| gather.pause());
        match pause {
            Some(pause) => {
                now_ns += pause.as_nanos() as u64;
                run.pauses += 1;
                run.paused_ns += pause.as_nanos() as u64;
            }
            None => {
                let Some(Reverse((at_ns, _))) = arrivals.peek() else { break };
                now_ns = now_ns.max(*at_ns);
            }
        }
        let mut batch = Vec::new();
        while let Some(Reverse((at_ns, packet))) = arrivals.peek().copied()
            && at_ns <= now_ns
        {
            arrivals.pop();
            batch.push(packet);
        }
        let cost_ns = TURN_NS + PACKET_NS * batch.len() as u64;
        (now_ns, cpu_ns) = (now_ns + cost_ns, cpu_ns + cost_ns);
        for packet in &batch {
            let (client, answer) = match packet {
                Packet::Interest => (0, Packet::Data),
                Packet::Data => (1, Packet::Interest),
            };
            free_ns[client] = free_ns[client].max(now_ns) + clients.work_ns;
            held[client] += 1;
            if held[client] >= clients.burst {
                let sent = std::mem::take(&mut held[client]);
                arrivals.extend((0..sent).map(|_| Reverse((free_ns[client], answer))));
            }
        }
        run.turns += 1;
        run.packets += batch.len() as u64;
        if let Some(gather) = &mut gather {
            gather.handle_turn(now_ns, batch.len(), || cpu_ns);
        }
    }
    run
}

const SECOND_NS: u64 = 1_000_000_000;

/// Packets and turns of five seconds with pauses as they are decided on, and without.
fn compared(clients: Clients) -> (Run, Run) {
    let end_ns = 5 * SECOND_NS;
    (play(clients, Some(&mut Gather::default()), end_ns), play(clients, None, end_ns))
}

#[test]
fn packets_of_clients_that_are_busy_are_gathered() {
    let (gathered, direct) = compared(Clients { window: 64, work_ns: 30 * US, burst: 1 });
    assert!(gathered.packets * 100 >= direct.packets * 97, "{gathered:?} {direct:?}");
    assert!(gathered.turns * 2 < direct.turns, "{gathered:?} {direct:?}");
    assert!(gathered.paused_share(5 * SECOND_NS) > 0.5, "{gathered:?}");
}

#[test]
fn clients_that_wait_for_their_packets_are_not_held_up() {
    for (window, work_ns) in [(1, 0), (1, 30 * US), (2, 5 * US), (4, 5 * US), (8, 2 * US)] {
        let (gathered, direct) = compared(Clients { window, work_ns, burst: 1 });
        let context = (window, work_ns);
        assert!(
            gathered.packets * 100 >= direct.packets * 97,
            "{context:?} {gathered:?} {direct:?}"
        );
        assert!(gathered.paused_share(5 * SECOND_NS) < 0.03, "{context:?} {gathered:?}");
    }
}

#[test]
fn bursts_are_gathered_already() {
    let (gathered, _) = compared(Clients { window: 64, work_ns: 30 * US, burst: 16 });
    assert_eq!(gathered.pauses, 0);
}

#[test]
fn who_was_idle_is_served_at_once() {
    let mut gather = Gather::default();
    let clients = Clients { window: 64, work_ns: 30 * US, burst: 1 };
    play(clients, Some(&mut gather), SECOND_NS);
    assert!(matches!(gather.phase, Phase::Gathering { .. }));
    // Nothing came during the last pause: the wait that follows is without one.
    gather.handle_turn(SECOND_NS + PAUSE_NS, 0, || 0);
    assert_eq!(gather.pause(), None);
    // One packet a second, for a while.
    for second in 2..10 {
        gather.handle_turn(second * SECOND_NS, 1, || 0);
        assert_eq!(gather.pause(), None);
    }
}

#[test]
fn a_client_that_becomes_slow_ends_the_pauses() {
    let mut gather = Gather::default();
    play(Clients { window: 64, work_ns: 30 * US, burst: 1 }, Some(&mut gather), SECOND_NS);
    let mut now_ns = SECOND_NS;
    for _ in 0..2 * FRUITLESS_TURNS + WINDOW_NS / PAUSE_NS {
        now_ns += PAUSE_NS;
        gather.handle_turn(now_ns, 1, || 0);
    }
    assert_eq!(gather.pause(), None);
}
