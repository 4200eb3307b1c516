//! Tables of docs/site.md that set what administrators know from elsewhere beside what is here:
//! the last cell of each row names a test or a file of tests that exists, unless the row says that
//! the capability is not built.
//!
//! Tests are named in backquotes as they are called: `function`, `file::function`, `file::*`,
//! `file.rs`, or a path. What looks like neither is left alone.

use crate::finding::Finding;
use crate::sources::Source;

const DOCUMENT: &str = "docs/site.md";
/// First cells of the head of such a table.
const TABLE_HEAD: &str = "| there | here |";
const EXCUSE: &str = "not built";
/// A name in backquotes with so many underscores is that of a test.
const UNDERSCORES_MIN: usize = 2;

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let Some(document) = sources.iter().find(|source| source.path == DOCUMENT) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut is_in_table = false;
    for (index, line) in document.text.lines().enumerate() {
        let is_row = is_in_table && line.starts_with("| ");
        is_in_table = line.starts_with(TABLE_HEAD) || is_in_table && line.starts_with('|');
        if !is_row {
            continue;
        }
        let mut found = |advice| {
            findings.push(Finding::new(DOCUMENT, index + 1, "capability", advice));
        };
        let (mut exists, mut missing) = (false, Vec::new());
        for name in last_cell(line).split('`').skip(1).step_by(2) {
            match is_there(sources, name) {
                Some(true) => exists = true,
                Some(false) => missing.push(name),
                None => {}
            }
        }
        for name in missing {
            found(format!("there is no test {name}: name the one that shows this"));
        }
        if !exists && !line.contains(EXCUSE) {
            found(format!("this row names no test: name one, or say why it is {EXCUSE}"));
        }
    }
    findings
}

fn last_cell(row: &str) -> &str {
    let row = row.trim_end().trim_end_matches('|');
    row.rsplit_once(" | ").map_or(row, |(_, cell)| cell)
}

/// Whether there is the test or file that this names; nothing if it is the name of neither.
fn is_there(sources: &[Source], name: &str) -> Option<bool> {
    if name.contains('/') {
        return Some(sources.iter().any(|source| source.path.starts_with(name)));
    }
    if name.ends_with(".rs") {
        return Some(sources.iter().any(|source| source.file_name() == name));
    }
    let (module, function) = name.rsplit_once("::").unwrap_or(("", name));
    if function == "*" {
        let module = module.split("::").next().unwrap_or_default();
        let file = format!("{module}.rs");
        return Some(sources.iter().any(|source| source.file_name() == file));
    }
    let is_test = function.matches('_').count() >= UNDERSCORES_MIN && !function.contains(' ');
    (is_test || !module.is_empty()).then(|| sources.iter().any(|it| has_test(it, function)))
}

fn has_test(source: &Source, function: &str) -> bool {
    let (rust, python) = (format!("fn {function}("), format!("def {function}("));
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let is_test = |at: usize| match source.path.ends_with(".py") {
        true => lines[at].starts_with(&python),
        false => {
            let above = lines[..at].iter().rev().take_while(|line| !line.is_empty());
            lines[at].starts_with(&rust) && above.clone().any(|line| *line == "#[test]")
        }
    };
    (0..lines.len()).any(is_test)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| there | here | test |\n|---|---|---|\n";
    const TESTS: &str = "#[test]\nfn it_always_holds() {\n}\n\nfn a_mere_helper() {\n}\n";
    const SCRIPT: &str = "class A:\n    def test_it_too(self):\n        pass\n";

    fn lines(row: &str) -> Vec<usize> {
        let source = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
        let document = format!("{HEAD}| that | this | {row} |\n");
        let sources = [
            source(DOCUMENT, &document),
            source("crates/a/tests/t.rs", TESTS),
            source("interop/a/test_a.py", SCRIPT),
        ];
        check(&sources).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn tests_that_exist_are_named_in_any_form() {
        for row in ["`it_always_holds`", "`t::it_always_holds`", "`t::*`: all", "see `t.rs`"] {
            assert!(lines(row).is_empty(), "{row}");
        }
        for row in ["`test_it_too`", "`interop/a/test_a.py`", "`crates/a/tests/`"] {
            assert!(lines(row).is_empty(), "{row}");
        }
    }

    #[test]
    fn what_is_named_and_not_there_is_found() {
        for row in ["`it_never_was_there`", "`u::*`", "`u.rs`", "`a/b.py`", "`a_mere_helper`"] {
            let row = format!("`t.rs`, {row}");
            assert_eq!(lines(&row), [3], "{row}");
        }
    }

    #[test]
    fn a_row_without_a_test_says_why() {
        assert!(lines("not built: nobody asked").is_empty());
        assert_eq!(lines("of course"), [3]);
        assert_eq!(lines("`n`"), [3]);
    }
}
