//! `--access-log`: a JSON line for what each reader got of an object.
//!
//! The file is only appended to. SIGHUP opens it anew, so that logrotate may move it away, and
//! takes the share of objects that are recorded from the configuration.

use crate::exit::{Failure, Outcome};
use crate::output;
use byname_store::{AccessRecord, AccessSink};
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Names of readers and what they read are nobody else's business.
const MODE: u32 = 0o640;

/// The file.
pub(crate) struct AccessLog {
    path: PathBuf,
    file: Mutex<File>,
    one_in: AtomicU64,
    /// A record could not be written, and that was said.
    has_failed: AtomicBool,
}

impl AccessLog {
    /// Opens it for one object in `one_in`, 0 for none.
    pub(crate) fn open(path: &Path, one_in: u64) -> Outcome<Self> {
        let file = Mutex::new(append(path)?);
        let (path, one_in) = (path.to_owned(), AtomicU64::new(one_in));
        Ok(Self { path, file, one_in, has_failed: AtomicBool::new(false) })
    }

    pub(crate) fn set_one_in(&self, one_in: u64) {
        self.one_in.store(one_in, Ordering::Relaxed);
    }

    /// Opens the file anew; it stays with the old one if that fails.
    pub(crate) fn reopen(&self) -> Outcome {
        let file = append(&self.path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file;
        self.has_failed.store(false, Ordering::Relaxed);
        Ok(())
    }
}

fn append(path: &Path) -> Outcome<File> {
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(MODE).open(path);
    file.map_err(|error| Failure::disk(path, error))
}

impl AccessSink for AccessLog {
    fn one_in(&self) -> u64 {
        self.one_in.load(Ordering::Relaxed)
    }

    fn record(&self, record: &AccessRecord) {
        let line = output::json_text(json!({
            "time": output::time_utc(record.unix_ns),
            "seconds": record.lasted_ns as f64 / 1e9,
            "peer": record.peer,
            "name": output::name(record.name.view()),
            "lookups": record.lookups,
            "absences": record.absences,
            "refusals": record.refusals,
            "segments": record.segments,
            "bytes": record.bytes,
        }));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // One call a line, so that whoever reads along sees whole ones.
        let written = file.write_all(format!("{line}\n").as_bytes());
        if let Err(error) = written
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            output::err_line(&format!("{}: {error}; records are lost", self.path.display()));
        }
    }
}
