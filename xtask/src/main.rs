//! Project chores that are too particular for a shell script: `cargo xtask tidy`.
//!
//! Every chore is a check that exits 1 if it finds something; most print findings as
//! `file:line: what to do [rule]`. Nothing here writes a file outside target/, but for the header
//! of the C interface.

mod command;
mod copy;
mod finding;
mod graph;
mod header;
mod imports;
mod licences;
mod mutants;
mod planted;
mod rust;
mod sources;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};

use crate::finding::Finding;

const USAGE: &str = "\
usage: cargo xtask <chore>

  tidy       the house rules: layering, circles, lengths, headers, left-overs, licences
  licences   only the licences of what is linked, against the list in deny.toml
  imports    prints which file of a crate, or of each crate, imports which, and the circles;
             with --check only what breaks the rules on circles and on wings without I/O
  header     makes crates/ffi/include/byname.h anew
  planted    plants each bug of crates/sim/planted, or only those named, alone in a copy of the
             tree, and demands that the simulator's campaign finds it
  mutants    changes code in one place after another and demands that a test notices; options
             choose the places, as those of cargo mutants --list
";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = sources::workspace_root();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => Ok(report("tidy", &tidy::check_tree(&root)?)),
        ["licences"] => {
            let graph = graph::read(&root)?;
            Ok(report("licences", &licences::check(&graph, &licences::allowed(&root)?)))
        }
        ["imports", "--check"] => {
            let crates = imports::read(&sources::read(&root)?, None);
            Ok(report("imports", &imports::check_all(&crates)))
        }
        ["imports", names @ ..] if names.len() <= 1 => {
            let crates = imports::read(&sources::read(&root)?, names.first().copied());
            ensure!(!crates.is_empty(), "no crate is called {}", names.concat());
            crates.iter().for_each(imports::Imports::print);
            Ok(ExitCode::SUCCESS)
        }
        ["header"] => {
            header::write(&root, &sources::read(&root)?)?;
            Ok(ExitCode::SUCCESS)
        }
        ["planted", names @ ..] => Ok(exit_code(planted::run(&root, names)?)),
        ["mutants", options @ ..] => Ok(exit_code(mutants::run(&root, options)?)),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("no such chore\n{USAGE}"),
    }
}

fn exit_code(is_good: bool) -> ExitCode {
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(chore: &str, findings: &[Finding]) -> ExitCode {
    for finding in findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("{chore}: nothing to do");
            ExitCode::SUCCESS
        }
        count => {
            println!("{chore}: {count} finding{}", if count == 1 { "" } else { "s" });
            ExitCode::FAILURE
        }
    }
}
