//! A good and a bad sample for every rule on Rust code.

use super::*;

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

fn rules_of(sources: &[Source]) -> Vec<(usize, &'static str)> {
    check(sources).into_iter().map(|finding| (finding.line, finding.rule)).collect()
}

/// The findings in a file that begins as it should.
fn rules(text: &str) -> Vec<(usize, &'static str)> {
    rules_of(&[source("crates/a/src/b.rs", &format!("//! B.\n{text}"))])
}

#[test]
fn a_function_has_70_lines_at_most() {
    let function =
        |lines: usize| format!("/// Doc.\n#[inline]\nfn f() {{{}}}\n", "\n".repeat(lines - 1));
    assert_eq!(rules(&function(66)), []);
    assert_eq!(rules(&function(67)), [(4, "near-limit")]);
    assert_eq!(rules(&function(70)), [(4, "near-limit")]);
    assert_eq!(rules(&function(71)), [(4, "function-length")]);
    let method = format!("impl A {{\n{}}}\n", function(71));
    assert_eq!(rules(&method), [(5, "function-length")]);
    let provided = format!("trait A {{\n{}}}\n", function(71));
    assert_eq!(rules(&provided), [(5, "function-length")]);
    let nested = format!("fn g() {{\n{}}}\n", function(71));
    assert_eq!(rules(&nested), [(2, "function-length"), (5, "function-length")]);
}

#[test]
fn a_function_takes_5_parameters_at_most_besides_self() {
    assert_eq!(rules("fn f(a: u8, b: u8, c: u8, d: u8, e: u8) {}"), []);
    assert_eq!(rules("fn f(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8) {}"), [(2, "parameters")]);
    assert_eq!(rules("impl A {\n fn f(&self, a: u8, b: u8, c: u8, d: u8, e: u8) {}\n}"), []);
    assert_eq!(
        rules("fn f(a: (u8, u8), b: &(u8, (u8, u8)), c: [(u8, u8); 2]) {}"),
        [(2, "parameters")]
    );
    assert_eq!(rules("fn f(a: (u8, u8), b: (), c: Option<(u8, u8)>, d: u8) {}"), []);
    let required = "trait A {\n fn f(&self, a: u8, b: u8, c: u8, d: u8, e: u8, f: u8);\n}";
    assert_eq!(rules(required), [(3, "parameters")]);
}

#[test]
fn a_file_has_500_lines_at_most_without_its_tests() {
    let lines = |count: usize| "// A line.\n".repeat(count);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", lines(300));
    assert_eq!(rules(&lines(474)), []);
    assert_eq!(rules(&lines(475)), [(1, "near-limit")]);
    assert_eq!(rules(&lines(499)), [(1, "near-limit")]);
    assert_eq!(rules(&lines(500)), [(1, "file-length")]);
    assert_eq!(rules(&(lines(474) + &tests)), []);
    assert_eq!(rules(&(lines(500) + &tests)), [(1, "file-length")]);
    let long = format!("//! T.\n{}", lines(900));
    assert_eq!(rules_of(&[source("crates/a/tests/all.rs", &long)]), []);
    assert_eq!(rules_of(&[source("crates/a/src/b/tests.rs", &long)]), []);
    assert_eq!(rules_of(&[source("crates/a/src/contests.rs", &long)]), [(1, "file-length")]);
}

#[test]
fn a_file_declared_for_tests_is_test_code() {
    let body = "//! C.\nfn f() { Some(1).unwrap(); }\n";
    let files = |declaration: &str| {
        let parent = format!("//! B.\n{declaration}\n");
        [source("crates/a/src/b.rs", &parent), source("crates/a/src/b/c.rs", body)]
    };
    assert_eq!(rules_of(&files("#[cfg(test)]\nmod c;")), []);
    assert_eq!(rules_of(&files("mod c;")), [(2, "unwrap")]);
    let below_lib = [
        source("crates/a/src/lib.rs", "//! A.\n#[cfg(test)] mod c;"),
        source("crates/a/src/c.rs", body),
    ];
    assert_eq!(rules_of(&below_lib), []);
}

#[test]
fn every_file_begins_with_a_header() {
    assert_eq!(rules_of(&[source("a.rs", "//! A.\n")]), []);
    assert_eq!(rules_of(&[source("a.rs", "use b;\n//! A.\n")]).first(), Some(&(2, "syntax")));
    assert_eq!(rules_of(&[source("a.rs", "// A.\n")]), [(1, "header")]);
}

#[test]
fn a_module_is_named_after_its_folder() {
    assert_eq!(rules_of(&[source("crates/a/src/b/mod.rs", "//! B.\n")]), [(1, "mod-rs")]);
}

#[test]
fn left_over_macros_are_found_even_inside_macros_and_tests() {
    for name in ["todo", "unimplemented", "dbg"] {
        assert_eq!(rules(&format!("fn f() {{\n {name}!(1);\n}}")), [(3, "left-over")]);
        assert_eq!(rules(&format!("fn f() {{ vec![\n{name}!(1)]; }}")), [(3, "left-over")]);
        assert_eq!(rules(&format!("#[test]\nfn f() {{ {name}!(1) }}")), [(3, "left-over")]);
        assert_eq!(rules(&format!("/// {name}!()\nfn f() {{ g(\"{name}!()\"); }}")), []);
        assert_eq!(rules(&format!("fn f({name}: u8) -> bool {{ {name} != 1 }}")), []);
    }
}

#[test]
fn unsafe_stays_in_its_rooms() {
    let text = "//! A.\nfn f() {\n unsafe { g() }\n}\n";
    assert_eq!(rules_of(&[source("crates/io/src/a.rs", text)]), []);
    assert_eq!(rules_of(&[source("crates/ffi/src/a.rs", text)]), []);
    assert_eq!(rules_of(&[source("crates/iota/src/a.rs", text)]), [(3, "unsafe")]);
    assert_eq!(rules("#![deny(unsafe_code)]\n"), []);
}

#[test]
fn unwrap_is_for_tests() {
    assert_eq!(rules("fn f() {\n a\n .unwrap();\n}"), [(4, "unwrap")]);
    assert_eq!(rules("fn f() { a.map(Option::unwrap); }"), [(2, "unwrap")]);
    assert_eq!(rules("fn f() { println!(\"{}\", a.unwrap()); }"), [(2, "unwrap")]);
    assert_eq!(rules("fn f() { a.unwrap_or(1); a.expect(\"it is set\"); }"), []);
    assert_eq!(rules("#[test]\nfn f() { a.unwrap(); }"), []);
    assert_eq!(rules("#[cfg(test)]\nmod tests { fn f() { a.unwrap(); } }"), []);
    assert_eq!(rules("#[cfg(all(test, unix))]\nfn f() { a.unwrap(); }"), []);
    assert_eq!(rules("#[cfg(not(test))]\nfn f() { a.unwrap(); }"), [(3, "unwrap")]);
    let fuzz = "//! F.\nfn f() { a.unwrap(); }\n";
    assert_eq!(rules_of(&[source("fuzz/fuzz_targets/a.rs", fuzz)]), []);
}

#[test]
fn an_error_is_not_a_string() {
    assert_eq!(rules("fn f() -> Result<u8, String> { g() }"), [(2, "string-error")]);
    assert_eq!(
        rules("type A = Vec<std::result::Result<(), std::string::String>>;"),
        [(2, "string-error")]
    );
    assert_eq!(rules("fn f() -> Result<String, Error> { g() }"), []);
}
