//! The header of the C interface, made by cbindgen from the sources that define it.
//!
//! cbindgen takes longer to build than all of xtask, so only who changes the interface builds it.
//! That the header is what its sources made is seen by a digest of both in its last line.

use std::path::Path;

use anyhow::{Context, Result};

use crate::command::output_of;
use crate::finding::Finding;
use crate::sources::Source;

const HEADER: &str = "crates/ffi/include/byname.h";
const CONFIG: &str = "crates/ffi/cbindgen.toml";
/// What crosses the interface, in the order of the header.
const SOURCES: [&str; 12] = [
    "crates/ffi/src/abi.rs",
    "crates/ffi/src/abi/sites.rs",
    "crates/ffi/src/abi/doors.rs",
    "crates/ffi/src/entry/calls.rs",
    "crates/ffi/src/entry/sessions.rs",
    "crates/ffi/src/entry/listings.rs",
    "crates/ffi/src/entry/files.rs",
    "crates/ffi/src/entry/sites.rs",
    "crates/ffi/src/entry/doors.rs",
    "crates/ffi/src/entry/site_acls.rs",
    "crates/ffi/src/entry/loans.rs",
    "crates/ffi/src/entry/site_files.rs",
];
const TOOL: &str = "xtask/header/Cargo.toml";
const MARK: &str = "// Digest of sources and text: ";

/// Makes the header anew.
pub(crate) fn write(root: &Path, sources: &[Source]) -> Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let run = ["run", "--quiet", "--locked", "--manifest-path", TOOL];
    let arguments = [&run[..], &["--target-dir", "target/header", "--", CONFIG], &SOURCES].concat();
    let text =
        String::from_utf8(output_of(root, &cargo, &arguments)?).context("a header is text")?;
    let digest = digest(&text, sources);
    std::fs::write(root.join(HEADER), format!("{text}\n{MARK}{digest:016x}\n")).context(HEADER)
}

/// Checks that the header is what its sources made.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let Some(header) = sources.iter().find(|source| source.path == HEADER) else {
        return Vec::new();
    };
    let (text, found) = header.text.rsplit_once(&format!("\n{MARK}")).unwrap_or_default();
    if found.trim_end() == format!("{:016x}", digest(text, sources)) {
        return Vec::new();
    }
    let advice = "is not what its sources make: run cargo xtask header";
    vec![Finding::new(HEADER, header.text.lines().count(), "header", advice)]
}

/// FNV-1a of the header without its last line, and of everything that it was made from.
fn digest(text: &str, sources: &[Source]) -> u64 {
    let of = |path: &&str| sources.iter().find(|source| source.path == **path);
    let made_from = SOURCES.iter().chain(&[CONFIG]).filter_map(of);
    let texts = made_from.map(|source| source.text.as_str()).chain([text]);
    texts.flat_map(|text| text.bytes().chain([0])).fold(0xcbf2_9ce4_8422_2325, |state, octet| {
        (state ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(abi: &str, text: &str, digest: u64) -> Vec<Source> {
        let source = |path: &str, text: String| Source { path: path.to_owned(), text };
        let header = format!("{text}\n{MARK}{digest:016x}\n");
        vec![source(SOURCES[0], abi.to_owned()), source(HEADER, header)]
    }

    #[test]
    fn a_header_is_stale_when_it_or_a_source_was_changed() {
        let digest = digest("int f(void);\n", &tree("fn f()", "", 0));
        assert_eq!(check(&tree("fn f()", "int f(void);\n", digest)), []);
        for (abi, text) in [("fn g()", "int f(void);\n"), ("fn f()", "int g(void);\n")] {
            let findings = check(&tree(abi, text, digest));
            assert_eq!(findings.len(), 1, "{abi} {text}");
            assert_eq!((findings[0].path.as_str(), findings[0].rule), (HEADER, "header"));
        }
        assert_eq!(check(&tree("fn f()", "int f(void);\n", digest + 1)).len(), 1);
    }
}
