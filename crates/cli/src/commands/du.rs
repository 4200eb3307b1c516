//! `byname du`: octets and files in published directories.

use crate::exit::Outcome;
use crate::failure;
use crate::output;
use crate::target::{Pace, ReadArgs, Session};
use crate::walk::{self, Wanted};
use byname_client::{Client, ClientError};
use byname_packet::Name;
use byname_profile::Paths;
use serde_json::json;

/// Add up the sizes of the files in a directory and all below it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname du /lab/run7")]
pub(crate) struct Args {
    /// Names or links.
    #[arg(value_name = "NAME", required = true)]
    targets: Vec<String>,
    #[command(flatten)]
    read: ReadArgs,
    /// One JSON object per name.
    #[arg(long)]
    json: bool,
}

/// Contents of a tree; a file with two names counts twice, a link for nothing.
#[derive(Debug, Default)]
struct Sum {
    bytes: u64,
    files: u64,
    directories: u64,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let mut rows = Vec::new();
    for target in &args.targets {
        let mut session = Session::open(target, &args.read, Pace::default(), paths)?;
        let sum = session.run(|client, name| match sum(client, name) {
            Err(error) if failure::is_a_file(&error) => {
                let bytes = client.lookup(name)?.metadata.size.unwrap_or(0);
                Ok(Sum { bytes, files: 1, directories: 0 })
            }
            sum => sum,
        })?;
        let name = output::name(session.name.view());
        let Sum { bytes, files, directories } = sum;
        if args.json {
            output::json_line(json!({
                "name": name, "bytes": bytes, "files": files, "directories": directories,
            }));
        } else {
            rows.push(vec![output::size(bytes), output::count(files, "file"), name]);
        }
    }
    if !args.json {
        output::table(&["SIZE", "FILES", "NAME"], &rows);
    }
    Ok(())
}

fn sum(client: &mut Client, name: &Name) -> Result<Sum, ClientError> {
    let mut sum = Sum::default();
    walk::published(client, name, Wanted::Details, &mut |client, found| {
        if found.link_target().is_some() {
            return Ok(false);
        }
        if found.is_directory {
            sum.directories += 1;
            return Ok(true);
        }
        let size = match found.details.and_then(|entry| entry.size) {
            Some(size) => size,
            None => client.lookup(&found.name)?.metadata.size.unwrap_or(0),
        };
        sum.bytes = sum.bytes.saturating_add(size);
        sum.files += 1;
        Ok(false)
    })?;
    Ok(sum)
}
