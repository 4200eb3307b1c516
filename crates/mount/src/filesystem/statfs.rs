//! How much there is room for, as `df` shows it.

use fuser::ReplyStatfs;

use super::Mounted;
use crate::rooms::Room;

/// What sizes are given in.
const BLOCK_BYTES: u32 = 4096;
/// Longest name of an entry.
const NAME_BYTES_MAX: u32 = 255;
/// Entries that are said to be free where nothing bounds them.
const ENTRIES_FREE: u64 = 1 << 32;

/// Answers for the tree that an inode is of: at once, unless it is a site's.
pub(super) fn answer(mounted: &Mounted, inode: u64, reply: ReplyStatfs) {
    let Some(rooms) = mounted.tree.rooms(inode) else {
        return unknown(mounted.tree.inodes().count(), reply);
    };
    let timers = mounted.tasks.timers();
    mounted.run(|tree| async move {
        match rooms.room(&timers).await {
            Some(room) => known(&room, reply),
            None => unknown(tree.inodes().count(), reply),
        }
    });
}

/// Nobody knows how much the publisher has room for; `df` leaves out what has no blocks.
fn unknown(inodes: usize, reply: ReplyStatfs) {
    reply.statfs(0, 0, 0, inodes as u64, 0, BLOCK_BYTES, NAME_BYTES_MAX, BLOCK_BYTES);
}

fn known(room: &Room, reply: ReplyStatfs) {
    let [blocks, free, available] = blocks(room);
    let (entries, entries_free) = entries(room);
    let size = BLOCK_BYTES;
    reply.statfs(blocks, free, available, entries, entries_free, size, NAME_BYTES_MAX, size);
}

/// All blocks, those that are not used, and those that may be: what the quota leaves may be more
/// than the disks have.
fn blocks(room: &Room) -> [u64; 3] {
    let free_bytes = room.free_bytes.min(room.size_bytes);
    let unused_bytes = room.size_bytes.saturating_sub(room.used_bytes).max(free_bytes);
    [room.size_bytes, unused_bytes, free_bytes].map(|bytes| bytes / u64::from(BLOCK_BYTES))
}

fn entries(room: &Room) -> (u64, u64) {
    match room.entries_max {
        u64::MAX => (room.entries.saturating_add(ENTRIES_FREE), ENTRIES_FREE),
        max => (max, max.saturating_sub(room.entries)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_df_shows_is_what_is_used_and_what_may_be() {
        let room = |size, used, free| {
            let of = |blocks: u64| blocks * u64::from(BLOCK_BYTES);
            let (size_bytes, used_bytes, free_bytes) = (of(size), of(used), of(free));
            Room { size_bytes, used_bytes, free_bytes, entries: 3, entries_max: u64::MAX }
        };
        assert_eq!(blocks(&room(100, 30, 70)), [100, 70, 70]);
        assert_eq!(blocks(&room(100, 30, 5)), [100, 70, 5], "the disks are full");
        assert_eq!(blocks(&room(100, 130, 0)), [100, 0, 0], "more is used than may be");
        assert_eq!(blocks(&room(100, 99, 200)), [100, 100, 100], "no more than there is");
        assert_eq!(entries(&room(1, 0, 1)), (3 + ENTRIES_FREE, ENTRIES_FREE));
        let full = Room { entries: 9, entries_max: 7, ..room(1, 0, 1) };
        assert_eq!(entries(&full), (7, 0));
    }
}
