//! Doing something with all that is below a name of a site.

use super::{Failures, Tree};
use crate::exit::{Code, Outcome};
use crate::target::Session;
use byname_packet::Name;

/// Does something with a name; true says that it is a symbolic link.
type Act<'a> = dyn FnMut(&mut Tree, &Name, bool) -> Outcome + 'a;

impl Tree {
    /// Does something with a name and all that is in it, or with `walks_first` with a directory
    /// after what is in it; goes on after failures. Symbolic links are not followed.
    pub(in crate::commands) fn each_below(
        &mut self,
        name: &Name,
        walks_first: bool,
        act: &mut Act<'_>,
    ) -> Outcome {
        let mut reader = self.account.reader(name)?;
        let is_directory = reader.run(|client, name| client.stat(name))?.is_directory();
        if !is_directory {
            return act(self, name, false);
        }
        let (count, failures) = (0, Failures::default());
        let mut walk = Walk { tree: self, reader: &mut reader, act, walks_first, count, failures };
        walk.directory(name);
        walk.failures.outcome(walk.count, "entries")
    }
}

/// A tree that is walked through.
struct Walk<'a, 'b> {
    tree: &'a mut Tree,
    reader: &'a mut Session,
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
        match self.reader.run(|client, _| client.list_resolved(name)) {
            Ok(listing) => {
                for listed in listing.listed() {
                    let below = name.with_generic(listed.entry.name);
                    let target = listed.details.and_then(|entry| entry.attributes.link_target);
                    match listed.entry.is_directory {
                        true => self.directory(&below),
                        false => self.act(&below, target.is_some()),
                    }
                }
            }
            // Removed meanwhile.
            Err(failure) if failure.code == Code::NotFound => {}
            Err(failure) => self.failures.add(failure),
        }
        if self.walks_first {
            self.act(name, false);
        }
    }

    fn act(&mut self, name: &Name, is_link: bool) {
        self.count += 1;
        if let Err(failure) = (self.act)(self.tree, name, is_link) {
            self.failures.add(failure);
        }
    }
}
