//! A catalog made again from disks that lie.

use byname_catalog::engine::EmbeddedEngine;
use byname_catalog::id::{ContentId, LeaseEpoch, TransactionNumber};
use byname_catalog::{Caller, Reader, RowChange, export};
use byname_head::rebuild::{DiskSource, Rebuild, RebuildReport, SourceError};
use byname_site::{
    CatalogCopy, CopyState, DiskName, Keep, KeptRecord, Listed, ROWS_BYTES_MAX, frame,
};

use crate::support::{NOW_NS, TestHead};

const EDITION: u64 = 7;
/// Octets that a disk gives at a time.
const PAGE_BYTES: usize = 5000;
/// Whoever asks a disk as often as this does not come to an end.
const PAGES_MAX: usize = 10_000;

/// A disk with a copy of all rows.
struct Disk {
    name: DiskName,
    state: CopyState,
    copy: Vec<u8>,
    /// What it gives behind the copy, over and over.
    again: Vec<u8>,
    pages: usize,
}

impl Disk {
    fn new(head: &mut TestHead, index: usize) -> Self {
        let through = head.reader().last_transaction().unwrap();
        let mut rows = Vec::new();
        for row in export(&*head.engine.snapshot().unwrap(), None, 1000).unwrap() {
            RowChange::from(row).encode(&mut rows);
        }
        let (mut copy, mut offset) = (Vec::new(), 0);
        let parts: Vec<&[u8]> = rows.chunks(ROWS_BYTES_MAX).collect();
        for (place, part) in parts.iter().enumerate() {
            let through = (place + 1 == parts.len()).then_some(through);
            copy.extend(signed(head, index, (offset, through), part));
            offset += part.len() as u64;
        }
        let complete = CatalogCopy {
            edition: EDITION,
            length: offset,
            base: offset,
            stored: copy.len() as u64,
            through,
        };
        let state = CopyState { complete: Some(complete), ..CopyState::default() };
        Self { name: head.disks[index].0.clone(), state, copy, again: Vec::new(), pages: 0 }
    }
}

/// A frame with an order of the site's.
fn signed(
    head: &mut TestHead,
    disk: usize,
    (offset, through): (u64, Option<TransactionNumber>),
    rows: &[u8],
) -> Vec<u8> {
    let rows = rows.to_vec();
    let (epoch, generation) = (LeaseEpoch(1), 1);
    let order = Keep { epoch, generation, edition: EDITION, offset, through, rows };
    let stamp = head.stamp();
    frame(&order.encode(&head.site, &head.disks[disk].0, &head.own.signer, stamp).unwrap())
}

impl DiskSource for Disk {
    fn name(&self) -> &DiskName {
        &self.name
    }

    fn state(&mut self) -> Result<CopyState, SourceError> {
        Ok(self.state)
    }

    fn read_copy(&mut self, edition: u64, offset: u64) -> Result<Vec<u8>, SourceError> {
        self.pages += 1;
        assert!(self.pages < PAGES_MAX, "nobody comes to an end here");
        assert_eq!(edition, EDITION);
        let mut page: Vec<u8> =
            self.copy.iter().copied().skip(offset as usize).take(PAGE_BYTES).collect();
        if !self.again.is_empty() {
            let behind = (offset as usize + page.len()).saturating_sub(self.copy.len());
            let start = behind % self.again.len();
            let missing = PAGE_BYTES - page.len();
            page.extend(self.again.iter().cycle().skip(start).take(missing));
        }
        Ok(page)
    }

    fn contents(&mut self, _after: Option<ContentId>) -> Result<(Vec<Listed>, bool), SourceError> {
        Ok((Vec::new(), true))
    }

    fn record(&mut self, _content: ContentId) -> Result<KeptRecord, SourceError> {
        unreachable!("it has none")
    }
}

/// The report, and the last number that the new catalog has given.
fn rebuilt(head: &TestHead, disks: Vec<Disk>) -> (RebuildReport, u64) {
    let directory = tempfile::tempdir().unwrap();
    let rebuild = Rebuild {
        site: &head.site,
        certificate: &head.own.certificate,
        directory: directory.path(),
        unix_ns: NOW_NS,
    };
    let mut sources: Vec<Box<dyn DiskSource>> = Vec::new();
    sources.extend(disks.into_iter().map(|disk| Box::new(disk) as Box<dyn DiskSource>));
    let report = rebuild.prepare(&mut sources).unwrap().place().unwrap();
    let engine = EmbeddedEngine::open(&directory.path().join("catalog.redb")).unwrap();
    let reader = Reader::new(&engine, &Caller::Head).unwrap();
    (report, reader.last_transaction().unwrap().0)
}

#[test]
fn numbers_that_a_disk_cannot_have_seen_use_up_none() {
    let mut head = TestHead::new();
    let disk = Disk::new(&mut head, 0);
    let (report, honest) = rebuilt(&head, vec![disk]);
    assert_eq!(report.disks[0].problem, None);
    for (highest, epoch) in [(u64::MAX, 1), (1, u64::MAX), (u64::MAX - (1 << 48), 1)] {
        let mut liar = Disk::new(&mut head, 0);
        (liar.state.highest, liar.state.epoch) = (highest, LeaseEpoch(epoch));
        let (report, last) = rebuilt(&head, vec![liar]);
        assert_eq!(last, honest);
        let problem = report.disks[0].problem.as_deref().unwrap();
        assert!(problem.contains("numbers that the site cannot have given"), "{problem}");
    }
    let mut ahead = Disk::new(&mut head, 0);
    ahead.state.epoch = LeaseEpoch(honest + 5);
    let (report, last) = rebuilt(&head, vec![ahead]);
    assert!(last > honest && report.disks[0].problem.is_none(), "a catalog in between was lost");
}

/// An order without rows says that nothing has changed until then. It is the site's, whoever gives
/// it, and as often as he likes.
#[test]
fn a_disk_that_gives_one_order_over_and_over_holds_up_nobody() {
    let mut head = TestHead::new();
    let honest = Disk::new(&mut head, 0);
    let mut liar = Disk::new(&mut head, 1);
    let CatalogCopy { length, through, .. } = liar.state.complete.unwrap();
    liar.again = signed(&mut head, 1, (length, Some(through)), &[]);
    let (report, _) = rebuilt(&head, vec![liar, honest]);
    assert_eq!(report.disks[0].verified, through);
    assert_eq!(report.through, through);
}
