//! Growth of memory and processor time with nodes and with names.
//!
//! **Nodes.** Trees of routers with machines below them, from 10 to 1000 hosts, in which every
//! tenth machine publishes and every machine reads; the work of each machine is the same, so what
//! a host costs should not depend on how many there are.
//!
//! **Names.** Routes are what an operator has millions of, and content-store packets and pending
//! Interests what traffic makes: all three are kept by name, so one forwarder is filled with each,
//! and the cost of an Interest that meets them is measured with names drawn at random.

use byname_forwarder::{Config, FaceId, FaceInfo, Forwarder, Route, Tx};
use byname_packet::lp::LpHeader;
use byname_packet::{DataBuilder, InterestBuilder, Name, NullSigner};

use crate::plot::{Axis, Plot, Series};
use crate::random::Random;
use crate::study::cluster::{Outcome, Room, play, resident_bytes, thread_cpu};
use crate::study::{Effort, Section, apart};
use crate::topology::plan::{Plan, link};
use crate::world::{MS, SECOND};

/// The question that this answers.
pub const QUESTION: &str = "What do memory and processor time grow by with nodes and with names?";

/// Machines below one router.
const RACK: usize = 9;

/// Racks of a router `r…` and nine machines `h…`, their routers below each other in a tree of
/// arity four.
pub fn racks(hosts: usize) -> Plan {
    let mut plan = Plan::default();
    let routers = hosts.div_ceil(RACK + 1);
    for number in 0..routers {
        plan.add_host(format!("r{number}"), None);
        if number > 0 {
            plan.join((number - 1) / 4, number, link(10_000_000_000, MS / 10));
        }
    }
    for number in 0..hosts - routers {
        let host = plan.add_host(format!("h{number}"), None);
        plan.join(number / RACK, host, link(1_000_000_000, MS / 50));
    }
    plan
}

/// The same work for each machine, whatever their number.
///
/// # Panics
/// If a promise was broken: this is a measurement, not a search for faults.
pub fn nodes(hosts: usize, seconds: u64, seed: u64) -> Outcome {
    let room = Room {
        plan: racks(hosts),
        duration_ns: seconds * SECOND,
        pause_ns: 2 * SECOND,
        store_bytes: 4 << 20,
        seed,
    };
    play(&room).expect("nothing fails in calm networks")
}

/// Objects kept by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Routes: RIB and FIB.
    Routes,
    /// Packets of 100 octets in the content store.
    Packets,
    /// Pending Interests.
    Pending,
}

/// Cost of so many names in one forwarder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Names {
    /// Objects that are kept.
    pub kept: Kept,
    /// Count.
    pub count: u64,
    /// Resident octets more than without.
    pub resident_bytes: u64,
    /// To put one in, in nanoseconds of processor time.
    pub insert_ns: f64,
    /// An Interest for a name drawn at random, in nanoseconds of processor time.
    pub lookup_ns: f64,
}

/// Counts what it is given.
#[derive(Default)]
struct Counter(u64);

impl Tx for Counter {
    fn send(&mut self, _: FaceId, _: &LpHeader<'_>, _: &[u8]) {
        self.0 += 1;
    }
}

/// One forwarder with two faces, and what it is asked.
struct Subject {
    forwarder: Forwarder,
    sent: Counter,
    consumer: FaceId,
    producer: FaceId,
    base: Name,
    now_ns: u64,
    wire: Vec<u8>,
}

const CONTENT: [u8; 100] = [7; 100];

impl Subject {
    fn new(count: u64) -> Self {
        let room = usize::try_from(count).unwrap_or(usize::MAX).saturating_add(1_000);
        let mut forwarder = Forwarder::new(Config {
            seed: [1, 2, 3],
            routes_max: room,
            cs_entries_max: room,
            cs_bytes_max: usize::MAX / 2,
            pit_entries_max: room,
            pit_bytes_max: usize::MAX / 2,
            ..Config::default()
        });
        let consumer = forwarder.add_face(FaceInfo::default());
        let producer = forwarder.add_face(FaceInfo::default());
        let base: Name = "/example/site".parse().expect("a constant name");
        let sent = Counter::default();
        Subject { forwarder, sent, consumer, producer, base, now_ns: 1, wire: Vec::new() }
    }

    /// The name with this number: two components of its own, as sites and data sets have.
    fn name(&self, number: u64) -> Name {
        let number = number.to_be_bytes();
        self.base.with_generic(&number[..6]).with_generic(&number)
    }

    fn add_route(&mut self, prefix: &Name) {
        let face = self.producer;
        let route = Route { face, origin: 0, cost: 0, flags: 1, expires_ns: None };
        self.forwarder.add_route(prefix, route).expect("room for all routes");
    }

    fn interest(&mut self, name: &Name, nonce: u64) {
        self.wire.clear();
        InterestBuilder::new(name.view())
            .nonce((nonce as u32).to_be_bytes())
            .lifetime_ms(600_000)
            .encode(&mut self.wire);
        let (face, header) = (self.consumer, LpHeader::default());
        self.forwarder.handle_packet(face, &header, &self.wire, self.now_ns, &mut self.sent);
    }

    fn data(&mut self, name: &Name) {
        self.wire.clear();
        let data = DataBuilder::new(name.view()).freshness_ms(3_600_000);
        data.encode(&CONTENT, &NullSigner, &mut self.wire).expect("nothing to sign");
        let (face, header) = (self.producer, LpHeader::default());
        self.forwarder.handle_packet(face, &header, &self.wire, self.now_ns, &mut self.sent);
    }

    fn add(&mut self, kept: Kept, number: u64) {
        let name = self.name(number);
        match kept {
            Kept::Routes => self.add_route(&name),
            Kept::Packets => {
                self.interest(&name, number);
                self.data(&name);
            }
            Kept::Pending => self.interest(&name, number),
        }
    }

    /// An Interest that meets the name with this number.
    fn look_up(&mut self, kept: Kept, number: u64, nonce: u64) {
        let name = self.name(number);
        match kept {
            // Below the route, forwarded and answered, so that nothing stays.
            Kept::Routes => {
                let name = name.with_segment(nonce);
                self.interest(&name, nonce);
                self.data(&name);
            }
            // Answered from the store, or told to wait with the others.
            Kept::Packets | Kept::Pending => self.interest(&name, nonce),
        }
    }
}

/// Fills one forwarder.
pub fn names(kept: Kept, count: u64, lookups: u64) -> Names {
    let before = resident_bytes();
    let mut subject = Subject::new(count);
    if kept != Kept::Routes {
        let base = subject.base.clone();
        subject.add_route(&base);
    } else {
        // Data that is kept would be counted with the routes.
        subject.forwarder.set_content_store_bounds(0, 0);
    }
    let start = thread_cpu();
    (0..count).for_each(|number| subject.add(kept, number));
    let insert = thread_cpu().saturating_sub(start);
    let resident_bytes = resident_bytes().saturating_sub(before);
    let mut random = Random::new(5);
    subject.now_ns += SECOND;
    let start = thread_cpu();
    for nonce in 0..lookups {
        subject.look_up(kept, random.below(count), nonce);
    }
    let lookup = thread_cpu().saturating_sub(start);
    Names {
        kept,
        count,
        resident_bytes,
        insert_ns: insert.as_nanos() as f64 / count as f64,
        lookup_ns: lookup.as_nanos() as f64 / lookups as f64,
    }
}

impl Kept {
    /// The word for it in tables, and between processes.
    fn word(self) -> &'static str {
        match self {
            Kept::Routes => "routes",
            Kept::Packets => "packets",
            Kept::Pending => "pending",
        }
    }

    /// Parses the word.
    pub(super) fn from_word(word: &str) -> Option<Self> {
        [Kept::Routes, Kept::Packets, Kept::Pending].into_iter().find(|it| it.word() == word)
    }
}

impl Names {
    /// Line of numbers that [`names_apart`] parses.
    pub(super) fn line(&self) -> String {
        format!("{} {} {}", self.resident_bytes, self.insert_ns, self.lookup_ns)
    }
}

/// The same in a process of its own, if there can be one.
fn names_apart(kept: Kept, count: u64, lookups: u64) -> Names {
    let told = || {
        let said = apart::ask(&["names", kept.word(), &count.to_string(), &lookups.to_string()])?;
        let mut numbers = said.split_whitespace();
        Some(Names {
            kept,
            count,
            resident_bytes: numbers.next()?.parse().ok()?,
            insert_ns: numbers.next()?.parse().ok()?,
            lookup_ns: numbers.next()?.parse().ok()?,
        })
    };
    told().unwrap_or_else(|| names(kept, count, lookups))
}

/// [`nodes`] in a process of its own, if there can be one.
fn nodes_apart(hosts: usize, seconds: u64, seed: u64) -> Outcome {
    let words = ["nodes", &hosts.to_string(), &seconds.to_string(), &seed.to_string()];
    let told = apart::ask(&words).and_then(|said| Outcome::from_line(&said));
    told.unwrap_or_else(|| nodes(hosts, seconds, seed))
}

/// Slope of a straight line through points, by least squares.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let (x, y) = (x / count, y / count);
    let over: f64 = points.iter().map(|one| (one.0 - x) * (one.1 - y)).sum();
    let under: f64 = points.iter().map(|one| (one.0 - x).powi(2)).sum();
    over / under
}

/// Memory and processor time by nodes and by names.
pub fn run(effort: &Effort) -> Section {
    let mut section = Section::new("From 10 to 1000 nodes, from 1 to 10 million names");
    show_nodes(effort, &mut section);
    show_names(effort, &mut section);
    section
}

fn show_nodes(effort: &Effort, section: &mut Section) {
    let (counts, seconds): (&[usize], u64) =
        if effort.is_quick { (&[10, 20], 6) } else { (&[10, 30, 100, 300, 1000], 10) };
    let found: Vec<Outcome> =
        counts.iter().map(|count| nodes_apart(*count, seconds, effort.seed)).collect();
    section.paragraph(format!(
        "Racks of nine machines below a router, the routers in a tree of arity four. Each machine \
         reads a block of 4 MiB every two seconds for {seconds} virtual seconds, the same at every \
         size. Every machine publishes, and every router has a route to each. Packets are counted \
         at each link that they cross, so ways that grow longer with the tree show in the packets \
         of a node and not in the cost of a packet. Memory is what is resident at the end more \
         than before. Each row is a process of its own.",
    ));
    let rows = found.iter().map(|it| {
        let per_node = it.hosts as f64;
        vec![
            it.hosts.to_string(),
            it.packets.to_string(),
            format!("{:.2}", it.cpu.as_secs_f64()),
            format!("{:.2}", it.cpu_setup.as_secs_f64()),
            format!("{:.2}", it.cpu.as_secs_f64() * 1e3 / per_node / it.seconds),
            format!("{:.2}", it.cpu.as_secs_f64() * 1e6 / it.packets as f64),
            format!("{:.0}", it.packets_per_cpu_s()),
            format!("{:.2}", it.seconds_per_cpu_s()),
            format!("{:.2}", it.resident_bytes as f64 / per_node / 1048576.0),
        ]
    });
    let head = [
        "nodes",
        "packets",
        "CPU s",
        "of it setup",
        "CPU ms a node and s",
        "µs a packet",
        "packets a CPU s",
        "virtual s a CPU s",
        "MiB a node",
    ];
    section.table(&head, rows.collect());
    let memory = points(&found, |it| it.resident_bytes as f64 / 1048576.0);
    let cpu = points(&found, |it| it.cpu.as_secs_f64());
    section.paragraph(format!(
        "Slopes by least squares: {:.2} MiB and {:.0} ms of processor time for each further node.",
        slope(&memory),
        slope(&cpu) * 1e3,
    ));
    section.plot(Plot {
        name: "scale-nodes".to_owned(),
        title: "What nodes cost".to_owned(),
        x: Axis::log("nodes"),
        y: Axis::log("processor seconds; MiB"),
        series: vec![Series::dots("processor seconds", cpu), Series::dots("memory, MiB", memory)],
    });
}

fn points(found: &[Outcome], of: impl Fn(&Outcome) -> f64) -> Vec<(f64, f64)> {
    found.iter().map(|it| (it.hosts as f64, of(it))).collect()
}

fn show_names(effort: &Effort, section: &mut Section) {
    let (counts, lookups): (&[u64], u64) = if effort.is_quick {
        (&[1_000, 2_000], 1_000)
    } else {
        (&[1_000_000, 2_000_000, 5_000_000, 10_000_000], 1_000_000)
    };
    section.paragraph(
        "One forwarder, names of four components. Routes: an Interest below a route drawn at \
         random is forwarded and answered. Packets: an Interest is answered from the store (100 \
         octets of content). Pending: an Interest for a name that is pending already. Each row \
         is a process of its own.",
    );
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    let mut slopes = Vec::new();
    for kept in [Kept::Routes, Kept::Packets, Kept::Pending] {
        let cell = |count: &u64| names_apart(kept, *count, lookups);
        let found: Vec<Names> = counts.iter().map(cell).collect();
        let label = kept.word().to_owned();
        rows.extend(found.iter().map(|it| {
            vec![
                label.clone(),
                it.count.to_string(),
                (it.resident_bytes >> 20).to_string(),
                (it.resident_bytes / it.count).to_string(),
                format!("{:.0}", it.insert_ns),
                format!("{:.0}", it.lookup_ns),
            ]
        }));
        let memory: Vec<(f64, f64)> =
            found.iter().map(|it| (it.count as f64, it.resident_bytes as f64)).collect();
        slopes.push(format!("{label} {:.0} octets", slope(&memory)));
        let lookup = found.iter().map(|it| (it.count as f64 / 1e6, it.lookup_ns));
        series.push(Series::dots(label, lookup.collect()));
    }
    let head = ["kept", "names", "MiB", "octets a name", "ns to put in", "ns an Interest"];
    section.table(&head, rows);
    section.paragraph(format!("Slopes by least squares, a name: {}.", slopes.join(", ")));
    section.plot(Plot {
        name: "scale-names".to_owned(),
        title: "An Interest in a forwarder that knows many names".to_owned(),
        x: Axis::log("million names"),
        y: Axis::linear("nanoseconds of processor time"),
        series,
    });
}
