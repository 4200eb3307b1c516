//! The house rules that a compiler does not check.
//!
//! Each submodule holds one family of rules as functions from text (or the crate graph) to
//! findings, so that every rule is tested with a good and a bad sample. The limits are constants
//! next to the rule that uses them.

mod code;
mod layers;
mod promises;
mod rooms;
mod subjects;
mod text;

use std::path::Path;

use anyhow::Result;

use crate::finding::Finding;
use crate::{graph, imports, licences, sources};

/// Rules that a room does not keep yet. A line goes away with the work that goes on there;
/// none is added.
const NOT_YET: [(&str, &[&str]); 3] = [
    ("cli", &["circle", "near-limit", "parameters"]),
    ("client", &["parameters"]),
    ("node", &["near-limit", "parameters"]),
];

/// Findings that break the rules in the tree at `root`, except those that a room does not keep yet.
pub(crate) fn check_tree(root: &Path) -> Result<Vec<Finding>> {
    let is_due = |finding: &Finding| {
        !NOT_YET.iter().any(|(room, rules)| {
            finding.path.starts_with(&format!("crates/{room}/")) && rules.contains(&finding.rule)
        })
    };
    Ok(check_all(root)?.into_iter().filter(is_due).collect())
}

/// Findings that break any rule in the tree at `root`, in order of place.
pub(crate) fn check_all(root: &Path) -> Result<Vec<Finding>> {
    let sources = sources::read(root)?;
    let graph = graph::read(root)?;
    let mut findings = Vec::new();
    for source in &sources {
        findings.extend(text::check(source));
    }
    findings.extend(code::check(&sources));
    findings.extend(imports::check_all(&imports::read(&sources, None)));
    findings.extend(layers::check(&graph, &sources));
    findings.extend(promises::check(&sources));
    findings.extend(rooms::check(&graph, &sources));
    findings.extend(subjects::check(root)?);
    findings.extend(licences::check(&graph, &licences::allowed(root)?));
    findings.sort();
    findings.dedup();
    Ok(findings)
}
