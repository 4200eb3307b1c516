//! All hosts and links, and the clock: events in the order of time, and of their making where the
//! time is equal, so that a seed and a scenario give one history.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use byname_forwarder::{Config, DropReason};
use byname_packet::Name;

use crate::host::{Host, Leaving, Now, Place, Program, Wire};
use crate::line::{Line, LineConfig, LineCounters};
use crate::random::Random;

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

/// A program on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProgramId {
    host: usize,
    port: usize,
}

/// Settings of a link; both directions alike.
#[derive(Clone, Copy, Debug)]
pub struct LinkConfig {
    /// Of each direction.
    pub line: LineConfig,
    /// Largest frame; `None` for a stream.
    pub mtu_bytes: Option<usize>,
}

/// Something that happens to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// A link loses everything from now on; the hosts notice at once, or not at all.
    Cut {
        /// Which.
        link: LinkId,
        /// Whether the faces go down.
        is_noticed: bool,
    },
    /// A link works again.
    Restore {
        /// Which.
        link: LinkId,
    },
    /// A forwarder ends without a word.
    Crash {
        /// Whose.
        host: HostId,
    },
    /// It starts again, with its configuration and nothing else.
    Restart {
        /// Whose.
        host: HostId,
    },
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Frame { to: Place, frame: Vec<u8> },
    Wake { host: usize },
    Incident(usize),
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub at_ns: u64,
    /// On which host.
    pub host: String,
    /// What.
    pub what: String,
}

/// See the module.
pub struct World {
    now_ns: u64,
    seed: u64,
    random: Random,
    hosts: Vec<Host>,
    /// The places of the two ends.
    links: Vec<[Place; 2]>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    event_count: u64,
    /// When each host is woken next.
    wakes: Vec<u64>,
    incidents: Vec<Incident>,
    fault: Option<Fault>,
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
            events: BinaryHeap::new(),
            event_count: 0,
            wakes: Vec::new(),
            incidents: Vec::new(),
            fault: None,
        }
    }

    /// Monotonic time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// What everything random was made from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Events that happened or were planned: a measure of the work done.
    pub fn event_count(&self) -> u64 {
        self.event_count
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
        for (from, to) in [(ends[0], ends[1]), (ends[1], ends[0])] {
            let random = Random::new(self.random.draw());
            let wire = Wire::new(Line::new(config.line), to, config.mtu_bytes, random);
            self.hosts[from.host].add_wire(wire, config.mtu_bytes);
        }
        self.links.push(ends);
        LinkId(self.links.len() - 1)
    }

    /// Starts a program on a host.
    pub fn add_program(&mut self, host: HostId, program: impl Program) -> ProgramId {
        let port = self.hosts[host.0].add_program(Box::new(program));
        self.schedule(self.now_ns, Event::Wake { host: host.0 });
        ProgramId { host: host.0, port }
    }

    /// Leads a prefix on a host into a link.
    pub fn route_over(&mut self, host: HostId, prefix: &Name, link: LinkId, cost: u64) {
        let ends = self.links[link.0];
        let end = ends.iter().find(|end| end.host == host.0).expect("the host is at the link");
        self.hosts[host.0].add_route(prefix, end.port, cost);
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

    /// What the direction of a link that begins at `from` did so far.
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
        self.schedule(self.now_ns, Event::Wake { host: program.host });
    }

    /// Plans something.
    pub fn plan(&mut self, at_ns: u64, incident: Incident) {
        self.incidents.push(incident);
        self.schedule(at_ns, Event::Incident(self.incidents.len() - 1));
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
            match self.events.peek() {
                Some(Reverse((at_ns, ..))) if *at_ns <= end_ns => {}
                _ => {
                    self.now_ns = end_ns;
                    return Ok(());
                }
            }
            if let Some(Reverse((at_ns, _, event))) = self.events.pop() {
                self.now_ns = self.now_ns.max(at_ns);
                self.happen(event);
            }
        }
    }

    fn clocks(&self) -> Now {
        Now { now_ns: self.now_ns, unix_ns: START_UNIX_NS + self.now_ns }
    }

    fn schedule(&mut self, at_ns: u64, event: Event) {
        self.event_count += 1;
        self.events.push(Reverse((at_ns, self.event_count, event)));
    }

    fn happen(&mut self, event: Event) {
        let now = self.clocks();
        match event {
            Event::Frame { to, frame } => {
                self.hosts[to.host].receive(to.port, &frame, now);
                self.settle(to.host);
            }
            Event::Wake { host } => {
                if self.wakes[host] <= now.now_ns {
                    self.wakes[host] = u64::MAX;
                }
                self.hosts[host].handle_timeout(now);
                self.settle(host);
            }
            Event::Incident(number) => self.befall(self.incidents[number]),
        }
    }

    fn befall(&mut self, incident: Incident) {
        let (link, is_up, is_noticed) = match incident {
            Incident::Cut { link, is_noticed } => (link, false, is_noticed),
            Incident::Restore { link } => (link, true, true),
            Incident::Crash { host } => return self.hosts[host.0].crash(),
            Incident::Restart { host } => {
                self.hosts[host.0].restart();
                return self.settle(host.0);
            }
        };
        for end in self.links[link.0] {
            self.hosts[end.host].set_link(end.port, is_up, is_noticed);
            self.settle(end.host);
        }
    }

    /// Lets a host finish what it has to say, checks it, and plans when it is woken.
    fn settle(&mut self, host: usize) {
        let mut leaving = Vec::new();
        let now = self.clocks();
        let ends = self.hosts[host].settle(now, &mut leaving);
        if !ends {
            self.break_promise(host, "forwarder and programs talk without end".to_owned());
        }
        for Leaving { to, arrival } in leaving {
            self.schedule(arrival.at_ns, Event::Frame { to, frame: arrival.frame });
        }
        self.check(host);
        if let Some(at_ns) = self.hosts[host].poll_timeout() {
            // Nothing is woken twice at one instant without time passing: drivers oversleep, too.
            let at_ns = at_ns.max(self.now_ns + 1);
            if at_ns < self.wakes[host] {
                self.wakes[host] = at_ns;
                self.schedule(at_ns, Event::Wake { host });
            }
        }
    }

    /// What must hold after every step.
    fn check(&mut self, host: usize) {
        let one = &self.hosts[host];
        let program_fault = one.programs().find_map(Program::fault);
        let forwarder_fault = one.forwarder().and_then(|forwarder| {
            let pending = forwarder.pending_count();
            let limit = one.config().pit_entries_max;
            (pending > limit).then(|| format!("{pending} pending Interests, allowed are {limit}"))
        });
        if let Some(what) = program_fault.or(forwarder_fault) {
            self.break_promise(host, what);
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
