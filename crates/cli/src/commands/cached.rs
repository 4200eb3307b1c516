//! `byname cached`: the site cache of a machine, for all its users.

use super::daemon::Endings;
use super::server_metrics::{counter, gauge, serve_text};
use crate::exit::{Code, Failure, Outcome};
use crate::{notify, output, settings};
use byname_cache::{Cache, CacheConfig, Service};
use byname_profile::{Paths, units};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Keep one site cache for all users of this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname cached --socket /run/byname-cached/socket     as a user of its own

Programs use it when the setting cache.service (BYNAME_CACHE_SERVICE) is its socket. The directory
and its bounds are those of the site cache (cache.directory, cache.size_mib).
Who knows the root and the size of a content may read what the cache has of it.")]
pub(crate) struct Args {
    /// Unix socket for those who use it; made, and every user may connect.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Most that one user may have brought; a quarter of the cache unless said otherwise.
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    user_share: Option<u64>,
    /// Serve metrics for Prometheus at http://ADDRESS/metrics.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let endings = Endings::watch_signals()?;
    let own = settings::profile(paths)?.cache().config().clone();
    let share = args.user_share.unwrap_or(own.bytes_max / 4);
    let config = CacheConfig { user_bytes_max: Some(share), ..own };
    let cache = Cache::new(config);
    let service = Service::start(cache.clone(), &args.socket).map_err(|error| {
        let socket = args.socket.display();
        let failure = Failure::new(Code::LocalDisk, format!("{socket}: {error}"));
        match error.kind() {
            ErrorKind::AddrInUse => failure.hint("another service has this socket"),
            _ => failure,
        }
    })?;
    let service = Arc::new(service);
    if let Some(address) = args.metrics {
        let (cache, service) = (cache.clone(), Arc::downgrade(&service));
        serve_text(address, move || match service.upgrade() {
            Some(service) => render(&cache, &service),
            None => String::new(),
        })?;
    }
    output::err_line(&format!(
        "{} is served at {}",
        cache.directory().display(),
        args.socket.display()
    ));
    notify::ready("serving the site cache");
    let outcome = endings.wait();
    notify::stopping();
    drop(service);
    outcome
}

fn render(cache: &Cache, service: &Service) -> String {
    let mut out = String::new();
    let (counters, (taken, refused)) = (cache.counters(), service.brought_bytes());
    let connections = service.connection_count() as u64;
    gauge(&mut out, "cached_connections", "connections of programs", connections);
    for (name, help, value) in [
        ("taken_bytes", "bytes that were brought and proved to be true", taken),
        ("unproved_bytes", "bytes that were brought and not kept: false or without proof", refused),
        ("written_bytes", "bytes written to the site cache", counters.written_bytes),
        ("refused_bytes", "bytes that the site cache did not take", counters.refused_bytes),
        ("failed_writes", "writes that the disk refused", counters.failed_writes),
        ("evicted_entries", "contents removed to make room", counters.evicted_entries),
    ] {
        counter(&mut out, &format!("cached_{name}"), help, value);
    }
    out
}
