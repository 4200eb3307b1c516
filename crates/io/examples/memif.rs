//! Frames over memif by hand: against foreign software, and to measure.
//!
//! ```text
//! memif echo  listen|connect URI                            send every frame back
//! memif ping  listen|connect URI [count=N] [bytes=B] [window=W]   expect every frame back
//! memif sink  listen|connect URI                            count what comes
//! memif flood listen|connect URI [count=N] [bytes=B]        send as fast as the peer takes it
//! memif bench [count=N] [bytes=B] [window=W]                client and server in one process
//! ```
//! Any URI that byname listens on or connects to will do, so that transports can be compared.
//! Frames are NDN Data in size and outer element only. Results are one line of JSON.

use std::env;
use std::error::Error;
use std::process::exit;
use std::thread;
use std::time::{Duration, Instant};

use byname_io::{
    Connection, Endpoint, FrameError, Interest, IoError, Listener, Poller, RecvStatus, Token,
};

const PATIENCE: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The type of a Data packet.
const DATA: u8 = 6;

/// A frame that does not come back for so long is lost.
const LOSS: Duration = Duration::from_secs(10);

struct Options {
    count: u64,
    bytes: usize,
    window: u64,
}

/// A connection and what is needed to wait for it.
struct Peer {
    connection: Connection,
    poller: Poller,
    _listener: Option<Listener>,
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["bench", ref rest @ ..] => options(rest).and_then(|options| bench(&options)),
        [mode, side, uri, ref rest @ ..] => options(rest).and_then(|options| {
            let mut peer = Peer::new(side, uri)?;
            eprintln!("connected");
            match mode {
                "echo" => echo(&mut peer),
                "ping" => ping(&mut peer, &options),
                "sink" => sink(&mut peer, u64::MAX),
                "flood" => flood(&mut peer, &options),
                _ => Err(format!("no mode `{mode}`").into()),
            }
        }),
        _ => Err("usage: memif echo|ping|sink|flood listen|connect URI, or memif bench".into()),
    };
    match result {
        Ok(line) => println!("{line}"),
        Err(text) => {
            eprintln!("memif: {text}");
            exit(1);
        }
    }
}

fn options(words: &[&str]) -> Outcome<Options> {
    let mut options = Options { count: 1_000_000, bytes: 8300, window: 64 };
    for word in words {
        let (key, value) = word.split_once('=').ok_or(format!("`{word}` is not KEY=VALUE"))?;
        let number: u64 = value.parse()?;
        match key {
            "count" => options.count = number,
            "bytes" => options.bytes = usize::try_from(number)?.clamp(12, 8800),
            "window" => options.window = number.max(1),
            _ => return Err(format!("no option `{key}`").into()),
        }
    }
    Ok(options)
}

/// One element of TLV.
fn framer(bytes: &[u8]) -> Result<Option<usize>, FrameError> {
    match bytes {
        [DATA, 253, high, low, ..] => Ok(Some(4 + usize::from(u16::from_be_bytes([*high, *low])))),
        [DATA, length @ 0..=252, ..] => Ok(Some(2 + usize::from(*length))),
        [DATA] | [DATA, 253] | [DATA, 253, _] | [] => Ok(None),
        _ => Err(FrameError("no Data")),
    }
}

/// A frame of `bytes` bytes that says which one it is.
fn write_frame(frame: &mut [u8], number: u64) {
    let bytes = frame.len();
    let header = if bytes > 254 { 4 } else { 2 };
    if header == 4 {
        let length = u16::try_from(bytes - 4).unwrap_or(u16::MAX).to_be_bytes();
        frame[..4].copy_from_slice(&[DATA, 253, length[0], length[1]]);
    } else {
        frame[..2].copy_from_slice(&[DATA, (bytes - 2) as u8]);
    }
    frame[header..].fill(number as u8);
    frame[header..header + 8].copy_from_slice(&number.to_be_bytes());
}

fn number_of(frame: &[u8]) -> Option<u64> {
    let header = if *frame.get(1)? == 253 { 4 } else { 2 };
    Some(u64::from_be_bytes(*frame.get(header..)?.first_chunk()?))
}

impl Peer {
    fn new(side: &str, uri: &str) -> Outcome<Self> {
        let endpoint: Endpoint = uri.parse()?;
        match side {
            "connect" => Self::of(Connection::connect(&endpoint, PATIENCE)?, None),
            "listen" => {
                let listener = Listener::bind(&endpoint)?;
                let connection = accept(&listener)?;
                Self::of(connection, Some(listener))
            }
            _ => Err(format!("`{side}` is neither listen nor connect").into()),
        }
    }

    fn of(connection: Connection, listener: Option<Listener>) -> Outcome<Self> {
        let poller = Poller::new()?;
        poller.add(&connection, Token(0), Interest::READ)?;
        Ok(Peer { connection, poller, _listener: listener })
    }

    /// Waits until there may be something to do; false if nothing happened.
    fn wait(&mut self, timeout: Duration) -> Outcome<bool> {
        let write = self.connection.wants_write();
        let interest = Interest { read: true, write };
        self.poller.modify(&self.connection, Token(0), interest)?;
        let mut events = Vec::new();
        self.poller.wait(&mut events, Some(timeout))?;
        if events.iter().any(|event| event.writable) {
            self.connection.flush()?;
        }
        Ok(!events.is_empty())
    }

    fn receive(&mut self, on_frame: &mut dyn FnMut(&[u8])) -> Result<RecvStatus, IoError> {
        self.connection.recv_burst(framer, on_frame)
    }
}

fn accept(listener: &Listener) -> Outcome<Connection> {
    let mut poller = Poller::new()?;
    poller.add(listener, Token(0), Interest::READ)?;
    let mut events = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        poller.wait(&mut events, Some(Duration::from_secs(1)))?;
        if let Some(connection) = listener.accept()? {
            return Ok(connection);
        }
    }
    Err("nobody came".into())
}

fn echo(peer: &mut Peer) -> Outcome<String> {
    let (mut frames, mut dropped) = (0u64, 0u64);
    let mut burst: Vec<u8> = Vec::new();
    let mut lengths: Vec<usize> = Vec::new();
    loop {
        peer.wait(PATIENCE)?;
        let status = peer.receive(&mut |frame| {
            burst.extend_from_slice(frame);
            lengths.push(frame.len());
        });
        let mut at = 0;
        for length in lengths.drain(..) {
            dropped += u64::from(peer.connection.queue(&[&burst[at..at + length]]).is_err());
            at += length;
            frames += 1;
        }
        burst.clear();
        match status {
            Ok(status) if status.closed => break,
            Ok(_) => peer.connection.flush()?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(format!(r#"{{"frames":{frames},"dropped":{dropped}}}"#))
}

fn ping(peer: &mut Peer, options: &Options) -> Outcome<String> {
    let mut expected = vec![0; options.bytes];
    let (mut sent, mut received, mut wrong, mut malformed) = (0u64, 0u64, 0u64, 0u64);
    let start = Instant::now();
    let mut progress = Instant::now();
    while received < options.count {
        while sent < options.count && sent - received < options.window {
            write_frame(&mut expected, sent);
            peer.connection.queue(&[&expected])?;
            sent += 1;
        }
        peer.connection.flush()?;
        let is_awake = peer.wait(LOSS)?;
        let before = received;
        let status = peer.receive(&mut |frame| {
            write_frame(&mut expected, received);
            wrong += u64::from(frame != expected);
            received += 1;
        })?;
        malformed += status.dropped as u64;
        if received > before {
            progress = Instant::now();
        }
        if status.closed || (!is_awake && progress.elapsed() > LOSS) {
            break;
        }
    }
    let ns = start.elapsed().as_nanos() as u64 / received.max(1);
    let lost = options.count - received;
    Ok(format!(r#"{{"sent":{sent},"received":{received},"lost":{lost},"wrong":{wrong},"#,)
        + &format!(r#""malformed":{malformed},"ns_per_exchange":{ns}}}"#))
}

fn sink(peer: &mut Peer, count: u64) -> Outcome<String> {
    let (mut frames, mut bytes, mut missing, mut next) = (0u64, 0u64, 0u64, 0u64);
    let mut start = None;
    while frames < count {
        peer.wait(PATIENCE)?;
        let status = peer.receive(&mut |frame| {
            frames += 1;
            bytes += frame.len() as u64;
            if let Some(number) = number_of(frame) {
                missing += number.saturating_sub(next);
                next = number + 1;
            }
        })?;
        start.get_or_insert_with(Instant::now);
        if status.closed {
            break;
        }
    }
    let ns = start.map_or(0, |start| start.elapsed().as_nanos() as u64) / frames.max(1);
    let line = format!(r#"{{"frames":{frames},"bytes":{bytes},"missing":{missing},"#);
    Ok(line + &format!(r#""ns_per_frame":{ns}}}"#))
}

fn flood(peer: &mut Peer, options: &Options) -> Outcome<String> {
    let mut frame = vec![0; options.bytes];
    let start = Instant::now();
    let mut sent = 0;
    while sent < options.count {
        let burst = options.window.min(options.count - sent);
        for number in sent..sent + burst {
            write_frame(&mut frame, number);
            peer.connection.queue(&[&frame])?;
        }
        sent += burst;
        peer.connection.flush()?;
        while peer.connection.wants_write() {
            peer.wait(PATIENCE)?;
            let status = peer.receive(&mut |_| ())?;
            if status.closed {
                return Err(format!("the peer left after {sent} frames").into());
            }
        }
    }
    let ns = start.elapsed().as_nanos() as u64 / sent.max(1);
    let dropped = peer.connection.send_dropped();
    Ok(format!(r#"{{"sent":{sent},"dropped":{dropped},"ns_per_frame":{ns}}}"#))
}

/// A client and a server that are connected.
fn both_ends(uri: &str) -> Outcome<(Peer, Peer)> {
    let endpoint: Endpoint = uri.parse()?;
    let listener = Listener::bind(&endpoint)?;
    let connecting = thread::spawn(move || Connection::connect(&endpoint, PATIENCE));
    let server = Peer::of(accept(&listener)?, None)?;
    let client = connecting.join().map_err(|_| "a thread failed")??;
    Ok((Peer::of(client, None)?, server))
}

/// Bursts from one end to the other within one thread: what frames cost without anybody waiting.
fn alternate(from: &mut Peer, to: &mut Peer, options: &Options) -> Outcome<u64> {
    let mut frame = vec![0; options.bytes];
    write_frame(&mut frame, 1);
    let cpu = cpu_time();
    let mut received = 0;
    while received < options.count {
        for _ in 0..options.window {
            from.connection.queue(&[&frame])?;
        }
        from.connection.flush()?;
        to.receive(&mut |_| received += 1)?;
    }
    Ok((cpu_time() - cpu).as_nanos() as u64 / received)
}

/// One way in each direction, within one thread and between two, then echo, with wall time and the
/// CPU time of both threads together.
fn bench(options: &Options) -> Outcome<String> {
    let directory = env::temp_dir().join(format!("byname-memif-{}", std::process::id()));
    let uri = format!("memif://{}/socket", directory.display());
    let mut lines = Vec::new();
    let (mut client, mut server) = both_ends(&uri)?;
    let to_server = alternate(&mut client, &mut server, options)?;
    let to_client = alternate(&mut server, &mut client, options)?;
    lines.push(format!(
        r#"{{"case":"one thread","cpu_ns_to_server":{to_server},"cpu_ns_to_client":{to_client}}}"#
    ));
    for case in ["to server", "to client", "echo"] {
        let (client, server) = both_ends(&uri)?;
        let (mut one, mut other) =
            if case == "to client" { (server, client) } else { (client, server) };
        let count = options.count;
        let cpu = cpu_time();
        let far = thread::spawn(move || match case {
            "echo" => echo(&mut other),
            _ => sink(&mut other, count),
        });
        let near = if case == "echo" { ping(&mut one, options) } else { flood(&mut one, options) }?;
        drop(one);
        far.join().map_err(|_| "a thread failed")??;
        let cpu_ns = (cpu_time() - cpu).as_nanos() as u64 / count;
        lines.push(format!(r#"{{"case":"{case}","cpu_ns_per_frame":{cpu_ns},"near":{near}}}"#));
    }
    let _ = std::fs::remove_dir(&directory);
    Ok(lines.join("\n"))
}

/// CPU time of this process so far.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
