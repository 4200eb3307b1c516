//! Rules on lines of text: columns, left-over marks, paths of one machine.
//!
//! The words looked for are put together from halves, so that this file does not find itself.

use crate::finding::Finding;
use crate::sources::Source;

const COLUMNS_MAX: usize = 100;

/// Marks of unfinished work that nothing excuses.
const MARKS: [&str; 3] = [concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
/// The mark that an issue number excuses.
const LATER: &str = concat!("TO", "DO");

/// Roots that exist on one machine only.
const LOCAL_ROOTS: [&str; 2] = [concat!("/ro", "ot/"), concat!("/wo", "rk/")];
const LOCAL_HOMES: &str = concat!("/ho", "me/");

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let mut found = |rule, advice: String| {
            findings.push(Finding::new(&source.path, index + 1, rule, advice))
        };
        if let Some(path) = local_path(line) {
            found("local-path", format!("{path} exists on one machine only: use a relative path"));
        }
        let columns = line.chars().count();
        let can_break = if source.is_markdown() { breaks_in_document(line) } else { breaks(line) };
        if columns > COLUMNS_MAX && can_break && (source.is_code() || source.is_markdown()) {
            found("columns", format!("{columns} columns: break the line at {COLUMNS_MAX}"));
        }
        if !source.is_code() {
            continue;
        }
        if let Some(mark) = MARKS.iter().find(|mark| has_word(line, mark)) {
            found("left-over", format!("{mark}: do it now or open an issue"));
        }
        if has_word(line, LATER) && !has_issue_number(line) {
            found("left-over", format!("{LATER} without an issue number: write {LATER}(#12)"));
        }
    }
    findings
}

/// An address cannot be broken over two lines.
fn breaks(line: &str) -> bool {
    !line.contains("https://")
}

/// Neither can the row of a table, a heading, or a word by itself, such as the end of a link.
fn breaks_in_document(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '>', '-', '*']);
    !line.starts_with(['|', '#']) && line.trim_end().contains(' ')
}

fn has_word(line: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(is_word) && !line[at + word.len()..].starts_with(is_word)
    })
}

fn has_issue_number(line: &str) -> bool {
    line.match_indices('#').any(|(at, _)| line[at + 1..].starts_with(|c: char| c.is_ascii_digit()))
}

/// The first absolute path on the line that means something on one machine only.
fn local_path(line: &str) -> Option<&str> {
    let roots = LOCAL_ROOTS.iter().flat_map(|root| line.match_indices(root));
    let homes = line.match_indices(LOCAL_HOMES).filter(|(at, matched)| {
        let user = &line[at + matched.len()..];
        let length = user.find(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'));
        length.is_some_and(|length| length > 0 && user[length..].starts_with('/'))
    });
    let start = roots.chain(homes).map(|(at, _)| at).find(|at| begins_path(&line[..*at]))?;
    let end = line[start..]
        .find(|c: char| c.is_whitespace() || "\"'`)]>,;".contains(c))
        .map_or(line.len(), |length| start + length);
    Some(&line[start..end])
}

/// True if a path may begin after `before`: it is not the middle of a longer one. What follows
/// `://` is a beginning, as in `unix:///…`.
fn begins_path(before: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || "_-.%~})/".contains(c);
    before.ends_with("://") || !before.ends_with(goes_on)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        check(&source).into_iter().map(|finding| (finding.line, finding.rule)).collect()
    }

    #[test]
    fn a_line_of_101_columns_is_too_long_and_100_are_not() {
        let good = "é".repeat(100);
        let bad = "é".repeat(101);
        assert_eq!(rules("a.rs", &good), []);
        assert_eq!(rules("a.rs", &format!("\n{bad}\n")), [(2, "columns")]);
        assert_eq!(rules("a.rs", &format!("// https://{bad}")), []);
        assert_eq!(rules("scripts/run", &format!("#!/bin/sh\n{bad}")), [(2, "columns")]);
    }

    #[test]
    fn documents_wrap_where_they_can() {
        let bad = "é ".repeat(51);
        assert_eq!(rules("a.md", &bad), [(1, "columns")]);
        assert_eq!(rules("a.md", &format!("  - {bad}")), [(1, "columns")]);
        assert_eq!(rules("a.md", &format!("| {bad} |")), [], "a row is one line");
        assert_eq!(rules("a.md", &format!("## {bad}")), [], "so is a heading");
        assert_eq!(rules("a.md", &format!("- link](https://{})", "a".repeat(100))), []);
        assert_eq!(rules("a.toml", &bad), []);
    }

    #[test]
    fn marks_are_found_as_whole_words_in_code() {
        for mark in MARKS {
            assert_eq!(rules("a.py", &format!("# {mark}: later")), [(1, "left-over")]);
            assert_eq!(rules("a.py", &format!("mktemp -d a.{mark}{mark}")), []);
            assert_eq!(rules("a.md", mark), []);
        }
    }

    #[test]
    fn work_for_later_needs_an_issue_number() {
        assert_eq!(rules("a.rs", &format!("// {LATER}: soon")), [(1, "left-over")]);
        assert_eq!(rules("a.rs", &format!("// {LATER}(#17): soon")), []);
        assert_eq!(rules("a.rs", &format!("// {LATER} #x")), [(1, "left-over")]);
    }

    #[test]
    fn paths_of_one_machine_are_found_in_every_text_file() {
        let [root, work] = LOCAL_ROOTS;
        let home = LOCAL_HOMES;
        for bad in [
            format!("cd {work}x"),
            format!("\"{root}a\""),
            format!("unix://{root}a.sock"),
            format!("see {home}ann/a."),
        ] {
            assert_eq!(rules("README.md", &bad), [(1, "local-path")], "{bad}");
        }
        for good in [
            format!("/lab{work}x"),
            format!("$DIR{root}x"),
            format!("{home}$USER/x"),
            format!("{home}<user>/x"),
            format!("https://example.org{home}ann/x"),
        ] {
            assert_eq!(rules("README.md", &good), [], "{good}");
        }
    }
}
