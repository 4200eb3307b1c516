//! A catalog made again from disks that lie.

use byname_catalog::engine::EmbeddedEngine;
use byname_catalog::id::{ContentId, LeaseEpoch, TransactionNumber};
use byname_catalog::{Caller, Command, Reader, RowChange, export};
use byname_head::rebuild::{DiskSource, Rebuild, RebuildReport, SourceError};
use byname_site::{
    COPY_PAGE_BYTES, CatalogCopy, CopyPoint, CopyState, DiskName, Keep, KeptRecord, Listed,
    ROWS_BYTES_MAX, frame,
};

use crate::support::{NOW_NS, TestHead, place};

const EDITION: u64 = 7;
/// Octets that a disk gives at a time.
const PAGE_BYTES: usize = COPY_PAGE_BYTES;
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
        let (mut copy, mut at) = (Vec::new(), CopyPoint::default());
        let parts: Vec<&[u8]> = rows.chunks(ROWS_BYTES_MAX).collect();
        for (place, part) in parts.iter().enumerate() {
            let through = (place + 1 == parts.len()).then_some(through);
            let (order, end) = signed(head, index, (at, through), part);
            copy.extend(order);
            at = end;
        }
        let complete = CatalogCopy {
            edition: EDITION,
            length: at.length,
            base: at.length,
            stored: copy.len() as u64,
            last: 0,
            digest: at.digest,
            through,
        };
        let state = CopyState { complete: Some(complete), ..CopyState::default() };
        Self { name: head.disks[index].0.clone(), state, copy, again: Vec::new(), pages: 0 }
    }
}

/// A frame with an order of the site's, and the place behind it.
fn signed(
    head: &mut TestHead,
    disk: usize,
    (at, through): (CopyPoint, Option<TransactionNumber>),
    rows: &[u8],
) -> (Vec<u8>, CopyPoint) {
    let rows = rows.to_vec();
    let (epoch, generation) = (LeaseEpoch(1), 1);
    let order = Keep { epoch, generation, edition: EDITION, at, through, rows };
    let stamp = head.stamp();
    let wire = order.encode(&head.site, &head.disks[disk].0, &head.own.signer, stamp).unwrap();
    (frame(&wire), order.end())
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
    let end = liar.state.complete.unwrap().end();
    let through = end.through;
    (liar.again, _) = signed(&mut head, 1, (end, Some(through)), &[]);
    let (report, _) = rebuilt(&head, vec![liar, honest]);
    assert_eq!(report.disks[0].verified, through);
    assert_eq!(report.through, through);
}

/// Whoever has lost what was changed in between, or wants it lost: that a key was removed, for
/// example. The site has signed each of these orders.
#[test]
fn what_follows_a_gap_counts_for_nothing() {
    let mut head = TestHead::new();
    let end = Disk::new(&mut head, 0).state.complete.unwrap().end();
    let disks = [Disk::new(&mut head, 0), Disk::new(&mut head, 1)];
    let copies = disks.map(|disk| disk.copy);
    let mut make_directory = |name| {
        head.done(Command::MakeDirectory { place: place(name), mode: 0o755 });
        head.reader().last_transaction().unwrap()
    };
    let (between, later) = (make_directory("left-out"), make_directory("later"));
    for at in [
        CopyPoint { through: between, ..end },
        CopyPoint { digest: [7; 32], ..end },
        CopyPoint { length: end.length + 1, ..end },
    ] {
        let (order, end_of_lie) = signed(&mut head, 0, (at, Some(later)), b"");
        let [mut liar, mut honest] = [Disk::new(&mut head, 0), Disk::new(&mut head, 1)];
        liar.copy = [copies[0].clone(), order].concat();
        honest.copy.clone_from(&copies[1]);
        for (disk, end) in [(&mut liar, end_of_lie), (&mut honest, end)] {
            let complete = disk.state.complete.as_mut().unwrap();
            (complete.length, complete.through) = (end.length, end.through);
        }
        let (report, _) = rebuilt(&head, vec![liar, honest]);
        assert_eq!((report.through, report.disks[0].verified), (end.through, end.through));
        let problem = report.disks[0].problem.as_deref().unwrap();
        assert!(problem.contains("what is before it"), "{problem}");
        assert_eq!(report.disks[1].problem, None);
    }
}
