//! `byname completions` and `byname man`: what shells and man(1) know of the command line, made
//! from the flags themselves.

use crate::exit::{Code, Failure, Outcome};
use std::io::Write;
use std::path::PathBuf;

/// Print the completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  source <(byname completions bash)
  byname completions zsh > ~/.zfunc/_byname
  byname completions fish > ~/.config/fish/completions/byname.fish

`make install` puts them where shells look.")]
pub(crate) struct CompletionArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Write the man pages into a directory: byname.1 and one for each command.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// The directory; made if it is missing.
    dir: PathBuf,
}

pub(crate) fn completions(args: &CompletionArgs, mut program: clap::Command) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut program, "byname", &mut text);
    let written = std::io::stdout().lock().write_all(&text);
    written.map_err(|error| Failure::new(Code::LocalDisk, format!("cannot write: {error}")))
}

pub(crate) fn man(args: &ManArgs, program: clap::Command) -> Outcome {
    let failed = |error| Failure::disk(&args.dir, error);
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    clap_mangen::generate_to(program, &args.dir).map_err(failed)
}
