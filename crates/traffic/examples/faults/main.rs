//! A relay that behaves like a bad network: for tests and measurements between real processes.
//!
//! usage: faults udp|tcp LISTEN TARGET [FAULT=VALUE ...]
//! Prints `listening on ADDRESS`, then carries datagrams, or the bytes of connections, both ways.
//! Faults: loss, duplicate, reorder, corrupt (each a probability, of a datagram; with TCP corrupt
//! is of a read of up to 64 KiB and the others do not apply), delay (ms, each way), jitter (ms),
//! rate (octets a second, each way), flap (PERIOD_MS:DOWN_MS, nothing passes while down), seed.
//! While anything happens it prints four times a second what has happened so far, in a line:
//! `up N lost N duplicated N reordered N corrupted N down N lost ...`; up is towards the target,
//! and what comes while the link is down, or finds no room, is lost.

mod relay;

use std::error::Error;
use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use relay::{DOWN, Faults, Tally, UP, relay_tcp, relay_udp};

/// Interval at which counters are printed.
const TELL_PAUSE: Duration = Duration::from_millis(250);

fn shown(tally: &Tally) -> String {
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let Tally { came, lost, duplicated, reordered, corrupted } = tally;
    format!(
        "{} lost {} duplicated {} reordered {} corrupted {}",
        read(came),
        read(lost),
        read(duplicated),
        read(reordered),
        read(corrupted)
    )
}

/// Prints what has happened when that has changed.
fn tell() {
    let mut told = String::new();
    loop {
        std::thread::sleep(TELL_PAUSE);
        let line = format!("up {} down {}", shown(&UP), shown(&DOWN));
        if line != told {
            println!("{line}");
            told = line;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [transport, listen, target, faults @ ..] = &arguments[..] else {
        return Err("usage: faults udp|tcp LISTEN TARGET [FAULT=VALUE ...]".into());
    };
    let (target, faults) = (target.parse()?, Faults::parse(faults)?);
    std::thread::spawn(tell);
    match transport.as_str() {
        "udp" => {
            let socket = UdpSocket::bind(listen)?;
            println!("listening on {}", socket.local_addr()?);
            relay_udp(&socket, target, faults)
        }
        "tcp" => {
            let listener = TcpListener::bind(listen)?;
            println!("listening on {}", listener.local_addr()?);
            relay_tcp(&listener, target, faults)
        }
        _ => Err("udp or tcp".into()),
    }
}
