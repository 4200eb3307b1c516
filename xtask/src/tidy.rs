//! The house rules that a compiler does not check.
//!
//! Each submodule holds one family of rules as functions from text (or the crate graph) to
//! findings, so that every rule is tested with a good and a bad sample. The limits are constants
//! next to the rule that uses them.

mod capabilities;
mod code;
mod layers;
mod promises;
mod rooms;
mod subjects;
mod text;

use std::path::Path;

use anyhow::Result;

use crate::finding::Finding;
use crate::{graph, header, imports, licences, sources};

/// Findings in the tree at `root`, in order of place.
pub(crate) fn check_tree(root: &Path) -> Result<Vec<Finding>> {
    let sources = sources::read(root)?;
    let graph = graph::read(root)?;
    let mut findings = Vec::new();
    for source in &sources {
        findings.extend(text::check(source));
    }
    findings.extend(capabilities::check(&sources));
    findings.extend(code::check(&sources));
    findings.extend(imports::check_all(&imports::read(&sources, None)));
    findings.extend(header::check(&sources));
    findings.extend(layers::check(&graph, &sources));
    findings.extend(promises::check(&sources));
    findings.extend(rooms::check(&graph, &sources));
    findings.extend(subjects::check(root)?);
    findings.extend(licences::check(&graph, &licences::allowed(root)?));
    findings.sort();
    findings.dedup();
    Ok(findings)
}
