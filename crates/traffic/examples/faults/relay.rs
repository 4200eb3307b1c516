//! A relay that behaves like a bad network; `main.rs` is its command line, tests use it in their
//! own process.
//!
//! Delayed octets wait in memory, at most 64 MiB each way; beyond that datagrams are lost and
//! connections are not read.

use std::collections::{BinaryHeap, HashMap};
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::spawn;
use std::time::{Duration, Instant};

/// Octets that wait, each way.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// Clients of a UDP relay; more are ignored.
const CLIENTS_MAX: usize = 256;
const READ_BYTES: usize = 64 << 10;
/// Delay of a datagram that comes out of order.
const REORDER_DELAY: Duration = Duration::from_millis(3);

/// Counters of one direction.
pub(crate) struct Tally {
    pub(crate) came: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) duplicated: AtomicU64,
    pub(crate) reordered: AtomicU64,
    pub(crate) corrupted: AtomicU64,
}

/// Towards the target.
pub(crate) static UP: Tally = Tally::new();
/// Back from it.
pub(crate) static DOWN: Tally = Tally::new();

impl Tally {
    const fn new() -> Self {
        Tally {
            came: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            duplicated: AtomicU64::new(0),
            reordered: AtomicU64::new(0),
            corrupted: AtomicU64::new(0),
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The faults; see the documentation of the example.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    loss: f64,
    duplicate: f64,
    reorder: f64,
    corrupt: f64,
    delay: Duration,
    jitter: Duration,
    bytes_per_s: Option<f64>,
    flap: Option<(Duration, Duration)>,
    seed: u64,
}

impl Faults {
    /// Reads `FAULT=VALUE` arguments.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Box<dyn Error>> {
        let mut faults = Faults { seed: 1, ..Faults::default() };
        for argument in arguments {
            let (key, value) = argument.split_once('=').ok_or("a fault is FAULT=VALUE")?;
            let ms = |text: &str| text.parse().map(Duration::from_millis);
            match key {
                "loss" => faults.loss = value.parse()?,
                "duplicate" => faults.duplicate = value.parse()?,
                "reorder" => faults.reorder = value.parse()?,
                "corrupt" => faults.corrupt = value.parse()?,
                "delay" => faults.delay = ms(value)?,
                "jitter" => faults.jitter = ms(value)?,
                "rate" => faults.bytes_per_s = Some(value.parse()?),
                "flap" => {
                    let (period, down) = value.split_once(':').ok_or("flap=PERIOD_MS:DOWN_MS")?;
                    faults.flap = Some((ms(period)?, ms(down)?));
                }
                "seed" => faults.seed = value.parse()?,
                _ => return Err(format!("no such fault: {key}").into()),
            }
        }
        Ok(faults)
    }
}

/// xorshift64*: repeatable with a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && (self.next() >> 11) as f64 / ((1u64 << 53) as f64) < probability
    }
}

/// Something on its way, the earliest first in a heap.
struct InFlight {
    due: Instant,
    number: u64,
    bytes: Vec<u8>,
}

impl PartialEq for InFlight {
    fn eq(&self, other: &Self) -> bool {
        (self.due, self.number) == (other.due, other.number)
    }
}

impl Eq for InFlight {}

impl PartialOrd for InFlight {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InFlight {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

#[derive(Default)]
struct Waiting {
    heap: BinaryHeap<InFlight>,
    bytes: usize,
    is_closed: bool,
}

/// One way of a link: a thread takes from it when the time has come.
struct Line {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Line {
    /// A line that hands what arrives to `deliver` until that fails or the line is closed; the
    /// end is told by an empty piece.
    fn new(mut deliver: impl FnMut(&[u8]) -> bool + Send + 'static) -> Arc<Self> {
        let line = Arc::new(Line { waiting: Mutex::default(), changed: Condvar::new() });
        let taking = line.clone();
        spawn(move || {
            while let Some(bytes) = taking.take() {
                if !deliver(&bytes) {
                    taking.lock().is_closed = true;
                    taking.changed.notify_all();
                    return;
                }
            }
            deliver(&[]);
        });
        line
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Vec<u8>> {
        let mut waiting = self.lock();
        loop {
            let now = Instant::now();
            match waiting.heap.peek().map(|first| first.due) {
                Some(due) if due <= now => {
                    let taken = waiting.heap.pop()?.bytes;
                    waiting.bytes -= taken.len();
                    self.changed.notify_all();
                    return Some(taken);
                }
                Some(due) => {
                    let waited = self.changed.wait_timeout(waiting, due - now);
                    waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                None if waiting.is_closed => return None,
                None => {
                    let waited = self.changed.wait(waiting);
                    waiting = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// False if there is no room and the caller does not want to wait, or the line is closed.
    fn put(&self, due: Instant, number: u64, bytes: Vec<u8>, waits: bool) -> bool {
        let mut waiting = self.lock();
        while waiting.bytes >= WAITING_BYTES_MAX && waits && !waiting.is_closed {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.is_closed || waiting.bytes >= WAITING_BYTES_MAX {
            return false;
        }
        waiting.bytes += bytes.len();
        waiting.heap.push(InFlight { due, number, bytes });
        self.changed.notify_all();
        true
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }
}

/// The faults of one direction.
struct Fate {
    tally: &'static Tally,
    faults: Faults,
    random: Random,
    start: Instant,
    /// When the link is free again, if its rate is bounded.
    free_at: Instant,
    number: u64,
}

impl Fate {
    fn new(faults: Faults, way: u64) -> Self {
        let random = Random((faults.seed ^ (way << 32)).max(1));
        let start = Instant::now();
        // Ways towards the target have even numbers.
        let tally = if way.is_multiple_of(2) { &UP } else { &DOWN };
        Fate { tally, faults, random, start, free_at: start, number: 0 }
    }

    fn is_down(&self) -> bool {
        self.faults.flap.is_some_and(|(period, down)| {
            let at = self.start.elapsed().as_millis() % period.as_millis().max(1);
            at >= (period.saturating_sub(down)).as_millis()
        })
    }

    /// When it arrives.
    fn due(&mut self, bytes: usize) -> Instant {
        self.number += 1;
        let now = Instant::now();
        if let Some(bytes_per_s) = self.faults.bytes_per_s {
            let takes = Duration::from_secs_f64(bytes as f64 / bytes_per_s);
            self.free_at = self.free_at.max(now) + takes;
        }
        let jitter_us = self.faults.jitter.as_micros() as u64;
        let jitter = self.random.next().checked_rem(jitter_us).unwrap_or(0);
        self.free_at.max(now) + self.faults.delay + Duration::from_micros(jitter)
    }

    fn damage(&mut self, bytes: &mut [u8]) {
        if !bytes.is_empty() && self.random.happens(self.faults.corrupt) {
            count(&self.tally.corrupted);
            let bit = self.random.next() as usize % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    fn datagram(&mut self, line: &Line, bytes: &[u8]) {
        count(&self.tally.came);
        if self.is_down() || self.random.happens(self.faults.loss) {
            return count(&self.tally.lost);
        }
        let is_twice = self.random.happens(self.faults.duplicate);
        if is_twice {
            count(&self.tally.duplicated);
        }
        for _ in 0..=u32::from(is_twice) {
            let mut bytes = bytes.to_vec();
            self.damage(&mut bytes);
            let mut due = self.due(bytes.len());
            if self.random.happens(self.faults.reorder) {
                count(&self.tally.reordered);
                due += REORDER_DELAY;
            }
            if !line.put(due, self.number, bytes, false) {
                count(&self.tally.lost);
            }
        }
    }
}

/// Carries datagrams for ever.
pub(crate) fn relay_udp(
    socket: &UdpSocket,
    target: SocketAddr,
    faults: Faults,
) -> Result<(), Box<dyn Error>> {
    let mut clients: HashMap<SocketAddr, (Arc<Line>, Fate)> = HashMap::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let (length, client) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            // The network's answer to what was sent before.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
            Err(error) => return Err(error.into()),
        };
        if !clients.contains_key(&client) {
            if clients.len() >= CLIENTS_MAX {
                continue;
            }
            let line = new_udp_client(socket.try_clone()?, client, target, faults)?;
            clients.insert(client, (line, Fate::new(faults, 2 * clients.len() as u64)));
        }
        if let Some((line, fate)) = clients.get_mut(&client) {
            fate.datagram(line, &buffer[..length]);
        }
    }
}

/// The line to the target, and a thread for what comes back.
fn new_udp_client(
    socket: UdpSocket,
    client: SocketAddr,
    target: SocketAddr,
    faults: Faults,
) -> Result<Arc<Line>, Box<dyn Error>> {
    let any = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let upstream = UdpSocket::bind(any)?;
    upstream.connect(target)?;
    let back = upstream.try_clone()?;
    let to_client = Line::new(move |bytes| {
        let _ = socket.send_to(bytes, client);
        true
    });
    spawn(move || {
        let mut fate = Fate::new(faults, 2 * u64::from(client.port()) + 1);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match back.recv(&mut buffer) {
                Ok(length) => fate.datagram(&to_client, &buffer[..length]),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(_) => return,
            }
        }
    });
    Ok(Line::new(move |bytes| {
        let _ = upstream.send(bytes);
        true
    }))
}

/// Carries connections for ever.
pub(crate) fn relay_tcp(
    listener: &TcpListener,
    target: SocketAddr,
    faults: Faults,
) -> Result<(), Box<dyn Error>> {
    for (client, number) in listener.incoming().zip(0u64..) {
        let client = client?;
        let Ok(server) = TcpStream::connect(target) else { continue };
        for (from, to, way) in [(&client, &server, 0), (&server, &client, 1)] {
            let _ = (from.set_nodelay(true), to.set_nodelay(true));
            let (from, to) = (from.try_clone()?, to.try_clone()?);
            spawn(move || carry(from, to, Fate::new(faults, 2 * number + way)));
        }
    }
    Ok(())
}

/// Carries the bytes of one direction of a connection to their end.
fn carry(mut from: TcpStream, mut to: TcpStream, mut fate: Fate) {
    let line = Line::new(move |bytes| match bytes {
        [] => to.shutdown(Shutdown::Write).is_ok(),
        bytes => to.write_all(bytes).is_ok(),
    });
    let mut buffer = vec![0; READ_BYTES];
    let mut last = Instant::now();
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        while fate.is_down() {
            std::thread::sleep(Duration::from_millis(1));
        }
        count(&fate.tally.came);
        let mut bytes = buffer[..length].to_vec();
        fate.damage(&mut bytes);
        // A stream keeps its order, whatever the jitter.
        last = last.max(fate.due(length));
        if !line.put(last, fate.number, bytes, true) {
            break;
        }
    }
    line.close();
    let _ = from.shutdown(Shutdown::Read);
}
