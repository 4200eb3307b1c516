//! Content on its way into a disk: written beside the replicas, and one of them only when it, its
//! record and the entries of both are on stable storage.
//!
//! Order: octets synced, record synced, record in its place, content in its place, both directories
//! synced. Only what has its place is served, and only what came to the end of this is stored.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use byname_catalog::id::ContentId;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::error::StoreFailure;
use crate::layout::{Layout, sync_directory};
use crate::record::Record;

/// A step after which more is durable than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// All octets are written.
    Written,
    /// They are synced.
    DataSynced,
    /// The record is written and synced.
    RecordSynced,
    /// The record is in its place.
    RecordPlaced,
    /// The content is in its place.
    DataPlaced,
    /// Both directories are synced: it is stored.
    DirectoriesSynced,
}

impl Step {
    /// All of them, in order.
    pub const ALL: [Step; 6] = [
        Step::Written,
        Step::DataSynced,
        Step::RecordSynced,
        Step::RecordPlaced,
        Step::DataPlaced,
        Step::DirectoriesSynced,
    ];
}

/// See the module.
#[derive(Debug)]
pub struct Incoming {
    layout: Layout,
    content: ContentId,
    file: File,
}

impl Incoming {
    pub(crate) fn begin(
        layout: Layout,
        content: ContentId,
        size: u64,
    ) -> Result<Self, StoreFailure> {
        // Asking for more than there is would take all there is from everybody for a moment.
        let room = rustix::fs::statvfs(&layout.root);
        let room = room.map_err(|errno| StoreFailure::of(&errno.into()))?;
        if size > room.f_bavail.saturating_mul(room.f_frsize) {
            return Err(StoreFailure::Full);
        }
        let file = File::create(layout.incoming_object(content));
        let file = file.map_err(|error| StoreFailure::of(&error))?;
        let incoming = Self { layout, content, file };
        if size > 0 {
            match rustix::fs::fallocate(&incoming.file, FallocateFlags::empty(), 0, size) {
                // The file system does not know it, so the room is found out when it is written.
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
                Err(errno) => return Err(incoming.give_up(StoreFailure::of(&errno.into()))),
            }
        }
        Ok(incoming)
    }

    /// Takes the next octets.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.file.write_all(octets)
    }

    /// Removes what was written.
    pub fn give_up(self, why: StoreFailure) -> StoreFailure {
        // What is left is removed at the next start.
        let _ = fs::remove_file(self.layout.incoming_object(self.content));
        let _ = fs::remove_file(self.layout.incoming_record(self.content));
        why
    }

    /// Makes a replica of what was written; it is stored when this returns. `on_step` is told of
    /// each step that was taken.
    ///
    /// # Errors
    /// [`StoreFailure`]; nothing is stored then.
    pub fn keep(self, record: &Record, on_step: &mut dyn FnMut(Step)) -> Result<(), StoreFailure> {
        match self.place(record, on_step) {
            Ok(()) => Ok(()),
            Err(error) => {
                let (object, kept) =
                    (self.layout.object(self.content), self.layout.record(self.content));
                // Nobody was told of it, so it need not be durable that it is gone.
                let _ = fs::remove_file(object);
                let _ = fs::remove_file(kept);
                Err(self.give_up(StoreFailure::of(&error)))
            }
        }
    }

    fn place(&self, record: &Record, on_step: &mut dyn FnMut(Step)) -> io::Result<()> {
        let Self { layout, content, file } = self;
        let written = file.metadata()?.len();
        if written != record.size {
            return Err(io::Error::other(format!("{written} octets in place of {}", record.size)));
        }
        on_step(Step::Written);
        file.sync_all()?;
        on_step(Step::DataSynced);
        let incoming_record = layout.incoming_record(*content);
        write_durably(&incoming_record, &record.encode())?;
        on_step(Step::RecordSynced);
        let (object, kept) = (layout.object(*content), layout.record(*content));
        fs::rename(&incoming_record, &kept)?;
        on_step(Step::RecordPlaced);
        fs::rename(layout.incoming_object(*content), &object)?;
        on_step(Step::DataPlaced);
        for path in [kept, object] {
            path.parent().map_or(Ok(()), sync_directory)?;
        }
        on_step(Step::DirectoriesSynced);
        Ok(())
    }
}

/// Writes a file whose octets are on stable storage when this returns; its name is not.
pub(crate) fn write_durably(path: &Path, octets: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(octets)?;
    file.sync_all()
}
