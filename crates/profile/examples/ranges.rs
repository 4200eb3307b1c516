//! Reads many small random ranges of one file in one call and says what that took: time, and bytes
//! on the wire for each byte asked. Every round has ranges of its own. It opens the file anew, so
//! nothing is left of the round before; with `--keep-open` one open file serves all rounds, and
//! tree nodes that were verified for one of them are there in the next.
//!
//! ```text
//! ranges LINK [--connect URI] [--count 1000] [--bytes 4096] [--align 4096] [--rounds 5] [--seed 1]
//!             [--keep-open] [--congestion bdp] [--insecure] [--json]
//! ```

use std::error::Error;
use std::time::Instant;

use byname_client::{ReadCounters, RemoteFile, SessionOptions};
use byname_packet::Name;
use byname_profile::{Link, OpenOptions, Profile};
use byname_security::trust::UnknownKeys;

struct Args {
    link: Link,
    open: OpenOptions,
    count: u64,
    bytes: u64,
    align: u64,
    rounds: u64,
    seed: u64,
    keeps_open: bool,
    is_json: bool,
}

struct Round {
    open_us: u128,
    read_us: u128,
    counters: ReadCounters,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = parse(std::env::args().skip(1))?;
    let profile = Profile::load()?;
    let options = SessionOptions { prefetch_bytes_max: 0, ..SessionOptions::default() };
    let session = profile.open_with(&args.link, &args.open, options)?;
    let mut kept = None;
    for round in 0..args.rounds.max(1) {
        let began = Instant::now();
        let file = match kept.take() {
            Some(file) => file,
            None => session.open(&args.link.name)?,
        };
        let open_us = began.elapsed().as_micros();
        report(&args, round, &Round { open_us, ..read(&file, &args, round)? });
        kept = args.keeps_open.then_some(file);
    }
    Ok(())
}

fn read(file: &RemoteFile, args: &Args, round: u64) -> Result<Round, Box<dyn Error>> {
    let size = file.size().ok_or("the publisher does not say how large the file is")?;
    let places = size.saturating_sub(args.bytes) / args.align + 1;
    // Mixed twice, or a round would have the ranges of the one before but for the first.
    let mut state = next_random(&mut (args.seed ^ round << 32));
    let length = usize::try_from(args.bytes)?;
    let mut buffers = vec![0; length * usize::try_from(args.count)?];
    let mut ranges: Vec<(u64, &mut [u8])> = Vec::new();
    for buffer in buffers.chunks_mut(length) {
        ranges.push((next_random(&mut state) % places * args.align, buffer));
    }
    let before = file.counters();
    let began = Instant::now();
    file.read_ranges(&mut ranges)?;
    let read_us = began.elapsed().as_micros();
    let mut counters = file.counters();
    counters.asked_bytes -= before.asked_bytes;
    counters.received_bytes -= before.received_bytes;
    counters.requests -= before.requests;
    Ok(Round { open_us: 0, read_us, counters })
}

/// SplitMix64: the same ranges in every run, and as random as this needs.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

fn report(args: &Args, index: u64, round: &Round) {
    let Round { open_us, read_us, counters } = round;
    let ratio = counters.received_bytes as f64 / counters.asked_bytes.max(1) as f64;
    let (asked, received) = (counters.asked_bytes, counters.received_bytes);
    if args.is_json {
        println!(
            "{{\"round\":{index},\"ranges\":{},\"range_bytes\":{},\"align\":{},\
             \"open_us\":{open_us},\"read_us\":{read_us},\"asked_bytes\":{asked},\
             \"received_bytes\":{received},\"requests\":{},\"ratio\":{ratio:.4}}}",
            args.count, args.bytes, args.align, counters.requests
        );
        return;
    }
    println!(
        "{} ranges of {} bytes: {:.3} ms after {:.3} ms to open; {received} bytes in {} packets, \
         {ratio:.2} for each byte asked",
        args.count,
        args.bytes,
        *read_us as f64 / 1e3,
        *open_us as f64 / 1e3,
        counters.requests
    );
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, Box<dyn Error>> {
    let mut args = Args {
        link: Link::of_name(Name::default()),
        open: OpenOptions::default(),
        count: 1000,
        bytes: 4096,
        align: 4096,
        rounds: 5,
        seed: 1,
        keeps_open: false,
        is_json: false,
    };
    let mut has_target = false;
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} wants a value"));
        match word.as_str() {
            "--connect" => args.open.connect = Some(value()?.parse()?),
            "--count" => args.count = value()?.parse()?,
            "--bytes" => args.bytes = value()?.parse::<u64>()?.max(1),
            "--align" => args.align = value()?.parse::<u64>()?.max(1),
            "--rounds" => args.rounds = value()?.parse()?,
            "--seed" => args.seed = value()?.parse()?,
            "--keep-open" => args.keeps_open = true,
            "--congestion" => args.open.congestion = value()?.parse()?,
            "--insecure" => args.open.unknown_keys = UnknownKeys::Insecure,
            "--json" => args.is_json = true,
            target => {
                args.link = Link::from_user(target)?;
                has_target = true;
            }
        }
    }
    if has_target { Ok(args) } else { Err("a link or a name is wanted".into()) }
}
