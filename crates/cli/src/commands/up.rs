//! `byname up`: forwarder and file server in one process, and the link to it.

use super::daemon::{
    Endings, ExposureArgs, Publication, allow_flags, file_server_with, link, node,
};
use super::segments::SegmentArgs;
use super::serving::ServingArgs;
use super::{counted, reachable};
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::settings;
use crate::typed::{directory, endpoints, name};
use byname_io::{Connection, Endpoint};
use byname_packet::Name;
use byname_profile::{Paths, Profile, Settings};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Publish a directory: forwarder and file server in one process.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname up                        this directory, for this machine only
  byname up /data/run7 --share     for everybody who can reach TCP or UDP port 6363
  byname up /data/run7 --name /lab/run7 --listen tcp://10.1.2.3

Signed is not secret: whoever reaches the forwarder can read what is published.")]
pub(crate) struct Args {
    /// Directory to publish.
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Its name. Default: /<user>-<host>/<directory>.
    #[arg(long)]
    name: Option<String>,
    /// Open TCP and UDP port 6363 for other machines.
    #[arg(long)]
    share: bool,
    /// Address to listen on (repeatable): unix:///path, tcp://host[:port], udp://host[:port].
    #[arg(long, value_name = "URI")]
    listen: Vec<String>,
    /// Address for the printed link, if readers reach this machine by another (repeatable).
    #[arg(long, value_name = "URI")]
    via: Vec<String>,
    /// Publish even what looks like a mistake: /, the home directory, byname's own state.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    exposure: ExposureArgs,
    #[command(flatten)]
    segments: SegmentArgs,
    #[command(flatten)]
    serving: ServingArgs,
    /// Print one JSON object in place of the link.
    #[arg(long)]
    json: bool,
}

/// The file server's connection to its forwarder.
enum Attachment {
    /// A forwarder of this process, by its end of a socket pair.
    Own(Option<Connection>),
    /// One that was there already.
    Foreign(Endpoint),
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let profile = settings::profile(paths)?;
    let directory = directory(&args.dir)?;
    endpoints(&args.via)?;
    if !args.yes {
        refuse_mistakes(&directory, paths)?;
    }
    let name = match &args.name {
        Some(text) => name(text)?,
        None => default_name(&directory),
    };
    let publication = Publication { name, directory };
    let endings = Endings::watch_signals()?;
    let listen = listen_endpoints(args, profile.settings())?;
    let foreign = answering_socket(&profile)?;
    let mut stop = None;
    let (mut attachment, listening) = match foreign {
        Some(endpoint) if listen.is_empty() => {
            output::err_line(&format!(
                "attached to the forwarder at {endpoint}: whoever reaches it can read"
            ));
            (Attachment::Foreign(endpoint.clone()), vec![endpoint])
        }
        foreign => {
            let mut all = listen;
            match foreign {
                Some(endpoint) => output::err_line(&format!(
                    "another forwarder answers at {endpoint}: not listening there"
                )),
                None => all.extend(crate::node_config::own_endpoints(paths)?),
            }
            let mut node = node(profile.settings(), all)?;
            let listening = node.listening();
            let face = node.local_face().map_err(|error| {
                Failure::new(crate::exit::Code::Other, crate::exit::chain(&error))
            })?;
            stop = Some(endings.spawn_node(node));
            (Attachment::Own(Some(face)), listening)
        }
    };
    let exposure = args.exposure.exposure(profile.settings());
    let how = (&args.segments, &args.serving);
    let (server, identity) = file_server_with(&profile, &publication, exposure, how)?;
    let via = if args.via.is_empty() { reachable::addresses(&listening) } else { args.via.clone() };
    let link = link(&publication, &identity, &via).to_string();
    let is_own = matches!(attachment, Attachment::Own(_));
    let announce = announcement(args, &publication, &listening, link, is_own);
    let own = listening.first().cloned();
    let server = (server, allow_flags(&publication, &identity));
    let connect = move || attachment.connect(own.as_ref());
    let (handle, thread) = endings.spawn_server(server, connect, announce);
    counted::in_background(&publication, exposure, paths);
    let outcome = endings.wait();
    handle.stop();
    if args.serving.attributes.are_used() {
        // It writes the last roots; one that panicked has said so.
        let _ = thread.join();
    }
    if let Some(stop) = stop {
        stop.stop();
    }
    outcome
}

impl Attachment {
    fn connect(&mut self, own: Option<&Endpoint>) -> Result<Connection, byname_io::ConnectError> {
        const PATIENCE: Duration = Duration::from_secs(5);
        match self {
            Self::Own(face) => match (face.take(), own) {
                (Some(face), _) => Ok(face),
                (None, Some(endpoint)) => Connection::connect(endpoint, PATIENCE),
                (None, None) => Connection::connect(&Endpoint::Unix(PathBuf::new()), PATIENCE),
            },
            Self::Foreign(endpoint) => Connection::connect(endpoint, PATIENCE),
        }
    }
}

/// The output once readers can connect.
fn announcement(
    args: &Args,
    publication: &Publication,
    listening: &[Endpoint],
    link: String,
    is_own: bool,
) -> impl Fn() + Send + 'static {
    let is_local = |it: &Endpoint| matches!(it, Endpoint::Unix(_) | Endpoint::Memif { .. });
    let shared = !listening.iter().all(is_local);
    let directory = publication.directory.display().to_string();
    let name = output::name(publication.name.view());
    let listening: Vec<String> = listening.iter().map(Endpoint::to_string).collect();
    let json = args.json;
    let share_line = format!("byname up '{directory}' --share");
    move || {
        if json {
            output::json_line(json!({ "name": name, "link": link, "listening": listening }));
            return;
        }
        output::err_line(&format!("{directory} is published as {name}"));
        for uri in listening.iter().filter(|_| is_own) {
            output::err_line(&format!("listening on {uri}"));
        }
        if !is_own {
            output::err_line("the link, for this machine; --via URI puts another address into it:");
        } else if shared {
            output::err_line("whoever reaches these addresses can read it; on another machine:");
            output::err_line(&format!("  byname ls {link}         is it reached?"));
            output::err_line(&format!("  byname get -r {link}"));
        } else {
            output::err_line("for this machine only; to share it with others:");
            output::err_line(&format!("  {share_line}"));
        }
        output::out_line(&link);
    }
}

fn listen_endpoints(args: &Args, settings: &Settings) -> Outcome<Vec<Endpoint>> {
    let mut uris = args.listen.clone();
    if uris.is_empty() && !args.share {
        uris = settings.list("forwarder.listen").to_vec();
    }
    if args.share {
        uris.extend(["tcp://*".to_owned(), "udp://*".to_owned()]);
    }
    endpoints(&uris)
}

/// A Unix socket of the usual ones behind which a forwarder answers.
pub(crate) fn answering_socket(profile: &Profile) -> Outcome<Option<Endpoint>> {
    let sockets = profile.forwarders(false)?;
    let mut unix = sockets.into_iter().filter(|endpoint| matches!(endpoint, Endpoint::Unix(_)));
    Ok(unix.find(|endpoint| Connection::connect(endpoint, Duration::from_secs(1)).is_ok()))
}

fn refuse_mistakes(directory: &Path, paths: &Paths) -> Outcome {
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|h| h.canonicalize().ok());
    let what = if directory == Path::new("/") {
        "the whole machine"
    } else if home.as_deref() == Some(directory) {
        "your home directory"
    } else if paths.exposes_state(directory) {
        "byname's own keys and state"
    } else {
        return Ok(());
    };
    let message = format!("{} would publish {what}", directory.display());
    Err(Failure::usage(message).hint("choose a smaller directory, or say --yes if you mean it"))
}

pub(crate) fn default_name(directory: &Path) -> Name {
    let host = reachable::host_name();
    let host = host.split('.').next().unwrap_or_default();
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let user = user.unwrap_or_else(|_| format!("uid{}", rustix::process::geteuid().as_raw()));
    let last = directory.file_name().map(|name| name.as_encoded_bytes().to_vec());
    Name::new()
        .with_generic(format!("{user}-{host}").as_bytes())
        .with_generic(&last.unwrap_or_else(|| b"files".to_vec()))
}
