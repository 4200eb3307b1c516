//! Content on its way into a disk: written beside the replicas, and one of them only when it, its
//! record and the entries of both are on stable storage.
//!
//! Order: octets synced, record synced, record in its place, content in its place, both directories
//! synced. Only what has its place is served, and only what came to the end of this is stored.

use std::io;

use byname_catalog::id::ContentId;
use rustix::io::Errno;

use crate::error::StoreFailure;
use crate::files::{OpenFile, write_durably};
use crate::layout::Layout;
use crate::record::Record;

/// Room that no content gets, so that a full disk can still do as the head says: keep its term, and
/// record what is dropped. It is this much, or this part of a small file system.
const SPARE_BYTES_MAX: u64 = 64 << 20;
const SPARE_PART: u64 = 64;
/// Octets that are taken from another content together.
const TAKEN_BYTES: u64 = 16 << 20;
/// Octets that the system is told to write to the disk together, while more come.
const BEGUN_BYTES: u64 = 8 << 20;

/// True if so many octets leave what no content gets.
fn has_room(layout: &Layout, bytes: u64) -> io::Result<bool> {
    let (free_bytes, total_bytes) = layout.files.room(&layout.root)?;
    let spare_bytes = SPARE_BYTES_MAX.min(total_bytes / SPARE_PART);
    Ok(bytes.checked_add(spare_bytes).is_some_and(|wanted| wanted <= free_bytes))
}

/// Is told of octets that are there, and says whether to go on.
pub type OnBytes<'a> = dyn FnMut(u64) -> io::Result<()> + 'a;

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
    file: Box<dyn OpenFile>,
    written_bytes: u64,
    /// Of those the system was told to write so many to the disk.
    begun_bytes: u64,
}

impl Incoming {
    pub(crate) fn begin(
        layout: Layout,
        content: ContentId,
        size: u64,
    ) -> Result<Self, StoreFailure> {
        let mut incoming = Self::open(layout, content, size)?;
        if size > 0
            && let Err(error) = incoming.file.reserve(size)
        {
            return Err(incoming.give_up(StoreFailure::of(&error)));
        }
        Ok(incoming)
    }

    /// Begins with nothing reserved; there is room for so many octets.
    pub(crate) fn open(
        layout: Layout,
        content: ContentId,
        bytes: u64,
    ) -> Result<Self, StoreFailure> {
        // Asking for more than there is would take all there is from everybody for a moment.
        if has_room(&layout, bytes).map_err(|error| StoreFailure::of(&error))? {
            let file = layout.files.create(&layout.incoming_object(content));
            let file = file.map_err(|error| StoreFailure::of(&error))?;
            return Ok(Self { layout, content, file, written_bytes: 0, begun_bytes: 0 });
        }
        Err(StoreFailure::Full)
    }

    /// Begins with the first octets of content that is stored; `on_bytes` is told of those that are
    /// there.
    ///
    /// # Errors
    /// What the system says, or `on_bytes`. `NotFound` if that content is gone.
    pub(crate) fn take(
        &mut self,
        older: ContentId,
        bytes: u64,
        on_bytes: &mut OnBytes<'_>,
    ) -> io::Result<()> {
        let from = self.layout.object(older);
        let mut offset = 0;
        while offset < bytes {
            // Where blocks are not shared, this takes as much as any content.
            if !has_room(&self.layout, 0)? {
                return Err(Errno::NOSPC.into());
            }
            let piece = TAKEN_BYTES.min(bytes - offset);
            self.file.take(&from, offset, piece)?;
            self.note_written(piece);
            on_bytes(piece)?;
            offset += piece;
        }
        Ok(())
    }

    /// Takes the next octets.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.file.write(octets)?;
        self.note_written(octets.len() as u64);
        Ok(())
    }

    /// A little at a time: beginning waits while the disk has as much to do as it takes.
    fn note_written(&mut self, bytes: u64) {
        self.written_bytes += bytes;
        let bytes = self.written_bytes - self.begun_bytes;
        if bytes >= BEGUN_BYTES {
            self.file.begin_sync(self.begun_bytes, bytes);
            self.begun_bytes = self.written_bytes;
        }
    }

    /// Removes what was written.
    pub fn give_up(self, why: StoreFailure) -> StoreFailure {
        // What is left is removed at the next start.
        let Self { layout, content, .. } = self;
        let _ = layout.files.remove(&layout.incoming_object(content));
        let _ = layout.files.remove(&layout.incoming_record(content));
        why
    }

    /// Makes a replica of what was written; it is stored when this returns. `on_step` is told of
    /// each step that was taken.
    ///
    /// # Errors
    /// [`StoreFailure`]; nothing is stored then.
    pub fn keep(
        mut self,
        record: &Record,
        on_step: &mut dyn FnMut(Step),
    ) -> Result<(), StoreFailure> {
        match self.place(record, on_step) {
            Ok(()) => Ok(()),
            Err(error) => {
                let (object, kept) =
                    (self.layout.object(self.content), self.layout.record(self.content));
                // Nobody was told of it, so it need not be durable that it is gone.
                let _ = self.layout.files.remove(&object);
                let _ = self.layout.files.remove(&kept);
                Err(self.give_up(StoreFailure::of(&error)))
            }
        }
    }

    fn place(&mut self, record: &Record, on_step: &mut dyn FnMut(Step)) -> io::Result<()> {
        let Self { layout, content, file, .. } = self;
        let files = layout.files.clone();
        let written = file.facts()?.len;
        if written != record.size {
            return Err(io::Error::other(format!("{written} octets in place of {}", record.size)));
        }
        on_step(Step::Written);
        file.sync()?;
        on_step(Step::DataSynced);
        let incoming_record = layout.incoming_record(*content);
        write_durably(&*files, &incoming_record, &record.encode())?;
        on_step(Step::RecordSynced);
        let (object, kept) = (layout.object(*content), layout.record(*content));
        files.rename(&incoming_record, &kept)?;
        on_step(Step::RecordPlaced);
        files.rename(&layout.incoming_object(*content), &object)?;
        on_step(Step::DataPlaced);
        for path in [kept, object] {
            path.parent().map_or(Ok(()), |directory| files.sync_directory(directory))?;
        }
        on_step(Step::DirectoriesSynced);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc::{Sender, channel};

    use byname_catalog::id::{InodeId, Version};

    use super::*;
    use crate::files::{FileFacts, SystemFiles};

    /// Tells what it was asked to begin.
    #[derive(Debug)]
    struct Told(Sender<(u64, u64)>);

    impl OpenFile for Told {
        fn reserve(&mut self, _bytes: u64) -> io::Result<()> {
            Ok(())
        }

        fn write(&mut self, _octets: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn take(&mut self, _from: &Path, _offset: u64, _bytes: u64) -> io::Result<()> {
            Ok(())
        }

        fn begin_sync(&mut self, offset: u64, bytes: u64) {
            self.0.send((offset, bytes)).unwrap();
        }

        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn facts(&self) -> io::Result<FileFacts> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    #[test]
    fn what_has_come_is_on_its_way_to_the_disk_before_the_rest_comes() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::new(std::sync::Arc::new(SystemFiles), directory.path());
        let content = ContentId { inode: InodeId(1), version: Version(1) };
        let (told, begun) = channel();
        let file = Box::new(Told(told));
        let mut incoming = Incoming { layout, content, file, written_bytes: 0, begun_bytes: 0 };
        let octets = vec![0; 5 << 20];
        incoming.take(content, 40 << 20, &mut |_| Ok(())).unwrap();
        for _ in 0..4 {
            incoming.write(&octets).unwrap();
        }
        drop(incoming);
        let begun: Vec<_> =
            begun.iter().map(|(offset, bytes)| (offset >> 20, bytes >> 20)).collect();
        assert_eq!(begun, [(0, 16), (16, 16), (32, 8), (40, 10), (50, 10)]);
    }
}
