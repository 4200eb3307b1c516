//! The one `byname` binary.
fn main() {}
