//! Mutation tests: whether some test fails when the code is changed in one place.
//!
//! cargo-mutants says which changes ("mutants") there are; what it would build one by one is here
//! built once for each crate. Every mutant becomes a branch that only its number in the environment
//! takes ([`embed`]), and is asked for with those tests alone that come by its place ([`judge`]),
//! so that one costs a fraction of a second. What does not build as a branch and may yet build on
//! its own, as in a `const fn`, is built on its own and has all tests of the crate.
//!
//! The tests that count are those of the mutant's own package. Where an engine is meant to be
//! played by another package, that one's tests count as well ([`PLAYED_BY`]).
//!
//! Operators change with their operands: where cargo-mutants turns the text `a - b * c` into
//! `a - b + c`, the mutant is `a - (b + c)` here.

mod build;
mod embed;
mod judge;
mod list;
mod question;
mod source;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use list::Mutant;

/// Share of the viable mutants that no test may notice.
const SURVIVORS_PERCENT_MAX: usize = 3;

/// Files, by the beginning of their path, and the package that plays them. The engine of the file
/// server executes nothing: its requests are carried out on files, or in memory, one crate above.
const PLAYED_BY: [(&str, &str); 1] = [("crates/transfer/src/server", "byname-store")];

/// Result of the tests of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Caught,
    /// Its tests went on until they were ended.
    TimedOut,
    Missed,
    /// It does not build.
    Unviable,
    /// To be built without the others.
    Alone,
}

/// Tests the mutants that `cargo mutants --list` finds with these options; true if few survive.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<bool> {
    let mutants = list::read(root, options)?;
    let mut by_packages: BTreeMap<Vec<&str>, Vec<&Mutant>> = BTreeMap::new();
    for mutant in &mutants {
        by_packages.entry(packages(mutant)).or_default().push(mutant);
    }
    let mut verdicts = Vec::new();
    for (packages, mutants) in by_packages {
        let judged = test_packages(root, &packages, &mutants)?;
        verdicts.extend(mutants.into_iter().zip(judged));
    }
    print_files(&verdicts);
    let all: Vec<Verdict> = verdicts.iter().map(|(_, verdict)| *verdict).collect();
    let (missed, viable) = (count(&all, Verdict::Missed), viable(&all));
    println!("{missed} of {viable} viable mutants survive");
    Ok(missed * 100 <= viable * SURVIVORS_PERCENT_MAX)
}

/// The package of a mutant, then another whose tests count.
fn packages(mutant: &Mutant) -> Vec<&str> {
    let players = PLAYED_BY.iter().filter(|(start, _)| mutant.file.starts_with(start));
    let players = players.map(|(_, package)| *package);
    std::iter::once(mutant.package.as_str()).chain(players).collect()
}

fn test_packages(root: &Path, packages: &[&str], mutants: &[&Mutant]) -> Result<Vec<Verdict>> {
    let package = packages.join(" and ");
    println!("{package}: {} mutants", mutants.len());
    let copy = build::Copy::new(root, packages, mutants)?;
    let (built, left_out) = copy.build_all()?;
    let tests = judge::Tests::of(built)?;
    let mut verdicts = Vec::new();
    for number in 0..mutants.len() {
        verdicts.push(match left_out.get(&number) {
            Some(verdict) => *verdict,
            None => tests.judge(number)?,
        });
        print(mutants[number], verdicts[number]);
        if (number + 1) % 50 == 0 {
            eprintln!("{package}: {} of {} tested", number + 1, mutants.len());
        }
    }
    eprintln!("{package}: {} to be built one by one", count(&verdicts, Verdict::Alone));
    for (mutant, verdict) in mutants.iter().zip(&mut verdicts) {
        if *verdict == Verdict::Alone {
            *verdict = match copy.build_one(mutant)? {
                Some(built) => tests.judge_other(&built)?,
                None => Verdict::Unviable,
            };
            print(mutant, *verdict);
        }
    }
    Ok(verdicts)
}

/// Prints what is worth a look, as soon as it is known.
fn print(mutant: &Mutant, verdict: Verdict) {
    match verdict {
        Verdict::Missed => println!("survives: {}", mutant.name),
        Verdict::TimedOut => println!("timed out: {}", mutant.name),
        Verdict::Caught | Verdict::Unviable | Verdict::Alone => {}
    }
}

fn count(verdicts: &[Verdict], wanted: Verdict) -> usize {
    verdicts.iter().filter(|verdict| **verdict == wanted).count()
}

fn viable(verdicts: &[Verdict]) -> usize {
    verdicts.len() - count(verdicts, Verdict::Unviable)
}

/// A table: viable, caught, timed out and missed mutants of each file.
fn print_files(verdicts: &[(&Mutant, Verdict)]) {
    let mut files: BTreeMap<&str, Vec<Verdict>> = BTreeMap::new();
    for (mutant, verdict) in verdicts {
        files.entry(&mutant.file).or_default().push(*verdict);
    }
    println!("| file | viable | caught | timed out | survive |\n|---|---|---|---|---|");
    for (file, of_file) in files {
        let [caught, late, missed] =
            [Verdict::Caught, Verdict::TimedOut, Verdict::Missed].map(|it| count(&of_file, it));
        println!("| {file} | {} | {caught} | {late} | {missed} |", viable(&of_file));
    }
}
