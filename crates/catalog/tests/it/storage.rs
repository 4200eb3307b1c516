//! Storage that forgets: what was written and not synced is lost in part when the power is cut.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

#[derive(Debug, Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

#[derive(Debug, Default)]
struct Disk {
    /// As a reader of this life sees it.
    current: Vec<u8>,
    /// As it was at the last sync.
    synced: Vec<u8>,
    unsynced: Vec<Change>,
    /// Changes left before the power is cut.
    power_for: Option<u64>,
}

/// A disk whose power can be cut. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct PowerDisk(Arc<Mutex<Disk>>);

impl PowerDisk {
    /// Cuts the power after so many more writes and syncs.
    pub(crate) fn cut_after(&self, changes: u64) {
        self.lock().power_for = Some(changes);
    }

    /// The disk after the power came back: of what was not synced, each write is there or not, as
    /// the bits of `survives` say.
    pub(crate) fn restart(&self, mut survives: u64) -> Self {
        let disk = self.lock();
        let mut image = disk.synced.clone();
        for change in &disk.unsynced {
            if survives & 1 == 1 {
                apply(&mut image, change);
            }
            survives = survives.rotate_right(1);
        }
        let disk = Disk { current: image.clone(), synced: image, ..Disk::default() };
        Self(Arc::new(Mutex::new(disk)))
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn apply(image: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Length(length) => image.resize(*length as usize, 0),
        Change::Write(offset, octets) => {
            let end = *offset as usize + octets.len();
            if image.len() < end {
                image.resize(end, 0);
            }
            image[*offset as usize..end].copy_from_slice(octets);
        }
    }
}

impl Disk {
    fn draw_power(&mut self) -> io::Result<()> {
        match &mut self.power_for {
            Some(0) => Err(io::Error::other("no power")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn change(&mut self, change: Change) -> io::Result<()> {
        self.draw_power()?;
        apply(&mut self.current, &change);
        self.unsynced.push(change);
        Ok(())
    }
}

impl StorageBackend for PowerDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock().current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let disk = self.lock();
        let octets = disk.current.get(offset as usize..offset as usize + out.len());
        out.copy_from_slice(octets.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.lock().change(Change::Length(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut disk = self.lock();
        disk.draw_power()?;
        disk.synced = disk.current.clone();
        disk.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, octets: &[u8]) -> io::Result<()> {
        self.lock().change(Change::Write(offset, octets.to_vec()))
    }
}
