//! `byname site up`: a whole site in one process, from nothing: forwarder, head and disks.

use super::account::SiteArgs;
use super::{defaults, disk as site_disk, init};
use crate::commands::daemon::{self, Endings};
use crate::commands::{catalog, disk, reachable, up};
use crate::exit::{Code, Failure, Outcome, chain};
use crate::typed::{endpoints, name};
use crate::{forwarders, node_config, notify, output, settings};
use byname_disk::{DiskDirectory, DiskError, ScrubConfig};
use byname_head::{Head, HeadError, HeadServer};
use byname_io::Endpoint;
use byname_node::Stop;
use byname_profile::{Link, Paths, Profile};
use byname_store::{FileServer, ServerHandle};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time in which a part of the site has to be reachable.
const PATIENCE: Duration = Duration::from_secs(30);

/// A whole site on this machine: forwarder, head and disks in one process. What is missing is made.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Directories of its disks. Empty ones become disks of the site.
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// Name of the site. Default: /<user>-<host>/site.
    #[arg(long)]
    name: Option<String>,
    /// Where its catalog is kept. Default: a directory of the user's state.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Replicas of each file, if the site is made now. Default: 1.
    #[arg(long, value_name = "COUNT", default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(1..=16))]
    replicas: u8,
    /// Octets that content may take on each disk that is made now. Default: what its file system
    /// has.
    #[arg(long, value_name = "SIZE")]
    capacity: Option<String>,
    /// Time for which content stays that nothing leads to any more: 10m, 2h.
    #[arg(long, value_name = "DURATION", value_parser = catalog::kept, default_value = "10m")]
    keep_versions: Duration,
    /// Address to listen on besides (repeatable): unix:///path, tcp://host[:port],
    /// udp://host[:port].
    #[arg(long, value_name = "URI")]
    listen: Vec<String>,
}

/// The parts of a site that run.
struct Running {
    endings: Endings,
    forwarder: Option<Stop>,
    servers: Vec<(ServerHandle, JoinHandle<()>)>,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    let profile = settings::profile(paths)?;
    let site = match &args.name {
        Some(text) => name(text)?,
        None => up::default_name(Path::new("site")),
    };
    let shown = output::name(site.view());
    let directory = defaults::directory(Some(&shown), args.dir.as_deref(), paths)?;
    match Head::open(&directory) {
        Ok(_) => {}
        Err(HeadError::NoSite { .. }) => {
            check_disks(&args.dirs, &directory)?;
            make(&shown, &directory, args.replicas, paths)?;
        }
        Err(error) => return Err(error.into()),
    }
    let endings = Endings::watch_signals()?;
    let (forwarder, endpoint) = forwarder(&endings, &args.listen, (&profile, paths))?;
    let mut running = Running { endings, forwarder, servers: Vec::new() };
    let (head, link) = catalog::open(
        &profile,
        Head::open_to_serve(&directory, None)?,
        catalog::Times::keeping(args.keep_versions),
    )?;
    let HeadServer { server, watch, rest, .. } = head;
    running.serve((server, String::new()), &endpoint, "the head")?;
    let capacity = args.capacity.as_deref();
    for dir in &args.dirs {
        make_disk((&shown, &endpoint), (dir, capacity), paths)?;
        let opened = disk::open(dir, (vec![endpoint.clone()], ScrubConfig::default()), paths)?;
        running.serve((opened.server.server, opened.allow), &endpoint, &opened.ready)?;
        output::err_line(&opened.ready);
    }
    let connect = move || forwarders::connect_any(std::slice::from_ref(&endpoint));
    let watched = watch.start(connect);
    watched.map_err(|error| Failure::new(Code::Other, format!("no thread: {error}")))?;
    output::out_line(&link_for_all(link, &args.listen)?);
    notify::ready(&format!("serving {shown}"));
    let outcome = running.wait();
    rest.begin();
    outcome
}

/// The link of the site, with the addresses that others reach this machine by.
fn link_for_all(mut link: Link, listen: &[String]) -> Outcome<String> {
    if !listen.is_empty() {
        link.via = reachable::addresses(&endpoints(listen)?);
    }
    Ok(link.to_string())
}

/// A new catalog knows nothing of what is on disks that are there already: it would look as if all
/// were lost.
fn check_disks(dirs: &[PathBuf], directory: &Path) -> Outcome {
    let disks = || dirs.iter().filter_map(|dir| Some((dir, DiskDirectory::label_of(dir).ok()?)));
    let Some((dir, label)) = disks().next() else { return Ok(()) };
    let (number, site) = (label.disk.0, output::name(label.site.view()));
    let text = format!(
        "{} is disk {number} of {site}, and in {} there is no catalog that knows of it",
        dir.display(),
        directory.display()
    );
    let hint = "byname site rebuild makes the catalog again from its disks, byname site restore \
                from a backup; --dir says where it is";
    Err(Failure::usage(text).hint(hint))
}

/// Makes the site, as `site init` does.
fn make(site: &str, directory: &Path, replicas: u8, paths: &Paths) -> Outcome {
    let operator = defaults::own_user();
    let engine = &byname_head::EngineAddress::Embedded;
    let begin = init::Begin { operator: &operator, group: init::GROUP, replicas, engine };
    let made = init::make(site, directory, &begin, paths)?;
    let at = directory.display();
    output::err_line(&format!("made the site {site} in {at}; its operator is {operator}"));
    output::err_line(&format!("its keys are in {}: {}", paths.keys.display(), made.key));
    Ok(())
}

/// The forwarder that runs on this machine, or one of this process.
fn forwarder(
    endings: &Endings,
    listen: &[String],
    (profile, paths): (&Profile, &Paths),
) -> Outcome<(Option<Stop>, Endpoint)> {
    let mut all = endpoints(listen)?;
    match up::answering_socket(profile)? {
        None => {}
        Some(foreign) if all.is_empty() => {
            output::err_line(&format!("attached to the forwarder at {foreign}"));
            return Ok((None, foreign));
        }
        Some(foreign) => {
            let text = format!("a forwarder answers at {foreign}: it listens, not this process");
            return Err(Failure::usage(text).hint("byname site up without --listen uses it"));
        }
    }
    let [own, memory] = node_config::own_endpoints(paths)?;
    all.extend([own.clone(), memory]);
    let node = daemon::node(profile.settings(), all)?;
    for endpoint in node.listening() {
        output::err_line(&format!("listening on {endpoint}"));
    }
    Ok((Some(endings.spawn_node(node)), own))
}

/// Makes a disk of the site of a directory, unless it is one.
fn make_disk(
    (site, endpoint): (&str, &Endpoint),
    (dir, capacity): (&Path, Option<&str>),
    paths: &Paths,
) -> Outcome {
    match DiskDirectory::prepare(dir) {
        Ok(()) => {}
        Err(DiskError::NotEmpty { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let of_disk = site_disk::Properties { capacity, ..site_disk::Properties::default() };
    let args = SiteArgs::of(site, endpoint);
    let mut session = args.session(paths)?;
    site_disk::add(&mut session, dir, of_disk.in_directory(dir)?, paths).map(drop)
}

impl Running {
    /// Runs a server and waits until it can be reached.
    fn serve(&mut self, server: (FileServer, String), endpoint: &Endpoint, what: &str) -> Outcome {
        let (ready, is_ready): (Sender<()>, _) = channel();
        let endpoint = endpoint.clone();
        let connect = move || forwarders::connect_any(std::slice::from_ref(&endpoint));
        let announce = move || {
            let _ = ready.send(());
        };
        self.servers.push(self.endings.spawn_server(server, connect, announce));
        is_ready.recv_timeout(PATIENCE).map_err(|error| {
            Failure::new(Code::NoRoute, format!("{what}: not attached: {}", chain(&error)))
        })
    }

    /// Waits for the first part that ends, and ends the others.
    fn wait(self) -> Outcome {
        let outcome = self.endings.wait();
        notify::stopping();
        for (handle, _) in &self.servers {
            handle.stop();
        }
        for (_, thread) in self.servers {
            // One that panicked has said so.
            let _ = thread.join();
        }
        if let Some(forwarder) = self.forwarder {
            forwarder.stop();
        }
        outcome
    }
}
