//! Subjects of commits: short enough that a log reads as a list.
//!
//! Only the commits that a clone has are looked at, so a shallow clone or an unpacked archive is as
//! tidy as the whole. Older commits stay as they are.

use std::path::Path;

use anyhow::Result;

use crate::command::output_of;
use crate::finding::Finding;

const SUBJECT_CHARS_MAX: usize = 72;
/// Author's time of the first commit that is judged, in seconds since the Unix epoch: 2026-11-22,
/// 15:30 UTC.
const SINCE_UNIX_S: u64 = 1_795_361_400;

pub(super) fn check(root: &Path) -> Result<Vec<Finding>> {
    if !root.join(".git").exists() {
        return Ok(Vec::new());
    }
    let since = format!("--since=@{SINCE_UNIX_S}");
    let log = output_of(root, "git", &["log", "--no-merges", &since, "--format=%h %at %s"])?;
    Ok(judge(&String::from_utf8_lossy(&log)))
}

/// Findings of a log of short hash, author's time and subject. git selects by the time of the
/// commit, which changes when a commit is moved.
fn judge(log: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for line in log.lines() {
        let mut parts = line.splitn(3, ' ');
        let (Some(hash), Some(time), Some(subject)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let is_old = time.parse().is_ok_and(|time: u64| time < SINCE_UNIX_S);
        let chars = subject.chars().count();
        if !is_old && chars > SUBJECT_CHARS_MAX {
            let advice = format!(
                "the subject has {chars} characters, {SUBJECT_CHARS_MAX} at most: \
                 `room: what changed`, the why in the body"
            );
            findings.push(Finding::new(format!("commit {hash}"), 1, "subject", advice));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_of_73_characters_is_too_long_and_72_are_not() {
        let line = |time: u64, chars: usize| format!("abc1234 {time} {}\n", "é".repeat(chars));
        assert!(judge(&line(SINCE_UNIX_S, 72)).is_empty());
        assert!(judge(&line(SINCE_UNIX_S - 1, 73)).is_empty(), "older commits stay as they are");
        let log = line(SINCE_UNIX_S + 9, 72) + &line(SINCE_UNIX_S + 5, 73);
        let findings = judge(&log);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].advice.contains("73 characters"));
    }

    #[test]
    fn a_tree_without_history_has_no_subjects() {
        let root = tempfile::tempdir().unwrap();
        assert!(check(root.path()).unwrap().is_empty());
    }
}
