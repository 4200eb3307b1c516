//! The tests of a crate, and of those that play it, built once with all its mutants that build.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::embed::{Embedded, embed};
use super::list::Mutant;
use super::question::QUESTION;
use super::source::{Site, replaced, sites};
use super::{Verdict, judge};
use crate::copy;

/// Each round leaves out mutants that the compiler refused; what one error hides the next shows.
const ROUNDS_MAX: usize = 40;
/// Errors that a mutant may have because it is a branch beside others.
const BRANCH_ERRORS: [&str; 6] = ["E0015", "E0381", "E0382", "E0499", "E0502", "E0505"];

/// Mutants that are not built with the others.
type LeftOut = BTreeMap<usize, Verdict>;

/// Tests that were built.
pub(super) struct Built {
    pub(super) executables: Vec<Executable>,
}

/// A file with tests.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Executable {
    pub(super) path: PathBuf,
    /// Folder of its package, in which it runs.
    pub(super) folder: PathBuf,
}

/// A copy of the tree in which the mutants of a package are built.
pub(super) struct Copy<'a> {
    root: &'a Path,
    /// The one with the mutants, then those whose tests count as well.
    packages: &'a [&'a str],
    mutants: &'a [&'a Mutant],
    /// Folder of the package below the root.
    folder: String,
    files: Vec<File>,
}

/// A file with mutants.
struct File {
    path: String,
    text: String,
    sites: Vec<Site>,
}

impl<'a> Copy<'a> {
    /// For these mutants, whose number is their position.
    pub(super) fn new(
        root: &'a Path,
        packages: &'a [&'a str],
        mutants: &'a [&'a Mutant],
    ) -> Result<Self> {
        let mut by_file: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
        for (number, mutant) in mutants.iter().enumerate() {
            by_file.entry(&mutant.file).or_default().push((number, mutant));
        }
        let files = by_file.into_iter().map(|(path, numbered)| {
            let text = std::fs::read_to_string(root.join(path))?;
            let sites = sites(&text, &numbered).with_context(|| path.to_owned())?;
            Ok(File { path: path.to_owned(), text, sites })
        });
        let files: Vec<File> = files.collect::<Result<_>>()?;
        let path = &files.first().context("no mutants")?.path;
        let (folder, _) = path.split_once("/src/").context("a file outside src")?;
        Ok(Self { root, packages, mutants, folder: folder.to_owned(), files })
    }

    /// Builds all mutants that build together; returns the others with their verdicts as well.
    pub(super) fn build_all(&self) -> Result<(Built, LeftOut)> {
        let sited: BTreeSet<usize> = self
            .files
            .iter()
            .flat_map(|file| file.sites.iter().flat_map(|site| &site.choices))
            .map(|(number, _)| *number)
            .collect();
        let unsited = (0..self.mutants.len()).filter(|number| !sited.contains(number));
        let mut left_out: LeftOut = unsited.map(|number| (number, Verdict::Alone)).collect();
        for _ in 0..ROUNDS_MAX {
            let is_wanted = |number: usize| !left_out.contains_key(&number);
            let embedded: Vec<Embedded> =
                self.files.iter().map(|file| embed(&file.text, &file.sites, &is_wanted)).collect();
            let texts = self.files.iter().zip(&embedded);
            let texts = texts.map(|(file, embedded)| (file.path.clone(), embedded.text.clone()));
            let errors = match self.build(texts.collect())? {
                Ok(built) => return Ok((built, left_out)),
                Err(errors) => errors,
            };
            let before = left_out.len();
            for error in &errors {
                left_out.extend(self.suspects(error, &embedded));
            }
            eprintln!("{}: {} mutants do not build so far", self.packages[0], left_out.len());
            ensure!(left_out.len() > before, "it does not build: {}", errors[0].rendered);
        }
        bail!("{}: mutants still do not build after {ROUNDS_MAX} rounds", self.packages[0])
    }

    /// Builds one mutant without the others; None if it does not build.
    pub(super) fn build_one(&self, mutant: &Mutant) -> Result<Option<Built>> {
        let file = self.files.iter().find(|file| file.path == mutant.file);
        let text = replaced(&file.context("a file of its own")?.text, mutant);
        Ok(self.build([(mutant.file.clone(), text)].into())?.ok())
    }

    /// Builds with these texts of files.
    fn build(
        &self,
        mut changed: BTreeMap<String, String>,
    ) -> Result<Result<Built, Vec<CompileError>>> {
        // Each copy has packages of its own: what cargo has built of one would pass for another's.
        let package = self.packages[0];
        let (line, other) = copy::version_with(self.root, &format!("-mutants-{package}"))?;
        let manifest = std::fs::read_to_string(self.root.join("Cargo.toml"))?;
        changed.insert("Cargo.toml".to_owned(), manifest.replace(&line, &other));
        let lib = format!("{}/src/lib.rs", self.folder);
        let text = match changed.remove(&lib) {
            Some(text) => text,
            None => std::fs::read_to_string(self.root.join(&lib))?,
        };
        changed.insert(lib, text + QUESTION);
        let tree = self.root.join("target/mutants").join(package);
        copy::make(self.root, &tree, &changed)?;
        let (errors, executables) = build(self.root, &tree, self.packages)?;
        Ok(if errors.is_empty() { Ok(Built { executables }) } else { Err(errors) })
    }

    /// The mutant whose text an error is about, or else those of the function around it.
    fn suspects(&self, error: &CompileError, embedded: &[Embedded]) -> LeftOut {
        let places = error.places.iter().filter_map(|(path, at)| {
            let file = self.files.iter().position(|file| file.path == *path)?;
            Some((&embedded[file], at))
        });
        let is_around = |outer: &Range<usize>, at: &Range<usize>| {
            outer.start <= at.start && at.end <= outer.end
        };
        for (file, at) in places.clone() {
            let around = file.mutants.iter().filter(|(range, _)| is_around(range, at));
            if let Some((_, number)) = around.min_by_key(|(range, _)| range.len()) {
                let is_branch = BRANCH_ERRORS.contains(&error.code.as_str())
                    || self.mutants[*number].return_type.contains("impl ");
                return [(*number, if is_branch { Verdict::Alone } else { Verdict::Unviable })]
                    .into();
            }
        }
        for (file, at) in places {
            let around = file.functions.iter().filter(|(range, _)| is_around(range, at));
            if let Some((_, all)) = around.min_by_key(|(range, _)| range.len()) {
                let of_value = |number: &usize| self.mutants[*number].genre == "FnValue";
                let values: Vec<usize> = all.iter().copied().filter(of_value).collect();
                let suspects = if values.is_empty() { all } else { &values };
                return suspects.iter().map(|number| (*number, Verdict::Alone)).collect();
            }
        }
        LeftOut::new()
    }
}

/// What the compiler says against the copy.
struct CompileError {
    rendered: String,
    code: String,
    /// File and octets in it, the nearest to what is wrong first.
    places: Vec<(String, Range<usize>)>,
}

/// Builds the tests of the copy; returns errors, and executables if there are none.
fn build(
    root: &Path,
    tree: &Path,
    packages: &[&str],
) -> Result<(Vec<CompileError>, Vec<Executable>)> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--offline", "--no-run", "--lib", "--tests"])
        .arg("--message-format=json")
        .args(packages.iter().flat_map(|package| ["--package", package]))
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", copy::target(root))
        // Of whoever runs this chore; they would make everything be built anew.
        .env_remove("CARGO_MANIFEST_DIR")
        .env_remove(judge::MUTANT)
        .stderr(Stdio::piped())
        .output()
        .context("cannot run cargo")?;
    let (mut errors, mut executables) = (Vec::new(), Vec::new());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        let text = |key: &str| message.get(key).and_then(Value::as_str).map(PathBuf::from);
        if let (Some(path), Some(mut folder)) = (text("executable"), text("manifest_path"))
            && message.pointer("/profile/test") == Some(&Value::Bool(true))
        {
            folder.pop();
            executables.push(Executable { path, folder });
        }
        if let Some(message) = message.get("message")
            && message.get("level").and_then(Value::as_str) == Some("error")
        {
            errors.extend(parse_error(message));
        }
    }
    if errors.is_empty() && !output.status.success() {
        bail!("it does not build: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    // The same order whenever they are built.
    executables.sort();
    Ok((errors, executables))
}

/// None for the last words, which have no place.
fn parse_error(message: &Value) -> Option<CompileError> {
    let mut places = Vec::new();
    for span in message.get("spans")?.as_array()? {
        let mut span = Some(span);
        while let Some(here) = span {
            let number = |key: &str| here.get(key).and_then(Value::as_u64).unwrap_or(0) as usize;
            let file = here.get("file_name").and_then(Value::as_str).unwrap_or_default();
            let place = (file.to_owned(), number("byte_start")..number("byte_end"));
            match here.get("is_primary").and_then(Value::as_bool) {
                Some(true) => places.insert(0, place),
                _ => places.push(place),
            }
            span = here.pointer("/expansion/span");
        }
    }
    let text = |key: &str| message.pointer(key).and_then(Value::as_str).unwrap_or_default();
    let (rendered, code) = (text("/rendered").to_owned(), text("/code/code").to_owned());
    (!places.is_empty()).then_some(CompileError { rendered, code, places })
}
