//! An attacker that asks for the descriptions of random names below a prefix.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use byname_face::frame_len;
use byname_packet::lp::LpPacket;
use byname_packet::{InterestBuilder, Name, types};

type Failure = Box<dyn Error + Send + Sync>;

const TICK: Duration = Duration::from_micros(200);
/// Octets that wait for a connection before nothing more is made for it.
const QUEUE_BYTES_MAX: usize = 64 << 10;
/// Interests made for one connection at a time.
const BURST_MAX: u64 = 64;
const RANDOM_OCTETS: &[u8; 16] = b"RANDOM..RANDOM..";
const NONCE: [u8; 4] = *b"NNNN";

/// An Interest whose random part and nonce are patched for each that is sent.
struct Template {
    wire: Vec<u8>,
    random_at: usize,
    nonce_at: usize,
    state: u64,
}

impl Template {
    fn new(prefix: Name) -> Result<Self, Failure> {
        let name = prefix.with_generic(RANDOM_OCTETS).with_keyword(b"metadata");
        let mut wire = Vec::new();
        InterestBuilder::new(name.view())
            .can_be_prefix(true)
            .must_be_fresh(true)
            .nonce(NONCE)
            .encode(&mut wire);
        let find = |octets: &[u8]| wire.windows(octets.len()).position(|it| it == octets);
        let random_at = find(RANDOM_OCTETS).ok_or("no random part")?;
        let nonce_at = find(&NONCE).ok_or("no nonce")?;
        let state = u64::from(std::process::id()) << 32 | 1;
        Ok(Self { wire, random_at, nonce_at, state })
    }

    /// The next Interest.
    fn next(&mut self) -> &[u8] {
        // splitmix64
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        for (at, octet) in self.wire[self.random_at..][..16].iter_mut().enumerate() {
            *octet = b"0123456789abcdef"[(mixed >> (4 * at)) as usize & 15];
        }
        self.wire[self.nonce_at..][..4].copy_from_slice(&(mixed as u32).to_be_bytes());
        &self.wire
    }
}

/// Numbers of one run.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) sent: u64,
    pub(crate) data: u64,
    pub(crate) nacks: u64,
    /// Interests that were due but for which there was no room.
    pub(crate) held_back: u64,
}

/// One connection, with what it still has to send and what it has received of a frame.
struct Peer {
    stream: TcpStream,
    out: Vec<u8>,
    received: Vec<u8>,
}

impl Peer {
    fn new(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, out: Vec::new(), received: Vec::new() })
    }

    fn send(&mut self) -> std::io::Result<()> {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(count) => drop(self.out.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes what has come and counts it.
    fn receive(&mut self, buffer: &mut [u8], totals: &mut Totals) -> Result<(), Failure> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return Err("the peer closed a connection".into()),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        let mut at = 0;
        while let Some(len) =
            frame_len(&self.received[at..])?.filter(|len| at + len <= self.received.len())
        {
            count(&self.received[at..at + len], totals)?;
            at += len;
        }
        self.received.drain(..at);
        Ok(())
    }
}

fn count(frame: &[u8], totals: &mut Totals) -> Result<(), Failure> {
    let link = LpPacket::decode(frame)?;
    let is_data =
        link.fragment.and_then(<[u8]>::first).is_some_and(|it| u32::from(*it) == types::DATA);
    match link.header.nack {
        Some(_) => totals.nacks += 1,
        None => totals.data += u64::from(is_data),
    }
    Ok(())
}

/// Sends `rate` Interests a second, over so many connections together, until `ended` is set.
pub(crate) fn flood(
    address: &str,
    prefix: &str,
    (rate, connections): (u64, usize),
    ended: &AtomicBool,
) -> Result<Totals, Failure> {
    let mut template = Template::new(prefix.parse()?)?;
    let peers = (0..connections).map(|_| Peer::new(address)).collect::<Result<Vec<_>, _>>();
    let mut peers = peers?;
    let (mut totals, mut buffer) = (Totals::default(), vec![0; 256 << 10]);
    let (start, mut at) = (Instant::now(), 0);
    while !ended.load(Ordering::Relaxed) {
        let due = (start.elapsed().as_nanos() * u128::from(rate) / 1_000_000_000) as u64;
        let mut left = due.saturating_sub(totals.sent + totals.held_back);
        while left > 0 {
            let burst = left.min(BURST_MAX);
            left -= burst;
            at = (at + 1) % peers.len();
            if peers[at].out.len() >= QUEUE_BYTES_MAX {
                totals.held_back += burst;
                continue;
            }
            (0..burst).for_each(|_| peers[at].out.extend_from_slice(template.next()));
            totals.sent += burst;
        }
        for peer in &mut peers {
            peer.send()?;
            peer.receive(&mut buffer, &mut totals)?;
        }
        std::thread::sleep(TICK);
    }
    Ok(totals)
}
