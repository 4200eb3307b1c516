//! The directory of a disk: making it, opening it, and what is durable in it besides content.
//!
//! One process at a time has it open. Whatever answers an order is durable before these calls
//! return.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use byname_catalog::id::{ContentId, LeaseEpoch};
use rustix::fs::FlockOperation;

use crate::error::{DiskError, StoreFailure};
use crate::incoming::{Incoming, write_durably};
use crate::label::Label;
use crate::layout::{Layout, sync_directory};
use crate::record::Record;
use crate::scan::{self, Scan};

/// See the module.
#[derive(Debug)]
pub struct DiskDirectory {
    layout: Layout,
    label: Label,
    _lock: File,
}

impl DiskDirectory {
    /// Makes an empty directory, or finds that there is one.
    ///
    /// # Errors
    /// [`DiskError::NotEmpty`], or what the system says.
    pub fn prepare(root: &Path) -> Result<(), DiskError> {
        fs::create_dir_all(root).map_err(DiskError::at(root))?;
        let mut entries = fs::read_dir(root).map_err(DiskError::at(root))?;
        // A new file system has one entry of its own.
        match entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != "lost+found")) {
            true => Err(DiskError::NotEmpty { path: root.to_owned() }),
            false => Ok(()),
        }
    }

    /// Makes a disk of an empty directory. `site_certificate` is that of the site's key: what it
    /// leads to is obeyed.
    ///
    /// # Errors
    /// [`DiskError::NotEmpty`], or what the system says.
    pub fn format(root: &Path, label: &Label, site_certificate: &[u8]) -> Result<(), DiskError> {
        Self::prepare(root)?;
        let layout = Layout::new(root);
        for directory in layout.directories() {
            fs::create_dir(&directory).map_err(DiskError::at(&directory))?;
        }
        for top in [layout.objects(), layout.records()] {
            sync_directory(&top).map_err(DiskError::at(&top))?;
        }
        let path = layout.site_certificate();
        write_durably(&path, site_certificate).map_err(DiskError::at(&path))?;
        // The label comes last: a directory with one is complete.
        label.write(&layout)
    }

    /// Opens a disk and looks at all that is in it.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn open(root: &Path) -> Result<(Self, Scan), DiskError> {
        let layout = Layout::new(root);
        let label = Label::read(&layout)?;
        let path = layout.lock();
        let lock = File::create(&path).map_err(DiskError::at(&path))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(DiskError::Locked { path: root.to_owned() });
            }
            Err(errno) => return Err(DiskError::Io { path, source: errno.into() }),
        }
        let scan = scan::scan(&layout)?;
        Ok((Self { layout, label, _lock: lock }, scan))
    }

    /// What disk it is.
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// The certificate of the site's key, as it was when the disk was made.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn site_certificate(&self) -> Result<Vec<u8>, DiskError> {
        let path = self.layout.site_certificate();
        fs::read(&path).map_err(DiskError::at(&path))
    }

    /// The directory that a file server serves as contents.
    pub fn objects(&self) -> PathBuf {
        self.layout.objects()
    }

    /// Where that file server keeps its state.
    pub fn state(&self) -> PathBuf {
        self.layout.state()
    }

    /// Begins to take content of `size` octets.
    ///
    /// # Errors
    /// [`StoreFailure`]; the room is asked for now.
    pub fn begin(&self, content: ContentId, size: u64) -> Result<Incoming, StoreFailure> {
        Incoming::begin(self.layout.clone(), content, size)
    }

    /// Removes what was written of content that is not stored.
    pub fn discard(&self, content: ContentId) {
        // What is left is removed at the next start.
        for path in [self.layout.incoming_object(content), self.layout.incoming_record(content)] {
            let _ = fs::remove_file(path);
        }
    }

    /// Keeps the highest epoch seen.
    ///
    /// # Errors
    /// [`StoreFailure`].
    pub fn keep_epoch(&self, epoch: LeaseEpoch) -> Result<(), StoreFailure> {
        let text = format!("{}\n", epoch.0);
        let (root, path) = (&self.layout.root, self.layout.epoch());
        write_durably(&root.join("epoch.new"), text.as_bytes())
            .and_then(|()| fs::rename(root.join("epoch.new"), &path))
            .and_then(|()| sync_directory(root))
            .map_err(|error| StoreFailure::of(&error))
    }

    /// Removes content, after that it is gone for good was recorded.
    ///
    /// # Errors
    /// [`StoreFailure`]; then it may be there or not, but is never taken again.
    pub fn remove(&self, content: ContentId) -> Result<(), StoreFailure> {
        self.remove_all(content).map_err(|error| StoreFailure::of(&error))
    }

    fn remove_all(&self, content: ContentId) -> std::io::Result<()> {
        File::create(self.layout.tombstone(content))?.sync_all()?;
        sync_directory(&self.layout.dropped())?;
        for path in [self.layout.object(content), self.layout.record(content)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            if let Some(directory) = path.parent() {
                sync_directory(directory)?;
            }
        }
        Ok(())
    }

    /// The record of content.
    pub fn record(&self, content: ContentId) -> Option<Record> {
        Record::decode(&fs::read(self.layout.record(content)).ok()?)
    }

    /// Notes that the head has said that content is part of the site. If that is lost, it is asked
    /// again.
    ///
    /// # Errors
    /// [`StoreFailure`].
    pub fn settle(&self, content: ContentId) -> Result<(), StoreFailure> {
        let Some(record) = self.record(content) else { return Ok(()) };
        let octets = Record { is_settled: true, ..record }.encode();
        let path = self.layout.incoming_record(content);
        write_durably(&path, &octets)
            .and_then(|()| fs::rename(&path, self.layout.record(content)))
            .map_err(|error| StoreFailure::of(&error))
    }

    /// Octets that are free and octets in all.
    ///
    /// # Errors
    /// [`StoreFailure`].
    pub fn room(&self) -> Result<(u64, u64), StoreFailure> {
        let room = rustix::fs::statvfs(&self.layout.root);
        let room = room.map_err(|errno| StoreFailure::of(&errno.into()))?;
        let octets = |blocks: u64| blocks.saturating_mul(room.f_frsize);
        Ok((octets(room.f_bavail), octets(room.f_blocks)))
    }

    /// Writes to the disk and reads back, to see that it can be done.
    ///
    /// # Errors
    /// [`StoreFailure`].
    pub fn probe(&self) -> Result<(), StoreFailure> {
        let path = self.layout.incoming().join("probe");
        let outcome = File::create(&path)
            .and_then(|mut file| file.write_all(b"byname").and_then(|()| file.sync_all()))
            .and_then(|()| fs::read(&path));
        let removed = fs::remove_file(&path);
        match outcome.and_then(|octets| removed.map(|()| octets)) {
            Ok(octets) if octets == b"byname" => Ok(()),
            Ok(_) => Err(StoreFailure::Failing),
            Err(error) => Err(StoreFailure::of(&error)),
        }
    }
}
