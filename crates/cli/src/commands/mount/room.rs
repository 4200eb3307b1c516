//! The room in a mounted tree of a site, as `byname df` shows it to the user who mounts it.

use crate::commands::site::defaults;
use byname_access::{AccountOptions, Tree};
use byname_mount::{AskRoom, Room};
use byname_packet::Name;
use byname_profile::{Link, OpenOptions, Profile};
use std::time::Duration;

/// Time in which a head answers.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks for the room at a name, if there is a key here for a site above it: of `BYNAME_USER`, or of
/// the one whose key it is.
pub(super) fn asker(link: &Link, open: &OpenOptions, profile: &Profile) -> Option<AskRoom> {
    let options = AccountOptions {
        user: std::env::var("BYNAME_USER").ok().filter(|user| !user.is_empty()),
        usual_user: Some(defaults::own_user()),
        connect: open.connect.clone(),
        patience: PATIENCE,
        ..AccountOptions::default()
    };
    let account = options.account_of(&link.name, link, profile);
    let account =
        account.inspect_err(|error| tracing::debug!(%error, "nobody is asked for room")).ok()?;
    let (name, stop) = (link.name.clone(), open.stop.clone());
    let mut connected = None;
    Some(AskRoom::new(move || {
        let tree = connected.take().or_else(|| {
            let tree = Tree::open(account.clone()).ok()?;
            Some(tree.stopped_by(&stop))
        });
        let (room, tree) = ask(tree?, &name)?;
        connected = Some(tree);
        Some(room)
    }))
}

/// The room, and the connection, if it goes on.
fn ask(mut tree: Tree, name: &Name) -> Option<(Room, Tree)> {
    match tree.room(name) {
        Ok(room) => {
            let room = Room {
                size_bytes: room.size_bytes,
                used_bytes: room.used_bytes,
                free_bytes: room.free_bytes,
                entries: room.inodes,
                entries_max: room.inodes_max,
            };
            Some((room, tree))
        }
        Err(error) => {
            tracing::info!(%error, "the room is not known");
            None
        }
    }
}
