//! Placing: files that are whole get their names, many after one sync.

use std::path::PathBuf;

use crate::download::disk_queue::{DiskQueue, DiskTask};
use crate::download::part_file::{PartFile, disk_error};
use crate::download::progress::FileReport;
use crate::error::ClientError;

/// A file that is whole and waits for the sync after which it gets its name.
pub(crate) struct Whole {
    pub(crate) part: PartFile,
    pub(crate) report: FileReport,
    /// For the report of failures.
    pub(crate) shown: PathBuf,
}

/// Outcome of placing some files.
pub(crate) struct Placed {
    pub(crate) files: Vec<PlacedFile>,
    /// The names may not survive a power cut: there is no going on.
    pub(crate) names: Result<(), ClientError>,
}

/// One of them.
pub(crate) struct PlacedFile {
    pub(crate) shown: PathBuf,
    pub(crate) report: FileReport,
    pub(crate) outcome: Result<(), ClientError>,
}

/// The job; done when all have their names. It goes on at the disk when it is dropped.
pub(crate) type Placing = DiskTask<Placed>;

/// Begins the job.
pub(crate) fn begin(batch: Vec<Whole>, is_exclusive: bool, disk: &DiskQueue) -> Placing {
    disk.submit(move || Ok(place(batch, is_exclusive)))
}

/// One sync for the contents of all, then the renames, then one sync for the names.
fn place(batch: Vec<Whole>, is_exclusive: bool) -> Placed {
    let synced = sync_devices(&batch);
    let rename = |whole: &Whole| match &synced {
        Ok(()) => whole.part.rename(is_exclusive),
        Err(source) => Err(disk_error(whole.part.shown(), source.kind())),
    };
    let outcomes: Vec<_> = batch.iter().map(rename).collect();
    let names = sync_devices(&batch).map_err(|source| {
        let first = batch.first().map(|whole| whole.part.shown());
        disk_error(first.unwrap_or("".as_ref()), source)
    });
    let files = batch.into_iter().zip(outcomes).map(|(whole, outcome)| {
        let Whole { report, shown, .. } = whole;
        PlacedFile { shown, report, outcome }
    });
    Placed { files: files.collect(), names }
}

/// One sync for each device that holds files of the batch.
fn sync_devices(batch: &[Whole]) -> std::io::Result<()> {
    let mut synced = Vec::new();
    for whole in batch {
        let device = whole.part.device();
        if !synced.contains(&device) {
            whole.part.sync_device()?;
            synced.push(device);
        }
    }
    Ok(())
}
