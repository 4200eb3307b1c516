//! Commands that have no request id, with their answers: a captured one must not open session after
//! session, and one whose answer was lost gets it again.

use std::collections::BTreeMap;

use crate::commands::CommandAnswer;
use crate::keys::Who;

/// Such commands that are remembered, at most; each takes less than a kilobyte. They are for two
/// minutes, and every program that runs once opens a session: 16 384 of one user are 136 a second.
const REMEMBERED_MAX: usize = 32_768;

/// See the module.
#[derive(Default)]
pub(super) struct Remembered {
    /// By when they were signed, and by name.
    answers: BTreeMap<(u64, Vec<u8>), (Who, CommandAnswer)>,
    counts: BTreeMap<Who, usize>,
}

impl Remembered {
    /// The answer to a command that has come before.
    pub(super) fn get(&self, signed_ms: u64, name: &[u8]) -> Option<&CommandAnswer> {
        self.answers.get(&(signed_ms, name.to_vec())).map(|(_, answer)| answer)
    }

    /// Nobody has more than is free, so whoever comes next finds room.
    pub(super) fn has_room_for(&self, who: &Who) -> bool {
        let has = self.counts.get(who).copied().unwrap_or(0);
        has < REMEMBERED_MAX.saturating_sub(self.answers.len())
    }

    pub(super) fn insert(
        &mut self,
        (signed_ms, name): (u64, Vec<u8>),
        who: Who,
        answer: CommandAnswer,
    ) {
        *self.counts.entry(who.clone()).or_default() += 1;
        let before = self.answers.insert((signed_ms, name), (who, answer));
        if let Some((who, _)) = before {
            self.discount(&who);
        }
    }

    /// Forgets what was signed before that.
    pub(super) fn forget_before(&mut self, signed_ms: u64) {
        while let Some(first) = self.answers.first_entry().filter(|it| it.key().0 < signed_ms) {
            let (who, _) = first.remove();
            self.discount(&who);
        }
    }

    fn discount(&mut self, who: &Who) {
        if let Some(count) = self.counts.get_mut(who) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Who {
        Who::User(name.to_owned())
    }

    /// A user's programs open as many sessions as there is room for; how many that is.
    fn open(remembered: &mut Remembered, who: &Who, signed_ms: u64) -> usize {
        let mut count = 0;
        while remembered.has_room_for(who) {
            let name = format!("{who:?} {count}").into_bytes();
            remembered.insert((signed_ms, name), who.clone(), CommandAnswer::Nack);
            count += 1;
        }
        count
    }

    #[test]
    fn one_user_leaves_room_for_others() {
        let mut remembered = Remembered::default();
        let found = ["ann", "bob", "eve"].map(|name| open(&mut remembered, &user(name), 5));
        assert_eq!(found, [REMEMBERED_MAX / 2, REMEMBERED_MAX / 4, REMEMBERED_MAX / 8]);
        assert!(found[0] >= 120 * 100, "two minutes of a script that runs 100 programs a second");
        assert!(!remembered.has_room_for(&user("ann")) && remembered.has_room_for(&user("cy")));
        remembered.forget_before(5);
        assert!(!remembered.has_room_for(&user("ann")), "they were signed at that time");
        remembered.forget_before(6);
        assert!(remembered.counts.is_empty() && remembered.answers.is_empty());
        assert_eq!(open(&mut remembered, &user("ann"), 7), REMEMBERED_MAX / 2);
    }

    #[test]
    fn what_came_before_has_its_answer_and_counts_once() {
        let mut remembered = Remembered::default();
        for _ in 0..3 {
            remembered.insert((5, b"a".to_vec()), user("ann"), CommandAnswer::Nack);
        }
        assert!(matches!(remembered.get(5, b"a"), Some(CommandAnswer::Nack)));
        assert!(remembered.get(6, b"a").is_none() && remembered.get(5, b"b").is_none());
        assert_eq!(remembered.counts.get(&user("ann")), Some(&1));
    }
}
