//! Copies of the catalog's rows: what the head has told the disk to keep, so that the catalog can
//! be made again from its disks.
//!
//! A copy is one file of frames (`byname_site::Frame`), each an order of the head as it came. It
//! grows at its end; a later *edition* begins anew beside it and takes its place when it has a
//! complete state. What is told to be kept is on stable storage. Nothing here looks at the rows.
//!
//! Bounded: two editions, each of [`COPY_BYTES_MAX`].

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use byname_packet::Interest;
use byname_site::{COPY_PAGE_BYTES, CatalogCopy, CopyPoint, Frame, Keep, SiteName, frame};
use rustix::io::Errno;

use crate::error::{DiskError, StoreFailure};
use crate::files::{Files, OpenFile};

/// Octets of one edition, at most: rows of about twenty million files.
const COPY_BYTES_MAX: u64 = 8 << 30;
/// Octets of a file that are read at once.
const READ_BYTES: usize = 1 << 20;

/// An order to keep rows, verified, and as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepOrder {
    /// The order.
    pub order: Keep,
    /// The packet.
    pub wire: Vec<u8>,
}

/// The editions that are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Editions {
    /// The one that has a complete state.
    pub complete: Option<CatalogCopy>,
    /// A later one that has none yet.
    pub building: Option<CatalogCopy>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Copies {
    directory: PathBuf,
    files: Arc<dyn Files>,
    editions: Editions,
    /// The file that is written, behind its last order that counts.
    open: Option<(u64, Box<dyn OpenFile>)>,
}

impl Editions {
    /// The copy that an order is the next of; it may begin one.
    fn next_of(&mut self, order: &Keep) -> Option<&mut CatalogCopy> {
        let Self { complete, building } = self;
        let last = [*complete, *building].into_iter().flatten().map(|copy| copy.edition).max();
        if order.at == CopyPoint::default() && last.is_none_or(|last| last < order.edition) {
            return Some(
                building.insert(CatalogCopy { edition: order.edition, ..CatalogCopy::default() }),
            );
        }
        let copies = [complete, building].into_iter().flatten();
        copies.filter(|copy| copy.edition == order.edition && copy.end() == order.at).find(|copy| {
            match order.through {
                // What has no rows and says nothing new is kept already.
                Some(through) if order.rows.is_empty() => copy.through < through,
                Some(through) => copy.through <= through,
                None => !order.rows.is_empty(),
            }
        })
    }

    /// An edition that has a complete state takes the place of the one before.
    fn settle(&mut self) {
        if self.building.is_some_and(|copy| copy.base > 0) {
            self.complete = self.building.take();
        }
    }

    fn contains(&self, edition: u64) -> bool {
        [self.complete, self.building].into_iter().flatten().any(|copy| copy.edition == edition)
    }
}

/// Counts an order whose frame has so many octets.
fn count(copy: &mut CatalogCopy, order: &Keep, frame_bytes: u64) {
    CopyPoint { length: copy.length, digest: copy.digest, through: copy.through } = order.end();
    copy.last = copy.stored;
    copy.stored += frame_bytes;
    if order.through.is_some() && copy.base == 0 {
        copy.base = copy.length.max(1);
    }
}

impl Copies {
    /// Looks at what is there. What is torn at the end of a copy counts for nothing.
    pub(crate) fn open(
        files: Arc<dyn Files>,
        directory: PathBuf,
        site: &SiteName,
    ) -> Result<Self, DiskError> {
        let found = match files.list(&directory) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(DiskError::at(&directory)(error)),
        };
        let mut editions = Editions::default();
        for path in &found {
            let Some(edition) = edition_of(path) else { continue };
            let copy = scan(&*files, path, (edition, site)).map_err(DiskError::at(path))?;
            let place = match copy.base > 0 {
                true => &mut editions.complete,
                false => &mut editions.building,
            };
            if copy.stored > 0 && place.is_none_or(|other| other.edition < edition) {
                *place = Some(copy);
            }
        }
        let complete = editions.complete.map(|copy| copy.edition);
        editions.building = editions.building.filter(|copy| Some(copy.edition) > complete);
        let copies = Self { directory, files, editions, open: None };
        copies.remove_others();
        Ok(copies)
    }

    /// What there is.
    pub(crate) fn editions(&self) -> Editions {
        self.editions
    }

    /// Keeps those of the orders that are the next of a copy; all others change nothing. They are
    /// on stable storage when this returns.
    pub(crate) fn keep(&mut self, orders: &[KeepOrder]) -> Result<(), StoreFailure> {
        let kept = self.append(orders);
        if kept.is_err() {
            // What was written and does not count is cut off by the next order.
            self.open = None;
        }
        kept.map_err(|error| StoreFailure::of(&error))
    }

    fn append(&mut self, orders: &[KeepOrder]) -> io::Result<()> {
        let mut after = self.editions;
        for KeepOrder { order, wire } in orders {
            let Some(copy) = after.next_of(order) else { continue };
            let frame = frame(wire);
            let frame_bytes = frame.len() as u64;
            if copy.stored + frame_bytes > COPY_BYTES_MAX {
                return Err(Errno::FBIG.into());
            }
            let file = self.file(copy)?;
            file.write(&frame)?;
            count(copy, order, frame_bytes);
            after.settle();
        }
        if let Some((_, file)) = self.open.as_mut().filter(|_| after != self.editions) {
            file.sync()?;
        }
        let is_new = |copy: CatalogCopy| !self.editions.contains(copy.edition);
        if [after.complete, after.building].into_iter().flatten().any(is_new) {
            self.files.sync_directory(&self.directory)?;
        }
        self.editions = after;
        self.remove_others();
        Ok(())
    }

    /// The file of a copy, to be written behind what counts.
    fn file(&mut self, copy: &CatalogCopy) -> io::Result<&mut Box<dyn OpenFile>> {
        if self.open.as_ref().is_none_or(|(edition, _)| *edition != copy.edition) {
            if let Some((_, mut other)) = self.open.take() {
                other.sync()?;
            }
            let path = self.path(copy.edition);
            let file = match copy.stored {
                0 => self.create(&path)?,
                stored => self.files.append(&path, stored)?,
            };
            self.open = Some((copy.edition, file));
        }
        match &mut self.open {
            Some((_, file)) => Ok(file),
            None => Err(io::Error::other("no file is open")),
        }
    }

    /// A new file. Disks that were made before there were copies have no directory for it.
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.files.create_directory(&self.directory)?;
        if let Some(root) = self.directory.parent() {
            self.files.sync_directory(root)?;
        }
        self.files.create(path)
    }

    /// Octets of a copy from a place in it; none behind its end, or if there is no such copy.
    pub(crate) fn read(&self, edition: u64, offset: u64) -> io::Result<Vec<u8>> {
        let Editions { complete, building } = self.editions;
        let mut copies = [complete, building].into_iter().flatten();
        let Some(copy) = copies.find(|copy| copy.edition == edition) else {
            return Ok(Vec::new());
        };
        let left = copy.stored.saturating_sub(offset);
        let wanted = usize::try_from(left).map_or(COPY_PAGE_BYTES, |it| it.min(COPY_PAGE_BYTES));
        if wanted == 0 {
            return Ok(Vec::new());
        }
        self.files.read_at(&self.path(edition), offset, wanted)
    }

    fn path(&self, edition: u64) -> PathBuf {
        self.directory.join(format!("{edition:016x}"))
    }

    /// Removes editions before the complete one. What cannot be removed is tried again with the
    /// next; what cannot be read is left for people until then.
    fn remove_others(&self) {
        let complete = self.editions.complete.map(|copy| copy.edition);
        for path in self.files.list(&self.directory).unwrap_or_default() {
            if edition_of(&path).is_some_and(|edition| Some(edition) < complete) {
                let _ = self.files.remove(&path);
            }
        }
    }
}

fn edition_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let edition = u64::from_str_radix(name, 16).ok()?;
    (format!("{edition:016x}") == name).then_some(edition)
}

/// What of a file counts: orders, each of which begins where the one before ends.
fn scan(
    files: &dyn Files,
    path: &Path,
    (edition, site): (u64, &SiteName),
) -> io::Result<CatalogCopy> {
    let mut copy = CatalogCopy { edition, ..CatalogCopy::default() };
    let mut octets = Vec::new();
    let mut read_bytes = 0;
    loop {
        let more = files.read_at(path, read_bytes, READ_BYTES)?;
        read_bytes += more.len() as u64;
        octets.extend_from_slice(&more);
        let mut rest = octets.as_slice();
        loop {
            let (wire, behind) = match Frame::first(rest) {
                Frame::Order(wire, behind) => (wire, behind),
                Frame::Cut if !more.is_empty() => break,
                Frame::Cut | Frame::Torn => return Ok(copy),
            };
            let order = Interest::decode(wire).and_then(|it| Keep::decode(site, &it));
            match order {
                Ok((_, order)) if (order.edition, order.at) == (edition, copy.end()) => {
                    count(&mut copy, &order, (rest.len() - behind.len()) as u64);
                }
                _ => return Ok(copy),
            }
            rest = behind;
        }
        octets = rest.to_vec();
    }
}
