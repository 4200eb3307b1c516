//! Nanoseconds of processor that the forwarder takes per exchange (one Interest out, one Data
//! back), links not included.
//!
//! `cargo run --release -p byname-forwarder --example exchange [FILTER]`. Packets are patched in
//! place (segment number and nonce) and come in bursts, so that what is measured is the forwarder
//! and not the making of packets; a burst is made as a whole, or reading it would wait for the
//! writing of it to end. Each line is the median of five rounds.

use std::hint::black_box;

use byname_forwarder::{Config, FaceId, FaceInfo, Forwarder, Route, Tx};
use byname_packet::lp::LpHeader;
use byname_packet::{DataBuilder, InterestBuilder, Name, NullSigner};

const BURST: u32 = 64;
const EXCHANGES: u32 = 64 * 3000;
const ROUNDS: usize = 5;

/// Segment numbers from here on all take four octets.
const FIRST_SEGMENT: u32 = 0x0100_0000;

const NONCE: [u8; 4] = [0xA5, 0x5A, 0xC3, 0x3C];

/// Counts what would be sent.
#[derive(Default)]
struct Null {
    packets: u64,
    bytes: u64,
}

impl Tx for Null {
    fn send(&mut self, _face: FaceId, header: &LpHeader<'_>, packet: &[u8]) {
        self.packets += 1;
        self.bytes += packet.len() as u64;
        black_box(header);
    }
}

struct Case {
    label: &'static str,
    payload_bytes: usize,
    store_bytes: usize,
    /// Names asked for before they repeat.
    names: u32,
    routes: u32,
}

/// A packet whose segment number and nonce can be changed in place.
#[derive(Clone)]
struct Template {
    wire: Vec<u8>,
    segment_at: usize,
    nonce_at: usize,
}

impl Template {
    fn new(wire: Vec<u8>) -> Self {
        let find = |octets: &[u8]| wire.windows(4).position(|w| w == octets);
        let segment_at = find(&FIRST_SEGMENT.to_be_bytes()).expect("a segment number");
        let nonce_at = find(&NONCE).unwrap_or(segment_at);
        Self { segment_at, nonce_at, wire }
    }

    fn set(&mut self, segment: u32, nonce: u32) {
        self.wire[self.nonce_at..self.nonce_at + 4].copy_from_slice(&nonce.to_be_bytes());
        let segment = FIRST_SEGMENT + segment;
        self.wire[self.segment_at..self.segment_at + 4].copy_from_slice(&segment.to_be_bytes());
    }
}

struct Bench {
    forwarder: Forwarder,
    consumer: FaceId,
    producer: FaceId,
    interests: Vec<Template>,
    data: Vec<Template>,
    now_ns: u64,
    nonce: u32,
    tx: Null,
}

impl Bench {
    fn new(case: &Case) -> Self {
        let mut forwarder = Forwarder::new(Config {
            seed: [0x1234_5678_9ABC_DEF0, 0x0F1E_2D3C_4B5A_6978, 3],
            cs_bytes_max: case.store_bytes,
            routes_max: 2_000_000,
            ..Config::default()
        });
        let local = || FaceInfo { local: true, ..FaceInfo::default() };
        let (consumer, producer) = (forwarder.add_face(local()), forwarder.add_face(local()));
        let route = Route { face: producer, origin: 0, cost: 0, flags: 0, expires_ns: None };
        let served: Name = "/example/site/dataset".parse().expect("a constant name");
        forwarder.add_route(&served, route).expect("room");
        for number in 1..case.routes {
            forwarder.add_route(&other_prefix(number), route).expect("room");
        }
        let name = served.with_generic(b"directory").with_generic(b"file-0001.dat");
        let name = name.with_version(1_700_000_000).with_segment(u64::from(FIRST_SEGMENT));
        let (mut interest, mut data) = (Vec::new(), Vec::new());
        InterestBuilder::new(name.view()).nonce(NONCE).lifetime_ms(2000).encode(&mut interest);
        DataBuilder::new(name.view())
            .freshness_ms(3_600_000)
            .encode(&vec![7; case.payload_bytes], &NullSigner, &mut data)
            .expect("the Null signature cannot fail");
        let interests = vec![Template::new(interest); BURST as usize];
        let data = vec![Template::new(data); BURST as usize];
        let (now_ns, nonce, tx) = (1_000_000_000, 0, Null::default());
        Self { forwarder, consumer, producer, interests, data, now_ns, nonce, tx }
    }

    /// One burst of Interests and the Data for those that went on.
    fn burst(&mut self, first: u32, names: u32) {
        self.now_ns += 20_000;
        let before = self.forwarder.counters().out_interests;
        for (offset, packet) in (0..BURST).zip(&mut self.interests) {
            self.nonce += 1;
            packet.set((first + offset) % names, self.nonce);
        }
        let header = LpHeader { pit_token: Some(&[1, 2, 3, 4]), ..LpHeader::default() };
        let (forwarder, now_ns, tx) = (&mut self.forwarder, self.now_ns, &mut self.tx);
        for packet in &self.interests {
            forwarder.handle_packet(self.consumer, &header, &packet.wire, now_ns, tx);
        }
        if forwarder.counters().out_interests == before {
            return;
        }
        for (offset, packet) in (0..BURST).zip(&mut self.data) {
            let segment = (first + offset) % names;
            packet.set(segment, FIRST_SEGMENT + segment);
        }
        self.now_ns += 20_000;
        let (header, now_ns) = (LpHeader::default(), self.now_ns);
        for packet in &self.data {
            forwarder.handle_packet(self.producer, &header, &packet.wire, now_ns, tx);
        }
        forwarder.handle_timeout(now_ns, tx);
    }

    fn run(&mut self, names: u32, first: u32, exchanges: u32) {
        for burst in 0..exchanges / BURST {
            self.burst(first + burst * BURST, names);
        }
    }
}

/// Prefixes of two to five components.
fn other_prefix(number: u32) -> Name {
    let mut name = Name::new().with_generic(b"net").with_generic(&(number / 64).to_be_bytes());
    for level in 0..number % 4 {
        name.push_generic(&(number ^ level << 24).to_be_bytes());
    }
    name
}

/// Time that this thread has had a processor, so that a busy machine shows less.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|number| number.parse().ok()).expect("Linux counts the time of threads")
}

fn measure(case: &Case) {
    let mut bench = Bench::new(case);
    bench.run(case.names, 0, EXCHANGES.max(case.names.min(EXCHANGES)));
    let mut rounds: Vec<f64> = (1..=ROUNDS as u32)
        .map(|round| {
            let start_ns = cpu_ns();
            bench.run(case.names, round * EXCHANGES, EXCHANGES);
            (cpu_ns() - start_ns) as f64 / f64::from(EXCHANGES)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    let drops = EXCHANGES as usize * (ROUNDS + 1) * 2 - bench.tx.packets as usize;
    println!(
        "{:<22} {:>5} B {:>8} routes {:>7.0} ns ({:.0} to {:.0}; {} kB sent, {} packets less)",
        case.label,
        case.payload_bytes,
        case.routes,
        rounds[ROUNDS / 2],
        rounds[0],
        rounds[ROUNDS - 1],
        bench.tx.bytes / 1000,
        drops,
    );
}

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let mut cases = Vec::new();
    for payload_bytes in [100, 1000, 8000] {
        let case = |label, store_bytes, names| Case {
            label,
            payload_bytes,
            store_bytes,
            names,
            routes: 10,
        };
        cases.push(case("store off", 0, 1 << 23));
        cases.push(case("store on, miss", 64 << 20, 1 << 23));
        cases.push(case("store on, hit", 64 << 20, 4096));
    }
    for routes in [10_000, 1_000_000] {
        let label = "store off";
        cases.push(Case { label, payload_bytes: 1000, store_bytes: 0, names: 1 << 23, routes });
    }
    for case in cases.iter().filter(|case| matches(case, &filter)) {
        measure(case);
    }
}

fn matches(case: &Case, filter: &str) -> bool {
    format!("{} {} {}", case.label, case.payload_bytes, case.routes).contains(filter)
}
