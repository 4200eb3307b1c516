//! The rules on imports: circles stay small and inside one wing, and cores stay without I/O.

use std::collections::BTreeMap;

use super::Imports;
use crate::finding::Finding;

/// Files that may import each other in a circle: a state machine and its parts.
const CIRCLE_FILES_MAX: usize = 3;

/// Wings that work on what they are given, by crate.
const WITHOUT_IO: [(&str, &str); 2] = [("client", "engine"), ("client", "lookup")];
/// Paths that such a wing never names.
const IO_PATHS: [&[&str]; 5] =
    [&["std", "io"], &["std", "fs"], &["std", "thread"], &["std", "net"], &["byname_io"]];

/// Functions of other crates that one file wraps for all: what is done with them is decided once.
const WRAPPED_ONCE: [&str; 1] = ["byname_link::stream_frame_len"];

/// Every rule on every crate.
pub(crate) fn check_all(crates: &[Imports]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = crates.iter().flat_map(check).collect();
    findings.extend(check_wrapped(crates));
    findings
}

fn check(imports: &Imports) -> Vec<Finding> {
    let mut findings = check_circles(imports);
    findings.extend(check_io(imports));
    findings
}

fn check_circles(imports: &Imports) -> Vec<Finding> {
    let mut findings = Vec::new();
    for circle in imports.circles() {
        let wings: Vec<&str> = imports.wings(&circle).into_iter().collect();
        let path = format!("{}/src/{}", imports.folder, imports.files[circle[0]]);
        let mut found = |advice| findings.push(Finding::new(&path, 1, "circle", advice));
        let (files, room) = (circle.len(), imports.room());
        if wings.len() > 1 {
            found(format!(
                "{files} files of {} wings import each other ({}): cut it, see \
                 `cargo xtask imports {room}`",
                wings.len(),
                wings.join(", ")
            ));
        } else if files > CIRCLE_FILES_MAX {
            found(format!(
                "{files} files of {} import each other, {CIRCLE_FILES_MAX} at most: cut it, see \
                 `cargo xtask imports {room}`",
                wings[0]
            ));
        }
    }
    findings
}

fn check_wrapped(crates: &[Imports]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for wrapped in WRAPPED_ONCE {
        let mut places = BTreeMap::new();
        for imports in crates.iter().filter(|imports| !imports.folder.starts_with("fuzz/")) {
            for (file, used) in imports.external.iter().filter(|(_, used)| used.name == wrapped) {
                let path = format!("{}/src/{}", imports.folder, imports.files[*file]);
                places.entry(path).or_insert(used.line);
            }
        }
        if places.len() > 1 {
            let count = places.len();
            findings.extend(places.into_iter().map(|(path, line)| {
                let advice = format!("{wrapped} is used by {count} files: use the one wrapper");
                Finding::new(path, line, "wrapped-once", advice)
            }));
        }
    }
    findings
}

fn check_io(imports: &Imports) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, used) in &imports.external {
        let wing = (imports.room(), imports.wing(*file));
        let segments: Vec<&str> = used.name.split("::").collect();
        if WITHOUT_IO.contains(&wing) && IO_PATHS.iter().any(|path| segments.starts_with(path)) {
            let path = format!("{}/src/{}", imports.folder, imports.files[*file]);
            let advice = format!("{} in a wing without I/O: do it in another wing", used.name);
            findings.push(Finding::new(path, used.line, "without-io", advice));
        }
    }
    findings
}
