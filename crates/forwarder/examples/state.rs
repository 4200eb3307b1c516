//! Octets of memory that the forwarder takes per route, pending Interest and face.
//!
//! `cargo run --release -p byname-forwarder --example state`. What the process has resident more
//! than before, divided by how many were added.

use byname_forwarder::{Config, FaceInfo, Forwarder, Route, Tx};
use byname_packet::lp::LpHeader;
use byname_packet::{InterestBuilder, Name};

/// Sends nothing.
struct Null;

impl Tx for Null {
    fn send(&mut self, _: byname_forwarder::FaceId, _: &LpHeader<'_>, _: &[u8]) {}
}

fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("Linux tells what is resident") * 4096
}

fn measure(what: &str, count: u32, mut add: impl FnMut(u32)) {
    let before = resident_bytes();
    (0..count).for_each(&mut add);
    println!("{what:<20} {:>5} B", (resident_bytes() - before) / count as usize);
}

fn main() {
    let mut forwarder = Forwarder::new(Config {
        routes_max: 2_000_000,
        pit_entries_max: 1 << 22,
        pit_bytes_max: 1 << 32,
        ..Config::default()
    });
    let info = FaceInfo {
        remote_uri: String::from("udp4://192.0.2.17:6363"),
        local_uri: String::from("udp4://192.0.2.1:6363"),
        ..FaceInfo::default()
    };
    let faces: Vec<_> = (0..2).map(|_| forwarder.add_face(info.clone())).collect();
    measure("face", 20_000, |_| {
        forwarder.add_face(info.clone());
    });
    let route = Route { face: faces[0], origin: 0, cost: 0, flags: 1, expires_ns: None };
    let prefix: Name = "/example/site".parse().expect("a constant name");
    measure("route (RIB and FIB)", 1_000_000, |number| {
        let name = prefix.with_generic(&number.to_be_bytes());
        forwarder.add_route(&name, route).expect("room for a route");
    });
    let name = prefix.with_generic(&[0; 4]).with_generic(b"directory").with_generic(b"file.dat");
    measure("pending Interest", 200_000, |number| {
        let name = name.with_version(1_700_000_000).with_segment(u64::from(number));
        let mut wire = Vec::with_capacity(128);
        InterestBuilder::new(name.view()).nonce(number.to_be_bytes()).encode(&mut wire);
        forwarder.handle_packet(faces[1], &LpHeader::default(), &wire, 1, &mut Null);
    });
}
