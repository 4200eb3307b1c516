//! Licences of everything that is linked, against the allow-list in deny.toml.
//!
//! deny.toml is the one list: `cargo deny` reads it where it is installed, this check reads it
//! everywhere. An expression passes when the allowed licences are enough to satisfy it.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use crate::finding::Finding;
use crate::graph::Graph;

const RULE: &str = "licence";

/// Reads the allow-list.
pub(crate) fn allowed(root: &Path) -> Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(root.join("deny.toml")).context("cannot read deny.toml")?;
    let table: toml::Table = text.parse().context("deny.toml")?;
    let list = table
        .get("licenses")
        .and_then(|licenses| licenses.get("allow"))
        .and_then(toml::Value::as_array)
        .context("deny.toml has no licenses.allow")?;
    Ok(list.iter().filter_map(|entry| entry.as_str().map(str::to_owned)).collect())
}

/// Checks every package from elsewhere.
pub(crate) fn check(graph: &Graph, allowed: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &graph.externals {
        let named = format!("{} {}", package.name, package.version);
        let advice = match &package.license {
            None => format!("{named} names no licence: read its files and replace it"),
            Some(expression) => match satisfied(expression, allowed) {
                Some(true) => continue,
                Some(false) => {
                    format!("{named} is {expression}, which deny.toml does not allow: replace it")
                }
                None => format!("{named} has the unreadable licence {expression:?}: replace it"),
            },
        };
        findings.push(Finding::new("Cargo.lock", 1, RULE, advice));
    }
    findings
}

/// True if the allowed licences satisfy an SPDX expression; `None` if it does not parse.
fn satisfied(expression: &str, allowed: &BTreeSet<String>) -> Option<bool> {
    // "MIT/Apache-2.0" is the old spelling of OR.
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { tokens: &tokens, allowed };
    let value = parser.any()?;
    parser.tokens.is_empty().then_some(value)
}

struct Parser<'a> {
    tokens: &'a [&'a str],
    allowed: &'a BTreeSet<String>,
}

impl Parser<'_> {
    fn take(&mut self, wanted: &str) -> bool {
        let found = self.tokens.first() == Some(&wanted);
        if found {
            self.tokens = &self.tokens[1..];
        }
        found
    }

    fn any(&mut self) -> Option<bool> {
        let mut value = self.all()?;
        while self.take("OR") {
            value |= self.all()?;
        }
        Some(value)
    }

    fn all(&mut self) -> Option<bool> {
        let mut value = self.one()?;
        while self.take("AND") {
            value &= self.one()?;
        }
        Some(value)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let value = self.any()?;
            return self.take(")").then_some(value);
        }
        let (name, rest) = self.tokens.split_first()?;
        if matches!(*name, "AND" | "OR" | "WITH" | ")") {
            return None;
        }
        self.tokens = rest;
        if self.take("WITH") {
            let (exception, rest) = self.tokens.split_first()?;
            self.tokens = rest;
            return Some(self.allowed.contains(&format!("{name} WITH {exception}")));
        }
        Some(self.allowed.contains(*name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::External;

    fn list(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn expressions_are_evaluated_as_spdx_says() {
        let allowed = list(&["MIT", "Apache-2.0", "ISC"]);
        let cases = [
            ("MIT", Some(true)),
            ("GPL-3.0-only", Some(false)),
            ("GPL-3.0-only OR MIT", Some(true)),
            ("GPL-3.0-only AND MIT", Some(false)),
            ("MIT/Apache-2.0", Some(true)),
            ("ISC AND (Apache-2.0 OR OpenSSL)", Some(true)),
            ("ISC AND OpenSSL OR MIT", Some(true)),
            ("Apache-2.0 WITH LLVM-exception", Some(false)),
            ("Apache-2.0 WITH LLVM-exception OR MIT", Some(true)),
            ("(MIT", None),
            ("MIT OR", None),
            ("MIT Apache-2.0", None),
            ("", None),
        ];
        for (expression, expected) in cases {
            assert_eq!(satisfied(expression, &allowed), expected, "{expression}");
        }
    }

    #[test]
    fn a_forbidden_or_missing_licence_is_found() {
        let external = |name: &str, license: Option<&str>| External {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
        };
        let graph = Graph {
            members: vec![],
            externals: vec![
                external("good", Some("MIT")),
                external("viral", Some("AGPL-3.0-only")),
                external("nameless", None),
            ],
        };
        let findings = check(&graph, &list(&["MIT"]));
        assert_eq!(findings.len(), 2);
        assert!(findings[0].advice.contains("viral 1.0.0 is AGPL-3.0-only"));
        assert!(findings[1].advice.contains("nameless 1.0.0 names no licence"));
    }
}
