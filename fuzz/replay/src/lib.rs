//! The fuzz targets as plain functions of octets: each panics when something that must hold for any
//! input does not.
//!
//! The fuzzer proper (`fuzz/fuzz_targets`) needs a coverage build; `cargo test` replays the corpora
//! through the same functions and mutates them with a fixed seed, so that every change is checked.
//!
//! Invariant: a target depends on nothing but its input, so that one input reproduces a finding.

mod forwarder;
mod memif;
pub mod mutate;
mod objects;
mod rebuild;
mod site;
mod trust;
mod wire;

/// One target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name: that of its corpus folder and of its fuzzer binary.
    pub name: &'static str,
    /// Panics on a finding.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 18] = [
    Target { name: "packet", run: wire::packet },
    Target { name: "lp", run: wire::lp },
    Target { name: "name_uri", run: wire::name_uri },
    Target { name: "mgmt", run: wire::mgmt },
    Target { name: "signature_info", run: wire::signature_info },
    Target { name: "link_reassembly", run: objects::link_reassembly },
    Target { name: "link_send", run: objects::link_send },
    Target { name: "metadata", run: objects::metadata },
    Target { name: "listing", run: objects::listing },
    Target { name: "manifest", run: objects::manifest },
    Target { name: "kept_copy", run: objects::kept_copy },
    Target { name: "certificate", run: trust::certificate },
    Target { name: "byname_link", run: trust::byname_link },
    Target { name: "tree_verifier", run: trust::tree_verifier },
    Target { name: "forwarder", run: forwarder::forwarder },
    Target { name: "site", run: site::site },
    Target { name: "memif", run: memif::memif },
    Target { name: "loan", run: trust::loan },
];

/// Runs the target called `name`.
///
/// # Panics
/// When there is no such target, and when the target finds something.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target of this name").run)(input);
}
