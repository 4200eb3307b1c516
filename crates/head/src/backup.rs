//! Backups of a site's catalog: taken while its head goes on, and made a catalog again.
//!
//! A backup is a file with all rows as of one transaction (a *snapshot*), or a directory with
//! snapshots and files with what transactions changed after them (*segments*). Rows are those from
//! which others follow, as copies on disks have them. They are read while others change them and
//! made good by the log (`take`), so taking one holds nobody up. What is read is put together in an
//! engine of its own, so memory stays small whatever the site is (`part` has the format).
//!
//! The same rows as lines of JSON are an *export* (`lines`); it can be read wherever a backup can.
//!
//! [`Backup::stage`] gives the rows of a transaction or a time back. A catalog is made of them by
//! [`crate::rebuild::Rebuild::restore`], which raises all numbers above what was seen.

mod error;
mod lines;
mod part;
mod rows;
mod seal;
mod source;
mod take;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use byname_catalog::engine::Engine;
use byname_catalog::id::TransactionNumber;
use byname_catalog::{Caller, Reader, RowChange, Staging};

pub use error::BackupError;
pub use rows::Staged;
pub use seal::SealCheck;
pub use source::BackupSource;
pub use take::{Taken, export_lines, take, take_into};

use part::{FrameKind, PartReader, SEGMENT, SNAPSHOT, SUFFIX};
use rows::{digest, hex};

/// Up to where changes are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// All there are.
    Latest,
    /// Up to this transaction.
    Transaction(TransactionNumber),
    /// What the head's clock said was not later, in nanoseconds since 1970.
    Time(u64),
}

impl Until {
    fn reaches(self, transaction: TransactionNumber, at_ns: u64) -> bool {
        match self {
            Self::Latest => true,
            Self::Transaction(last) => transaction <= last,
            Self::Time(last_ns) => at_ns <= last_ns,
        }
    }
}

/// A file of a backup, by what it says at its beginning.
#[derive(Debug, Clone)]
struct Part {
    path: PathBuf,
    site: String,
    /// The transaction that it is of, or that it begins behind.
    at: TransactionNumber,
    at_ns: u64,
    /// It is one of lines.
    is_text: bool,
}

impl Part {
    /// What a file is, and whether it has all rows.
    fn read(path: PathBuf) -> Result<(bool, Self), BackupError> {
        let text = lines::about(&path)?;
        let is_text = text.is_some();
        let about = match text {
            Some(about) => about,
            None => part::about(&path)?,
        };
        let number = |field: &str| about[field].as_u64();
        let site = about["site"].as_str().map(str::to_owned);
        let is_snapshot = is_text || about["kind"] == "snapshot";
        match (number("transaction"), number("at_ns"), site) {
            (Some(at), Some(at_ns), Some(site)) => {
                Ok((is_snapshot, Self { path, site, at: TransactionNumber(at), at_ns, is_text }))
            }
            _ => Err(BackupError::Damaged { path, what: "it does not say what it is" }),
        }
    }

    /// Puts the rows together that it has.
    fn stage(&self, engine: &dyn Engine) -> Result<Staged, BackupError> {
        if self.is_text {
            let staged = lines::stage(&self.path, engine)?;
            return Ok(Staged { through: self.at, at_ns: self.at_ns, ..staged });
        }
        let mut reader = PartReader::open(&self.path)?;
        let about = reader.about()?;
        let mut staging = Staging::new(engine);
        loop {
            match reader.frame()? {
                (FrameKind::Rows, rows) => apply(&rows, &mut staging, &reader)?,
                (FrameKind::Sum, _) => break,
                (FrameKind::End | FrameKind::Seal, _) => {}
                _ => return Err(reader.damaged("there is something else than rows in it")),
            }
        }
        staging.flush()?;
        let (found, rows) = digest(engine)?;
        if about["digest"] != hex(&found) {
            return Err(reader.damaged("its rows have another digest"));
        }
        Ok(Staged { through: self.at, at_ns: self.at_ns, rows, digest: found })
    }
}

/// See the module.
#[derive(Debug)]
pub struct Backup {
    /// In the order of their transactions.
    snapshots: Vec<Part>,
    segments: Vec<Part>,
}

impl Backup {
    /// A file, or a directory with several.
    ///
    /// # Errors
    /// [`BackupError`].
    pub fn open(path: &Path) -> Result<Self, BackupError> {
        let mut backup = Self { snapshots: Vec::new(), segments: Vec::new() };
        if !path.is_dir() {
            backup.take_part(path.to_owned())?;
        } else {
            for entry in fs::read_dir(path).map_err(part::of(path))? {
                let entry = entry.map_err(part::of(path))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_part = [SNAPSHOT, SEGMENT].iter().any(|it| name.starts_with(it));
                if is_part && name.ends_with(SUFFIX) {
                    backup.take_part(entry.path())?;
                }
            }
        }
        for parts in [&mut backup.snapshots, &mut backup.segments] {
            parts.sort_by_key(|part| part.at);
        }
        match backup.snapshots.is_empty() {
            true => Err(BackupError::Empty { path: path.to_owned() }),
            false => Ok(backup),
        }
    }

    fn take_part(&mut self, path: PathBuf) -> Result<(), BackupError> {
        let (is_snapshot, part) = Part::read(path)?;
        if is_snapshot { &mut self.snapshots } else { &mut self.segments }.push(part);
        Ok(())
    }

    /// Name of the site that it is of, as a URI.
    pub fn site(&self) -> &str {
        self.snapshots.first().map_or("", |part| &part.site)
    }

    /// Puts the rows together as they were, in an engine that has nothing else. Every file that is
    /// read counts by its sum, and rows by the digest of when they were taken.
    ///
    /// # Errors
    /// [`BackupError`]; the engine is of no use then.
    pub fn stage(&self, engine: &dyn Engine, until: Until) -> Result<Staged, BackupError> {
        let fits = |part: &&Part| until.reaches(part.at, part.at_ns);
        let Some(snapshot) = self.snapshots.iter().rfind(fits) else {
            let from = self.snapshots.first().map_or(0, |part| part.at.0);
            return Err(BackupError::OutOfRange { has: format!("changes from {from} on") });
        };
        let mut staged = snapshot.stage(engine)?;
        for segment in &self.segments {
            if segment.site != snapshot.site {
                return Err(BackupError::OtherSite { found: segment.site.clone() });
            }
            if segment.at > staged.through {
                break;
            }
            if !apply_segment(segment, engine, (&mut staged, until))? {
                break;
            }
        }
        if let Until::Transaction(wanted) = until
            && staged.through < wanted
        {
            let has = format!("changes up to {} without a gap", staged.through.0);
            return Err(BackupError::OutOfRange { has });
        }
        (staged.digest, staged.rows) = digest(engine)?;
        // New numbers are above this one, so nobody is believed who says another than the rows do.
        if Reader::new(engine, &Caller::Head)?.last_transaction()? != staged.through {
            let what = "its rows are as of another change than it says";
            return Err(BackupError::Damaged { path: snapshot.path.clone(), what });
        }
        Ok(staged)
    }

    /// Reads every file to its end, and looks at its sum; how many there are, and their octets.
    ///
    /// # Errors
    /// [`BackupError`] of the first that does not count.
    pub fn verify(&self) -> Result<(usize, u64), BackupError> {
        let (mut count, mut octets) = (0, 0);
        for part in self.snapshots.iter().chain(&self.segments) {
            count += 1;
            octets += fs::metadata(&part.path).map_err(part::of(&part.path))?.len();
            if part.is_text {
                // Its digest is that of its rows.
                continue;
            }
            let mut reader = PartReader::open(&part.path)?;
            while reader.frame()?.0 != FrameKind::Sum {}
        }
        Ok((count, octets))
    }

    /// Sees that the head of the site vouches for every file, as it is now. Lines of JSON have no
    /// seal.
    ///
    /// # Errors
    /// [`BackupError`] of the first for which it does not.
    pub fn check_seals(&self, check: &SealCheck<'_>) -> Result<(), BackupError> {
        for part in self.snapshots.iter().chain(&self.segments) {
            let path = || part.path.clone();
            if part.is_text {
                return Err(BackupError::Unsealed { path: path() });
            }
            let mut reader = PartReader::open(&part.path)?;
            while reader.frame()?.0 != FrameKind::Sum {}
            match reader.sealed() {
                None => return Err(BackupError::Unsealed { path: path() }),
                Some((sum, seal)) if check.is_genuine(seal, sum) => {}
                Some(_) => return Err(BackupError::Forged { path: path() }),
            }
        }
        Ok(())
    }

    /// Writes the rows as they were as lines of JSON. `directory` is where they are put together.
    ///
    /// # Errors
    /// [`BackupError`]; what was written is of no use then.
    pub fn export(
        &self,
        until: Until,
        directory: &Path,
        out: &mut dyn Write,
    ) -> Result<Staged, BackupError> {
        let workspace = take::Workspace::new(directory)?;
        let staged = self.stage(workspace.engine(), until)?;
        lines::write(workspace.engine(), (self.site(), &staged), out)?;
        Ok(staged)
    }
}

/// Applies what comes behind the last transaction that is staged; false if no more is wanted.
fn apply_segment(
    part: &Part,
    engine: &dyn Engine,
    (staged, until): (&mut Staged, Until),
) -> Result<bool, BackupError> {
    let mut reader = PartReader::open(&part.path)?;
    reader.about()?;
    let mut staging = Staging::new(engine);
    let (mut is_wanted, mut is_end) = (false, false);
    loop {
        match reader.frame()? {
            (FrameKind::Transaction, payload) => {
                let record = reader.parsed(&payload)?;
                let number = TransactionNumber(record["transaction"].as_u64().unwrap_or_default());
                let at_ns = record["at_ns"].as_u64().unwrap_or_default();
                is_wanted = number > staged.through && !is_end;
                if is_wanted && !until.reaches(number, at_ns) {
                    (is_wanted, is_end) = (false, true);
                }
                if is_wanted && number.0 != staged.through.0 + 1 {
                    return Err(reader.damaged("there are changes missing in it"));
                }
                if is_wanted {
                    (staged.through, staged.at_ns) = (number, at_ns);
                }
            }
            (FrameKind::Rows, rows) if is_wanted => apply(&rows, &mut staging, &reader)?,
            (FrameKind::Rows | FrameKind::End | FrameKind::Seal, _) => {}
            (FrameKind::Sum, _) => break,
            (FrameKind::About, _) => return Err(reader.damaged("it has two beginnings")),
        }
    }
    staging.flush()?;
    Ok(!is_end)
}

fn apply(
    mut rows: &[u8],
    staging: &mut Staging<'_>,
    reader: &PartReader,
) -> Result<(), BackupError> {
    while let Ok(Some((change, behind))) = RowChange::first(rows) {
        staging.apply(change)?;
        rows = behind;
    }
    match rows.is_empty() {
        true => Ok(()),
        false => Err(reader.damaged("a row of it cannot be read")),
    }
}
