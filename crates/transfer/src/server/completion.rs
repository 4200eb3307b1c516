//! Completions: the steps of a task, and how it ends.

use byname_security::tree::GROUP_BYTES;

use super::Server;
use super::arrival::Now;
use super::finish::Known;
use super::open_files::OpenFile;
use super::ops::{Completion, Located, Op, OpId};
use super::snapshots::FoundDirectory;
use super::state::{Recalled, Record, RecordKey, Subject};
use super::tasks::{FoundFile, Step};
use super::versions::next_version;
use super::waiters::{Owner, Waiter};
use crate::metadata::{Absence, ContentRoot};
use crate::naming;

impl Server {
    /// Takes the result of an operation.
    pub fn handle_completion(&mut self, id: OpId, completion: Completion, now: Now) {
        self.now_ns = now.now_ns;
        let owner = self.owners.remove(&id);
        self.lookups.ops_in_flight -= usize::from(matches!(owner, Some(Owner::Task(_))));
        match (owner, completion) {
            (Some(Owner::Task(task)), completion) => self.on_task(task, completion, now),
            (Some(Owner::Hash(state)), Completion::Hashed(hashed)) => {
                self.on_hashed(state, hashed, now);
            }
            (Some(Owner::Tree { object, state }), Completion::TreeOpened(handle)) => {
                self.on_tree_opened(&object, state, handle);
            }
            (Some(Owner::Signing { key, is_node }), Completion::Signed(signed)) => {
                self.on_signed(key, is_node, signed);
            }
            _ => self.counters.strays += 1,
        }
        self.begin_lookups(now);
    }

    fn on_task(&mut self, id: u64, completion: Completion, now: Now) {
        let Some(task) = self.tasks.get(id) else {
            // Everybody who waited is gone; only a descriptor may be left to close.
            if let Completion::Located(Located::File { handle, .. }) = completion {
                self.close(handle);
            }
            return;
        };
        match completion {
            Completion::Located(located) => self.on_located(id, located, now),
            Completion::Listed(listed) => self.on_listed(id, listed, now),
            Completion::Kept(kept) => self.on_kept(id, kept, now),
            Completion::Recalled(recalled) => {
                match std::mem::replace(&mut task.step, Step::Locating) {
                    Step::RecallingFile(found) => self.on_file_recalled(id, found, recalled, now),
                    Step::RecallingListing(found) => {
                        self.on_listing_recalled(id, found, &recalled, now);
                    }
                    Step::RecallingMirrored(found, claim) => {
                        self.on_mirrored_recalled(id, (found, claim), &recalled, now);
                    }
                    _ => self.counters.strays += 1,
                }
            }
            Completion::Announced(is_durable) => {
                let step = std::mem::replace(&mut task.step, Step::Locating);
                self.on_announced(id, step, is_durable, now);
            }
            _ => self.counters.strays += 1,
        }
    }

    fn on_announced(&mut self, id: u64, step: Step, is_durable: bool, now: Now) {
        match step {
            Step::AnnouncingFile(found, version, recalled) if is_durable => {
                self.on_version(id, found, version, &recalled, now);
            }
            Step::AnnouncingListing(found, version) if is_durable => {
                self.keep_listing(id, *found, version, now);
            }
            Step::AnnouncingFile(found, ..) => {
                self.close(found.handle);
                self.on_refused(id, now);
            }
            _ => self.on_refused(id, now),
        }
    }

    /// A record was not kept. Records that had to be started anew want another version, so once the
    /// task is tried again.
    fn on_refused(&mut self, id: u64, now: Now) {
        let Some(task) = self.tasks.get(id) else { return };
        if std::mem::replace(&mut task.was_refused, true) {
            return self.finish_unreadable(id, now);
        }
        self.locate(id);
    }

    fn on_located(&mut self, id: u64, located: Located, now: Now) {
        let is_manifest = self.tasks.get(id).is_some_and(|task| task.is_manifest());
        match located {
            Located::File { handle, .. } if is_manifest => {
                self.close(handle);
                self.finish_absent(id, Absence::NotFound, now);
            }
            Located::File { stat, handle } => self.on_file(id, FoundFile { stat, handle }, now),
            Located::Directory { stat, changes } => {
                self.on_directory(id, &FoundDirectory { stat, changes }, now);
            }
            Located::Described(described) => self.finish_described(id, &described, now),
            Located::NotFound => self.finish_absent(id, Absence::NotFound, now),
            Located::NoPermission => self.finish_absent(id, Absence::NoPermission, now),
            Located::Failed => self.finish_unreadable(id, now),
            Located::Unavailable => self.finish_silently(id),
        }
    }

    fn on_file(&mut self, id: u64, found: FoundFile, now: Now) {
        if self.is_content(id) {
            return self.on_content(id, found);
        }
        if self.is_mirrored(id) {
            return self.on_mirrored_file(id, found);
        }
        let Some(task) = self.tasks.get(id) else { return };
        let state = found.stat.state;
        if task.seen.is_none_or(|(seen, _)| seen != state) {
            task.seen = Some((state, now.now_ns));
        }
        let key = RecordKey { name: task.path.view().value().to_vec(), listing: false };
        task.step = Step::RecallingFile(found);
        self.issue(Op::Recall { key, state: Some(state) }, Owner::Task(id));
    }

    fn is_content(&mut self, id: u64) -> bool {
        let mount = self.tasks.get(id).and_then(|task| self.mounts.get(task.place.mount));
        mount.is_some_and(|mount| mount.contents)
    }

    /// Opens a version of a content: its name says which, so nothing is announced or recalled.
    fn on_content(&mut self, id: u64, found: FoundFile) {
        let Some(task) = self.tasks.get(id) else { return self.close(found.handle) };
        let (mount, versioned) = (task.place.mount, task.path.clone());
        let (state, file) = (found.stat.state, found.handle);
        match naming::content_segment_size(versioned.view()) {
            Some(segment_size) => {
                let open = OpenFile { mount, state, file, tree: None, segment_size };
                self.open_version(&versioned, open);
            }
            None => self.close(file),
        }
        for waiter in self.end_task(id) {
            self.settle_segment(&waiter);
        }
    }

    fn on_file_recalled(&mut self, id: u64, found: FoundFile, recalled: Recalled, now: Now) {
        let subject = Subject::File(found.stat.state.fingerprint);
        if let Some(record) = recalled.record.filter(|record| record.subject == subject) {
            return self.on_version(id, found, record.version, &recalled, now);
        }
        let version = next_version(found.stat.mtime_ns, &recalled);
        // A reader may know the version that is about to be announced: from another server of this
        // key, or from this one before its state was lost. No other version is served any more.
        for waiter in self.take_waiters(id, |waiter| waiter.wants_segment_besides(version)) {
            self.nack_stale(&waiter.wire, waiter.echo);
        }
        if self.end_if_alone(id) {
            return self.close(found.handle);
        }
        let Some(task) = self.tasks.get(id) else { return };
        let since_ns = task.seen.map_or(now.now_ns, |(_, since_ns)| since_ns);
        let seen_for_ns = now.now_ns.saturating_sub(since_ns);
        let wait_ns = self.config.quiet().unsettled_ns(&found.stat, now.unix_ns, seen_for_ns);
        if wait_ns > 0 {
            let until_ns = now.now_ns.saturating_add(wait_ns);
            task.step = Step::Quiet { until_ns };
            self.close(found.handle);
            return self.give_up_quiet(id, until_ns, now);
        }
        let key = RecordKey { name: task.path.view().value().to_vec(), listing: false };
        task.step = Step::AnnouncingFile(found, version, recalled);
        self.counters.versions += 1;
        self.issue(Op::Announce { key, record: Record { subject, version } }, Owner::Task(id));
    }

    /// Opens a version that is announced; the task ends when its root is known.
    fn on_version(
        &mut self,
        id: u64,
        found: FoundFile,
        version: u64,
        recalled: &Recalled,
        now: Now,
    ) {
        let Some(task) = self.tasks.get(id) else { return self.close(found.handle) };
        let versioned = naming::versioned_name(task.path.view(), false, version);
        let (mount, versioned_bytes) = (task.place.mount, versioned.view().value().len());
        let Some(segment_size) = self.segment_size(mount, versioned_bytes) else {
            self.close(found.handle);
            return self.finish_absent(id, Absence::NameTooLong, now);
        };
        let (state, file) = (found.stat.state, found.handle);
        let open = OpenFile { mount, state, file, tree: None, segment_size };
        let file = self.open_version(&versioned, open);
        for waiter in self.take_waiters(id, Waiter::wants_segment) {
            self.settle_segment(&waiter);
        }
        if self.end_if_alone(id) {
            return;
        }
        if let Some(root) = recalled.root {
            let known = Known { root: ContentRoot::Known(root), checksums: recalled.checksums };
            return self.finish_file(id, &found.stat, version, &known, now);
        }
        if let Some(task) = self.tasks.get(id) {
            task.step = Step::Root { stat: found.stat, version };
        }
        // Readers get verified bytes of a larger file long before its root is there.
        match self.hash(file, state, Some(id)) && state.size <= GROUP_BYTES as u64 {
            true => self.set_timer(id),
            false => self.answer_pending(id, |_| true, now),
        }
    }
}
