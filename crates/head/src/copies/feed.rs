//! Octets of a copy on their way to a disk: rows and changes, cut into orders.

use std::collections::VecDeque;

use byname_catalog::engine::{Engine, Table};
use byname_catalog::id::{LeaseEpoch, TransactionNumber};
use byname_catalog::{Caller, Failure, Reader, RowChange, export};
use byname_packet::SignError;
use byname_site::{CatalogCopy, CopyPoint, DiskName, Keep, ROWS_BYTES_MAX, SiteName, Stamp};
use byname_transfer::server::SharedSigner;

/// Orders in flight to one disk.
const WINDOW: usize = 32;
/// Rows, or transactions, that are read at a time.
const PAGE: usize = 256;
/// Octets by which a copy may grow before it is as long as it began.
const SLACK_BYTES: u64 = 1 << 20;

/// Whoever sends orders.
pub(crate) struct Sender<'a> {
    pub(crate) site: &'a SiteName,
    /// The head's term.
    pub(crate) epoch: LeaseEpoch,
    pub(crate) signer: &'a SharedSigner,
}

/// The disk that orders are for.
#[derive(Clone, Copy)]
pub(super) struct Addressee<'a> {
    pub(super) name: &'a DiskName,
    pub(super) generation: u64,
}

/// Reason for which a copy does not go on.
#[derive(Debug)]
pub(super) enum FeedError {
    /// Transactions that are missing in it are not in the log any more.
    Gap,
    Unsigned(SignError),
    Catalog(Failure),
}

impl From<Failure> for FeedError {
    fn from(error: Failure) -> Self {
        Self::Catalog(error)
    }
}

/// An order that is in flight.
struct Sent {
    /// Octets of rows up to and with it.
    end: u64,
    through: Option<TransactionNumber>,
    wire: Vec<u8>,
}

/// See the module.
pub(super) struct Feed {
    edition: u64,
    /// Where the next order begins.
    at: CopyPoint,
    /// Octets that are in none yet.
    uncut: Vec<u8>,
    /// The last row that was read, while all are being read.
    base: Option<Option<(Table, Vec<u8>)>>,
    /// The last transaction whose changes were read.
    from: TransactionNumber,
    /// The transaction that this round goes to: rows that were read are not complete before it.
    until: TransactionNumber,
    /// The last transaction that an order says to be complete.
    marked: Option<TransactionNumber>,
    sent: VecDeque<Sent>,
}

impl Feed {
    /// A new copy.
    pub(super) fn begin(engine: &dyn Engine, edition: u64) -> Result<Self, Failure> {
        let from = Reader::new(engine, &Caller::Head)?.last_transaction()?;
        Ok(Self {
            edition,
            at: CopyPoint::default(),
            uncut: Vec::new(),
            base: Some(None),
            from,
            until: from,
            marked: None,
            sent: VecDeque::new(),
        })
    }

    /// A copy that goes on from a place that is proved, to the latest transaction.
    pub(super) fn resume(edition: u64, at: CopyPoint, latest: TransactionNumber) -> Self {
        Self {
            edition,
            at,
            uncut: Vec::new(),
            base: None,
            from: at.through,
            until: latest.max(at.through),
            marked: Some(at.through),
            sent: VecDeque::new(),
        }
    }

    pub(super) fn edition(&self) -> u64 {
        self.edition
    }

    /// A round begins. It goes to the transaction that is the latest now, and what comes meanwhile
    /// waits for the next: a row that many transactions change is told once a round, and one order
    /// says what is complete. A round that was not ended goes on first.
    pub(super) fn begin_round(&mut self, latest: TransactionNumber) {
        if self.from >= self.until {
            self.until = latest.max(self.until);
        }
    }

    /// Makes orders until the window is full, or nothing of this round is missing.
    pub(super) fn fill(
        &mut self,
        engine: &dyn Engine,
        sender: &Sender<'_>,
        disk: Addressee<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<(), FeedError> {
        while self.sent.len() < WINDOW {
            self.read(engine)?;
            while self.uncut.len() >= ROWS_BYTES_MAX {
                self.cut((ROWS_BYTES_MAX, None), sender, disk, stamp())?;
            }
            if self.base.is_some() || self.from < self.until {
                continue;
            }
            if self.marked == Some(self.from) {
                break;
            }
            self.cut((self.uncut.len(), Some(self.from)), sender, disk, stamp())?;
            self.marked = Some(self.from);
        }
        Ok(())
    }

    /// Reads more. What fails is read again from the same place: a copy without what could not be
    /// read would pass for a whole one.
    fn read(&mut self, engine: &dyn Engine) -> Result<(), FeedError> {
        if let Some(last) = &self.base {
            let after = last.as_ref().map(|(table, key)| (*table, key.as_slice()));
            let rows = engine.snapshot().map_err(Failure::from)?;
            let page = export(&*rows, after, PAGE).map_err(Failure::from)?;
            let until = Reader::new(engine, &Caller::Head)?.last_transaction()?;
            let is_last = page.len() < PAGE;
            let end = page.last().map(|row| (row.table, row.key.clone()));
            page.into_iter().for_each(|row| RowChange::from(row).encode(&mut self.uncut));
            self.until = until;
            self.base = (!is_last).then_some(end);
            return Ok(());
        }
        let missing = self.until.0.saturating_sub(self.from.0);
        if missing == 0 {
            return Ok(());
        }
        let reader = Reader::new(engine, &Caller::Head)?;
        let page = usize::try_from(missing).map_or(PAGE, |missing| missing.min(PAGE));
        let records = reader.log_after(self.from, page)?;
        let Some(last) = records.last().map(|record| record.number) else {
            return Err(FeedError::Gap);
        };
        if last.0 - self.from.0 != records.len() as u64 {
            return Err(FeedError::Gap);
        }
        RowChange::of(&records).iter().for_each(|change| change.encode(&mut self.uncut));
        self.from = last;
        Ok(())
    }

    fn cut(
        &mut self,
        (bytes, through): (usize, Option<TransactionNumber>),
        sender: &Sender<'_>,
        disk: Addressee<'_>,
        stamp: Stamp,
    ) -> Result<(), FeedError> {
        let order = Keep {
            epoch: sender.epoch,
            generation: disk.generation,
            edition: self.edition,
            at: self.at,
            through,
            rows: self.uncut.drain(..bytes).collect(),
        };
        let wire = order.encode(sender.site, disk.name, &**sender.signer, stamp)?;
        self.at = order.end();
        self.sent.push_back(Sent { end: self.at.length, through, wire });
        Ok(())
    }

    /// Orders to be sent, or sent again.
    pub(super) fn wires(&self) -> Vec<Vec<u8>> {
        self.sent.iter().take(WINDOW).map(|sent| sent.wire.clone()).collect()
    }

    /// So much of it is kept: the number of orders that are not in flight any more. Answers may
    /// overtake each other.
    pub(super) fn acknowledge(&mut self, copy: &CatalogCopy) -> usize {
        let is_kept = |sent: &Sent| {
            sent.end <= copy.length && sent.through.is_none_or(|through| through <= copy.through)
        };
        let kept = self.sent.iter().take_while(|sent| is_kept(sent)).count();
        self.sent.drain(..kept);
        kept
    }

    /// True if all that was sent is kept.
    pub(super) fn is_kept(&self) -> bool {
        self.sent.is_empty()
    }

    /// True if it has grown so much that it is begun anew.
    pub(super) fn is_overgrown(&self, copy: &CatalogCopy) -> bool {
        self.sent.is_empty()
            && copy.base > 0
            && copy.length > copy.base.saturating_mul(2).saturating_add(SLACK_BYTES)
    }
}
