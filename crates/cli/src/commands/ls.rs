//! `byname ls`: what is published in a directory.

use crate::exit::Outcome;
use crate::failure;
use crate::output;
use crate::target::{Pace, ReadArgs, Session};
use crate::walk::{self, Wanted};
use byname_client::{Client, ClientError};
use byname_packet::Name;
use byname_profile::Paths;
use byname_security::tree::Hash;
use byname_transfer::attributes::ObjectKind;
use byname_transfer::checksums::Algorithm;
use byname_transfer::discovery::Discovered;
use byname_transfer::manifest::Entry;
use byname_transfer::metadata::ContentRoot;
use serde_json::{Value, json};

/// List a directory.
#[derive(Debug, clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "Examples:
  byname ls /lab/run7
  byname ls -lhR /lab/run7
  byname ls --json /lab | jq -r .name

Names are printed so that they can be pasted back."
)]
pub(crate) struct Args {
    /// Name or link.
    target: String,
    /// With permissions, size and time.
    #[arg(short, long)]
    long: bool,
    /// With -l, sizes as people read them.
    #[arg(short = 'h', long = "human-readable")]
    human: bool,
    #[command(flatten)]
    time: output::TimeArgs,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// With everything below.
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    read: ReadArgs,
    /// One JSON object per entry.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let mut session = Session::open(&args.target, &args.read, Pace::default(), paths)?;
    session.run(|client, name| match list(args, client, name) {
        Err(error) if failure::is_a_file(&error) => {
            let details = Details::of(&client.lookup(name)?);
            show(args, name, &output::name(name.view()), Some(&details), false);
            Ok(())
        }
        other => other,
    })
}

fn list(args: &Args, client: &mut Client, name: &Name) -> Result<(), ClientError> {
    let depth = name.view().count();
    // Only details tell a link from what it leads to, and a link is not looked into.
    let wanted = if args.long || args.recursive { Wanted::Details } else { Wanted::Names };
    walk::published(client, name, wanted, &mut |client, found| {
        let relative = found.name.view().suffix(depth).to_name();
        let shown: Vec<String> =
            relative.view().components().map(|c| output::component(c.value)).collect();
        let details = match &found.details {
            Some(entry) => Some(Details::of_entry(entry)),
            None if args.long => Some(Details::of(&client.lookup(&found.name)?)),
            None => None,
        };
        show(args, &found.name, &shown.join("/"), details.as_ref(), found.is_directory);
        Ok(args.recursive && found.link_target().is_none())
    })
}

/// Details of an entry beside its name.
struct Details {
    mode: Option<u16>,
    size: Option<u64>,
    mtime_ns: Option<u64>,
    link_target: Option<Vec<u8>>,
    json: Value,
}

impl Details {
    fn of(found: &Discovered) -> Self {
        let metadata = &found.metadata;
        let json = describe(found);
        let link_target = metadata.attributes().link_target.map(<[u8]>::to_vec);
        let (mode, size, mtime_ns) = (metadata.mode, metadata.size, metadata.mtime_ns);
        Self { mode, size, mtime_ns, link_target, json }
    }

    fn of_entry(entry: &Entry<'_>) -> Self {
        let root = entry.version.and_then(|version| version.root);
        let json = present(json!({
            "type": kind(entry.kind()),
            "target": entry.attributes.link_target.map(output::component_path),
            "size": entry.size,
            "mode": format!("{:o}", entry.mode & 0o7777),
            "mtime_ns": entry.mtime_ns,
            "version": entry.version.map(|version| version.number),
            "segment_bytes": entry.version.map(|version| version.segment_bytes),
            "root": root.map(|root| Hash(root).to_string()),
            "media_type": entry.attributes.media_type,
        }));
        let link_target = entry.attributes.link_target.map(<[u8]>::to_vec);
        let (mode, size, mtime_ns) = (Some(entry.mode), entry.size, entry.mtime_ns);
        Self { mode, size, mtime_ns, link_target, json }
    }
}

fn show(args: &Args, name: &Name, shown: &str, details: Option<&Details>, is_directory: bool) {
    if args.json {
        let mut fields = json!({
            "name": output::name(name.view()),
            "type": if is_directory { "directory" } else { "file" },
        });
        if let (Value::Object(fields), Some(details)) = (&mut fields, details)
            && let Value::Object(more) = &details.json
        {
            fields.extend(more.clone());
        }
        output::json_line(fields);
        return;
    }
    let target = details.and_then(|details| details.link_target.as_deref());
    let mark = if is_directory { "/" } else { "" };
    let Some(details) = details.filter(|_| args.long) else {
        output::out_line(&format!("{shown}{mark}"));
        return;
    };
    let mode = match target {
        Some(_) => Some("lrwxrwxrwx".to_owned()),
        None => details.mode.map(|mode| output::mode(u32::from(mode))),
    };
    let size = details.size.map(|bytes| match args.human {
        true => output::size(bytes),
        false => bytes.to_string(),
    });
    let arrow = target.map(|target| format!(" -> {}", output::component_path(target)));
    output::out_line(&format!(
        "{} {:>14} {} {shown}{mark}{}",
        mode.unwrap_or_default(),
        size.unwrap_or_else(|| "-".into()),
        details.mtime_ns.map(|ns| output::time(ns, args.time)).unwrap_or_default(),
        arrow.unwrap_or_default(),
    ));
}

/// Facts of a version, as JSON.
pub(crate) fn describe(found: &Discovered) -> Value {
    let metadata = &found.metadata;
    let root = match metadata.root {
        ContentRoot::Known(root) => Some(Hash(root).to_string()),
        ContentRoot::Pending | ContentRoot::Absent => None,
    };
    let mut fields = json!({
        "type": kind(metadata.kind()),
        "target": metadata.attributes().link_target.map(output::component_path),
        "size": metadata.size.or(metadata.listing_size),
        "mode": metadata.mode.map(|mode| format!("{:o}", mode & 0o7777)),
        "mtime_ns": metadata.mtime_ns,
        "version": metadata.version(),
        "segment_bytes": metadata.segment_size.or(metadata.listing_segment_size),
        "root": root,
        "media_type": metadata.attributes().media_type,
    });
    for algorithm in Algorithm::ALL {
        fields[algorithm.name()] = metadata.attributes().checksums.get(algorithm).map(hex).into();
    }
    present(fields)
}

/// Octets as two digits each.
pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The word for a kind of object.
fn kind(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::File => "file",
        ObjectKind::Directory => "directory",
        ObjectKind::Link => "symlink",
    }
}

/// Without what is not known.
fn present(fields: Value) -> Value {
    match fields {
        Value::Object(all) => all.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        other => other,
    }
}
