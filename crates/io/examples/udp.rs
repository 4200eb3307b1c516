//! The costs of UDP: CPU seconds per GiB, sender and receiver together, with segments and without.
//!
//! `cargo run --release -p byname-io --example udp [MEBIBYTES]`. Two sockets on loopback, one
//! thread: what is sent is received before more is sent, so nothing is lost and nobody waits.

use std::net::SocketAddr;

use byname_io::{DatagramCounters, DatagramSocket, Endpoint};
use rustix::time::{ClockId, clock_gettime};

const ROUNDS: usize = 5;
/// Datagrams queued before a flush, as a forwarder would have after one burst.
const BURST_BYTES: usize = 512 << 10;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mebibytes: usize = std::env::args().nth(1).map_or(Ok(512), |text| text.parse())?;
    println!("{:>6} {:>10} {:>8} {:>8} {:>8}", "bytes", "segments", "min", "median", "max");
    for bytes in [1472, 8300] {
        for segments in [true, false] {
            let mut costs = Vec::new();
            let mut last = DatagramCounters::default();
            for _ in 0..ROUNDS {
                let (cost, counters) = measure(bytes, segments, mebibytes << 20)?;
                costs.push(cost);
                last = counters;
            }
            costs.sort_by(f64::total_cmp);
            let (min, median, max) = (costs[0], costs[ROUNDS / 2], costs[ROUNDS - 1]);
            let label = if segments { "on" } else { "off" };
            println!("{bytes:>6} {label:>10} {min:>8.3} {median:>8.3} {max:>8.3}  CPU-s/GiB");
            println!("       received {} in {} coalesced", last.received, last.coalesced_receives);
        }
    }
    Ok(())
}

fn measure(
    bytes: usize,
    segments: bool,
    total_bytes: usize,
) -> Result<(f64, DatagramCounters), Failure> {
    let near: Endpoint = "udp4://127.0.0.1:0".parse()?;
    let (mut sender, mut receiver) = (DatagramSocket::bind(&near)?, DatagramSocket::bind(&near)?);
    sender.set_segmentation(segments);
    receiver.set_segmentation(segments);
    let to: SocketAddr = receiver.local_address();
    let (header, payload) = (vec![1; 60], vec![2; bytes - 60]);
    let (mut sent_bytes, mut received_bytes, mut checksum) = (0, 0, 0u64);
    let before = cpu_seconds();
    while sent_bytes < total_bytes {
        let burst_end = sent_bytes + BURST_BYTES;
        while sent_bytes < burst_end {
            sender.queue(to, &[&header, &payload])?;
            sent_bytes += bytes;
        }
        while received_bytes < sent_bytes {
            sender.flush()?;
            receiver.recv_burst(&mut |_, datagram| {
                received_bytes += datagram.len();
                checksum = checksum.wrapping_add(u64::from(datagram[0]));
            })?;
        }
    }
    assert_eq!(checksum, (sent_bytes / bytes) as u64);
    let gibibytes = sent_bytes as f64 / (1u64 << 30) as f64;
    Ok(((cpu_seconds() - before) / gibibytes, receiver.counters()))
}

fn cpu_seconds() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}
