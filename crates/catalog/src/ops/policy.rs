//! Where content goes: by directory or file, by the pattern of a new file's name, by command.

use crate::command::Answer;
use crate::engine::{Rows, Span, Table};
use crate::execution::Execution;
use crate::name::{EntryName, Place};
use crate::quota::{Account, settle};
use crate::record::{Kind, Policy, PolicyChanges, check_pattern, fits};
use crate::refusal::{Failure, Refusal};
use crate::view::decoded;

use super::namespace::charged;

/// Most patterns of names that have a policy: each new file is compared with all.
pub(crate) const PATTERNS_MAX: usize = 64;

impl Execution<'_> {
    pub(super) fn set_policy(&mut self, place: &Place, policy: &Policy) -> Result<Answer, Failure> {
        policy.check()?;
        let (id, mut inode) = self.object(place)?;
        if inode.kind() == Kind::Symlink {
            return Err(Refusal::SymbolicLink.into());
        }
        let before = Account::of(&inode);
        inode.policy = policy.clone();
        let (after, used) = (Account::of(&inode), charged(&inode));
        settle(&mut self.view, &[(&before, used)], &[(&after, used)])?;
        self.touch(&mut inode);
        self.set_inode(id, &inode);
        Ok(Answer::Done)
    }

    /// Sets what holds for new files whose names fit a pattern, or nothing any more.
    pub(super) fn set_pattern(
        &mut self,
        pattern: &str,
        changes: Option<&PolicyChanges>,
    ) -> Result<Answer, Failure> {
        check_pattern(pattern)?;
        let key = pattern.as_bytes().to_vec();
        let known: Option<PolicyChanges> = self.view.record(&key)?;
        match (changes, known) {
            (None, None) => return Err(Refusal::NotFound.into()),
            (None, Some(_)) => self.view.delete(Table::Pattern, key),
            (Some(changes), known) => {
                if changes.is_empty() {
                    return Err(Refusal::BadPolicy.into());
                }
                changes.check()?;
                let count = self.view.range(Table::Pattern, Span::ALL, PATTERNS_MAX)?.len();
                if known.is_none() && count >= PATTERNS_MAX {
                    return Err(Refusal::TooManyPatterns.into());
                }
                self.view.set(key, changes);
            }
        }
        Ok(Answer::Done)
    }

    /// The policy of a new file: what was asked for with it counts more than the pattern that its
    /// name fits, the longest of several, and that more than the directory's.
    pub(super) fn policy_of_new(
        &self,
        name: &EntryName,
        directory: &Policy,
        asked: &PolicyChanges,
    ) -> Result<Policy, Failure> {
        asked.check()?;
        let mut best: Option<(usize, PolicyChanges)> = None;
        for (pattern, value) in self.view.range(Table::Pattern, Span::ALL, PATTERNS_MAX)? {
            let is_longest = best.as_ref().is_none_or(|(length, _)| pattern.len() > *length);
            if is_longest && fits(&pattern, name.as_bytes()) {
                best = Some((pattern.len(), decoded(&value)?));
            }
        }
        let policy = best.map_or_else(|| directory.clone(), |(_, changes)| changes.of(directory));
        Ok(asked.of(&policy))
    }
}
