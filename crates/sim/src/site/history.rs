//! What clients were told, and whether one order of events explains it all.
//!
//! A history is linearizable if every operation took effect at one moment between its call and its
//! return. Writing a file has two moments: when its path was looked up, and when its content became
//! the file's. What nobody heard the outcome of may have happened at any time since, or never.
//! The search goes through orders depth first and remembers where it has been; histories are short.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Events of one history, at most.
pub const EVENTS_MAX: usize = 128;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Writes content, told by its number, to a path.
    Put {
        /// The path.
        path: u8,
        /// The content's number.
        content: u64,
    },
    /// Moves a path over another.
    Rename {
        /// What is moved.
        from: u8,
        /// Where to.
        to: u8,
    },
    /// Removes a path.
    Unlink {
        /// The path.
        path: u8,
    },
    /// Removes the directory with all paths in it.
    RemoveTree,
    /// Makes that directory again.
    MakeTree,
    /// Reads a path.
    Read {
        /// The path.
        path: u8,
        /// The content that was found, if there was a file.
        content: Option<u64>,
    },
}

/// Its outcome, as the client was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// There was nothing at the path.
    Absent,
    /// Nobody knows.
    Unknown,
}

/// A call and its return.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The operation.
    pub kind: Kind,
    /// The outcome.
    pub outcome: Outcome,
    /// When it was called.
    pub from_ns: u64,
    /// When it returned.
    pub until_ns: u64,
}

/// A moment at which something takes effect.
#[derive(Clone, Copy, Debug)]
struct Event {
    kind: Kind,
    outcome: Outcome,
    from_ns: u64,
    until_ns: u64,
    /// The look-up that has to come before, of a commit.
    after: Option<usize>,
}

/// Paths from this one on are in the directory.
pub const TREE_PATHS: u8 = 4;

/// A file and its version.
type FileState = (u16, u16, u64);

/// A look-up's findings: file and version, if there was one, and the directory.
type Base = (Option<(u16, u16)>, Option<u16>);

#[derive(Clone, PartialEq, Eq, Hash)]
struct Site {
    /// Number of the directory, if there is one.
    tree: Option<u16>,

    /// File by path.
    names: BTreeMap<u8, u16>,
    /// Version and content by file.
    files: BTreeMap<u16, (u16, u64)>,
    bases: BTreeMap<usize, Base>,
    next: u16,
}

impl Default for Site {
    fn default() -> Self {
        let (names, files, bases) = Default::default();
        Self { tree: Some(0), names, files, bases, next: 1 }
    }
}

impl Site {
    fn file(&self, path: u8) -> Option<FileState> {
        let file = self.names.get(&path).copied()?;
        self.files.get(&file).map(|(version, content)| (file, *version, *content))
    }

    /// The state after an event; `None` if it cannot have happened now.
    fn after(&self, number: usize, event: &Event) -> Option<Self> {
        let mut next = self.clone();
        match (event.kind, event.after) {
            (Kind::Put { path, .. }, None) => {
                let base = self.file(path).map(|(file, version, _)| (file, version));
                (path < TREE_PATHS || self.tree.is_some()).then_some(())?;
                next.bases.insert(number, (base, self.tree));
            }
            (Kind::Put { path, content }, Some(looked)) => match next.bases.remove(&looked)? {
                (Some((file, version)), _) => {
                    let is_base = self.files.get(&file).is_some_and(|has| has.0 == version);
                    is_base.then(|| next.files.insert(file, (version + 1, content)))?;
                }
                (None, tree) => {
                    (!self.names.contains_key(&path)).then_some(())?;
                    (path < TREE_PATHS || self.tree == tree).then_some(())?;
                    next.names.insert(path, next.next);
                    next.files.insert(next.next, (0, content));
                    next.next += 1;
                }
            },
            (Kind::Rename { from, to }, _) => match (self.names.get(&from), event.outcome) {
                (None, Outcome::Absent) => {}
                (Some(file), Outcome::Done | Outcome::Unknown) => {
                    next.names.remove(&from);
                    next.names.insert(to, *file);
                }
                _ => return None,
            },
            (Kind::Unlink { path }, _) => match (self.names.get(&path), event.outcome) {
                (None, Outcome::Absent) => {}
                (Some(_), Outcome::Done | Outcome::Unknown) => {
                    next.names.remove(&path);
                }
                _ => return None,
            },
            (Kind::RemoveTree, _) => match (self.tree, event.outcome) {
                (None, Outcome::Absent) => {}
                (Some(_), Outcome::Done | Outcome::Unknown) => {
                    next.tree = None;
                    next.names.retain(|path, _| *path < TREE_PATHS);
                }
                _ => return None,
            },
            (Kind::MakeTree, _) => {
                (self.tree.is_none() && event.outcome != Outcome::Absent).then_some(())?;
                next.tree = Some(self.next);
                next.next += 1;
            }
            (Kind::Read { path, content }, _) => {
                let found = self.file(path).map(|(_, _, content)| content);
                (found == content).then_some(())?;
            }
        }
        Some(next)
    }
}

/// A history that is not linearizable, or cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum Unexplained {
    /// It is not linearizable.
    #[error("no order of events explains what clients were told:{}", lines(operations))]
    NoOrder {
        /// The history, in the order of calls.
        operations: Vec<Operation>,
    },
    /// It has too many events.
    #[error("{count} events are too many to be checked")]
    TooLong {
        /// Their count.
        count: usize,
    },
}

fn lines(operations: &[Operation]) -> String {
    let line = |operation: &Operation| {
        let Operation { kind, outcome, from_ns, until_ns } = operation;
        let ms = |ns: &u64| ns / 1_000_000;
        format!("\n  {}..{} ms {kind:?} {outcome:?}", ms(from_ns), ms(until_ns))
    };
    operations.iter().map(line).collect()
}

/// Looks for an order of events that explains a history.
///
/// # Errors
/// [`Unexplained`].
pub fn check(operations: &[Operation]) -> Result<(), Unexplained> {
    let mut events = Vec::new();
    for operation in operations {
        let Operation { kind, outcome, from_ns, until_ns } = *operation;
        let until_ns = if outcome == Outcome::Unknown { u64::MAX } else { until_ns };
        let event = Event { kind, outcome, from_ns, until_ns, after: None };
        events.push(event);
        if matches!(kind, Kind::Put { .. }) {
            events.push(Event { after: Some(events.len() - 1), ..event });
        }
    }
    if events.len() > EVENTS_MAX {
        return Err(Unexplained::TooLong { count: events.len() });
    }
    let mut search = Search { events, seen: HashSet::new() };
    if search.explains(0, &Site::default()) {
        return Ok(());
    }
    let mut operations = operations.to_vec();
    operations.sort_by_key(|operation| operation.from_ns);
    Err(Unexplained::NoOrder { operations })
}

struct Search {
    events: Vec<Event>,
    seen: HashSet<(u128, u64)>,
}

impl Search {
    fn explains(&mut self, done: u128, site: &Site) -> bool {
        let is_done = |number: usize| done & (1 << number) != 0;
        let open = |number: &usize| !is_done(*number);
        let known = |event: &Event| event.outcome != Outcome::Unknown;
        let rest = (0..self.events.len()).filter(open);
        let bound_ns = rest.map(|number| self.events[number].until_ns).min().unwrap_or(u64::MAX);
        let numbers = 0..self.events.len();
        if numbers.clone().filter(open).all(|number| !known(&self.events[number])) {
            return true;
        }
        let mut hasher = DefaultHasher::new();
        site.hash(&mut hasher);
        if !self.seen.insert((done, hasher.finish())) {
            return false;
        }
        for number in numbers.filter(open) {
            let event = self.events[number];
            let is_next = event.from_ns <= bound_ns && event.after.is_none_or(is_done);
            if is_next
                && let Some(next) = site.after(number, &event)
                && self.explains(done | (1 << number), &next)
            {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(kind: Kind, from_ns: u64, until_ns: u64) -> Operation {
        Operation { kind, outcome: Outcome::Done, from_ns, until_ns }
    }

    const PUT: Kind = Kind::Put { path: 1, content: 7 };
    const MOVE: Kind = Kind::Rename { from: 1, to: 2 };

    #[test]
    fn an_acknowledged_write_is_read_by_whoever_asks_later() {
        let read = |content, from_ns| operation(Kind::Read { path: 1, content }, from_ns, 90);
        check(&[operation(PUT, 0, 10), read(Some(7), 20)]).unwrap();
        check(&[operation(PUT, 0, 10), read(None, 5)]).unwrap();
        let lost = check(&[operation(PUT, 0, 10), read(None, 20)]);
        assert!(matches!(lost, Err(Unexplained::NoOrder { .. })));
        check(&[operation(PUT, 0, 10), read(Some(8), 20)]).unwrap_err();
    }

    #[test]
    fn a_rename_is_never_seen_half() {
        let read = |path, content, at| operation(Kind::Read { path, content }, at, at + 1);
        let moved = [operation(PUT, 0, 10), operation(MOVE, 20, 90)];
        let and = |more: &[Operation]| check(&[&moved, more].concat());
        and(&[read(1, Some(7), 30), read(2, Some(7), 40)]).unwrap();
        and(&[read(2, Some(7), 30), read(1, Some(7), 40)]).unwrap_err();
        and(&[read(1, None, 30), read(2, None, 40)]).unwrap_err();
    }

    #[test]
    fn a_commit_goes_to_the_file_wherever_it_was_moved() {
        let first = operation(PUT, 0, 10);
        let second = operation(Kind::Put { path: 1, content: 8 }, 20, 60);
        let moved = operation(MOVE, 30, 40);
        let read = |path, content| operation(Kind::Read { path, content }, 70, 80);
        check(&[first, second, moved, read(2, Some(8))]).unwrap();
        check(&[first, second, moved, read(1, Some(8)), read(2, None)]).unwrap_err();
        check(&[first, second, moved, read(1, Some(8)), read(2, Some(7))]).unwrap();
    }

    #[test]
    fn a_removed_tree_is_never_seen_half_and_takes_no_file() {
        let put = |path, from_ns, until_ns| {
            operation(Kind::Put { path, content: path.into() }, from_ns, until_ns)
        };
        let read = |path: u8, is_there: bool, at| {
            let content = is_there.then_some(path.into());
            operation(Kind::Read { path, content }, at, at + 1)
        };
        let removed = [put(4, 0, 5), put(5, 0, 5), operation(Kind::RemoveTree, 20, 90)];
        let and = |more: &[Operation]| check(&[&removed, more].concat());
        and(&[read(4, true, 30), read(5, false, 40), read(4, false, 50)]).unwrap();
        and(&[read(4, false, 30), read(5, true, 40)]).unwrap_err();
        and(&[put(5, 95, 99)]).unwrap_err();
        let made = operation(Kind::MakeTree, 95, 99);
        and(&[made, put(5, 100, 110), read(5, true, 120)]).unwrap();
        and(&[made, put(5, 92, 110)]).unwrap();
        and(&[operation(Kind::MakeTree, 95, 99), put(5, 15, 110)]).unwrap();
        check(&[made]).unwrap_err();
    }

    #[test]
    fn what_nobody_heard_of_may_have_happened_or_not_but_once() {
        let lost = Operation { outcome: Outcome::Unknown, ..operation(PUT, 0, 10) };
        let read = |content, at| operation(Kind::Read { path: 1, content }, at, at + 1);
        check(&[lost, read(None, 500), read(Some(7), 600)]).unwrap();
        check(&[lost, read(Some(7), 500), read(None, 600)]).unwrap_err();
    }
}
