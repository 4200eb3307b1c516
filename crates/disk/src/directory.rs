//! The directory of a disk: making it, opening it, and what is durable in it besides content.
//!
//! One process at a time has it open. Whatever answers an order is durable before these calls
//! return.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use byname_catalog::id::{ContentId, LeaseEpoch};
use byname_site::SiteName;

use crate::copies::{Copies, Editions, KeepOrder};
use crate::error::{DiskError, StoreFailure};
use crate::files::{Files, LockGuard, SystemFiles, write_durably};
use crate::growth::Growths;
use crate::incoming::Incoming;
use crate::label::Label;
use crate::layout::Layout;
use crate::record::{RECORD_BYTES_MAX, Record};
use crate::scan::{self, Scan, Unsound};
use crate::shown::Hidden;

/// Longest text about reading what there is that is read back, in octets.
const SCRUB_BYTES_MAX: u64 = 256 << 10;

/// See the module.
#[derive(Debug)]
pub struct DiskDirectory {
    layout: Layout,
    label: Label,
    copies: Mutex<Copies>,
    hidden: Hidden,
    /// Those of the hidden contents that are to be put into quarantine.
    unfit: Mutex<BTreeSet<ContentId>>,
    growths: Arc<Growths>,
    _lock: Box<dyn LockGuard>,
}

impl DiskDirectory {
    /// Makes an empty directory, or finds that there is one.
    ///
    /// # Errors
    /// [`DiskError::NotEmpty`], or what the system says.
    pub fn prepare(root: &Path) -> Result<(), DiskError> {
        Self::prepare_in(&SystemFiles, root)
    }

    fn prepare_in(files: &dyn Files, root: &Path) -> Result<(), DiskError> {
        // Where a file system is not mounted, nothing is to be made in its place.
        let above = root.parent().filter(|above| !above.as_os_str().is_empty());
        if let Some(above) = above.filter(|above| !above.exists()) {
            return Err(DiskError::at(above)(std::io::ErrorKind::NotFound.into()));
        }
        files.create_directory(root).map_err(DiskError::at(root))?;
        let entries = files.list(root).map_err(DiskError::at(root))?;
        // A new file system has one entry of its own.
        match entries.iter().any(|entry| !entry.ends_with("lost+found")) {
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
        Self::format_in(Arc::new(SystemFiles), root, label, site_certificate)
    }

    /// The same with other file operations.
    ///
    /// # Errors
    /// As [`DiskDirectory::format`].
    pub fn format_in(
        files: Arc<dyn Files>,
        root: &Path,
        label: &Label,
        site_certificate: &[u8],
    ) -> Result<(), DiskError> {
        Self::prepare_in(&*files, root)?;
        let layout = Layout::new(files.clone(), root);
        for directory in layout.directories() {
            files.create_directory(&directory).map_err(DiskError::at(&directory))?;
        }
        for top in [layout.objects(), layout.records()] {
            files.sync_directory(&top).map_err(DiskError::at(&top))?;
        }
        let path = layout.site_certificate();
        write_durably(&*files, &path, site_certificate).map_err(DiskError::at(&path))?;
        // The label comes last: a directory with one is complete.
        label.write(&layout)
    }

    /// Opens a disk and looks at all that is in it.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn open(root: &Path) -> Result<(Self, Scan), DiskError> {
        Self::open_in(Arc::new(SystemFiles), root)
    }

    /// The same with other file operations.
    ///
    /// # Errors
    /// As [`DiskDirectory::open`].
    pub fn open_in(files: Arc<dyn Files>, root: &Path) -> Result<(Self, Scan), DiskError> {
        let layout = Layout::new(files, root);
        let label = Label::read(&layout)?;
        let path = layout.lock();
        let lock = layout.files.lock(&path).map_err(|source| match source.kind() {
            ErrorKind::WouldBlock => DiskError::Locked { path: root.to_owned() },
            _ => DiskError::Io { path, source },
        })?;
        let is_read_only = layout.files.is_read_only(root).map_err(DiskError::at(root))?;
        // A process that was killed before its last sync leaves what looks stored and is not
        // durable: before anything here is vouched for, it is.
        tracing::info!(path = %root.display(), "what is on the file system is made durable");
        match layout.files.sync_all(root) {
            Err(source) if !is_read_only => {
                return Err(DiskError::NotDurable { path: root.to_owned(), source });
            }
            _ => {}
        }
        let scan = scan::scan(&layout, is_read_only)?;
        let no_site = DiskError::BadLabel { path: layout.label(), what: "no name of a site" };
        let site = SiteName::new(label.site.clone()).ok_or(no_site)?;
        let copies = Copies::open(layout.files.clone(), layout.catalog(), &site)?;
        let (copies, hidden) = (Mutex::new(copies), Hidden::new(scan.hidden()));
        let unfit = Mutex::new(scan.unfit.clone());
        let growths = Arc::default();
        Ok((Self { layout, label, copies, hidden, unfit, growths, _lock: lock }, scan))
    }

    /// What disk a directory is, without opening it.
    ///
    /// # Errors
    /// [`DiskError`]; [`DiskError::NoLabel`] if it is none.
    pub fn label_of(root: &Path) -> Result<Label, DiskError> {
        Label::read(&Layout::new(Arc::new(SystemFiles), root))
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
        self.layout.files.read(&path, RECORD_BYTES_MAX).map_err(DiskError::at(&path))
    }

    /// The directory that a file server serves as contents.
    pub fn objects(&self) -> PathBuf {
        self.layout.objects()
    }

    /// Where that file server keeps its state.
    pub fn state(&self) -> PathBuf {
        self.layout.state()
    }

    /// Contents that are there and must not be served.
    pub fn hidden(&self) -> &Hidden {
        &self.hidden
    }

    /// The octets of stored content, to be read.
    pub fn object(&self, content: ContentId) -> Option<File> {
        File::open(self.layout.object(content)).ok()
    }

    /// Octets of stored content from a place in it, at most so many; none behind its end.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn read_object(
        &self,
        content: ContentId,
        offset: u64,
        bytes_max: usize,
    ) -> std::io::Result<Vec<u8>> {
        self.layout.files.read_at(&self.layout.object(content), offset, bytes_max)
    }

    /// Begins to take content of `size` octets.
    ///
    /// # Errors
    /// [`StoreFailure`]; the room is asked for now. [`StoreFailure::Stopped`]: it was dropped.
    pub fn begin(&self, content: ContentId, size: u64) -> Result<Incoming, StoreFailure> {
        self.refuse_dropped(content)?;
        self.put_aside(content)?;
        Incoming::begin(self.layout.clone(), content, size)
    }

    /// Begins to take content that begins as an older version does; `bytes` are new.
    pub(crate) fn begin_grown(
        &self,
        content: ContentId,
        bytes: u64,
    ) -> Result<Incoming, StoreFailure> {
        self.refuse_dropped(content)?;
        self.put_aside(content)?;
        Incoming::open(self.layout.clone(), content, bytes)
    }

    /// What is remembered of files that are rewritten.
    pub(crate) fn growths(&self) -> &Arc<Growths> {
        &self.growths
    }

    /// What has a tombstone would be deleted at the next start, whoever has a receipt for it by
    /// then. In memory only the latest dropped contents are known.
    fn refuse_dropped(&self, content: ContentId) -> Result<(), StoreFailure> {
        match self.layout.tombstone(content).try_exists() {
            Ok(false) => Ok(()),
            Ok(true) => Err(StoreFailure::Stopped),
            Err(error) => Err(StoreFailure::of(&error)),
        }
    }

    fn put_all_aside(&self) -> Result<(), StoreFailure> {
        let unfit = self.unfit.lock().unwrap_or_else(PoisonError::into_inner).clone();
        unfit.into_iter().try_for_each(|content| self.put_aside(content))
    }

    /// Moves what could not be moved when the disk was opened, so that what comes in its place is
    /// served.
    fn put_aside(&self, content: ContentId) -> Result<(), StoreFailure> {
        let mut unfit = self.unfit.lock().unwrap_or_else(PoisonError::into_inner);
        if !unfit.contains(&content) {
            return Ok(());
        }
        match scan::quarantine(&self.layout, &Unsound::of(&self.layout, content)) {
            Ok(Some(_)) => {
                unfit.remove(&content);
                self.hidden.remove(content);
                Ok(())
            }
            Ok(None) => Err(StoreFailure::Full),
            Err(DiskError::Io { source, .. }) => Err(StoreFailure::of(&source)),
            Err(_) => Err(StoreFailure::Failing),
        }
    }

    /// Removes what was written of content that is not stored.
    pub fn discard(&self, content: ContentId) {
        // What is left is removed at the next start.
        for path in [self.layout.incoming_object(content), self.layout.incoming_record(content)] {
            let _ = self.layout.files.remove(&path);
        }
    }

    /// Keeps the highest epoch seen.
    ///
    /// # Errors
    /// [`StoreFailure`].
    pub fn keep_epoch(&self, epoch: LeaseEpoch) -> Result<(), StoreFailure> {
        let text = format!("{}\n", epoch.0);
        let Layout { root, files, .. } = &self.layout;
        let path = root.join("epoch.new");
        write_durably(&**files, &path, text.as_bytes())
            .and_then(|()| files.rename(&path, &self.layout.epoch()))
            .and_then(|()| files.sync_directory(root))
            .map_err(|error| StoreFailure::of(&error))
    }

    /// Keeps how far the disk is in reading what it has. It is no loss if that is gone.
    ///
    /// # Errors
    /// [`std::io::Error`].
    pub(crate) fn keep_scrub(&self, text: &str) -> std::io::Result<()> {
        let Layout { root, files, .. } = &self.layout;
        let path = root.join("scrub.new");
        write_durably(&**files, &path, text.as_bytes())?;
        files.rename(&path, &self.layout.scrub())
    }

    /// What was kept of that, or nothing.
    pub(crate) fn scrub(&self) -> String {
        let octets = self.layout.files.read(&self.layout.scrub(), SCRUB_BYTES_MAX);
        octets.ok().and_then(|octets| String::from_utf8(octets).ok()).unwrap_or_default()
    }

    /// Removes content, after that it is gone for good was recorded.
    ///
    /// # Errors
    /// [`StoreFailure`]; then it may be there or not, but is never taken again.
    pub fn remove(&self, content: ContentId) -> Result<(), StoreFailure> {
        self.remove_all(content).map_err(|error| StoreFailure::of(&error))
    }

    fn remove_all(&self, content: ContentId) -> std::io::Result<()> {
        let files = &self.layout.files;
        files.create(&self.layout.tombstone(content))?.sync()?;
        files.sync_directory(&self.layout.dropped())?;
        for path in [self.layout.object(content), self.layout.record(content)] {
            match files.remove(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            if let Some(directory) = path.parent() {
                files.sync_directory(directory)?;
            }
        }
        Ok(())
    }

    /// The record of content.
    pub fn record(&self, content: ContentId) -> Option<Record> {
        let octets = self.layout.files.read(&self.layout.record(content), RECORD_BYTES_MAX);
        Record::decode(&octets.ok()?)
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
        let files = &self.layout.files;
        write_durably(&**files, &path, &octets)
            .and_then(|()| files.rename(&path, &self.layout.record(content)))
            .map_err(|error| StoreFailure::of(&error))
    }

    /// Copies of the catalog's rows that are there.
    pub fn editions(&self) -> Editions {
        self.copies().editions()
    }

    /// Keeps rows of the catalog; they are on stable storage when this returns.
    ///
    /// # Errors
    /// [`StoreFailure`]; nothing of these orders is kept then.
    pub fn keep_rows(&self, orders: &[KeepOrder]) -> Result<(), StoreFailure> {
        self.copies().keep(orders)
    }

    /// Octets of a copy from a place in it; none behind its end.
    ///
    /// # Errors
    /// [`StoreFailure`].
    pub fn read_copy(&self, edition: u64, offset: u64) -> Result<Vec<u8>, StoreFailure> {
        self.copies().read(edition, offset).map_err(|error| StoreFailure::of(&error))
    }

    fn copies(&self) -> MutexGuard<'_, Copies> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Octets that are free and octets in all.
    ///
    /// # Errors
    /// [`StoreFailure`].
    pub fn room(&self) -> Result<(u64, u64), StoreFailure> {
        let room = self.layout.files.room(&self.layout.root);
        room.map_err(|error| StoreFailure::of(&error))
    }

    /// Writes to the disk and reads back, to see that it can be done. What could not be put into
    /// quarantine when the disk was opened is put there then.
    ///
    /// # Errors
    /// [`StoreFailure`].
    pub fn probe(&self) -> Result<(), StoreFailure> {
        let path = self.layout.incoming().join("probe");
        let files = &self.layout.files;
        let outcome = write_durably(&**files, &path, b"byname")
            .and_then(|()| files.read(&path, RECORD_BYTES_MAX));
        let removed = files.remove(&path);
        match outcome.and_then(|octets| removed.map(|()| octets)) {
            Ok(octets) if octets == b"byname" => self.put_all_aside(),
            Ok(_) => Err(StoreFailure::Failing),
            Err(error) => Err(StoreFailure::of(&error)),
        }
    }
}
