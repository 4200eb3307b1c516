//! `byname umount`: detaches what `byname mount` has attached.

use crate::exit::Outcome;
use std::path::PathBuf;

/// Unmount a tree, also while it is in use: nothing new finds it, and it ends with its last user.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The mount point.
    directory: PathBuf,
}

pub(crate) fn run(args: &Args) -> Outcome {
    Ok(byname_mount::unmount(&args.directory)?)
}
