//! `byname route`: where a forwarder sends Interests.

use crate::exit::Outcome;
use crate::manager::{self, Manager, ManagerArgs, origin, origin_text, prefix};
use crate::output;
use byname_packet::mgmt::{
    ControlParameters, ROUTE_FLAG_CAPTURE, ROUTE_FLAG_CHILD_INHERIT, RibEntry, route_origin,
};
use byname_profile::Paths;
use byname_profile::units;
use serde_json::json;
use std::collections::BTreeMap;

/// Show, add and remove the routes of a forwarder.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname route list
  byname route add /lab udp4://192.0.2.7:6363     makes the face if there is none
  byname route add /lab 261 --cost 10 --expires 3600
  byname route remove /lab 261")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show all routes, or those at and below a prefix.
    List {
        /// Only this prefix and what lies below.
        prefix: Option<String>,
        #[command(flatten)]
        manager: ManagerArgs,
    },
    /// Add a route, or change the one with the same prefix, face and origin.
    Add {
        /// The names it leads to.
        prefix: String,
        /// Number of a face, or an address; a face to the address is made if there is none.
        face: String,
        /// The route with the lowest cost is tried first.
        #[arg(long, default_value_t = 0)]
        cost: u64,
        /// Who asks: a number or app, client, nlsr, static, ….
        #[arg(long, default_value = "static", value_parser = parse_origin)]
        origin: u64,
        /// Longer prefixes do not get this route.
        #[arg(long)]
        no_inherit: bool,
        /// Routes of shorter prefixes do not count from here on.
        #[arg(long)]
        capture: bool,
        /// Time after which it ends by itself.
        #[arg(long, value_name = "DURATION", value_parser = units::whole_seconds)]
        expires: Option<u64>,
        #[command(flatten)]
        manager: ManagerArgs,
    },
    /// Remove a route.
    Remove {
        /// The names it led to.
        prefix: String,
        /// Number or address of the face.
        face: String,
        /// Who asked for it: a number or app, client, nlsr, static, ….
        #[arg(long, default_value = "static", value_parser = parse_origin)]
        origin: u64,
        #[command(flatten)]
        manager: ManagerArgs,
    },
}

fn parse_origin(text: &str) -> Result<u64, clap::Error> {
    origin(text).ok_or_else(|| clap::Error::new(clap::error::ErrorKind::ValueValidation))
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.action {
        Action::List { prefix, manager } => list(prefix.as_deref(), manager, paths),
        Action::Add { prefix: name, face, cost, origin, no_inherit, capture, expires, manager } => {
            let name = prefix(name)?;
            let mut forwarder = Manager::open(manager, paths)?;
            let face = forwarder.face(face, true)?;
            let inherit = if *no_inherit { 0 } else { ROUTE_FLAG_CHILD_INHERIT };
            let capture = if *capture { ROUTE_FLAG_CAPTURE } else { 0 };
            let parameters = ControlParameters {
                name: Some(name.clone()),
                face_id: Some(face),
                origin: Some(*origin),
                cost: Some(*cost),
                flags: Some(inherit | capture),
                expiration_period_ms: expires.map(|seconds| seconds.saturating_mul(1000)),
                ..ControlParameters::default()
            };
            forwarder.command("rib/register", &parameters)?;
            let shown = output::name(name.view());
            let fields = json!({ "prefix": shown, "face": face, "cost": cost, "origin": origin });
            manager::done(manager, &format!("{shown} leads to face {face}"), fields);
            Ok(())
        }
        Action::Remove { prefix: name, face, origin, manager } => {
            let name = prefix(name)?;
            let mut forwarder = Manager::open(manager, paths)?;
            let face = forwarder.face(face, false)?;
            let parameters = ControlParameters {
                name: Some(name.clone()),
                face_id: Some(face),
                origin: Some(*origin),
                ..ControlParameters::default()
            };
            forwarder.command("rib/unregister", &parameters)?;
            let shown = output::name(name.view());
            let fields = json!({ "prefix": shown, "face": face, "origin": origin });
            let origin = origin_text(*origin);
            let line = format!("{shown} leads to face {face} no more (origin {origin})");
            manager::done(manager, &line, fields);
            Ok(())
        }
    }
}

fn list(below: Option<&str>, args: &ManagerArgs, paths: &Paths) -> Outcome {
    let below = below.map(prefix).transpose()?.unwrap_or_default();
    let mut forwarder = Manager::open(args, paths)?;
    let mut routes = forwarder.routes()?;
    routes.retain(|entry| below.view().is_prefix_of(entry.name.view()));
    routes.sort_by(|one, other| one.name.cmp(&other.name));
    if args.json {
        routes.iter().for_each(print_json);
        return Ok(());
    }
    let faces = forwarder.faces()?;
    let remotes: BTreeMap<u64, &str> = faces.iter().map(|f| (f.face_id, f.uri.as_str())).collect();
    let mut rows = Vec::new();
    for entry in &routes {
        for route in &entry.routes {
            let mut flags = Vec::new();
            if route.flags & ROUTE_FLAG_CHILD_INHERIT != 0 {
                flags.push("inherit");
            }
            if route.flags & ROUTE_FLAG_CAPTURE != 0 {
                flags.push("capture");
            }
            let expires = route.expiration_period_ms;
            rows.push(vec![
                output::name(entry.name.view()),
                route.face_id.to_string(),
                remotes.get(&route.face_id).map_or("-".to_owned(), |uri| output::one_line(uri)),
                route.cost.to_string(),
                origin_text(route.origin),
                flags.join(","),
                expires.map_or_else(|| "never".to_owned(), |ms| format!("in {} s", ms / 1000)),
            ]);
        }
    }
    let header = ["PREFIX", "FACE", "REMOTE", "COST", "ORIGIN", "FLAGS", "ENDS"];
    output::table(&header, &rows);
    Ok(())
}

fn print_json(entry: &RibEntry) {
    for route in &entry.routes {
        output::json_line(json!({
            "prefix": output::name(entry.name.view()), "face": route.face_id, "cost": route.cost,
            "origin": route.origin, "is_static": route.origin == route_origin::STATIC,
            "inherit": route.flags & ROUTE_FLAG_CHILD_INHERIT != 0,
            "capture": route.flags & ROUTE_FLAG_CAPTURE != 0,
            "expires_ms": route.expiration_period_ms,
        }));
    }
}
