//! Every command line that README, docs/cli.md and the help texts show is one that the program
//! takes. journeys/examples runs them.

use crate::Cli;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

/// Words of a line as a shell would split them; ends where a pipe, a redirection or a comment
/// begins.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | '#' | '&' | ';') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[track_caller]
fn check(place: &str, line: &str) {
    let words = words(line);
    let taken = Cli::try_parse_from(&words);
    let is_fine = taken.as_ref().map_or_else(|error| !error.use_stderr(), |_| true);
    assert!(is_fine, "{place}: {line}\n{}", taken.err().map(|e| e.to_string()).unwrap_or_default());
}

/// Prose names commands and flags, with words for their values: those must exist.
#[track_caller]
fn check_mention(line: &str) {
    let taken = Cli::try_parse_from(words(line));
    let kind = taken.err().map(|error| error.kind());
    let is_unknown =
        matches!(kind, Some(ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand));
    assert!(!is_unknown, "prose: {line}: {kind:?}");
}

/// Examples of a help text, its command's and those of the commands below it.
fn check_help(command: &clap::Command, count: &mut usize) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    for line in help.lines().map(str::trim).filter(|line| line.starts_with("byname ")) {
        // The explanation stands behind two spaces.
        let line = line.split("  ").next().unwrap_or(line);
        check(&format!("help of {}", command.get_name()), line);
        *count += 1;
    }
    command.get_subcommands().for_each(|below| check_help(below, count));
}

/// Lines of code blocks that run the program.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    let is_code = |(index, _): &(usize, &str)| index % 2 == 1;
    let code = text.split("```").enumerate().filter(is_code).flat_map(|(_, block)| block.lines());
    code.map(|line| line.trim().trim_start_matches("$ ")).filter(|line| line.starts_with("byname "))
}

/// Code within a line that is a whole command: what has placeholders of a synopsis is none.
fn spans(text: &str) -> impl Iterator<Item = String> {
    let is_code = |(index, _): &(usize, &str)| index % 2 == 1;
    let spans = text.split('`').enumerate().filter(is_code);
    let lines = spans.map(|(_, span)| span.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| line.starts_with("byname ") && !line.contains(['[', '|', '…']))
}

#[test]
fn the_program_takes_every_example() {
    let mut count = 0;
    check_help(&Cli::command(), &mut count);
    assert!(count > 50, "only {count} examples in help texts");
    let readme = include_str!("../../../README.md");
    for line in blocks(readme) {
        check("README.md", line);
        count += 1;
    }
    for line in spans(include_str!("../../../docs/cli.md")).chain(spans(readme)) {
        // `byname COMMAND` and the like stand for any command.
        let verb = line.split(' ').nth(1).unwrap_or_default();
        if !verb.chars().all(|c| c.is_ascii_uppercase()) {
            check_mention(&line);
            count += 1;
        }
    }
    assert!(count > 70, "only {count} examples");
}

#[test]
fn words_end_where_a_shell_would_end_them() {
    assert_eq!(words("byname get 'a b' -o x | less"), ["byname", "get", "a b", "-o", "x"]);
    assert_eq!(words("byname  ls /a#b # explained"), ["byname", "ls", "/a#b"]);
    assert_eq!(words("byname cat /a > b"), ["byname", "cat", "/a"]);
}
