//! `byname find`: names in a published tree that fit.

use crate::exit::{Failure, Outcome};
use crate::output;
use crate::target::{Pace, ReadArgs, Session};
use crate::walk::{self, Found, Wanted};
use byname_profile::Paths;
use globset::{GlobBuilder, GlobMatcher};
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Print the names in a directory and all below it that fit.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname find /lab/run7
  byname find /lab --name '*.root' --type file")]
pub(crate) struct Args {
    /// Name or link of a directory.
    target: String,
    /// Only entries whose last component fits this pattern.
    #[arg(long, value_name = "GLOB")]
    name: Option<String>,
    /// Only entries of this kind.
    #[arg(long = "type", value_enum, value_name = "KIND")]
    kind: Option<Kind>,
    #[command(flatten)]
    read: ReadArgs,
    /// One JSON object per entry.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    #[value(alias = "f")]
    File,
    #[value(alias = "d")]
    Directory,
    #[value(alias = "l")]
    Symlink,
}

impl Kind {
    fn of(found: &Found<'_>) -> Self {
        match found.link_target() {
            Some(_) => Self::Symlink,
            None if found.is_directory => Self::Directory,
            None => Self::File,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
        }
    }
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let pattern = args.name.as_deref().map(matcher).transpose()?;
    let mut session = Session::open(&args.target, &args.read, Pace::default(), paths)?;
    session.run(|client, name| {
        walk::published(client, name, Wanted::Details, &mut |_, found| {
            let kind = Kind::of(found);
            let last = found.name.view().last().map_or(&[][..], |component| component.value);
            let fits = pattern.as_ref().is_none_or(|it| it.is_match(OsStr::from_bytes(last)));
            if fits && args.kind.is_none_or(|wanted| wanted == kind) {
                show(args, found, kind);
            }
            Ok(kind == Kind::Directory)
        })
    })
}

fn matcher(pattern: &str) -> Outcome<GlobMatcher> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(Failure::usage)
}

fn show(args: &Args, found: &Found<'_>, kind: Kind) {
    let name = output::name(found.name.view());
    if args.json {
        let size = found.details.and_then(|entry| entry.size);
        output::json_line(json!({ "name": name, "type": kind.word(), "size": size }));
    } else {
        output::out_line(&name);
    }
}
