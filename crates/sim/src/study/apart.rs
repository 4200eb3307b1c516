//! Cells of studies in processes of their own.
//!
//! An allocator keeps what it once had, so what is resident more than before says little in a
//! process that has done other work. A cell whose memory counts is therefore played by this
//! program once more, as `byname-sim cell WORDS…`, which prints one line of numbers. Where this
//! program is another one (a test), the cell is played in place.

use std::process::{Command, Stdio};

/// Output of a process of its own for these words; `None` if there is none, or if it failed.
pub(super) fn ask(words: &[&str]) -> Option<String> {
    let program = std::env::current_exe().ok().filter(|it| it.ends_with("byname-sim"))?;
    let mut command = Command::new(program);
    let output = command.arg("cell").args(words).stderr(Stdio::inherit()).output().ok()?;
    let said = output.status.success().then_some(output.stdout)?;
    String::from_utf8(said).ok()
}
