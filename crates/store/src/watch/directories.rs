//! The watched directories: which watch belongs to which place in the tree.
//!
//! A directory knows its name and the directory that it lies in, so a rename changes one entry
//! however much lies below. One that was moved away stays as a stray until it turns up elsewhere in
//! the tree, or for [`STRAY_MAX`] at most: then it has left.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::kernel::WatchId;

/// Device and inode of a directory.
pub(crate) type DirectoryKey = [u8; 16];

/// Time that a directory may take from one place in the tree to another.
const STRAY_MAX: Duration = Duration::from_secs(1);
/// Names in a path; longer ones cannot be published.
const DEPTH_MAX: usize = 4096;

/// A place in the tree: an entry of a watched directory, or the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Position {
    /// `None` for the root.
    pub(super) parent: Option<WatchId>,
    pub(super) name: Box<[u8]>,
}

/// What became of a directory that was found somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    /// It was not watched before.
    New,
    /// It is watched and was known to be here, or has moved here.
    Known,
    /// It is known to be elsewhere, and still there: a mount of it.
    Elsewhere,
}

#[derive(Debug)]
struct Node {
    key: DirectoryKey,
    position: Position,
    children: HashMap<Box<[u8]>, WatchId>,
    /// Since when it is a stray.
    stray_since: Option<Instant>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Directories {
    nodes: HashMap<WatchId, Node>,
    root: Option<WatchId>,
    /// Moved away, and when it was. Those that have turned up or are gone by now stay in here for
    /// as long: whoever moves very many pays for each of them once.
    strays: VecDeque<(WatchId, Instant)>,
}

impl Directories {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn watches(&self) -> impl Iterator<Item = WatchId> {
        self.nodes.keys().copied()
    }

    pub(super) fn key(&self, watch: WatchId) -> Option<DirectoryKey> {
        self.nodes.get(&watch).map(|node| node.key)
    }

    /// The directory at the top.
    pub(super) fn root_key(&self) -> Option<DirectoryKey> {
        self.root.and_then(|root| self.key(root))
    }

    pub(super) fn parent(&self, watch: WatchId) -> Option<WatchId> {
        self.nodes.get(&watch)?.position.parent
    }

    pub(super) fn has_child(&self, watch: WatchId, name: &[u8]) -> bool {
        self.nodes.get(&watch).is_some_and(|node| node.children.contains_key(name))
    }

    /// A directory was found at a position, with this watch.
    pub(super) fn place(
        &mut self,
        watch: WatchId,
        key: DirectoryKey,
        position: Position,
    ) -> Placed {
        let placed = match self.nodes.get(&watch) {
            None => Placed::New,
            Some(node) if node.position == position => return Placed::Known,
            Some(node) if node.stray_since.is_none() || self.is_above(watch, position.parent) => {
                return Placed::Elsewhere;
            }
            Some(_) => Placed::Known,
        };
        if let Some(parent) = position.parent.and_then(|parent| self.nodes.get_mut(&parent)) {
            parent.children.insert(position.name.clone(), watch);
        }
        if position.parent.is_none() {
            self.root = Some(watch);
        }
        match self.nodes.get_mut(&watch) {
            Some(node) => (node.position, node.stray_since) = (position, None),
            None => {
                let children = HashMap::new();
                self.nodes.insert(watch, Node { key, position, children, stray_since: None });
            }
        }
        placed
    }

    fn is_stray_since(&self, watch: WatchId, since: Instant) -> bool {
        self.nodes.get(&watch).is_some_and(|node| node.stray_since == Some(since))
    }

    fn is_above(&self, watch: WatchId, mut below: Option<WatchId>) -> bool {
        for _ in 0..DEPTH_MAX {
            match below {
                Some(at) if at == watch => return true,
                Some(at) => below = self.parent(at),
                None => return false,
            }
        }
        true
    }

    /// The path of a directory, relative to the root; `None` if it is a stray, or below one.
    pub(super) fn path(&self, watch: WatchId) -> Option<Vec<u8>> {
        let mut names = Vec::new();
        let mut at = watch;
        for _ in 0..DEPTH_MAX {
            let position = &self.nodes.get(&at)?.position;
            let Some(parent) = position.parent else {
                names.reverse();
                return Some(names.join(&b'/'));
            };
            if self.nodes.get(&parent)?.children.get(&position.name) != Some(&at) {
                return None;
            }
            names.push(&position.name[..]);
            at = parent;
        }
        None
    }

    /// The path of an entry.
    pub(super) fn path_of(&self, watch: WatchId, name: &[u8]) -> Option<Vec<u8>> {
        let mut path = self.path(watch)?;
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        Some(path)
    }

    /// An entry was moved away.
    pub(super) fn take_away(&mut self, watch: WatchId, name: &[u8], now: Instant) {
        let child = self.nodes.get_mut(&watch).and_then(|node| node.children.remove(name));
        let Some(child) = child else { return };
        self.drop_found();
        if let Some(node) = self.nodes.get_mut(&child) {
            node.stray_since = Some(now);
            self.strays.push_back((child, now));
        }
    }

    /// Drops the eldest strays that are none any more.
    fn drop_found(&mut self) {
        while let Some((stray, since)) = self.strays.front().copied() {
            if self.is_stray_since(stray, since) {
                break;
            }
            self.strays.pop_front();
        }
    }

    /// When [`Directories::remove_strays`] has something to do.
    pub(super) fn strays_due(&self) -> Option<Instant> {
        self.strays.front().map(|(_, since)| *since + STRAY_MAX)
    }

    /// Forgets directories that have left the tree; gives their watches and keys.
    pub(super) fn remove_strays(&mut self, now: Instant) -> Vec<(WatchId, DirectoryKey)> {
        let mut removed = Vec::new();
        while let Some((stray, since)) = self.strays.front().copied() {
            if since + STRAY_MAX > now {
                break;
            }
            self.strays.pop_front();
            if self.is_stray_since(stray, since) {
                self.remove(stray, &mut removed);
            }
        }
        removed
    }

    /// Forgets a directory and all below it.
    pub(super) fn remove(&mut self, watch: WatchId, removed: &mut Vec<(WatchId, DirectoryKey)>) {
        if let Some(Position { parent: Some(parent), name }) =
            self.nodes.get(&watch).map(|node| node.position.clone())
            && let Some(parent) = self.nodes.get_mut(&parent)
            && parent.children.get(&name) == Some(&watch)
        {
            parent.children.remove(&name);
        }
        let mut waiting = vec![watch];
        while let Some(watch) = waiting.pop() {
            if let Some(node) = self.nodes.remove(&watch) {
                waiting.extend(node.children.into_values());
                removed.push((watch, node.key));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(parent: WatchId, name: &str) -> Position {
        Position { parent: Some(parent), name: name.as_bytes().into() }
    }

    fn key(n: u8) -> DirectoryKey {
        [n; 16]
    }

    /// A root (1) with a/b (2, 3) and c (4).
    fn tree() -> Directories {
        let mut tree = Directories::default();
        let root = Position { parent: None, name: Box::default() };
        assert_eq!(tree.place(1, key(1), root), Placed::New);
        assert_eq!(tree.place(2, key(2), position(1, "a")), Placed::New);
        assert_eq!(tree.place(3, key(3), position(2, "b")), Placed::New);
        assert_eq!(tree.place(4, key(4), position(1, "c")), Placed::New);
        tree
    }

    #[test]
    fn a_rename_moves_all_that_lies_below() {
        let mut tree = tree();
        let now = Instant::now();
        assert_eq!(tree.path_of(3, b"f").unwrap(), b"a/b/f");
        tree.take_away(1, b"a", now);
        assert_eq!(tree.path(3), None, "nobody knows where it is");
        assert_eq!(tree.place(2, key(2), position(4, "x")), Placed::Known);
        assert_eq!(tree.path(3).unwrap(), b"c/x/b");
        assert!(tree.remove_strays(now + STRAY_MAX).is_empty());
    }

    /// As when somebody renames one directory to and fro for as long as he likes.
    #[test]
    fn what_was_moved_away_often_is_kept_in_mind_once() {
        let mut tree = tree();
        let now = Instant::now();
        for (from, to) in [("a", "x"), ("x", "a")].into_iter().cycle().take(1000) {
            tree.take_away(1, from.as_bytes(), now);
            assert_eq!(tree.place(2, key(2), position(1, to)), Placed::Known);
            assert!(tree.strays.len() <= 1);
        }
        assert!(tree.remove_strays(now + STRAY_MAX).is_empty());
        assert_eq!((tree.len(), tree.strays_due()), (4, None));
        assert_eq!(tree.path(3).unwrap(), b"a/b");
    }

    /// A stray that has turned up and left again has a second of its own.
    #[test]
    fn who_was_a_stray_before_is_waited_for_as_long_as_others() {
        let mut tree = tree();
        let (first, then) = (Instant::now(), Instant::now() + STRAY_MAX / 2);
        tree.take_away(1, b"c", first);
        tree.take_away(1, b"a", first);
        assert_eq!(tree.place(2, key(2), position(1, "x")), Placed::Known);
        tree.take_away(1, b"x", then);
        assert_eq!(tree.remove_strays(first + STRAY_MAX), [(4, key(4))]);
        assert_eq!(tree.strays_due(), Some(then + STRAY_MAX));
        assert_eq!(tree.remove_strays(then + STRAY_MAX).len(), 2);
    }

    #[test]
    fn what_leaves_the_tree_is_forgotten_with_all_below() {
        let mut tree = tree();
        let now = Instant::now();
        tree.take_away(1, b"a", now);
        assert_eq!(tree.strays_due(), Some(now + STRAY_MAX));
        assert!(tree.remove_strays(now).is_empty(), "it may still turn up");
        let mut removed = tree.remove_strays(now + STRAY_MAX);
        removed.sort_unstable();
        assert_eq!(removed, [(2, key(2)), (3, key(3))]);
        assert_eq!((tree.len(), tree.strays_due()), (2, None));
    }

    #[test]
    fn a_second_way_to_a_directory_does_not_move_it() {
        let mut tree = tree();
        assert_eq!(tree.place(2, key(2), position(4, "again")), Placed::Elsewhere);
        assert_eq!(tree.place(1, key(1), position(3, "circle")), Placed::Elsewhere);
        assert_eq!(tree.path(3).unwrap(), b"a/b");
        // One that is known to have moved cannot have moved below itself.
        tree.take_away(1, b"a", Instant::now());
        assert_eq!(tree.place(2, key(2), position(3, "circle")), Placed::Elsewhere);
    }

    #[test]
    fn a_name_that_was_taken_over_is_not_given_up_with_its_former_owner() {
        let mut tree = tree();
        let mut removed = Vec::new();
        tree.take_away(1, b"a", Instant::now());
        assert_eq!(tree.place(5, key(5), position(1, "a")), Placed::New);
        tree.remove(2, &mut removed);
        assert!(tree.has_child(1, b"a"));
        assert_eq!(tree.path(5).unwrap(), b"a");
    }
}
