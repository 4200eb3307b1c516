//! Directories that the top one leads to, and those that it does not: those of a tree that was
//! removed and is being collected, or is in the trash. And the way up, for who names a directory by
//! its number.

use crate::engine::{Rows, Span, Table};
use crate::id::InodeId;
use crate::record::{Detail, Inode, inode_key};
use crate::refusal::{Failure, Refusal};
use crate::rights::{Credentials, SEARCH};
use crate::view::read;

/// Deepest directory that is looked for from below. A path has 256 names; deeper ones are made by
/// number, and nobody may make others wait by how deep they are.
pub(crate) const DEPTH_MAX: usize = 4096;

/// Checks that a directory is below the top one: it may be in a tree that was removed.
pub(crate) fn check_attached(
    rows: &dyn Rows,
    (id, inode): (InodeId, &Inode),
) -> Result<(), Failure> {
    let is_empty = |table| rows.range(table, Span::ALL, 1).map(|rows| rows.is_empty());
    if is_empty(Table::Detached)? && is_empty(Table::Trash)? {
        return Ok(());
    }
    climb(rows, (id, inode), &|_| Ok(()))
}

/// Checks that a directory is below the top one, and that every directory above it may be searched
/// by the caller: else a number would lead past those that are shut.
pub(crate) fn check_way(
    rows: &dyn Rows,
    caller: &Credentials,
    (id, inode): (InodeId, &Inode),
) -> Result<(), Failure> {
    if caller.is_operator {
        return check_attached(rows, (id, inode));
    }
    climb(rows, (id, inode), &|above| caller.check(above, SEARCH))
}

/// Goes from a directory to the top one, with a check of each directory above it.
fn climb(
    rows: &dyn Rows,
    (mut id, inode): (InodeId, &Inode),
    check: &dyn Fn(&Inode) -> Result<(), Refusal>,
) -> Result<(), Failure> {
    let mut detail = inode.detail.clone();
    for _ in 0..DEPTH_MAX {
        if id == InodeId::ROOT {
            return Ok(());
        }
        match detail {
            Detail::Directory { parent } if parent != id => id = parent,
            _ => return Err(Refusal::NotFound.into()),
        }
        let above: Inode = read(rows, &inode_key(id))?.ok_or(Refusal::NotFound)?;
        check(&above)?;
        detail = above.detail;
    }
    Err(Refusal::TooDeep.into())
}
