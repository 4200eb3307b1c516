//! Rules on Rust code, from its syntax tree and its tokens, never from patterns in text: a string
//! or a comment that mentions a rule does not break it.
//!
//! Test code is what `cfg(test)` or `#[test]` guards, what lies in a folder `tests` or a file
//! `tests.rs`, a file that is declared as `#[cfg(test)] mod name;`, and the fuzz targets.

mod syntax;

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::sources::Source;
use crate::tidy::code::syntax::Syntax;

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;
const PARAMETERS_MAX: usize = 5;

/// Within 5 % of a limit it is time to look for the next room.
const fn near(limit: usize) -> usize {
    limit * 95 / 100
}

/// Crates that may contain unsafe code.
const UNSAFE_ROOMS: [&str; 2] = ["crates/io/", "crates/ffi/"];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut parsed = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        match syntax::read(&source.text) {
            Ok(syntax) => parsed.push((source, syntax)),
            Err(error) => {
                let advice = format!("does not parse: {error}");
                let line = error.span().start().line.max(1);
                findings.push(Finding::new(&source.path, line, "syntax", advice));
            }
        }
    }
    let test_roots: BTreeSet<String> = parsed
        .iter()
        .flat_map(|(source, syntax)| syntax.test_modules.iter().map(|name| child(source, name)))
        .collect();
    for (source, syntax) in &parsed {
        let file = File { source, syntax, is_test: is_test_file(source, &test_roots) };
        findings.extend(file.check());
    }
    findings
}

/// The path, without `.rs`, of the module `name` declared in `source`.
fn child(source: &Source, name: &str) -> String {
    let path = source.path.trim_end_matches(".rs");
    match path.rsplit_once('/') {
        Some((folder, "lib" | "main")) => format!("{folder}/{name}"),
        _ => format!("{path}/{name}"),
    }
}

fn is_test_file(source: &Source, test_roots: &BTreeSet<String>) -> bool {
    let stem = source.path.trim_end_matches(".rs");
    source.path.starts_with("fuzz/")
        || stem.split('/').any(|part| part == "tests")
        || test_roots.iter().any(|root| {
            stem.strip_prefix(root.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}

struct File<'a> {
    source: &'a Source,
    syntax: &'a Syntax,
    is_test: bool,
}

impl File<'_> {
    fn check(&self) -> Vec<Finding> {
        let mut findings = self.check_file();
        findings.extend(self.check_functions());
        findings.extend(self.check_tokens());
        findings
    }

    fn finding(&self, line: usize, rule: &'static str, advice: impl Into<String>) -> Finding {
        Finding::new(&self.source.path, line, rule, advice)
    }

    fn check_file(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.source.file_name() == "mod.rs" {
            findings.push(self.finding(
                1,
                "mod-rs",
                "name it after its folder: foo.rs beside foo/",
            ));
        }
        if !self.source.text.starts_with("//!") {
            let advice = "begin with a //! header: purpose, the one non-obvious idea, invariants";
            findings.push(self.finding(1, "header", advice));
        }
        let lines = self.source.text.lines().count() - self.syntax.test_module_lines();
        if !self.is_test && lines > near(FILE_LINES_MAX) {
            let rule = if lines > FILE_LINES_MAX { "file-length" } else { "near-limit" };
            let advice = format!(
                "{lines} lines without tests, {FILE_LINES_MAX} at most: find the room that is in it"
            );
            findings.push(self.finding(1, rule, advice));
        }
        findings
    }

    fn check_functions(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for function in &self.syntax.functions {
            let name = &function.name;
            if function.lines > near(FUNCTION_LINES_MAX) {
                let lines = function.lines;
                let is_over = lines > FUNCTION_LINES_MAX;
                let rule = if is_over { "function-length" } else { "near-limit" };
                let advice =
                    format!("{name} has {lines} lines, {FUNCTION_LINES_MAX} at most: split it");
                findings.push(self.finding(function.line, rule, advice));
            }
            if function.parameters > PARAMETERS_MAX {
                let parameters = function.parameters;
                let advice = format!(
                    "{name} takes {parameters} parameters: group them, {PARAMETERS_MAX} at most"
                );
                findings.push(self.finding(function.line, "parameters", advice));
            }
        }
        findings
    }

    fn check_tokens(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for macro_use in &self.syntax.left_overs {
            let advice = format!("{}! is left over: remove it", macro_use.what);
            findings.push(self.finding(macro_use.line, "left-over", advice));
        }
        if !UNSAFE_ROOMS.iter().any(|room| self.source.path.starts_with(room)) {
            for line in &self.syntax.unsafe_lines {
                let advice = "unsafe belongs in the crates io and ffi: find the safe way";
                findings.push(self.finding(*line, "unsafe", advice));
            }
        }
        let outside_tests = |line: &&usize| !self.is_test && !self.syntax.is_test_line(**line);
        for line in self.syntax.unwrap_lines.iter().filter(outside_tests) {
            let advice = "unwrap outside tests: return an error, or expect(\"why it holds\")";
            findings.push(self.finding(*line, "unwrap", advice));
        }
        for line in self.syntax.string_error_lines.iter().filter(outside_tests) {
            let advice = "Result<_, String>: make an error type that carries the facts";
            findings.push(self.finding(*line, "string-error", advice));
        }
        findings
    }
}

#[cfg(test)]
mod tests;
