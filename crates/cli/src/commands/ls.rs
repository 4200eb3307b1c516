//! `byname ls`: what is published in a directory.

use crate::exit::Outcome;
use crate::output;
use crate::paths::Paths;
use crate::target::{self, Pace, ReadArgs, Session};
use crate::walk;
use byname_client::{Client, ClientError};
use byname_packet::Name;
use byname_transfer::discovery::Discovered;
use byname_transfer::metadata::ContentRoot;
use serde_json::{Value, json};

/// List a directory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname ls /lab/run7
  byname ls -lR /lab/run7
  byname ls --json /lab | jq -r .name

Names are printed so that they can be pasted back.")]
pub(crate) struct Args {
    /// Name or link.
    target: String,
    /// With permissions, size and time.
    #[arg(short, long)]
    long: bool,
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
        Err(error) if target::is_a_file(&error) => {
            let found = client.stat(name)?;
            show(args, name, &output::name(name.view()), Some(&found), false);
            Ok(())
        }
        other => other,
    })
}

fn list(args: &Args, client: &mut Client, name: &Name) -> Result<(), ClientError> {
    let depth = name.view().count();
    walk::published(client, name, &mut |client, found| {
        let relative = found.name.view().suffix(depth).to_name();
        let shown: Vec<String> =
            relative.view().components().map(|c| output::component(c.value)).collect();
        let details = if args.long { Some(client.stat(&found.name)?) } else { None };
        show(args, &found.name, &shown.join("/"), details.as_ref(), found.is_directory);
        Ok(args.recursive)
    })
}

fn show(args: &Args, name: &Name, shown: &str, details: Option<&Discovered>, is_directory: bool) {
    if args.json {
        let mut fields = json!({
            "name": output::name(name.view()),
            "type": if is_directory { "directory" } else { "file" },
        });
        if let (Value::Object(fields), Some(details)) = (&mut fields, details)
            && let Value::Object(more) = describe(details)
        {
            fields.extend(more);
        }
        output::json_line(fields);
        return;
    }
    let mark = if is_directory { "/" } else { "" };
    let Some(details) = details.filter(|_| args.long) else {
        output::out_line(&format!("{shown}{mark}"));
        return;
    };
    let metadata = &details.metadata;
    output::out_line(&format!(
        "{} {:>14} {} {shown}{mark}",
        metadata.mode.map(|mode| output::mode(u32::from(mode))).unwrap_or_default(),
        metadata.size.map(|size| size.to_string()).unwrap_or_else(|| "-".into()),
        metadata.mtime_ns.map(output::time).unwrap_or_default(),
    ));
}

/// What is known of a version, as JSON.
pub(crate) fn describe(found: &Discovered) -> Value {
    let metadata = &found.metadata;
    let root = match metadata.root {
        ContentRoot::Known(root) => Some(byname_security::tree::Hash(root).to_string()),
        ContentRoot::Pending | ContentRoot::Absent => None,
    };
    let fields = json!({
        "type": if metadata.is_directory() { "directory" } else { "file" },
        "size": metadata.size.or(metadata.listing_size),
        "mode": metadata.mode.map(|mode| format!("{:o}", mode & 0o7777)),
        "mtime_ns": metadata.mtime_ns,
        "version": metadata.version(),
        "segment_bytes": metadata.segment_size.or(metadata.listing_segment_size),
        "root": root,
    });
    match fields {
        Value::Object(all) => all.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        other => other,
    }
}
