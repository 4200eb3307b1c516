//! `byname site move-engine`: a site's catalog in another engine.

use super::defaults::directory;
use crate::exit::{Code, Failure, Outcome, chain};
use crate::output;
use byname_head::{EngineAddress, MoveError, Moved, move_engine};
use byname_profile::Paths;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Pause between two words about how far the copy is.
const SHOWN_EVERY: Duration = Duration::from_secs(2);

/// Move a site's catalog to another engine, and prove that it says the same.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname site move-engine /lab 'postgres:host=/run/postgresql dbname=lab'
  byname site move-engine /lab embedded

No head may run meanwhile. All rows are copied, both engines are read, and the digests of what they
have have to be the same before the new one counts. Interrupted, the command is run again.")]
pub(super) struct Args {
    /// The site.
    name: String,
    /// Where its catalog goes: `embedded`, or `postgres:` and a database.
    #[arg(value_name = "ENGINE")]
    to: EngineAddress,
    /// The catalog's directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    let dir = directory(Some(&args.name), args.dir.as_deref(), paths)?;
    let mut shown = Instant::now();
    let Moved { rows, digest } = move_engine(&dir, &args.to, &mut |rows| {
        if shown.elapsed() > SHOWN_EVERY && output::stderr_is_terminal() {
            shown = Instant::now();
            output::err_line(&format!("{} so far", output::count(rows, "row")));
        }
    })?;
    let digest = blake3::Hash::from(digest).to_hex().to_string();
    if args.json {
        let engine = args.to.kind();
        output::json_line(json!({ "engine": engine, "rows": rows, "digest": digest }));
    } else {
        let rows = output::count(rows, "row");
        output::out_line(&format!("moved {rows} to {}; digest of both {digest}", args.to.kind()));
    }
    Ok(())
}

impl From<MoveError> for Failure {
    fn from(error: MoveError) -> Self {
        let text = chain(&error);
        match error {
            MoveError::NoSite(error) => error.into(),
            MoveError::Address(error) => error.into(),
            MoveError::IsThere { .. } => Self::usage(text),
            MoveError::Occupied => {
                Self::new(Code::LocalDisk, text).hint("give a database that is empty")
            }
            MoveError::Differs { .. } | MoveError::Changed | MoveError::Engine(_) => {
                Self::new(Code::LocalDisk, text)
            }
        }
    }
}
