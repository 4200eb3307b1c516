//! SECURITY.md and docs/site-tests.md name the tests that hold their promises; each must exist.
//!
//! A test is named as `path/to/file.rs::name`, in backquotes, and every row of the table of
//! promises names one.

use crate::finding::Finding;
use crate::sources::Source;

const DOCUMENTS: [&str; 2] = ["SECURITY.md", "docs/site-tests.md"];
/// First cell of the head of the table.
const TABLE_HEAD: &str = "| promise |";

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let documents = sources.iter().filter(|source| DOCUMENTS.contains(&source.path.as_str()));
    documents.flat_map(|document| check_document(document, sources)).collect()
}

fn check_document(document: &Source, sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut is_in_table, mut has_table) = (false, false);
    for (index, line) in document.text.lines().enumerate() {
        let mut found = |advice| {
            findings.push(Finding::new(&document.path, index + 1, "promise", advice));
        };
        let tests = named_tests(line);
        for (path, name) in &tests {
            if !is_test(sources, path, name) {
                found(format!("there is no test {path}::{name}: name the one that holds this"));
            }
        }
        let is_row = line.starts_with("| ");
        if is_in_table && is_row && tests.is_empty() {
            found("this promise names no test: `path/to/file.rs::name`".to_owned());
        }
        is_in_table = line.starts_with(TABLE_HEAD) || is_in_table && line.starts_with('|');
        has_table |= is_in_table;
    }
    if !has_table {
        let advice = format!("there is no table that begins with {TABLE_HEAD:?}");
        findings.push(Finding::new(&document.path, 1, "promise", advice));
    }
    findings
}

/// The tests that a line names, as path and function.
fn named_tests(line: &str) -> Vec<(&str, &str)> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter_map(|text| text.split_once("::")).filter(|(p, _)| p.ends_with(".rs")).collect()
}

fn is_test(sources: &[Source], path: &str, name: &str) -> bool {
    let Some(source) = sources.iter().find(|source| source.path == path) else { return false };
    let head = format!("fn {name}(");
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let at = lines.iter().position(|line| line.starts_with(&head));
    let Some(at) = at else { return false };
    lines[..at].iter().rev().take_while(|line| !line.is_empty()).any(|line| *line == "#[test]")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# Security\n| promise | test |\n|---|---|\n";
    const TESTS: &str = "#[test]\n#[ignore]\nfn it_holds() {\n}\n\nfn helper() {\n}\n";

    fn lines(document: &str) -> Vec<usize> {
        let source = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
        let [first, other] = DOCUMENTS.map(|path| {
            let sources = [source(path, document), source("crates/a/tests/t.rs", TESTS)];
            check(&sources).into_iter().map(|finding| finding.line).collect()
        });
        assert_eq!(first, other);
        first
    }

    #[test]
    fn every_test_that_is_named_exists() {
        let row = |test: &str| format!("{HEAD}| a promise | `crates/a/tests/t.rs::{test}` |\n");
        assert!(lines(&row("it_holds")).is_empty());
        assert_eq!(lines(&row("it_does_not")), [4]);
        assert_eq!(lines(&row("helper")), [4], "not a test");
        assert_eq!(lines(&format!("{HEAD}\nAlso `crates/b/t.rs::it_holds`.\n")), [5]);
    }

    #[test]
    fn every_promise_names_a_test() {
        assert_eq!(lines(&format!("{HEAD}| a promise | we are careful |\n")), [4]);
        assert!(lines(&format!("{HEAD}\n| another | table |\n")).is_empty());
        assert_eq!(lines("# Security\n"), [1], "no table");
    }
}
