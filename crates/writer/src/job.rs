//! One file being written: create, insert at each disk, commit. Without I/O.
//!
//! A job has at most one command in flight and one order at each disk. A disk that does not take
//! the content is replaced; where there is no other, the receipts that came must suffice. Whatever
//! goes wrong after the create ends in an abort, so that quota and room come back at once.

use std::collections::VecDeque;
use std::sync::Arc;

use byname_catalog::id::ContentId;
use byname_catalog::{Answer, Checksums, Command, Commit, Create, Entry, Refusal};
use byname_packet::Data;
use byname_site::{
    CommandPacket, DiskName, DiskRefusal, InsertAnswer, SignedReceipt, SiteAnswer, SiteName, Ticket,
};

use crate::error::WriterError;
use crate::source::Source;

/// Pause before an order that a disk could not follow is repeated.
const AGAIN_MS: u64 = 500;
/// Pause before a disk that pulls is asked for the first time how far it is; doubled each time, up
/// to what the disk wishes. Small files are there at once.
const FIRST_PAUSE_MS: u64 = 4;
/// Times that a disk may want to be asked again at once.
const EAGER_POLLS_MAX: u32 = 64;
/// Repetitions after which the disk is replaced.
const REPETITIONS_MAX: u32 = 60;

/// Something for the driver to do.
#[derive(Debug)]
pub(crate) enum Action {
    /// Send a command; a commit brings receipts.
    Command(Box<CommandPacket>),
    /// Serve the content from now on.
    Produce(ContentId),
    /// Order a disk to pull, after a pause.
    Insert { disk: DiskName, pause_ms: u64 },
    /// The end.
    Done(Box<Result<Entry, WriterError>>),
}

/// A disk that is asked.
#[derive(Debug)]
struct Replica {
    disk: DiskName,
    received_bytes: u64,
    /// Times it was asked how far it is.
    polls: u32,
    repetitions: u32,
    receipt: Option<(SignedReceipt, Vec<u8>)>,
}

/// The command in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Waiting {
    Nothing,
    Create,
    Replace(DiskName),
    Renew,
    Commit,
    Abort,
}

/// A file being written.
#[derive(Debug)]
pub(crate) struct Job {
    /// What it begins with, unless its attempt was open already.
    create: Option<Create>,
    keep_time: bool,
    source: Arc<Source>,
    ticket: Option<Ticket>,
    replicas: Vec<Replica>,
    /// Disks to be replaced when the command in flight has its answer.
    failed: VecDeque<DiskName>,
    /// Disks that know of a later head than the one whose ticket they were shown.
    outdated: Vec<DiskName>,
    waiting: Waiting,
    /// What goes wrong; the job then only ends.
    error: Option<WriterError>,
    /// Why the last disk that was given up was.
    last_failure: Option<WriterError>,
    is_finished: bool,
    actions: VecDeque<Action>,
}

impl Job {
    /// Begins with the create. `keep_time`: the file gets the source's time of modification.
    pub(crate) fn new(create: Create, keep_time: bool, source: Arc<Source>) -> Self {
        let mut job = Self { create: Some(create), ..Self::idle(keep_time, source) };
        job.begin_again();
        job
    }

    /// Begins with the create once more, after it was refused.
    pub(crate) fn begin_again(&mut self) {
        if let Some(create) = self.create.clone() {
            self.is_finished = false;
            self.command(Waiting::Create, Command::Create(create), Vec::new());
        }
    }

    /// Begins with what follows a create that came through.
    pub(crate) fn under(ticket: Ticket, source: Arc<Source>) -> Self {
        let mut job = Self::idle(false, source);
        job.begin(ticket);
        job.go_on();
        job
    }

    fn idle(keep_time: bool, source: Arc<Source>) -> Self {
        Self {
            create: None,
            keep_time,
            source,
            ticket: None,
            replicas: Vec::new(),
            failed: VecDeque::new(),
            outdated: Vec::new(),
            waiting: Waiting::Nothing,
            error: None,
            last_failure: None,
            is_finished: false,
            actions: VecDeque::new(),
        }
    }

    /// The next thing to do.
    pub(crate) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Leave to write, once there is one.
    pub(crate) fn ticket(&self) -> Option<&Ticket> {
        self.ticket.as_ref()
    }

    /// The file.
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Octets that the slowest disk has.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.replicas.iter().map(|replica| replica.received_bytes).min().unwrap_or(0)
    }

    fn command(&mut self, waiting: Waiting, command: Command, receipts: Vec<Vec<u8>>) {
        self.waiting = waiting;
        let packet = CommandPacket { receipts, ..CommandPacket::new(None, command) };
        self.actions.push_back(Action::Command(Box::new(packet)));
    }

    /// Gives the attempt up, unless its commit is in flight and comes through.
    pub(crate) fn stop(&mut self) {
        self.fail(WriterError::Stopped);
        self.go_on();
    }

    /// The answer to the command in flight.
    pub(crate) fn handle_answer(&mut self, answer: Result<SiteAnswer, WriterError>) {
        let waiting = std::mem::replace(&mut self.waiting, Waiting::Nothing);
        match (waiting, answer) {
            (Waiting::Create, Ok(SiteAnswer::Ticket(ticket))) => self.begin(ticket),
            (Waiting::Create, Err(error)) => self.finish(Err(error)),
            (Waiting::Replace(disk), Ok(SiteAnswer::Ticket(ticket))) => {
                self.forget(&disk);
                self.ask_new(ticket);
            }
            // There is no other disk: what the others say must do.
            (Waiting::Replace(disk), Err(WriterError::Refused(Refusal::NoSpace))) => {
                self.forget(&disk);
            }
            (Waiting::Renew, Ok(SiteAnswer::Ticket(ticket))) => self.show_again(ticket),
            (Waiting::Commit, Ok(SiteAnswer::Plain(Answer::Entry(entry)))) => {
                return self.finish(Ok(entry));
            }
            (Waiting::Abort, _) => {
                let error = self.error.take().unwrap_or(WriterError::OtherAnswer);
                return self.finish(Err(error));
            }
            (_, Err(error)) => self.fail(error),
            (_, Ok(_)) => self.fail(WriterError::OtherAnswer),
        }
        self.go_on();
    }

    fn begin(&mut self, ticket: Ticket) {
        if self.error.is_some() {
            self.ticket = Some(ticket);
            return;
        }
        self.actions.push_back(Action::Produce(ticket.terms().content));
        self.ask_new(ticket);
    }

    /// Orders those disks of a ticket to pull that have not been.
    fn ask_new(&mut self, ticket: Ticket) {
        for asked in &ticket.terms().disks {
            if self.replicas.iter().any(|replica| replica.disk == asked.name) {
                continue;
            }
            let disk = asked.name.clone();
            self.actions.push_back(Action::Insert { disk: disk.clone(), pause_ms: 0 });
            let replica =
                Replica { disk, received_bytes: 0, polls: 0, repetitions: 0, receipt: None };
            self.replicas.push(replica);
        }
        self.ticket = Some(ticket);
    }

    /// Shows a renewed ticket to the disks that did not take the one before.
    fn show_again(&mut self, ticket: Ticket) {
        let old = self.ticket.as_ref().map(|ticket| ticket.terms().epoch);
        // The head that leads now may not have been the one that answered.
        let pause_ms = if old == Some(ticket.terms().epoch) { AGAIN_MS } else { 0 };
        for disk in std::mem::take(&mut self.outdated) {
            if self.replicas.iter().any(|replica| replica.disk == disk) {
                self.actions.push_back(Action::Insert { disk, pause_ms });
            }
        }
        self.ticket = Some(ticket);
    }

    fn forget(&mut self, disk: &DiskName) {
        self.replicas.retain(|replica| replica.disk != *disk);
    }

    /// The answer of a disk, or none at all.
    pub(crate) fn handle_disk(
        &mut self,
        site: &SiteName,
        disk: &DiskName,
        answer: Option<InsertAnswer>,
    ) {
        if self.error.is_some() || self.waiting == Waiting::Replace(disk.clone()) {
            return;
        }
        let Some(replica) = self.replicas.iter_mut().find(|one| one.disk == *disk) else { return };
        match answer {
            Some(InsertAnswer::Pulling { received_bytes, again_ms }) => {
                replica.received_bytes = received_bytes;
                // A disk that wants to be asked again at once is not believed for ever.
                let least_ms = if replica.polls < EAGER_POLLS_MAX { 0 } else { AGAIN_MS };
                let again_ms = again_ms.max(least_ms);
                let pause_ms = again_ms.min(FIRST_PAUSE_MS << replica.polls.min(16));
                replica.polls = replica.polls.saturating_add(1);
                let disk = disk.clone();
                self.actions.push_back(Action::Insert { disk, pause_ms });
            }
            Some(InsertAnswer::Stored(wire)) => match receipt_of(site, disk, &wire) {
                Some(receipt) => {
                    replica.received_bytes = receipt.receipt.size;
                    replica.receipt = Some((receipt, wire));
                }
                None => self.refuse(disk, DiskRefusal::Malformed),
            },
            Some(InsertAnswer::Refused(refusal)) => {
                let is_outdated = refusal == DiskRefusal::OldEpoch;
                let may_be_repeated = is_outdated || refusal.is_retryable();
                if !may_be_repeated || replica.repetitions >= REPETITIONS_MAX {
                    self.refuse(disk, refusal);
                } else {
                    replica.repetitions += 1;
                    let disk = disk.clone();
                    match is_outdated {
                        // Another head leads: the attempt stays, and has a ticket of its.
                        true => self.outdated.push(disk),
                        false => {
                            self.actions.push_back(Action::Insert { disk, pause_ms: AGAIN_MS });
                        }
                    }
                }
            }
            None => self.lose(disk, WriterError::SilentDisk { disk: disk.clone() }),
        }
        self.go_on();
    }

    fn refuse(&mut self, disk: &DiskName, refusal: DiskRefusal) {
        let error = WriterError::Disk { disk: disk.clone(), refusal };
        match refusal {
            // It is the content that is wrong: no other disk would take it.
            DiskRefusal::Mismatch | DiskRefusal::TooLarge | DiskRefusal::Dropped => {
                let changed = self.source.check_unchanged().err();
                self.fail(changed.unwrap_or(error));
            }
            _ => self.lose(disk, error),
        }
    }

    /// Another disk is wanted, unless there is none; then `error` says why it went wrong.
    fn lose(&mut self, disk: &DiskName, error: WriterError) {
        self.failed.push_back(disk.clone());
        self.last_failure = Some(error);
    }

    fn fail(&mut self, error: WriterError) {
        self.error.get_or_insert(error);
    }

    /// Does what is next once no command is in flight.
    fn go_on(&mut self) {
        if self.waiting != Waiting::Nothing || self.is_finished {
            return;
        }
        let Some(content) = self.ticket.as_ref().map(|ticket| ticket.terms().content) else {
            return;
        };
        if self.error.is_some() {
            return self.command(Waiting::Abort, Command::Abort { content }, Vec::new());
        }
        if let Some(disk) = self.failed.pop_front() {
            let command = Command::ReplaceDisk { content, disk: disk.id };
            return self.command(Waiting::Replace(disk), command, Vec::new());
        }
        if !self.outdated.is_empty() {
            return self.command(Waiting::Renew, Command::Extend { content }, Vec::new());
        }
        if self.replicas.iter().all(|replica| replica.receipt.is_some()) {
            self.commit(content);
        }
    }

    fn commit(&mut self, content: ContentId) {
        let needed = self.ticket.as_ref().map_or(0, |ticket| ticket.terms().receipt_count);
        if self.replicas.len() < usize::from(needed) {
            self.error = Some(self.last_failure.take().unwrap_or(WriterError::OtherAnswer));
            return self.go_on();
        }
        if let Err(error) = self.source.check_unchanged() {
            self.error = Some(error);
            return self.go_on();
        }
        let receipts = || self.replicas.iter().filter_map(|replica| replica.receipt.as_ref());
        let checksums = receipts().next().map(|(receipt, _)| receipt.receipt.checksums);
        let commit = Commit {
            content,
            size: self.source.size(),
            root: self.source.root(),
            checksums: checksums.unwrap_or(Checksums::EMPTY),
            modified_ns: self.keep_time.then(|| self.source.modified_ns()),
            receipts: Vec::new(),
        };
        let wires = receipts().map(|(_, wire)| wire.clone()).collect();
        self.command(Waiting::Commit, Command::Commit(commit), wires);
    }

    fn finish(&mut self, result: Result<Entry, WriterError>) {
        self.is_finished = true;
        self.actions.push_back(Action::Done(Box::new(result)));
    }
}

/// A receipt, if it is one of this disk. The head looks at who signed it.
fn receipt_of(site: &SiteName, disk: &DiskName, wire: &[u8]) -> Option<SignedReceipt> {
    let data = Data::decode(wire).ok()?;
    SignedReceipt::decode(site, &data).ok().filter(|receipt| receipt.disk == *disk)
}
