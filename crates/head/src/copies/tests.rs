//! Copies on disks of the test: they take what is next and nothing else, and lose answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use byname_catalog::engine::{Engine, EngineError, MemoryEngine, Rows, Transaction};
use byname_catalog::id::{LeaseEpoch, SessionId};
use byname_catalog::{
    AddDisk, Answer, BaseRow, Catalog, Command, DiskChanges, Place, Policy, Request, RowChange,
    Setup, Staging, Submission, export, initialise,
};
use byname_packet::ValidityPeriod;
use byname_packet::{Interest, Name};
use byname_security::cert::{CertificateRequest, SELF_ISSUER};
use byname_security::key::{KeyPair, KeySigner};
use byname_site::{COPY_PAGE_BYTES, CopyPoint, Keep, SiteName, frame};
use byname_transfer::server::SharedSigner;

use super::*;

struct Site {
    name: SiteName,
    engine: Arc<dyn Engine>,
    catalog: Catalog<Arc<dyn Engine>>,
    signer: SharedSigner,
    certificate: Vec<u8>,
    now_ns: u64,
    /// The operator's session, and its last request.
    session: (SessionId, u64),
}

impl Site {
    /// With so many disks, two in each server.
    fn new(disks: u64) -> Self {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
        let name: Name = "/lab".parse().unwrap();
        let policy = Policy { space: "main".into(), replica_count: 1, receipt_count: 1 };
        let setup = Setup {
            site: name.view().value().to_vec(),
            operator: "op".into(),
            group: "ops".into(),
            key: None,
            policy,
        };
        initialise(&*engine, &setup, 1).unwrap();
        let catalog = Catalog::lead(engine.clone(), "head", (1, u64::MAX)).unwrap();
        let (signer, certificate) = site_key(1);
        let name = SiteName::new(name).unwrap();
        let caller = Caller::User("op".into());
        let open = Submission { caller, request: None, command: Command::OpenSession };
        let Ok(Answer::Session { session, .. }) = catalog.execute(2, &[open]).unwrap().remove(0)
        else {
            panic!("no session");
        };
        let mut site =
            Self { name, engine, catalog, signer, certificate, now_ns: 2, session: (session, 0) };
        for number in 0..disks {
            let server = format!("s{}", number / 2);
            let (space, label) = ("main".into(), "hall".into());
            site.run(Command::AddDisk(AddDisk { space, server, label, capacity_bytes: 1 << 40 }));
        }
        let disks = Reader::new(&*site.engine, &Caller::Head).unwrap().disks().unwrap();
        disks.into_iter().for_each(|(disk, _)| site.set_up(disk, true));
        site
    }

    fn set_up(&mut self, disk: DiskId, is_up: bool) {
        let changes = DiskChanges { is_up: Some(is_up), ..DiskChanges::default() };
        let command = Command::SetDisk { disk, changes };
        let submission = Submission { caller: Caller::Head, request: None, command };
        self.catalog.execute(2, &[submission]).unwrap().remove(0).unwrap();
    }

    fn run(&mut self, command: Command) {
        self.now_ns += 1;
        let caller = Caller::User("op".into());
        self.session.1 += 1;
        let (session, sequence) = self.session;
        let request = Some(Request { session, slot: 0, sequence, digest: [0; 32] });
        let submission = Submission { caller, request, command };
        self.catalog.execute(self.now_ns, &[submission]).unwrap().remove(0).unwrap();
    }

    fn make_directories(&mut self, names: std::ops::Range<u32>) {
        for name in names {
            let place = Place::path(format!("directory-{name:0200}")).unwrap();
            self.run(Command::MakeDirectory { place, mode: 0o755 });
        }
    }

    fn remove_directories(&mut self, names: std::ops::Range<u32>) {
        for name in names {
            let place = Place::path(format!("directory-{name:0200}")).unwrap();
            self.run(Command::RemoveDirectory { place });
        }
    }

    /// A head that begins.
    fn copies(&self) -> Copies {
        let certificates = [self.certificate.clone()];
        Copies::new(OwnWord::new(self.name.clone(), &self.signer, &certificates))
    }

    fn latest(&self) -> TransactionNumber {
        Reader::new(&*self.engine, &Caller::Head).unwrap().last_transaction().unwrap()
    }

    /// Rounds until all is as it should be. `answers` says which answers come.
    fn round(
        &self,
        copies: &mut Copies,
        disks: &mut BTreeMap<DiskId, FakeDisk>,
        answers: &mut dyn FnMut() -> bool,
    ) {
        copies.begin_round(&*self.engine).unwrap();
        let sender = Sender { site: &self.name, epoch: LeaseEpoch(1), signer: &self.signer };
        let mut stamp = || Stamp { time_ms: 1, nonce: [1; 8] };
        for _ in 0..10_000 {
            let orders = copies.orders(&*self.engine, &sender, &mut stamp).unwrap();
            if orders.is_empty() {
                return;
            }
            for CopyOrder { disk, wire, .. } in orders {
                let answer = disks.entry(disk).or_default().answer(&self.name, &wire);
                let answer = answers().then_some(answer);
                copies.handle(&*self.engine, (disk, answer), NOW_S).unwrap();
            }
        }
        panic!("a round has no end");
    }
}

const NOW_S: u64 = 1_800_000_000;

/// A key of the site, and its certificate.
fn site_key(seed: u8) -> (SharedSigner, Vec<u8>) {
    let key = Arc::new(KeyPair::ed25519_from_seed(&[seed; 32]));
    let (key_name, public_key) = (format!("/lab/KEY/{seed}").parse::<Name>(), key.public_key());
    let key_name = key_name.unwrap();
    let request = CertificateRequest {
        key_name: key_name.view(),
        public_key: &public_key,
        issuer_id: SELF_ISSUER,
        version: 1,
        validity: ValidityPeriod { not_before_s: NOW_S - 9, not_after_s: NOW_S + 999_999 },
    };
    let signer = KeySigner::new(key.clone(), request.certificate_name());
    let certificate = request.issue(&signer).unwrap().wire().to_vec();
    (Arc::new(signer), certificate)
}

/// Keeps what is next of an edition.
#[derive(Default)]
struct FakeDisk {
    editions: BTreeMap<u64, FakeCopy>,
    refuses: Option<DiskRefusal>,
    /// Changes what it says of its copies.
    lie: Option<fn(&mut CatalogCopy)>,
}

#[derive(Default)]
struct FakeCopy {
    copy: CatalogCopy,
    rows: Vec<u8>,
    /// The orders, as they are read back.
    stored: Vec<u8>,
}

impl FakeDisk {
    fn answer(&mut self, site: &SiteName, wire: &[u8]) -> CopyAnswer {
        if let Some(why) = self.refuses {
            return CopyAnswer::Refused(why);
        }
        let interest = Interest::decode(wire).unwrap();
        if let Ok((_, Recall::Copy { edition, offset })) = Recall::decode(site, &interest) {
            let stored = &self.editions[&edition].stored;
            let rest = stored.get(offset as usize..).unwrap_or_default();
            return CopyAnswer::Octets(rest[..rest.len().min(COPY_PAGE_BYTES)].to_vec());
        }
        if let Ok((_, order)) = Keep::decode(site, &interest) {
            self.keep(&order, wire);
        }
        let told = |copy: &FakeCopy| {
            let mut copy = copy.copy;
            self.lie.into_iter().for_each(|lie| lie(&mut copy));
            copy
        };
        let copies = || self.editions.values().map(told);
        CopyAnswer::State(CopyState {
            complete: copies().rfind(|copy| copy.base > 0),
            building: copies().rfind(|copy| copy.base == 0),
            ..CopyState::default()
        })
    }

    fn keep(&mut self, order: &Keep, wire: &[u8]) {
        let last = self.editions.keys().max().copied().unwrap_or_default();
        if order.at == CopyPoint::default() && order.edition > last {
            let copy = CatalogCopy { edition: order.edition, ..CatalogCopy::default() };
            self.editions.insert(order.edition, FakeCopy { copy, ..FakeCopy::default() });
        }
        let Some(FakeCopy { copy, rows, stored }) = self.editions.get_mut(&order.edition) else {
            return;
        };
        if copy.end() == order.at {
            rows.extend_from_slice(&order.rows);
            copy.last = stored.len() as u64;
            stored.extend(frame(wire));
            copy.stored = stored.len() as u64;
            let end = order.end();
            (copy.length, copy.digest, copy.through) = (end.length, end.digest, end.through);
            if order.through.is_some() {
                copy.base = if copy.base == 0 { copy.length } else { copy.base };
            }
        }
    }

    /// The newest complete state's rows, put together.
    fn rows(&self) -> (TransactionNumber, Vec<BaseRow>) {
        let complete = self.editions.values().rfind(|it| it.copy.base > 0);
        let FakeCopy { copy, rows: octets, .. } = complete.expect("a complete copy");
        let engine = MemoryEngine::default();
        let (mut staging, mut rest) = (Staging::new(&engine), octets.as_slice());
        while let Some((change, behind)) = RowChange::first(rest).unwrap() {
            staging.apply(change).unwrap();
            rest = behind;
        }
        assert!(rest.is_empty(), "it ends within a row");
        staging.flush().unwrap();
        (copy.through, all_rows(&engine))
    }
}

fn all_rows(engine: &dyn Engine) -> Vec<BaseRow> {
    export(&*engine.snapshot().unwrap(), None, 100_000).unwrap()
}

#[test]
fn every_disk_gets_all_rows_and_then_the_changes() {
    let mut site = Site::new(3);
    site.make_directories(0..400);
    let (mut copies, mut disks) = (site.copies(), BTreeMap::new());
    for more in [0..0, 400..401, 401..1000] {
        site.make_directories(more);
        site.round(&mut copies, &mut disks, &mut || true);
        assert_eq!(disks.len(), 3);
        for disk in disks.values() {
            assert_eq!(disk.rows(), (site.latest(), all_rows(&*site.engine)));
        }
    }
    let reports = copies.reports();
    assert!(reports.values().all(|it| it.through == site.latest() && it.problem.is_none()));
}

/// An engine whose rows others change: every third state is moved on when it is asked for.
struct Unsteady {
    engine: Arc<dyn Engine>,
    asked: AtomicU32,
}

impl Engine for Unsteady {
    fn snapshot(&self) -> Result<Box<dyn Rows + '_>, EngineError> {
        match self.asked.fetch_add(1, Ordering::Relaxed) % 3 {
            2 => Err(EngineError::Conflict),
            _ => self.engine.snapshot(),
        }
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, EngineError> {
        self.engine.begin()
    }
}

/// A page of rows that could not be read is read again: without it the copy would pass for whole,
/// or the head wait for ever for what it believed to have told.
#[test]
fn rows_that_move_while_they_are_read_are_read_again() {
    let mut site = Site::new(1);
    site.make_directories(0..1000);
    let (mut copies, mut disks) = (site.copies(), BTreeMap::<DiskId, FakeDisk>::new());
    let unsteady = Unsteady { engine: site.engine.clone(), asked: AtomicU32::new(0) };
    copies.begin_round(&*site.engine).unwrap();
    let sender = Sender { site: &site.name, epoch: LeaseEpoch(1), signer: &site.signer };
    let mut stamp = || Stamp { time_ms: 1, nonce: [1; 8] };
    let mut moved = 0;
    loop {
        let orders = match copies.orders(&unsteady, &sender, &mut stamp) {
            Err(Failure::Engine(EngineError::Conflict)) => {
                moved += 1;
                continue;
            }
            orders => orders.unwrap(),
        };
        if orders.is_empty() {
            break;
        }
        for CopyOrder { disk, wire, .. } in orders {
            let answer = disks.entry(disk).or_default().answer(&site.name, &wire);
            copies.handle(&*site.engine, (disk, Some(answer)), NOW_S).unwrap();
        }
    }
    assert!(moved > 1, "{moved}");
    assert_eq!(disks.values().next().unwrap().rows(), (site.latest(), all_rows(&*site.engine)));
}

/// Under load there is always something new: an order for every few transactions would cost more
/// than what they change, and tell rows that all of them change again and again.
#[test]
fn what_changes_meanwhile_waits_for_the_next_round() {
    let mut site = Site::new(1);
    let (mut copies, mut disks) = (site.copies(), BTreeMap::new());
    site.round(&mut copies, &mut disks, &mut || true);
    site.make_directories(0..600);
    let before = (site.latest(), all_rows(&*site.engine));
    copies.begin_round(&*site.engine).unwrap();
    let mut complete = 0;
    for step in 600..700 {
        let sender = Sender { site: &site.name, epoch: LeaseEpoch(1), signer: &site.signer };
        let mut stamp = || Stamp { time_ms: 1, nonce: [1; 8] };
        let orders = copies.orders(&*site.engine, &sender, &mut stamp).unwrap();
        for CopyOrder { disk, wire, .. } in orders {
            let (_, order) = Keep::decode(&site.name, &Interest::decode(&wire).unwrap()).unwrap();
            complete += u32::from(order.through.is_some());
            let answer = disks.get_mut(&disk).unwrap().answer(&site.name, &wire);
            copies.handle(&*site.engine, (disk, Some(answer)), NOW_S).unwrap();
        }
        site.make_directories(step..step + 1);
    }
    assert_eq!(complete, 1, "orders that say that all is there");
    assert_eq!(disks.values().next().unwrap().rows(), before);
    site.round(&mut copies, &mut disks, &mut || true);
    let rows = disks.values().next().unwrap().rows();
    assert_eq!(rows, (site.latest(), all_rows(&*site.engine)));
}

#[test]
fn answers_may_be_lost_and_heads_may_change() {
    let mut site = Site::new(1);
    site.make_directories(0..300);
    let mut disks = BTreeMap::new();
    let mut number = 0_u32;
    // Of three answers one is lost; a head is started again every ten rounds.
    for step in 0..6 {
        let mut copies = site.copies();
        site.make_directories(300 + 20 * step..320 + 20 * step);
        for _ in 0..10 {
            let mut answers = || {
                number = number.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                !(number >> 16).is_multiple_of(3)
            };
            site.round(&mut copies, &mut disks, &mut answers);
        }
        site.round(&mut copies, &mut disks, &mut || true);
    }
    let mut copies = site.copies();
    site.round(&mut copies, &mut disks, &mut || true);
    for disk in disks.values() {
        assert_eq!(disk.rows(), (site.latest(), all_rows(&*site.engine)));
    }
}

#[test]
fn a_copy_that_has_grown_is_begun_anew() {
    let mut site = Site::new(1);
    let (mut copies, mut disks) = (site.copies(), BTreeMap::new());
    site.round(&mut copies, &mut disks, &mut || true);
    for step in 0..60 {
        // The same directories again and again.
        match step % 2 {
            0 => site.make_directories(0..100),
            _ => site.remove_directories(0..100),
        }
        site.round(&mut copies, &mut disks, &mut || true);
        let disk = disks.values().next().unwrap();
        assert_eq!(disk.rows(), (site.latest(), all_rows(&*site.engine)), "step {step}");
    }
    let editions = &disks.values().next().unwrap().editions;
    assert!(editions.len() > 1, "it was never begun anew");
    let longest = editions.values().map(|it| it.copy.length).max().unwrap();
    assert!(longest < 2 << 20, "{longest} octets for next to nothing");
}

#[test]
fn what_a_later_catalog_has_told_a_disk_to_keep_stays() {
    let mut site = Site::new(1);
    site.make_directories(0..3);
    let mut disks = BTreeMap::new();
    site.round(&mut site.copies(), &mut disks, &mut || true);
    let before = disks.values().next().unwrap().rows();
    // Another catalog of the same name that has come less far.
    let other = Site::new(1);
    let mut copies = other.copies();
    other.round(&mut copies, &mut disks, &mut || true);
    assert_eq!(disks.values().next().unwrap().rows(), before);
    let report = copies.reports().into_values().next().unwrap();
    assert_eq!(report.problem.as_deref(), Some("it has rows of a later catalog"));
}

#[test]
fn disks_that_refuse_are_let_alone_for_a_while_and_that_is_told() {
    let site = Site::new(1);
    let (mut copies, mut disks) = (site.copies(), BTreeMap::new());
    site.round(&mut copies, &mut disks, &mut || true);
    let (id, disk) = disks.iter_mut().next().unwrap();
    let id = *id;
    *disk = FakeDisk { refuses: Some(DiskRefusal::Full), ..FakeDisk::default() };
    let mut copies = site.copies();
    site.round(&mut copies, &mut disks, &mut || true);
    assert_eq!(copies.reports()[&id].problem.as_deref(), Some("the disk is full"));
    disks.get_mut(&id).unwrap().refuses = None;
    for _ in 0..REST_ROUNDS {
        site.round(&mut copies, &mut disks, &mut || true);
    }
    assert_eq!(copies.reports()[&id].problem, None);
    assert_eq!(disks[&id].rows().0, site.latest());
}

#[test]
fn disks_on_different_servers_come_first_and_those_that_are_down_not_at_all() {
    let mut site = Site::new(20);
    let ids = |site: &Site| {
        let disks = Reader::new(&*site.engine, &Caller::Head).unwrap().disks().unwrap();
        let all: Vec<DiskId> = disks.iter().map(|(id, _)| *id).collect();
        let chosen: Vec<DiskId> = chosen(disks).into_iter().map(|(id, _)| id).collect();
        (all, chosen)
    };
    let (all, first) = ids(&site);
    assert_eq!(first, all.iter().copied().step_by(2).take(DISKS_MAX).collect::<Vec<_>>());
    site.set_up(all[0], false);
    let (_, chosen) = ids(&site);
    assert_eq!((chosen.len(), chosen[0]), (DISKS_MAX, all[1]), "its neighbour in its place");
}

/// The head is started again while a disk says something else than it has: what the new head signs
/// continues what the disk has been told, or is a copy of its own.
fn after_a_lie(lie: fn(&mut CatalogCopy)) {
    let mut site = Site::new(1);
    site.make_directories(0..300);
    let mut disks = BTreeMap::new();
    site.round(&mut site.copies(), &mut disks, &mut || true);
    site.make_directories(300..310);
    let disk = disks.values_mut().next().unwrap();
    let before = disk.editions[&1].copy;
    disk.lie = Some(lie);
    let mut copies = site.copies();
    site.round(&mut copies, &mut disks, &mut || true);
    let disk = disks.values_mut().next().unwrap();
    assert_eq!(disk.editions[&1].copy, before, "no order follows from what was said");
    disk.lie = None;
    for _ in 0..STUCK_ROUNDS + 3 {
        site.round(&mut copies, &mut disks, &mut || true);
    }
    assert_eq!(disks.values().next().unwrap().rows(), (site.latest(), all_rows(&*site.engine)));
}

/// It would leave the changes between out, and have the site's signature under that.
#[test]
fn a_disk_that_says_it_has_later_changes_gets_no_order_that_follows_them() {
    after_a_lie(|copy| copy.through.0 += 5);
}

#[test]
fn a_disk_that_says_it_has_other_rows_gets_no_order_that_follows_them() {
    after_a_lie(|copy| copy.digest[0] ^= 1);
    after_a_lie(|copy| copy.length += 7);
}

#[test]
fn a_disk_whose_last_order_is_nowhere_begins_anew() {
    after_a_lie(|copy| copy.last = copy.stored);
    after_a_lie(|copy| copy.last = 0);
    after_a_lie(|copy| copy.stored = u64::MAX);
    after_a_lie(|copy| (copy.base, copy.last) = (u64::MAX, copy.stored));
}

/// Whoever makes the catalog again has the key of today: what an earlier one has signed proves him
/// nothing.
#[test]
fn a_new_key_of_the_site_begins_copies_anew() {
    let mut site = Site::new(1);
    let mut disks = BTreeMap::new();
    site.round(&mut site.copies(), &mut disks, &mut || true);
    (site.signer, site.certificate) = site_key(2);
    site.round(&mut site.copies(), &mut disks, &mut || true);
    let editions = &disks.values().next().unwrap().editions;
    assert_eq!(editions.keys().copied().collect::<Vec<_>>(), [1, 2]);
    assert!(editions[&2].copy.base > 0, "and it is complete");
}
