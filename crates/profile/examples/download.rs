//! Downloads one file again and again, by turns as the command line does (a `Client`, disk and
//! engine on this thread) and as programs with several threads do (a `Session`, whose engine and
//! local disk have threads of their own). Each pair of runs says what both took, and the last line
//! the medians of the pairs' ratios; `bench/sessions` prepares what they read.
//!
//! ```text
//! download LINK TARGET [PAIRS, or 10]
//! ```

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use byname_client::{DownloadOptions, FileReport, NoProgress};
use byname_profile::{Link, OpenOptions, Profile};
use rustix::time::{ClockId, clock_gettime};

/// Time that one download took.
#[derive(Clone, Copy)]
struct Cost {
    wall: Duration,
    /// Of this process, all threads.
    cpu: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: download LINK TARGET [PAIRS]";
    let mut args = std::env::args().skip(1);
    let link = Link::from_user(&args.next().ok_or(usage)?)?;
    let target = args.next().ok_or(usage)?;
    let pairs: usize = args.next().map(|text| text.parse()).transpose()?.unwrap_or(10);
    let (profile, target) = (Profile::load()?, Path::new(&target));
    // Neither begins with what the other has left: the first pair does not count.
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    for pair in 0..=pairs {
        let is_client_first = pair % 2 == 0;
        let early = is_client_first.then(|| by_client(&profile, &link, target)).transpose()?;
        let session = by_session(&profile, &link, target)?;
        let client = early.map_or_else(|| by_client(&profile, &link, target), Ok)?;
        if pair == 0 {
            continue;
        }
        wall.push(session.wall.as_secs_f64() / client.wall.as_secs_f64());
        cpu.push(session.cpu.as_secs_f64() / client.cpu.as_secs_f64());
        println!(
            "client {:.3} s, {:.3} CPU-s; session {:.3} s, {:.3} CPU-s",
            client.wall.as_secs_f64(),
            client.cpu.as_secs_f64(),
            session.wall.as_secs_f64(),
            session.cpu.as_secs_f64(),
        );
    }
    println!("session to client: wall {}, CPU {}", spread(wall), spread(cpu));
    Ok(())
}

fn by_client(profile: &Profile, link: &Link, target: &Path) -> Result<Cost, Box<dyn Error>> {
    let options = OpenOptions::default();
    let endpoints = profile.endpoints(link, &options)?;
    let (mut client, _) = profile.connect(&endpoints, profile.client_config(link, &options)?)?;
    measure(target, || {
        client.download(&link.name, target, DownloadOptions::default(), &mut NoProgress)
    })
}

fn by_session(profile: &Profile, link: &Link, target: &Path) -> Result<Cost, Box<dyn Error>> {
    let session = profile.open(link)?;
    measure(target, || session.download(&link.name, target, DownloadOptions::default()))
}

fn measure<E: Error + 'static>(
    target: &Path,
    download: impl FnOnce() -> Result<FileReport, E>,
) -> Result<Cost, Box<dyn Error>> {
    let (start, before) = (Instant::now(), cpu());
    let report = download()?;
    let cost = Cost { wall: start.elapsed(), cpu: cpu() - before };
    if report.fetched_bytes < report.size || std::fs::metadata(target)?.len() != report.size {
        return Err("the file was not fetched whole".into());
    }
    std::fs::remove_file(target)?;
    Ok(cost)
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let whole = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    whole + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Median, least and greatest.
fn spread(mut ratios: Vec<f64>) -> String {
    ratios.sort_by(f64::total_cmp);
    match (ratios.first(), ratios.get(ratios.len() / 2), ratios.last()) {
        (Some(least), Some(median), Some(greatest)) => {
            format!("{median:.2} ({least:.2} to {greatest:.2})")
        }
        _ => "not measured".to_owned(),
    }
}
