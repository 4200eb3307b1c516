//! `byname bench transfer`: a file served and read in this process, over a link of choice.
//!
//! The reader is this thread; what the process uses beside it is the server's. The file is hashed
//! before the clock starts, as it is for every reader but a file's first.

use crate::commands::daemon::{self, Publication};
use crate::exit::{Code, Failure, Outcome, chain};
use crate::output;
use byname_client::{Client, ClientConfig, DownloadOptions, NoProgress};
use byname_io::{Connection, Endpoint};
use byname_packet::Name;
use byname_profile::Profile;
use byname_store::{Exposure, FileServer, ServerHandle, StoreError};
use byname_transfer::metadata::ContentRoot;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const GIB: f64 = (1u64 << 30) as f64;
const PATIENCE: Duration = Duration::from_secs(60);

/// Serve a file, read it, check every byte, and say what each side cost.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname bench transfer big.root
  byname bench transfer big.root --link udp --output /dev/shm/copy
  byname bench transfer big.root --link tcp --json")]
pub(crate) struct Args {
    /// The file to serve.
    file: PathBuf,
    /// The link between server and reader.
    #[arg(long, value_enum, default_value_t = Link::InProcess)]
    link: Link,
    /// Write the file there, and leave it; without, verified bytes are dropped.
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Number of readings.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// One JSON object per run.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Link {
    /// Memory of this process.
    InProcess,
    /// A Unix socket pair of this process.
    Pair,
    /// Shared memory, by way of a listening socket.
    Memif,
    /// A Unix socket.
    Unix,
    /// TCP over the loopback interface.
    Tcp,
    /// UDP over the loopback interface.
    Udp,
}

/// Cost of one reading.
#[derive(Debug, Clone, Copy)]
struct Cost {
    bytes: u64,
    wall: Duration,
    reader_cpu: Duration,
    all_cpu: Duration,
    marks: u64,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let file = args.file.canonicalize().map_err(|e| Failure::disk(&args.file, e))?;
    let home = std::env::temp_dir().join(format!("byname-bench-{}", std::process::id()));
    std::fs::create_dir(&home).map_err(|e| Failure::disk(&home, e))?;
    let outcome = measure(args, &file, &home);
    // Keys and state of this run only; what cannot be removed is in the directory for that.
    let _ = std::fs::remove_dir_all(&home);
    outcome
}

fn measure(args: &Args, file: &Path, home: &Path) -> Outcome {
    let profile = Profile::below(home)?;
    let directory = file.parent().unwrap_or(Path::new("/")).to_owned();
    let prefix = Name::new().with_generic(b"bench");
    let name = prefix.with_generic(file.file_name().map(OsStr::as_bytes).unwrap_or_default());
    let publication = Publication { name: prefix.clone(), directory };
    let exposure = Exposure { hidden: true, private: true };
    let (server, identity) = daemon::file_server(&profile, &publication, exposure)?;
    let mut config = ClientConfig::default();
    config.trust.add_anchor(prefix, identity.certificate.key_id());
    let (served, mut client) = connect(args.link, server, config, home)?;
    warm_up(&mut client, &name)?;
    for _ in 0..args.runs {
        let cost = read(args, &served, &mut client, &name)?;
        show(args, &cost);
    }
    drop(client);
    served.handle.stop();
    let ended = served.thread.join();
    ended.map_or(Ok(()), |ended| Ok(ended?))
}

/// A server that runs.
struct Served {
    handle: ServerHandle,
    thread: JoinHandle<Result<(), StoreError>>,
}

fn connect(
    link: Link,
    mut server: FileServer,
    config: ClientConfig,
    home: &Path,
) -> Outcome<(Served, Client)> {
    let io = |error: byname_io::IoError| Failure::new(Code::Other, chain(&error));
    let at = match link {
        Link::InProcess | Link::Pair => None,
        Link::Memif => Some(Endpoint::Memif { path: home.join("memif.sock"), id: 0, role: None }),
        Link::Unix => Some(Endpoint::Unix(home.join("unix.sock"))),
        Link::Tcp => Some(Endpoint::Tcp { host: "127.0.0.1".into(), port: 0 }),
        Link::Udp => Some(Endpoint::Udp { host: "127.0.0.1".into(), port: 0 }),
    };
    let ready = match link {
        Link::InProcess => Some(server.connect_local()?),
        Link::Pair => {
            let (ours, theirs) = Connection::pair().map_err(io)?;
            server.add_client(ours)?;
            Some(theirs)
        }
        _ => None,
    };
    let at = at.map(|at| server.listen(&at)).transpose()?;
    let handle = server.handle();
    let thread = std::thread::spawn(move || server.run_alone());
    let served = Served { handle, thread };
    let client = match (ready, at) {
        (Some(connection), _) => Client::with_connection(connection, config),
        (None, at) => Client::connect(&at.into_iter().collect::<Vec<_>>(), config),
    };
    Ok((served, client?))
}

/// Reads the file once, so that its root is known and it lies in memory.
fn warm_up(client: &mut Client, name: &Name) -> Outcome {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = client.lookup(name)?;
        if matches!(found.metadata.root, ContentRoot::Known(_)) {
            break;
        }
        if Instant::now() > deadline {
            return Err(Failure::new(Code::Other, "the file is not hashed in time"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    read_all(client, name).map(drop)
}

fn read_all(client: &mut Client, name: &Name) -> Outcome<u64> {
    let file = client.open(name)?;
    let mut bytes = 0;
    let mut sink = |_: u64, part: &[u8]| {
        bytes += part.len() as u64;
        Ok(())
    };
    Ok(client.read_range_unordered(&file, 0..u64::MAX, &mut sink)?)
}

fn read(args: &Args, served: &Served, client: &mut Client, name: &Name) -> Outcome<Cost> {
    let marks = served.handle.congestion_marks();
    let (all, reader) = (cpu(ClockId::ProcessCPUTime), cpu(ClockId::ThreadCPUTime));
    let start = Instant::now();
    let bytes = match &args.output {
        Some(output) => {
            let options = DownloadOptions::default();
            let report = client.download(name, output, options, &mut NoProgress);
            report?.fetched_bytes
        }
        None => read_all(client, name)?,
    };
    Ok(Cost {
        bytes,
        wall: start.elapsed(),
        reader_cpu: cpu(ClockId::ThreadCPUTime) - reader,
        all_cpu: cpu(ClockId::ProcessCPUTime) - all,
        marks: served.handle.congestion_marks() - marks,
    })
}

fn cpu(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let whole = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    whole + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

fn show(args: &Args, cost: &Cost) {
    let link = clap::ValueEnum::to_possible_value(&args.link);
    let link = link.map(|link| link.get_name().to_owned()).unwrap_or_default();
    let per_gib = |time: Duration| time.as_secs_f64() * GIB / cost.bytes.max(1) as f64;
    let server_cpu = cost.all_cpu.saturating_sub(cost.reader_cpu);
    let gib_per_s = cost.bytes as f64 / GIB / cost.wall.as_secs_f64();
    if args.json {
        return output::json_line(json!({
            "link": link,
            "bytes": cost.bytes,
            "seconds": cost.wall.as_secs_f64(),
            "reader_cpu_s_per_gib": per_gib(cost.reader_cpu),
            "server_cpu_s_per_gib": per_gib(server_cpu),
            "cpu_s_per_gib": per_gib(cost.all_cpu),
            "congestion_marks": cost.marks,
        }));
    }
    output::out_line(&format!(
        "{link:<10} {:>10}  {:>7.3} s  {gib_per_s:>6.2} GiB/s  CPU-s/GiB: reader {:.2}, server \
         {:.2}, all {:.2}",
        output::size(cost.bytes),
        cost.wall.as_secs_f64(),
        per_gib(cost.reader_cpu),
        per_gib(server_cpu),
        per_gib(cost.all_cpu),
    ));
}
