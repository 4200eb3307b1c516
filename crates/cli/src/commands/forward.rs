//! `byname forward`: a forwarder and nothing else.

use super::daemon::{Endings, endpoint, endpoints, name, node};
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::paths::Paths;
use crate::settings::Settings;
use byname_io::Endpoint;
use byname_packet::Name;

/// Run a forwarder.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname forward                                       on a Unix socket, for this machine
  byname forward --listen tcp://* --listen udp://*     for others too
  byname forward --listen tcp://* --route /lab=tcp://lab.example.org

Signed is not secret: whoever reaches the forwarder can read what is published through it.")]
pub(crate) struct Args {
    /// Address to listen on (repeatable): unix:///path, tcp://host[:port], udp://host[:port]; the
    /// host `*` means all addresses. Default: byname's own socket.
    #[arg(long, value_name = "URI")]
    listen: Vec<String>,
    /// Forward a prefix to another forwarder (repeatable).
    #[arg(long, value_name = "PREFIX=URI")]
    route: Vec<String>,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let settings = Settings::load(paths)?;
    let mut listen = args.listen.clone();
    if listen.is_empty() {
        listen = settings.list("forwarder.listen");
    }
    let mut listen = endpoints(&listen)?;
    if listen.is_empty() {
        listen.push(Endpoint::Unix(paths.socket()?));
    }
    let routes = args.route.iter().map(|route| parse_route(route)).collect::<Outcome<_>>()?;
    let node = node(&settings, listen, routes)?;
    let endings = Endings::watch_signals()?;
    for endpoint in node.listening() {
        output::err_line(&format!("listening on {endpoint}"));
    }
    let stop = endings.spawn_node(node);
    let outcome = endings.wait();
    stop.stop();
    outcome
}

fn parse_route(text: &str) -> Outcome<(Name, Endpoint)> {
    // The URI begins behind the last '=' that is followed by a scheme: names may hold '=' too.
    let at = text.match_indices('=').map(|(at, _)| at).rfind(|at| text[at + 1..].contains("://"));
    let Some(at) = at else {
        let example = "for example --route /lab=tcp://lab.example.org";
        return Err(Failure::usage(format!("--route wants PREFIX=URI, not {text:?}")).hint(example));
    };
    Ok((name(&text[..at])?, endpoint(&text[at + 1..])?))
}

#[cfg(test)]
mod tests {
    use super::parse_route;

    #[test]
    fn routes() {
        let (prefix, uri) = parse_route("/lab/x=1=tcp://h:1").unwrap();
        assert_eq!(
            (prefix.view().to_user().as_str(), uri.to_string().as_str()),
            ("/lab/x=1", "tcp://h:1")
        );
        for bad in ["/lab", "/lab=", "lab=tcp://h", "/lab=gopher://h"] {
            assert!(parse_route(bad).is_err(), "{bad}");
        }
    }
}
