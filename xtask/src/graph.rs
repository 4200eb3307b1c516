//! The workspace by `cargo metadata`, reduced to what the checks ask.
//!
//! Only packages that a Linux build resolves are listed: cargo would otherwise have to download
//! the Windows and macOS branches of the tree, which are never built here.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::output_of;

/// The platform whose dependencies count; keep in step with `[graph] targets` in deny.toml.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Packages of the workspace and everything they link.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) members: Vec<Member>,
    pub(crate) externals: Vec<External>,
}

/// A crate of this workspace.
#[derive(Debug)]
pub(crate) struct Member {
    /// Package name, e.g. `byname-packet`.
    pub(crate) package: String,
    /// Folder below the workspace root, e.g. `crates/packet`.
    pub(crate) folder: String,
    /// Package names of dependencies on other members, of every kind (dev and build too).
    pub(crate) inner_dependencies: Vec<String>,
}

impl Member {
    /// The room: the last part of the folder.
    pub(crate) fn room(&self) -> &str {
        self.folder.rsplit('/').next().unwrap_or(&self.folder)
    }

    pub(crate) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }
}

/// A package from elsewhere.
#[derive(Debug)]
pub(crate) struct External {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The SPDX expression of its manifest, if it has one.
    pub(crate) license: Option<String>,
}

/// Asks cargo about the workspace at `root`.
pub(crate) fn read(root: &Path) -> Result<Graph> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let arguments = ["metadata", "--format-version=1", "--filter-platform", PLATFORM];
    let bytes = output_of(root, &cargo, &arguments)?;
    parse(&serde_json::from_slice(&bytes).context("cargo metadata prints JSON")?)
}

fn parse(metadata: &Value) -> Result<Graph> {
    let root = text(metadata, "workspace_root")?;
    let members: HashSet<&str> =
        array(metadata, "workspace_members")?.iter().filter_map(Value::as_str).collect();
    let resolve = metadata.get("resolve").context("cargo metadata has no resolve")?;
    let resolved: HashSet<&str> =
        array(resolve, "nodes")?.iter().filter_map(|node| node["id"].as_str()).collect();
    let mut graph = Graph::default();
    for package in array(metadata, "packages")? {
        let id = text(package, "id")?;
        if members.contains(id) {
            graph.members.push(member(package, root)?);
        } else if resolved.contains(id) {
            graph.externals.push(External {
                name: text(package, "name")?.to_owned(),
                version: text(package, "version")?.to_owned(),
                license: package["license"].as_str().map(str::to_owned),
            });
        }
    }
    let names: HashSet<String> = graph.members.iter().map(|m| m.package.clone()).collect();
    for member in &mut graph.members {
        member.inner_dependencies.retain(|name| names.contains(name));
    }
    Ok(graph)
}

fn member(package: &Value, root: &str) -> Result<Member> {
    let manifest = text(package, "manifest_path")?;
    let folder = manifest
        .strip_prefix(root)
        .and_then(|path| path.trim_start_matches('/').strip_suffix("/Cargo.toml"))
        .with_context(|| format!("{manifest} is not below {root}"))?;
    let dependencies = array(package, "dependencies")?;
    Ok(Member {
        package: text(package, "name")?.to_owned(),
        folder: folder.to_owned(),
        inner_dependencies: dependencies
            .iter()
            .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
            .collect(),
    })
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().with_context(|| format!("cargo metadata has no text {key:?}"))
}

fn array<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("cargo metadata has no list {key:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_are_told_from_externals_and_unbuilt_packages_are_left_out() {
        let package = |id: &str, manifest: &str, dependencies: Value| {
            json!({"id": id, "name": id, "version": "1.0.0", "license": "MIT",
                   "manifest_path": manifest, "dependencies": dependencies})
        };
        let graph = parse(&json!({
            "workspace_root": "/w",
            "workspace_members": ["a", "b"],
            "resolve": {"nodes": [{"id": "a"}, {"id": "b"}, {"id": "ext"}]},
            "packages": [
                package("a", "/w/crates/a/Cargo.toml", json!([{"name": "b"}, {"name": "ext"}])),
                package("b", "/w/b/Cargo.toml", json!([])),
                package("ext", "/elsewhere/Cargo.toml", json!([])),
                package("windows", "/elsewhere/Cargo.toml", json!([])),
            ],
        }))
        .unwrap();
        assert_eq!(graph.members.len(), 2);
        assert_eq!(graph.members[0].folder, "crates/a");
        assert_eq!(graph.members[0].room(), "a");
        assert_eq!(graph.members[0].inner_dependencies, ["b"]);
        let externals: Vec<_> = graph.externals.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(externals, ["ext"]);
    }
}
