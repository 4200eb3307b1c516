//! Planted bugs: whether the simulator's campaign finds what it is there to find.
//!
//! `crates/sim/planted` describes one bug a file, as text to be replaced in production code. All
//! are planted in one copy of the tree, which is built once; `PLANTED` in a replacement holds where
//! that bug was asked for by its name in the environment. A campaign with a fixed seed and a time
//! box must fail for each bug with a promise that its description names, and pass without any.
//! Production code knows nothing of all this, and a description that no longer fits it is an error.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::copy;

const FOLDER: &str = "crates/sim/planted";
/// Campaigns begin with the same seed everywhere, so that a bug that is found is found again; with
/// another one where a description says so, because few scenarios show its bug.
const SEED: u64 = 1;
/// Scenarios that must pass without a bug.
const CLEAN_COUNT: u64 = 100;
/// By the machine's clock, for one bug.
const SECONDS_MAX: u64 = 60;
/// Names the bug that is asked for, in the environment of the campaign.
const SWITCH: &str = "BYNAME_PLANTED";
/// Has a name of its own, so that the one of the tree stays what it is.
const BINARY: &str = "byname-sim-planted";

/// Text that is replaced.
struct Edit {
    file: String,
    search: String,
    replace: String,
}

/// A bug.
struct Bug {
    name: String,
    edits: Vec<Edit>,
    /// Any of these, in what the campaign prints.
    expect: Vec<String>,
    /// It is found by a campaign of sites rather than networks.
    is_of_sites: bool,
    /// With which its campaign begins.
    seed: u64,
}

/// Plants the bugs named, or all, and plays a campaign for each; true if each is found.
pub(crate) fn run(root: &Path, names: &[&str]) -> Result<bool> {
    let mut bugs = read(root)?;
    for name in names {
        ensure!(bugs.iter().any(|bug| bug.name == *name), "no bug is called {name}");
    }
    bugs.retain(|bug| names.is_empty() || names.contains(&bug.name.as_str()));
    let tree = root.join("target/planted/tree");
    copy::make(root, &tree, &plant(root, &bugs)?)?;
    let began = Instant::now();
    let binary = build(root, &tree)?;
    println!("{:<22} in {:.0} s", "built", began.elapsed().as_secs_f64());
    let mut is_good = judge(&binary, Case::Clean { is_of_sites: false })?;
    is_good &= judge(&binary, Case::Clean { is_of_sites: true })?;
    for bug in &bugs {
        is_good &= judge(&binary, Case::Planted(bug))?;
    }
    Ok(is_good)
}

/// A campaign.
#[derive(Clone, Copy)]
enum Case<'a> {
    /// Without any bug.
    Clean { is_of_sites: bool },
    /// With this one.
    Planted(&'a Bug),
}

/// Runs the campaign with one bug or none; true if it does what it should.
fn judge(binary: &Path, case: Case<'_>) -> Result<bool> {
    let (bug, is_of_sites, seed) = match case {
        Case::Clean { is_of_sites } => (None, is_of_sites, SEED),
        Case::Planted(bug) => (Some(bug), bug.is_of_sites, bug.seed),
    };
    let began = Instant::now();
    let mut campaign = Command::new(binary);
    campaign.args(["campaign", "--jobs", "2", "--seed", &seed.to_string()]);
    campaign.args(["--seconds", &SECONDS_MAX.to_string()]);
    if is_of_sites {
        campaign.arg("--sites");
    }
    match bug {
        Some(bug) => campaign.env(SWITCH, &bug.name),
        None => campaign.env_remove(SWITCH).args(["--count", &CLEAN_COUNT.to_string()]),
    };
    let output = campaign.output().context("cannot run the campaign")?;
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let seconds = began.elapsed().as_secs_f64();
    let expected = |bug: &Bug| bug.expect.iter().any(|words| printed.contains(words.as_str()));
    let verdict = match (bug, output.status.success()) {
        (None, true) => "passes, as it should".to_owned(),
        (None, false) => "FAILS, but should pass".to_owned(),
        (Some(_), true) => format!("NOT FOUND within {SECONDS_MAX} s"),
        (Some(bug), false) if expected(bug) => "found".to_owned(),
        (Some(bug), false) => format!("FAILS without a word of {:?}", bug.expect),
    };
    let is_good = verdict.starts_with(['p', 'f']);
    let name = bug.map_or("without a bug", |bug| bug.name.as_str());
    println!("{name:<22} {verdict} ({seconds:.1} s)");
    let promise = printed.lines().filter(|line| line.contains("promise broken") || !is_good);
    promise.for_each(|line| println!("    {line}"));
    Ok(is_good)
}

/// The campaign's binary, built from the copy beside what the tree itself has built: libraries from
/// elsewhere are the same for both.
fn build(root: &Path, tree: &Path) -> Result<PathBuf> {
    let target = copy::target(root);
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        // Of the whole workspace, so that libraries have the features they have in its tests. Its
        // lock file is the tree's, but for the version of its own crates.
        .args(["build", "--offline", "--quiet", "--workspace", "--bin", BINARY])
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", &target)
        // Of whoever runs this chore; they would make everything be built anew.
        .env_remove("CARGO_MANIFEST_DIR")
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("it does not build: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(target.join("debug").join(BINARY))
}

/// The files of the tree at `root` that the bugs change, with their text afterwards.
fn plant(root: &Path, bugs: &[Bug]) -> Result<BTreeMap<String, String>> {
    let mut planted = BTreeMap::new();
    edit(root, &mut planted, "the copy's identity", &identity(root)?)?;
    for bug in bugs {
        edit(root, &mut planted, &bug.name, &bug.edits)?;
    }
    Ok(planted)
}

/// Edits that keep the copy's crates apart from the tree's in the folder where both are built.
fn identity(root: &Path) -> Result<[Edit; 2]> {
    let (search, replace) = copy::version_with(root, "-planted")?;
    let binary = |name: &str| format!("[[bin]]\nname = \"{name}\"");
    Ok([
        Edit { file: "Cargo.toml".to_owned(), search, replace },
        Edit {
            file: "crates/sim/Cargo.toml".to_owned(),
            search: binary("byname-sim"),
            replace: binary(BINARY),
        },
    ])
}

fn edit(
    root: &Path,
    planted: &mut BTreeMap<String, String>,
    name: &str,
    edits: &[Edit],
) -> Result<()> {
    let is_asked_for =
        format!("(::std::env::var_os({SWITCH:?}).is_some_and(|asked| asked == {name:?}))");
    for Edit { file, search, replace } in edits {
        let text = match planted.get(file) {
            Some(text) => text.clone(),
            None => fs::read_to_string(root.join(file))
                .with_context(|| format!("{name}: cannot read {file}"))?,
        };
        let count = text.matches(search).count();
        ensure!(
            count == 1,
            "{FOLDER}/{name}.toml no longer applies: its text occurs {count} times in {file}:\n\
             {search}"
        );
        let replace = replace.replace("PLANTED", &is_asked_for);
        planted.insert(file.clone(), text.replacen(search, &replace, 1));
    }
    Ok(())
}

/// All descriptions, in the order of their names.
fn read(root: &Path) -> Result<Vec<Bug>> {
    let mut bugs = Vec::new();
    for entry in fs::read_dir(root.join(FOLDER)).with_context(|| format!("cannot list {FOLDER}"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path)?;
            let bug =
                parse(name.clone(), &text).with_context(|| format!("{FOLDER}/{name}.toml"))?;
            bugs.push(bug);
        }
    }
    bugs.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(bugs)
}

fn parse(name: String, text: &str) -> Result<Bug> {
    let table: toml::Table = text.parse()?;
    let expect = table.get("expect").and_then(toml::Value::as_array).context("expect = […]")?;
    let expect = expect.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect();
    let edits = table.get("edit").and_then(toml::Value::as_array).context("[[edit]]")?;
    let edits = edits.iter().map(|edit| {
        let field = |key: &str| {
            let found = edit.get(key).and_then(toml::Value::as_str);
            found.map(str::to_owned).with_context(|| format!("an edit without {key}"))
        };
        Ok(Edit { file: field("file")?, search: field("search")?, replace: field("replace")? })
    });
    let is_of_sites = match table.get("campaign").and_then(toml::Value::as_str) {
        None => false,
        Some("sites") => true,
        Some(other) => bail!("no campaign is called {other}"),
    };
    let seed = match table.get("seed").map(toml::Value::as_integer) {
        None => SEED,
        Some(seed) => {
            seed.and_then(|seed| seed.try_into().ok()).context("seed is no number from 0 on")?
        }
    };
    Ok(Bug { name, edits: edits.collect::<Result<_>>()?, expect, is_of_sites, seed })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUG: &str = "expect = [\"no octet differs\"]\n[[edit]]\nfile = \"a.rs\"\n\
        search = \"a <= b\"\nreplace = \"a < b || !PLANTED && a == b\"\n";

    /// Plants the bug in a tree with this file; returns the edited text.
    fn planted(text: &str) -> Result<String> {
        let tree = tempfile::tempdir().unwrap();
        fs::write(tree.path().join("a.rs"), text).unwrap();
        let bug = parse("off-by-one".to_owned(), BUG).unwrap();
        let mut planted = BTreeMap::new();
        edit(tree.path(), &mut planted, &bug.name, &bug.edits)?;
        assert_eq!(fs::read_to_string(tree.path().join("a.rs")).unwrap(), text, "it stays");
        Ok(planted.remove("a.rs").unwrap())
    }

    #[test]
    fn a_bug_is_there_for_who_asks_for_it() {
        let asked = "(::std::env::var_os(\"BYNAME_PLANTED\")\
            .is_some_and(|asked| asked == \"off-by-one\"))";
        let expected = format!("if a < b || !{asked} && a == b {{}}");
        assert_eq!(planted("if a <= b {}").unwrap(), expected);
    }

    #[test]
    fn a_campaign_begins_with_the_seed_that_a_description_names() {
        let seed_of = |line: &str| parse("bug".to_owned(), &format!("{line}{BUG}"));
        assert_eq!(seed_of("").unwrap().seed, SEED);
        assert_eq!(seed_of("seed = 13\n").unwrap().seed, 13);
        for line in ["seed = -1\n", "seed = \"13\"\n"] {
            assert!(seed_of(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_description_that_no_longer_fits_is_an_error() {
        for text in ["if a < b {}", "a <= b; a <= b"] {
            let error = planted(text).unwrap_err().to_string();
            assert!(error.contains("no longer applies"), "{error}");
        }
    }

    #[test]
    fn every_description_fits_the_tree_and_can_be_left_out() {
        let root = crate::sources::workspace_root();
        let bugs = read(&root).unwrap();
        for bug in &bugs {
            assert!(!bug.expect.is_empty() && !bug.edits.is_empty(), "{}", bug.name);
            let is_switched = bug.edits.iter().any(|edit| edit.replace.contains("PLANTED"));
            assert!(is_switched, "{} would be there always", bug.name);
        }
        plant(&root, &bugs).unwrap();
    }
}
