//! Datagrams that wait until their machine may get them, one queue for each machine.
//!
//! A reader that loses much gives up, while one whose answers come later asks more slowly. So what
//! a machine may not get now waits, for a time in which its readers have not asked again. Machines
//! have their turns one after the other. Invariants: no more octets than [`ALL_BYTES_MAX`], of one
//! machine no more than [`MACHINE_BYTES_MAX`] and a quarter of what is free, so that those who come
//! last find room; no queue is empty.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

const MACHINE_BYTES_MAX: usize = 1 << 20;
const ALL_BYTES_MAX: usize = 16 << 20;
/// Counted for each datagram beside its octets.
const OVERHEAD_BYTES: usize = 64;
/// A datagram that has waited for so long is of no use.
const WAIT_NS: u64 = 2_000_000_000;

/// A datagram that waits.
#[derive(Debug)]
pub(super) struct Delayed {
    /// Number of its socket.
    pub(super) socket: usize,
    pub(super) address: SocketAddr,
    pub(super) octets: Box<[u8]>,
    since_ns: u64,
}

impl Delayed {
    pub(super) fn new(
        (socket, address): (usize, SocketAddr),
        parts: &[&[u8]],
        since_ns: u64,
    ) -> Self {
        Self { socket, address, octets: parts.concat().into(), since_ns }
    }

    fn cost_bytes(&self) -> usize {
        self.octets.len() + OVERHEAD_BYTES
    }
}

/// Answer to whether a machine may get some octets now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grant {
    Granted,
    /// It has had what it may get.
    NotThisMachine,
    /// All together have.
    Nobody,
}

#[derive(Debug, Default)]
struct MachineQueue {
    datagrams: VecDeque<Delayed>,
    cost_bytes: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct DelayQueue {
    machines: HashMap<IpAddr, MachineQueue>,
    /// Machines with datagrams; the first one's turn is next.
    order: VecDeque<IpAddr>,
    cost_bytes: usize,
}

impl DelayQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// True if something waits for the machine: what comes later has to wait, too.
    pub(super) fn holds(&self, machine: IpAddr) -> bool {
        self.machines.contains_key(&machine)
    }

    /// Takes a datagram if there is room.
    pub(super) fn push(&mut self, machine: IpAddr, datagram: Delayed) -> bool {
        let held = self.machines.get(&machine).map_or(0, |queue| queue.cost_bytes);
        let cost_bytes = datagram.cost_bytes();
        let share_bytes = ALL_BYTES_MAX.saturating_sub(self.cost_bytes) / 4;
        if held + cost_bytes > share_bytes.min(MACHINE_BYTES_MAX) {
            return false;
        }
        let queue = self.machines.entry(machine).or_default();
        if queue.datagrams.is_empty() {
            self.order.push_back(machine);
        }
        queue.datagrams.push_back(datagram);
        queue.cost_bytes += cost_bytes;
        self.cost_bytes += cost_bytes;
        true
    }

    /// Hands out what `grant` allows; says how many datagrams had waited for too long.
    pub(super) fn release(
        &mut self,
        now_ns: u64,
        mut grant: impl FnMut(IpAddr, usize) -> Grant,
        mut send: impl FnMut(&Delayed),
    ) -> u64 {
        let mut outdated = 0;
        // Machines that have to be asked yet, since the last one that got something.
        let mut left = self.order.len();
        while left > 0
            && let Some(machine) = self.order.pop_front()
        {
            outdated += self.drop_outdated(machine, now_ns);
            let first = self.machines.get(&machine).and_then(|queue| queue.datagrams.front());
            let Some(bytes) = first.map(|datagram| datagram.octets.len()) else {
                self.machines.remove(&machine);
                left -= 1;
                continue;
            };
            match grant(machine, bytes) {
                Grant::Granted => {
                    if let Some(datagram) = self.pop(machine) {
                        send(&datagram);
                    }
                    left = self.order.len() + 1;
                }
                Grant::NotThisMachine => left -= 1,
                Grant::Nobody => left = 0,
            }
            self.order.push_back(machine);
        }
        outdated
    }

    fn drop_outdated(&mut self, machine: IpAddr, now_ns: u64) -> u64 {
        let mut count = 0;
        while let Some(queue) = self.machines.get(&machine)
            && let Some(first) = queue.datagrams.front()
            && now_ns.saturating_sub(first.since_ns) > WAIT_NS
        {
            self.pop(machine);
            count += 1;
        }
        count
    }

    fn pop(&mut self, machine: IpAddr) -> Option<Delayed> {
        let queue = self.machines.get_mut(&machine)?;
        let datagram = queue.datagrams.pop_front()?;
        queue.cost_bytes -= datagram.cost_bytes();
        self.cost_bytes -= datagram.cost_bytes();
        Some(datagram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 1000;

    fn machine(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    fn offer(queue: &mut DelayQueue, number: u8, since_ns: u64) -> bool {
        let address = SocketAddr::new(machine(number), 6363);
        let datagram = Delayed::new((0, address), &[&[number; LEN]], since_ns);
        queue.push(machine(number), datagram)
    }

    fn fill(queue: &mut DelayQueue, number: u8) -> usize {
        (0..).take_while(|_| offer(queue, number, 0)).count()
    }

    #[test]
    fn each_machine_and_all_are_bounded_and_the_last_finds_room() {
        let mut queue = DelayQueue::default();
        let counts: Vec<usize> = (1..=100).map(|number| fill(&mut queue, number)).collect();
        assert_eq!(counts[0], MACHINE_BYTES_MAX / (LEN + OVERHEAD_BYTES));
        assert!(counts[15] > 300 && counts[20] > 50, "{counts:?}");
        assert!(queue.cost_bytes <= ALL_BYTES_MAX);
        let mut got = 0;
        let outdated = queue.release(0, |_, _| Grant::Granted, |_| got += 1);
        assert_eq!((got, outdated), (counts.iter().sum::<usize>(), 0));
        assert!(queue.is_empty() && queue.machines.is_empty() && queue.cost_bytes == 0);
    }

    #[test]
    fn machines_take_turns_and_what_one_may_not_get_holds_up_no_other() {
        let mut queue = DelayQueue::default();
        (0..10).for_each(|_| assert!(offer(&mut queue, 1, 0)));
        (0..2).for_each(|_| assert!(offer(&mut queue, 2, 0) && offer(&mut queue, 3, 0)));
        let mut got = Vec::new();
        let grant = |of, _| match of == machine(2) {
            true => Grant::NotThisMachine,
            false => Grant::Granted,
        };
        queue.release(0, grant, |datagram| got.push(datagram.octets[0]));
        assert_eq!(got[..4], [1, 3, 1, 3]);
        assert_eq!(got.len(), 12);
        assert!(queue.holds(machine(2)) && !queue.holds(machine(1)));
        queue.release(0, |_, _| Grant::Nobody, |_| unreachable!("nobody gets anything"));
        assert!(queue.holds(machine(2)));
    }

    #[test]
    fn what_has_waited_for_long_is_dropped() {
        let mut queue = DelayQueue::default();
        assert!(offer(&mut queue, 1, 0) && offer(&mut queue, 1, 1) && offer(&mut queue, 2, 0));
        let mut got = 0;
        let outdated = queue.release(WAIT_NS + 1, |_, _| Grant::Granted, |_| got += 1);
        assert_eq!((got, outdated), (1, 2));
        assert!(queue.is_empty() && queue.machines.is_empty());
    }
}
