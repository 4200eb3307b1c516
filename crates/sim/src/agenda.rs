//! The agenda: events in the order of time, and of their planning where it is equal.
//!
//! Frames on a line come in the order in which they were sent, so only the first of each line
//! stands in the heap; behind it they wait in a queue, each with the place that it would have had.
//! So the heap is as large as the network, not as what is in flight, and the order is the same.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::collections::binary_heap::{BinaryHeap, PeekMut};

use crate::frame::Frame;
use crate::line::Arrival;

/// Something that is due.
#[derive(Debug)]
pub(crate) enum Due {
    /// A frame comes out of a line.
    Frame { line: usize, frame: Frame },
    /// A line is free for what waits.
    Departure { line: usize },
    /// A host has something to do.
    Wake { host: usize },
    /// Something that was planned befalls the network.
    Incident { number: usize },
}

/// The same, as it stands in the heap; never compared, because no two were planned at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    First { line: u32 },
    Late { line: u32, slot: u32 },
    Departure { line: u32 },
    Wake { host: u32 },
    Incident { number: u32 },
}

#[derive(Debug)]
struct Flying {
    at_ns: u64,
    sent_ns: u64,
    count: u64,
    /// `None`: a cut came before it was sent.
    frame: Option<Frame>,
}

#[derive(Debug)]
struct Late {
    line: usize,
    sent_ns: u64,
    frame: Option<Frame>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    lines: Vec<VecDeque<Flying>>,
    /// Frames that others may overtake.
    late: Vec<Option<Late>>,
    free: Vec<u32>,
    count: u64,
}

impl Agenda {
    pub(crate) fn add_line(&mut self) {
        self.lines.push(VecDeque::new());
    }

    /// Events planned so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Frames on their way, and octets that they take in memory.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        let flying = self.lines.iter().flatten().filter_map(|it| it.frame.as_ref());
        let late = self.late.iter().flatten().filter_map(|it| it.frame.as_ref());
        flying
            .chain(late)
            .map(Frame::stored_bytes)
            .fold((0, 0), |(count, bytes), one| (count + 1, bytes + one))
    }

    fn plan(&mut self, at_ns: u64, event: Event) {
        self.count += 1;
        self.heap.push(Reverse((at_ns, self.count, event)));
    }

    /// A frame comes out of a line; not before those that were sent before, unless it `is_late`.
    pub(crate) fn plan_frame(&mut self, line: usize, arrival: Arrival) {
        let Arrival { at_ns, sent_ns, frame, is_late } = arrival;
        if is_late {
            let slot = self.free.pop().unwrap_or_else(|| {
                self.late.push(None);
                self.late.len() as u32 - 1
            });
            self.late[slot as usize] = Some(Late { line, sent_ns, frame: Some(frame) });
            return self.plan(at_ns, Event::Late { line: line as u32, slot });
        }
        self.count += 1;
        let flying = &mut self.lines[line];
        if flying.is_empty() {
            let event = Event::First { line: line as u32 };
            self.heap.push(Reverse((at_ns, self.count, event)));
        }
        flying.push_back(Flying { at_ns, sent_ns, count: self.count, frame: Some(frame) });
    }

    /// A line is cut: what was not sent by now will not come. How many frames that are.
    pub(crate) fn cut(&mut self, line: usize, now_ns: u64) -> u64 {
        let flying = self.lines[line].iter_mut().map(|it| (it.sent_ns, &mut it.frame));
        let late = self.late.iter_mut().flatten().filter(|it| it.line == line);
        let late = late.map(|it| (it.sent_ns, &mut it.frame));
        let unsent = flying.chain(late).filter(|(sent_ns, _)| *sent_ns > now_ns);
        unsent.map(|(_, frame)| u64::from(frame.take().is_some())).sum()
    }

    pub(crate) fn plan_departure(&mut self, at_ns: u64, line: usize) {
        self.plan(at_ns, Event::Departure { line: line as u32 });
    }

    pub(crate) fn plan_wake(&mut self, at_ns: u64, host: usize) {
        self.plan(at_ns, Event::Wake { host: host as u32 });
    }

    pub(crate) fn plan_incident(&mut self, at_ns: u64, number: usize) {
        self.plan(at_ns, Event::Incident { number: number as u32 });
    }

    /// The next event, if it is due by `end_ns`, and its time.
    pub(crate) fn pop_until(&mut self, end_ns: u64) -> Option<(u64, Due)> {
        loop {
            let first = self.heap.peek_mut()?;
            let Reverse((at_ns, _, event)) = *first;
            if at_ns > end_ns {
                return None;
            }
            let due = match event {
                Event::First { line } => take_first(&mut self.lines[line as usize], first)
                    .map(|frame| Due::Frame { line: line as usize, frame }),
                _ => {
                    PeekMut::pop(first);
                    self.due(event)
                }
            };
            // Nothing is due where a cut has taken the frame.
            if let Some(due) = due {
                return Some((at_ns, due));
            }
        }
    }

    fn due(&mut self, event: Event) -> Option<Due> {
        Some(match event {
            Event::Late { slot, .. } => {
                self.free.push(slot);
                let late = self.late[slot as usize].take().expect("kept until its time");
                Due::Frame { line: late.line, frame: late.frame? }
            }
            Event::First { line } | Event::Departure { line } => {
                Due::Departure { line: line as usize }
            }
            Event::Wake { host } => Due::Wake { host: host as usize },
            Event::Incident { number } => Due::Incident { number: number as usize },
        })
    }
}

/// Takes the first frame of a line, whose place in the heap goes to the next one.
fn take_first(
    flying: &mut VecDeque<Flying>,
    mut place: PeekMut<'_, Reverse<(u64, u64, Event)>>,
) -> Option<Frame> {
    let frame = flying.pop_front().expect("the heap knows the first of a line").frame;
    match flying.front() {
        Some(next) => place.0 = (next.at_ns, next.count, place.0.2),
        None => {
            PeekMut::pop(place);
        }
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// All events in the order of time and planning, as one list would have them.
    #[test]
    fn the_order_is_that_of_time_and_planning() {
        let mut random = Random::new(5);
        let mut agenda = Agenda::default();
        (0..4).for_each(|_| agenda.add_line());
        let (mut plain, mut last_ns) = (Vec::new(), [0u64; 4]);
        let mut seen = Vec::new();
        for count in 0..5000u64 {
            let (line, is_late) = (random.below(4) as usize, random.chance(0.2));
            let mut at_ns = count / 8 + random.below(300);
            if !is_late {
                at_ns = at_ns.max(last_ns[line]);
                last_ns[line] = at_ns;
            }
            let frame = Frame::new(&[], &count.to_be_bytes());
            agenda.plan_frame(line, Arrival { at_ns, sent_ns: at_ns, frame, is_late });
            plain.push((at_ns, count));
            if count % 3 == 0 {
                seen.extend(agenda.pop_until(count / 8));
            }
        }
        while let Some(due) = agenda.pop_until(u64::MAX) {
            seen.push(due);
        }
        let seen: Vec<(u64, u64)> = seen
            .iter()
            .map(|(at_ns, due)| match due {
                Due::Frame { frame, .. } => {
                    let mut scratch = Vec::new();
                    let octets = frame.bytes(&mut scratch).try_into().expect("eight octets");
                    (*at_ns, u64::from_be_bytes(octets))
                }
                other => panic!("{other:?}"),
            })
            .collect();
        plain.sort_unstable();
        assert_eq!(seen.len(), plain.len());
        // Times never go back, and what came out is what was planned.
        assert!(seen.is_sorted_by_key(|(at_ns, count)| (*at_ns, *count)));
        assert_eq!(seen, plain);
        assert_eq!(agenda.in_flight(), (0, 0));
    }

    #[test]
    fn a_cut_takes_what_was_not_sent_and_nothing_else() {
        let mut agenda = Agenda::default();
        (0..2).for_each(|_| agenda.add_line());
        for (line, sent_ns, is_late) in
            [(0, 10, false), (0, 20, true), (0, 30, false), (1, 40, false)]
        {
            let frame = Frame::new(&[], &[sent_ns as u8]);
            agenda.plan_frame(line, Arrival { at_ns: sent_ns + 100, sent_ns, frame, is_late });
        }
        assert_eq!(agenda.cut(0, 15), 2);
        assert_eq!(agenda.cut(0, 15), 0, "they are gone only once");
        assert_eq!(agenda.in_flight().0, 2);
        // What is sent after the link is back comes, in its turn.
        let frame = Frame::new(&[], &[50]);
        agenda.plan_frame(0, Arrival { at_ns: 150, sent_ns: 50, frame, is_late: false });
        let seen = std::iter::from_fn(|| agenda.pop_until(u64::MAX)).map(|(at_ns, _)| at_ns);
        assert_eq!(seen.collect::<Vec<_>>(), [110, 140, 150]);
    }
}
