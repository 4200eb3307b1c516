//! `byname remote`: short names for links.

use crate::exit::{Failure, Outcome};
use crate::output;
use byname_profile::{Link, Paths, Remotes};
use serde_json::json;

/// Keep links under short names: `byname get lab:run7/x`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname remote add lab byname:/lab,via=tcp://host:6363,key=SHA256:…
  byname ls lab:run7
  byname remote list")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: RemoteCommand,
}

#[derive(Debug, clap::Subcommand)]
enum RemoteCommand {
    /// Keep a link. Its key counts for its name when it is used.
    Add {
        /// The short name.
        name: String,
        /// The link.
        link: String,
    },
    /// List what is kept.
    List {
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Give a link another short name.
    Rename {
        /// The name it has.
        old: String,
        /// The name it gets.
        new: String,
    },
    /// Forget a link.
    Remove {
        /// The short name.
        name: String,
    },
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let remotes = Remotes::new(&paths.remotes);
    match &args.command {
        RemoteCommand::Add { name, link } => {
            let text = link;
            let link: Link = text.parse()?;
            if link.key.is_none() && byname_profile::link::may_be_cut(text) {
                return Err(Failure::usage("the link has no key").hint(crate::failure::CUT_HINT));
            }
            Ok(remotes.add(name, &link)?)
        }
        RemoteCommand::List { json } => list(&remotes, *json),
        RemoteCommand::Rename { old, new } => Ok(remotes.rename(old, new)?),
        RemoteCommand::Remove { name } => Ok(remotes.remove(name)?),
    }
}

fn list(remotes: &Remotes, json: bool) -> Outcome {
    let all = remotes.list()?;
    if json {
        for (name, link) in &all {
            let published = output::name(link.name.view());
            let key = link.key.map(|key| key.to_string());
            output::json_line(json!({
                "remote": name, "name": published, "via": link.via, "key": key,
                "link": link.to_string(),
            }));
        }
        return Ok(());
    }
    let rows: Vec<Vec<String>> =
        all.iter().map(|(name, link)| vec![name.clone(), link.to_string()]).collect();
    output::table(&["NAME", "LINK"], &rows);
    Ok(())
}
