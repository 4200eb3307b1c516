//! Names under which a content was seen, newest first.
//!
//! One line each: version, time of last change, permission bits, name. They say what the cache
//! holds, for people and for the copy that a mirror serves; nobody's reading depends on them.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;

use byname_packet::Name;

use crate::layout::NAMES;

/// Names remembered for one content.
const NAMES_MAX: usize = 16;
/// Octets of the file that are looked at.
const FILE_BYTES_MAX: usize = 256 << 10;

/// A name that stood for the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) name: Name,
    pub(crate) version: u64,
    pub(crate) mtime_ns: Option<u64>,
    pub(crate) mode: Option<u16>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    list: VecDeque<Seen>,
}

impl Names {
    /// Those of an entry; lines that make no sense are left out.
    pub(crate) fn load(entry: &Path) -> Self {
        let octets = fs::read(entry.join(NAMES)).unwrap_or_default();
        let text = String::from_utf8_lossy(&octets[..octets.len().min(FILE_BYTES_MAX)]);
        let list = text.lines().filter_map(decode).take(NAMES_MAX).collect();
        Names { list }
    }

    pub(crate) fn save(&self, entry: &Path) -> io::Result<()> {
        let lines: String = self.list.iter().map(encode).collect();
        crate::files::replace(&entry.join(NAMES), lines.as_bytes())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Seen> {
        self.list.iter()
    }

    /// Puts a name first; false if it was there just so.
    pub(crate) fn add(&mut self, seen: Seen) -> bool {
        if self.list.front() == Some(&seen) {
            return false;
        }
        self.list.retain(|other| other.name != seen.name);
        self.list.push_front(seen);
        self.list.truncate(NAMES_MAX);
        true
    }
}

fn encode(seen: &Seen) -> String {
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |it| it.to_string());
    let (mtime, mode) = (number(seen.mtime_ns), number(seen.mode.map(u64::from)));
    format!("{} {mtime} {mode} {}\n", seen.version, seen.name)
}

fn decode(line: &str) -> Option<Seen> {
    let mut words = line.splitn(4, ' ');
    let version = words.next()?.parse().ok()?;
    let number = |text: &str| match text {
        "-" => Some(None),
        text => text.parse::<u64>().ok().map(Some),
    };
    let mtime_ns = number(words.next()?)?;
    let mode = number(words.next()?)?.map(u16::try_from).transpose().ok()?;
    let name = words.next()?.parse().ok()?;
    Some(Seen { name, version, mtime_ns, mode })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, version: u64) -> Seen {
        let name = name.parse().expect("a name");
        Seen { name, version, mtime_ns: Some(7), mode: None }
    }

    #[test]
    fn the_newest_name_is_first_and_each_stands_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut names = Names::default();
        assert!(names.add(seen("/a b/%00x", 1)) && names.add(seen("/c", 2)));
        assert!(!names.add(seen("/c", 2)), "just so");
        assert!(names.add(seen("/a b/%00x", 3)));
        names.save(directory.path()).expect("saved");
        let again = Names::load(directory.path());
        assert_eq!(again, names);
        let versions: Vec<u64> = again.iter().map(|seen| seen.version).collect();
        assert_eq!(versions, [3, 2]);
        (0..40).for_each(|at| assert!(names.add(seen(&format!("/n/{at}"), at))));
        assert_eq!(names.iter().count(), NAMES_MAX);
    }

    #[test]
    fn damaged_lines_are_left_out() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join(NAMES), b"x 1 - /a\n5 - - /b\n\xff\n5\n").expect("written");
        let names = Names::load(directory.path());
        assert_eq!(names.iter().map(|seen| seen.version).collect::<Vec<_>>(), [5]);
    }
}
