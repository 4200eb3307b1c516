//! `byname forward`: a forwarder and nothing else.

use super::daemon::Endings;
use crate::exit::{Code, Failure, Outcome};
use crate::node_config::{self, Allowed, Flags};
use crate::{notify, output};
use byname_node::{Changes, Control, Node};
use byname_profile::Paths;
use signal_hook::consts::SIGHUP;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Run a forwarder.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname forward                                       on a Unix socket, for this machine
  byname forward --listen 'tcp://*' --listen 'udp://*'   for others too
  byname forward --listen 'tcp://*' --route /lab=tcp://lab.example.org
  byname forward --config byname-forward.toml          everything in a file; SIGHUP reads it anew

Signed is not secret: whoever reaches the forwarder can read what is published through it.")]
pub(crate) struct Args {
    /// Configuration file in place of the usual ones; its manual is byname-forward.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on (repeatable): unix:///path, tcp://host[:port], udp://host[:port],
    /// ws://host[:port], memif:///path, udp://GROUP?dev=INTERFACE; the host `*` means all
    /// addresses. Default: byname's own socket.
    #[arg(long, value_name = "URI")]
    listen: Vec<String>,
    /// Forward a prefix to another forwarder (repeatable).
    #[arg(long, value_name = "PREFIX=URI")]
    route: Vec<String>,
    /// Strategy of a prefix (repeatable): best-route, multicast, asf, random, access.
    #[arg(long, value_name = "PREFIX=NAME")]
    strategy: Vec<String>,
    /// Let whoever signs with this key register routes from another machine (repeatable). KEY is
    /// SHA256:… or the file of a certificate.
    #[arg(long, value_name = "PREFIX=KEY")]
    allow_register: Vec<String>,
    /// Let programs of all users of this machine register routes to themselves over loopback TCP.
    #[arg(long)]
    allow_register_loopback: bool,
    /// Memory for packets kept to answer repeated requests: 64M, 1G.
    #[arg(long, value_name = "SIZE", value_parser = byname_profile::units::size)]
    cs_size: Option<u64>,
    /// Packets kept to answer repeated requests.
    #[arg(long, value_name = "COUNT")]
    cs_entries: Option<u64>,
    /// Share the work among so many forwarders, each on a processor of its own.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=64))]
    shards: Option<u64>,
    /// Group that may connect to the Unix sockets.
    #[arg(long, value_name = "GROUP")]
    socket_group: Option<String>,
    /// Serve metrics for Prometheus at http://ADDRESS/metrics.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
}

impl Args {
    fn flags(&self) -> Flags {
        Flags {
            config: self.config.clone(),
            listen: self.listen.clone(),
            route: self.route.clone(),
            strategy: self.strategy.clone(),
            allow_register: self.allow_register.clone(),
            allow_register_loopback: self.allow_register_loopback,
            cs_bytes: self.cs_size,
            cs_entries: self.cs_entries,
            shards: self.shards,
            socket_group: self.socket_group.clone(),
            metrics: self.metrics,
        }
    }
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let flags = args.flags();
    let loaded = node_config::load(paths, &flags, &Allowed::default())?;
    let fixed = Fixed { shards: loaded.node.shards, metrics: loaded.metrics };
    let node = Node::new(loaded.node)?;
    let endings = Endings::watch_signals()?;
    let control = node.control();
    if let Some(address) = loaded.metrics {
        serve_metrics(address, control.clone())?;
    }
    for endpoint in node.listening() {
        output::err_line(&format!("listening on {endpoint}"));
    }
    let stop = endings.spawn_node(node);
    let (paths, allowed) = (paths.clone(), loaded.allowed);
    reload_on_signal(Reloader { paths, flags, control, allowed, fixed })?;
    notify::ready("forwarding");
    let outcome = endings.wait();
    notify::stopping();
    stop.stop();
    outcome
}

fn serve_metrics(address: SocketAddr, control: Control) -> Outcome {
    let render = move || control.snapshot().ok().map(|snapshot| snapshot.to_prometheus());
    let served = byname_web::serve(address, Box::new(render)).map_err(|error| {
        Failure::new(Code::Other, crate::exit::chain(&error))
            .hint("choose another address with --metrics")
    })?;
    output::err_line(&format!("metrics at http://{served}/metrics"));
    Ok(())
}

/// Takes SIGHUP from now on: the configuration is read anew, and kept as it is when that fails.
fn reload_on_signal(mut reloader: Reloader) -> Outcome {
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP])
        .map_err(|error| Failure::new(Code::Other, format!("signals: {error}")))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            notify::reloading(byname_io::Clock::new().now_ns());
            let status = match reloader.reload() {
                Ok((changes, later)) => summary(&changes, &later),
                Err(failure) => format!("configuration not taken over: {}", failure.message),
            };
            output::err_line(&status);
            notify::ready(&status);
        }
    });
    Ok(())
}

/// Reads the configuration anew.
struct Reloader {
    paths: Paths,
    flags: Flags,
    control: Control,
    allowed: Allowed,
    fixed: Fixed,
}

/// Settings that a running forwarder keeps, as they were when it was started.
struct Fixed {
    shards: usize,
    metrics: Option<SocketAddr>,
}

impl Reloader {
    /// The changes, and the settings that were changed and count from the next start on.
    fn reload(&mut self) -> Outcome<(Changes, Vec<&'static str>)> {
        let loaded = node_config::load(&self.paths, &self.flags, &self.allowed)?;
        let is_later = [
            ("shards", loaded.node.shards != self.fixed.shards),
            ("metrics", loaded.metrics != self.fixed.metrics),
        ];
        let changes = self
            .control
            .reload(loaded.node)
            .map_err(|error| Failure::new(Code::Other, crate::exit::chain(&error)))?;
        self.allowed = loaded.allowed;
        let later = is_later.iter().filter(|(_, is_later)| *is_later).map(|(name, _)| *name);
        Ok((changes, later.collect()))
    }
}

fn summary(changes: &Changes, later: &[&str]) -> String {
    let mut text = format!(
        "configuration taken over: listeners +{} -{}, routes +{} -{}, strategies {}, faces -{}",
        changes.listeners_added,
        changes.listeners_removed,
        changes.routes_added,
        changes.routes_removed,
        changes.strategies_changed,
        changes.faces_removed,
    );
    if !later.is_empty() {
        text.push_str(&format!("; only a restart changes {}", later.join(", ")));
    }
    text
}
