//! A scenario of a site from its seed: a storm of crashes, cuts and full disks while clients write
//! and read, then calm, in which all promises have to hold.

use std::collections::VecDeque;

use super::files::Trouble;
use super::history::{self, Kind};
use super::promises::Broken;
use super::writer::Step;
use super::{Member, Shape, Site, SiteHead, SiteReader, SiteWriter, promises};
use crate::campaign::Report;
use crate::program::Crash;
use crate::random::Random;
use crate::world::{Fault, Incident, MS, SECOND};

/// Paths that clients use.
const PATHS: u64 = promises::PATHS as u64;
/// Time for writers to come to their end after the storm.
const WRITERS_NS: u64 = 600 * SECOND;
/// Then the head's clock is later by this: all that ends by itself is over.
const AHEAD_NS: u64 = 3 * 3600 * SECOND;
/// Time for disks to ask and to be told, after that.
const CLEANING_NS: u64 = 300 * SECOND;
/// Makes what [`Scenario::draw`] adds independent of the rest.
const WIDER: u64 = 0x7769_6465_7200_0000;
/// Time for the last readings.
const READING_NS: u64 = 120 * SECOND;

/// Something that is done to a disk's file system.
#[derive(Clone, Copy, Debug)]
struct Spoil {
    at_ns: u64,
    disk: usize,
    trouble: Trouble,
}

/// What a seed stands for.
#[derive(Clone, Debug)]
pub struct Scenario {
    seed: u64,
    shape: Shape,
    /// When everything is well again.
    storm_end_ns: u64,
    /// Chances of a frame to be lost, to come twice, and to be late.
    faults: (f64, f64, f64),
    crashes: Vec<(u64, u64, usize, Crash)>,
    cuts: Vec<(u64, u64, usize)>,
    spoils: Vec<Spoil>,
    /// Chances of a frame to and from the head to be lost, and to come twice: more than that of
    /// others.
    head_faults: Option<(f64, f64)>,
    /// After the storm another head takes over, and the first one goes on.
    deposes_head: bool,
    /// At the end a writer loses his key, or his door what it was granted.
    removes_key: bool,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut scenario = Self::draw_plain(seed);
        let mut random = Random::new(seed ^ WIDER);
        if random.chance(0.4) {
            scenario.head_faults = Some((0.3, 0.3));
        }
        scenario.shape.has_thief = random.chance(0.5);
        scenario.deposes_head = random.chance(0.3);
        scenario.removes_key = random.chance(0.3);
        if random.chance(0.4) {
            scenario.add_tree(&mut random);
        }
        if random.chance(0.4) {
            scenario.add_leases(&mut random);
        }
        scenario.shape.has_trash = random.chance(0.3);
        scenario.shape.has_door = random.chance(0.5);
        if random.chance(0.3) {
            scenario.add_growth(&mut random);
        }
        scenario
    }

    /// Has a writer add to a file again and again.
    fn add_growth(&mut self, random: &mut Random) {
        let count = self.shape.writers.len() as u64;
        let (writer, path) = (random.below(count), random.below(PATHS) as u8);
        for state in 0..4 + random.below(6) {
            let step = Step::grown(path, (writer, state), random.below(SECOND));
            self.shape.writers[writer as usize].push_back(step);
        }
    }

    /// Has writers take some files for writing alone; the others write them all the same.
    fn add_leases(&mut self, random: &mut Random) {
        for step in self.shape.writers.iter_mut().flatten() {
            step.has_lease = random.chance(0.4);
        }
    }

    /// Has writers put into a directory, remove it as a whole, and make it again.
    fn add_tree(&mut self, random: &mut Random) {
        self.shape.tree = Some(random.below(300));
        for (writer, steps) in (0..).zip(&mut self.shape.writers) {
            for number in 0..5 {
                let path = PATHS as u8 + random.below(2) as u8;
                let kind = match random.below(10) {
                    0..=5 => Kind::Put { path, content: 1 + writer * 100 + 50 + number },
                    6..=7 => Kind::RemoveTree,
                    _ => Kind::MakeTree,
                };
                let size = 1 + random.below(9000);
                let step = Step { size, ..Step::new(kind, random.below(3 * SECOND)) };
                steps.insert(random.below(steps.len() as u64 + 1) as usize, step);
            }
        }
    }

    /// The same without what scenarios have learned since, so that seeds that once found something
    /// mean what they meant.
    pub fn draw_plain(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let disk_count = 3 + random.below(2) as usize;
        let replica_count = 1 + random.below(2) as u8 + u8::from(random.chance(0.2));
        let receipt_count = 1 + random.below(u64::from(replica_count)) as u8;
        let writers: Vec<_> = (0..2 + random.below(2)).map(|it| steps(it, &mut random)).collect();
        let readers: Vec<_> = (0..1 + random.below(2)).map(|_| readings(&mut random)).collect();
        let policy = (replica_count, receipt_count);
        let (has_thief, has_door, has_trash, tree) = (false, false, false, None);
        let shape =
            Shape { disk_count, policy, writers, readers, has_thief, tree, has_door, has_trash };
        let storm_end_ns = (20 + random.below(40)) * SECOND;
        let count = 1 + disk_count + shape.writers.len();
        let (mut crashes, mut cuts, mut spoils) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..random.below(10) {
            let (at_ns, until_ns) = span(storm_end_ns, &mut random);
            let how = if random.chance(0.6) { Crash::Power } else { Crash::Process };
            crashes.push((at_ns, until_ns, random.below(count as u64) as usize, how));
        }
        for _ in 0..random.below(4) {
            let (at_ns, until_ns) = span(storm_end_ns, &mut random);
            cuts.push((at_ns, until_ns, random.below(count as u64) as usize));
        }
        for _ in 0..random.below(3) {
            let (at_ns, until_ns) = span(storm_end_ns, &mut random);
            let disk = random.below(disk_count as u64) as usize;
            let is_full = random.chance(0.7);
            let trouble = Trouble { is_full, is_read_only: !is_full, lies: false };
            spoils.push(Spoil { at_ns, disk, trouble });
            spoils.push(Spoil { at_ns: until_ns, disk, trouble: Trouble::default() });
        }
        spoils.sort_by_key(|spoil| spoil.at_ns);
        let mut chance = || if random.chance(0.5) { random.below(30) as f64 / 1000.0 } else { 0.0 };
        let faults = (chance(), chance(), chance());
        Self {
            seed,
            shape,
            storm_end_ns,
            faults,
            crashes,
            cuts,
            spoils,
            head_faults: None,
            deposes_head: false,
            removes_key: false,
        }
    }
}

fn span(end_ns: u64, random: &mut Random) -> (u64, u64) {
    let at_ns = SECOND + random.below(end_ns - 2 * SECOND);
    let until_ns = at_ns + 100 * MS + random.below(12 * SECOND);
    (at_ns, until_ns.min(end_ns))
}

/// What a writer does. Contents have numbers of their own.
fn steps(writer: u64, random: &mut Random) -> VecDeque<Step> {
    let count = 4 + random.below(6);
    let step = |number: u64| {
        let path = random.below(PATHS) as u8;
        let kind = match random.below(10) {
            0..=5 => Kind::Put { path, content: 1 + writer * 100 + number },
            6..=7 => {
                let to = (path + 1 + random.below(PATHS - 1) as u8) % PATHS as u8;
                Kind::Rename { from: path, to }
            }
            _ => Kind::Unlink { path },
        };
        let size =
            if random.chance(0.3) { 1 + random.below(200_000) } else { 1 + random.below(9000) };
        Step { size, ..Step::new(kind, random.below(3 * SECOND)) }
    };
    (0..count).map(step).collect()
}

fn readings(random: &mut Random) -> VecDeque<(u8, u64)> {
    (0..12).map(|_| (random.below(PATHS) as u8, random.below(4 * SECOND))).collect()
}

/// Plays the scenario of a seed.
pub fn play(scenario: &Scenario) -> Report {
    let mut site = Site::new(scenario.seed, &scenario.shape);
    let fault = run(scenario, &mut site).err();
    let record = site.record.borrow();
    Report {
        seed: scenario.seed,
        fault,
        events: site.world.event_count(),
        virtual_ns: site.world.now_ns(),
        digest: site.world.digest(),
        completed: record.reads[0] + record.puts[0],
        failed: record.reads[1] + record.puts[2],
    }
}

fn run(scenario: &Scenario, site: &mut Site) -> Result<(), Fault> {
    storm(scenario, site)?;
    if scenario.deposes_head {
        site.depose_head()?;
    }
    come_to_rest(site)?;
    if scenario.removes_key {
        site.take_rights_of_writer()?;
    }
    Ok(())
}

/// Lets a site come to rest, in which all promises have to hold: writers end, what ends by itself
/// is over, disks are clean, everything is read, and one order of events explains it all.
///
/// # Errors
/// The promise that was broken.
pub fn come_to_rest(site: &mut Site) -> Result<(), Fault> {
    for member in site.members().collect::<Vec<_>>() {
        site.world.set_line(member.link, |line| line.faults = crate::line::Faults::default());
    }
    let end_ns = site.world.now_ns() + WRITERS_NS;
    let writers = site.writers.clone();
    site.world.run(end_ns, &|world| {
        let is_done = |member: &Member| {
            world.program::<SiteWriter>(member.program).is_none_or(SiteWriter::is_done)
        };
        writers.iter().all(is_done)
    })?;
    if site.world.now_ns() >= end_ns {
        return Err(broken(site, "writers come to their end".to_owned()));
    }
    let checks = [promises::stored, promises::booked, promises::replicated, promises::leased];
    for check in checks {
        hold(site, check)?;
    }
    if let Some(head) = site.world.program_mut::<SiteHead>(site.head.program) {
        head.set_clock_ahead(AHEAD_NS);
    }
    let end_ns = site.world.now_ns() + CLEANING_NS;
    site.world.run(end_ns, &|_| false)?;
    let checks = [promises::booked, promises::stored, promises::cleaned, promises::collected];
    for check in checks {
        hold(site, check)?;
    }
    read_all(site)?;
    let record = site.record.borrow();
    let operations: Vec<_> = record.operations.iter().flatten().copied().collect();
    history::check(&operations).map_err(|what| broken(site, what.to_string()))
}

fn broken(site: &Site, what: String) -> Fault {
    Fault { at_ns: site.world.now_ns(), host: "the site".to_owned(), what }
}

fn hold(site: &Site, check: fn(&Site) -> Result<(), Broken>) -> Result<(), Fault> {
    check(site).map_err(|what| broken(site, what.to_string()))
}

fn storm(scenario: &Scenario, site: &mut Site) -> Result<(), Fault> {
    let members: Vec<Member> = site.members().collect();
    let (loss, duplication, disorder) = scenario.faults;
    for member in &members {
        site.world.set_line(member.link, |line| {
            let faults = &mut line.faults;
            (faults.loss, faults.duplication, faults.disorder) = (loss, duplication, disorder);
            (faults.burst, faults.late_ns) = (1, 40 * MS);
        });
    }
    if let Some((loss, duplication)) = scenario.head_faults {
        let link = site.head.link;
        site.world.set_line(link, |line| {
            (line.faults.loss, line.faults.duplication) = (loss, duplication);
            (line.faults.burst, line.faults.late_ns) = (1, 40 * MS);
        });
    }
    for (at_ns, until_ns, number, how) in scenario.crashes.iter().copied() {
        let program = members[number].program;
        site.world.plan(at_ns, Incident::CrashProgram { program, how });
        site.world.plan(until_ns, Incident::RestartProgram { program });
    }
    for (at_ns, until_ns, number) in scenario.cuts.iter().copied() {
        let link = members[number].link;
        site.world.plan(at_ns, Incident::Cut { link, is_noticed: false });
        site.world.plan(until_ns, Incident::Restore { link });
    }
    for Spoil { at_ns, disk, trouble } in scenario.spoils.iter().copied() {
        site.world.run(at_ns, &|_| false)?;
        site.disk(disk).files.set_trouble(trouble);
    }
    // Two crashes of one program may overlap: everybody runs at the end.
    for member in &members {
        let program = member.program;
        site.world.plan(scenario.storm_end_ns + 1, Incident::RestartProgram { program });
    }
    site.world.run(scenario.storm_end_ns + 2, &|_| false)
}

/// Everything that has a name is read by a reader of its own memory.
fn read_all(site: &mut Site) -> Result<(), Fault> {
    for member in site.readers.clone() {
        if let Some(reader) = site.world.program_mut::<SiteReader>(member.program) {
            reader.read_in_calm(0..promises::ALL_PATHS);
        }
        site.world.wake(member.program);
    }
    let end_ns = site.world.now_ns() + READING_NS;
    let readers = site.readers.clone();
    site.world.run(end_ns, &|world| {
        let is_done = |member: &Member| {
            world.program::<SiteReader>(member.program).is_none_or(SiteReader::is_done)
        };
        readers.iter().all(is_done)
    })?;
    match site.world.now_ns() >= end_ns {
        true => Err(broken(site, "every file of the site can be read in time".to_owned())),
        false => Ok(()),
    }
}
