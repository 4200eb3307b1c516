//! A plain model of a site: nodes that know each other, and nothing that is counted twice. Links,
//! usage and limits are looked up in the whole of it each time.

use std::collections::BTreeMap;

use byname_catalog::{Kind, Limits, OverSince, Refusal};

pub(crate) type NodeId = usize;
pub(crate) const TOP: NodeId = 0;
/// The space of all disks that `TestSite` begins with.
pub(crate) const MAIN: &str = "main";
/// The directory with a quota of its own.
pub(crate) const TREE: NodeId = 1;

/// Somebody who sends commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) user: &'static str,
    pub(crate) groups: &'static [&'static str],
    /// A door speaks for him, in a session of its own.
    pub(crate) by_door: bool,
}

impl Who {
    fn is_operator(&self) -> bool {
        self.user == "op"
    }

    fn session(&self) -> (&'static str, bool) {
        (self.user, self.by_door)
    }

    fn is_in(&self, group: &str) -> bool {
        self.groups.contains(&group)
    }

    fn owns(&self, node: &Node) -> bool {
        self.is_operator() || node.owner == self.user
    }

    fn may(&self, node: &Node, bits: u16) -> Result<(), Refusal> {
        let class = match () {
            () if node.owner == self.user => node.mode >> 6,
            () if self.is_in(node.group) => node.mode >> 3,
            () => node.mode,
        };
        let is_granted = self.is_operator() || class & bits == bits;
        if is_granted { Ok(()) } else { Err(Refusal::AccessDenied) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) mode: u16,
    pub(crate) owner: &'static str,
    pub(crate) group: &'static str,
    pub(crate) tree: NodeId,
    pub(crate) space: &'static str,
    pub(crate) size: u64,
    /// Versions that were replaced and stay: how many at most, and the sizes of those there are,
    /// the oldest first.
    wanted: u8,
    pub(crate) old: Vec<u64>,
    /// Counts the contents it had.
    content: u32,
    pub(crate) entries: BTreeMap<&'static str, NodeId>,
}

impl Node {
    /// Octets that count: its own, and those of versions that stay.
    fn charged(&self) -> u64 {
        self.size + self.old.iter().sum::<u64>()
    }

    /// A new content; the one of before stays if it shall, unless it had no octets.
    fn replace_content(&mut self, size: u64) {
        self.content += 1;
        let replaced = std::mem::replace(&mut self.size, size);
        if replaced > 0 && self.wanted > 0 {
            self.old.push(replaced);
            self.keep_last();
        }
    }

    fn keep_last(&mut self) {
        let too_many = self.old.len().saturating_sub(self.wanted.into());
        self.old.drain(..too_many);
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Goal {
    New { directory: NodeId, name: &'static str, mode: u16 },
    Next { node: NodeId, base: u32 },
}

#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    user: &'static str,
    goal: Goal,
    owner: &'static str,
    group: &'static str,
    tree: NodeId,
    space: &'static str,
    /// True if the space was asked for, so that it becomes the file's.
    moves: bool,
    size_max: u64,
    reserved: u64,
    pub(crate) is_open: bool,
    pub(crate) expires_ns: u64,
    /// Number of the lease it was opened under.
    lease: Option<u32>,
}

/// Something in the trash.
#[derive(Debug, Clone)]
pub(crate) struct Removed {
    pub(crate) node: NodeId,
    names: Vec<&'static str>,
    removed_by: &'static str,
    owner: &'static str,
    /// When it goes.
    until_ns: u64,
    bytes: u64,
}

/// Nanoseconds that things stay in the trash of the tree, and most octets of them.
pub(crate) const TRASH_KEEP_NS: u64 = 5_400_000_000_000;
pub(crate) const TRASH_BYTES_MAX: u64 = 500;

/// User, group, tree or space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    User(&'static str),
    Group(&'static str),
    Tree(NodeId),
    Space(&'static str),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) nodes: Vec<Node>,
    pub(crate) attempts: Vec<Attempt>,
    /// Directories that were removed with all that is in them, which counts until it is collected.
    detached: Vec<NodeId>,
    /// What was removed from the tree and can be brought back, the oldest first.
    pub(crate) trash: Vec<Removed>,
    /// In whose session alone a file may be written, with a number of its own.
    leases: BTreeMap<NodeId, ((&'static str, bool), u32)>,
    lease_count: u32,
    /// Each with since when it is above soft ones.
    pub(crate) limits: Vec<(Counted, Limits, OverSince)>,
}

pub(crate) type Names = [&'static str];
type Done = Result<(), Refusal>;

impl Model {
    /// What `TestSite` begins with, and a directory `t` with a quota of its own.
    pub(crate) fn new(limits: Vec<(Counted, Limits)>) -> Self {
        let directory = |owner, group, mode, tree| Node {
            kind: Kind::Directory,
            mode,
            owner,
            group,
            tree,
            space: MAIN,
            size: 0,
            wanted: 0,
            old: Vec::new(),
            content: 0,
            entries: BTreeMap::new(),
        };
        let limits = limits.into_iter().map(|(whose, it)| (whose, it, OverSince::default()));
        let limits = limits.collect();
        let top = directory("op", "ops", 0o777, TOP);
        let tree = directory("op", "ops", 0o777, TREE);
        let mut model = Self { nodes: vec![top, tree], limits, ..Self::default() };
        model.nodes[TOP].entries.insert("t", TREE);
        model
    }

    /// Does something whole or not at all, within the limits.
    pub(crate) fn try_do(&mut self, now_ns: u64, act: impl FnOnce(&mut Self) -> Done) -> Done {
        let before = self.clone();
        let done = act(self).and_then(|()| self.check_limits(&before, now_ns));
        if done.is_err() {
            *self = before;
        }
        self.look_at_soft_limits(now_ns);
        done
    }

    fn check_limits(&self, before: &Self, now_ns: u64) -> Done {
        for (counted, limits, over) in &self.limits {
            let (old, new) = (before.total(*counted), self.total(*counted));
            let passes = |of: fn(&(u64, u64)) -> u64, limit: u64| of(&new) > of(&old).max(limit);
            // Whoever passes it only now has his time before him.
            let is_over = |since: Option<u64>| now_ns >= since.unwrap_or(now_ns) + limits.grace_ns;
            if passes(|it| it.0, limits.inodes)
                || passes(|it| it.1, limits.bytes)
                || passes(|it| it.0, limits.soft_inodes) && is_over(over.inodes_ns)
                || passes(|it| it.1, limits.soft_bytes) && is_over(over.bytes_ns)
            {
                return Err(Refusal::UserQuota);
            }
        }
        Ok(())
    }

    /// Notes who is above a soft limit by now, and who is not any more.
    pub(crate) fn look_at_soft_limits(&mut self, now_ns: u64) {
        let totals: Vec<_> = self.limits.iter().map(|(counted, ..)| self.total(*counted)).collect();
        for ((_, limits, over), (inodes, bytes)) in self.limits.iter_mut().zip(totals) {
            for (since, is_above) in [
                (&mut over.inodes_ns, inodes > limits.soft_inodes),
                (&mut over.bytes_ns, bytes > limits.soft_bytes),
            ] {
                *since = if is_above { since.or(Some(now_ns)) } else { None };
            }
        }
    }

    pub(crate) fn over(&self, counted: Counted) -> OverSince {
        let found = self.limits.iter().find(|(other, ..)| *other == counted);
        found.map(|(.., over)| *over).unwrap_or_default()
    }

    /// Inodes and octets, with what open attempts may add.
    fn total(&self, counted: Counted) -> (u64, u64) {
        let (used, reserved) = (self.used(counted), self.reserved(counted));
        (used.0 + reserved.0, used.1 + reserved.1)
    }

    pub(crate) fn used(&self, counted: Counted) -> (u64, u64) {
        let mut total = (0, 0);
        for (id, node) in self.nodes.iter().enumerate() {
            let is_counted = match counted {
                Counted::User(user) => node.owner == user,
                Counted::Group(group) => node.group == group,
                Counted::Tree(tree) => node.tree == tree,
                Counted::Space(space) => node.space == space,
            };
            if is_counted && self.is_there(id) {
                total = (total.0 + 1, total.1 + node.charged());
            }
        }
        total
    }

    pub(crate) fn reserved(&self, counted: Counted) -> (u64, u64) {
        let mut total = (0, 0);
        for attempt in self.attempts.iter().filter(|attempt| attempt.is_open) {
            let is_counted = match counted {
                Counted::User(user) => attempt.owner == user,
                Counted::Group(group) => attempt.group == group,
                Counted::Tree(tree) => attempt.tree == tree,
                Counted::Space(space) => attempt.space == space,
            };
            if is_counted {
                let is_new = matches!(attempt.goal, Goal::New { .. });
                total = (total.0 + u64::from(is_new), total.1 + attempt.reserved);
            }
        }
        total
    }

    /// Entries that lead to a node.
    fn names_of(&self, id: NodeId) -> u32 {
        self.nodes
            .iter()
            .map(|node| node.entries.values().filter(|to| **to == id).count())
            .sum::<usize>() as u32
    }

    fn is_there(&self, id: NodeId) -> bool {
        let is_removed = self.detached.contains(&id) || self.is_in_trash(id);
        id == TOP || self.names_of(id) > 0 || is_removed
    }

    fn is_in_trash(&self, id: NodeId) -> bool {
        self.trash.iter().any(|removed| removed.node == id)
    }

    /// Puts what has lost its name into the trash, if its tree has one.
    fn put_in_trash(&mut self, who: Who, names: &Names, (id, now_ns): (NodeId, u64)) -> bool {
        let node = &self.nodes[id];
        let is_file = node.kind != Kind::Directory;
        // The size of a symbolic link counts for nothing.
        let is_refused = is_file && (self.names_of(id) > 0 || node.charged() > TRASH_BYTES_MAX);
        if node.tree != TREE || is_refused {
            return false;
        }
        self.trash.push(Removed {
            node: id,
            names: names.to_vec(),
            removed_by: who.user,
            owner: node.owner,
            until_ns: now_ns + TRASH_KEEP_NS,
            bytes: if is_file { node.charged() } else { self.bytes_in(id) },
        });
        true
    }

    fn bytes_in(&self, id: NodeId) -> u64 {
        let node = &self.nodes[id];
        node.charged() + node.entries.values().map(|below| self.bytes_in(*below)).sum::<u64>()
    }

    fn check_no_trash(&self, id: NodeId) -> Done {
        let has_trash = self.trash.iter().any(|removed| self.nodes[removed.node].tree == TREE);
        if id == TREE && has_trash { Err(Refusal::TrashInUse) } else { Ok(()) }
    }

    fn own_removed(&self, who: Who, node: NodeId) -> Result<usize, Refusal> {
        let is_own = |removed: &Removed| {
            who.is_operator() || removed.removed_by == who.user || removed.owner == who.user
        };
        let found = self.trash.iter().position(|removed| removed.node == node && is_own(removed));
        found.ok_or(Refusal::NotInTrash)
    }

    pub(crate) fn restore(&mut self, who: Who, node: NodeId, to: Option<&Names>) -> Done {
        let index = self.own_removed(who, node)?;
        let names = self.trash[index].names.clone();
        let (parent, name) = self.free(who, to.unwrap_or(&names))?;
        let tree = if node == TREE { TREE } else { self.nodes[parent].tree };
        if self.nodes[node].kind == Kind::Directory && self.nodes[node].tree != tree {
            return Err(Refusal::OtherTree);
        }
        self.nodes[node].tree = tree;
        self.nodes[parent].entries.insert(name, node);
        self.trash.remove(index);
        Ok(())
    }

    pub(crate) fn purge(&mut self, who: Who, node: NodeId) -> Done {
        let index = self.own_removed(who, node)?;
        self.end_removed(index);
        Ok(())
    }

    fn end_removed(&mut self, index: usize) {
        let node = self.trash.remove(index).node;
        if self.nodes[node].kind == Kind::Directory {
            self.detached.push(node);
        }
    }

    /// What is in the trash for too long, or too much, goes, and all if the tree is gone.
    pub(crate) fn expire_trash(&mut self, now_ns: u64) {
        let is_alone_too_much = |removed: &Removed| removed.bytes > TRASH_BYTES_MAX;
        while let Some(index) = self.trash.iter().position(is_alone_too_much) {
            self.end_removed(index);
        }
        while let Some(oldest) = self.trash.first() {
            let bytes: u64 = self.trash.iter().map(|removed| removed.bytes).sum();
            let stays = oldest.until_ns > now_ns && bytes <= TRASH_BYTES_MAX;
            if stays && self.is_there(TREE) {
                break;
            }
            self.end_removed(0);
        }
    }

    pub(crate) fn links(&self, id: NodeId) -> u32 {
        let node = &self.nodes[id];
        match node.kind {
            Kind::Directory => {
                let is_directory = |id: &&NodeId| self.nodes[**id].kind == Kind::Directory;
                2 + node.entries.values().filter(is_directory).count() as u32
            }
            _ => self.names_of(id),
        }
    }

    fn is_within(&self, id: NodeId, above: NodeId) -> bool {
        let holds = |node: &Node| node.entries.values().any(|to| *to == id);
        id == above
            || self.nodes.iter().position(holds).is_some_and(|parent| self.is_within(parent, above))
    }

    /// True if the top directory leads there.
    fn is_attached(&self, id: NodeId) -> bool {
        self.is_within(id, TOP)
    }

    pub(crate) fn walk(&self, who: Who, names: &Names) -> Result<NodeId, Refusal> {
        let mut at = TOP;
        for name in names {
            self.check_searchable(who, at)?;
            at = *self.nodes[at].entries.get(name).ok_or(Refusal::NotFound)?;
        }
        Ok(at)
    }

    fn check_searchable(&self, who: Who, id: NodeId) -> Done {
        let node = &self.nodes[id];
        match node.kind {
            Kind::Directory => who.may(node, 1),
            Kind::Symlink => Err(Refusal::SymbolicLink),
            Kind::File => Err(Refusal::NotDirectory),
        }
    }

    fn parent(&self, who: Who, names: &Names) -> Result<(NodeId, &'static str), Refusal> {
        let (name, way) = names.split_last().ok_or(Refusal::IsRoot)?;
        let parent = self.walk(who, way)?;
        self.check_searchable(who, parent)?;
        Ok((parent, name))
    }

    fn free(&self, who: Who, names: &Names) -> Result<(NodeId, &'static str), Refusal> {
        let (parent, name) = self.parent(who, names)?;
        if self.nodes[parent].entries.contains_key(name) {
            return Err(Refusal::Exists);
        }
        who.may(&self.nodes[parent], 3)?;
        Ok((parent, name))
    }

    fn check_removal(&self, who: Who, directory: NodeId, victim: NodeId) -> Done {
        let (directory, victim) = (&self.nodes[directory], &self.nodes[victim]);
        who.may(directory, 3)?;
        let is_sticky = directory.mode & 0o1000 != 0;
        if is_sticky && !who.owns(directory) && !who.owns(victim) {
            return Err(Refusal::NotOwner);
        }
        Ok(())
    }

    fn new_node(&self, who: Who, parent: NodeId, (kind, mode): (Kind, u16)) -> Node {
        let parent = &self.nodes[parent];
        let inherits = parent.mode & 0o2000 != 0;
        let group = if inherits { parent.group } else { who.groups[0] };
        let mode = match kind {
            Kind::Directory => mode & 0o1777 | parent.mode & 0o2000,
            Kind::Symlink => 0o777,
            Kind::File if !who.is_operator() && !who.is_in(group) && mode & 0o010 != 0 => {
                mode & !0o2000
            }
            Kind::File => mode,
        };
        let (owner, tree, space) = (who.user, parent.tree, parent.space);
        let (wanted, old, entries) = (parent.wanted, Vec::new(), BTreeMap::new());
        let (size, content) = (0, 0);
        Node { kind, mode, owner, group, tree, space, size, wanted, old, content, entries }
    }

    fn enter(&mut self, parent: NodeId, name: &'static str, node: Node) -> NodeId {
        self.nodes.push(node);
        let id = self.nodes.len() - 1;
        self.nodes[parent].entries.insert(name, id);
        id
    }

    pub(crate) fn mkdir(&mut self, who: Who, names: &Names, mode: u16) -> Done {
        let (parent, name) = self.free(who, names)?;
        let node = self.new_node(who, parent, (Kind::Directory, mode));
        self.enter(parent, name, node);
        Ok(())
    }

    pub(crate) fn symlink(&mut self, who: Who, names: &Names) -> Done {
        let (parent, name) = self.free(who, names)?;
        let mut node = self.new_node(who, parent, (Kind::Symlink, 0o777));
        // What a file's size is comes with its content; a target counts for no quota.
        node.content = 1;
        self.enter(parent, name, node);
        Ok(())
    }

    pub(crate) fn link(&mut self, who: Who, existing: &Names, names: &Names) -> Done {
        let id = self.walk(who, existing)?;
        let (parent, name) = self.free(who, names)?;
        if self.nodes[id].kind == Kind::Directory {
            return Err(Refusal::LinkToDirectory);
        }
        let node = &self.nodes[id];
        let is_plain = node.kind == Kind::File && node.mode & 0o6000 == 0;
        if !(who.owns(node) || is_plain && who.may(node, 6).is_ok()) {
            return Err(Refusal::NotOwner);
        }
        if self.nodes[id].tree != self.nodes[parent].tree {
            return Err(Refusal::OtherTree);
        }
        self.nodes[parent].entries.insert(name, id);
        Ok(())
    }

    pub(crate) fn remove(&mut self, who: Who, (names, now_ns): (&Names, u64), kind: Kind) -> Done {
        let (parent, name) = self.parent(who, names)?;
        let id = *self.nodes[parent].entries.get(name).ok_or(Refusal::NotFound)?;
        self.check_removal(who, parent, id)?;
        let node = &self.nodes[id];
        match (kind, node.kind) {
            (Kind::Directory, Kind::Directory) if !node.entries.is_empty() => {
                return Err(Refusal::NotEmpty);
            }
            (Kind::Directory, Kind::File | Kind::Symlink) => return Err(Refusal::NotDirectory),
            (Kind::File | Kind::Symlink, Kind::Directory) => return Err(Refusal::IsDirectory),
            (Kind::Directory, Kind::Directory) => self.check_no_trash(id)?,
            _ => {}
        }
        self.nodes[parent].entries.remove(name);
        if kind != Kind::Directory {
            self.put_in_trash(who, names, (id, now_ns));
        }
        Ok(())
    }

    /// Removes whatever is there, a directory with all that is in it.
    pub(crate) fn remove_all(&mut self, who: Who, names: &Names, now_ns: u64) -> Done {
        let (parent, name) = self.parent(who, names)?;
        let id = *self.nodes[parent].entries.get(name).ok_or(Refusal::NotFound)?;
        self.check_removal(who, parent, id)?;
        self.check_emptying(who, id)?;
        self.nodes[parent].entries.remove(name);
        let is_empty_directory =
            self.nodes[id].kind == Kind::Directory && self.nodes[id].entries.is_empty();
        if is_empty_directory || !self.put_in_trash(who, names, (id, now_ns)) {
            self.check_no_trash(id)?;
            if !self.nodes[id].entries.is_empty() {
                self.detached.push(id);
            }
        }
        Ok(())
    }

    /// Removes everything below a node on trial, one after the other.
    fn check_emptying(&self, who: Who, id: NodeId) -> Done {
        let node = &self.nodes[id];
        for below in node.entries.values() {
            // What is in a directory has to be listed first.
            who.may(node, 7)?;
            self.check_removal(who, id, *below).map_err(|_| Refusal::AccessDenied)?;
            self.check_emptying(who, *below)?;
        }
        Ok(())
    }

    /// What was removed with its directory is gone.
    pub(crate) fn collect(&mut self) {
        while let Some(id) = self.detached.pop() {
            let entries = std::mem::take(&mut self.nodes[id].entries);
            let is_directory = |id: &NodeId| self.nodes[*id].kind == Kind::Directory;
            self.detached.extend(entries.into_values().filter(is_directory));
        }
    }

    pub(crate) fn rename(
        &mut self,
        who: Who,
        (from, to): (&Names, &Names),
        (no_replace, now_ns): (bool, u64),
    ) -> Done {
        let to_names = to;
        let (from, to) = (self.parent(who, from)?, self.parent(who, to)?);
        let source = *self.nodes[from.0].entries.get(from.1).ok_or(Refusal::NotFound)?;
        let target = self.nodes[to.0].entries.get(to.1).copied();
        if no_replace && target.is_some() {
            return Err(Refusal::Exists);
        }
        if from.0 != to.0 && self.is_within(to.0, source) {
            return Err(Refusal::IntoItself);
        }
        if from.0 != to.0 && target.is_some_and(|target| self.is_within(from.0, target)) {
            return Err(Refusal::NotEmpty);
        }
        if target == Some(source) {
            return Ok(());
        }
        self.check_removal(who, from.0, source)?;
        let is_directory = |node: &Node| node.kind == Kind::Directory;
        match target {
            None => who.may(&self.nodes[to.0], 3)?,
            Some(target) => {
                self.check_removal(who, to.0, target)?;
                match (is_directory(&self.nodes[source]), is_directory(&self.nodes[target])) {
                    (true, false) => return Err(Refusal::NotDirectory),
                    (false, true) => return Err(Refusal::IsDirectory),
                    _ => {}
                }
            }
        }
        if is_directory(&self.nodes[source]) && from.0 != to.0 {
            who.may(&self.nodes[source], 2)?;
        }
        let tree = if source == TREE { TREE } else { self.nodes[to.0].tree };
        let is_bound = is_directory(&self.nodes[source]) || self.names_of(source) > 1;
        if is_bound && tree != self.nodes[source].tree {
            return Err(Refusal::OtherTree);
        }
        if target.is_some_and(|target| !self.nodes[target].entries.is_empty()) {
            return Err(Refusal::NotEmpty);
        }
        if let Some(target) = target {
            self.check_no_trash(target)?;
        }
        self.nodes[from.0].entries.remove(from.1);
        self.nodes[to.0].entries.insert(to.1, source);
        if let Some(target) = target.filter(|target| !is_directory(&self.nodes[*target])) {
            self.put_in_trash(who, to_names, (target, now_ns));
        }
        self.nodes[source].tree = tree;
        Ok(())
    }

    pub(crate) fn set_space(&mut self, who: Who, names: &Names, space: &'static str) -> Done {
        if !who.is_operator() {
            return Err(Refusal::NotOperator);
        }
        let id = self.walk(who, names)?;
        if self.nodes[id].kind == Kind::Symlink {
            return Err(Refusal::SymbolicLink);
        }
        self.nodes[id].space = space;
        Ok(())
    }

    pub(crate) fn set_versions(&mut self, who: Who, names: &Names, wanted: u8) -> Done {
        if !who.is_operator() {
            return Err(Refusal::NotOperator);
        }
        let id = self.walk(who, names)?;
        if self.nodes[id].kind == Kind::Symlink {
            return Err(Refusal::SymbolicLink);
        }
        self.nodes[id].wanted = wanted;
        self.nodes[id].keep_last();
        Ok(())
    }

    pub(crate) fn chmod(&mut self, who: Who, names: &Names, mode: u16) -> Done {
        let id = self.walk(who, names)?;
        let node = &mut self.nodes[id];
        if node.kind == Kind::Symlink {
            return Err(Refusal::ModeOfLink);
        }
        if !who.owns(node) {
            return Err(Refusal::NotOwner);
        }
        let keeps_group = who.is_operator() || who.is_in(node.group);
        node.mode = if keeps_group { mode } else { mode & !0o2000 };
        Ok(())
    }

    pub(crate) fn chown(&mut self, who: Who, names: &Names, owner: &'static str) -> Done {
        let id = self.walk(who, names)?;
        let node = &mut self.nodes[id];
        if !who.is_operator() && (node.owner != owner || node.owner != who.user) {
            return Err(Refusal::NotOperator);
        }
        node.owner = owner;
        clear_set_ids(node);
        Ok(())
    }

    pub(crate) fn chgrp(&mut self, who: Who, names: &Names, group: &'static str) -> Done {
        let id = self.walk(who, names)?;
        let node = &mut self.nodes[id];
        let may = who.is_in(group) || node.group == group || who.is_operator();
        if !who.owns(node) || !may {
            return Err(Refusal::NotOwner);
        }
        node.group = group;
        clear_set_ids(node);
        Ok(())
    }

    pub(crate) fn empty(&mut self, who: Who, names: &Names) -> Done {
        let id = self.walk(who, names)?;
        let node = &mut self.nodes[id];
        match node.kind {
            Kind::Directory => return Err(Refusal::IsDirectory),
            Kind::Symlink => return Err(Refusal::NotFile),
            Kind::File => who.may(node, 2)?,
        }
        if self.leases.get(&id).is_some_and(|(holder, _)| *holder != who.session()) {
            return Err(Refusal::Leased);
        }
        if node.size != 0 {
            node.replace_content(0);
        }
        if !who.is_operator() {
            clear_set_ids(node);
        }
        Ok(())
    }

    pub(crate) fn lease(&mut self, who: Who, names: &Names) -> Done {
        let id = self.walk(who, names)?;
        match self.nodes[id].kind {
            Kind::Directory => return Err(Refusal::IsDirectory),
            Kind::Symlink => return Err(Refusal::SymbolicLink),
            Kind::File => who.may(&self.nodes[id], 2)?,
        }
        match self.leases.get(&id) {
            Some((holder, _)) if *holder != who.session() => return Err(Refusal::Leased),
            Some(_) => {}
            None => {
                self.lease_count += 1;
                self.leases.insert(id, (who.session(), self.lease_count));
            }
        }
        Ok(())
    }

    pub(crate) fn end_lease(&mut self, who: Who, names: &Names) -> Done {
        let id = self.walk(who, names)?;
        if let Some(((user, _), _)) = self.leases.get(&id) {
            if *user != who.user && !who.owns(&self.nodes[id]) {
                return Err(Refusal::NotOwner);
            }
            self.leases.remove(&id);
        }
        Ok(())
    }

    /// The sessions of all have ended.
    pub(crate) fn end_leases(&mut self) {
        self.leases.clear();
    }

    pub(crate) fn create(&mut self, who: Who, names: &Names, ask: Ask) -> Done {
        let (parent, name) = self.parent(who, names)?;
        let mut lease = None;
        let (model, goal) = match self.nodes[parent].entries.get(name).copied() {
            Some(_) if ask.exclusive => return Err(Refusal::Exists),
            Some(node) => {
                match self.nodes[node].kind {
                    Kind::Directory => return Err(Refusal::IsDirectory),
                    Kind::Symlink => return Err(Refusal::SymbolicLink),
                    Kind::File => who.may(&self.nodes[node], 2)?,
                }
                match self.leases.get(&node) {
                    Some((holder, _)) if *holder != who.session() => return Err(Refusal::Leased),
                    own => lease = own.map(|(_, number)| *number),
                }
                let base = self.nodes[node].content;
                (self.nodes[node].clone(), Goal::Next { node, base })
            }
            None => {
                who.may(&self.nodes[parent], 3)?;
                let mut model = self.new_node(who, parent, (Kind::File, ask.mode));
                model.space = ask.space.unwrap_or(model.space);
                if ask.at_once {
                    let node = self.enter(parent, name, model.clone());
                    (model, Goal::Next { node, base: 0 })
                } else {
                    let mode = model.mode;
                    (model, Goal::New { directory: parent, name, mode })
                }
            }
        };
        self.attempts.push(Attempt {
            user: who.user,
            goal,
            owner: model.owner,
            group: model.group,
            tree: model.tree,
            space: ask.space.unwrap_or(model.space),
            moves: ask.space.is_some(),
            size_max: ask.size_max,
            // What is replaced gives its room back, unless it stays.
            reserved: match model.wanted {
                0 => ask.size_max.saturating_sub(model.size),
                _ => ask.size_max,
            },
            is_open: true,
            expires_ns: ask.expires_ns,
            lease,
        });
        Ok(())
    }

    /// A create that is a commit of nothing, too.
    pub(crate) fn make_empty(&mut self, who: Who, names: &Names, ask: Ask) -> Done {
        let nodes = self.nodes.len();
        self.create(who, names, ask)?;
        let is_new = self.nodes.len() > nodes;
        let made = if is_new { Ok(()) } else { self.commit(who, self.attempts.len() - 1, 0) };
        self.attempts.pop();
        made
    }

    pub(crate) fn own_attempt(&self, who: Who, index: usize) -> Result<&Attempt, Refusal> {
        let attempt = &self.attempts[index];
        if !attempt.is_open {
            return Err(Refusal::AttemptEnded);
        }
        if attempt.user != who.user && !who.is_operator() {
            return Err(Refusal::NotYourAttempt);
        }
        Ok(attempt)
    }

    pub(crate) fn abort(&mut self, who: Who, index: usize) -> Done {
        self.own_attempt(who, index)?;
        self.attempts[index].is_open = false;
        Ok(())
    }

    pub(crate) fn commit(&mut self, who: Who, index: usize, size: u64) -> Done {
        let attempt = self.own_attempt(who, index)?.clone();
        if size > attempt.size_max {
            return Err(Refusal::TooLarge);
        }
        self.attempts[index].is_open = false;
        match attempt.goal {
            Goal::New { directory, name, mode } => {
                if !self.is_attached(directory) {
                    return Err(Refusal::DirectoryGone);
                }
                if self.nodes[directory].entries.contains_key(name) {
                    return Err(Refusal::NameTaken);
                }
                let node = Node {
                    kind: Kind::File,
                    mode,
                    owner: attempt.owner,
                    group: attempt.group,
                    tree: self.nodes[directory].tree,
                    space: attempt.space,
                    size,
                    wanted: self.nodes[directory].wanted,
                    old: Vec::new(),
                    content: 1,
                    entries: BTreeMap::new(),
                };
                self.enter(directory, name, node);
            }
            Goal::Next { node, base } => {
                let is_unchanged = match (attempt.lease, self.leases.get(&node)) {
                    (None, None) => true,
                    (None, Some((holder, _))) => *holder == who.session(),
                    (Some(old), now) => now.is_some_and(|(_, now)| *now == old),
                };
                if !is_unchanged {
                    return Err(Refusal::LeaseLost);
                }
                let node = &mut self.nodes[node];
                if node.content != base {
                    return Err(Refusal::BaseChanged);
                }
                node.replace_content(size);
                if attempt.moves {
                    node.space = attempt.space;
                }
                if !who.is_operator() {
                    clear_set_ids(node);
                }
            }
        }
        Ok(())
    }
}

/// What a create asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) mode: u16,
    pub(crate) size_max: u64,
    pub(crate) at_once: bool,
    pub(crate) exclusive: bool,
    pub(crate) expires_ns: u64,
    pub(crate) space: Option<&'static str>,
}

fn clear_set_ids(node: &mut Node) {
    if node.kind == Kind::File {
        node.mode &= !0o4000;
        if node.mode & 0o010 != 0 {
            node.mode &= !0o2000;
        }
    }
}
