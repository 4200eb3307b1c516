//! A scenario, played.

mod aftermath;
mod backups;
mod clients;

use byname_forwarder::Config;
use byname_packet::Name;
use byname_transfer::fetch::FetchConfig;
use byname_transfer::rtt::RTO_MAX_NS;

use backups::first_disk;

use super::plan::{Plan, SitePlan, Trouble};
use crate::disk::Disk;
use crate::line::Faults;
use crate::program::Crash;
use crate::programs::{DiskTimes, Download, DownloadOrder, Publisher};
use crate::random::Random;
use crate::topology::Topology;
use crate::world::{Fault, HostId, Incident, LinkId, ProgramId, SECOND, START_UNIX_NS, World};

/// After the storm every reader must have ended one way or the other.
const END_NS: u64 = 180 * SECOND;
/// Reading anew begins so long after everything is well again.
const CALM_NS: u64 = 10 * SECOND;
/// Interval between checks of the readers.
const SLICE_NS: u64 = SECOND / 2;
/// Events in such a time: with all readers at once, small frames and every fault there are fewer.
const SLICE_EVENTS_MAX: u64 = 2_000_000;
/// Requests that a reader may need, one after the other, before the next octet: a description,
/// the certificate that verifies it, and the root or a node of the tree.
const ASKS_IN_A_ROW: u64 = 3;
/// After a failure it reads again so much later. Longer than what counts as asking in one go.
const AGAIN_NS: u64 = 10 * SECOND;
/// Longer than any Interest lives.
const AFTERMATH_NS: u64 = 5 * SECOND;
/// When the first states of all files were written.
const FIRST_UNIX_NS: u64 = START_UNIX_NS - 3600 * SECOND;
/// Additional cost of a path that does not come nearer.
const DETOUR_COST: u64 = 1000;

/// The outcome of a scenario.
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
    /// Digest of this history.
    pub digest: u64,
    /// Files read to the end.
    pub completed: u64,
    /// Readings that ended with an error.
    pub failed: u64,
}

/// Progress of a reader: octets, the version it found, and whether it has ended.
type ReaderState = (u64, Option<u64>, bool);

struct Stage<'a> {
    plan: &'a Plan,
    world: World,
    hosts: Vec<HostId>,
    links: Vec<LinkId>,
    /// The holders of each site.
    publishers: Vec<Vec<ProgramId>>,
    readers: Vec<ProgramId>,
    clients: Vec<ProgramId>,
    /// Readings left to each while there is trouble.
    readings_left: Vec<u32>,
    /// Last progress of each, and its time.
    states: Vec<(ReaderState, u64)>,
    completed: u64,
    failed: u64,
    /// Time that a reader may neither go on nor give up.
    patience_ns: u64,
}

#[derive(Clone, Copy)]
enum Act {
    Faults(usize, Faults),
    Put {
        site: usize,
        holder: usize,
        version: usize,
    },
    Backup(usize),
    /// After a backup: the last state again.
    Renew(usize),
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
        digest: stage.digest(),
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
        let readings_left = plan.readers.iter().map(|reader| reader.times - 1).collect();
        let states = vec![((0, None, false), 0); plan.readers.len()];
        let (publishers, readers, clients) = (Vec::new(), Vec::new(), Vec::new());
        let (completed, failed) = (0, 0);
        let mut stage = Stage {
            plan,
            world,
            hosts,
            links,
            publishers,
            readers,
            clients,
            readings_left,
            states,
            completed,
            failed,
            patience_ns: patience_ns(plan),
        };
        (0..plan.sites.len()).for_each(|site| stage.publish(site));
        stage.employ();
        stage.employ_clients();
        stage
    }

    fn publish(&mut self, site: usize) {
        let plan = &self.plan.sites[site];
        let prefix = site_name(site);
        let mut made = Vec::new();
        for (host, _) in &plan.holders {
            let disk = first_disk(plan);
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
            let order = DownloadOrder {
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
            self.advance(at_ns)?;
            self.do_act(act);
        }
        let storm_end_ns = self.plan.storm_end_ns;
        self.advance(storm_end_ns)?;
        self.mend_disks();
        self.wait_for_readers(storm_end_ns + END_NS, "every reading ends after the faults")?;
        self.wait_for_clients("every client finishes after the faults")?;
        let calm_ns = self.world.now_ns().max(storm_end_ns) + CALM_NS;
        self.order_again(calm_ns);
        (0..self.readers.len()).for_each(|number| self.begin_again(number, calm_ns));
        self.wait_for_readers(calm_ns + END_NS, "every reading ends when all is well")?;
        self.wait_for_clients("every client finishes when all is well")?;
        self.expect_all_read()?;
        self.expect_newest()?;
        let end_ns = self.world.now_ns() + AFTERMATH_NS;
        self.world.run(end_ns, &|_| false)?;
        self.expect_rest()
    }

    /// Lets time pass; readers that are done and shall read again do so.
    fn advance(&mut self, until_ns: u64) -> Result<(), Fault> {
        while self.world.now_ns() < until_ns {
            self.slice(until_ns)?;
        }
        Ok(())
    }

    /// A short time, in which no more can happen than there is a reason for.
    fn slice(&mut self, until_ns: u64) -> Result<(), Fault> {
        let before = self.world.event_count();
        let slice_end_ns = until_ns.min(self.world.now_ns() + SLICE_NS);
        let limit = before + SLICE_EVENTS_MAX;
        self.world.run(slice_end_ns, &|world| world.event_count() > limit)?;
        if self.world.event_count() > limit {
            let what = "nothing talks without end: more than is explicable by what is read";
            return Err(self.fault(0, what.to_owned()));
        }
        self.look_after_readers()
    }

    fn look_after_readers(&mut self) -> Result<(), Fault> {
        let now_ns = self.world.now_ns();
        for number in 0..self.readers.len() {
            let reader = self.reader(number);
            let state = (reader.bytes(), reader.version(), reader.outcome().is_some());
            let began_ns = reader.start_ns();
            if state.2 && self.readings_left[number] > 0 && now_ns < self.plan.storm_end_ns {
                self.readings_left[number] -= 1;
                self.count_outcome(number);
                let has_failed = self.reader(number).outcome().is_some_and(Result::is_err);
                let pause_ns = if has_failed { AGAIN_NS } else { SLICE_NS };
                self.begin_again(number, now_ns + pause_ns);
            }
            let (known, since_ns) = &mut self.states[number];
            if *known != state || state.2 || now_ns <= began_ns {
                (*known, *since_ns) = (state, now_ns.max(began_ns));
            }
            let silent_ns = now_ns.saturating_sub(*since_ns);
            if silent_ns > self.patience_ns {
                let what = format!(
                    "nobody starves: reader {number} has {} octets and neither went on nor gave \
                     up for {} s",
                    state.0,
                    silent_ns / SECOND
                );
                return Err(self.fault(number, what));
            }
        }
        Ok(())
    }

    fn begin_again(&mut self, number: usize, at_ns: u64) {
        self.reader_mut(number).begin_again(at_ns);
        self.world.wake(self.readers[number]);
    }

    fn count_outcome(&mut self, number: usize) {
        match self.reader(number).outcome() {
            Some(Ok(())) => self.completed += 1,
            Some(Err(_)) => self.failed += 1,
            None => {}
        }
    }

    /// Acts that the network does not perform by itself, in the order of time.
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
                Trouble::Backup(site) => {
                    acts.push((from_ns, Act::Backup(site)));
                    acts.push((self.plan.storm_end_ns, Act::Renew(site)));
                }
                Trouble::Flap { link, down_ns, up_ns, is_noticed } => {
                    let link = self.links[link];
                    // The last cut ends in time, too.
                    let until_ns = until_ns.saturating_sub(down_ns);
                    if from_ns <= until_ns {
                        let flap = Incident::Flap { link, down_ns, up_ns, until_ns, is_noticed };
                        self.world.plan(from_ns, flap);
                    }
                }
                Trouble::Partition { hosts, is_noticed } => {
                    let is_in = |(number, _): &(usize, &HostId)| hosts >> number & 1 == 1;
                    let side = self.hosts.iter().enumerate().filter(is_in);
                    let side: Vec<_> = side.map(|(_, host)| *host).collect();
                    let links = self.world.links_around(&side);
                    let group = self.world.add_group(&links);
                    self.world.plan(from_ns, Incident::Part { group, is_noticed });
                    self.world.plan(until_ns, Incident::Heal { group });
                }
                Trouble::Kill(site) => {
                    let program = self.publishers[site][0];
                    let how = Crash::Process;
                    self.world.plan(from_ns, Incident::CrashProgram { program, how });
                    self.world.plan(until_ns, Incident::RestartProgram { program });
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
            // Who is late has the newer state already.
            Act::Put { site, .. } if self.is_renewed(site) => {}
            Act::Put { site, holder, version } => {
                let planned = self.plan.sites[site].versions[version];
                // The same state everywhere is the same version everywhere.
                let unix_ns = match version {
                    0 => FIRST_UNIX_NS,
                    _ => START_UNIX_NS + planned.at_ns,
                };
                self.disk_mut(site, holder).put("file", planned.seed, planned.size, unix_ns);
            }
            Act::Backup(site) => {
                *self.disk_mut(site, 0) = first_disk(&self.plan.sites[site]);
            }
            Act::Renew(site) => self.renew(site),
        }
    }

    fn disk_mut(&mut self, site: usize, holder: usize) -> &mut Disk {
        let publisher = self.publishers[site][holder];
        let publisher = self.world.program_mut::<Publisher>(publisher);
        publisher.expect("a publisher").disk_mut()
    }

    /// Of times, counts and octets that follow from everything that happened.
    fn digest(&self) -> u64 {
        let mut figures = vec![self.world.event_count(), self.world.now_ns()];
        for host in &self.hosts {
            let forwarder = self.world.host(*host).forwarder();
            let counters = forwarder.map(|forwarder| forwarder.counters());
            figures.extend(counters.map(|it| it.in_interests ^ it.in_data.rotate_left(32)));
        }
        for number in 0..self.readers.len() {
            let reader = self.reader(number);
            figures.extend([reader.bytes(), reader.finished_ns().unwrap_or_default()]);
        }
        let mix = |digest: u64, figure: &u64| Random::new(digest ^ figure).draw();
        figures.iter().fold(self.plan.seed, mix)
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

/// Time that a reader of a scenario may neither go on nor give up.
///
/// By its own time-outs it gives up what it asks for after a silence, noticed at the next
/// retransmission; losses and outages are no excuse for more, they are what these times are for.
/// The path adds a round trip for each answer that comes at the last moment: over every link there
/// and back, behind full queues, as late as frames can be.
fn patience_ns(plan: &Plan) -> u64 {
    let late_ns = |number: usize| {
        let late = plan.troubles.iter().filter_map(|it| match it.trouble {
            Trouble::Faults(link, faults) if link == number => Some(faults.late_ns),
            _ => None,
        });
        late.max().unwrap_or(0)
    };
    let once_ns = plan.links.iter().enumerate().map(|(number, link)| {
        let line = link.config.line;
        let queue_ns = line.queue.buffer_bytes * 8 * SECOND / line.queue.bits_per_s;
        line.delay_ns + line.jitter_ns + queue_ns + late_ns(number)
    });
    let rtt_ns = 2 * once_ns.sum::<u64>();
    ASKS_IN_A_ROW * (FetchConfig::default().silence_ns + RTO_MAX_NS + rtt_ns)
}

/// Prefix of a site.
fn site_name(site: usize) -> Name {
    Name::new().with_generic(format!("site{site}").as_bytes())
}
