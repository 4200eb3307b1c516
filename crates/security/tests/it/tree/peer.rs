//! The root against the program that users would run.

use std::io::Write;
use std::process::Command;

use byname_security::tree::{GROUP_BYTES, Tree, UNIT_BYTES};

use super::content;

#[test]
fn the_root_is_what_b3sum_prints() {
    if Command::new("b3sum").arg("--version").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must have b3sum installed");
        // Past the runner's capture, so that `make test` counts it.
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: b3sum is not installed (Debian package b3sum)");
        return;
    }
    for size in [0, 1, UNIT_BYTES, UNIT_BYTES + 1, GROUP_BYTES, GROUP_BYTES + 1, 5_000_001] {
        let bytes = content(size);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let output = Command::new("b3sum").arg("--no-names").arg(file.path()).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed.trim(), Tree::of(&bytes).root.to_string(), "size {size}");
    }
}
