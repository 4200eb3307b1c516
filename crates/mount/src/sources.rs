//! The published trees behind a mount: one, which is the mount, or several, each a directory at
//! its top.
//!
//! The top of several is of nobody: it is there without asking, and never changes. Which session a
//! name is asked of follows from the name alone, so no tree may lie in another.

use std::sync::Arc;

use byname_packet::Name;
use byname_profile::Session;
use byname_transfer::naming::is_safe_entry;

use crate::error::MountError;
use crate::rooms::{AskRoom, Rooms};
use crate::snapshot::Snapshot;

/// Most trees of one mount; each has a connection of its own.
pub const TREES_MAX: usize = 64;

/// A tree to be mounted.
pub struct PublishedTree {
    /// Whom to ask.
    pub session: Session,
    /// Name of its root.
    pub name: Name,
    /// Asks for the room there, if that can be told.
    pub ask_room: Option<AskRoom>,
}

/// What is mounted.
pub enum Trees {
    /// The root of one tree is the mount point.
    One(PublishedTree),
    /// Each is a directory of this name in the mount point.
    Several(Vec<(String, PublishedTree)>),
}

/// The trees, and the directory at the top if there are several.
pub(crate) struct Sources {
    trees: Vec<PublishedTree>,
    /// Room of each tree.
    rooms: Vec<Option<Arc<Rooms>>>,
    top: Option<Arc<Snapshot>>,
    /// Where each tree is, if there are several.
    places: Vec<String>,
}

impl Sources {
    pub(crate) fn new(trees: Trees) -> Result<Self, MountError> {
        let named = match trees {
            Trees::One(tree) => return Self::of(vec![tree], None, Vec::new()),
            Trees::Several(named) => named,
        };
        if named.is_empty() || named.len() > TREES_MAX {
            return Err(MountError::Count { count: named.len() });
        }
        let (places, trees): (Vec<String>, Vec<PublishedTree>) = named.into_iter().unzip();
        for (at, place) in places.iter().enumerate() {
            if !is_safe_entry(place.as_bytes()) || places[..at].contains(place) {
                return Err(MountError::Place { place: place.clone() });
            }
        }
        for (at, tree) in trees.iter().enumerate() {
            let is_within = |other: &&PublishedTree| {
                let (one, other) = (tree.name.view(), other.name.view());
                one.is_prefix_of(other) || other.is_prefix_of(one)
            };
            if let Some(other) = trees[..at].iter().find(is_within) {
                let (one, other) = (other.name.view().to_user(), tree.name.view().to_user());
                return Err(MountError::Overlap { one, other });
            }
        }
        let top = Some(Arc::new(Snapshot::of_directories(&places)));
        Self::of(trees, top, places)
    }

    fn of(
        mut trees: Vec<PublishedTree>,
        top: Option<Arc<Snapshot>>,
        places: Vec<String>,
    ) -> Result<Self, MountError> {
        let start = |tree: &mut PublishedTree| {
            let rooms = tree.ask_room.take().map(Rooms::start).transpose();
            Ok(rooms.map_err(MountError::Thread)?.map(Arc::new))
        };
        let rooms = trees.iter_mut().map(start).collect::<Result<_, MountError>>()?;
        Ok(Self { trees, rooms, top, places })
    }

    /// The trees themselves.
    pub(crate) fn trees(&self) -> &[PublishedTree] {
        &self.trees
    }

    /// The directory at the top, if it is of nobody.
    pub(crate) fn top(&self) -> Option<&Arc<Snapshot>> {
        self.top.as_ref()
    }

    /// Name of the tree at a place of the top.
    pub(crate) fn at(&self, place: &[u8]) -> Option<&Name> {
        let index = self.places.iter().position(|it| it.as_bytes() == place)?;
        Some(&self.trees[index].name)
    }

    /// Whom to ask about a name.
    pub(crate) fn session(&self, name: &Name) -> &Session {
        let is_of = |tree: &&PublishedTree| tree.name.view().is_prefix_of(name.view());
        &self.trees.iter().find(is_of).unwrap_or(&self.trees[0]).session
    }

    /// Who knows of the room in the tree that a name is in, if anybody does.
    pub(crate) fn rooms(&self, name: &Name) -> Option<Arc<Rooms>> {
        let is_of = |tree: &PublishedTree| tree.name.view().is_prefix_of(name.view());
        self.rooms[self.trees.iter().position(is_of)?].clone()
    }

    /// The site cache, if there is one.
    pub(crate) fn cache(&self) -> Option<&byname_cache::Cache> {
        self.trees.iter().find_map(|tree| tree.session.cache())
    }
}
