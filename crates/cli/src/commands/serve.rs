//! `byname serve`: a file server attached to a forwarder.

use super::daemon::{
    Endings, ExposureArgs, Publication, allow_flags, directory, endpoint, endpoints, file_server,
    link, name,
};
use crate::exit::{Code, Failure, Outcome, chain};
use crate::output;
use crate::paths::Paths;
use crate::settings::Settings;
use crate::target;
use byname_io::{Connection, Endpoint};
use byname_store::ServerHandle;
use std::path::PathBuf;
use std::time::Duration;

/// Publish directories through a forwarder that is there.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname serve /data/run7 --name /lab/run7
  byname serve --mount /lab/run7=/data/run7 --mount /lab/run8=/data/run8
  byname serve /data --name /lab --connect unix:///run/nfd/nfd.sock")]
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
    /// Address for the printed link, if readers reach the forwarder by another (repeatable).
    #[arg(long, value_name = "URI")]
    via: Vec<String>,
    #[command(flatten)]
    exposure: ExposureArgs,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let settings = Settings::load(paths)?;
    let publications = publications(args)?;
    endpoints(&args.via)?;
    let candidates = match &args.connect {
        Some(uri) => vec![endpoint(uri)?],
        None => target::search(&settings, paths)?,
    };
    let endpoint = first_answering(&candidates)?;
    let exposure = args.exposure.exposure(&settings);
    let via = if args.via.is_empty() { vec![endpoint.to_string()] } else { args.via.clone() };
    let mut servers = Vec::new();
    for publication in &publications {
        let (server, identity) = file_server(paths, &settings, publication, exposure)?;
        let allow = allow_flags(publication, &identity);
        servers.push(((server, allow), link(publication, &identity, &via).to_string()));
    }
    let endings = Endings::watch_signals()?;
    output::err_line(&format!("attaching to {endpoint}"));
    let mut handles = Vec::new();
    for (server, link) in servers {
        let endpoint = endpoint.clone();
        let connect = move || Connection::connect(&endpoint, Duration::from_secs(5));
        handles.push(endings.spawn_server(server, connect, move || output::out_line(&link)));
    }
    let outcome = endings.wait();
    handles.iter().for_each(ServerHandle::stop);
    outcome
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

/// The first endpoint at which somebody answers.
pub(crate) fn first_answering(endpoints: &[Endpoint]) -> Outcome<Endpoint> {
    let mut last = None;
    for endpoint in endpoints {
        match Connection::connect(endpoint, Duration::from_secs(5)) {
            Ok(_) => return Ok(endpoint.clone()),
            Err(error) => last = Some(chain(&error)),
        }
    }
    let tried: Vec<String> = endpoints.iter().map(Endpoint::to_string).collect();
    let cause = last.unwrap_or_default();
    Err(Failure::new(
        Code::NoRoute,
        format!("no forwarder answers at {}: {cause}", tried.join(", ")),
    )
    .hint("start one: `byname forward`, or publish with `byname up`"))
}
