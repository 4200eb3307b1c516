//! The text of the file: one line a name, `VERSION NAME`, longest unused first. Where manifests
//! announced it, ` listed` follows; these lines come first, those of one directory together, and
//! are read and written without making a name of each.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use byname_packet::{Component, Name, NameRef, types};
use byname_transfer::versions::{DirectoryVersions, EntryVersions, VersionMemory};

/// End of a name that is a binding of the path before it.
const BINDING: &str = "/32=binding";

/// Name of an entry, and what was seen of it.
pub(super) type Entry<'a> = (&'a [u8], EntryVersions);
/// The same in a file, and the number of the line.
type Line<'a> = (Cow<'a, [u8]>, EntryVersions);

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Names that were asked for singly, and their versions.
    pub(super) names: Vec<(Name, u64)>,
    /// Entries that manifests announced.
    pub(super) directories: Vec<(Name, DirectoryVersions)>,
}

impl Contents {
    /// Reads a whole file.
    ///
    /// # Errors
    /// The number of a line that says something else, from 1.
    pub(super) fn parse(text: &str) -> Result<Self, usize> {
        let (mut names, mut groups) = (Vec::new(), Groups::default());
        for (line, number) in text.lines().zip(1..) {
            let (version, name, is_listed) = parse_line(line).ok_or(number)?;
            if !(is_listed && groups.take(name, version, number)) {
                names.push((name.parse().map_err(|_| number)?, version));
            }
        }
        Ok(Contents { names, directories: groups.into_directories()? })
    }

    /// Puts it into a memory.
    pub(super) fn restore(self, memory: &mut VersionMemory) {
        for (directory, entries) in self.directories {
            memory.restore_directory(&directory, entries);
        }
        self.names.into_iter().for_each(|(name, version)| memory.restore(name, version));
    }

    /// Removes a name and what is below it; returns how many lines said something of them.
    pub(super) fn forget(&mut self, prefix: &Name) -> usize {
        let before = self.names.len();
        self.names.retain(|(name, _)| !prefix.view().is_prefix_of(name.view()));
        let mut count = before - self.names.len();
        for (directory, entries) in &mut self.directories {
            let numbers = |versions: EntryVersions| {
                usize::from(versions.version > 0) + usize::from(versions.binding > 0)
            };
            if prefix.view().is_prefix_of(directory.view()) {
                count += entries.iter().map(|(_, versions)| numbers(versions)).sum::<usize>();
                *entries = DirectoryVersions::default();
            } else if let Some(entry) = entry_of(directory, prefix.view()) {
                count += entries.get(entry).map_or(0, numbers);
                entries.remove(entry);
            }
        }
        count
    }
}

/// Name of the directory's entry that this is, if it is one.
fn entry_of<'a>(directory: &Name, name: NameRef<'a>) -> Option<&'a [u8]> {
    let (parent, last) = name.split_last()?;
    (parent == directory.view() && last.typ == types::GENERIC).then_some(last.value)
}

fn parse_line(line: &str) -> Option<(u64, &str, bool)> {
    let mut words = line.split(' ');
    let (version, name) = (words.next()?.parse().ok()?, words.next()?);
    let is_listed = match words.next() {
        None => false,
        Some("listed") => true,
        Some(_) => return None,
    };
    words.next().is_none().then_some((version, name, is_listed))
}

/// Octets of a generic component; `None` of another one, and of none.
fn generic(text: &str) -> Option<Cow<'_, [u8]>> {
    let is_plain = !text.contains(['%', '=']) && text.bytes().any(|octet| octet != b'.');
    if is_plain {
        return Some(Cow::Borrowed(text.as_bytes()));
    }
    let name: Name = format!("/{text}").parse().ok()?;
    let last = name.view().last().filter(|last| last.typ == types::GENERIC)?;
    Some(Cow::Owned(last.value.to_vec()))
}

/// Lines of one directory, the first of which has this number.
#[derive(Debug)]
struct Group<'a> {
    directory: &'a str,
    number: usize,
    lines: Vec<Line<'a>>,
}

/// Lines of directories' entries. Those of a directory stand together unless a program wrote them
/// that remembered each name by itself.
#[derive(Debug, Default)]
struct Groups<'a> {
    groups: Vec<Group<'a>>,
    by_directory: HashMap<&'a str, usize>,
}

impl<'a> Groups<'a> {
    /// Takes a line. False if its name is not one of an entry.
    fn take(&mut self, name: &'a str, number: u64, line: usize) -> bool {
        let (path, versions) = match name.strip_suffix(BINDING) {
            Some(path) => (path, EntryVersions { binding: number, ..EntryVersions::default() }),
            None => (name, EntryVersions { version: number, ..EntryVersions::default() }),
        };
        let Some((directory, last)) = path.rsplit_once('/') else { return false };
        let Some(entry) = generic(last) else { return false };
        if self.groups.last().is_none_or(|last| last.directory != directory) {
            let known = self.by_directory.insert(directory, self.groups.len());
            let lines = known.map(|known| std::mem::take(&mut self.groups[known].lines));
            let lines = lines.unwrap_or_default();
            self.groups.push(Group { directory, number: line, lines });
        }
        if let Some(last) = self.groups.last_mut() {
            last.lines.push((entry, versions));
        }
        true
    }

    fn into_directories(self) -> Result<Vec<(Name, DirectoryVersions)>, usize> {
        let named = |Group { directory, number, lines }: Group<'a>| {
            let directory = if directory.is_empty() { "/" } else { directory };
            let name = directory.parse().map_err(|_| number)?;
            Ok((name, lines.into_iter().collect()))
        };
        self.groups.into_iter().filter(|group| !group.lines.is_empty()).map(named).collect()
    }
}

/// A file that is being written.
#[derive(Debug, Default)]
pub(super) struct Text(String);

impl Text {
    /// All that a memory remembers.
    pub(super) fn of(memory: &VersionMemory) -> Self {
        let mut text = Text::default();
        for (directory, entries) in memory.directories() {
            text.push_directory(directory, entries.iter());
        }
        memory.iter().for_each(|it| text.push_name(it.name, it.version));
        text
    }

    // Writing to memory does not fail.
    pub(super) fn push_name(&mut self, name: &Name, version: u64) {
        let _ = writeln!(self.0, "{version} {name}");
    }

    pub(super) fn push_directory<'a>(
        &mut self,
        directory: &Name,
        entries: impl Iterator<Item = Entry<'a>>,
    ) {
        let directory = directory.to_string();
        let directory = directory.trim_end_matches('/');
        for (entry, EntryVersions { version, binding, .. }) in entries {
            let entry = Component::generic(entry);
            if version > 0 {
                let _ = writeln!(self.0, "{version} {directory}/{entry} listed");
            }
            if binding > 0 {
                let _ = writeln!(self.0, "{binding} {directory}/{entry}{BINDING} listed");
            }
        }
    }

    /// The last lines that are so many octets at most.
    pub(super) fn last_lines(&self, bytes_max: usize) -> &[u8] {
        let bytes = self.0.as_bytes();
        let is_end = |at: &usize| bytes[*at] == b'\n';
        let start = match bytes.len().saturating_sub(bytes_max) {
            0 => 0,
            excess => (excess - 1..bytes.len()).find(is_end).map_or(bytes.len(), |end| end + 1),
        };
        &bytes[start..]
    }
}
