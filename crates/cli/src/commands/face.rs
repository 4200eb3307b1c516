//! `byname face`: the links of a forwarder to its neighbours and applications.

use crate::exit::Outcome;
use crate::face_uri::to_peer;
use crate::manager::{self, Manager, ManagerArgs};
use crate::output;
use byname_packet::mgmt::{ControlParameters, FACE_FLAG_LOCAL_FIELDS, FaceStatus};
use byname_profile::{Paths, units};
use serde_json::{Value, json};

const FLAG_LOCAL_FIELDS: u64 = FACE_FLAG_LOCAL_FIELDS;
const FLAG_RELIABILITY: u64 = 2;
const FLAG_MARKING: u64 = 4;

/// Show, make, change and end the faces of a forwarder.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname face list
  byname face create udp4://192.0.2.7:6363 --persistency permanent
  byname face update 261 --reliability on
  byname face destroy udp4://192.0.2.7:6363")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show all faces.
    List {
        #[command(flatten)]
        manager: ManagerArgs,
    },
    /// Make a face; one that is there already is reported, not made twice.
    Create {
        /// Address of the peer: udp4://host[:port], tcp4://…, unix:///path, ws://….
        uri: String,
        /// Address of our end, for UDP multicast and hosts with several.
        #[arg(long, value_name = "URI")]
        local: Option<String>,
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        manager: ManagerArgs,
    },
    /// Change a face.
    Update {
        /// Number or address of the face.
        face: String,
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        manager: ManagerArgs,
    },
    /// End a face; its routes end with it.
    Destroy {
        /// Number or address of the face.
        face: String,
        #[command(flatten)]
        manager: ManagerArgs,
    },
}

#[derive(Debug, Clone, Copy, clap::Args)]
struct Options {
    /// Persistency: lives until it fails, is idle, or is destroyed.
    #[arg(long, value_enum)]
    persistency: Option<Persistency>,
    /// Largest packet of the link; larger ones are split.
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    mtu: Option<u64>,
    /// Acknowledge and repeat what is lost on the link.
    #[arg(long, value_enum, value_name = "on|off")]
    reliability: Option<Switch>,
    /// Mark packets when the queue towards the peer is long.
    #[arg(long, value_enum, value_name = "on|off")]
    marking: Option<Switch>,
    /// Tell an application where Interests came from and let it say where they go.
    #[arg(long, value_enum, value_name = "on|off")]
    local_fields: Option<Switch>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Persistency {
    Persistent,
    OnDemand,
    Permanent,
}

/// A choice that a flag makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

impl Options {
    fn fill(self, parameters: &mut ControlParameters) {
        parameters.mtu = self.mtu;
        parameters.face_persistency = self.persistency.map(|persistency| persistency as u64);
        let (flags, mask) = bits(&[
            (FLAG_LOCAL_FIELDS, self.local_fields),
            (FLAG_RELIABILITY, self.reliability),
            (FLAG_MARKING, self.marking),
        ]);
        (parameters.flags, parameters.mask) = (flags, mask);
    }
}

/// Flags and Mask for the switches that were given.
pub(crate) fn bits(switches: &[(u64, Option<Switch>)]) -> (Option<u64>, Option<u64>) {
    let given = switches.iter().filter_map(|(bit, switch)| Some((bit, (*switch)?)));
    let mask = given.clone().fold(0, |mask, (bit, _)| mask | bit);
    let on = given.filter(|(_, switch)| *switch == Switch::On);
    let flags = on.fold(0, |flags, (bit, _)| flags | bit);
    if mask == 0 { (None, None) } else { (Some(flags), Some(mask)) }
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.action {
        Action::List { manager } => list(manager, paths),
        Action::Create { uri, local, options, manager } => {
            let mut parameters = to_peer(uri, local.as_deref())?;
            options.fill(&mut parameters);
            let face = Manager::open(manager, paths)?.create(&parameters)?;
            let fields = json!({ "face": face, "remote": parameters.uri });
            manager::done(manager, &format!("face {face}"), fields);
            Ok(())
        }
        Action::Update { face, options, manager } => {
            let mut forwarder = Manager::open(manager, paths)?;
            let face = forwarder.face(face, false)?;
            let mut parameters =
                ControlParameters { face_id: Some(face), ..ControlParameters::default() };
            options.fill(&mut parameters);
            forwarder.command("faces/update", &parameters)?;
            manager::done(manager, &format!("face {face} changed"), json!({ "face": face }));
            Ok(())
        }
        Action::Destroy { face, manager } => {
            let mut forwarder = Manager::open(manager, paths)?;
            let face = forwarder.face(face, false)?;
            let parameters =
                ControlParameters { face_id: Some(face), ..ControlParameters::default() };
            forwarder.command("faces/destroy", &parameters)?;
            manager::done(manager, &format!("face {face} ended"), json!({ "face": face }));
            Ok(())
        }
    }
}

fn list(args: &ManagerArgs, paths: &Paths) -> Outcome {
    let faces = Manager::open(args, paths)?.faces()?;
    if args.json {
        faces.iter().for_each(|face| output::json_line(json(face)));
        return Ok(());
    }
    let rows: Vec<Vec<String>> = faces.iter().map(row).collect();
    let header = ["FACE", "REMOTE", "LOCAL", "LIFE", "MTU", "OPTIONS", "IN", "OUT"];
    output::table(&header, &rows);
    Ok(())
}

fn row(face: &FaceStatus) -> Vec<String> {
    let mut options = Vec::new();
    for (bit, text) in [
        (FLAG_LOCAL_FIELDS, "local-fields"),
        (FLAG_RELIABILITY, "reliable"),
        (FLAG_MARKING, "marks"),
    ] {
        if face.flags & bit != 0 {
            options.push(text);
        }
    }
    vec![
        face.face_id.to_string(),
        output::one_line(&face.uri),
        output::one_line(&face.local_uri),
        match face.is_down {
            true => "down".to_owned(),
            false => persistency(face.persistency).to_owned(),
        },
        face.mtu.map_or_else(|| "-".to_owned(), |mtu| mtu.to_string()),
        if options.is_empty() { "-".to_owned() } else { options.join(",") },
        output::size(face.in_bytes),
        output::size(face.out_bytes),
    ]
}

fn persistency(number: u64) -> &'static str {
    match number {
        0 => "persistent",
        1 => "on-demand",
        2 => "permanent",
        _ => "unknown",
    }
}

fn link_type(number: u64) -> &'static str {
    match number {
        0 => "point-to-point",
        1 => "multi-access",
        _ => "ad-hoc",
    }
}

/// All that the forwarder says about a face.
pub(crate) fn json(face: &FaceStatus) -> Value {
    json!({
        "face": face.face_id, "remote": face.uri, "local": face.local_uri,
        "is_local": face.scope == 1, "persistency": persistency(face.persistency),
        "link_type": link_type(face.link_type), "is_down": face.is_down,
        "mtu": face.mtu, "expires_ms": face.expiration_period_ms,
        "local_fields": face.flags & FLAG_LOCAL_FIELDS != 0,
        "reliability": face.flags & FLAG_RELIABILITY != 0,
        "marking": face.flags & FLAG_MARKING != 0,
        "in_interests": face.in_interest_count, "in_data": face.in_data_count,
        "in_nacks": face.in_nack_count, "out_interests": face.out_interest_count,
        "out_data": face.out_data_count, "out_nacks": face.out_nack_count,
        "in_bytes": face.in_bytes, "out_bytes": face.out_bytes,
    })
}
