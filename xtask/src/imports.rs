//! Imports between the files of one crate: who uses what another file defines, and where that goes
//! round in circles.
//!
//! A file imports the file that defines what it names, not the one that hands it on: re-exports are
//! followed. Method calls name no file and are not seen. A wing is a top-level module with
//! everything below it. Tests are left out.

mod check;
mod circles;
mod modules;
mod resolve;

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::modules::Modules;
use crate::imports::resolve::Target;
use crate::sources::Source;

pub(crate) use check::check_all;

/// A name by which one file uses another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    /// 1-based.
    line: usize,
    name: String,
}

/// A crate's files and the imports between them.
#[derive(Debug)]
pub(crate) struct Imports {
    /// The crate's folder, e.g. `crates/client`.
    folder: String,
    /// Paths of the files below `folder/src`, in order.
    files: Vec<String>,
    /// For each file the files it imports, each with the names it uses.
    edges: Vec<BTreeMap<usize, BTreeSet<Use>>>,
    /// Paths into other crates, by file.
    external: Vec<(usize, Use)>,
}

/// The imports of every crate of the tree, or of the crate in a folder called `only`.
pub(crate) fn read(sources: &[Source], only: Option<&str>) -> Vec<Imports> {
    let files: BTreeMap<&str, &Source> =
        sources.iter().map(|source| (source.path.as_str(), source)).collect();
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in files.keys() {
        let root = path.strip_suffix("/src/lib.rs").or_else(|| path.strip_suffix("/src/main.rs"));
        if let Some(folder) = root
            && only.is_none_or(|only| folder.rsplit('/').next() == Some(only))
        {
            folders.entry(folder).or_default().push(path);
        }
    }
    let read_one = |(folder, roots): (&str, Vec<&str>)| {
        let trees: Vec<Modules> = roots.iter().map(|root| modules::read(root, &files)).collect();
        Imports::new(folder, &trees)
    };
    folders.into_iter().map(read_one).collect()
}

impl Imports {
    fn new(folder: &str, trees: &[Modules]) -> Self {
        let below = |file: &str| file[folder.len() + "/src/".len()..].to_owned();
        let all = trees.iter().flat_map(|modules| &modules.all);
        let files: BTreeSet<String> = all.map(|module| below(&module.file)).collect();
        let files: Vec<String> = files.into_iter().collect();
        let index = |file: &str| files.binary_search(&below(file)).expect("collected above");
        let mut edges = vec![BTreeMap::<usize, BTreeSet<Use>>::new(); files.len()];
        let mut external = Vec::new();
        for modules in trees {
            for (at, module) in modules.all.iter().enumerate() {
                let from = index(&module.file);
                for mention in &module.mentions {
                    let last = mention.segments.last().cloned().unwrap_or_default();
                    let used = |name: String| Use { line: mention.line, name };
                    match resolve::resolve(modules, at, &mention.segments) {
                        Target::ItemOf(owner) => {
                            let to = index(&modules.all[owner].file);
                            if to != from {
                                edges[from].entry(to).or_default().insert(used(last));
                            }
                        }
                        // Names are used through it, each of which is seen by itself.
                        Target::Module(_) => {}
                        Target::External(path) => external.push((from, used(path.join("::")))),
                    }
                }
            }
        }
        Self { folder: folder.to_owned(), files, edges, external }
    }

    /// The crate's name among the crates: the last part of its folder.
    fn room(&self) -> &str {
        self.folder.rsplit('/').next().unwrap_or(&self.folder)
    }

    /// The top-level module a file belongs to; the root files are wings of their own.
    fn wing(&self, file: usize) -> &str {
        let path = self.files[file].as_str();
        path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
    }

    /// Sets of files of which each imports, in the end, each other; largest first.
    fn circles(&self) -> Vec<Vec<usize>> {
        let plain: Vec<Vec<usize>> =
            self.edges.iter().map(|to| to.keys().copied().collect()).collect();
        circles::circles(&plain)
    }

    fn wings(&self, circle: &[usize]) -> BTreeSet<&str> {
        circle.iter().map(|&file| self.wing(file)).collect()
    }

    /// The graph, one file a line, then each circle with the imports that close it.
    pub(crate) fn print(&self) {
        let circles = self.circles();
        let count: usize = self.edges.iter().map(BTreeMap::len).sum();
        let (files, circle_count) = (self.files.len(), circles.len());
        println!("{}: files {files}, imports {count}, circles {circle_count}", self.room());
        for (file, to) in self.files.iter().zip(&self.edges) {
            let to: Vec<&str> = to.keys().map(|&to| self.files[to].as_str()).collect();
            println!("  {file} -> {}", if to.is_empty() { "-".to_owned() } else { to.join(" ") });
        }
        for circle in &circles {
            let wings: Vec<&str> = self.wings(circle).into_iter().collect();
            println!("circle of {} files in {}:", circle.len(), wings.join(", "));
            for &from in circle {
                let inside = self.edges[from].iter().filter(|(to, _)| circle.contains(to));
                for (&to, uses) in inside {
                    let names: BTreeSet<&str> = uses.iter().map(|u| u.name.as_str()).collect();
                    let names: Vec<&str> = names.into_iter().collect();
                    let line = uses.first().map_or(1, |first| first.line);
                    let (from, to) = (&self.files[from], &self.files[to]);
                    println!("  {from}:{line} -> {to} ({})", names.join(", "));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
