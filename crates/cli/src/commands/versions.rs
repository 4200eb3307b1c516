//! `byname versions`: what files of a site were before.

use super::site::account::SiteArgs;
use super::writing::open_tree;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_access::{AccessError, FileVersion, Tree};
use byname_catalog::Refusal;
use byname_packet::Name;
use byname_profile::Paths;
use serde_json::json;
use std::io::{Seek, Write};

/// Show what a file of a site was before, and make it that again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: VersionsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum VersionsCommand {
    /// List the versions of a file that the site keeps, the oldest first, the current one at last.
    #[command(after_help = "Examples:
  byname versions ls /lab/run7/a.root
  byname versions ls /lab/run7/a.root --json

How many are kept says `byname site policy set NAME --versions COUNT`.")]
    Ls {
        /// Name or link of the file.
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        site: SiteArgs,
        /// One JSON object a version.
        #[arg(long)]
        json: bool,
    },
    /// Print a version of a file, verified.
    #[command(after_help = "Example:
  byname versions cat /lab/run7/a.root 4711 > a.root")]
    Cat {
        /// Name or link of the file.
        #[arg(value_name = "NAME")]
        name: String,
        /// The version, as `ls` shows it.
        #[arg(value_name = "VERSION")]
        version: u64,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Make an old version the current one again.
    #[command(after_help = "Example:
  byname versions restore /lab/run7/a.root 4711

It becomes a new version with the same octets; the one that was current is kept as any that is
replaced. Disks take what they have of the old version and are brought nothing of it.")]
    Restore {
        /// Name or link of the file.
        #[arg(value_name = "NAME")]
        name: String,
        /// The version, as `ls` shows it.
        #[arg(value_name = "VERSION")]
        version: u64,
        #[command(flatten)]
        site: SiteArgs,
    },
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        VersionsCommand::Ls { name, site, json } => {
            let (mut tree, name) = open(name, site, paths)?;
            list(&tree.versions(&name)?, *json);
            Ok(())
        }
        VersionsCommand::Cat { name, version, site } => {
            let (mut tree, name) = open(name, site, paths)?;
            let found = tree.version(&name, *version).map_err(unknown)?;
            let mut file = tree.read_version(&name, &found)?;
            let mut out = std::io::stdout().lock();
            let copied = file.rewind().and_then(|()| std::io::copy(&mut file, &mut out));
            match copied.and_then(|_| out.flush()) {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                    Err(Failure::new(Code::LocalDisk, format!("cannot write: {error}")))
                }
                _ => Ok(()),
            }
        }
        VersionsCommand::Restore { name, version, site } => {
            let (mut tree, name) = open(name, site, paths)?;
            tree.restore_version(&name, *version).map_err(unknown)
        }
    }
}

fn open(name: &str, site: &SiteArgs, paths: &Paths) -> Outcome<(Tree, Name)> {
    let (tree, names) = open_tree(site, &[name.to_owned()], paths)?;
    let name = names.into_iter().next().ok_or_else(|| Failure::usage("one name"))?;
    Ok((tree, name))
}

fn unknown(error: AccessError) -> Failure {
    let is_unknown = matches!(error, AccessError::At { refusal: Refusal::NoContent, .. });
    let failure = Failure::from(error);
    match is_unknown {
        true => Failure { code: Code::NotFound, ..failure }
            .hint("`byname versions ls` shows those that are kept"),
        false => failure,
    }
}

fn list(versions: &[FileVersion], json: bool) {
    if json {
        for version in versions {
            let (replaced_ns, replaced_by) = version.replaced.clone().unzip();
            output::json_line(json!({
                "version": version.version,
                "current": version.replaced.is_none(),
                "size": version.size,
                "modified_ns": version.modified_ns,
                "root": version.root,
                "replaced_ns": replaced_ns,
                "replaced_by": replaced_by,
            }));
        }
        return;
    }
    let row = |version: &FileVersion| {
        let replaced = match &version.replaced {
            Some((at_ns, by)) => format!("{} by {by}", output::time_utc(*at_ns)),
            None => "current".to_owned(),
        };
        vec![
            version.version.to_string(),
            output::size(version.size),
            output::time_utc(version.modified_ns),
            version.root.clone(),
            output::one_line(&replaced),
        ]
    };
    let rows: Vec<_> = versions.iter().map(row).collect();
    output::table(&["VERSION", "SIZE", "MODIFIED", "ROOT", "REPLACED"], &rows);
}
