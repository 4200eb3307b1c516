//! Contents of the disks beside the rows: what is newer becomes part of the site if its ticket and
//! its claim prove it; what is missing is noted.

use std::collections::{BTreeMap, BTreeSet};

use byname_catalog::engine::Engine;
use byname_catalog::id::{ContentId, DiskId, InodeId};
use byname_catalog::{
    Adoption, Failure, FoundContent, FoundFile, Inode, NamedEntry, Reader, Refusal, adopt,
    can_be_seen,
};
use byname_packet::Data;
use byname_security::trust::Validator;
use byname_site::{Authentic, Check, Claim, Identity, KeptRecord, SiteName, Ticket, check_data};

use super::report::{Finding, FindingKind, RebuildReport};
use super::{DiskSource, PAGE_ROWS, RebuildError, SourceError, of};
use crate::fsck::Names;

const SECOND_NS: u64 = 1_000_000_000;
/// Contents that a disk may have and the rows have not; about 100 octets of memory each.
pub(super) const NEWER_MAX: usize = 1 << 24;

/// Reason for which contents cannot be listed.
pub(super) enum ListError {
    Source(SourceError),
    /// It lists more than that which the rows do not have.
    TooMany(usize),
    Catalog(Failure),
}

/// Somebody who verifies, at a time that packets do not say.
type Verifier<'a> = (&'a SiteName, &'a mut Validator, u64);

/// See the module.
pub(super) struct Contents {
    /// One of the latest numbers of the rows.
    known: u64,
    newer_max: usize,
    /// Those that the rows have, by disk.
    present: BTreeMap<DiskId, BTreeSet<ContentId>>,
    /// Those that the rows do not have, with the places of their disks.
    newer: BTreeMap<ContentId, Vec<usize>>,
    different: Vec<Finding>,
    disks: usize,
    highest: u64,
    /// What is newer becomes part of the rows.
    adopts: bool,
}

/// A content with the proof of what it is.
struct Proved {
    found: FoundContent,
    is_settled: bool,
    /// A commit of it may have got the receipts that it needs.
    may_be_committed: bool,
}

impl Contents {
    /// `known` is one of the latest numbers of the rows, of which `newer_max` contents of a disk
    /// may be missing.
    pub(super) fn new(known: u64, newer_max: usize) -> Self {
        Self {
            known,
            newer_max,
            present: BTreeMap::new(),
            newer: BTreeMap::new(),
            different: Vec::new(),
            disks: 0,
            highest: 0,
            adopts: true,
        }
    }

    /// Whether what is newer becomes part of the rows, or is only named.
    pub(super) fn adopting(self, adopts: bool) -> Self {
        Self { adopts, ..self }
    }

    /// The highest number of a content.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// Looks at all contents of the next disk; how many there are.
    pub(super) fn list(
        &mut self,
        reader: &Reader<'_>,
        disk: &mut dyn DiskSource,
    ) -> Result<u64, ListError> {
        let (id, place) = (disk.name().id, self.disks);
        self.disks += 1;
        self.present.entry(id).or_default();
        let (mut after, mut count, mut newer) = (None, 0, 0);
        loop {
            let (page, is_last) = disk.contents(after).map_err(ListError::Source)?;
            for listed in &page {
                let content = listed.content;
                count += 1;
                let numbers = [content.inode.0, content.version.0].into_iter();
                let seen = numbers.filter(|number| can_be_seen(*number, self.known));
                self.highest = seen.chain([self.highest]).max().unwrap_or_default();
                match reader.content(content) {
                    Ok(wanted) if (wanted.size, wanted.root) == (listed.size, listed.root) => {
                        self.present.entry(id).or_default().insert(content);
                    }
                    Ok(_) => {
                        let kind = FindingKind::Different;
                        self.different.push(Finding::new(kind, content, listed.size, vec![id]));
                    }
                    Err(Failure::Refused(Refusal::NoContent)) => {
                        let leaves = reader.is_leaving(id, content).map_err(ListError::Catalog)?;
                        if !leaves {
                            newer += 1;
                            self.newer.entry(content).or_default().push(place);
                        }
                    }
                    Err(error) => return Err(ListError::Catalog(error)),
                }
            }
            if newer > self.newer_max {
                return Err(ListError::TooMany(self.newer_max));
            }
            after = page.last().map(|listed| listed.content);
            if is_last || after.is_none() {
                return Ok(count);
            }
        }
    }

    /// Makes newer contents part of the rows: of each file the newest that may be committed, what
    /// the head has confirmed before all others.
    pub(super) fn adopt(
        &mut self,
        disks: &mut [Box<dyn DiskSource>],
        (site, validator, now_s): Verifier<'_>,
        (engine, fresh): (&dyn Engine, InodeId),
        report: &mut RebuildReport,
    ) -> Result<(), RebuildError> {
        let mut by_file: BTreeMap<InodeId, Vec<Proved>> = BTreeMap::new();
        for (content, places) in std::mem::take(&mut self.newer) {
            let mut proofs = Vec::new();
            for place in places {
                let disk = &mut *disks[place];
                let record = disk.record(content).map_err(of(disk))?;
                let id = disk.name().id;
                match prove(&record, content, (site, validator, now_s)) {
                    Some((ticket, claim)) => proofs.push((id, record, ticket, claim)),
                    None => {
                        let kind = FindingKind::Unproved;
                        report.findings.push(Finding::new(kind, content, 0, vec![id]));
                    }
                }
            }
            if let Some(proved) = self.weigh(content, &proofs) {
                by_file.entry(content.inode).or_default().push(proved);
            }
        }
        for mut versions in by_file.into_values() {
            versions.sort_by_key(|it| {
                std::cmp::Reverse((it.is_settled, it.may_be_committed, it.found.content.version))
            });
            for (index, proved) in versions.into_iter().enumerate() {
                let kind = match (index, proved.is_settled || proved.may_be_committed) {
                    (_, false) => FindingKind::NotCommitted,
                    (_, true) if !self.adopts => FindingKind::Later,
                    (0, true) => self.take(&proved.found, (engine, fresh))?,
                    (_, true) => FindingKind::Superseded,
                };
                let FoundContent { content, size, disks, .. } = proved.found;
                let finding = Finding::new(kind, content, size, disks);
                report.findings.push(Finding { is_confirmed: proved.is_settled, ..finding });
            }
        }
        report.findings.append(&mut self.different);
        Ok(())
    }

    /// What several disks say of a content.
    fn weigh(
        &self,
        content: ContentId,
        proofs: &[(DiskId, KeptRecord, Ticket, Claim)],
    ) -> Option<Proved> {
        let agreed = agreed(proofs, |it| (&it.3, it.1.checksums));
        let (_, record, ticket, claim) = agreed.first()?;
        let disks: Vec<DiskId> = agreed.iter().map(|it| it.0).collect();
        let terms = ticket.terms();
        let others = terms.disks.iter().filter(|it| !self.present.contains_key(&it.name.id));
        let receipts = disks.len() + others.count();
        let origin = terms.origin.as_ref();
        let file = origin.map(|origin| FoundFile {
            directory: origin.directory,
            name: origin.name.clone(),
            owner: origin.owner.clone(),
            group: origin.group.clone(),
            mode: origin.mode,
        });
        Some(Proved {
            found: FoundContent {
                content,
                size: claim.size,
                root: claim.root,
                checksums: record.checksums,
                disks,
                written_ns: issued_s(ticket).saturating_mul(SECOND_NS),
                file,
            },
            is_settled: agreed.iter().any(|it| it.1.is_settled),
            may_be_committed: receipts >= usize::from(terms.receipt_count),
        })
    }

    fn take(
        &mut self,
        found: &FoundContent,
        (engine, fresh): (&dyn Engine, InodeId),
    ) -> Result<FindingKind, RebuildError> {
        let kind = match adopt(engine, found, fresh)? {
            Adoption::Rewritten => FindingKind::Rewritten,
            Adoption::Placed => FindingKind::Placed,
            Adoption::Misplaced => FindingKind::Misplaced,
            Adoption::Left => return Ok(FindingKind::Superseded),
        };
        for disk in &found.disks {
            self.present.entry(*disk).or_default().insert(found.content);
        }
        Ok(kind)
    }

    /// Notes files without a replica on the disks that were read, and gives names to all findings.
    pub(super) fn find_lost(
        &self,
        reader: &Reader<'_>,
        site: &SiteName,
        report: &mut RebuildReport,
    ) -> Result<(), RebuildError> {
        let mut after = None;
        loop {
            let page = reader.inodes(after, PAGE_ROWS)?;
            for (id, inode) in &page {
                report.inodes += 1;
                self.look_at(*id, inode, report);
            }
            after = page.last().map(|(id, _)| *id);
            if page.len() < PAGE_ROWS {
                break;
            }
        }
        let wanted = report.findings.iter().map(|finding| finding.content.inode);
        let mut names = Names::of(wanted);
        let mut last: Option<NamedEntry> = None;
        loop {
            let page = reader.entries(last.as_ref(), PAGE_ROWS)?;
            let count = page.len();
            last = page.last().cloned();
            page.into_iter().for_each(|entry| names.take(entry));
            if count < PAGE_ROWS {
                break;
            }
        }
        for finding in &mut report.findings {
            finding.name = names.name_of(finding.content.inode, site);
        }
        report.findings.sort_by_key(|it| (it.kind, it.name.clone(), it.content));
        Ok(())
    }

    fn look_at(&self, id: InodeId, inode: &Inode, report: &mut RebuildReport) {
        let Some(content) = inode.content() else { return };
        report.files += 1;
        if content.size == 0 {
            return;
        }
        let of = ContentId { inode: id, version: content.version };
        let has = |disk: &DiskId| self.present.get(disk).map(|there| there.contains(&of));
        let replicas = content.replicas.iter();
        let missing = || replicas.clone().filter(|disk| has(disk) == Some(false)).copied();
        let is_seen = replicas.clone().any(|disk| has(disk) == Some(true));
        let is_elsewhere = replicas.clone().any(|disk| has(disk).is_none());
        let kind = match (is_seen, is_elsewhere) {
            (true, _) if missing().next().is_none() => return,
            (true, _) => FindingKind::Missing,
            (false, true) => FindingKind::OutOfReach,
            (false, false) => FindingKind::Lost,
        };
        report.findings.push(Finding::new(kind, of, content.size, missing().collect()));
    }
}

/// Those who say the same, the most of them: one disk that says something else does not keep the
/// others from counting, wherever it was named. Of as many, those whose first one was named first.
fn agreed<'a, T, K: PartialEq>(all: &'a [T], said: impl Fn(&'a T) -> K) -> Vec<&'a T> {
    let with = |one: &'a T| -> Vec<&T> {
        let of_one = said(one);
        all.iter().filter(|other| said(other) == of_one).collect()
    };
    let groups = all.iter().map(with);
    groups.rev().max_by_key(Vec::len).unwrap_or_default()
}

/// Ticket and claim of a record, if the site has given the one and its holder signed the other. A
/// ticket may be over by now: it counts as of when it was issued.
fn prove(
    record: &KeptRecord,
    content: ContentId,
    (site, validator, now_s): Verifier<'_>,
) -> Option<(Ticket, Claim)> {
    let ticket = Ticket::decode(site, &record.ticket).ok()?;
    let data = Data::decode(&record.claim).ok()?;
    let claim = Claim::decode(site, &data).ok()?;
    if (ticket.terms().content, claim.content) != (content, content) {
        return None;
    }
    validator.add_certificate(ticket.wire()).ok()?;
    match check_data(site, &data, validator, issued_s(&ticket).min(now_s)) {
        Check::Accepted(Authentic { identity: Identity::Writer(of), certificate, .. })
            if of == content && certificate.view() == ticket.certificate().name() =>
        {
            Some((ticket, claim))
        }
        _ => None,
    }
}

/// When a ticket was issued: its version.
fn issued_s(ticket: &Ticket) -> u64 {
    ticket.certificate().name().last().and_then(|last| last.version()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_catalog::engine::MemoryEngine;
    use byname_catalog::{Caller, Policy, Setup, initialise};
    use byname_site::{CopyState, DiskName, Listed};

    /// A disk that has a content of each number, for ever.
    struct Endless(DiskName);

    impl DiskSource for Endless {
        fn name(&self) -> &DiskName {
            &self.0
        }

        fn state(&mut self) -> Result<CopyState, SourceError> {
            Ok(CopyState::default())
        }

        fn read_copy(&mut self, _edition: u64, _offset: u64) -> Result<Vec<u8>, SourceError> {
            Ok(Vec::new())
        }

        fn contents(
            &mut self,
            after: Option<ContentId>,
        ) -> Result<(Vec<Listed>, bool), SourceError> {
            let inode = InodeId(after.map_or(2, |after| after.inode.0 + 1));
            let content = ContentId { inode, version: Default::default() };
            Ok((vec![Listed { content, size: 1, root: [0; 32] }], false))
        }

        fn record(&mut self, _content: ContentId) -> Result<KeptRecord, SourceError> {
            unreachable!("nobody asks for it")
        }
    }

    #[test]
    fn a_disk_that_lists_without_end_is_named() {
        let engine = MemoryEngine::default();
        let setup = Setup {
            site: Vec::new(),
            operator: "op".into(),
            group: "ops".into(),
            key: None,
            policy: Policy { space: "main".into(), replica_count: 1, receipt_count: 1 },
        };
        initialise(&engine, &setup, 0).unwrap();
        let reader = Reader::new(&engine, &Caller::Head).unwrap();
        let mut disk = Endless(DiskName { place: "rack".into(), id: DiskId(7) });
        let mut contents = Contents::new(0, 100);
        let listed = contents.list(&reader, &mut disk);
        assert!(matches!(listed, Err(ListError::TooMany(100))));
    }

    #[test]
    fn the_most_that_say_the_same_count_and_of_as_many_the_first() {
        let said = |of: &(i32, char)| of.1;
        let of = |all: &[(i32, char)]| -> Vec<i32> {
            agreed(all, said).into_iter().map(|(disk, _)| *disk).collect()
        };
        assert_eq!(of(&[(1, 'x'), (2, 'a'), (3, 'a')]), [2, 3], "one that lies is named first");
        assert_eq!(of(&[(1, 'a'), (2, 'b')]), [1]);
        assert_eq!(of(&[(1, 'a'), (2, 'b'), (3, 'a')]), [1, 3]);
        assert_eq!(of(&[]), Vec::<i32>::new());
    }
}
