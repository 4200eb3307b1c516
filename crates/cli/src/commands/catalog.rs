//! `byname catalog`: the head of a site, attached to a forwarder.

use super::daemon::Endings;
use super::site::defaults;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::typed::endpoint;
use crate::{forwarders, notify, settings};
use byname_head::{Head, HeadServer};
use byname_io::Clock;
use byname_keychain::Keychain;
use byname_profile::{Link, Paths, Profile};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Serve a site's catalog: its paths and the commands that change them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname catalog /lab                      the site made by `byname site init /lab`
  byname catalog --dir /var/lib/byname/lab
  byname catalog /lab --connect tcp://forwarder.lab:6363

Names and content of a site can be read by whoever reaches the forwarder; docs/site.md.")]
pub(crate) struct Args {
    /// The site.
    #[arg(required_unless_present = "dir")]
    site: Option<String>,
    /// Its directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Forwarder to attach to.
    #[arg(long, value_name = "URI")]
    connect: Option<String>,
    /// Serve metrics for Prometheus at http://ADDRESS/metrics.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let profile = settings::profile(paths)?;
    let directory = defaults::directory(args.site.as_deref(), args.dir.as_deref(), paths)?;
    let (server, link) = open(&profile, &directory)?;
    let HeadServer { server, counters } = server;
    let candidates = match &args.connect {
        Some(uri) => vec![endpoint(uri)?],
        None => profile.forwarders(true)?,
    };
    let endings = Endings::watch_signals()?;
    let announce = move || {
        output::out_line(&link);
        notify::ready("serving the catalog");
    };
    let connect = move || forwarders::connect_any(&candidates);
    let (handle, thread) = endings.spawn_server((server, String::new()), connect, announce);
    if let Some(address) = args.metrics {
        super::server_metrics::serve_head(address, handle.clone(), counters)?;
    }
    let outcome = endings.wait();
    notify::stopping();
    handle.stop();
    // One that panicked has said so.
    let _ = thread.join();
    outcome
}

/// Opens the head of a site, with the link that readers and users give.
pub(crate) fn open(
    profile: &Profile,
    directory: &std::path::Path,
) -> Outcome<(HeadServer, String)> {
    let head = Head::open(directory)?;
    let name = head.site().view().to_name();
    let keychain = Keychain::open(&profile.paths().keys)?;
    let shown = output::name(name.view());
    let identity = keychain.identity(name.view())?.ok_or_else(|| {
        let message = format!("the key of {shown} is not in {}", keychain.dir().display());
        Failure::new(Code::UnknownKey, message)
            .hint("`byname site init` made it for the user who ran it")
    })?;
    let certificates = keychain.certificates_to_serve(name.view())?;
    let certificates = certificates.iter().map(|it| it.wire().to_vec()).collect();
    let key = Some(identity.certificate.key_id());
    let link = Link { key, ..Link::of_name(name) };
    let server = head.lead(Arc::new(identity.signer), certificates, Clock::new().unix_ns())?;
    Ok((server, link.to_string()))
}
