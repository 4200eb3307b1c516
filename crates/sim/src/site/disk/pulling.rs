//! Contents on their way from writers, as the threads of a disk bring them.

use byname_catalog::id::ContentId;
use byname_client::Stop;
use byname_disk::pull::{Kept, Pull, Receiving, Unkept, failure_of_read};
use byname_disk::{Event, PullWork, StoreFailure};

use super::super::fetching::Fetching;
use super::{PULL_PATIENCE_NS, Running, SiteDisk};
use crate::program::Now;

pub(super) struct PullInFlight {
    pub(super) pull: Box<Pull>,
    pub(super) stop: Stop,
    pub(super) fetching: Fetching,
    pub(super) receiving: Receiving,
    pub(super) last_ns: u64,
}

impl SiteDisk {
    pub(super) fn begin_pull(
        &mut self,
        running: &mut Running,
        work: PullWork,
        receiving: Result<Receiving, StoreFailure>,
        now: Now,
    ) {
        let PullWork { pull, stop } = work;
        let content = pull.content;
        match receiving {
            Ok(receiving) => {
                let seed = self.random.draw();
                let fetching = match receiving.range(&pull) {
                    Some(range) => Fetching::of_range(pull.plan(), range, seed),
                    None => Fetching::whole(pull.plan(), seed),
                };
                let last_ns = now.now_ns;
                let pull = PullInFlight { pull, stop, fetching, receiving, last_ns };
                running.pulls.insert(content, pull);
            }
            Err(why) => {
                self.finish_later(running, Event::Pulled(content, Err(why)), now.now_ns);
            }
        }
    }

    /// Takes what pulls have brought, and ends those that are over.
    pub(super) fn advance_pulls(&mut self, running: &mut Running, now: Now) {
        let mut ended: Vec<(ContentId, Result<(), StoreFailure>)> = Vec::new();
        for (content, one) in &mut running.pulls {
            while let Some(interest) = one.fetching.poll_interest(&mut self.random, now) {
                self.out.push_back(interest);
            }
            let mut failure = None;
            while let Some(octets) = one.fetching.poll_octets() {
                one.last_ns = now.now_ns;
                let bytes = octets.len() as u64;
                let written = one.receiving.write(&octets, &mut |_| Ok(()));
                let _ = running.events.send(Event::Received(*content, bytes));
                if let Err(error) = written {
                    failure = Some(StoreFailure::of(&error));
                    break;
                }
            }
            if one.stop.is_requested() {
                failure = Some(StoreFailure::Stopped);
            } else if now.now_ns >= one.last_ns + PULL_PATIENCE_NS {
                failure = Some(StoreFailure::Unreachable);
            }
            match (failure, one.fetching.outcome()) {
                (Some(failure), _) => ended.push((*content, Err(failure))),
                (None, Some(Ok(()))) => ended.push((*content, Ok(()))),
                (None, Some(Err(error))) => ended.push((*content, Err(failure_of_read(&error)))),
                (None, None) => {}
            }
        }
        for (content, outcome) in ended {
            if let Some(one) = running.pulls.remove(&content) {
                let again = PullWork { pull: one.pull.clone(), stop: one.stop.clone() };
                let outcome = match outcome {
                    Ok(()) => self.store(running, one, now),
                    Err(failure) => Err(one.receiving.give_up(failure)),
                };
                if outcome == Err(Unkept::NotGrown) {
                    let _ = running.events.send(Event::Again(content));
                    let receiving = Receiving::begin_whole(&again.pull, &running.directory);
                    self.begin_pull(running, again, receiving, now);
                    continue;
                }
                let outcome = outcome.map_err(StoreFailure::from);
                let at_ns = self.finish_later(running, Event::Pulled(content, outcome), now.now_ns);
                if let Some((until_ns, ..)) = running.torn.as_mut().filter(|it| it.0 == u64::MAX) {
                    *until_ns = at_ns;
                }
            }
        }
    }

    /// Stores a content, and remembers the disk as it was after one of the steps: a crash before
    /// they have come to their end finds that.
    fn store(
        &mut self,
        running: &mut Running,
        one: PullInFlight,
        now: Now,
    ) -> Result<Kept, Unkept> {
        let is_torn = running.torn.as_ref().is_some_and(|(until_ns, ..)| *until_ns > now.now_ns);
        let PullInFlight { pull, receiving, .. } = one;
        let (files, mut left, mut middle) = (self.files.clone(), self.random.below(6), None);
        let outcome = receiving.finish(&pull, &mut |_| {
            if left == 0 {
                middle = Some(files.moment());
            }
            left = left.wrapping_sub(1);
        });
        if let Some(middle) = middle.filter(|_| !is_torn) {
            running.torn = Some((u64::MAX, middle, self.files.moment()));
        }
        outcome
    }
}
