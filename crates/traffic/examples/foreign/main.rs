//! A consumer and a producer that move packets as NFD's client libraries do: one system call for
//! every packet that is sent, and reads of one packet's room.
//!
//! usage: foreign consume URI PREFIX [bytes=8000] [window=16] [seconds=1] [work=0]
//!        foreign produce URI PREFIX [bytes=8000] [work=0]
//! `produce` registers PREFIX, prints that it is ready, and answers until the connection ends;
//! `consume` keeps a window of Interests waiting, compares every answer, and prints one JSON
//! object. `work` is how many microseconds of processor time each packet costs beside sending and
//! receiving it: ndn-cxx decodes, hashes and schedules timers for each. The loops themselves are
//! those of Asio: a socket is read until it is empty, and only then waited for.

mod socket;

use std::collections::HashMap;
use std::error::Error;

use byname_io::Clock;
use byname_packet::Name;
use byname_traffic::{
    Consumer, ConsumerConfig, ConsumerReport, Load, NumberKind, Numbers, Pattern, Producer,
    ProducerConfig, Sizes,
};
use rustix::time::{ClockId, clock_gettime};
use socket::Socket;

/// Numbers from here on have eight octets each.
const FIRST_NUMBER: u64 = 1 << 32;
const LIFETIME_MS: u64 = 1000;

/// `NAME=VALUE` arguments.
struct Settings {
    bytes: usize,
    window: usize,
    seconds: f64,
    work_us: u64,
}

fn settings(arguments: &[String]) -> Result<Settings, Box<dyn Error>> {
    let mut values: HashMap<&str, &str> = HashMap::new();
    for argument in arguments {
        let (name, value) = argument.split_once('=').ok_or("arguments are NAME=VALUE")?;
        values.insert(name, value);
    }
    let take = |name: &str, default| values.get(name).copied().unwrap_or(default);
    Ok(Settings {
        bytes: take("bytes", "8000").parse()?,
        window: take("window", "16").parse()?,
        seconds: take("seconds", "1").parse()?,
        work_us: take("work", "0").parse()?,
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [role, uri, prefix, rest @ ..] = arguments.as_slice() else {
        return Err("usage: foreign consume|produce URI PREFIX [NAME=VALUE ...]".into());
    };
    let (prefix, settings): (Name, _) = (prefix.parse()?, settings(rest)?);
    match role.as_str() {
        "consume" => consume(Socket::connect(uri, None)?, prefix, &settings),
        "produce" => {
            let socket = Socket::connect(uri, Some(prefix.clone()))?;
            println!("{{\"kind\": \"ready\"}}");
            produce(socket, prefix, &settings)
        }
        _ => Err("the role is consume or produce".into()),
    }
}

/// Keeps a window of Interests waiting: each answer is followed by the next Interest.
fn consume(mut socket: Socket, prefix: Name, settings: &Settings) -> Result<(), Box<dyn Error>> {
    let clock = Clock::new();
    // Names that no earlier run has asked for.
    let first = FIRST_NUMBER + (clock.unix_ns() >> 10);
    let pattern = Pattern {
        numbers: Numbers::sequential(first),
        number_kind: NumberKind::Segment,
        lifetime_ms: LIFETIME_MS,
        ..Pattern::new(prefix)
    };
    let config = ConsumerConfig {
        patterns: vec![pattern],
        load: Load::Window(settings.window),
        duration_ns: Some((settings.seconds * 1e9) as u64),
        count: None,
        sizes: Some(Sizes::fixed(settings.bytes)?),
        checks_content: true,
    };
    let mut consumer = Consumer::new(config, clock.unix_ns())?;
    ask(&mut socket, &mut consumer, &clock)?;
    while !consumer.is_done(clock.now_ns()) {
        let is_open = socket.receive(LIFETIME_MS, |socket, header, packet| {
            work(settings.work_us);
            consumer.handle_packet(header, packet, clock.now_ns());
            ask(socket, &mut consumer, &clock)
        })?;
        if !is_open {
            return Err("the forwarder closed the connection".into());
        }
        consumer.handle_timeout(clock.now_ns());
        ask(&mut socket, &mut consumer, &clock)?;
    }
    print(&consumer.report(clock.now_ns()));
    Ok(())
}

/// Sends what may be asked now, one Interest a call.
fn ask(socket: &mut Socket, consumer: &mut Consumer, clock: &Clock) -> Result<(), Box<dyn Error>> {
    while let Some(frame) = consumer.poll_interest(clock.now_ns()) {
        socket.send(frame)?;
    }
    Ok(())
}

fn produce(mut socket: Socket, prefix: Name, settings: &Settings) -> Result<(), Box<dyn Error>> {
    let sizes = Sizes::fixed(settings.bytes)?;
    let config = ProducerConfig { prefixes: vec![prefix], ..ProducerConfig::new(sizes) };
    let mut producer = Producer::new(config);
    let mut frame = Vec::new();
    while socket.receive(LIFETIME_MS, |socket, header, packet| {
        work(settings.work_us);
        producer.handle_packet(header, packet);
        while producer.poll_reply(&mut |reply| {
            frame.resize(reply.frame_len(), 0);
            reply.write(&mut frame);
            true
        }) {
            socket.send(&frame)?;
        }
        Ok(())
    })? {}
    Ok(())
}

/// Keeps the processor busy, as decoding and checking do.
fn work(us: u64) {
    if us > 0 {
        let until_ns = cpu_ns() + us * 1000;
        while cpu_ns() < until_ns {}
    }
}

/// Processor time of this thread, which is the only one.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn print(report: &ConsumerReport) {
    let total = report.total();
    let nacks: u64 = report.nacks.values().sum();
    let cpu_us = cpu_ns() as f64 / 1e3 / total.data.max(1) as f64;
    let per_s = total.data as f64 * 1e9 / report.elapsed_ns.max(1) as f64;
    let [p50, p90, p99, p99_9] =
        [50.0, 90.0, 99.0, 99.9].map(|it| report.latency.percentile_ns(it) as f64 / 1e3);
    println!(
        "{{\"interests\": {}, \"data\": {}, \"mismatches\": {}, \"timeouts\": {}, \
         \"nacks\": {nacks}, \"content_bytes\": {}, \"seconds\": {}, \"data_per_s\": {per_s}, \
         \"cpu_us_per_exchange\": {cpu_us}, \"latency_us\": {{\"p50\": {p50}, \"p90\": {p90}, \
         \"p99\": {p99}, \"p99_9\": {p99_9}}}}}",
        total.interests,
        total.data,
        total.mismatches,
        total.timeouts,
        report.content_bytes,
        report.elapsed_ns as f64 / 1e9,
    );
}
