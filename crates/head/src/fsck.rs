//! Comparing what the catalog has with what the disks have, both ways, while everybody goes on.
//!
//! [`Fsck`] is without I/O: the head's thread for disks asks it for orders and hands it answers, a
//! page of every disk at a time. The catalog's rows are read before a disk is asked and again when
//! it has answered: what is a replica both times must have been on the disk in between, and what is
//! none the second time, and belongs to no open attempt, is nobody's. So nothing has to stand
//! still. Then all files are looked at, and those with findings are given their names.
//!
//! Bounded: a page of each disk and of the catalog at a time, and [`FINDINGS_MAX`] findings;
//! replicas that are not as they should be are held as pairs of numbers until the end, and the
//! names of directories at the end. A disk that lists without end is ended by turning it off.

mod files;
mod finding;
mod remedies;
mod report;

use std::collections::{BTreeMap, BTreeSet};

use byname_catalog::id::{ContentId, DiskId, InodeId, LeaseEpoch};
use byname_catalog::{DiskState, Failure, NamedEntry, Reader, Refusal, Resolution};
use byname_packet::SignError;
use byname_site::{DiskName, List, ListAnswer, Listed, SiteName, Stamp};
use byname_transfer::server::SharedSigner;

pub(crate) use files::Names;
pub(crate) use finding::{Finding, Problem, Unlisted, Wanted};
pub(crate) use report::{FsckReport, FsckReports, ScannedDisk};

/// Rows of the catalog that are read at a time.
const ROWS: usize = 1024;
/// Findings that are kept; the rest is counted.
const FINDINGS_MAX: usize = 100_000;
/// Orders in a row without answer after which a disk is given up.
const SILENCES_MAX: u32 = 3;
/// The same for a disk that answers other orders, and is reading.
const READING_SILENCES_MAX: u32 = 3600;

/// A disk that is being listed.
struct Scan {
    id: DiskId,
    name: DiskName,
    generation: u64,
    after: Option<ContentId>,
    /// What should be there, as of when it was asked; all of it, or a page.
    expected: Vec<ContentId>,
    is_all_expected: bool,
    /// The order in flight. It is repeated as it is.
    wire: Option<Vec<u8>>,
    silences: u32,
    listed: u64,
    listed_bytes: u64,
    end: Option<Result<(), Unlisted>>,
}

enum Stage {
    Disks,
    Files { after: Option<InodeId> },
    Names { after: Option<NamedEntry>, names: Names },
    Done,
}

/// See the module.
pub(crate) struct Fsck {
    is_reread: bool,
    /// What was found is mended as far as it can be.
    pub(crate) is_repaired: bool,
    scans: Vec<Scan>,
    stage: Stage,
    findings: Vec<Finding>,
    more_findings: u64,
    /// Replicas that are not there, or not what they should be.
    bad: BTreeSet<(ContentId, DiskId)>,
    files: u64,
}

impl Fsck {
    /// Begins; `is_reread` has the disks read all octets anew.
    pub(crate) fn new(
        reader: &Reader<'_>,
        Wanted { is_reread, is_repaired }: Wanted,
    ) -> Result<Self, Failure> {
        let scan = |(id, disk): (DiskId, byname_catalog::Disk)| Scan {
            id,
            name: DiskName { place: disk.label, id },
            generation: disk.generation,
            after: None,
            expected: Vec::new(),
            is_all_expected: false,
            wire: None,
            silences: 0,
            listed: 0,
            listed_bytes: 0,
            end: (disk.state == DiskState::Off).then_some(Err(Unlisted::Off)),
        };
        Ok(Self {
            is_reread,
            is_repaired,
            scans: reader.disks()?.into_iter().map(scan).collect(),
            stage: Stage::Disks,
            findings: Vec::new(),
            more_findings: 0,
            bad: BTreeSet::new(),
            files: 0,
        })
    }

    /// The next orders, one for each disk that has not come to its end. If there are none,
    /// [`Fsck::step`] is next.
    pub(crate) fn orders(
        &mut self,
        reader: &Reader<'_>,
        (site, epoch, signer): (&SiteName, LeaseEpoch, &SharedSigner),
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<Vec<(DiskId, DiskName, Vec<u8>)>, Failure> {
        let mut orders = Vec::new();
        for scan in self.scans.iter_mut().filter(|scan| scan.end.is_none()) {
            // However much a disk says that it has, its operator can end it.
            if reader.disk(scan.id)?.state == DiskState::Off {
                scan.end = Some(Err(Unlisted::Off));
                continue;
            }
            if scan.wire.is_none() {
                scan.expected = reader.replicas(scan.id, scan.after, ROWS)?;
                scan.is_all_expected = scan.expected.len() < ROWS;
                match scan.sign(self.is_reread, (site, epoch, signer), stamp()) {
                    Ok(wire) => scan.wire = Some(wire),
                    Err(error) => {
                        tracing::warn!(%error, disk = scan.id.0, "cannot sign an order");
                        scan.end = Some(Err(Unlisted::Unsigned));
                    }
                }
            }
            orders.extend(scan.wire.clone().map(|wire| (scan.id, scan.name.clone(), wire)));
        }
        if orders.is_empty() && matches!(self.stage, Stage::Disks) {
            self.stage = Stage::Files { after: None };
        }
        Ok(orders)
    }

    /// What a disk has answered; `None` if nothing that counts. `is_well` says that it answers
    /// other orders.
    pub(crate) fn handle(
        &mut self,
        reader: &Reader<'_>,
        (disk, is_well): (DiskId, bool),
        answer: Option<ListAnswer>,
    ) -> Result<(), Failure> {
        let Some(index) = self.scans.iter().position(|scan| scan.id == disk) else {
            return Ok(());
        };
        let scan = &mut self.scans[index];
        match answer {
            None => {
                scan.silences += 1;
                let is_reading = self.is_reread && is_well;
                let silences_max = if is_reading { READING_SILENCES_MAX } else { SILENCES_MAX };
                if scan.silences >= silences_max {
                    scan.end = Some(Err(Unlisted::Silent));
                }
            }
            Some(ListAnswer::Refused(why)) if why.is_retryable() => {
                scan.silences += 1;
                if scan.silences >= READING_SILENCES_MAX {
                    scan.end = Some(Err(Unlisted::Refused(why)));
                }
            }
            Some(ListAnswer::Refused(why)) => scan.end = Some(Err(Unlisted::Refused(why))),
            Some(ListAnswer::Page { contents, is_last, .. }) => {
                (scan.wire, scan.silences) = (None, 0);
                self.compare(index, reader, (&contents, is_last))?;
            }
        }
        Ok(())
    }

    /// A page beside what should be there, as far as both reach.
    fn compare(
        &mut self,
        index: usize,
        reader: &Reader<'_>,
        (contents, is_last): (&[Listed], bool),
    ) -> Result<(), Failure> {
        let scan = &mut self.scans[index];
        let disk = scan.id;
        let end = |is_all: bool, last: Option<ContentId>| if is_all { None } else { last };
        let listed_end = end(is_last, contents.last().map(|listed| listed.content));
        let expected_end = end(scan.is_all_expected, scan.expected.last().copied());
        // The earlier of the two; none is the end of everything.
        let bound = match (listed_end, expected_end) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let is_within = |content: &ContentId| bound.is_none_or(|bound| *content <= bound);
        let expected = std::mem::take(&mut scan.expected);
        let before = scan.after;
        if bound.is_some() && bound <= before {
            scan.end = Some(Err(Unlisted::Stuck));
            return Ok(());
        }
        scan.after = bound;
        scan.end = bound.is_none().then_some(Ok(()));
        // What is not behind the place that was asked for is no answer to it.
        let listed: BTreeMap<ContentId, &Listed> = contents
            .iter()
            .filter(|it| is_within(&it.content) && before.is_none_or(|last| last < it.content))
            .map(|it| (it.content, it))
            .collect();
        scan.listed += listed.len() as u64;
        let bytes = listed.values().map(|it| it.size);
        scan.listed_bytes = bytes.fold(scan.listed_bytes, u64::saturating_add);
        for content in expected.iter().filter(|content| is_within(content)) {
            if !listed.contains_key(content)
                && reader.resolution(disk, *content)? == Resolution::Keep
            {
                self.note_bad(Problem::Missing, disk, (*content, size_of(reader, *content)?));
            }
        }
        for listed in listed.into_values() {
            self.look_at(reader, disk, listed)?;
        }
        Ok(())
    }

    /// A content that a disk has.
    fn look_at(
        &mut self,
        reader: &Reader<'_>,
        disk: DiskId,
        listed: &Listed,
    ) -> Result<(), Failure> {
        let Listed { content, size, root } = *listed;
        let problem = match reader.resolution(disk, content)? {
            Resolution::Wait => return Ok(()),
            Resolution::Keep => match reader.content(content) {
                Ok(wanted) if wanted.size != size => Problem::Size,
                Ok(wanted) if wanted.root != root => Problem::Content,
                Ok(_) | Err(Failure::Refused(_)) => return Ok(()),
                Err(error) => return Err(error),
            },
            _ if reader.is_leaving(disk, content)? => Problem::Leaving,
            Resolution::Drop => Problem::Orphaned,
            Resolution::Unknown => Problem::Unknown,
        };
        match problem {
            Problem::Size | Problem::Content => self.note_bad(problem, disk, (content, size)),
            _ => self.note(Finding::on_disk(problem, disk, (content, size))),
        }
        Ok(())
    }

    fn note_bad(&mut self, problem: Problem, disk: DiskId, (content, size): (ContentId, u64)) {
        self.bad.insert((content, disk));
        self.note(Finding::on_disk(problem, disk, (content, size)));
    }

    fn note(&mut self, finding: Finding) {
        match self.findings.len() < FINDINGS_MAX {
            true => self.findings.push(finding),
            false => self.more_findings += 1,
        }
    }

    /// What there is to tell by now.
    pub(crate) fn report(&mut self) -> FsckReport {
        let disks = self.scans.iter().map(|scan| ScannedDisk {
            id: scan.id,
            listed: scan.listed,
            listed_bytes: scan.listed_bytes,
            end: scan.end,
        });
        let is_done = self.is_done();
        let findings = if is_done { std::mem::take(&mut self.findings) } else { Vec::new() };
        FsckReport {
            is_running: !is_done,
            failure: None,
            disks: disks.collect(),
            files: self.files,
            findings,
            more_findings: self.more_findings,
        }
    }

    /// True if all was compared.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }
}

impl Scan {
    fn sign(
        &self,
        is_reread: bool,
        (site, epoch, signer): (&SiteName, LeaseEpoch, &SharedSigner),
        stamp: Stamp,
    ) -> Result<Vec<u8>, SignError> {
        let Self { generation, after, .. } = *self;
        List { epoch, generation, is_reread, after }.encode(site, &self.name, &**signer, stamp)
    }
}

fn size_of(reader: &Reader<'_>, content: ContentId) -> Result<u64, Failure> {
    match reader.content(content) {
        Ok(content) => Ok(content.size),
        Err(Failure::Refused(Refusal::NoContent)) => Ok(0),
        Err(error) => Err(error),
    }
}
