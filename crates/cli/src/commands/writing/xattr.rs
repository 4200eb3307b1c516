//! `byname xattr`: extended attributes of files and directories of a site.

use super::open_tree;
use crate::commands::site::account::SiteArgs;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_access::Tree;
use byname_packet::Name;
use byname_profile::Paths;
use byname_security::base64;
use serde_json::json;
use std::io::{Read, Write};

/// Octets of a value, at most; names and values of one file together have no more.
const VALUE_BYTES_MAX: u64 = 4096;

/// Extended attributes of files and directories of a site: names below `user.` with values.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname xattr set /lab/run7/a.root user.detector cms
  byname xattr get /lab/run7/a.root user.detector
  byname xattr ls /lab/run7/a.root
  byname xattr rm /lab/run7/a.root user.detector")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Print the value of an attribute, as it is.
    Get {
        #[command(flatten)]
        of: Attribute,
    },
    /// Set an attribute.
    Set {
        #[command(flatten)]
        of: Attribute,
        /// Its value; `-` is what stdin brings.
        #[arg(value_name = "VALUE")]
        value: String,
        /// Fail if it is there.
        #[arg(long, conflicts_with = "replace")]
        create: bool,
        /// Fail if it is not there.
        #[arg(long)]
        replace: bool,
    },
    /// Remove an attribute.
    Rm {
        #[command(flatten)]
        of: Attribute,
    },
    /// Print names and values of all attributes.
    Ls {
        /// Name or link.
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        site: SiteArgs,
        /// One JSON object per attribute.
        #[arg(long)]
        json: bool,
    },
}

/// An attribute of something.
#[derive(Debug, clap::Args)]
struct Attribute {
    /// Name or link.
    #[arg(value_name = "NAME")]
    name: String,
    /// The attribute, `user.` and more.
    #[arg(value_name = "ATTRIBUTE")]
    attribute: String,
    #[command(flatten)]
    site: SiteArgs,
}

impl Attribute {
    fn open(&self, paths: &Paths) -> Outcome<(Tree, Name)> {
        open(&self.site, &self.name, paths)
    }
}

fn open(site: &SiteArgs, name: &str, paths: &Paths) -> Outcome<(Tree, Name)> {
    let (tree, mut names) = open_tree(site, &[name.to_owned()], paths)?;
    let name = names.pop().ok_or_else(|| Failure::usage("which name?"))?;
    Ok((tree, name))
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        Verb::Get { of } => get(of, paths),
        Verb::Set { of, value, create, replace } => {
            let value = match value.as_str() {
                "-" => read_value()?,
                value => value.as_bytes().to_vec(),
            };
            let (mut tree, name) = of.open(paths)?;
            let must_exist = (*create || *replace).then_some(*replace);
            Ok(tree.set_xattr(&name, (of.attribute.as_bytes(), &value), must_exist)?)
        }
        Verb::Rm { of } => {
            let (mut tree, name) = of.open(paths)?;
            Ok(tree.remove_xattr(&name, of.attribute.as_bytes())?)
        }
        Verb::Ls { name, site, json } => list((site, name), *json, paths),
    }
}

fn read_value() -> Outcome<Vec<u8>> {
    let mut value = Vec::new();
    let read = std::io::stdin().lock().take(VALUE_BYTES_MAX + 1).read_to_end(&mut value);
    read.map_err(|error| Failure::new(Code::LocalDisk, format!("stdin: {error}")))?;
    match value.len() as u64 > VALUE_BYTES_MAX {
        true => Err(Failure::usage(format!("a value has at most {VALUE_BYTES_MAX} octets"))),
        false => Ok(value),
    }
}

fn get(of: &Attribute, paths: &Paths) -> Outcome {
    let (mut tree, name) = of.open(paths)?;
    let value = tree.xattr(&name, of.attribute.as_bytes())?;
    let mut out = std::io::stdout().lock();
    match out.write_all(&value).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Code::LocalDisk, format!("cannot write the output: {error}")))
        }
        _ => Ok(()),
    }
}

fn list((site, name): (&SiteArgs, &str), as_json: bool, paths: &Paths) -> Outcome {
    let (mut tree, name) = open(site, name, paths)?;
    let shown = output::name(name.view());
    for (key, value) in tree.xattrs(&name)? {
        let key = output::component(&key);
        if !as_json {
            output::out_line(&format!("{key}={}", output::component(&value)));
            continue;
        }
        output::json_line(match std::str::from_utf8(&value) {
            Ok(value) => json!({ "name": shown, "attribute": key, "value": value }),
            Err(_) => {
                let value = base64::encode_url(&value);
                json!({ "name": shown, "attribute": key, "value_base64url": value })
            }
        });
    }
    Ok(())
}
