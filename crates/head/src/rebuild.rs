//! A site's catalog made again from its disks, after the head's state was lost.
//!
//! The rows come from the copy that is complete up to the latest transaction; every order in it is
//! verified by the site's key, so no disk is believed (`copy`). Contents that are newer than the
//! rows become part of the site by their own tickets and claims, which are verified, too
//! (`contents`). The new catalog's numbers and terms are above all that any disk has seen, so the
//! disks obey no head of before. It is put together beside the place where it belongs, checked, and
//! moved there at the very end: whoever is interrupted begins again.

mod contents;
mod copy;
mod error;
mod rebuilt;
mod remote;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use byname_catalog::engine::{EmbeddedEngine, Engine, EngineError};
use byname_catalog::id::{ContentId, DiskId, InodeId, LeaseEpoch};
use byname_catalog::{
    BaseRow, Caller, Failure, KeyHolder, Reader, Refusal, Seen, can_be_seen, check, export,
};
use byname_packet::NameRef;
use byname_security::cert::Certificate;
use byname_security::trust::{TrustPolicy, Validator};
use byname_site::{CopyState, DiskName, KeptRecord, Listed, SiteName};

use crate::backup::{Backup, Until};
use crate::head::{Head, HeadError, make_directory};

use contents::{Contents, ListError, NEWER_MAX};
use copy::Walk;
pub use error::{RebuildError, SourceError};
pub use rebuilt::Rebuilt;
use rebuilt::remove;
pub use remote::RemoteDisk;
pub use report::{Finding, FindingKind, RebuildReport, RebuiltDisk};

/// Where rows are put together.
const ROWS_FILE: &str = "rebuild-rows.redb";
/// Where the new catalog is.
const NEW_FILE: &str = "rebuild-new.redb";
/// Rows read at a time.
const PAGE_ROWS: usize = 1024;

/// A disk that things are read from. Nothing that it gives is believed without proof, but for what
/// only the disk can know: the checksums of a content, and that it is there.
pub trait DiskSource {
    /// The disk.
    fn name(&self) -> &DiskName;
    /// From now on only what one of these certificates' keys has signed is from this disk. A disk
    /// that is read directly signs nothing.
    fn set_certificates(&mut self, _certificates: Vec<Certificate>) {}
    /// What there is.
    ///
    /// # Errors
    /// [`SourceError`].
    fn state(&mut self) -> Result<CopyState, SourceError>;
    /// What is stored of a copy from a place in it; nothing behind its end.
    ///
    /// # Errors
    /// [`SourceError`].
    fn read_copy(&mut self, edition: u64, offset: u64) -> Result<Vec<u8>, SourceError>;
    /// Contents behind one of them, in order, and whether these are all.
    ///
    /// # Errors
    /// [`SourceError`].
    fn contents(&mut self, after: Option<ContentId>) -> Result<(Vec<Listed>, bool), SourceError>;
    /// What is kept beside a content.
    ///
    /// # Errors
    /// [`SourceError`].
    fn record(&mut self, content: ContentId) -> Result<KeptRecord, SourceError>;
}

/// What is made again, and where.
pub struct Rebuild<'a> {
    /// The site.
    pub site: &'a SiteName,
    /// The certificate of its key, which is believed.
    pub certificate: &'a Certificate,
    /// The head's directory.
    pub directory: &'a Path,
    /// The time.
    pub unix_ns: u64,
}

impl Rebuild<'_> {
    /// Looks at what the disks have, and puts a catalog together, without a change to the place
    /// where it belongs; [`Rebuilt::place`] does that.
    ///
    /// # Errors
    /// [`RebuildError`].
    pub fn prepare(&self, disks: &mut [Box<dyn DiskSource>]) -> Result<Rebuilt, RebuildError> {
        let (rows, states, mut report) = self.begin(disks)?;
        self.stage(disks, &states, &rows, &mut report)?;
        self.complete(rows, disks, (report, true))
    }

    /// The same with the rows of a backup. Newer contents of the disks become part of it if all of
    /// the backup is wanted; what is newer than a time that was asked for stays where it is.
    ///
    /// Without disks nobody knows which numbers they have seen: what comes out is to be looked at,
    /// and not to be served beside them.
    ///
    /// # Errors
    /// [`RebuildError`].
    pub fn restore(
        &self,
        (backup, until): (&Backup, Until),
        disks: &mut [Box<dyn DiskSource>],
    ) -> Result<Rebuilt, RebuildError> {
        let (rows, _, mut report) = self.begin(disks)?;
        let staged = backup.stage(&rows, until)?;
        self.refuse_other(&rows)?;
        report.through = staged.through;
        report.restored = Some(staged);
        // A copy of the catalog is not what is wanted of them.
        report.disks.iter_mut().for_each(|disk| disk.problem = None);
        self.complete(rows, disks, (report, until == Until::Latest))
    }

    /// Looks whether there is room for a catalog, and what the disks say.
    fn begin(
        &self,
        disks: &mut [Box<dyn DiskSource>],
    ) -> Result<(EmbeddedEngine, Vec<CopyState>, RebuildReport), RebuildError> {
        self.refuse_site()?;
        make_directory(self.directory)?;
        let mut report = RebuildReport::default();
        let mut states = Vec::new();
        for disk in disks.iter_mut() {
            let state = disk.state().map_err(of(&**disk))?;
            report.disks.push(RebuiltDisk::new(disk.name(), &state));
            states.push(state);
        }
        Ok((EmbeddedEngine::open(&self.fresh(ROWS_FILE)?)?, states, report))
    }

    /// Makes a catalog of rows and of what the disks have.
    fn complete(
        &self,
        rows: EmbeddedEngine,
        disks: &mut [Box<dyn DiskSource>],
        (mut report, adopts): (RebuildReport, bool),
    ) -> Result<Rebuilt, RebuildError> {
        let states = self.ask_again(disks, &rows)?;
        let seen = self.take_contents((disks, adopts), &states, &rows, &mut report)?;
        let new_path = self.fresh(NEW_FILE)?;
        self.build(&rows, &new_path, seen)?;
        drop(rows);
        remove(&self.directory.join(ROWS_FILE))?;
        let (directory, is_for_a_look) = (self.directory.to_owned(), disks.is_empty());
        Ok(Rebuilt { report, new_path, directory, is_for_a_look })
    }

    /// Rows of another site than this one are not taken.
    fn refuse_other(&self, rows: &dyn Engine) -> Result<(), RebuildError> {
        let name = Reader::new(rows, &Caller::Head)?.site()?;
        match NameRef::from_value(&name).ok() == Some(self.site.view()) {
            true => Ok(()),
            false => Err(RebuildError::OtherSite),
        }
    }

    /// A catalog that is there stays as it is.
    fn refuse_site(&self) -> Result<(), RebuildError> {
        match Head::open(self.directory) {
            Ok(_) => Err(HeadError::SiteExists { directory: self.directory.to_owned() }.into()),
            Err(HeadError::NoSite { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The path of a file which is not there: what somebody left who was interrupted is removed.
    fn fresh(&self, name: &str) -> Result<PathBuf, RebuildError> {
        let path = self.directory.join(name);
        remove(&path)?;
        Ok(path)
    }

    fn validator(&self) -> Validator {
        let mut policy = TrustPolicy::default();
        policy.add_anchor(self.site.view().to_name(), self.certificate.key_id());
        let mut validator = Validator::new(policy);
        validator.give_certificate(self.certificate.clone());
        validator
    }

    fn now_s(&self) -> u64 {
        self.unix_ns / 1_000_000_000
    }

    /// Puts together the rows of the copy that is complete up to the latest transaction.
    fn stage(
        &self,
        disks: &mut [Box<dyn DiskSource>],
        states: &[CopyState],
        rows: &dyn Engine,
        report: &mut RebuildReport,
    ) -> Result<(), RebuildError> {
        let mut best: Option<(usize, Walk)> = None;
        let mut order: Vec<usize> = (0..disks.len()).collect();
        let told = |index: usize| states[index].complete.unwrap_or_default().through;
        order.sort_by_key(|index| std::cmp::Reverse(told(*index)));
        for index in order {
            let Some(copy) = states[index].complete else { continue };
            // No other copy is said to be as new as this one is.
            if best.as_ref().is_some_and(|(_, walk)| walk.through() >= copy.through) {
                break;
            }
            let mut walk = Walk::new(self.site, copy.edition);
            let verifier = (&mut self.validator(), self.now_s());
            walk.verify(&mut *disks[index], verifier).map_err(of(&*disks[index]))?;
            let of_disk = &mut report.disks[index];
            of_disk.verified = walk.through();
            if walk.through() < copy.through {
                of_disk.problem = Some(walk.problem());
            }
            if walk.is_complete() && best.as_ref().is_none_or(|it| it.1.through() < walk.through())
            {
                best = Some((index, walk));
            }
        }
        let no_copy = || RebuildError::NoCopy { site: self.site.view().to_string() };
        let (index, walk) = best.ok_or_else(no_copy)?;
        walk.stage(&mut *disks[index], rows, (&mut self.validator(), self.now_s()))?;
        self.refuse_other(rows)?;
        report.through = walk.through();
        report.source = Some(disks[index].name().id);
        Ok(())
    }

    /// The rows have the keys of all disks: what these say counts from here on.
    fn ask_again(
        &self,
        disks: &mut [Box<dyn DiskSource>],
        rows: &dyn Engine,
    ) -> Result<Vec<CopyState>, RebuildError> {
        let reader = Reader::new(rows, &Caller::Head)?;
        let mut certificates: BTreeMap<DiskId, Vec<Certificate>> = BTreeMap::new();
        let mut after = Vec::new();
        loop {
            let page = reader.keys(&after, PAGE_ROWS)?;
            for (_, key) in &page {
                if let (KeyHolder::Disk(disk), Ok(certificate)) =
                    (&key.holder, Certificate::decode(&key.certificate))
                {
                    certificates.entry(*disk).or_default().push(certificate);
                }
            }
            if page.len() < PAGE_ROWS {
                break;
            }
            after = page.last().map(|(name, _)| name.clone()).unwrap_or_default();
        }
        let ask = |disk: &mut Box<dyn DiskSource>| {
            disk.set_certificates(certificates.remove(&disk.name().id).unwrap_or_default());
            disk.state().map_err(of(&**disk))
        };
        disks.iter_mut().map(ask).collect()
    }

    /// Looks at the contents of all disks; the highest numbers that were seen.
    fn take_contents(
        &self,
        (disks, adopts): (&mut [Box<dyn DiskSource>], bool),
        states: &[CopyState],
        rows: &dyn Engine,
        report: &mut RebuildReport,
    ) -> Result<Seen, RebuildError> {
        let known = report.through.0;
        let mut contents = Contents::new(known, NEWER_MAX).adopting(adopts);
        let reader = Reader::new(rows, &Caller::Head)?;
        for (disk, of_disk) in disks.iter_mut().zip(&mut report.disks) {
            of_disk.contents =
                contents.list(&reader, &mut **disk).map_err(|error| match error {
                    ListError::Source(source) => of(&**disk)(source),
                    ListError::TooMany(max) => RebuildError::TooMany { disk: disk.name().id, max },
                    ListError::Catalog(error) => error.into(),
                })?;
        }
        drop(reader);
        for (state, of_disk) in states.iter().zip(&mut report.disks) {
            of_disk.look_at_numbers(state, known);
        }
        let can_be_seen = |number: &u64| can_be_seen(*number, known);
        let highest = states.iter().map(|state| state.highest).filter(can_be_seen);
        let epochs = states.iter().map(|state| state.epoch.0).filter(can_be_seen);
        let number = highest.chain([contents.highest(), known]).max().unwrap_or_default();
        let verifier = (self.site, &mut self.validator(), self.now_s());
        let next = number.checked_add(1).ok_or(Failure::from(Refusal::CountersExhausted));
        let fresh = InodeId(next?);
        contents.adopt(disks, verifier, (rows, fresh), report)?;
        contents.find_lost(&Reader::new(rows, &Caller::Head)?, self.site, report)?;
        if disks.is_empty() {
            // Where nobody looked nothing is out of reach.
            report.findings.clear();
        }
        let epoch = LeaseEpoch(epochs.max().unwrap_or_default());
        Ok(Seen { number: fresh.0, epoch })
    }

    /// The catalog of the rows, checked.
    fn build(&self, rows: &dyn Engine, path: &Path, seen: Seen) -> Result<(), RebuildError> {
        let new = EmbeddedEngine::open(path)?;
        let mut pages =
            Pages { engine: rows, page: Vec::new().into_iter(), last: None, error: None };
        let built = byname_catalog::rebuild(&new, &mut pages, seen, self.unix_ns);
        if let Some(error) = pages.error {
            return Err(error.into());
        }
        built?;
        let found = check(&*new.snapshot()?)?;
        match found.first() {
            None => Ok(()),
            Some(first) => {
                Err(RebuildError::Inconsistent { count: found.len(), first: first.what })
            }
        }
    }
}

fn of(disk: &dyn DiskSource) -> impl FnOnce(SourceError) -> RebuildError + use<> {
    let disk = disk.name().id;
    move |source| RebuildError::Source { disk, source }
}

/// All rows of an engine, page by page.
struct Pages<'a> {
    engine: &'a dyn Engine,
    page: std::vec::IntoIter<BaseRow>,
    last: Option<BaseRow>,
    error: Option<EngineError>,
}

impl Iterator for Pages<'_> {
    type Item = BaseRow;

    fn next(&mut self) -> Option<BaseRow> {
        let row = self.page.next().or_else(|| {
            let after = self.last.as_ref().map(|row| (row.table, row.key.as_slice()));
            let rows = self.engine.snapshot().and_then(|rows| export(&*rows, after, PAGE_ROWS));
            match rows {
                Ok(rows) => self.page = rows.into_iter(),
                Err(error) => self.error = Some(error),
            }
            self.page.next()
        })?;
        self.last = Some(row.clone());
        Some(row)
    }
}
