//! The house rules that a compiler does not check.
//!
//! Each submodule holds one family of rules as functions from text (or the crate graph) to
//! findings, so that every rule is tested with a good and a bad sample. The limits are constants
//! next to the rule that uses them.

mod code;
mod layers;
mod rooms;
mod text;

use std::path::Path;

use anyhow::Result;

use crate::finding::Finding;
use crate::{graph, licences, sources};

/// Runs every rule on the tree at `root`; the findings are in order of place.
pub(crate) fn check_tree(root: &Path) -> Result<Vec<Finding>> {
    let sources = sources::read(root)?;
    let graph = graph::read(root)?;
    let mut findings = Vec::new();
    for source in &sources {
        findings.extend(text::check(source));
    }
    findings.extend(code::check(&sources));
    findings.extend(layers::check(&graph, &sources));
    findings.extend(rooms::check(&graph, &sources));
    findings.extend(licences::check(&graph, &licences::allowed(root)?));
    findings.sort();
    findings.dedup();
    Ok(findings)
}

/// The line (1-based) of the first line of `text` that satisfies `wanted`, or 1.
fn line_where(text: &str, wanted: impl Fn(&str) -> bool) -> usize {
    text.lines().position(wanted).map_or(1, |index| index + 1)
}
