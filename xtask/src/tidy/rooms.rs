//! Rules for every crate: a README, and dependency versions only in the root manifest.

use crate::finding::Finding;
use crate::graph::{Graph, Member};
use crate::sources::{Source, line_where};
use crate::tidy::layers::names_package;

/// A crate whose root module is shorter than this has not begun yet.
const BEGUN_LINES: usize = 30;

pub(super) fn check(graph: &Graph, sources: &[Source]) -> Vec<Finding> {
    graph.members.iter().flat_map(|member| check_member(member, sources)).collect()
}

fn check_member(member: &Member, sources: &[Source]) -> Vec<Finding> {
    let find = |name: &str| {
        let path = format!("{}/{name}", member.folder);
        sources.iter().find(|source| source.path == path)
    };
    let mut findings = Vec::new();
    let root = find("src/lib.rs").or_else(|| find("src/main.rs"));
    let has_begun = root.is_some_and(|root| root.text.lines().count() >= BEGUN_LINES);
    if has_begun && find("README.md").is_none() {
        let advice = "no README.md: write what it is, invariants, limits, where to start reading";
        findings.push(Finding::new(format!("{}/README.md", member.folder), 1, "readme", advice));
    }
    if let Some(manifest) = find("Cargo.toml") {
        findings.extend(check_manifest(manifest));
    }
    findings
}

fn check_manifest(manifest: &Source) -> Vec<Finding> {
    let Ok(table) = manifest.text.parse::<toml::Table>() else {
        let advice = "does not parse as TOML";
        return vec![Finding::new(&manifest.path, 1, "manifest", advice)];
    };
    let mut findings = Vec::new();
    for name in own_versions(&table) {
        let line = line_where(&manifest.text, |line| names_package(line, &name));
        let advice = format!(
            "fix {name} in [workspace.dependencies] of the root and write {name}.workspace = true"
        );
        findings.push(Finding::new(&manifest.path, line, "manifest", advice));
    }
    if table.get("lints").and_then(|lints| lints.get("workspace")).is_none() {
        let advice = "add [lints] workspace = true";
        findings.push(Finding::new(&manifest.path, 1, "manifest", advice));
    }
    findings
}

/// Dependencies of any kind, at any `[target]`, that do not come from the root.
fn own_versions(table: &toml::Table) -> Vec<String> {
    let mut own = Vec::new();
    for (key, value) in table {
        let Some(inner) = value.as_table() else { continue };
        if key == "target" {
            own.extend(inner.values().filter_map(toml::Value::as_table).flat_map(own_versions));
        }
        if matches!(key.as_str(), "dependencies" | "dev-dependencies" | "build-dependencies") {
            let from_root = |entry: &toml::Value| entry.get("workspace").is_some();
            own.extend(inner.iter().filter(|(_, e)| !from_root(e)).map(|(name, _)| name.clone()));
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[dependencies]\na.workspace = true\nb = { workspace = true }\n\
        [lints]\nworkspace = true\n";

    fn findings(files: &[(&str, &str)]) -> Vec<(String, usize, &'static str)> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source {
                path: format!("crates/a/{path}"),
                text: (*text).to_owned(),
            })
            .collect();
        let member = Member {
            package: "byname-a".to_owned(),
            folder: "crates/a".to_owned(),
            inner_dependencies: vec![],
        };
        let graph = Graph { members: vec![member], externals: vec![] };
        check(&graph, &sources).into_iter().map(|f| (f.path, f.line, f.rule)).collect()
    }

    #[test]
    fn a_crate_that_has_begun_needs_a_readme() {
        let begun = "//\n".repeat(BEGUN_LINES);
        let empty = "//\n".repeat(BEGUN_LINES - 1);
        let missing = [("crates/a/README.md".to_owned(), 1, "readme")];
        assert_eq!(findings(&[("src/lib.rs", &begun)]), missing);
        assert_eq!(findings(&[("src/main.rs", &begun)]), missing);
        assert_eq!(findings(&[("src/lib.rs", &begun), ("README.md", "# a")]), []);
        assert_eq!(findings(&[("src/lib.rs", &empty)]), []);
    }

    #[test]
    fn versions_live_in_the_root_manifest() {
        assert_eq!(findings(&[("Cargo.toml", GOOD)]), []);
        for (bad, line) in [
            ("[dependencies]\na = \"1\"\n", 5),
            ("[dev-dependencies]\na.workspace = true\nb = { version = \"1\" }\n", 6),
            ("[target.'cfg(unix)'.dependencies]\nc = { path = \"../c\" }\n", 5),
        ] {
            let text = format!("[lints]\nworkspace = true\n\n{bad}");
            let place = ("crates/a/Cargo.toml".to_owned(), line, "manifest");
            assert_eq!(findings(&[("Cargo.toml", &text)]), [place], "{bad}");
        }
    }

    #[test]
    fn every_manifest_takes_the_common_lints() {
        let place = ("crates/a/Cargo.toml".to_owned(), 1, "manifest");
        assert_eq!(findings(&[("Cargo.toml", "[package]\nname = \"a\"\n")]), [place]);
    }
}
