//! `byname serve`: a file server attached to a forwarder, or one that readers reach directly.

mod reload;

use super::counted;
use super::daemon::{Endings, ExposureArgs, Publication, allow_flags, file_server_with, link};
use super::mirror::{self, MirrorArgs};
use super::segments::SegmentArgs;
use super::serving::ServingArgs;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::typed::{directory, endpoint, endpoints, name};
use crate::{forwarders, notify, settings};
use byname_client::Refusals;
use byname_io::{ConnectError, Connection, Endpoint};
use byname_profile::{Link, Paths, Profile};
use byname_store::{FileServer, ServerHandle};
use reload::Reloader;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Publish directories through a forwarder that is there, or directly.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname serve /data/run7 --name /lab/run7
  byname serve --mount /lab/run7=/data/run7 --mount /lab/run8=/data/run8
  byname serve /data --name /lab --connect unix:///run/nfd/nfd.sock
  byname serve --mirror run7 --name /lab/run7          a copy, without the publisher's key
  byname serve /data --name /lab --listen 'tcp://*'    no forwarder: get --via tcp://HOST

Signed is not secret: whoever reaches an address it listens on can read what is published.")]
pub(crate) struct Args {
    /// Directory to publish; needs --name.
    #[arg(requires = "name")]
    dir: Option<PathBuf>,
    /// Name of the directory.
    #[arg(long, requires = "dir")]
    name: Option<String>,
    /// Publish a directory under a name (repeatable).
    #[arg(long, value_name = "NAME=DIR", required_unless_present = "dir")]
    mount: Vec<String>,
    /// Forwarder to attach to.
    #[arg(long, value_name = "URI")]
    connect: Option<String>,
    /// Serve readers that connect here, without a forwarder unless --connect names one
    /// (repeatable): unix:///path, tcp://host[:port], udp://host[:port], memif:///path,
    /// ws://host[:port]. For one directory.
    #[arg(long, value_name = "URI", conflicts_with = "mount")]
    listen: Vec<String>,
    /// Address for the printed link, if readers reach the forwarder by another (repeatable).
    #[arg(long, value_name = "URI")]
    via: Vec<String>,
    #[command(flatten)]
    exposure: ExposureArgs,
    #[command(flatten)]
    segments: SegmentArgs,
    #[command(flatten)]
    serving: ServingArgs,
    #[command(flatten)]
    mirror: MirrorArgs,
    /// Append a JSON line to this file for what each peer got of an object. SIGHUP opens it anew.
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
    /// Record one object in so many, 0 none. SIGHUP takes server.access_sample from the
    /// configuration instead, unless this is given.
    #[arg(long, value_name = "N")]
    access_sample: Option<u64>,
    /// Serve metrics for Prometheus at http://ADDRESS/metrics.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let profile = settings::profile(paths)?;
    let publications = publications(args)?;
    endpoints(&args.via)?;
    let candidates = candidates(args, &profile)?;
    let forwarder = candidates.as_deref().and_then(answering);
    let reloader = Reloader::new(args, &profile, paths)?;
    let mut servers = Vec::new();
    for publication in &publications {
        servers.push(open(args, &profile, publication, forwarder.as_ref())?);
    }
    reloader.log_accesses(servers.iter_mut().map(|((server, _), _)| server));
    let endings = Endings::watch_signals()?;
    reloader.watch_signal()?;
    if !args.mirror.mirror {
        let exposure = args.exposure.exposure(profile.settings());
        for publication in &publications {
            counted::in_background(publication, exposure, paths);
        }
    }
    let candidates = candidates.unwrap_or_default();
    let (mut handles, mut threads) = (Vec::new(), Vec::new());
    for (server, announcement) in servers {
        handles.push(match forwarder.clone() {
            Some(chosen) => {
                let attachment = Arc::new(Attachment::new(chosen, candidates.clone()));
                let attached = Arc::clone(&attachment);
                let connect = move || attachment.connect();
                let announce = move || announcement.print(attached.current.get());
                let (handle, thread) = endings.spawn_server(server, connect, announce);
                if args.serving.attributes.are_used() {
                    // It writes the last roots.
                    threads.push(thread);
                }
                handle
            }
            None => {
                announcement.print(None);
                let (handle, thread) = endings.spawn_server_alone(server.0);
                threads.push(thread);
                handle
            }
        });
    }
    if let Some(address) = args.metrics {
        super::server_metrics::serve(address, &handles)?;
    }
    let outcome = endings.wait();
    notify::stopping();
    handles.iter().for_each(ServerHandle::stop);
    for thread in threads {
        // One that panicked has said so.
        let _ = thread.join();
    }
    if args.mirror.mirror {
        handles.iter().for_each(|handle| mirror::report(&handle.counters(), args.mirror));
    }
    outcome
}

/// The link that is printed once readers can come.
struct Announcement {
    link: Link,
    /// True if readers ask the forwarder that the server attaches to.
    follows_forwarder: bool,
}

impl Announcement {
    /// Prints the link, and for whom it is if not for everybody.
    fn print(&self, attached: Option<&Endpoint>) {
        let mut link = self.link.clone();
        if let (true, Some(endpoint)) = (self.follows_forwarder, attached) {
            link.via = vec![endpoint.to_string()];
        }
        output::out_line(&link.to_string());
        let is_local = |via: &String| via.starts_with("unix:") || via.starts_with("memif:");
        if link.via.iter().all(is_local) {
            output::err_line(
                "this link is for programs of this machine; for others: --via tcp://HOST, where \
                 they reach the forwarder",
            );
        }
        notify::ready("serving");
    }
}

/// Opens the server of a publication; with what lets it in elsewhere, and its link.
fn open(
    args: &Args,
    profile: &Profile,
    publication: &Publication,
    forwarder: Option<&Endpoint>,
) -> Outcome<((FileServer, String), Announcement)> {
    let exposure = args.exposure.exposure(profile.settings());
    let (mut server, identity) = match args.mirror.mirror {
        true => {
            let how = (args.mirror, &args.serving);
            (mirror::server(profile, publication, exposure, how)?, None)
        }
        false => {
            let how = (&args.segments, &args.serving);
            let (server, identity) = file_server_with(profile, publication, exposure, how)?;
            (server, Some(identity))
        }
    };
    let listening = listen(args, &mut server)?;
    let follows_forwarder = args.via.is_empty() && listening.is_empty();
    let via = match (&args.via[..], forwarder) {
        ([], _) if !listening.is_empty() => super::reachable::addresses(&listening),
        ([], Some(forwarder)) => vec![forwarder.to_string()],
        (via, _) => via.to_vec(),
    };
    // Whose key counts is not for a mirror to say.
    let unsigned = || Link { via: via.clone(), ..Link::of_name(publication.name.clone()) };
    let link = identity.as_ref().map_or_else(unsigned, |it| link(publication, it, &via));
    let allow = identity.map_or_else(String::new, |it| allow_flags(publication, &it));
    Ok(((server, allow), Announcement { link, follows_forwarder }))
}

/// The forwarders to attach to, of which the first that answers counts; none if the server only
/// listens.
fn candidates(args: &Args, profile: &Profile) -> Outcome<Option<Vec<Endpoint>>> {
    Ok(match &args.connect {
        Some(uri) => Some(vec![endpoint(uri)?]),
        None if !args.listen.is_empty() => None,
        None => Some(profile.forwarders(true)?),
    })
}

/// The forwarder that answers now, else the one that is waited for.
fn answering(candidates: &[Endpoint]) -> Option<Endpoint> {
    match forwarders::connect_first(candidates) {
        Ok((_, endpoint)) => {
            output::err_line(&format!("attaching to {endpoint}"));
            Some(endpoint.clone())
        }
        Err(refused) => {
            if let Some(refused) = Refusals::new(refused) {
                output::err_line(&format!(
                    "waiting for a forwarder (`byname forward` starts one): {refused}"
                ));
            }
            candidates.first().cloned()
        }
    }
}

/// The forwarder of a server: the one that was chosen, else one that has come up in another place.
struct Attachment {
    chosen: Endpoint,
    others: Vec<Endpoint>,
    /// The first that took the server.
    current: OnceLock<Endpoint>,
}

impl Attachment {
    fn new(chosen: Endpoint, others: Vec<Endpoint>) -> Self {
        Self { chosen, others, current: OnceLock::new() }
    }

    fn connect(&self) -> Result<Connection, ConnectError> {
        let chosen = Connection::connect(&self.chosen, Duration::from_secs(5));
        let (connection, endpoint) = match chosen {
            Ok(connection) => (connection, &self.chosen),
            Err(error) => forwarders::connect_first(&self.others).map_err(|_| error)?,
        };
        self.current.get_or_init(|| endpoint.clone());
        Ok(connection)
    }
}

fn listen(args: &Args, server: &mut FileServer) -> Outcome<Vec<Endpoint>> {
    let mut listening = Vec::new();
    for endpoint in endpoints(&args.listen)? {
        let at = server.listen(&endpoint)?;
        output::err_line(&format!("listening on {at}"));
        listening.push(at);
    }
    Ok(listening)
}

fn publications(args: &Args) -> Outcome<Vec<Publication>> {
    let mut publications = Vec::new();
    if let (Some(dir), Some(text)) = (&args.dir, &args.name) {
        publications.push(Publication { name: name(text)?, directory: directory(dir)? });
    }
    for mount in &args.mount {
        let Some((text, dir)) = mount.split_once("=/").or_else(|| mount.rsplit_once('=')) else {
            return Err(Failure::usage(format!("--mount wants NAME=DIR, not {mount:?}")));
        };
        let dir =
            if mount[text.len()..].starts_with("=/") { format!("/{dir}") } else { dir.into() };
        let directory = directory(&PathBuf::from(dir))?;
        publications.push(Publication { name: name(text)?, directory });
    }
    Ok(publications)
}
