//! Entries of a listing, one after the other, as jobs.

use std::ffi::OsString;
use std::rc::Rc;

use byname_transfer::naming::{is_confined_link, is_safe_entry};

use super::links::{Branch, FollowedLink, LinkJob};
use super::{BATCHES_MAX, LISTS_MAX, TreeEntry, TreeSource};
use crate::download::directory_job::Place;
use crate::download::file_job::FileJob;
use crate::download::identical::Expected;
use crate::download::local_dir::LocalDir;
use crate::download::part_file::{is_part_name, os_name};
use crate::download::progress::Event;
use crate::download::small_files::{BATCH_MAX, SmallFile, SmallFiles, is_small};
use crate::download::tree_job::TreeJob;
use crate::lookup::listing::Listing;

/// A listing of which the entries from `at` on are still to do.
pub(super) struct Cursor {
    listing: Listing,
    at: usize,
    /// The same for its small files, which come first; `None` when they are done.
    small_at: Option<usize>,
    local: LocalDir,
    branch: Branch,
}

impl Cursor {
    pub(super) fn new(listing: Listing, local: LocalDir, branch: Branch) -> Self {
        let at = listing.start();
        let small_at = listing.is_manifest().then_some(at);
        Cursor { listing, at, small_at, local, branch }
    }

    /// The listing and the open directory.
    pub(super) fn directory(&self) -> (&Listing, &LocalDir) {
        (&self.listing, &self.local)
    }
}

/// The next thing to do.
pub(super) enum Step<'a> {
    Job(TreeJob<'a>),
    /// The entry needs no job.
    Nothing,
    /// There is nothing to do now.
    End,
}

impl<'a> TreeSource<'a> {
    /// The next entry of the innermost listing.
    pub(super) fn next_entry(&mut self, now_ns: u64) -> Step<'a> {
        let Some(cursor) = self.cursors.last_mut() else { return Step::End };
        if cursor.small_at.is_some() {
            return self.next_batch();
        }
        let Some((listed, next)) = cursor.listing.entry_at(cursor.at) else {
            self.cursors.pop();
            return Step::Nothing;
        };
        let entry = listed.entry;
        if is_small(&self.context, &listed) {
            cursor.at = next;
            return Step::Nothing;
        }
        let is_full = match entry.is_directory {
            true => self.running.lists >= LISTS_MAX,
            false => self.running.files >= self.files_max,
        };
        if is_full {
            return Step::End;
        }
        cursor.at = next;
        // A published part file would take the place of ours and be renamed as if it were whole.
        if !is_safe_entry(entry.name) || is_part_name(entry.name) {
            self.report.skipped_count += 1;
            let directory = &cursor.listing.name;
            self.context.report(Event::EntrySkipped { directory, entry: entry.name });
            return Step::Nothing;
        }
        let os_name = os_name(entry.name);
        let relative = cursor.branch.relative.join(os_name);
        if !(self.filter)(&TreeEntry::new(&relative, &listed)) {
            return Step::Nothing;
        }
        let name = cursor.listing.name.with_generic(entry.name);
        if entry.is_directory {
            let place = Place::Below(cursor.local.clone(), os_name.to_owned());
            let branch = cursor.branch.below(relative);
            return Step::Job(self.directory(name, place, branch, now_ns));
        }
        cursor.branch.set_needed();
        let link_target = listed.details.and_then(|details| details.attributes.link_target);
        if let Some(link_target) = link_target {
            let place = (cursor.local.clone(), os_name.to_owned());
            let depth = cursor.branch.relative.components().count();
            if !self.context.options.copy_links && is_confined_link(depth, link_target) {
                let link_target = link_target.to_vec();
                return Step::Job(self.link(place, &link_target));
            }
            let mut branch = cursor.branch.below(relative);
            branch.links += 1;
            let link = FollowedLink { name, parent: place.0, entry: place.1, branch };
            return Step::Job(self.followed(link, now_ns));
        }
        let target = cursor.local.file(os_name);
        let shown = target.shown.clone();
        let expected = if cursor.local.is_new { None } else { Expected::new(&listed) };
        let resolved = cursor.listing.resolve(&listed);
        let job = FileJob::new(Rc::clone(&self.context), name, target, now_ns);
        let mut job = job.unless_at_target(expected);
        if let Some(resolved) = resolved {
            job = job.with_resolved(resolved.into_parts().1);
        }
        Step::Job(self.file(job, shown))
    }

    fn link(&mut self, place: (LocalDir, OsString), target: &[u8]) -> TreeJob<'a> {
        let disk = self.context.disk.queue(&place.0.shown);
        self.running.files += 1;
        TreeJob::Link(Box::new(LinkJob::begin(place, target, self.context.options, &disk)))
    }

    /// Asks for what a link leads to, as if it were a file.
    fn followed(&mut self, link: FollowedLink, now_ns: u64) -> TreeJob<'a> {
        let target = link.parent.file(&link.entry);
        let shown = target.shown.clone();
        let job = FileJob::new(Rc::clone(&self.context), link.name.clone(), target, now_ns);
        self.running.files += 1;
        TreeJob::File { job: Box::new(job), shown, link: Some(Box::new(link)) }
    }

    /// The next small files of the innermost listing.
    fn next_batch(&mut self) -> Step<'a> {
        if self.running.batches >= BATCHES_MAX {
            return Step::End;
        }
        let Some(cursor) = self.cursors.last_mut() else { return Step::End };
        let Cursor { listing, small_at, local, branch, .. } = cursor;
        let mut items = Vec::new();
        while let Some(at) = small_at.filter(|_| items.len() < BATCH_MAX) {
            let Some((listed, next)) = listing.entry_at(at) else {
                *small_at = None;
                break;
            };
            *small_at = Some(next);
            let path = branch.relative.join(os_name(listed.entry.name));
            if is_small(&self.context, &listed) && (self.filter)(&TreeEntry::new(&path, &listed)) {
                items.extend(SmallFile::new(&listed));
            }
        }
        if items.is_empty() {
            return Step::Nothing;
        }
        branch.set_needed();
        self.running.batches += 1;
        let (name, local) = (listing.name.clone(), local.clone());
        let batch = SmallFiles::new(Rc::clone(&self.context), name, local, items);
        Step::Job(TreeJob::Small(Box::new(batch)))
    }
}
