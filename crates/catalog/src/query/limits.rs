//! Who uses how much and may use how much, and which policies new files get by their names.

use super::Reader;
use crate::engine::{EngineError, Row, Span, Table};
use crate::ops::PATTERNS_MAX;
use crate::record::{Inode, Limited, Limits, OverSince, PolicyChanges, Subject, Usage};
use crate::refusal::Failure;
use crate::rights::SET_GROUP;
use crate::view::{decoded, read};

use super::PAGE_ROWS_MAX;

/// What somebody uses, and may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// Who.
    pub subject: Subject,
    /// What he uses.
    pub usage: Usage,
    /// What he may use.
    pub limits: Limits,
    /// Since when he is above soft limits.
    pub over: OverSince,
}

impl Quota {
    /// Time for which it may still grow that is above a soft limit: the least of inodes and octets.
    /// None if it is below.
    pub fn grace_left_ns(&self, now_ns: u64) -> Option<u64> {
        let since = [self.over.inodes_ns, self.over.bytes_ns].into_iter().flatten().min()?;
        Some(self.limits.grace_ns.saturating_sub(now_ns.saturating_sub(since)))
    }
}

impl Reader<'_> {
    /// Quotas of all who use something or have a limit, groups first, then spaces, trees and users,
    /// each in order, after one of them. A page that is shorter than `limit` and [`PAGE_ROWS_MAX`]
    /// is the last.
    pub fn quotas(&self, after: Option<&Subject>, limit: usize) -> Result<Vec<Quota>, Failure> {
        let limit = limit.min(PAGE_ROWS_MAX);
        let from = after.map_or_else(Vec::new, |last| [last.key().as_slice(), &[0]].concat());
        let span = Span { from: &from, until: None };
        let mut keys = Vec::new();
        for table in [Table::Usage, Table::Limit] {
            let rows = self.rows.range(table, span, limit)?;
            keys.extend(rows.into_iter().map(|(key, _)| key));
        }
        keys.sort();
        keys.dedup();
        keys.truncate(limit);
        let quota = |key: Vec<u8>| {
            let what = "a malformed key";
            let subject =
                Subject::of_key(&key).ok_or(EngineError::Corrupt { table: Table::Usage, what })?;
            self.quota(subject)
        };
        keys.into_iter().map(quota).collect()
    }

    /// What somebody uses, and may use.
    pub fn quota(&self, subject: Subject) -> Result<Quota, Failure> {
        let key = subject.key();
        let usage: Usage = read(&*self.rows, &key)?.unwrap_or_default();
        let Limited { limits, over } = read(&*self.rows, &key)?.unwrap_or(Limited::NONE);
        Ok(Quota { subject, usage, limits, over })
    }

    /// Whose quotas, besides that of its tree, what the caller adds at an inode counts for: that of
    /// its space; in a directory his own and his group's, or what the directory gives; of a file
    /// its owner's.
    pub fn counted_at(&self, inode: &Inode) -> Vec<Subject> {
        let own_group = self.caller.groups.first();
        let (user, group) = match inode.is_directory() {
            true if inode.mode & SET_GROUP != 0 => (&self.caller.user, Some(&inode.group)),
            true => (&self.caller.user, own_group),
            false => (&inode.owner, Some(&inode.group)),
        };
        let group = group.map(|group| Subject::Group(group.clone()));
        let space = Subject::Space(inode.policy.space.clone());
        [Subject::User(user.clone())].into_iter().chain(group).chain([space]).collect()
    }

    /// The user who reads, his groups, and whether he runs the site.
    pub fn who(&self) -> (&str, &[String], bool) {
        (&self.caller.user, &self.caller.groups, self.caller.is_operator)
    }

    /// True if a quota concerns the caller: operators all, others theirs and those of trees and
    /// spaces.
    pub fn concerns(&self, subject: &Subject) -> bool {
        self.caller.is_operator
            || match subject {
                Subject::User(name) => *name == self.caller.user,
                Subject::Group(name) => self.caller.is_in(name),
                Subject::Tree(_) | Subject::Space(_) => true,
            }
    }

    /// Patterns of names, each with how the policy of new files differs by it.
    pub fn patterns(&self) -> Result<Vec<(String, PolicyChanges)>, Failure> {
        let rows = self.rows.range(Table::Pattern, Span::ALL, PATTERNS_MAX)?;
        let pattern =
            |(key, value): Row| Ok((String::from_utf8_lossy(&key).into_owned(), decoded(&value)?));
        rows.into_iter().map(pattern).collect()
    }
}
