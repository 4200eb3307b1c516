//! Layering: which room may use which. Dev-dependencies count too, because a test that needs an
//! upper room belongs in that room.
//!
//! The table is the drawing in ARCHITECTURE.md. A new crate gets its line here when it appears.

use crate::finding::Finding;
use crate::graph::Graph;
use crate::sources::{Source, line_where};

const RULE: &str = "layering";

/// Each room with the rooms it may use. Rooms that are not named here do not exist yet.
const MAY_USE: [(&str, &[&str]); 26] = [
    ("packet", &[]),
    ("io", &[]),
    ("retry", &[]),
    ("link", &["packet"]),
    ("face", &["io", "link", "packet", "retry"]),
    ("security", &["packet"]),
    ("keychain", &["packet", "security"]),
    ("transfer", &["packet", "retry", "security"]),
    ("forwarder", &["link", "packet", "retry", "security"]),
    ("node", &["face", "forwarder", "io", "link", "packet", "retry"]),
    ("store", &["face", "io", "link", "packet", "retry", "security", "transfer"]),
    ("cache", &["io", "packet", "security", "transfer"]),
    ("client", &["cache", "face", "io", "link", "packet", "retry", "security", "transfer"]),
    ("profile", &["cache", "client", "io", "keychain", "packet", "security", "transfer"]),
    (
        "ffi",
        &[
            "access", "catalog", "client", "io", "packet", "profile", "security", "transfer",
            "writer",
        ],
    ),
    ("mount", &["cache", "client", "packet", "profile", "security", "transfer"]),
    ("traffic", &["face", "io", "link", "packet"]),
    ("catalog", &[]),
    ("postgres", &["catalog"]),
    ("site", &["catalog", "packet", "security", "transfer"]),
    (
        "head",
        &["catalog", "face", "io", "packet", "postgres", "security", "site", "store", "transfer"],
    ),
    (
        "disk",
        &["catalog", "client", "face", "io", "packet", "security", "site", "store", "transfer"],
    ),
    ("web", &["retry"]),
    (
        "access",
        &[
            "catalog", "client", "face", "io", "keychain", "packet", "profile", "security", "site",
            "transfer", "writer",
        ],
    ),
    (
        "writer",
        &["catalog", "face", "io", "link", "packet", "retry", "security", "site", "transfer"],
    ),
    (
        "sim",
        &[
            "catalog",
            "client",
            "disk",
            "face",
            "forwarder",
            "head",
            "link",
            "packet",
            "security",
            "site",
            "store",
            "transfer",
            "writer",
        ],
    ),
];
/// Rooms at the top: they may use everything, and nothing uses them.
const TOP: [&str; 3] = ["cli", "replay", "xtask"];

pub(super) fn check(graph: &Graph, sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &graph.members {
        let manifest = member.manifest();
        let text = sources.iter().find(|s| s.path == manifest).map_or("", |s| s.text.as_str());
        let room = member.room();
        let allowed = MAY_USE.iter().find(|(name, _)| *name == room).map(|(_, allowed)| *allowed);
        if allowed.is_none() && !TOP.contains(&room) {
            let advice =
                format!("{room} has no layer: add it to MAY_USE in xtask/src/tidy/layers.rs");
            findings.push(Finding::new(&manifest, 1, RULE, advice));
            continue;
        }
        for package in &member.inner_dependencies {
            let Some(used) = graph.members.iter().find(|other| other.package == *package) else {
                continue;
            };
            let used = used.room();
            let is_top = TOP.contains(&used);
            if !is_top && allowed.is_none_or(|allowed| allowed.contains(&used)) {
                continue;
            }
            let advice = if is_top {
                format!("{room} uses {used}, but nothing may use {used}: move the code down")
            } else {
                let allowed = allowed.unwrap_or_default().join(", ");
                format!("{room} may use only [{allowed}], not {used}: move the code or the test up")
            };
            let line = line_where(text, |line| names_package(line, package));
            findings.push(Finding::new(&manifest, line, RULE, advice));
        }
    }
    findings
}

/// True if a manifest line is the entry of a dependency.
pub(super) fn names_package(line: &str, package: &str) -> bool {
    line.trim_start()
        .trim_start_matches('"')
        .strip_prefix(package)
        .is_some_and(|rest| rest.starts_with(['.', ' ', '=', '"']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Member;

    fn graph(edges: &[(&str, &[&str])]) -> Graph {
        let members = edges
            .iter()
            .map(|(room, used)| Member {
                package: format!("byname-{room}"),
                folder: format!("crates/{room}"),
                inner_dependencies: used.iter().map(|room| format!("byname-{room}")).collect(),
            })
            .collect();
        Graph { members, externals: vec![] }
    }

    #[test]
    fn edges_of_the_drawing_are_allowed() {
        let mut edges = MAY_USE.to_vec();
        edges.push(("cli", &["client", "keychain", "node", "packet", "store"]));
        assert_eq!(check(&graph(&edges), &[]), []);
    }

    #[test]
    fn an_edge_upwards_is_found_at_its_line() {
        let graph = graph(&[("packet", &["security"]), ("security", &["packet"])]);
        let manifest = Source {
            path: "crates/packet/Cargo.toml".to_owned(),
            text: "[package]\n\n[dev-dependencies]\nbyname-security.workspace = true\n".to_owned(),
        };
        let findings = check(&graph, &[manifest]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path, "crates/packet/Cargo.toml");
        assert_eq!(findings[0].line, 4);
        assert!(findings[0].advice.contains("not security"));
    }

    #[test]
    fn io_uses_no_protocol_crate_and_nothing_uses_the_top() {
        let findings = check(
            &graph(&[("io", &["packet"]), ("packet", &[]), ("cli", &["xtask"]), ("xtask", &[])]),
            &[],
        );
        let places: Vec<_> = findings.iter().map(|f| f.path.as_str()).collect();
        assert_eq!(places, ["crates/io/Cargo.toml", "crates/cli/Cargo.toml"]);
    }

    #[test]
    fn an_unknown_room_has_no_layer() {
        let findings = check(&graph(&[("attic", &[])]), &[]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].advice.contains("attic has no layer"));
    }
}
