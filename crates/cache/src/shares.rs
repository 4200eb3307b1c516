//! Shares of an entry of a service: how many bytes of it each user has brought.
//!
//! An entry is shared: one user may bring the first unit of a content and others the rest. Each is
//! counted what that user brought, and the entry stands under the name of who brought most. Bytes
//! of the entry that nobody brought, such as its map, are counted in the same proportion.

use std::fs;
use std::io;
use std::path::Path;

use byname_packet::Name;

use crate::layout::SHARES;
use crate::names::{Names, Seen};

/// First component of the names under which a service's entries are counted to users. It is no
/// component of a published path.
pub const SERVICE_USER_COMPONENT: &str = "32=user";
/// Users counted for one entry. One more takes the place of who brought least.
const USERS_MAX: usize = 16;
/// Octets of the file that are looked at.
const FILE_BYTES_MAX: usize = 4096;

/// See the module. Most first; of equals who was there first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    list: Vec<(u32, u64)>,
}

impl Shares {
    /// Those of an entry. One that has none written down belongs to the user of its name.
    pub(crate) fn load(entry: &Path) -> Self {
        let octets = fs::read(entry.join(SHARES)).unwrap_or_default();
        let text = String::from_utf8_lossy(&octets[..octets.len().min(FILE_BYTES_MAX)]);
        let mut shares = Shares::default();
        text.lines().filter_map(decode).for_each(|(uid, bytes)| shares.add(uid, bytes));
        if shares.list.is_empty() {
            let names = Names::load(entry);
            shares
                .list
                .extend(names.iter().find_map(|seen| uid_of(&seen.name)).map(|uid| (uid, 1)));
        }
        shares
    }

    /// Writes them, and the name of who brought most.
    pub(crate) fn save(&self, entry: &Path) -> io::Result<()> {
        let lines: String =
            self.list.iter().map(|(uid, bytes)| format!("{uid} {bytes}\n")).collect();
        crate::files::replace(&entry.join(SHARES), lines.as_bytes())?;
        let Some(first) = self.first() else { return Ok(()) };
        let mut names = Names::default();
        names.add(Seen { name: name_of(first), version: 0, mtime_ns: None, mode: None });
        match Names::load(entry) == names {
            true => Ok(()),
            false => names.save(entry),
        }
    }

    /// A user has brought so many bytes more.
    pub(crate) fn add(&mut self, uid: u32, bytes: u64) {
        match self.list.iter_mut().find(|(user, _)| *user == uid) {
            Some((_, sum)) => *sum = sum.saturating_add(bytes),
            None => {
                self.list.truncate(USERS_MAX - 1);
                self.list.push((uid, bytes));
            }
        }
        self.list.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    }

    /// Who brought most.
    pub(crate) fn first(&self) -> Option<u32> {
        self.list.first().map(|(uid, _)| *uid)
    }

    /// Each user's part of so many bytes.
    pub(crate) fn parts(&self, bytes: u64) -> impl Iterator<Item = (u32, u64)> {
        let sum: u128 = self.list.iter().map(|(_, brought)| u128::from(*brought)).sum();
        let part = move |brought: u64| {
            let part = u128::from(bytes) * u128::from(brought) / sum.max(1);
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        self.list.iter().map(move |(uid, brought)| (*uid, part(*brought)))
    }

    /// One user's part of so many bytes.
    pub(crate) fn part_of(&self, uid: u32, bytes: u64) -> u64 {
        self.parts(bytes).find(|(user, _)| *user == uid).map_or(0, |(_, part)| part)
    }
}

fn decode(line: &str) -> Option<(u32, u64)> {
    let (uid, bytes) = line.split_once(' ')?;
    Some((uid.parse().ok()?, bytes.parse().ok()?))
}

/// The name that a user's entries are counted to.
fn name_of(uid: u32) -> Name {
    let name = format!("/{SERVICE_USER_COMPONENT}/{uid}");
    name.parse().expect("digits are a component")
}

fn uid_of(name: &Name) -> Option<u32> {
    let text = name.to_string();
    let uid = text.strip_prefix('/')?.strip_prefix(SERVICE_USER_COMPONENT)?.strip_prefix('/')?;
    uid.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_the_part_of_an_entry_that_that_user_brought() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut shares = Shares::load(directory.path());
        assert_eq!(shares.first(), None);
        shares.add(1001, 1);
        shares.add(1002, 3);
        shares.save(directory.path()).expect("saved");
        let shares = Shares::load(directory.path());
        assert_eq!((shares.first(), shares.part_of(1001, 4000)), (Some(1002), 1000));
        assert_eq!(shares.parts(u64::MAX).map(|(_, part)| part).max(), Some(u64::MAX / 4 * 3 + 2));
        let names = fs::read_to_string(directory.path().join("names")).expect("names");
        assert_eq!(names, "0 - - /32=user/1002\n");
    }

    #[test]
    fn an_entry_without_shares_is_that_of_its_name_and_damaged_lines_count_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("names"), "0 - - /32=user/7\n").expect("written");
        fs::write(directory.path().join(SHARES), "x 1\n-1 5\n9\n\n").expect("written");
        let shares = Shares::load(directory.path());
        assert_eq!((shares.first(), shares.part_of(7, 100)), (Some(7), 100));
    }

    #[test]
    fn so_many_users_are_counted_and_who_brought_least_leaves() {
        let mut shares = Shares::default();
        (0..40).for_each(|uid| shares.add(uid, 100 + u64::from(uid)));
        assert_eq!(shares.list.len(), USERS_MAX);
        assert!(shares.part_of(39, 1000) > 0);
        shares.add(1, 10_000);
        assert_eq!(shares.first(), Some(1));
    }
}
