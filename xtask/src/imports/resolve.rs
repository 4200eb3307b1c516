//! From a path to the file that defines what it names, through aliases and re-exports.

use super::modules::{Definition, Modules};

/// Aliases followed for one path, so that names which import each other come to an end.
const ALIASES_MAX: usize = 32;

/// Target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// Something that the module with this index defines.
    ItemOf(usize),
    /// The module with this index itself.
    Module(usize),
    /// A path in another crate, or a name of the language.
    External(Vec<String>),
}

/// Follows `path` as written in module `from`.
pub(super) fn resolve(modules: &Modules, from: usize, path: &[String]) -> Target {
    Resolver { modules }.path(from, path, ALIASES_MAX)
}

struct Resolver<'a> {
    modules: &'a Modules,
}

impl Resolver<'_> {
    fn path(&self, from: usize, path: &[String], aliases_left: usize) -> Target {
        let parent = |module: usize| self.modules.all[module].parent.unwrap_or(module);
        let mut module = from;
        let mut rest = path;
        let mut is_anchored = true;
        match path.first().map(String::as_str) {
            Some("crate") => (module, rest) = (0, &path[1..]),
            Some("self") => rest = &path[1..],
            Some("super") => {}
            _ => is_anchored = false,
        }
        while let Some(("super", below)) = rest.split_first().map(|(s, below)| (s.as_str(), below))
        {
            (module, rest) = (parent(module), below);
        }
        if rest.is_empty() {
            return Target::Module(module);
        }
        match self.inside(module, rest, aliases_left) {
            Some(target) => target,
            // Made by a macro of that module.
            None if is_anchored => Target::ItemOf(module),
            None => Target::External(path.to_vec()),
        }
    }

    /// `path` from inside `module`, where its first name must be known.
    fn inside(&self, module: usize, path: &[String], aliases_left: usize) -> Option<Target> {
        let (name, rest) = path.split_first()?;
        let known = self.modules.all[module].names.get(name).map_or(&[][..], Vec::as_slice);
        let child = known.iter().find_map(|definition| match definition {
            Definition::Module(child) => Some(*child),
            _ => None,
        });
        let is_item = known.iter().any(|definition| matches!(definition, Definition::Item));
        match child {
            Some(child) if !rest.is_empty() => {
                let below = self.inside(child, rest, aliases_left);
                return Some(below.unwrap_or(Target::ItemOf(child)));
            }
            _ if is_item => return Some(Target::ItemOf(module)),
            Some(child) => return Some(Target::Module(child)),
            None => {}
        }
        let aliases_left = aliases_left.checked_sub(1)?;
        for definition in known {
            if let Definition::Alias(alias) = definition
                && alias != path
            {
                let longer: Vec<String> = alias.iter().chain(rest).cloned().collect();
                return Some(self.path(module, &longer, aliases_left));
            }
        }
        self.modules.all[module].globs.iter().find_map(|glob| {
            match self.path(module, glob, aliases_left) {
                Target::Module(inner) if inner != module => self.inside(inner, path, aliases_left),
                _ => None,
            }
        })
    }
}
