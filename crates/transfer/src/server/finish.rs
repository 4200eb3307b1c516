//! Ends of tasks: everybody who waits gets the signed answer, an absence or a Nack.

use byname_packet::Name;
use byname_packet::lp::nack_reason;

use super::Server;
use super::arrival::Now;
use super::reply::{SignRefused, Statement, interest_name};
use super::state::FileStat;
use super::tasks::Step;
use super::waiters::{Waiter, Wants};
use crate::attributes::Checksums;
use crate::metadata::{Absence, ContentRoot, Extras, Metadata};
use crate::{media_type, naming, numbers};

const MS: u64 = 1_000_000;

/// Hashes and checksums of a version's content.
pub(super) struct Known {
    pub(super) root: ContentRoot,
    pub(super) checksums: Checksums,
}

/// The description of a version of a file.
fn describe_file(versioned: Name, stat: &FileStat, known: &Known, segment_size: usize) -> Metadata {
    let segment_size = segment_size as u64;
    let media_type = media_type_of(&versioned);
    let has_extras = known.checksums != Checksums::default() || media_type.is_some();
    let checksums = known.checksums;
    let extras = || Box::new(Extras { checksums, media_type, ..Extras::default() });
    Metadata {
        last_segment: Some(naming::last_segment(stat.state.size, segment_size)),
        segment_size: Some(segment_size),
        size: Some(stat.state.size),
        mode: Some(stat.mode),
        ctime_ns: stat.ctime_ns,
        mtime_ns: Some(stat.mtime_ns),
        root: known.root,
        extras: has_extras.then(extras),
        ..Metadata::new(versioned)
    }
}

fn media_type_of(versioned: &Name) -> Option<String> {
    let last = versioned.view().without_last(1).last()?;
    media_type::of_name(last.value).map(str::to_owned)
}

impl Server {
    /// Ends a task about a file whose version is open.
    pub(super) fn finish_file(
        &mut self,
        id: u64,
        stat: &FileStat,
        version: u64,
        known: &Known,
        now: Now,
    ) {
        let Some(task) = self.tasks.get(id) else { return };
        let versioned = naming::versioned_name(task.path.view(), false, version);
        let mount = task.place.mount;
        match self.segment_size(mount, versioned.view().value().len()) {
            Some(size) => {
                let described = describe_file(versioned, stat, known, size);
                self.finish_described(id, &described, now);
            }
            None => self.finish_absent(id, Absence::NameTooLong, now),
        }
    }

    /// Ends a task with the description of a version.
    pub(super) fn finish_described(&mut self, id: u64, described: &Metadata, now: Now) {
        let Some(mount) = self.mount_of(id) else { return };
        let waiters = self.end_task(id);
        self.answer_described(mount, &waiters, described, now);
    }

    /// Ends a task with the reason why there is nothing.
    pub(super) fn finish_absent(&mut self, id: u64, absence: Absence, now: Now) {
        let Some(mount) = self.mount_of(id) else { return };
        let waiters = self.end_task(id);
        self.answer_absent(mount, &waiters, absence, now);
    }

    /// Ends a task because the disk or the state directory failed.
    pub(super) fn finish_unreadable(&mut self, id: u64, now: Now) {
        self.counters.failed += 1;
        self.finish_absent(id, Absence::Unreadable { code: numbers::ERROR_UNREADABLE }, now);
    }

    /// Ends a task without an answer: whoever waits asks somebody else, or again.
    pub(super) fn finish_silently(&mut self, id: u64) {
        self.counters.unavailable += self.end_task(id).len() as u64;
    }

    /// Answers "being written" to those who waited long enough.
    pub(super) fn give_up_quiet(&mut self, id: u64, until_ns: u64, now: Now) {
        let hold_ns = self.config.hold_quiet_ns;
        let Some(mount) = self.mount_of(id) else { return };
        let due = self.take_waiters(id, |waiter| waiter.hold_until(hold_ns) <= now.now_ns);
        let retry_ms = until_ns.saturating_sub(now.now_ns).div_ceil(MS).max(1);
        self.counters.being_written += due.len() as u64;
        self.answer_absent(mount, &due, Absence::BeingWritten { retry_ms }, now);
        if !self.end_if_alone(id) {
            self.set_timer(id);
        }
    }

    /// Answers "being listed" to those who waited long enough for a description. The list is made
    /// all the same.
    pub(super) fn give_up_listing(&mut self, id: u64, now: Now) {
        let hold_ns = self.config.hold_listing_ns;
        let Some(mount) = self.mount_of(id) else { return };
        let is_due =
            |waiter: &Waiter| !waiter.wants_segment() && waiter.answer_until(hold_ns) <= now.now_ns;
        let due = self.take_waiters(id, is_due);
        self.counters.being_listed += due.len() as u64;
        self.answer_absent(mount, &due, Absence::BeingListed { retry_ms: hold_ns / MS }, now);
        self.expire(id, now);
    }

    /// Answers "root pending" to those who waited long enough.
    pub(super) fn give_up_root(&mut self, id: u64, now: Now) {
        let hold_ns = self.config.hold_root_ns;
        self.answer_pending(id, |waiter| waiter.hold_until(hold_ns) <= now.now_ns, now);
    }

    pub(super) fn answer_pending(&mut self, id: u64, is_due: impl Fn(&Waiter) -> bool, now: Now) {
        if self.is_mirrored(id) {
            return self.postpone_mirrored(id, is_due);
        }
        let due = self.take_waiters(id, is_due);
        let Some(mount) = self.mount_of(id) else { return };
        let Some(task) = self.tasks.get(id) else { return };
        let Step::Root { stat, version } = task.step else { return };
        let versioned = naming::versioned_name(task.path.view(), false, version);
        if let Some(size) = self.segment_size(mount, versioned.view().value().len()) {
            let unknown = Known { root: ContentRoot::Pending, checksums: Checksums::default() };
            let described = describe_file(versioned, &stat, &unknown, size);
            self.counters.root_pending += due.len() as u64;
            self.answer_described(mount, &due, &described, now);
        }
        if !self.end_if_alone(id) {
            self.set_timer(id);
        }
    }

    fn mount_of(&mut self, id: u64) -> Option<usize> {
        self.tasks.get(id).map(|task| task.place.mount)
    }

    fn answer_described(
        &mut self,
        mount: usize,
        waiters: &[Waiter],
        described: &Metadata,
        now: Now,
    ) {
        let is_directory = described.is_directory();
        let mut content = Vec::new();
        described.encode(&mut content);
        let is_pending = described.root == ContentRoot::Pending;
        let statement = Statement { content: &content, is_absence: false, is_pending };
        for waiter in waiters {
            match waiter.wants {
                Wants::Segment { .. } => self.settle_segment(waiter),
                Wants::Metadata { listing: true } if !is_directory => {
                    self.answer_absent(mount, std::slice::from_ref(waiter), Absence::NotFound, now);
                }
                Wants::Metadata { .. } => match self.answer(mount, waiter, statement, now) {
                    Err(SignRefused::TooLarge) => {
                        let one = std::slice::from_ref(waiter);
                        self.answer_absent(mount, one, Absence::NameTooLong, now);
                    }
                    Err(_) => self.refuse_signing(waiter),
                    Ok(()) => self.counters.metadata += 1,
                },
            }
        }
    }

    fn answer_absent(&mut self, mount: usize, waiters: &[Waiter], absence: Absence, now: Now) {
        if self.is_mirror(mount) {
            return waiters.iter().for_each(|waiter| self.look_elsewhere(waiter));
        }
        let mut content = Vec::new();
        absence.encode(&mut content);
        let statement = Statement { content: &content, is_absence: true, is_pending: false };
        for waiter in waiters {
            if matches!(waiter.wants, Wants::Segment { .. }) {
                self.nack_stale(&waiter.wire, waiter.echo);
                continue;
            }
            match self.answer(mount, waiter, statement, now) {
                Ok(()) => self.counters.absences += 1,
                Err(_) => self.refuse_signing(waiter),
            }
        }
    }

    fn answer(
        &mut self,
        mount: usize,
        waiter: &Waiter,
        statement: Statement<'_>,
        now: Now,
    ) -> Result<(), SignRefused> {
        self.give_back(waiter);
        let name = interest_name(&waiter.wire).ok_or(SignRefused::Failed)?;
        let signer = &self.mounts.get(mount).ok_or(SignRefused::Failed)?.signer;
        let answered = self.answers.get(name, statement, signer, now)?;
        match answered.is_new {
            true => self.counters.signatures += 1,
            false => self.counters.signatures_reused += 1,
        }
        self.out.push_back(waiter.echo.wrap(answered.wire));
        Ok(())
    }

    fn refuse_signing(&mut self, waiter: &Waiter) {
        self.counters.failed += 1;
        self.out.push_back(waiter.echo.nack(&waiter.wire, nack_reason::NONE));
    }
}
