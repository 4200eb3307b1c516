//! A room of 128 machines for ten minutes: what the simulator itself costs.
//!
//! The network is the larger cluster of [`shapes::cluster128`]. Each machine publishes one data set
//! and reads those of others, one after the other, with pauses: blocks of 4 MiB (512 segments),
//! popular ones more often (Zipf 1 over the machines), a third of them in the machine's own rack.
//! Routers have content stores. The load is set by the time between two blocks of a machine.

use std::time::Duration;

use byname_forwarder::Config;
use byname_packet::Name;

use crate::random::Random;
use crate::study::{Effort, Section, apart};
use crate::topology::plan::Plan;
use crate::topology::{Topology, shapes};
use crate::traffic::{FetchJob, SEGMENT_BYTES, Sink, ZeroSource};
use crate::world::{Fault, HostId, MS, ProgramId, SECOND, World};

/// The question that this answers.
pub const QUESTION: &str = "What does simulating 128 machines for ten minutes cost?";

/// Segments of a block.
const BLOCK_SEGMENTS: u64 = 512;
/// Blocks that each machine publishes.
const BLOCKS: u64 = 64;

/// Between two blocks of a machine: all together then read as much in a second as TeraSort did
/// there (Table 1: 1000 GB in 106 minutes, 157 MB/s).
const PAUSE_NS: u64 = 3_400 * MS;

/// A scenario to play.
#[derive(Clone, Debug)]
pub struct Room {
    /// The network; machines are the hosts whose names begin with `h`.
    pub plan: Plan,
    /// Virtual time.
    pub duration_ns: u64,
    /// Mean time from the beginning of one block of a machine to that of the next.
    pub pause_ns: u64,
    /// Octets of each router's content store.
    pub store_bytes: u64,
    /// Seed.
    pub seed: u64,
}

/// The outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Machines, and hosts altogether.
    pub machines: usize,
    /// See `machines`.
    pub hosts: usize,
    /// Virtual seconds.
    pub seconds: f64,
    /// Processor time that it took, and what of it was making hosts and routes.
    pub cpu: Duration,
    /// See `cpu`.
    pub cpu_setup: Duration,
    /// Events.
    pub events: u64,
    /// Packets that came out of links.
    pub packets: u64,
    /// Blocks that were read whole, and that were not.
    pub blocks: (u64, u64),
    /// Segments that came to readers.
    pub segments: u64,
    /// Median and slowest time of a block, in milliseconds.
    pub block_ms: (f64, f64),
    /// Share of segments that publishers did not have to answer.
    pub saved: f64,
    /// Resident octets of the process more than before.
    pub resident_bytes: u64,
    /// A number that says what happened when.
    pub digest: u64,
}

impl Outcome {
    /// Packets simulated in a second of processor time.
    pub fn packets_per_cpu_s(&self) -> f64 {
        self.packets as f64 / self.cpu.as_secs_f64().max(1e-9)
    }

    /// Virtual seconds in a second of processor time.
    pub fn seconds_per_cpu_s(&self) -> f64 {
        self.seconds / self.cpu.as_secs_f64().max(1e-9)
    }
}

/// Processor time of this thread.
pub fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Memory of the process that is resident.
pub fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// A place among `count`, the first most often: Zipf's law with exponent 1, by inversion.
fn popular(random: &mut Random, count: usize) -> usize {
    let share = (random.draw() >> 11) as f64 / (1u64 << 53) as f64;
    let at = ((count as f64 + 1.0).powf(share) - 1.0) as usize;
    at.min(count - 1)
}

struct Cast {
    sources: Vec<ProgramId>,
    sinks: Vec<ProgramId>,
}

/// Common prefix of all names.
fn base() -> Name {
    Name::default().with_generic(b"room")
}

fn name_of(machine: usize) -> Name {
    base().with_generic(format!("m{machine}").as_bytes())
}

/// The blocks that a machine reads.
fn jobs(room: &Room, machine: usize, machines: usize) -> Vec<FetchJob> {
    let mut random = Random::new(room.seed ^ ((machine as u64 + 1) << 32));
    let mut at_ns = SECOND + random.below(room.pause_ns);
    let mut jobs = Vec::new();
    // The last ones get time to end.
    while at_ns + 2 * room.pause_ns < SECOND + room.duration_ns {
        let mut from = if random.chance(1.0 / 3.0) {
            machine / 16 * 16 + random.below(16) as usize
        } else {
            popular(&mut random, machines)
        };
        if from == machine || from >= machines {
            from = (machine + 1) % machines;
        }
        let block = popular(&mut random, BLOCKS as usize) as u64;
        let name = name_of(from).with_version(block);
        jobs.push(FetchJob { start_ns: at_ns, name, segments: BLOCK_SEGMENTS });
        at_ns += room.pause_ns / 2 + random.below(room.pause_ns + 1);
    }
    jobs
}

fn cast(world: &mut World, topology: &Topology, room: &Room, machines: &[HostId]) -> Cast {
    let mut cast = Cast { sources: Vec::new(), sinks: Vec::new() };
    // A machine has one way out and knows no more than that; routers know every machine.
    let mut routers = topology.clone();
    routers.hosts.retain(|host| !machines.contains(host));
    for (one, other, link) in &topology.links {
        for machine in [one, other].into_iter().filter(|host| machines.contains(host)) {
            world.route_over(*machine, &base(), *link, 0);
        }
    }
    for (number, host) in machines.iter().enumerate() {
        let source = world.add_program(*host, ZeroSource::default());
        let prefix = name_of(number);
        world.route_to(source, &prefix);
        routers.route_by_delay(world, &prefix, &[*host]);
        cast.sources.push(source);
        let sink = Sink::new(jobs(room, number, machines.len()), number as u64);
        cast.sinks.push(world.add_program(*host, sink));
    }
    cast
}

/// Plays it.
///
/// # Errors
/// [`Fault`]: a promise was broken.
pub fn play(room: &Room) -> Result<Outcome, Fault> {
    let (cpu_before, resident_before) = (thread_cpu(), resident_bytes());
    let mut world = World::new(room.seed);
    let mut plan = room.plan.clone();
    for host in &mut plan.hosts {
        let is_machine = host.name.starts_with('h');
        host.store_bytes = Some(if is_machine { 0 } else { room.store_bytes });
    }
    let topology = plan.build(&mut world, &Config::default());
    let is_machine = |host: &HostId| world.host(*host).name.starts_with('h');
    let machines: Vec<HostId> = topology.hosts.iter().copied().filter(is_machine).collect();
    let cast = cast(&mut world, &topology, room, &machines);
    let cpu_setup = thread_cpu().saturating_sub(cpu_before);
    world.run(SECOND + room.duration_ns, &|_| false)?;
    let mut outcome = Outcome {
        machines: machines.len(),
        hosts: topology.hosts.len(),
        seconds: room.duration_ns as f64 / SECOND as f64,
        cpu: thread_cpu().saturating_sub(cpu_before),
        cpu_setup,
        events: world.event_count(),
        packets: world.frame_count(),
        resident_bytes: resident_bytes().saturating_sub(resident_before),
        digest: world.digest(),
        ..Outcome::default()
    };
    sum_up(&mut outcome, &world, &cast);
    Ok(outcome)
}

fn sum_up(outcome: &mut Outcome, world: &World, cast: &Cast) {
    let sinks = || cast.sinks.iter().filter_map(|sink| world.program::<Sink>(*sink));
    let mut took_ns: Vec<u64> = Vec::new();
    for done in sinks().flat_map(Sink::done) {
        if done.is_whole {
            outcome.blocks.0 += 1;
            took_ns.push(done.end_ns - done.start_ns);
        } else {
            outcome.blocks.1 += 1;
        }
    }
    took_ns.sort_unstable();
    let at = |place: usize| took_ns.get(place).map_or(0.0, |ns| *ns as f64 / MS as f64);
    outcome.block_ms = (at(took_ns.len() / 2), at(took_ns.len().saturating_sub(1)));
    outcome.segments = sinks().map(Sink::received).sum();
    let sources = cast.sources.iter().filter_map(|it| world.program::<ZeroSource>(*it));
    let answered: u64 = sources.map(ZeroSource::answer_count).sum();
    outcome.saved = 1.0 - answered as f64 / outcome.segments.max(1) as f64;
}

/// The room of the study.
pub fn room(effort: &Effort) -> Room {
    let (duration_ns, pause_ns) =
        if effort.is_quick { (5 * SECOND, SECOND) } else { (600 * SECOND, PAUSE_NS) };
    Room {
        plan: if effort.is_quick { shapes::cluster16() } else { shapes::cluster128() },
        duration_ns,
        pause_ns,
        store_bytes: 64 << 20,
        seed: effort.seed,
    }
}

/// The study's room in a process of its own, if there can be one.
fn play_apart(effort: &Effort) -> Result<Outcome, Fault> {
    let told = || Outcome::from_line(&apart::ask(&["cluster", &effort.seed.to_string()])?);
    match Some(()).filter(|()| !effort.is_quick).and_then(|()| told()) {
        Some(outcome) => Ok(outcome),
        None => play(&room(effort)),
    }
}

/// Measures the cost of the scenario.
pub fn run(effort: &Effort) -> Section {
    let mut section = Section::new("A room of machines: what simulating costs");
    let outcome = match play_apart(effort) {
        Ok(outcome) => outcome,
        Err(fault) => {
            let Fault { at_ns, host, what } = fault;
            section.paragraph(format!("A promise was broken at {at_ns} ns on {host}: {what}."));
            return section;
        }
    };
    section.paragraph(format!(
        "{} machines and {} routers for {} virtual seconds. Each machine reads a block of {} MiB \
         every {:.1} seconds on average, a third from its rack, the others by popularity (Zipf 1); \
         all 128 together read as much as TeraSort did in Gibbens and others, 2017. Forwarders, \
         flow control and congestion control are the production code; content is zeros, which \
         frames on links do not store, and nothing is signed or verified. One thread of a process \
         of its own does all of it.",
        outcome.machines,
        outcome.hosts - outcome.machines,
        outcome.seconds,
        (BLOCK_SEGMENTS as usize * SEGMENT_BYTES) >> 20,
        room(effort).pause_ns as f64 / SECOND as f64,
    ));
    section.table(&["what", "how much"], rows(&outcome));
    section
}

fn rows(it: &Outcome) -> Vec<Vec<String>> {
    let megabits = it.segments as f64 * SEGMENT_BYTES as f64 * 8.0 / it.seconds / 1e6;
    let row = |what: &str, how_much: String| vec![what.to_owned(), how_much];
    vec![
        row("processor seconds", format!("{:.1}", it.cpu.as_secs_f64())),
        row("of these to make hosts and routes", format!("{:.2}", it.cpu_setup.as_secs_f64())),
        row("events", it.events.to_string()),
        row("packets that came out of links", it.packets.to_string()),
        row("packets in a processor second", format!("{:.0}", it.packets_per_cpu_s())),
        row("virtual seconds in a processor second", format!("{:.2}", it.seconds_per_cpu_s())),
        row("blocks read whole", it.blocks.0.to_string()),
        row("blocks that failed", it.blocks.1.to_string()),
        row("time of a block, median, ms", format!("{:.1}", it.block_ms.0)),
        row("time of a block, slowest, ms", format!("{:.1}", it.block_ms.1)),
        row("payload to readers, Mbit/s", format!("{megabits:.0}")),
        row(
            "segments that stores or waiting Interests saved",
            format!("{:.1} %", it.saved * 100.0),
        ),
        row("resident memory, MiB", (it.resident_bytes >> 20).to_string()),
    ]
}
