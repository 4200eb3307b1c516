//! Sites with the production head, disks and writers: a campaign, and the scenarios of the design
//! that a network, crashes and disks take part in, each by name.

use std::collections::{BTreeSet, VecDeque};

use byname_catalog::engine::{Engine, Span, Table};
use byname_catalog::{ATTEMPT_NS, Caller, Place, Reader, Subject, Usage};
use byname_sim::random::Random;
use byname_sim::site::files::Trouble;
use byname_sim::site::history::{Kind, Outcome};
use byname_sim::site::writer::Step;
use byname_sim::site::{
    HEAD_LEASE_NS, Member, Scenario, Shape, Site, SiteDisk, SiteHead, SiteThief, SiteWriter,
    come_to_rest, play, promises,
};
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
    assert_eq!(play(&Scenario::draw_plain(1215)).fault, None);
}

/// A disk that was full when it started could not put aside what a power cut had torn, and ended.
#[test]
fn a_disk_that_is_full_when_it_starts_does_start() {
    assert_eq!(play(&Scenario::draw(493_109_848)).fault, None);
}

/// A disk's process was killed after it had placed content and before it had synced the names. It
/// started again, found the content, signed for it, and a power cut took it.
#[test]
fn what_a_disk_finds_when_it_starts_survives_a_power_cut() {
    assert_eq!(play(&Scenario::draw(875_028_716)).fault, None);
}

#[test]
fn a_seed_gives_one_history() {
    let digest = || play(&Scenario::draw(7)).digest;
    assert_eq!(digest(), digest());
}

fn put(path: u8, content: u64, pause_ns: u64) -> Step {
    Step { size: 40_000, ..Step::new(Kind::Put { path, content }, pause_ns) }
}

pub(super) fn shape(writers: Vec<Vec<Step>>) -> Shape {
    let writers = writers.into_iter().map(VecDeque::from).collect();
    let readers = vec![VecDeque::new()];
    Shape {
        disk_count: 3,
        policy: (2, 2),
        writers,
        readers,
        has_thief: false,
        tree: None,
        has_door: false,
        has_trash: false,
    }
}

pub(super) fn rest(mut site: Site, what: &str) -> Site {
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

/// What disks have: disk and name of the content.
fn stored(site: &Site) -> BTreeSet<(usize, String)> {
    let of_disk = |disk| site.disk(disk).replicas().into_keys().map(move |name| (disk, name));
    (0..site.disks.len()).flat_map(of_disk).collect()
}

/// Contents that a catalog wants to be dropped, once for each disk.
fn drops(engine: &dyn Engine) -> usize {
    let rows = engine.snapshot().expect("memory");
    rows.range(Table::Drop, Span::ALL, 1000).expect("memory").len()
}

/// All that has a name, with its attributes.
fn files(site: &Site) -> Vec<String> {
    let reader = Reader::new(&site.engine, &Caller::Head).expect("a snapshot");
    let top = byname_catalog::Place::path("").expect("no names");
    let listed = reader.list(&top, None, 100).expect("a directory");
    listed.iter().map(|entry| format!("{:?} {:?}", entry.name, entry.inode)).collect()
}

pub(super) fn outcomes(site: &Site) -> Vec<Option<Outcome>> {
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

/// Scenario 2, with the power cut later: what was found at the start has been signed for by then.
#[test]
fn scenario_2_a_disk_that_was_killed_around_each_sync_loses_nothing_when_the_power_fails() {
    for moment in 0..24 {
        let puts = (0..4).map(|path| put(path, 1 + u64::from(path), 0));
        let mut site = Site::new(130 + moment, &shape(vec![puts.collect()]));
        let at_ns = site.world.now_ns() + 40 * MS + moment * 5 * MS;
        let crashes = [(at_ns, Crash::Process), (at_ns + 10 * SECOND, Crash::Power)];
        for Member { program, .. } in site.disks.clone() {
            for (at_ns, how) in crashes {
                site.world.plan(at_ns, Incident::CrashProgram { program, how });
                site.world.plan(at_ns + SECOND, Incident::RestartProgram { program });
            }
        }
        site.world.run(at_ns + 12 * SECOND, &|_| false).unwrap();
        let site = rest(site, &format!("moment {moment}"));
        promises::replicated(&site).unwrap();
    }
}

/// Name of the content that the first path has, as disks have it; whether it is the second one that
/// was put there.
fn version_of_f0(site: &Site) -> (String, bool) {
    let reader = Reader::new(&site.engine, &Caller::Head).expect("a snapshot");
    let entry = reader.entry(&byname_catalog::Place::path("f0").expect("a name")).expect("a file");
    let content = entry.inode.content().expect("a file");
    let name = format!("{:016x}-{:016x}", entry.id.0, content.version.0);
    (name, site.record.borrow().contents.get(&content.root) == Some(&2))
}

/// Scenario 3: the head's clock jumps to where attempts end, around the time of the commit.
#[test]
fn scenario_3_a_commit_at_the_deadline_has_one_outcome_everywhere() {
    let (mut committed, mut ended) = (0, 0);
    for moment in 0..24 {
        // The head looks for what is due once a second.
        let steps = vec![put(0, 1, 0), put(0, 2, 1450 * MS + moment * 25 * MS)];
        let mut site = Site::new(300 + moment, &shape(vec![steps]));
        let jump_ns = site.world.now_ns() + 1950 * MS;
        site.world.run(jump_ns, &|_| false).unwrap();
        let program = site.head.program;
        site.world.program_mut::<SiteHead>(program).unwrap().set_clock_ahead(ATTEMPT_NS);
        site.world.run(jump_ns + 20 * SECOND, &|_| false).unwrap();
        let told = outcomes(&site);
        assert_eq!(told.first(), Some(&Some(Outcome::Done)));
        let told = told.get(1).copied().expect("it was begun");
        let site = rest(site, &format!("moment {moment}"));
        let (content, is_second) = version_of_f0(&site);
        match told {
            Some(Outcome::Done) => assert!(is_second, "moment {moment}: it was acknowledged"),
            None => assert!(!is_second, "moment {moment}: it was refused"),
            // The clock ends the writer's session as well, and then he is not told.
            Some(Outcome::Unknown) => {}
            other => panic!("moment {moment}: {other:?}"),
        }
        // What the head has is what the disks have: both replicas, and nothing of the other.
        let on_disks: Vec<(usize, String)> = stored(&site).into_iter().collect();
        let is_of_it = |(_, name): &(usize, String)| *name == content;
        assert!(on_disks.len() == 2 && on_disks.iter().all(is_of_it), "{moment}: {on_disks:?}");
        if is_second { committed += 1 } else { ended += 1 }
    }
    assert!(committed > 0 && ended > 0, "{committed} in time, {ended} too late");
}

/// Scenario 4: most answers are lost on their way.
#[test]
fn scenario_4_commands_whose_answers_are_lost_are_applied_once() {
    let rename = Step::new(Kind::Rename { from: 0, to: 1 }, 0);
    let unlink = Step::new(Kind::Unlink { path: 1 }, 0);
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
        let rename = Step::new(Kind::Rename { from: 0, to: 1 }, at);
        let unlink = Step::new(Kind::Unlink { path: 1 }, 30 * MS);
        let writers = vec![vec![put(0, 1, 0), put(0, 2, 0), put(0, 3, 0)], vec![rename, unlink]];
        rest(Site::new(delay, &shape(writers)), &format!("after {delay}"));
    }
}

/// A tree of 600 entries takes three steps; the head dies between two of them, and after each.
#[test]
fn a_removed_tree_is_collected_whenever_the_head_dies() {
    let left = |engine: &dyn Engine| {
        let rows = engine.snapshot().expect("memory");
        rows.range(Table::Dentry, Span::ALL, 10_000).expect("memory").len()
    };
    for step in 0..4 {
        let remove = Step::new(Kind::RemoveTree, SECOND);
        let steps = vec![put(4, 1, 0), remove, put(5, 2, 0), put(0, 3, 0)];
        let shape = Shape { tree: Some(600), ..shape(vec![steps]) };
        let mut site = Site::new(600 + step, &shape);
        let (engine, program) = (site.engine.clone(), site.head.program);
        // The last file is beside it, and may be there by then.
        let until = 601_usize.saturating_sub(256 * step as usize).max(1);
        let is_there = |engine: &dyn Engine| {
            let tree = byname_catalog::Place::path("d").expect("a name");
            Reader::new(engine, &Caller::Head).expect("a snapshot").entry(&tree).is_ok()
        };
        let end_ns = site.world.now_ns() + 20 * SECOND;
        site.world.run(end_ns, &|_| !is_there(&engine) && left(&engine) <= until).unwrap();
        assert!(site.world.now_ns() < end_ns, "step {step}");
        let at_ns = site.world.now_ns();
        site.world.plan(at_ns, Incident::CrashProgram { program, how: Crash::Power });
        site.world.plan(at_ns + SECOND, Incident::RestartProgram { program });
        let site = rest(site, &format!("step {step}"));
        assert_eq!(left(&engine), 1, "the file beside it stays");
        assert_eq!(usage(&site, "u0").inodes, 1);
        let done = Some(Outcome::Done);
        assert_eq!(outcomes(&site), [done, done, None, done], "nothing is put into it any more");
    }
}

/// The same where there is a trash: it counts until its time is over, and ends whoever dies.
#[test]
fn what_is_in_the_trash_ends_in_time_whenever_the_head_dies() {
    let rows = |engine: &dyn Engine, table| {
        let rows = engine.snapshot().expect("memory");
        rows.range(table, Span::ALL, 10_000).expect("memory").len()
    };
    for step in 0..4 {
        let steps = vec![put(4, 1, 0), Step::new(Kind::RemoveTree, SECOND), put(0, 3, 0)];
        let shape = Shape { tree: Some(600), has_trash: true, ..shape(vec![steps]) };
        let mut site = Site::new(650 + step, &shape);
        let (engine, program) = (site.engine.clone(), site.head.program);
        let end_ns = site.world.now_ns() + 20 * SECOND;
        site.world.run(end_ns, &|_| rows(&engine, Table::Trash) == 1).unwrap();
        assert!(site.world.now_ns() < end_ns, "step {step}: it is in the trash");
        // It dies when it may be measuring, and when it may be collecting.
        for at_ns in [step * SECOND / 4, (59 + step) * SECOND] {
            let at_ns = site.world.now_ns() + at_ns;
            site.world.plan(at_ns, Incident::CrashProgram { program, how: Crash::Power });
            site.world.plan(at_ns + SECOND, Incident::RestartProgram { program });
        }
        let measured_ns = site.world.now_ns() + 30 * SECOND;
        site.world.run(measured_ns, &|_| false).unwrap();
        let reader = Reader::new(&engine, &Caller::Head).expect("a snapshot");
        let item = reader.trash(None, 9).expect("rows").items.remove(0).1;
        assert_eq!(item.measure, Some((40_000, 602)), "step {step}");
        drop(reader);
        assert_eq!(usage(&site, "u0").bytes, 80_000, "what is there counts");
        site.world.run(measured_ns + 60 * SECOND, &|_| false).unwrap();
        let site = rest(site, &format!("step {step}"));
        assert_eq!((rows(&engine, Table::Trash), rows(&engine, Table::Dentry)), (0, 1));
        assert_eq!(usage(&site, "u0").bytes, 40_000);
    }
}

/// Scenario 7: a head is cut off with the catalog as it was, files are removed there, and it orders
/// disks to drop them while another head is in charge.
#[test]
fn scenario_7_a_head_whose_term_is_over_is_not_obeyed() {
    for seed in 0..3 {
        let steps = (0..4).map(|path| put(path, 1 + u64::from(path), 0)).collect();
        let mut site = Site::new(700 + seed, &shape(vec![steps]));
        site.world.run(20 * SECOND, &|_| false).unwrap();
        assert_eq!(outcomes(&site), [Some(Outcome::Done); 4]);
        let before = stored(&site);
        let deposed = site.depose_head().unwrap().expect("all disks have heard of the other head");
        let ordered = site.world.program::<SiteHead>(deposed).unwrap();
        assert_eq!(drops(ordered.engine()), before.len(), "it still wants all to be dropped");
        assert_eq!(stored(&site), before, "seed {seed}");
        rest(site, &format!("seed {seed}"));
    }
}

/// Scenario 7, with two heads: the one that leads is stopped, the other takes over, and writers go
/// on; when the first goes on with what it was at, engine and disks refuse it, and it waits. Then
/// the second dies, and the first leads again.
#[test]
fn scenario_7_a_paused_head_resumes_after_a_take_over_and_is_refused() {
    for seed in 0..3 {
        let files =
            |content: u64| (0..8).map(move |it| put(it % 4, content + u64::from(it), SECOND));
        let mut site = Site::new(750 + seed, &shape(vec![files(1).chain(files(101)).collect()]));
        let (first, second) = (site.head.program, site.add_head());
        let epoch = |site: &Site, program| site.world.program::<SiteHead>(program).unwrap().epoch();
        site.world.run(4 * SECOND, &|_| false).unwrap();
        let old = epoch(&site, first).expect("it leads");
        assert_eq!(epoch(&site, second), None, "there is one");
        let done = outcomes(&site).len();
        site.pause_head(first, true);
        let paused_ns = site.world.now_ns();
        site.world.run(paused_ns + HEAD_LEASE_NS + 8 * SECOND, &|_| false).unwrap();
        let new = epoch(&site, second).expect("it has taken over");
        assert!(new > old && epoch(&site, first) == Some(old), "the first knows nothing yet");
        assert!(outcomes(&site).len() > done, "writers went on by themselves");
        site.pause_head(first, false);
        let resumed_ns = site.world.now_ns();
        site.world.run(resumed_ns + 3 * SECOND, &|_| false).unwrap();
        assert_eq!((epoch(&site, first), epoch(&site, second)), (None, Some(new)));
        let crash = Incident::CrashProgram { program: second, how: Crash::Process };
        site.world.plan(site.world.now_ns() + MS, crash);
        site.world.run(site.world.now_ns() + HEAD_LEASE_NS + 2 * SECOND, &|_| false).unwrap();
        assert!(epoch(&site, first) > Some(new), "it leads again");
        site.world.run(120 * SECOND, &|_| false).unwrap();
        assert_eq!(outcomes(&site), [Some(Outcome::Done); 16], "seed {seed}");
        rest(site, &format!("seed {seed}"));
    }
}

/// Scenario 8: the catalog is put back to what it was a while ago, and a new epoch of numbers is
/// begun.
#[test]
fn scenario_8_with_a_backup_older_than_the_disks_nothing_is_dropped_and_no_number_used_again() {
    let steps = vec![put(0, 1, 0), put(1, 2, 10 * SECOND), put(0, 3, SECOND)];
    let mut site = Site::new(8, &shape(vec![steps]));
    site.world.run(8 * SECOND, &|_| false).unwrap();
    let backup = site.engine.fork();
    site.world.run(30 * SECOND, &|_| false).unwrap();
    assert_eq!(outcomes(&site), [Some(Outcome::Done); 3]);
    // The first version of f0 is dropped ten minutes after it was replaced, and the backup has it.
    let before = stored(&site);
    site.restore(backup, 77).unwrap();
    let writer = site.writers[0].program;
    let program = site.world.program_mut::<SiteWriter>(writer).unwrap();
    // The first command is refused: the session is of the former epoch.
    program.add(put(2, 4, SECOND));
    program.add(put(2, 4, SECOND));
    site.world.wake(writer);
    let head = site.head.program;
    site.world.run(60 * SECOND, &|_| false).unwrap();
    site.world.program_mut::<SiteHead>(head).unwrap().set_clock_ahead(3 * HOUR);
    site.world.run(400 * SECOND, &|_| false).unwrap();
    assert_eq!(site.record.borrow().puts, [4, 1, 0]);
    let after = stored(&site);
    assert!(
        before.is_subset(&after),
        "what the backup does not know is kept: {before:?} {after:?}"
    );
    let newer: Vec<_> = after.difference(&before).collect();
    assert_eq!(newer.len(), 2, "two replicas of the new file: {newer:?}");
    let highest = before.iter().map(|(_, content)| content.clone()).max().unwrap();
    assert!(newer.iter().all(|(_, content)| *content > highest), "{newer:?} {highest}");
    promises::booked(&site).unwrap();
    promises::stored(&site).unwrap();
}

/// Scenario 9: the catalog is made again from the rows that others follow from, while files are
/// written. All promises hold as if the head had been started again.
#[test]
fn scenario_9_a_catalog_made_again_is_the_same() {
    for moment in 0..8 {
        let mut steps: Vec<Step> = (1..6).map(|it| put((it % 3) as u8, it, 300 * MS)).collect();
        steps.push(Step::new(Kind::Rename { from: 0, to: 3 }, 0));
        steps.push(Step::new(Kind::Unlink { path: 1 }, 0));
        let mut site = Site::new(900 + moment, &shape(vec![steps]));
        let at_ns = site.world.now_ns() + 300 * MS + moment * 170 * MS;
        site.world.run(at_ns, &|_| false).unwrap();
        let files = files(&site);
        site.rebuild().unwrap();
        assert_eq!(self::files(&site), files, "moment {moment}");
        let site = rest(site, &format!("moment {moment}"));
        assert!(site.record.borrow().puts[0] >= 4, "writers went on");
    }
}

/// Scenario 10: who has tickets of his own claims the content of others, and of tickets that he has
/// given back.
#[test]
fn scenario_10_tickets_of_other_files_and_old_tickets_are_refused() {
    let steps = (1..8).map(|content| put(0, content, SECOND)).collect();
    let shape = Shape { has_thief: true, ..shape(vec![steps]) };
    let mut site = Site::new(10, &shape);
    site.world.run(30 * SECOND, &|_| false).unwrap();
    let thief = site.thief.unwrap().program;
    let refused = site.world.program::<SiteThief>(thief).unwrap().refused();
    assert!(refused >= 40, "disks have refused {refused} orders");
    let site = rest(site, "a thief");
    assert_eq!(outcomes(&site), [Some(Outcome::Done); 7], "he was in nobody's way");
}

/// Scenario 11: a full disk refuses, and what a disk has spoiled is read from another.
#[test]
fn scenario_11_a_full_disk_is_replaced_and_a_lying_one_is_passed_by() {
    let mut site = Site::new(11, &shape(vec![vec![put(0, 1, 0)]]));
    site.disk(0).files.set_trouble(Trouble { is_full: true, ..Trouble::default() });
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
        assert_eq!(read_all(&mut site, 0..1), 1, "disk {disk} lies");
        files.restore(moment);
    }
}

/// Reads files in calm, each to its end, and says how many were read.
fn read_all(site: &mut Site, files: std::ops::Range<u8>) -> u64 {
    let before = site.record.borrow().reads[0];
    let reader = site.readers[0].program;
    let program = site.world.program_mut::<byname_sim::site::SiteReader>(reader);
    program.expect("it is a reader").read_in_calm(files);
    site.world.wake(reader);
    let end_ns = site.world.now_ns() + 120 * SECOND;
    site.world.run(end_ns, &|_| false).expect("no promise is broken");
    site.record.borrow().reads[0] - before
}

/// Scenario 11: a disk says that it has synced what it has not, and loses it when the power fails.
#[test]
fn scenario_11_what_a_disk_loses_that_lies_about_syncs_is_read_from_another() {
    let mut lost = 0;
    for seed in 0..6 {
        let steps = (0..4).map(|path| put(path, 1 + u64::from(path), 6 * SECOND)).collect();
        let mut site = Site::new(1100 + seed, &shape(vec![steps]));
        // A disk that has lost the head's term does not start at all.
        site.world.run(5 * SECOND, &|_| false).unwrap();
        site.disk(0).files.set_trouble(Trouble { lies: true, ..Trouble::default() });
        site.world.run(40 * SECOND, &|_| false).unwrap();
        assert_eq!(outcomes(&site), [Some(Outcome::Done); 4], "it has signed for its replicas");
        let (whole, before) = (site.disk(0).files.moment(), site.disk(0).replicas());
        let (program, how) = (site.disks[0].program, Crash::Power);
        let now_ns = site.world.now_ns();
        site.world.plan(now_ns + MS, Incident::CrashProgram { program, how });
        site.world.plan(now_ns + SECOND, Incident::RestartProgram { program });
        site.world.run(now_ns + 5 * SECOND, &|_| false).unwrap();
        lost += before.len() - site.disk(0).replicas().len();
        // What is half there is not given out as the file: readers compare every octet.
        assert_eq!(read_all(&mut site, 0..4), 4, "seed {seed}");
        if promises::stored(&site).is_err() {
            site.disk(0).files.restore(whole);
            promises::stored(&site).expect("nothing is lost elsewhere");
        }
    }
    assert!(lost > 0, "it lost something");
}

/// Scenario 11: a disk has the octets of what it signed for no more, and says that it has them. It
/// cannot show them.
#[test]
fn scenario_11_a_disk_proves_what_it_has_and_nothing_else() {
    let steps = (0..3).map(|path| put(path, 1 + u64::from(path), 0)).collect();
    let mut site = rest(Site::new(1150, &shape(vec![steps])), "what is proved");
    let proved = |site: &mut Site, disk: usize| {
        let id = site.disk(disk).name().id;
        let leader = site.leader().expect("a head that leads");
        assert!(leader.challenge(id, 10), "nothing else is being proved");
        let end_ns = site.world.now_ns() + 20 * SECOND;
        site.world.run(end_ns, &|_| false).expect("no promise is broken");
        let found = site.leader().and_then(|watch| watch.proved()).expect("it came to an end");
        (found.iter().filter(|(_, is_proved)| *is_proved).count(), found.len())
    };
    let held: Vec<usize> = (0..3).map(|disk| site.disk(disk).replicas().len()).collect();
    for (disk, count) in held.iter().enumerate() {
        assert_eq!(proved(&mut site, disk), (*count, *count), "disk {disk}");
    }
    let liar = held.iter().position(|count| *count > 0).expect("somebody has a replica");
    let (files, objects) = (site.disk(liar).files.clone(), site.disk(liar).objects());
    let moment = files.moment();
    assert!(files.corrupt(&objects[0], &mut Random::new(7)));
    assert_eq!(proved(&mut site, liar), (held[liar] - 1, held[liar]), "one octet is another");
    files.restore(moment);
    assert_eq!(proved(&mut site, liar), (held[liar], held[liar]));
}

/// Scenario 11: a disk is copied octet by octet and served twice. Either may have been told what
/// the other was not.
#[test]
fn scenario_11_a_disk_that_is_there_twice_spoils_no_file() {
    let mut differ = 0;
    for seed in 0..4 {
        let steps = (0..8).map(|it| put(it % 4, 1 + u64::from(it), SECOND)).collect();
        let mut site = Site::new(1150 + seed, &shape(vec![steps]));
        site.world.run((2 + seed) * SECOND, &|_| false).unwrap();
        let clone = site.clone_disk(0);
        // The one in front of whose forwarder waits, then the other.
        let program = site.disks[0].program;
        for second in [4, 6, 8] {
            let at_ns = (second + seed) * SECOND;
            site.world.plan(at_ns, Incident::CrashProgram { program, how: Crash::Process });
            site.world.plan(at_ns + SECOND, Incident::RestartProgram { program });
        }
        site.world.run(60 * SECOND, &|_| false).unwrap();
        assert!(outcomes(&site).contains(&Some(Outcome::Done)), "writers go on");
        assert_eq!(read_all(&mut site, 0..4), 4, "seed {seed}");
        let of_clone = site.world.program::<SiteDisk>(clone).unwrap().replicas();
        differ += usize::from(of_clone != site.disk(0).replicas());
        promises::booked(&site).unwrap();
    }
    assert!(differ > 0, "both were told something");
}

fn writer(site: &Site) -> &SiteWriter {
    site.world.program(site.writers[0].program).expect("it is a writer")
}

/// A head that was started again knows no keys: what was under them is signed, others are agreed
/// upon, and whoever writes hears nothing of it.
#[test]
fn a_head_that_is_started_again_ends_no_writer_s_session() {
    let steps = (0..24).map(|it| put(it % 4, 1 + u64::from(it), 500 * MS)).collect();
    let mut site = Site::new(21, &shape(vec![steps]));
    site.world.run(6 * SECOND, &|_| false).unwrap();
    assert!(writer(&site).has_keys());
    let program = site.head.program;
    site.world.plan(7 * SECOND, Incident::CrashProgram { program, how: Crash::Process });
    site.world.plan(8 * SECOND, Incident::RestartProgram { program });
    site.world.run(60 * SECOND, &|_| false).unwrap();
    assert_eq!(outcomes(&site), [Some(Outcome::Done); 24]);
    assert!(writer(&site).has_keys() && writer(&site).lives() == 1);
    rest(site, "a head without keys");
}

/// Keys of a session are worth no more than the key of their user.
#[test]
fn who_has_lost_his_key_commands_nothing_under_keys_that_he_has() {
    let steps = vec![vec![put(0, 1, 0)], vec![put(1, 2, 0)]];
    let mut site = rest(Site::new(22, &shape(steps)), "two writers");
    site.take_rights_of_writer().unwrap();
    let name = writer(&site).key_name();
    assert!(Reader::new(&site.engine, &Caller::Head).unwrap().key(&name).unwrap().is_none());
}

/// What a door may do is asked at each command, whatever keys its session has.
#[test]
fn a_door_whose_grant_was_taken_back_does_nothing_more() {
    let steps = vec![vec![put(0, 1, 0)], vec![put(1, 2, 0)]];
    let mut site = rest(Site::new(24, &Shape { has_door: true, ..shape(steps) }), "a door");
    let reader = Reader::new(&site.engine, &Caller::Head).unwrap();
    let written = reader.entry(&Place::path("f0").unwrap()).unwrap();
    assert_eq!(written.inode.owner, "u0", "the file is the user's, not the door's");
    drop(reader);
    site.take_rights_of_writer().unwrap();
    assert!(writer(&site).has_keys(), "it is refused under keys of its session, too");
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
