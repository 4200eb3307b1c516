//! What a head does between two rounds of orders to its disks, each for a while: it tells them what
//! their copies of the catalog lack, compares, has them prove what they have, repairs.

use std::time::Duration;

use byname_catalog::Failure;
use byname_catalog::engine::EngineError;
use byname_face::Reply;
use byname_io::Clock;
use byname_site::Stamp;

use super::{ROUND_PAUSE, SECOND_NS, WatchTerm};

/// Time that a comparison has between two rounds.
const COMPARING_NS: u64 = 2 * SECOND_NS;
/// Time that copies have between two rounds.
const COPYING_NS: u64 = 2 * SECOND_NS;
/// Time that repairs have between two rounds.
const REPAIRING_NS: u64 = 2 * SECOND_NS;
/// Time that proofs have between two rounds.
const PROVING_NS: u64 = 2 * SECOND_NS;
/// Pause between two challenges to the same disk, which reads a content for each.
const PROVING_PAUSE: Duration = Duration::from_millis(100);
/// Pause before rows are read again that others have changed meanwhile.
const CONFLICT_PAUSE: Duration = Duration::from_millis(5);
/// Pause while there is no allowance to move anything.
const ALLOWANCE_PAUSE: Duration = Duration::from_millis(20);
/// Pause before disks are asked again of which none has answered: a Nack comes at once, so whoever
/// does not wait asks as often as the network can say no.
const UNANSWERED_PAUSE: Duration = Duration::from_millis(200);

impl WatchTerm {
    /// Tells the disks what their copies of the catalog lack, until nothing does, or it is time for
    /// the next round.
    pub(super) fn copy(
        &mut self,
        stamp: &mut dyn FnMut() -> Stamp,
        clock: &Clock,
        ask: &mut dyn FnMut(&[Vec<u8>]) -> Vec<Reply>,
    ) {
        let end_ns = clock.now_ns().saturating_add(COPYING_NS);
        let mut copied = self.watch.begin_copying();
        while clock.now_ns() < end_ns && self.own.term.strong_count() > 0 {
            match copied.and_then(|()| self.copy_step(stamp, clock, ask)) {
                Ok(true) => copied = Ok(()),
                Ok(false) => return,
                // The rows that were read have changed since: they are read again.
                Err(Failure::Engine(EngineError::Conflict)) => {
                    std::thread::sleep(CONFLICT_PAUSE);
                    copied = Ok(());
                }
                Err(error) => {
                    tracing::warn!(%error, "the rows for the disks cannot be read");
                    return;
                }
            }
        }
    }

    /// Tells them once; false if nothing is lacking, or nobody was asked.
    fn copy_step(
        &mut self,
        stamp: &mut dyn FnMut() -> Stamp,
        clock: &Clock,
        ask: &mut dyn FnMut(&[Vec<u8>]) -> Vec<Reply>,
    ) -> Result<bool, Failure> {
        let Some(orders) = self.watch.copy_orders(stamp)? else { return Ok(false) };
        let replies = ask(&orders.wires());
        // Without a forwarder nobody was asked.
        if replies.is_empty() {
            return Ok(false);
        }
        let data = |reply| match reply {
            Reply::Data { wire, .. } => Some(wire),
            Reply::Nack(_) | Reply::Silence => None,
        };
        self.watch.handle_copies(orders, replies.into_iter().map(data), clock.unix_ns())?;
        Ok(true)
    }

    /// Has replicas made elsewhere until it is time for the next round; true if there is more.
    pub(super) fn repair(
        &mut self,
        stamp: &mut dyn FnMut() -> Stamp,
        clock: &Clock,
        ask: &mut dyn FnMut(&[Vec<u8>]) -> Vec<Reply>,
    ) -> bool {
        let end_ns = clock.now_ns().saturating_add(REPAIRING_NS);
        let clocks = || (clock.now_ns(), clock.unix_ns());
        let repaired = loop {
            if clock.now_ns() >= end_ns || self.own.term.strong_count() == 0 {
                return true;
            }
            let orders = match self.watch.repair_orders(stamp, clocks()) {
                Ok(Some(orders)) if orders.is_empty() => {
                    std::thread::sleep(ALLOWANCE_PAUSE);
                    continue;
                }
                Ok(Some(orders)) => orders,
                Ok(None) => return false,
                Err(error) => break error,
            };
            let replies = ask(&orders.wires());
            // Without a forwarder nobody was asked.
            if replies.is_empty() {
                return false;
            }
            let data = |reply| match reply {
                Reply::Data { wire, .. } => Some(wire),
                Reply::Nack(_) | Reply::Silence => None,
            };
            std::thread::sleep(pause_after(&replies));
            let answers = replies.into_iter().map(data);
            match self.watch.handle_repairs(orders, answers, clocks()) {
                Ok(commands) => commands.into_iter().for_each(|command| {
                    // If the term is over, the loop ends.
                    let _ = self.own.commands.send(command);
                }),
                Err(error) => break error,
            }
        };
        tracing::warn!(error = %repaired, "what is to be repaired cannot be read from the catalog");
        false
    }

    /// Goes on with proofs until it is time for the next round; true if there are more.
    pub(super) fn prove(
        &mut self,
        stamp: &mut dyn FnMut() -> Stamp,
        clock: &Clock,
        ask: &mut dyn FnMut(&[Vec<u8>]) -> Vec<Reply>,
    ) -> bool {
        let end_ns = clock.now_ns().saturating_add(PROVING_NS);
        while clock.now_ns() < end_ns && self.own.term.strong_count() > 0 {
            let Some(orders) = self.watch.proofs(stamp) else { return false };
            if orders.is_empty() {
                continue;
            }
            let wires: Vec<Vec<u8>> = orders.iter().map(|order| order.wire().to_vec()).collect();
            let mut replies = ask(&wires).into_iter();
            // Without a forwarder nobody was asked.
            if replies.len() > 0 {
                let mut answer = |order| match replies.next() {
                    Some(Reply::Data { wire, .. }) => (order, Some(wire)),
                    _ => (order, None),
                };
                let answers = orders.into_iter().map(&mut answer).collect();
                self.watch.handle_proofs(answers, clock.unix_ns());
            }
            std::thread::sleep(PROVING_PAUSE);
        }
        true
    }

    /// Goes on with a comparison until it is time for the next round; true if there is one.
    pub(super) fn compare(
        &mut self,
        stamp: &mut dyn FnMut() -> Stamp,
        clock: &Clock,
        ask: &mut dyn FnMut(&[Vec<u8>]) -> Vec<Reply>,
    ) -> bool {
        let end_ns = clock.now_ns().saturating_add(COMPARING_NS);
        while clock.now_ns() < end_ns && self.own.term.strong_count() > 0 {
            let orders = self.watch.lists(stamp);
            for command in self.watch.remedies() {
                // If the term is over, the loop ends.
                let _ = self.own.commands.send(command);
            }
            let Some(orders) = orders else { return false };
            if orders.is_empty() {
                continue;
            }
            let wires: Vec<Vec<u8>> = orders.iter().map(|order| order.wire().to_vec()).collect();
            let mut replies = ask(&wires).into_iter();
            // Without a forwarder nobody was asked.
            if replies.len() == 0 {
                std::thread::sleep(ROUND_PAUSE);
                continue;
            }
            let mut answer = |order| match replies.next() {
                Some(Reply::Data { wire, .. }) => (order, Some(wire)),
                _ => (order, None),
            };
            let answers = orders.into_iter().map(&mut answer).collect();
            self.watch.handle_lists(answers, clock.unix_ns());
        }
        true
    }
}

/// Pause after the replies to orders that are sent again until their answer is final.
fn pause_after(replies: &[Reply]) -> Duration {
    let is_answered = replies.iter().any(|reply| matches!(reply, Reply::Data { .. }));
    if is_answered { Duration::ZERO } else { UNANSWERED_PAUSE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_that_answer_nothing_are_not_asked_again_at_once() {
        let data = Reply::Data { wire: Vec::new(), trace: Vec::new() };
        assert_eq!(pause_after(&[Reply::Nack(50), data]), Duration::ZERO);
        assert!(pause_after(&[Reply::Nack(50), Reply::Silence]) > Duration::ZERO);
    }
}
