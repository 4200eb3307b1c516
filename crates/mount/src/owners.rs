//! Owners and groups by name, as this machine numbers them.
//!
//! Names come from `/etc/passwd` and `/etc/group`, read again when they change. Directory services
//! behind the C library's name switch are not asked: that may take seconds, on every `stat`. Who
//! has no number here is the user who mounted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Time for which a file is not looked at again.
const PAUSE_NS: u64 = 5_000_000_000;
/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

#[derive(Debug, Default)]
struct Numbers {
    by_name: HashMap<String, u32>,
    changed: Option<SystemTime>,
    looked_ns: Option<u64>,
}

/// One file that has names in its first column and numbers in its third.
#[derive(Debug)]
struct Database {
    path: PathBuf,
    numbers: Mutex<Numbers>,
}

/// Numbers of owners and groups.
#[derive(Debug)]
pub(crate) struct Owners {
    users: Database,
    groups: Database,
    uid: u32,
    gid: u32,
}

impl Database {
    fn new(path: &Path) -> Self {
        Database { path: path.to_owned(), numbers: Mutex::default() }
    }

    fn number(&self, name: &str, now_ns: u64) -> Option<u32> {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        if numbers.looked_ns.is_none_or(|looked| now_ns.saturating_sub(looked) >= PAUSE_NS) {
            numbers.looked_ns = Some(now_ns);
            self.reload(&mut numbers);
        }
        numbers.by_name.get(name).copied()
    }

    fn reload(&self, numbers: &mut Numbers) {
        let Ok(metadata) = std::fs::metadata(&self.path) else { return };
        let changed = metadata.modified().ok();
        if changed == numbers.changed || metadata.len() > FILE_BYTES_MAX {
            return;
        }
        if let Ok(text) = std::fs::read_to_string(&self.path) {
            (numbers.by_name, numbers.changed) = (parse(&text), changed);
        }
    }
}

impl Owners {
    /// Those of this machine; `uid` and `gid` are for names that it does not know.
    pub(crate) fn new(uid: u32, gid: u32) -> Self {
        let database = |path: &str| Database::new(Path::new(path));
        Owners { users: database("/etc/passwd"), groups: database("/etc/group"), uid, gid }
    }

    /// Numbers of an owner and a group.
    pub(crate) fn numbers(
        &self,
        owner: Option<&str>,
        group: Option<&str>,
        now_ns: u64,
    ) -> (u32, u32) {
        let uid = owner.and_then(|owner| self.users.number(owner, now_ns));
        let gid = group.and_then(|group| self.groups.number(group, now_ns));
        (uid.unwrap_or(self.uid), gid.unwrap_or(self.gid))
    }
}

fn parse(text: &str) -> HashMap<String, u32> {
    let line = |line: &str| {
        let mut columns = line.split(':');
        let (name, _, number) = (columns.next()?, columns.next()?, columns.next()?);
        Some((name.to_owned(), number.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_numbers_of_this_machine_and_others_are_the_mounting_users() {
        let owners = Owners::new(1234, 5678);
        assert_eq!(owners.numbers(Some("root"), Some("root"), 0), (0, 0));
        assert_eq!(owners.numbers(Some("nobody of this name"), None, 0), (1234, 5678));
    }

    #[test]
    fn a_line_without_a_number_is_passed_over() {
        let numbers = parse("a:x:1:2\nb:x\nc:x:many\n\nd:x:4294967295\ne:x:4294967296\n");
        assert_eq!(numbers.len(), 2);
        assert_eq!((numbers["a"], numbers["d"]), (1, u32::MAX));
    }
}
