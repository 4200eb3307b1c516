//! `byname site lease`: who alone may write a file.

use super::account::SiteArgs;
use crate::commands::writing::open_tree;
use crate::exit::{Failure, Outcome};
use crate::output;
use byname_access::Tree;
use byname_catalog::Command;
use byname_packet::Name;
use byname_profile::Paths;
use serde_json::{Value, json};

/// Write leases: files that somebody alone may write.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: LeaseCommand,
}

#[derive(Debug, clap::Subcommand)]
enum LeaseCommand {
    /// List who has files for writing. Files that nobody has are not listed.
    #[command(after_help = "Examples:
  byname site lease ls /lab/run7/a.root")]
    Ls {
        /// Names or links of files.
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        #[command(flatten)]
        site: SiteArgs,
        /// One JSON object per lease.
        #[arg(long)]
        json: bool,
    },
    /// End the leases of files, should who has them be gone: the file's owner and operators may.
    /// Without --yes this says who has them.
    #[command(after_help = "Examples:
  byname site lease end /lab/run7/a.root --yes

What was being written under a lease that is ended here is refused. Leases end by themselves ten
minutes after their holder has gone.")]
    End {
        /// Names or links of files.
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        /// Do it.
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        site: SiteArgs,
    },
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        LeaseCommand::Ls { names, site, json } => list(names, site, *json, paths),
        LeaseCommand::End { names, yes, site } => {
            let (mut tree, names) = open_tree(site, names, paths)?;
            names.iter().try_for_each(|name| {
                if !yes {
                    return not_ended(&mut tree, name);
                }
                let place = tree.place(name)?;
                Ok(tree.run(name, Command::EndLease { place })?)
            })
        }
    }
}

/// Says who has a file, and that he still has it.
fn not_ended(tree: &mut Tree, name: &Name) -> Outcome {
    let shown = output::name(name.view());
    let leases = tree.query("lease", name)?;
    let Some(lease) = leases.first() else { return Ok(()) };
    let user = output::one_line(lease["user"].as_str().unwrap_or_default());
    let text = format!("{shown}: the lease of {user} was not ended");
    Err(Failure::usage(text).hint("say --yes"))
}

fn list(names: &[String], site: &SiteArgs, is_json: bool, paths: &Paths) -> Outcome {
    let (mut tree, names) = open_tree(site, names, paths)?;
    let mut rows = Vec::new();
    for name in &names {
        let shown = output::name(name.view());
        for lease in tree.query("lease", name)? {
            let user = lease["user"].as_str().unwrap_or_default();
            if is_json {
                output::json_line(
                    json!({ "name": shown, "user": user, "until_ns": lease["until_ns"] }),
                );
            } else {
                rows.push(row(user, &lease, shown.clone()));
            }
        }
    }
    if !is_json {
        output::table(&["USER", "UNTIL", "NAME"], &rows);
    }
    Ok(())
}

fn row(user: &str, lease: &Value, name: String) -> Vec<String> {
    let until_ns = lease["until_ns"].as_u64().unwrap_or_default();
    vec![output::one_line(user), output::time_utc(until_ns), name]
}
