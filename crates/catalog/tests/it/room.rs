//! Disks that are full of what stays for readers only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use byname_catalog::engine::{
    Engine, EngineError, MemoryEngine, Row, Rows, Span, Table, Transaction, Writes,
};
use byname_catalog::id::{ContentId, DiskId};
use byname_catalog::{
    AddDisk, Answer, AttributeChanges, Command, Create, Limits, Policy, PolicyChanges, Publish,
    Refusal, Resolution, Subject, Ticket, Usage,
};

use crate::support::{HOUR_NS, TestSite, place};
use crate::under_test::TestEngine;

/// Octets that each of the two small disks takes.
const CAPACITY: u64 = 1000;

/// A site with a directory whose content goes to two small disks.
fn site() -> (TestSite, [DiskId; 2]) {
    site_over(Arc::new(TestEngine::default()))
}

fn site_over(engine: Arc<dyn Engine>) -> (TestSite, [DiskId; 2]) {
    let mut site = TestSite::new(engine);
    let disks = ["x", "y"].map(|server| {
        let (space, label) = ("small".into(), "room".into());
        let add = AddDisk { space, server: server.into(), label, capacity_bytes: CAPACITY };
        match site.run("op", Command::AddDisk(add)) {
            Ok(Answer::Disk(id)) => id,
            other => panic!("{other:?}"),
        }
    });
    site.mkdir("op", "d").unwrap();
    let changes = AttributeChanges { mode: Some(0o777), ..AttributeChanges::default() };
    site.run("op", Command::SetAttributes { place: place("d"), changes }).unwrap();
    let policy = Policy { space: "small".into(), replica_count: 2, receipt_count: 2 };
    site.run("op", Command::SetPolicy { place: place("d"), policy }).unwrap();
    (site, disks)
}

fn is_kept(site: &TestSite, disk: DiskId, content: ContentId) -> bool {
    site.reader("op").resolution(disk, content).unwrap() == Resolution::Keep
}

/// A user whose quota is small fills disks with what counts for nobody.
#[test]
fn what_is_replaced_again_and_again_fills_no_disk() {
    let (mut site, [disk, _]) = site();
    let all: Vec<ContentId> = (0..20).map(|_| site.put("anna", "d/f", 300)).collect();
    let kept = all.iter().filter(|content| is_kept(&site, disk, **content)).count();
    assert_eq!(kept, 3, "as many as there is room for, the current one among them");
    assert!(is_kept(&site, disk, all[18]) && is_kept(&site, disk, all[17]), "the last ones");
    // The same of what is removed.
    for index in 0..20 {
        let path = format!("d/g{index}");
        site.put("bert", &path, 300);
        site.run("bert", Command::Unlink { place: place(&path) }).unwrap();
    }
    site.put("anna", "d/other", 600);
    assert!(is_kept(&site, disk, all[19]), "what has a name stays");
    let used: Usage = site.reader("op").usage(&Subject::Space("small".into())).unwrap().0;
    assert_eq!(used.bytes, 900);
}

#[test]
fn what_has_a_name_or_would_not_be_enough_stays() {
    let (mut site, [disk, _]) = site();
    let [first, second] = [300, 310].map(|size| site.put("anna", "d/f", size));
    // More than there is, and more than there would be.
    for size in [CAPACITY + 1, CAPACITY - 309] {
        assert_eq!(site.create("bert", "d/g", size), Err(Refusal::NoSpace));
        assert!(is_kept(&site, disk, first) && is_kept(&site, disk, second));
    }
    let ticket = site.create("bert", "d/g", 500).unwrap();
    assert!(!is_kept(&site, disk, first) && is_kept(&site, disk, second));
    site.commit("bert", &ticket, 500).unwrap();
    assert_eq!(site.create("bert", "d/h", 500), Err(Refusal::NoSpace), "nothing can go");
}

const GIB: u64 = 1 << 30;
/// Room of the three disks of a site.
const ROOM: u64 = 3 << 40;

/// A site with a directory for all whose files have one replica.
fn large_site() -> (TestSite, TestEngine) {
    let (mut site, engine) = TestSite::in_memory();
    site.mkdir("op", "d").unwrap();
    let changes = AttributeChanges { mode: Some(0o777), ..AttributeChanges::default() };
    site.run("op", Command::SetAttributes { place: place("d"), changes }).unwrap();
    let policy = Policy { space: "main".into(), replica_count: 1, receipt_count: 1 };
    site.run("op", Command::SetPolicy { place: place("d"), policy }).unwrap();
    (site, engine)
}

/// Begins files of a size as long as this user may.
fn begin_all(site: &mut TestSite, user: &str, size: u64) -> Vec<Ticket> {
    let mut tickets = Vec::new();
    loop {
        match site.create(user, &format!("d/{user}{}", tickets.len()), size) {
            Ok(ticket) => tickets.push(ticket),
            Err(refusal) => {
                assert_eq!(refusal, Refusal::TooMuchReserved);
                return tickets;
            }
        }
    }
}

/// Who says that files will be huge keeps half of the room for the others, whoever leads.
#[test]
fn one_user_reserves_half_of_the_room_that_others_have_left() {
    let (mut site, engine) = large_site();
    let size = ROOM / 12;
    let of_anna = begin_all(&mut site, "anna", size);
    assert_eq!(of_anna.len(), 6);
    let of_bert = begin_all(&mut site, "bert", size);
    assert_eq!(of_bert.len(), 3, "half of the other half");
    site.take_over(Arc::new(engine));
    let too_much = Err(Refusal::TooMuchReserved);
    assert_eq!(site.create("anna", "d/more", 1), too_much);
    assert_eq!(site.create("bert", "d/more", size), too_much);
    // What is there, or given up, or has ended is not reserved any more.
    site.commit("bert", &of_bert[0], 0).unwrap();
    site.create("bert", "d/again", size).unwrap();
    site.run("anna", Command::Abort { content: of_anna[0].content }).unwrap();
    site.create("bert", "d/yet-again", size / 4).unwrap();
    assert_eq!(site.create("anna", "d/more", 1), too_much);
    site.pass(2 * HOUR_NS);
    assert_eq!(begin_all(&mut site, "anna", size).len(), 6);
}

#[test]
fn operators_and_who_has_a_quota_reserve_more_and_so_does_everybody_if_it_is_wished() {
    let (mut site, _) = large_site();
    let size = ROOM / 24;
    assert_eq!(begin_all(&mut site, "anna", size).len(), 12);
    for number in 0..7 {
        site.create("op", &format!("d/of-op{number}"), size).unwrap();
    }
    let limits = |bytes| {
        let subject = Subject::User("anna".into());
        Command::SetLimits { subject, limits: Limits { bytes, ..Limits::NONE } }
    };
    site.run("op", limits(14 * size)).unwrap();
    site.create("anna", "d/one-more", size).unwrap();
    site.run("op", limits(u64::MAX)).unwrap();
    assert_eq!(site.create("anna", "d/another", size), Err(Refusal::TooMuchReserved));
    site.catalog.bound_reserved(100);
    site.create("anna", "d/another", size).unwrap();
    site.catalog.bound_reserved(1);
    assert_eq!(site.create("bert", "d/large", 5 * GIB), Err(Refusal::TooMuchReserved));
    site.create("bert", "d/small", GIB).unwrap();
}

/// Rewriting reserves room, though it counts for nobody's quota.
#[test]
fn who_rewrites_a_file_many_times_at_once_reserves_no_more_than_his_quota() {
    let (mut site, _) = large_site();
    let size = ROOM / 6;
    site.put("anna", "d/f", size);
    let bytes = size;
    let limits = Limits { bytes, ..Limits::NONE };
    let subject = Subject::User("anna".into());
    site.run("op", Command::SetLimits { subject, limits }).unwrap();
    for _ in 0..2 {
        site.create("anna", "d/f", size).unwrap();
    }
    assert_eq!(site.create("anna", "d/f", size), Err(Refusal::TooMuchReserved));
}

/// What is decided follows what is reserved, command by command and within a batch.
#[test]
fn what_is_reserved_is_known_after_each_command_and_within_a_batch() {
    let (mut site, _) = large_site();
    let unit = ROOM / 48;
    let (mut random, mut open) = (1_u64, Vec::<(&str, u64, Ticket)>::new());
    for step in 0..120 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        let (user, draw) = (["anna", "bert"][(random >> 40) as usize % 2], random >> 41);
        let units = |user: &str| -> u64 {
            open.iter().filter(|(of, ..)| *of == user).map(|(_, units, _)| units).sum()
        };
        if draw % 3 == 0 && !open.is_empty() {
            let (user, _, ticket) = open.remove(draw as usize / 3 % open.len());
            match draw / 64 % 2 {
                0 => drop(site.run(user, Command::Abort { content: ticket.content }).unwrap()),
                _ => drop(site.commit(user, &ticket, 0).unwrap()),
            }
            continue;
        }
        let (own, all, wanted) = (units(user), units("anna") + units("bert"), 1 + draw / 3 % 4);
        let is_fair = 2 * (own + wanted) <= 48 - all + own;
        let created = site.create(user, &format!("d/{step}"), wanted * unit);
        assert_eq!(created.is_ok(), is_fair, "{step}: {user} has {own} of {all}, wants {wanted}");
        if let Ok(ticket) = created {
            open.push((user, wanted, ticket));
        }
    }
    for (user, _, ticket) in open {
        site.run(user, Command::Abort { content: ticket.content }).unwrap();
    }
    let batch: Vec<_> = (0..5)
        .map(|slot| {
            let create = Create {
                place: place(&format!("d/batch{slot}")),
                mode: 0o644,
                size_max: ROOM / 8,
                publish: Publish::AtCommit,
                exclusive: false,
                policy: PolicyChanges::default(),
            };
            site.submission_in("anna", slot, Command::Create(create))
        })
        .collect();
    let answers = site.catalog.execute(site.now_ns, &batch).unwrap();
    assert_eq!(
        answers.iter().map(Result::is_ok).collect::<Vec<_>>(),
        [true, true, true, true, false]
    );
}

/// Nobody pays for what is replaced, so to hold it must fill no disk.
#[test]
fn what_is_held_ends_last_and_not_unless_the_space_is_full() {
    let (mut site, [disk, _]) = site();
    let [held, free, _last] = [300, 300, 300].map(|size| site.put("anna", "d/f", size));
    site.run("bert", Command::Hold { content: held }).unwrap();
    site.put("bert", "d/g", 300);
    assert!(is_kept(&site, disk, held), "the other one was enough");
    assert!(!is_kept(&site, disk, free));
    site.put("bert", "d/h", 300);
    assert!(!is_kept(&site, disk, held));
    // Who comes by it again hears that it is gone; the session goes on, and ends as ever.
    let again = Command::Hold { content: held };
    assert_eq!(site.run("bert", again), Err(Refusal::NoContent));
    site.run("bert", Command::Release { content: held }).unwrap();
    // The same of a file that was removed.
    let removed = site.reader("op").entry(&place("d/h")).unwrap().inode.content().unwrap().version;
    let removed = ContentId { inode: site.entry("d/h").unwrap().id, version: removed };
    site.run("bert", Command::Hold { content: removed }).unwrap();
    site.run("bert", Command::Unlink { place: place("d/h") }).unwrap();
    site.put("anna", "d/i", 300);
    assert!(!is_kept(&site, disk, removed));
    site.run("bert", Command::EndSession).unwrap();
    site.assert_consistent();
}

#[test]
fn who_may_not_read_a_file_holds_no_version_of_it() {
    let (mut site, _) = site();
    let [old, current] = [10, 20].map(|size| site.put("anna", "d/f", size));
    let changes = AttributeChanges { mode: Some(0o600), ..AttributeChanges::default() };
    site.run("anna", Command::SetAttributes { place: place("d/f"), changes }).unwrap();
    for content in [old, current] {
        let hold = Command::Hold { content };
        assert_eq!(site.run("bert", hold.clone()), Err(Refusal::AccessDenied));
        assert_eq!(site.run("anna", hold), Ok(Answer::Done));
    }
}

/// Whoever asks for what nobody can have, or what he may not have, has no rows looked through.
#[test]
fn no_room_is_looked_for_in_vain() {
    let engine = Arc::new(Watched::default());
    let (mut site, _) = site_over(Arc::clone(&engine) as Arc<dyn Engine>);
    let changes = AttributeChanges { owner: Some("bert".into()), ..AttributeChanges::default() };
    site.put("anna", "d/f", 500);
    site.put("anna", "d/f", 300);
    site.put("anna", "d/b", 10);
    site.run("op", Command::SetAttributes { place: place("d/b"), changes }).unwrap();
    let limits = Limits { bytes: 100, ..Limits::NONE };
    let subject = Subject::User("bert".into());
    site.run("op", Command::SetLimits { subject, limits }).unwrap();
    let looks = |site: &mut TestSite, user: &str, size: u64| {
        let create = Create {
            place: place("d/new"),
            mode: 0o644,
            size_max: size,
            publish: Publish::AtCommit,
            exclusive: false,
            policy: PolicyChanges::default(),
        };
        let submission = site.submission(user, Command::Create(create));
        let before = engine.looks.load(Ordering::Relaxed);
        let outcome = site.submit(&submission).unwrap().map(drop);
        (outcome, engine.looks.load(Ordering::Relaxed) - before)
    };
    assert_eq!(looks(&mut site, "anna", CAPACITY + 1), (Err(Refusal::NoSpace), 0));
    assert_eq!(looks(&mut site, "bert", 500), (Err(Refusal::UserQuota), 0));
    assert_eq!(looks(&mut site, "anna", CAPACITY), (Err(Refusal::NoSpace), 1));
    assert_eq!(looks(&mut site, "anna", 600), (Ok(()), 1));
}

/// Counts how often due work is looked through.
#[derive(Default)]
struct Watched {
    engine: MemoryEngine,
    looks: AtomicUsize,
}

struct WatchedTransaction<'a> {
    inner: Box<dyn Transaction + 'a>,
    looks: &'a AtomicUsize,
}

impl Engine for Watched {
    fn snapshot(&self) -> Result<Box<dyn Rows + '_>, EngineError> {
        self.engine.snapshot()
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, EngineError> {
        let (inner, looks) = (self.engine.begin()?, &self.looks);
        Ok(Box::new(WatchedTransaction { inner, looks }))
    }
}

impl Rows for WatchedTransaction<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.inner.get(table, key)
    }

    fn range(&self, table: Table, span: Span<'_>, limit: usize) -> Result<Vec<Row>, EngineError> {
        self.looks.fetch_add(usize::from(table == Table::Expiry), Ordering::Relaxed);
        self.inner.range(table, span, limit)
    }
}

impl Transaction for WatchedTransaction<'_> {
    fn commit(self: Box<Self>, writes: &Writes) -> Result<(), EngineError> {
        self.inner.commit(writes)
    }
}
