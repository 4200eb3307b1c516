//! Doing something with all that is below a name of a site.

use super::Failures;
use crate::exit::Outcome;
use byname_access::{AccessError, Entries, Tree};
use byname_catalog::Refusal;
use byname_client::FileKind;
use byname_packet::Name;

/// Does something with a name; true says that it is a symbolic link.
type Act<'a> = dyn FnMut(&mut Tree, &Name, bool) -> Outcome + 'a;

/// Does something with a name and all that is in it, or with `walks_first` with a directory after
/// what is in it; goes on after failures. Symbolic links are not followed.
pub(in crate::commands) fn each_below(
    (tree, name): (&mut Tree, &Name),
    walks_first: bool,
    act: &mut Act<'_>,
) -> Outcome {
    let top = tree.describe(name)?.stat();
    if !top.is_directory() {
        return act(tree, name, top.kind == FileKind::Symlink);
    }
    let (count, failures) = (0, Failures::default());
    let mut walk = Walk { tree, act, walks_first, count, failures };
    walk.directory(name);
    walk.failures.outcome(walk.count, "entries")
}

/// A tree that is walked through.
struct Walk<'a, 'b> {
    tree: &'a mut Tree,
    act: &'a mut Act<'b>,
    walks_first: bool,
    count: u64,
    failures: Failures,
}

impl Walk<'_, '_> {
    fn directory(&mut self, name: &Name) {
        if !self.walks_first {
            self.act(name, false);
        }
        match self.entries(name) {
            Ok(()) => {}
            // Removed meanwhile.
            Err(error) if error.refusal() == Some(Refusal::NotFound) => {}
            Err(error) => self.failures.add(error.into()),
        }
        if self.walks_first {
            self.act(name, false);
        }
    }

    fn entries(&mut self, name: &Name) -> Result<(), AccessError> {
        let mut after = Vec::new();
        loop {
            let Entries { entries, is_last } = self.tree.entries(name, &after)?;
            for (entry, described) in entries {
                let below = name.with_generic(&entry);
                match described.stat().kind {
                    FileKind::Directory => self.directory(&below),
                    kind => self.act(&below, kind == FileKind::Symlink),
                }
                after = entry;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn act(&mut self, name: &Name, is_link: bool) {
        self.count += 1;
        if let Err(failure) = (self.act)(self.tree, name, is_link) {
            self.failures.add(failure);
        }
    }
}
