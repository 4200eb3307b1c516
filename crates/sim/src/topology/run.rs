//! A plan carried out: real publishers, real readers that compare every octet.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::path::Path;

use byname_forwarder::Config;
use byname_packet::Name;
use byname_security::key::KeyId;
use byname_transfer::congestion::Congestion;

use crate::disk::Disk;
use crate::programs::{DiskTimes, Download, DownloadOrder, Publisher};
use crate::topology::Plan;
use crate::world::{Fault, HostId, ProgramId, SECOND, START_UNIX_NS, World};

/// Virtual time after which readers are not waited for any more.
pub const LIMIT_NS: u64 = 3600 * SECOND;
/// When all files were written.
const WRITTEN_UNIX_NS: u64 = START_UNIX_NS - 3600 * SECOND;

/// The outcome of one read.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// Of the file.
    pub name: Name,
    /// Name of the host.
    pub host: String,
    /// Octets that came, all as published.
    pub bytes: u64,
    /// From its beginning to its end, if it ended.
    pub took_ns: Option<u64>,
    /// Why it failed.
    pub problem: Option<String>,
}

/// The outcome of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// In the order of the plan.
    pub reads: Vec<Read>,
    /// Packets that came out of links.
    pub packets: u64,
    /// Events.
    pub events: u64,
    /// Virtual time that passed.
    pub took_ns: u64,
    /// Says what happened when.
    pub digest: u64,
}

/// Publishes and reads what a plan says.
///
/// # Errors
/// [`Fault`]: a promise was broken.
pub fn run(plan: &Plan, seed: u64, limit_ns: u64) -> Result<Finished, Fault> {
    let mut world = World::new(seed);
    let topology = plan.build(&mut world, &Config::default());
    let anchors = publish(&mut world, plan, &topology.hosts);
    for (prefix, (_, hosts)) in &anchors {
        topology.route_by_delay(&mut world, prefix, hosts);
    }
    let mut readers: Vec<(ProgramId, u64)> = Vec::new();
    for (number, read) in plan.reads.iter().enumerate() {
        let prefix = parent(&read.name);
        let Some((key, _)) = anchors.get(&prefix) else { continue };
        let start_ns = world.now_ns() + read.start_ns;
        let order = DownloadOrder {
            name: read.name.clone(),
            anchor: (prefix, *key),
            seeds: vec![seed_of(plan, &read.name)],
            congestion: Congestion::default(),
            start_ns,
        };
        let host = topology.hosts[read.host];
        readers.push((world.add_program(host, Download::new(order, number as u64)), start_ns));
    }
    let begun_ns = world.now_ns();
    // Asked again only after one has ended: readers do not begin anew.
    let left = std::cell::Cell::new(0);
    let is_over = |world: &World| {
        let has_ended = |at: usize| {
            let reader = world.program::<Download>(readers[at].0);
            reader.is_none_or(|reader| reader.outcome().is_some())
        };
        while left.get() < readers.len() && has_ended(left.get()) {
            left.set(left.get() + 1);
        }
        left.get() == readers.len()
    };
    world.run(begun_ns + limit_ns, &is_over)?;
    let reads = plan.reads.iter().zip(&readers).map(|(planned, (program, start_ns))| {
        let reader = world.program::<Download>(*program).expect("a reader");
        let problem = match reader.outcome() {
            Some(Ok(())) => None,
            Some(Err(error)) => Some(error.to_string()),
            None => Some("it did not end in time".to_owned()),
        };
        let took_ns = reader.finished_ns().map(|at_ns| at_ns - start_ns);
        let host = plan.hosts[planned.host].name.clone();
        Read { name: planned.name.clone(), host, bytes: reader.bytes(), took_ns, problem }
    });
    Ok(Finished {
        reads: reads.collect(),
        packets: world.frame_count(),
        events: world.event_count(),
        took_ns: world.now_ns() - begun_ns,
        digest: world.digest(),
    })
}

/// Runs a file and prints what became of it, a line each read; false if that is not what was
/// wanted.
pub fn print(file: &Path, seed: u64) -> bool {
    let name = file.display();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("byname-sim: cannot read {name}: {error}");
            return false;
        }
    };
    let plan = match Plan::parse(&text) {
        Ok(plan) => plan,
        Err(problem) => {
            eprintln!("byname-sim: {name}: {problem}");
            return false;
        }
    };
    match run(&plan, seed, LIMIT_NS) {
        Ok(finished) => {
            let mut out = std::io::stdout().lock();
            for read in &finished.reads {
                // Who closes the pipe does not want to know.
                let _ = writeln!(out, "{read}");
            }
            let _ = writeln!(out, "{finished}");
            finished.reads.iter().all(|read| read.problem.is_none())
        }
        Err(Fault { at_ns, host, what }) => {
            let seconds = at_ns as f64 / SECOND as f64;
            eprintln!("byname-sim: seed {seed}: {what}, on {host} at {seconds:.6} s");
            false
        }
    }
}

impl fmt::Display for Read {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Read { name, host, bytes, took_ns, problem } = self;
        write!(out, "{name} at {host}: {bytes} octets")?;
        if let Some(took_ns) = took_ns {
            let seconds = *took_ns as f64 / SECOND as f64;
            let rate = *bytes as f64 * 8.0 / 1e6 / seconds.max(1e-9);
            write!(out, " in {seconds:.3} s, {rate:.1} Mbit/s")?;
        }
        problem.as_ref().map_or(Ok(()), |problem| write!(out, "; failed: {problem}"))
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finished { packets, events, took_ns, digest, .. } = self;
        let seconds = *took_ns as f64 / SECOND as f64;
        write!(out, "{seconds:.3} s, {packets} packets, {events} events, history {digest:016x}")
    }
}

/// The name without its last component.
fn parent(name: &Name) -> Name {
    name.view().without_last(1).to_name()
}

/// Seed of the octets of a file: the same at all its holders.
fn seed_of(plan: &Plan, name: &Name) -> u64 {
    plan.files.iter().position(|file| file.name == *name).unwrap_or(0) as u64 + 1
}

/// Of each prefix, the key and the hosts that publish it.
type Anchors = BTreeMap<Name, (KeyId, Vec<HostId>)>;

/// A publisher for each host and prefix; those of one prefix have one key.
fn publish(world: &mut World, plan: &Plan, hosts: &[HostId]) -> Anchors {
    let mut disks: BTreeMap<(Name, usize), Disk> = BTreeMap::new();
    for file in &plan.files {
        let Some(last) = file.name.view().last() else { continue };
        let path = String::from_utf8_lossy(last.value).into_owned();
        let disk = disks.entry((parent(&file.name), file.host)).or_default();
        disk.put(&path, seed_of(plan, &file.name), file.size, WRITTEN_UNIX_NS);
    }
    let mut anchors = Anchors::new();
    for ((prefix, host), disk) in disks {
        let publisher = Publisher::new(&prefix, 1, disk, DiskTimes::default());
        let key = publisher.key_id();
        let program = world.add_program(hosts[host], publisher);
        world.route_to(program, &prefix);
        anchors.entry(prefix).or_insert((key, Vec::new())).1.push(hosts[host]);
    }
    anchors
}
