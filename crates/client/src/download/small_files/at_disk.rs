//! Steps of a batch of small files at the local disk.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::SmallFile;
use crate::download::context::DownloadOptions;
use crate::download::disk_queue::{DiskQueue, DiskTask, Wake};
use crate::download::local_dir::{IfThere, LocalDir};
use crate::download::part_file::{Attributes, os_name};
use crate::download::part_writer::QUEUED_BYTES_MAX;
use crate::download::progress::FileReport;
use crate::error::ClientError;

/// Files that wait for the disk, above which no more are asked for.
const QUEUED_FILES_MAX: usize = 256;

/// What stands at the targets of a batch.
pub(super) struct Looked {
    pub(super) missing: Vec<SmallFile>,
    /// Files that are left as they are.
    pub(super) untouched: Vec<(Box<[u8]>, FileReport)>,
}

/// A whole file that is to get its name.
pub(super) struct NewFile<'a> {
    pub(super) name: &'a [u8],
    pub(super) content: &'a [u8],
    pub(super) attributes: Attributes,
    pub(super) if_there: IfThere,
}

impl NewFile<'_> {
    fn put(&self, local: &LocalDir) -> Result<bool, ClientError> {
        local.put(os_name(self.name), self.content, self.attributes, self.if_there)
    }
}

type Placed = VecDeque<(usize, Result<bool, ClientError>)>;

/// Shared with the steps.
#[derive(Default)]
struct PutState {
    queued_files: AtomicUsize,
    queued_bytes: AtomicUsize,
    placed: Mutex<Placed>,
}

impl PutState {
    fn placed(&self) -> MutexGuard<'_, Placed> {
        self.placed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, place: usize, placed: Result<bool, ClientError>, engine: &Wake<'_>) {
        let mut all = self.placed();
        let is_first = all.is_empty();
        all.push_back((place, placed));
        drop(all);
        // Whoever takes the first takes all that came by then.
        if is_first {
            engine.wake();
        }
    }
}

/// The disk of a batch.
pub(super) struct SmallFilesDisk {
    queue: DiskQueue,
    state: Arc<PutState>,
}

impl SmallFilesDisk {
    pub(super) fn new(queue: DiskQueue) -> Self {
        SmallFilesDisk { queue, state: Arc::default() }
    }

    /// Looks which of the files are there already.
    pub(super) fn look(
        &self,
        local: &LocalDir,
        items: Vec<SmallFile>,
        options: DownloadOptions,
    ) -> DiskTask<Looked> {
        let local = local.clone();
        self.queue.submit(move || {
            let mut looked = Looked { missing: Vec::new(), untouched: Vec::new() };
            for mut item in items {
                let target = local.file(os_name(&item.name));
                let stat = target.stat();
                item.is_there = !matches!(stat, Ok(None));
                let stat = stat.ok().flatten();
                match stat.and_then(|stat| item.expected.outcome_at(&target, &stat, options)) {
                    Some(outcome) => {
                        looked.untouched.push((item.name, item.expected.untouched(outcome)));
                    }
                    None => looked.missing.push(item),
                }
            }
            Ok(looked)
        })
    }

    /// Puts a whole file in place.
    pub(super) fn put(&self, local: &LocalDir, place: usize, file: NewFile<'_>) {
        if self.queue.is_immediate() {
            return self.state.placed().push_back((place, file.put(local)));
        }
        let (local, state) = (local.clone(), Arc::clone(&self.state));
        let (name, content): (Box<[u8]>, Box<[u8]>) = (file.name.into(), file.content.into());
        let NewFile { attributes, if_there, .. } = file;
        self.state.queued_files.fetch_add(1, Ordering::Relaxed);
        self.state.queued_bytes.fetch_add(content.len(), Ordering::Relaxed);
        self.queue.post(move |engine| {
            let (name, content) = (&*name, &*content);
            let placed = NewFile { name, content, attributes, if_there }.put(&local);
            state.queued_files.fetch_sub(1, Ordering::Relaxed);
            state.queued_bytes.fetch_sub(content.len(), Ordering::Relaxed);
            state.add(place, placed, &engine);
        });
    }

    /// True if more files should be asked for.
    pub(super) fn has_room(&self) -> bool {
        self.state.queued_files.load(Ordering::Relaxed) < QUEUED_FILES_MAX
            && self.state.queued_bytes.load(Ordering::Relaxed) < QUEUED_BYTES_MAX
    }

    pub(super) fn has_placed(&self) -> bool {
        !self.state.placed().is_empty()
    }

    /// Files that have their names, or cannot have them.
    pub(super) fn take_placed(&self) -> Placed {
        std::mem::take(&mut *self.state.placed())
    }
}
