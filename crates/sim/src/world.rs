//! All hosts and links, and the clock: events in the order of time, and of their making where the
//! time is equal, so that a seed and a scenario give one history.

mod history;
mod incident;
mod promises;

use byname_forwarder::{Config, DropReason};
use byname_packet::Name;
use thiserror::Error;

use crate::agenda::{Agenda, Due};
use crate::host::Host;
use crate::line::{Line, LineConfig, LineCounters};
use crate::ports::{Leaving, Place, Wire};
use crate::program::{Now, Program};
use crate::random::Random;
use history::History;

pub use incident::Incident;

/// Wall clock at the start: 2026-11-21.
pub const START_UNIX_NS: u64 = 1_795_248_000_000_000_000;
/// One millisecond.
pub const MS: u64 = 1_000_000;
/// One second.
pub const SECOND: u64 = 1_000 * MS;

/// A host, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub(crate) usize);

/// A link, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(usize);

/// A set of links, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(usize);

/// A program on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProgramId {
    host: usize,
    port: usize,
}

/// Settings of a link; both directions alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkConfig {
    /// Of each direction.
    pub line: LineConfig,
    /// Largest frame; `None` for a stream.
    pub mtu_bytes: Option<usize>,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}, on {host} after {at_ns} ns")]
pub struct Fault {
    /// When.
    pub at_ns: u64,
    /// On which host.
    pub host: String,
    /// The fact.
    pub what: String,
}

/// See the module.
pub struct World {
    now_ns: u64,
    seed: u64,
    random: Random,
    hosts: Vec<Host>,
    /// The places of the two ends. Line 2n leads from the first end of link n to the second, line
    /// 2n + 1 back.
    links: Vec<[Place; 2]>,
    groups: Vec<Vec<LinkId>>,
    agenda: Agenda,
    /// When each host is woken next.
    wakes: Vec<u64>,
    incidents: Vec<Incident>,
    fault: Option<Fault>,
    /// Steps after which something was checked.
    steps: u64,
    history: History,
    /// Events that a host has just produced; empty between steps.
    leaving: Vec<Leaving>,
}

impl World {
    /// An empty world.
    pub fn new(seed: u64) -> Self {
        World {
            now_ns: SECOND,
            seed,
            random: Random::new(seed),
            hosts: Vec::new(),
            links: Vec::new(),
            groups: Vec::new(),
            agenda: Agenda::default(),
            wakes: Vec::new(),
            incidents: Vec::new(),
            fault: None,
            steps: 0,
            history: History::default(),
            leaving: Vec::new(),
        }
    }

    /// Monotonic time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Seed of everything random.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Events that happened or were planned: a measure of the work done.
    pub fn event_count(&self) -> u64 {
        self.agenda.count()
    }

    /// Frames that came out of lines.
    pub fn frame_count(&self) -> u64 {
        self.history.frame_count
    }

    /// A number that is the same only if the same happened at the same times.
    pub fn digest(&self) -> u64 {
        self.history.digest
    }

    /// Frames on lines now, and octets of memory that they take.
    pub fn in_flight(&self) -> (usize, usize) {
        self.agenda.in_flight()
    }

    /// Adds a host whose forwarder has the given bounds.
    pub fn add_host(&mut self, name: &str, config: Config) -> HostId {
        let seed = std::array::from_fn(|_| self.random.draw());
        let config =
            Config { seed, start_now_ns: self.now_ns, start_unix_ns: START_UNIX_NS, ..config };
        self.hosts.push(Host::new(name, config));
        self.wakes.push(u64::MAX);
        HostId(self.hosts.len() - 1)
    }

    /// Joins two hosts.
    pub fn add_link(&mut self, one: HostId, other: HostId, config: LinkConfig) -> LinkId {
        let place =
            |host: HostId, hosts: &[Host]| Place { host: host.0, port: hosts[host.0].port_count() };
        let ends = [place(one, &self.hosts), place(other, &self.hosts)];
        for (from, line) in ends.iter().zip(2 * self.links.len()..) {
            let random = Random::new(self.random.draw());
            let wire = Wire::new(Line::new(config.line), line, config.mtu_bytes, random);
            self.hosts[from.host].add_wire(wire, config.mtu_bytes);
            self.agenda.add_line();
        }
        self.links.push(ends);
        LinkId(self.links.len() - 1)
    }

    /// Starts a program on a host.
    pub fn add_program(&mut self, host: HostId, program: impl Program) -> ProgramId {
        let port = self.hosts[host.0].add_program(Box::new(program));
        self.wake_host(host.0);
        ProgramId { host: host.0, port }
    }

    /// Leads a prefix on a host into a link.
    pub fn route_over(&mut self, host: HostId, prefix: &Name, link: LinkId, cost: u64) {
        let ends = self.links[link.0];
        let end = ends.iter().find(|end| end.host == host.0).expect("the host is at the link");
        self.hosts[host.0].add_route(prefix, end.port, cost);
    }

    /// Takes back all routes of a prefix that lead from a host into links.
    pub fn unroute(&mut self, host: HostId, prefix: &Name) {
        self.hosts[host.0].remove_routes(prefix);
        self.settle(host.0);
    }

    /// Chooses the strategy of a host for a prefix, as `best-route` or `asf`, parameters after a
    /// slash; false if there is none of that name.
    pub fn set_strategy(&mut self, host: HostId, prefix: &Name, name: &str) -> bool {
        self.hosts[host.0].set_strategy(prefix, name)
    }

    /// Propagation over a link.
    pub fn link_delay_ns(&self, link: LinkId) -> u64 {
        let end = self.links[link.0][0];
        let wire = self.hosts[end.host].wire(end.port).expect("links end at wires");
        wire.line.config.delay_ns
    }

    /// Leads a prefix on its host to a program.
    pub fn route_to(&mut self, program: ProgramId, prefix: &Name) {
        self.hosts[program.host].add_route(prefix, program.port, 0);
    }

    /// A host.
    pub fn host(&self, host: HostId) -> &Host {
        &self.hosts[host.0]
    }

    /// The hosts, in the order of their making.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..self.hosts.len()).map(HostId)
    }

    /// A program, as what it is.
    pub fn program<P: Program>(&self, program: ProgramId) -> Option<&P> {
        self.hosts[program.host].program(program.port)
    }

    /// The same, to change it.
    pub fn program_mut<P: Program>(&mut self, program: ProgramId) -> Option<&mut P> {
        self.hosts[program.host].program_mut(program.port)
    }

    /// Counters of the direction of a link that begins at `from`.
    pub fn line_counters(&self, link: LinkId, from: HostId) -> LineCounters {
        let ends = self.links[link.0];
        let end = ends.iter().find(|end| end.host == from.0).expect("the host is at the link");
        let wire = self.hosts[end.host].wire(end.port).expect("links end at wires");
        wire.line.counters()
    }

    /// Changes what happens to the frames of a link from now on.
    pub fn set_line(&mut self, link: LinkId, change: impl Fn(&mut LineConfig)) {
        for end in self.links[link.0] {
            let wire = self.hosts[end.host].wire_mut(end.port).expect("links end at wires");
            change(&mut wire.line.config);
        }
    }

    /// Lets the ends of a link send lost frames again, or not.
    pub fn set_reliability(&mut self, link: LinkId, is_reliable: bool) {
        for end in self.links[link.0] {
            self.hosts[end.host].set_reliability(end.port, is_reliable);
        }
    }

    /// Lets a program that was changed from outside say what it has to say.
    pub fn wake(&mut self, program: ProgramId) {
        self.wake_host(program.host);
    }

    /// Plans something.
    pub fn plan(&mut self, at_ns: u64, incident: Incident) {
        self.incidents.push(incident);
        self.agenda.plan_incident(at_ns, self.incidents.len() - 1);
    }

    /// Links that are cut together: where a network falls apart.
    pub fn add_group(&mut self, links: &[LinkId]) -> GroupId {
        self.groups.push(links.to_vec());
        GroupId(self.groups.len() - 1)
    }

    /// The links that join the hosts of a set to others.
    pub fn links_around(&self, hosts: &[HostId]) -> Vec<LinkId> {
        let is_in = |place: &Place| hosts.iter().any(|host| host.0 == place.host);
        let crosses = |ends: &[Place; 2]| is_in(&ends[0]) != is_in(&ends[1]);
        (0..self.links.len()).filter(|link| crosses(&self.links[*link])).map(LinkId).collect()
    }

    /// Lets time pass until `end_ns`, or until `is_over`.
    ///
    /// # Errors
    /// [`Fault`]: the first promise that was broken; the world stands still from then on.
    pub fn run(&mut self, end_ns: u64, is_over: &dyn Fn(&World) -> bool) -> Result<(), Fault> {
        loop {
            if let Some(fault) = &self.fault {
                return Err(fault.clone());
            }
            if is_over(self) {
                return Ok(());
            }
            let Some((at_ns, due)) = self.agenda.pop_until(end_ns) else {
                self.now_ns = end_ns;
                return Ok(());
            };
            self.now_ns = self.now_ns.max(at_ns);
            self.happen(due);
        }
    }

    fn clocks(&self) -> Now {
        Now { now_ns: self.now_ns, unix_ns: START_UNIX_NS + self.now_ns }
    }

    fn wake_host(&mut self, host: usize) {
        self.wakes[host] = self.now_ns;
        self.agenda.plan_wake(self.now_ns, host);
    }

    /// Where a line begins, and where it ends.
    fn places(&self, line: usize) -> (Place, Place) {
        let ends = self.links[line / 2];
        (ends[line % 2], ends[1 - line % 2])
    }

    fn happen(&mut self, due: Due) {
        let now = self.clocks();
        match due {
            Due::Frame { line, frame } => {
                let (_, to) = self.places(line);
                self.history.frame_count += 1;
                self.history.note(now.now_ns, line as u64, frame.len() as u64);
                self.hosts[to.host].receive(to.port, &frame, now);
                self.settle(to.host);
            }
            Due::Departure { line } => {
                let (from, _) = self.places(line);
                self.hosts[from.host].depart(from.port, now.now_ns);
                self.take_leaving(from.host);
            }
            // Something else has woken it before: then this is of no use any more.
            Due::Wake { host } if self.wakes[host] != now.now_ns => {}
            Due::Wake { host } => {
                self.wakes[host] = u64::MAX;
                self.history.note(now.now_ns, host as u64, 0);
                self.hosts[host].handle_timeout(now);
                self.settle(host);
            }
            Due::Incident { number } => self.befall(self.incidents[number]),
        }
    }

    fn befall(&mut self, incident: Incident) {
        let now = self.clocks();
        match incident {
            Incident::Cut { link, is_noticed } => self.set_link(link, false, is_noticed),
            Incident::Restore { link } => self.set_link(link, true, true),
            Incident::Part { group, is_noticed } => {
                for link in self.groups[group.0].clone() {
                    self.set_link(link, false, is_noticed);
                }
            }
            Incident::Heal { group } => {
                for link in self.groups[group.0].clone() {
                    self.set_link(link, true, true);
                }
            }
            Incident::Flap { link, down_ns, up_ns, until_ns, is_noticed } => {
                self.set_link(link, false, is_noticed);
                let up_at_ns = self.now_ns + down_ns.max(1);
                self.plan(up_at_ns, Incident::Restore { link });
                let again_ns = up_at_ns + up_ns.max(1);
                if again_ns <= until_ns {
                    self.plan(again_ns, incident);
                }
            }
            Incident::Crash { host } => {
                self.hosts[host.0].crash(now);
                self.settle(host.0);
            }
            Incident::Restart { host } => {
                self.hosts[host.0].restart(now);
                self.settle(host.0);
            }
            Incident::CrashProgram { program: ProgramId { host, port }, how } => {
                self.hosts[host].crash_program(port, how, now);
                self.settle(host);
            }
            Incident::RestartProgram { program: ProgramId { host, port } } => {
                self.hosts[host].restart_program(port, now);
                self.settle(host);
            }
        }
    }

    fn set_link(&mut self, link: LinkId, is_up: bool, is_noticed: bool) {
        for (place, end) in self.links[link.0].into_iter().enumerate() {
            self.hosts[end.host].set_link(end.port, is_up, is_noticed, self.now_ns);
            if !is_up {
                let lost = self.agenda.cut(2 * link.0 + place, self.now_ns);
                let wire = self.hosts[end.host].wire_mut(end.port).expect("links end at wires");
                wire.line.count_lost(lost);
            }
            self.settle(end.host);
        }
    }

    /// Plans what a host has said.
    fn take_leaving(&mut self, host: usize) {
        let mut leaving = std::mem::take(&mut self.leaving);
        self.hosts[host].take_leaving(&mut leaving);
        for one in leaving.drain(..) {
            match one {
                Leaving::Frame { line, arrival } => {
                    self.agenda.plan_frame(line, arrival);
                }
                Leaving::Departure { line, at_ns } => self.agenda.plan_departure(at_ns, line),
            }
        }
        self.leaving = leaving;
    }

    /// Lets a host finish what it has to say, checks it, and plans when it is woken.
    fn settle(&mut self, host: usize) {
        let now = self.clocks();
        let ends = self.hosts[host].settle(now);
        if !ends {
            self.break_promise(host, "forwarder and programs talk without end".to_owned());
        }
        self.take_leaving(host);
        self.check(host);
        if let Some(at_ns) = self.hosts[host].poll_timeout() {
            // Nothing is woken twice at one instant without time passing: drivers oversleep, too.
            let at_ns = at_ns.max(self.now_ns + 1);
            if at_ns < self.wakes[host] {
                self.wakes[host] = at_ns;
                self.agenda.plan_wake(at_ns, host);
            }
        }
    }

    fn break_promise(&mut self, host: usize, what: String) {
        let (at_ns, host) = (self.now_ns, self.hosts[host].name.clone());
        self.fault.get_or_insert(Fault { at_ns, host, what });
    }

    /// Packets dropped for a reason, by all forwarders that run.
    pub fn drops(&self, reason: DropReason) -> u64 {
        let forwarders = self.hosts.iter().filter_map(Host::forwarder);
        forwarders.map(|forwarder| forwarder.counters().drops(reason)).sum()
    }

    /// Interests that wait, at all forwarders that run.
    pub fn pending_count(&self) -> usize {
        self.hosts.iter().filter_map(Host::forwarder).map(|it| it.pending_count()).sum()
    }
}
