//! Small crates, and the imports that are to be seen in them.

use super::*;

/// The imports of a crate `crates/a` with these files below `src`.
fn imports(files: &[(&str, &str)]) -> Imports {
    let sources: Vec<Source> = files
        .iter()
        .map(|(path, text)| Source {
            path: format!("crates/a/src/{path}"),
            text: (*text).to_owned(),
        })
        .collect();
    read(&sources, None).pop().unwrap()
}

fn edges(files: &[(&str, &str)]) -> Vec<String> {
    let imports = imports(files);
    let to_text =
        |(from, to): (usize, &usize)| format!("{} -> {}", imports.files[from], imports.files[*to]);
    let edges = imports.edges.iter().enumerate();
    edges.flat_map(|(from, to)| to.keys().map(move |to| (from, to))).map(to_text).collect()
}

#[test]
fn an_import_leads_to_the_file_of_the_module() {
    for import in [
        "use crate::c::Y;",
        "use super::c::{self, Y};",
        "use crate::c; fn f(y: c::Y) {}",
        "use crate::c::*;\nfn f(y: Y) {}",
        "fn f() { crate::c::Y::new() }",
        "fn f() { println!(\"{}\", crate::c::Y) }",
        "use crate::c as d; fn f() { g!(d::Y) }",
        "use crate::c::Y as Z;",
        "fn f() { use crate::c::Y; }",
        "use crate::c::Made;",
    ] {
        let root = "mod b; mod c;";
        let files = [("lib.rs", root), ("b.rs", import), ("c.rs", "pub struct Y;")];
        assert_eq!(edges(&files), ["b.rs -> c.rs"], "{import}");
    }
}

#[test]
fn a_re_export_is_followed_and_is_no_import_of_its_own() {
    let files = [
        ("lib.rs", "mod b; mod c; pub use c::*; pub use c::deep::Z;"),
        ("b.rs", "use crate::{Y, Z};"),
        ("c.rs", "mod deep; pub use self::deep::Z; pub struct Y;"),
        ("c/deep.rs", "pub struct Z;"),
    ];
    assert_eq!(edges(&files), ["b.rs -> c.rs", "b.rs -> c/deep.rs"]);
    let uses_itself =
        [("lib.rs", "mod b; pub use b::Y; pub fn f(y: Y) {}"), ("b.rs", "pub struct Y;")];
    assert_eq!(edges(&uses_itself), ["lib.rs -> b.rs"]);
}

#[test]
fn declarations_tests_visibilities_and_other_crates_are_no_imports() {
    let files = [
        ("lib.rs", "mod b; #[cfg(test)] mod t; pub struct X;"),
        (
            "b.rs",
            "pub(in crate::b) fn f() -> std::io::Error { Vec::new() }\n\
             #[cfg(test)] mod tests { use crate::X; }\n\
             struct B;\nimpl B { #[cfg(test)] fn g() { crate::X; } }",
        ),
        ("t.rs", "use crate::X;"),
    ];
    assert!(edges(&files).is_empty());
    assert_eq!(imports(&files).files, ["b.rs", "lib.rs"]);
}

#[test]
fn names_that_import_each_other_come_to_an_end() {
    let files = [
        ("lib.rs", "mod b; mod c;"),
        ("b.rs", "pub use crate::c::Y; pub use crate::c::*; fn f() { Y }"),
        ("c.rs", "pub use crate::b::Y; pub use crate::b::*;"),
    ];
    assert!(imports(&files).circles().is_empty());
}

fn rules(files: &[(&str, &str)]) -> Vec<String> {
    check_all(&[imports(files)]).into_iter().map(|finding| finding.path).collect()
}

#[test]
fn a_circle_between_wings_is_found_and_one_of_three_files_in_a_wing_is_not() {
    let below = "pub struct X; use super::Y;";
    let wing = [
        ("lib.rs", "mod b;"),
        ("b.rs", "mod c; mod d; pub struct Y; use self::c::X; use self::d::X as Z;"),
        ("b/c.rs", below),
        ("b/d.rs", below),
    ];
    assert!(rules(&wing).is_empty());
    let larger = [
        ("lib.rs", "mod b;"),
        ("b.rs", "mod c; mod d; mod e; pub struct Y; fn f() { (c::X, d::X, e::X) }"),
        ("b/c.rs", below),
        ("b/d.rs", below),
        ("b/e.rs", below),
    ];
    assert_eq!(rules(&larger), ["crates/a/src/b.rs"]);
    let wings = [
        ("lib.rs", "mod b; mod c;"),
        ("b.rs", "pub struct X; use crate::c::Y;"),
        ("c.rs", "pub struct Y; use crate::b::X;"),
    ];
    assert_eq!(rules(&wings), ["crates/a/src/b.rs"]);
}

#[test]
fn a_core_names_no_io() {
    let io = "use std::{fs, net::IpAddr};\nfn f() { byname_io::run(); std::thread::sleep(d) }";
    let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
    let sources = [
        source("crates/client/src/lib.rs", "mod engine; mod session;"),
        source("crates/client/src/engine.rs", "mod a; use std::time::Duration;"),
        source("crates/client/src/engine/a.rs", io),
        source("crates/client/src/session.rs", io),
    ];
    let imports = read(&sources, Some("client"));
    let found: Vec<_> = check_all(&imports).into_iter().map(|f| (f.path, f.line)).collect();
    let path = || "crates/client/src/engine/a.rs".to_owned();
    assert_eq!(found, [(path(), 1), (path(), 1), (path(), 2), (path(), 2)]);
}

#[test]
fn what_is_wrapped_once_is_used_by_one_file() {
    let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
    let wrapper = "use byname_link::stream_frame_len;\nfn f() { stream_frame_len(a) }\n\
        #[cfg(test)] mod tests { use byname_link::stream_frame_len; }";
    let mut sources = vec![source("crates/face/src/lib.rs", wrapper)];
    assert!(check_all(&read(&sources, None)).is_empty());
    let again = "//! A.\nfn f() { byname_link::stream_frame_len(a) }";
    sources.push(source("crates/node/src/lib.rs", again));
    let found: Vec<_> =
        check_all(&read(&sources, None)).into_iter().map(|f| (f.path, f.line)).collect();
    let at = |path: &str, line| (path.to_owned(), line);
    assert_eq!(found, [at("crates/face/src/lib.rs", 1), at("crates/node/src/lib.rs", 2)]);
}
