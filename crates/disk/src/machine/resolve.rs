//! Questions to the head: what became of the attempt of a content that is stored. What could not be
//! removed is tried again at the same times.

use byname_catalog::Resolution;
use byname_catalog::id::{ContentId, LeaseEpoch};

use super::{Action, Machine, State};

impl Machine {
    pub(super) fn ask_at(&mut self, content: ContentId, at_ns: u64) {
        self.questions.insert((at_ns, content));
    }

    pub(super) fn ask_due(&mut self, now_ns: u64) {
        while self.asked.len() < self.limits.questions_max
            && let Some((at_ns, content)) = self.questions.first().copied()
            && at_ns <= now_ns
        {
            self.questions.remove(&(at_ns, content));
            match self.contents.get(&content) {
                Some(State::Stored { is_settled: false, .. }) => {
                    self.asked.insert(content);
                    self.actions.push_back(Action::Resolve(content));
                }
                Some(State::Unremoved) => self.remove(content),
                _ => {}
            }
        }
    }

    /// The head has answered, in this epoch; or it has not.
    pub fn handle_resolved(
        &mut self,
        content: ContentId,
        answer: Option<(LeaseEpoch, Resolution)>,
        now_ns: u64,
    ) {
        self.asked.remove(&content);
        let Some(State::Stored { kept, .. }) = self.contents.get(&content) else { return };
        let kept = *kept;
        // A head that has lost the lease does not know what became of anything.
        let answer = answer.filter(|(epoch, _)| *epoch >= self.epoch);
        let again_ns = now_ns.saturating_add(self.limits.ask_again_ns);
        match answer {
            None => self.ask_at(content, again_ns),
            Some((epoch, resolution)) => {
                self.raise(epoch);
                match resolution {
                    Resolution::Keep => {
                        self.contents.insert(content, State::Stored { kept, is_settled: true });
                        self.unknown.remove(&content);
                        self.actions.push_back(Action::Settle(content));
                    }
                    Resolution::Wait => self.ask_at(content, again_ns),
                    Resolution::Drop => self.remove(content),
                    Resolution::Unknown => {
                        self.unknown.insert(content);
                        let again_ns = now_ns.saturating_add(self.limits.ask_unknown_ns);
                        self.ask_at(content, again_ns);
                    }
                }
            }
        }
        self.ask_due(now_ns);
    }

    /// A head of this term was heard: heads before it are obeyed no more.
    pub(super) fn raise(&mut self, epoch: LeaseEpoch) {
        if epoch > self.epoch {
            self.epoch = epoch;
            self.actions.push_back(Action::KeepEpoch(epoch));
        }
    }
}
