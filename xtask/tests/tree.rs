//! The tree itself is tidy: `cargo test` finds what `cargo xtask tidy` finds.

use std::process::Command;

#[test]
fn the_tree_is_tidy() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("tidy").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn an_unknown_chore_is_refused_with_the_usage() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("untidy").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("usage: cargo xtask"));
}
