//! A scenario, played.

use byname_forwarder::Config;
use byname_packet::Name;

use super::plan::{Plan, Trouble};
use crate::disk::Disk;
use crate::line::Faults;
use crate::programs::{DiskTimes, Download, Order, Publisher};
use crate::topology::Topology;
use crate::world::{Fault, HostId, Incident, LinkId, ProgramId, SECOND, START_UNIX_NS, World};

/// After the storm every reader must have ended one way or the other.
const END_NS: u64 = 180 * SECOND;
/// Reading anew begins so long after everything is well again.
const CALM_NS: u64 = 10 * SECOND;
/// Longer than any Interest lives.
const AFTERMATH_NS: u64 = 5 * SECOND;
/// What a way that does not come nearer costs more.
const DETOUR_COST: u64 = 1000;

/// What became of a scenario.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// The promise that was broken.
    pub fault: Option<Fault>,
    /// Events that happened.
    pub events: u64,
    /// Virtual time that passed.
    pub virtual_ns: u64,
    /// Files read to the end.
    pub completed: u64,
    /// Readings that ended with an error.
    pub failed: u64,
}

struct Stage<'a> {
    plan: &'a Plan,
    world: World,
    hosts: Vec<HostId>,
    links: Vec<LinkId>,
    /// The holders of each site.
    publishers: Vec<Vec<ProgramId>>,
    readers: Vec<ProgramId>,
    completed: u64,
    failed: u64,
}

#[derive(Clone, Copy)]
enum Act {
    Faults(usize, Faults),
    Put { site: usize, holder: usize, version: usize },
}

/// Plays a scenario to its end or to the first broken promise.
pub fn play(plan: &Plan) -> Report {
    let mut stage = Stage::set(plan);
    let fault = stage.perform().err();
    Report {
        seed: plan.seed,
        fault,
        events: stage.world.event_count(),
        virtual_ns: stage.world.now_ns(),
        completed: stage.completed,
        failed: stage.failed,
    }
}

impl<'a> Stage<'a> {
    fn set(plan: &'a Plan) -> Self {
        let mut world = World::new(plan.seed);
        let config = Config {
            cs_entries_max: plan.store_entries,
            cs_bytes_max: plan.store_entries * 4096,
            pit_entries_max: plan.pit_entries,
            ..Config::default()
        };
        let mut topology = Topology::hosts(&mut world, plan.hosts, &config);
        let links = plan.links.iter().map(|link| {
            let made = topology.join(&mut world, link.ends.0, link.ends.1, link.config);
            world.set_reliability(made, link.is_reliable);
            made
        });
        let links = links.collect();
        world.keep_ledgers();
        let hosts = topology.hosts;
        let (publishers, readers) = (Vec::new(), Vec::new());
        let mut stage =
            Stage { plan, world, hosts, links, publishers, readers, completed: 0, failed: 0 };
        (0..plan.sites.len()).for_each(|site| stage.publish(site));
        stage.employ();
        stage
    }

    fn publish(&mut self, site: usize) {
        let plan = &self.plan.sites[site];
        let prefix = site_name(site);
        let first = plan.versions[0];
        let mut made = Vec::new();
        for (host, _) in &plan.holders {
            let mut disk = Disk::default();
            disk.put("file", first.seed, first.size, START_UNIX_NS - 3600 * SECOND);
            let publisher = Publisher::new(&prefix, site as u8, disk, DiskTimes::default());
            let publisher = self.world.add_program(self.hosts[*host], publisher);
            self.world.route_to(publisher, &prefix);
            made.push(publisher);
        }
        self.publishers.push(made);
        self.route(site);
    }

    /// Leads a site's prefix over every link: cheaply where that comes nearer to a holder.
    fn route(&mut self, site: usize) {
        let prefix = site_name(site);
        let holders: Vec<usize> = self.plan.sites[site].holders.iter().map(|it| it.0).collect();
        let mut distance = vec![usize::MAX; self.hosts.len()];
        holders.iter().for_each(|host| distance[*host] = 0);
        for _ in 0..self.hosts.len() {
            for link in &self.plan.links {
                let (one, other) = link.ends;
                distance[one] = distance[one].min(distance[other].saturating_add(1));
                distance[other] = distance[other].min(distance[one].saturating_add(1));
            }
        }
        for (place, link) in self.plan.links.iter().enumerate() {
            for (from, to) in [link.ends, (link.ends.1, link.ends.0)] {
                if !holders.contains(&from) {
                    let detour = if distance[to] < distance[from] { 0 } else { DETOUR_COST };
                    let cost = detour + distance[to] as u64;
                    self.world.route_over(self.hosts[from], &prefix, self.links[place], cost);
                }
            }
        }
    }

    fn employ(&mut self) {
        for (number, reader) in self.plan.readers.iter().enumerate() {
            let prefix = site_name(reader.site);
            let publisher = self.publishers[reader.site][0];
            let publisher = self.world.program::<Publisher>(publisher).expect("a publisher");
            let order = Order {
                name: prefix.clone().with_generic(b"file"),
                anchor: (prefix, publisher.key_id()),
                seeds: self.plan.sites[reader.site].versions.iter().map(|it| it.seed).collect(),
                congestion: reader.congestion,
                start_ns: reader.start_ns,
            };
            let download = Download::new(order, self.plan.seed ^ (number as u64 + 1));
            self.readers.push(self.world.add_program(self.hosts[reader.host], download));
        }
    }

    fn perform(&mut self) -> Result<(), Fault> {
        for (at_ns, act) in self.acts() {
            self.world.run(at_ns, &|_| false)?;
            self.do_act(act);
        }
        let storm_end_ns = self.plan.storm_end_ns;
        self.world.run(storm_end_ns, &|_| false)?;
        self.wait_for_readers(storm_end_ns + END_NS, "every reading ends after the faults")?;
        let calm_ns = self.world.now_ns().max(storm_end_ns) + CALM_NS;
        for number in 0..self.readers.len() {
            self.reader_mut(number).begin_again(calm_ns);
            self.world.wake(self.readers[number]);
        }
        self.wait_for_readers(calm_ns + END_NS, "every reading ends when all is well")?;
        self.expect_all_read()?;
        let end_ns = self.world.now_ns() + AFTERMATH_NS;
        self.world.run(end_ns, &|_| false)?;
        self.expect_rest()
    }

    /// What the network does not do by itself, in the order of time.
    fn acts(&mut self) -> Vec<(u64, Act)> {
        let mut acts = Vec::new();
        for trouble in &self.plan.troubles {
            let (from_ns, until_ns) = (trouble.from_ns, trouble.until_ns);
            match trouble.trouble {
                Trouble::Faults(link, faults) => {
                    acts.push((from_ns, Act::Faults(link, faults)));
                    acts.push((until_ns, Act::Faults(link, Faults::default())));
                }
                Trouble::Cut(link, is_noticed) => {
                    let link = self.links[link];
                    self.world.plan(from_ns, Incident::Cut { link, is_noticed });
                    self.world.plan(until_ns, Incident::Restore { link });
                }
                Trouble::Crash(host) => {
                    let host = self.hosts[host];
                    self.world.plan(from_ns, Incident::Crash { host });
                    self.world.plan(until_ns, Incident::Restart { host });
                }
            }
        }
        for (site, plan) in self.plan.sites.iter().enumerate() {
            for (version, planned) in plan.versions.iter().enumerate().skip(1) {
                for (holder, (_, lag_ns)) in plan.holders.iter().enumerate() {
                    let at_ns = (planned.at_ns + lag_ns).min(self.plan.storm_end_ns);
                    acts.push((at_ns, Act::Put { site, holder, version }));
                }
            }
        }
        acts.sort_by_key(|(at_ns, _)| *at_ns);
        acts
    }

    fn do_act(&mut self, act: Act) {
        match act {
            Act::Faults(link, faults) => {
                self.world.set_line(self.links[link], |line| line.faults = faults);
            }
            Act::Put { site, holder, version } => {
                let planned = self.plan.sites[site].versions[version];
                let publisher = self.publishers[site][holder];
                let publisher = self.world.program_mut::<Publisher>(publisher);
                let disk = publisher.expect("a publisher").disk_mut();
                // The same state everywhere is the same version everywhere.
                disk.put("file", planned.seed, planned.size, START_UNIX_NS + planned.at_ns);
            }
        }
    }

    fn wait_for_readers(&mut self, limit_ns: u64, promise: &str) -> Result<(), Fault> {
        let readers = self.readers.clone();
        let is_over = move |world: &World| {
            let outcomes = readers.iter().map(|it| world.program::<Download>(*it));
            outcomes.flatten().all(|it| it.outcome().is_some())
        };
        self.world.run(limit_ns, &is_over)?;
        for number in 0..self.readers.len() {
            let reader = self.reader(number);
            match reader.outcome() {
                Some(Ok(())) => self.completed += 1,
                Some(Err(_)) => self.failed += 1,
                None => {
                    let what = format!("{promise}: reader {number} has {} octets", reader.bytes());
                    return Err(self.fault(number, what));
                }
            }
        }
        Ok(())
    }

    fn expect_all_read(&self) -> Result<(), Fault> {
        for number in 0..self.readers.len() {
            let reader = self.reader(number);
            let site = &self.plan.sites[self.plan.readers[number].site];
            let size = site.versions.last().map_or(0, |version| version.size);
            let outcome = reader.outcome();
            if outcome != Some(&Ok(())) || reader.bytes() != size {
                let what = format!(
                    "what is published can be read when all is well: reader {number} has {} of \
                     {size} octets, {outcome:?}",
                    reader.bytes()
                );
                return Err(self.fault(number, what));
            }
        }
        Ok(())
    }

    fn expect_rest(&self) -> Result<(), Fault> {
        for host in &self.hosts {
            let host = self.world.host(*host);
            let pending = host.forwarder().map_or(0, |forwarder| forwarder.pending_count());
            if pending > 0 {
                let what = format!("no Interest outlives its lifetime: {pending} are pending");
                let (at_ns, host) = (self.world.now_ns(), host.name.clone());
                return Err(Fault { at_ns, host, what });
            }
        }
        Ok(())
    }

    fn reader(&self, number: usize) -> &Download {
        self.world.program(self.readers[number]).expect("a reader")
    }

    fn reader_mut(&mut self, number: usize) -> &mut Download {
        self.world.program_mut(self.readers[number]).expect("a reader")
    }

    fn fault(&self, reader: usize, what: String) -> Fault {
        let host = self.hosts[self.plan.readers[reader].host];
        Fault { at_ns: self.world.now_ns(), host: self.world.host(host).name.clone(), what }
    }
}

fn site_name(site: usize) -> Name {
    Name::new().with_generic(format!("site{site}").as_bytes())
}
