//! Whole contents placed under their names.
//!
//! `tree/` holds hard links of whole data files under the names they were published by, with the
//! publisher's packets and times: exactly a copy, so a mirror serves it. What a mirror serves it
//! has hashed itself, so nothing here has to be believed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use byname_io::Attachments;
use byname_packet::NameRef;
use byname_transfer::copies::FILE_SLOT;
use byname_transfer::naming::relative_path;
use rustix::fs::{Timespec, Timestamps, UTIME_OMIT};

use crate::files::beside;
use crate::layout::{DATA, Layout, PACKET};
use crate::names::Names;
use crate::version::DirectoryPacket;

/// Mode of a copy.
const COPY_MODE: u32 = 0o644;

/// Place of a name in the tree; `None` if it makes no safe path.
pub(crate) fn path_of(layout: &Layout, name: NameRef<'_>) -> Option<PathBuf> {
    let relative = relative_path(name).filter(|path| !path.is_empty())?;
    Some(layout.tree().join(std::ffi::OsString::from_vec(relative)))
}

/// Gives a whole content its names. What cannot be placed is not served, nothing else.
pub(crate) fn publish(layout: &Layout, copies: &Path, entry: &Path, names: &Names) {
    let data = entry.join(DATA);
    if let Err(error) = dress(copies, entry, &data, names) {
        return tracing::debug!(%error, entry = %entry.display(), "no copy was made of it");
    }
    for seen in names.iter() {
        let Some(path) = path_of(layout, seen.name.view()) else { continue };
        if let Err(error) = link(&data, &path) {
            tracing::debug!(%error, path = %path.display(), "a whole file was not placed");
        }
    }
}

/// Gives a data file the mode, packet and time of what it is a copy of.
fn dress(copies: &Path, entry: &Path, data: &Path, names: &Names) -> io::Result<()> {
    let file = File::open(data)?;
    file.sync_data()?;
    // The directory of the cache keeps others out; a mirror may show it. What is so already is left
    // alone: each change ends what was noted about the file (`whole`).
    if file.metadata()?.mode() & 0o7777 != COPY_MODE {
        rustix::fs::fchmod(&file, rustix::fs::Mode::from_raw_mode(COPY_MODE))?;
    }
    // Where attributes cannot be had, packets belong to a file of this time.
    set_time(&file, names)?;
    if let Ok(packet) = fs::read(entry.join(PACKET)) {
        let attachments = Attachments::new(copies.to_owned());
        let attached = attachments.get(&file, FILE_SLOT, packet.len());
        if attached.ok().flatten().as_ref() != Some(&packet) {
            attachments.set(&file, FILE_SLOT, &packet)?;
        }
    }
    Ok(())
}

/// Sets the time of the last change as published; writing to the file has moved it.
fn set_time(file: &File, names: &Names) -> io::Result<()> {
    let Some(mtime_ns) = names.iter().next().and_then(|seen| seen.mtime_ns) else { return Ok(()) };
    let found = file.metadata()?;
    let found_ns = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
    if found_ns == i128::from(mtime_ns) {
        return Ok(());
    }
    let last_modification = Timespec {
        tv_sec: i64::try_from(mtime_ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (mtime_ns % 1_000_000_000) as _,
    };
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    Ok(rustix::fs::futimens(file, &Timestamps { last_access, last_modification })?)
}

fn link(data: &Path, path: &Path) -> io::Result<()> {
    if is_same(data, path) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        // A server hides directories that are for their owner alone; the cache's own keeps others
        // out.
        DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
    }
    match fs::hard_link(data, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        linked => return linked,
    }
    let temporary = beside(path);
    fs::hard_link(data, &temporary)?;
    let renamed = fs::rename(&temporary, path);
    if renamed.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    renamed
}

fn is_same(data: &Path, path: &Path) -> bool {
    let (Ok(data), Ok(path)) = (fs::symlink_metadata(data), fs::symlink_metadata(path)) else {
        return false;
    };
    (data.dev(), data.ino()) == (path.dev(), path.ino())
}

/// Takes the names of an entry away, and directories that are empty then.
pub(crate) fn withdraw(layout: &Layout, entry: &Path, names: &Names) {
    let data = entry.join(DATA);
    for seen in names.iter() {
        let Some(path) = path_of(layout, seen.name.view()) else { continue };
        if is_same(&data, &path) && fs::remove_file(&path).is_ok() {
            remove_empty(&path, &layout.tree());
        }
    }
}

fn remove_empty(path: &Path, top: &Path) {
    let mut directory = path.parent();
    while let Some(path) = directory.filter(|path| path.starts_with(top)) {
        if fs::remove_dir(path).is_err() {
            return;
        }
        directory = path.parent();
    }
}

/// Device and inode of a directory of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u64, u64);

/// Keeps the packet of a directory with its place in the tree, if something lies below it and it is
/// not the one that has the packet already. Returns who has it.
pub(crate) fn attach(
    layout: &Layout,
    copies: &Path,
    name: NameRef<'_>,
    packet: &DirectoryPacket,
    attached: Option<Place>,
) -> Option<Place> {
    let path = path_of(layout, name)?;
    let found = fs::metadata(&path).ok()?;
    let place = Some(Place(found.dev(), found.ino()));
    if attached == place {
        return attached;
    }
    let directory = File::open(path).ok()?;
    match Attachments::new(copies.to_owned()).set(&directory, packet.slot, &packet.octets) {
        Ok(()) => place,
        Err(error) => {
            tracing::debug!(%error, "a directory's packet was not kept");
            None
        }
    }
}
