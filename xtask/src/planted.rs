//! Planted bugs: whether the simulator's campaign finds what it is there to find.
//!
//! `crates/sim/planted` describes one bug a file, as text to be replaced in production code. Each
//! is planted alone, in a copy of the tree, and a campaign with a fixed seed and a time box must
//! fail there with a promise that the description names; the copy without a bug must pass.
//! Production code knows nothing of all this, and a description that no longer fits it is an error.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

const FOLDER: &str = "crates/sim/planted";
/// Campaigns begin with the same seed everywhere, so that a bug that is found is found again.
const SEED: u64 = 1;
/// Scenarios that must pass without a bug.
const CLEAN_COUNT: u64 = 100;
/// By the machine's clock, for one bug.
const SECONDS_MAX: u64 = 60;
/// Larger files are nothing that is built from.
const FILE_BYTES_MAX: u64 = 4 << 20;

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
}

/// Plants the bugs named, or all, one after the other; true if each is found.
pub(crate) fn run(root: &Path, names: &[&str]) -> Result<bool> {
    let bugs = read(root)?;
    for name in names {
        ensure!(bugs.iter().any(|bug| bug.name == *name), "no bug is called {name}");
    }
    let home = root.join("target/planted");
    let tree = home.join("tree");
    copy_tree(root, &tree)?;
    let mut is_good = true;
    if names.is_empty() {
        is_good &= judge("without a bug", None, &home)?;
    }
    for bug in bugs.iter().filter(|bug| names.is_empty() || names.contains(&bug.name.as_str())) {
        let originals = plant(bug, &tree)?;
        let outcome = judge(&bug.name, Some(bug), &home);
        for (file, text) in originals {
            fs::write(file, text)?;
        }
        is_good &= outcome?;
    }
    Ok(is_good)
}

/// Builds and runs the campaign in the copy; true if it does what it should.
fn judge(name: &str, bug: Option<&Bug>, home: &Path) -> Result<bool> {
    let began = Instant::now();
    let binary = build(home).with_context(|| format!("{name} does not build"))?;
    let built = began.elapsed();
    let mut campaign = Command::new(binary);
    campaign.args(["campaign", "--jobs", "2", "--seed", &SEED.to_string()]);
    campaign.args(["--seconds", &SECONDS_MAX.to_string()]);
    if bug.is_none() {
        campaign.args(["--count", &CLEAN_COUNT.to_string()]);
    }
    let output = campaign.output().context("cannot run the campaign")?;
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let seconds = (began.elapsed() - built).as_secs_f64();
    let expected = |bug: &Bug| bug.expect.iter().any(|words| printed.contains(words.as_str()));
    let verdict = match (bug, output.status.success()) {
        (None, true) => "passes, as it should".to_owned(),
        (None, false) => "FAILS, but should pass".to_owned(),
        (Some(_), true) => format!("NOT FOUND within {SECONDS_MAX} s"),
        (Some(bug), false) if expected(bug) => "found".to_owned(),
        (Some(bug), false) => format!("FAILS without a word of {:?}", bug.expect),
    };
    let is_good = verdict.starts_with(['p', 'f']);
    println!("{name:<22} {verdict} ({seconds:.1} s, built in {:.0} s)", built.as_secs_f64());
    let promise = printed.lines().filter(|line| line.contains("promise broken") || !is_good);
    promise.for_each(|line| println!("    {line}"));
    Ok(is_good)
}

/// The campaign's binary, built from the copy into a folder that is kept from bug to bug.
fn build(home: &Path) -> Result<PathBuf> {
    let target = home.join("target");
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--locked", "--quiet", "--package", "byname-sim", "--bin", "byname-sim"])
        .current_dir(home.join("tree"))
        .env("CARGO_TARGET_DIR", &target)
        // Of whoever runs this chore; they would make everything be built anew.
        .env_remove("CARGO_MANIFEST_DIR")
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(target.join("debug/byname-sim"))
}

/// Applies a bug; the files that changed, as they were.
fn plant(bug: &Bug, tree: &Path) -> Result<Vec<(PathBuf, String)>> {
    let mut originals = Vec::new();
    for edit in &bug.edits {
        let file = tree.join(&edit.file);
        let text = fs::read_to_string(&file)
            .with_context(|| format!("{}: cannot read {}", bug.name, edit.file))?;
        let count = text.matches(&edit.search).count();
        ensure!(
            count == 1,
            "{FOLDER}/{}.toml no longer applies: its text occurs {count} times in {}:\n{}",
            bug.name,
            edit.file,
            edit.search
        );
        fs::write(&file, text.replacen(&edit.search, &edit.replace, 1))?;
        if !originals.iter().any(|(known, _)| *known == file) {
            originals.push((file, text));
        }
    }
    Ok(originals)
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
    Ok(Bug { name, edits: edits.collect::<Result<_>>()?, expect })
}

/// Makes `tree` a copy of what git tracks, or would; what is the same is not written again, so
/// that it is not built again.
fn copy_tree(root: &Path, tree: &Path) -> Result<()> {
    for path in crate::sources::paths(root)? {
        let (from, to) = (root.join(&path), tree.join(&path));
        let Ok(status) = from.symlink_metadata() else {
            let _ = fs::remove_file(to);
            continue;
        };
        if !status.is_file() || status.len() > FILE_BYTES_MAX {
            continue;
        }
        let bytes = fs::read(&from).with_context(|| format!("cannot read {path}"))?;
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        fs::create_dir_all(to.parent().unwrap_or(tree))?;
        fs::write(&to, bytes).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUG: &str = "expect = [\"no octet differs\"]\n[[edit]]\nfile = \"a.rs\"\n\
        search = \"a <= b\"\nreplace = \"a < b\"\n";

    fn bug() -> Bug {
        parse("off-by-one".to_owned(), BUG).unwrap()
    }

    #[test]
    fn a_bug_is_planted_once_and_what_was_there_comes_back() {
        let tree = tempfile::tempdir().unwrap();
        let file = tree.path().join("a.rs");
        fs::write(&file, "if a <= b {}").unwrap();
        let originals = plant(&bug(), tree.path()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "if a < b {}");
        assert_eq!(originals, [(file, "if a <= b {}".to_owned())]);
    }

    #[test]
    fn a_description_that_no_longer_fits_is_an_error() {
        let tree = tempfile::tempdir().unwrap();
        for text in ["if a < b {}", "a <= b; a <= b"] {
            fs::write(tree.path().join("a.rs"), text).unwrap();
            let error = plant(&bug(), tree.path()).unwrap_err().to_string();
            assert!(error.contains("no longer applies"), "{error}");
        }
    }

    #[test]
    fn every_description_fits_the_tree() {
        let root = crate::sources::workspace_root();
        for bug in read(&root).unwrap() {
            assert!(!bug.expect.is_empty() && !bug.edits.is_empty(), "{}", bug.name);
            let tree = tempfile::tempdir().unwrap();
            for edit in &bug.edits {
                let to = tree.path().join(&edit.file);
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(root.join(&edit.file), to).unwrap();
            }
            plant(&bug, tree.path()).unwrap();
        }
    }
}
