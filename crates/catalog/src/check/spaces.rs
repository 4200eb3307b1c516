//! Usage by space of a catalog that was made before it was counted.

use std::collections::BTreeMap;

use super::each;
use crate::quota::combined;
use crate::record::{Attempt, Inode, Subject, Usage};
use crate::refusal::Failure;
use crate::view::View;

/// Counts usage by space, once, in a catalog that has not done so.
pub(crate) fn count_spaces(view: &mut View<'_>) -> Result<(), Failure> {
    let mut usage = BTreeMap::<String, Usage>::new();
    let mut add = |space: String, amount: Usage| {
        let sum = usage.entry(space).or_default();
        *sum = combined(*sum, amount, u64::checked_add).unwrap_or(*sum);
    };
    each(view, |_, inode: Inode| {
        if inode.link_count > 0 {
            let bytes = inode.charged_bytes();
            add(inode.policy.space, Usage { inodes: 1, bytes, ..Usage::default() });
        }
    })?;
    each(view, |_, attempt: Attempt| {
        let amount = attempt.reserved();
        add(attempt.policy.space, amount);
    })?;
    for (space, usage) in usage.into_iter().filter(|(_, usage)| *usage != Usage::default()) {
        view.set(Subject::Space(space).key(), &usage);
    }
    Ok(())
}
