//! Sites with the production head, disks and writers: a campaign, and the scenarios of the design
//! that a network, crashes and disks take part in, each by name.

use std::collections::VecDeque;

use byname_catalog::{Caller, Reader, Subject, Usage};
use byname_sim::random::Random;
use byname_sim::site::files::Trouble;
use byname_sim::site::history::{Kind, Outcome};
use byname_sim::site::writer::Step;
use byname_sim::site::{Scenario, Shape, Site, SiteDisk, SiteHead, come_to_rest, play, promises};
use byname_sim::{Crash, Incident, MS, SECOND};

/// Seeds of the campaign that runs with the tests; `byname-sim campaign --sites` plays more.
const SEEDS: u64 = 24;
const HOUR: u64 = 3600 * SECOND;

#[test]
fn sites_keep_their_promises_through_storms() {
    let (mut done, mut failed) = (0, 0);
    for seed in 1..=SEEDS {
        let report = play(&Scenario::draw(seed));
        assert_eq!(report.fault, None, "byname-sim replay --sites {seed}");
        done += report.completed;
        failed += report.failed;
    }
    assert!(done > 10 * SEEDS, "{done} files were written or read");
    assert!(failed > 0, "storms that nobody notices are none");
}

/// A full disk was told to drop content, could not, and had it for good.
#[test]
fn a_full_disk_drops_what_it_could_not_once_it_has_room() {
    assert_eq!(play(&Scenario::draw(1215)).fault, None);
}

#[test]
fn a_seed_gives_one_history() {
    let digest = || play(&Scenario::draw(7)).digest;
    assert_eq!(digest(), digest());
}

fn put(path: u8, content: u64, pause_ns: u64) -> Step {
    Step { kind: Kind::Put { path, content }, size: 40_000, pause_ns }
}

fn shape(writers: Vec<Vec<Step>>) -> Shape {
    let writers = writers.into_iter().map(VecDeque::from).collect();
    Shape { disk_count: 3, policy: (2, 2), writers, readers: vec![VecDeque::new()] }
}

fn rest(mut site: Site, what: &str) -> Site {
    if let Err(fault) = come_to_rest(&mut site) {
        panic!("{what}: {fault}");
    }
    site
}

/// Inodes and octets that a user has, reservations included.
fn usage(site: &Site, user: &str) -> Usage {
    let reader = Reader::new(&site.engine, &Caller::Head).expect("a snapshot");
    reader.usage(&Subject::User(user.to_owned())).expect("a user").0
}

fn outcomes(site: &Site) -> Vec<Option<Outcome>> {
    let record = site.record.borrow();
    let is_write = |kind: Kind| !matches!(kind, Kind::Read { .. });
    let told = record.operations.iter();
    let told = told.filter(|it| it.is_none_or(|operation| is_write(operation.kind)));
    told.map(|it| it.map(|operation| operation.outcome)).collect()
}

/// Scenario 1.
#[test]
fn scenario_1_a_writer_dies_at_any_moment_and_space_and_quota_return() {
    for moment in 0..12 {
        let mut site = Site::new(moment, &shape(vec![vec![put(0, 1, 0)]]));
        let program = site.writers[0].program;
        let at_ns = site.world.now_ns() + 8 * MS + moment * 9 * MS;
        site.world.plan(at_ns, Incident::CrashProgram { program, how: Crash::Process });
        site.world.run(at_ns + SECOND, &|_| false).unwrap();
        let site = rest(site, &format!("moment {moment}"));
        let used = usage(&site, "u0");
        let is_there = used.inodes == 1;
        let expected = if is_there { (1, 40_000) } else { (0, 0) };
        assert_eq!((used.inodes, used.bytes), expected, "moment {moment}");
        assert_eq!((used.reserved_inodes, used.reserved_bytes), (0, 0), "moment {moment}");
        let stored: usize = (0..3).map(|disk| site.disk(disk).replicas().len()).sum();
        assert_eq!(stored, if is_there { 2 } else { 0 }, "moment {moment}");
    }
}

/// Scenario 2.
#[test]
fn scenario_2_a_disk_dies_around_each_sync_and_gives_no_false_receipt() {
    for moment in 0..12 {
        let mut site = Site::new(100 + moment, &shape(vec![vec![put(0, 1, 0), put(0, 2, 0)]]));
        let from_ns = site.world.now_ns();
        for (number, member) in site.disks.clone().into_iter().enumerate() {
            let at_ns = from_ns + 40 * MS + moment * 7 * MS + number as u64 * 3 * MS;
            let (program, how) = (member.program, Crash::Power);
            site.world.plan(at_ns, Incident::CrashProgram { program, how });
            site.world.plan(at_ns + SECOND, Incident::RestartProgram { program });
        }
        let site = rest(site, &format!("moment {moment}"));
        promises::replicated(&site).unwrap();
    }
}

/// Scenario 4: most answers are lost on their way.
#[test]
fn scenario_4_commands_whose_answers_are_lost_are_applied_once() {
    let rename = Step { kind: Kind::Rename { from: 0, to: 1 }, size: 0, pause_ns: 0 };
    let unlink = Step { kind: Kind::Unlink { path: 1 }, size: 0, pause_ns: 0 };
    let steps = vec![put(0, 1, 0), rename, put(0, 2, 0), unlink];
    for seed in 0..4 {
        let mut site = Site::new(seed, &shape(vec![steps.clone()]));
        let link = site.head.link;
        site.world.set_line(link, |line| {
            (line.faults.loss, line.faults.burst) = (0.3, 1);
            line.faults.duplication = 0.2;
        });
        let end_ns = site.world.now_ns() + 60 * SECOND;
        let head = site.head.program;
        site.world.plan(end_ns / 4, Incident::CrashProgram { program: head, how: Crash::Process });
        site.world.plan(end_ns / 3, Incident::RestartProgram { program: head });
        site.world.run(end_ns, &|_| false).unwrap();
        let site = rest(site, &format!("seed {seed}"));
        assert!(outcomes(&site).contains(&Some(Outcome::Done)), "something came through");
    }
}

/// Scenario 5.
#[test]
fn scenario_5_of_two_rewriters_one_wins_and_the_other_knows() {
    let both = vec![vec![put(0, 1, 0), put(0, 2, SECOND)], vec![put(0, 3, SECOND + 600 * MS)]];
    let mut losers = 0;
    for seed in 0..6 {
        let mut steps = both.clone();
        steps[1][0].pause_ns = SECOND + seed * 30 * MS;
        let site = rest(Site::new(seed, &shape(steps)), &format!("seed {seed}"));
        let told = outcomes(&site);
        assert!(!told.contains(&Some(Outcome::Unknown)), "everybody knows: {told:?}");
        losers += told.iter().filter(|it| it.is_none()).count();
    }
    assert!(losers > 0, "they met");
}

/// Scenario 6: a rename and a removal while the file is being written.
#[test]
fn scenario_6_renames_and_removals_during_a_write_are_followed() {
    for delay in 0..6 {
        let at = 300 * MS + delay * 15 * MS;
        let rename = Step { kind: Kind::Rename { from: 0, to: 1 }, size: 0, pause_ns: at };
        let unlink = Step { kind: Kind::Unlink { path: 1 }, size: 0, pause_ns: 30 * MS };
        let writers = vec![vec![put(0, 1, 0), put(0, 2, 0), put(0, 3, 0)], vec![rename, unlink]];
        rest(Site::new(delay, &shape(writers)), &format!("after {delay}"));
    }
}

/// Scenario 11: a full disk refuses, and what a disk has spoiled is read from another.
#[test]
fn scenario_11_a_full_disk_is_replaced_and_a_lying_one_is_passed_by() {
    let mut site = Site::new(11, &shape(vec![vec![put(0, 1, 0)]]));
    site.disk(0).files.set_trouble(Trouble { is_full: true, is_read_only: false });
    let end_ns = site.world.now_ns() + 20 * SECOND;
    site.world.run(end_ns, &|_| false).unwrap();
    assert_eq!(outcomes(&site), [Some(Outcome::Done)]);
    assert!(site.disk(0).replicas().is_empty(), "it is full");
    site.disk(0).files.set_trouble(Trouble::default());
    let mut site = rest(site, "the full disk");
    let place = byname_catalog::Place::path("f0").unwrap();
    let entry = Reader::new(&site.engine, &Caller::Head).unwrap().entry(&place).unwrap();
    let version = entry.inode.content().unwrap().version;
    let content = byname_catalog::id::ContentId { inode: entry.id, version };
    for disk in [1, 2] {
        let (files, object) = (site.disk(disk).files.clone(), SiteDisk::object(content));
        let moment = files.moment();
        assert!(files.corrupt(&object, &mut Random::new(disk as u64)));
        let read_before = site.record.borrow().reads[0];
        let reader = site.readers[0].program;
        let program = site.world.program_mut::<byname_sim::site::SiteReader>(reader).unwrap();
        program.read_in_calm(0..1);
        site.world.wake(reader);
        let end_ns = site.world.now_ns() + 60 * SECOND;
        site.world.run(end_ns, &|_| false).unwrap();
        assert_eq!(site.record.borrow().reads[0], read_before + 1, "disk {disk} lies");
        files.restore(moment);
    }
}

/// Scenario 12.
#[test]
fn scenario_12_a_dead_replica_blocks_no_rewrite_and_is_cleaned_when_it_returns() {
    let mut site = Site::new(12, &shape(vec![vec![put(0, 1, 0), put(0, 2, 20 * SECOND)]]));
    site.world.run(5 * SECOND, &|_| false).unwrap();
    assert_eq!(outcomes(&site), [Some(Outcome::Done)]);
    let dead = (0..3).find(|disk| !site.disk(*disk).replicas().is_empty()).unwrap();
    let program = site.disks[dead].program;
    site.world.plan(6 * SECOND, Incident::CrashProgram { program, how: Crash::Power });
    site.world.run(90 * SECOND, &|_| false).unwrap();
    assert_eq!(outcomes(&site), [Some(Outcome::Done); 2], "nobody waited for the dead one");
    assert_eq!(site.disk(dead).replicas().len(), 1, "it still has what it had");
    site.world.plan(91 * SECOND, Incident::RestartProgram { program });
    let site = rest(site, "its return");
    assert!(site.disk(dead).replicas().is_empty(), "it was told to drop it");
}

/// Scenario 15: the head's clock jumps an hour ahead and back again.
#[test]
fn scenario_15_with_clocks_an_hour_off_versions_and_bindings_stay_monotone() {
    let steps = (1..=6).map(|content| put(0, content, 3 * SECOND)).collect();
    let mut shape = shape(vec![steps]);
    shape.readers = vec![(0..12).map(|_| (0, 2 * SECOND)).collect()];
    let mut site = Site::new(15, &shape);
    for (second, ahead_ns) in [(5, HOUR), (10, 0), (15, HOUR / 2), (20, 0)] {
        site.world.run(second * SECOND, &|_| false).unwrap();
        let program = site.head.program;
        site.world.program_mut::<SiteHead>(program).unwrap().set_clock_ahead(ahead_ns);
    }
    site.world.run(40 * SECOND, &|_| false).unwrap();
    let reads = site.record.borrow().reads;
    assert!(reads[0] > 5, "{reads:?}");
    rest(site, "clocks");
}
