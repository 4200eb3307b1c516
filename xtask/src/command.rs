//! Programs that the chores ask: git and cargo.

use std::path::Path;

use anyhow::{Context, Result, bail};

/// Runs a program in `root` and returns what it printed.
pub(crate) fn output_of(root: &Path, program: &str, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = std::process::Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}
