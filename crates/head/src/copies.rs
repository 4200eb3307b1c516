//! Copies of the catalog's rows on the disks, from which it can be made again when all of its
//! state is lost (`byname_head::rebuild`).
//!
//! A copy begins with all rows, read page by page while the site goes on, and grows by the changes
//! of the log since. The octets of that are cut into orders which the disk keeps as they are. An
//! order may say that the rows up to and with it are those after a transaction: only there is a
//! copy complete. A copy that is there already is gone on with only if its last order proves it
//! (`proof`), whatever its disk says. When it has grown to more than twice what it began with,
//! another one is begun beside it.
//!
//! Without I/O: [`Copies::orders`] until there are none, [`Copies::handle`] for each answer.
//! Bounded: [`DISKS_MAX`] disks, for each a window of orders and a page of rows.

mod feed;
mod proof;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use byname_catalog::engine::Engine;
use byname_catalog::id::{DiskId, TransactionNumber};
use byname_catalog::{Caller, Disk, DiskState, Failure, Reader};
use byname_packet::SignError;
use byname_site::{CatalogCopy, CopyAnswer, CopyState, DiskName, DiskRefusal, Recall, Stamp};

pub(crate) use feed::Sender;
use feed::{Addressee, Feed, FeedError};
pub(crate) use proof::OwnWord;
use proof::{Proof, Proved};

/// Disks that have a copy, as long as there are so many.
const DISKS_MAX: usize = 8;
/// Rounds in which a disk is let alone that does not do what it is told.
const REST_ROUNDS: u32 = 15;
/// Rounds in a row without progress after which nothing is taken for granted any more.
const STUCK_ROUNDS: u32 = 3;

/// An order about a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyOrder {
    pub(crate) disk: DiskId,
    pub(crate) name: DiskName,
    pub(crate) wire: Vec<u8>,
}

/// What is known of a disk's copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CopyReport {
    /// The transaction up to which it is complete.
    pub(crate) through: TransactionNumber,
    /// Octets on the disk.
    pub(crate) stored_bytes: u64,
    /// Why it does not grow.
    pub(crate) problem: Option<String>,
}

/// A disk that is to have a copy.
struct Keeper {
    name: DiskName,
    generation: u64,
    stage: Stage,
    /// Rounds in which it is not asked.
    rest: u32,
    /// Rounds in which it kept nothing of what it was told to.
    stuck: u32,
    report: CopyReport,
}

enum Stage {
    /// It is asked what it has.
    Unknown,
    /// It is asked to prove that.
    Proving(Proof),
    /// It is told what it has not.
    Feeding(Box<Feed>),
}

/// See the module.
pub(crate) struct Copies {
    own: OwnWord,
    keepers: BTreeMap<DiskId, Keeper>,
}

impl Copies {
    /// Copies whose orders are signed by this head.
    pub(crate) fn new(own: OwnWord) -> Self {
        Self { own, keepers: BTreeMap::new() }
    }

    /// A round begins: the disks that are to have copies are chosen anew.
    pub(crate) fn begin_round(&mut self, engine: &dyn Engine) -> Result<(), Failure> {
        let reader = Reader::new(engine, &Caller::Head)?;
        let (chosen, latest) = (chosen(reader.disks()?), reader.last_transaction()?);
        self.keepers.retain(|id, keeper| {
            chosen.iter().any(|(other, disk)| other == id && disk.generation == keeper.generation)
        });
        for (id, disk) in chosen {
            let Disk { label: place, generation, .. } = disk;
            let keeper = self.keepers.entry(id).or_insert_with(|| Keeper {
                name: DiskName { place, id },
                generation,
                stage: Stage::Unknown,
                rest: 0,
                stuck: 0,
                report: CopyReport::default(),
            });
            keeper.begin_round(latest);
        }
        Ok(())
    }

    /// Orders whose answers [`Copies::handle`] takes; none if all copies are as they should be, or
    /// not to be asked in this round any more.
    pub(crate) fn orders(
        &mut self,
        engine: &dyn Engine,
        sender: &Sender<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<Vec<CopyOrder>, Failure> {
        let mut orders = Vec::new();
        for (id, keeper) in self.keepers.iter_mut().filter(|(_, keeper)| keeper.rest == 0) {
            match keeper.wires(engine, sender, stamp) {
                Ok(wires) => {
                    let name = &keeper.name;
                    let order = |wire| CopyOrder { disk: *id, name: name.clone(), wire };
                    orders.extend(wires.into_iter().map(order));
                }
                // The log has a gap: a new copy is begun.
                Err(FeedError::Gap) => keeper.begin_anew(engine)?,
                Err(FeedError::Unsigned(error)) => {
                    tracing::warn!(%error, disk = id.0, "cannot sign an order");
                    keeper.rest = REST_ROUNDS;
                }
                Err(FeedError::Catalog(error)) => return Err(error),
            }
        }
        Ok(orders)
    }

    /// The answer to an order; `None` if there is none that counts.
    pub(crate) fn handle(
        &mut self,
        engine: &dyn Engine,
        (disk, answer): (DiskId, Option<CopyAnswer>),
        now_s: u64,
    ) -> Result<(), Failure> {
        let Some(keeper) = self.keepers.get_mut(&disk) else { return Ok(()) };
        match answer {
            None => keeper.rest = keeper.rest.max(1),
            Some(CopyAnswer::Refused(why)) => keeper.handle_refusal(why),
            Some(CopyAnswer::State(state)) => keeper.handle_state(engine, state)?,
            Some(CopyAnswer::Octets(octets)) => {
                keeper.handle_octets(engine, &octets, (&mut self.own, now_s))?;
            }
            Some(CopyAnswer::Record(_)) => {}
        }
        Ok(())
    }

    /// What is known of all copies.
    pub(crate) fn reports(&self) -> BTreeMap<DiskId, CopyReport> {
        self.keepers.iter().map(|(id, keeper)| (*id, keeper.report.clone())).collect()
    }
}

impl Keeper {
    fn wires(
        &mut self,
        engine: &dyn Engine,
        sender: &Sender<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<Vec<Vec<u8>>, FeedError> {
        match &mut self.stage {
            Stage::Unknown => Ok(vec![self.recall(Recall::State, sender, stamp())?]),
            Stage::Proving(proof) => {
                let recall = proof.recall();
                Ok(vec![self.recall(recall, sender, stamp())?])
            }
            Stage::Feeding(feed) => {
                let disk = Addressee { name: &self.name, generation: self.generation };
                feed.fill(engine, sender, disk, stamp)?;
                Ok(feed.wires())
            }
        }
    }

    fn recall(
        &self,
        recall: Recall,
        sender: &Sender<'_>,
        stamp: Stamp,
    ) -> Result<Vec<u8>, SignError> {
        recall.encode(sender.site, &self.name, &**sender.signer, stamp)
    }

    fn begin_round(&mut self, latest: TransactionNumber) {
        self.rest = self.rest.saturating_sub(1);
        self.stuck = match &self.stage {
            Stage::Feeding(feed) if !feed.is_kept() => self.stuck + 1,
            _ => 0,
        };
        if self.stuck > STUCK_ROUNDS {
            // It does not answer, has lost what it had, or another head has begun another copy.
            (self.stage, self.stuck) = (Stage::Unknown, 0);
        }
        if let Stage::Feeding(feed) = &mut self.stage {
            feed.begin_round(latest);
        }
    }

    fn handle_refusal(&mut self, why: DiskRefusal) {
        self.rest = self.rest.max(1);
        if !why.is_retryable() {
            self.report.problem = Some(why.to_string());
            (self.rest, self.stage) = (REST_ROUNDS, Stage::Unknown);
        }
    }

    fn handle_state(&mut self, engine: &dyn Engine, state: CopyState) -> Result<(), Failure> {
        if let Some(CatalogCopy { through, stored, .. }) = state.complete {
            let building = state.building.map_or(0, |copy| copy.stored);
            (self.report.through, self.report.stored_bytes) =
                (through, stored.saturating_add(building));
        }
        let feed = match &mut self.stage {
            Stage::Feeding(feed) => feed,
            Stage::Unknown => return self.decide(engine, &state),
            Stage::Proving(_) => {
                self.rest = self.rest.max(1);
                return Ok(());
            }
        };
        let mut copies = [state.complete, state.building].into_iter().flatten();
        let Some(copy) = copies.find(|copy| copy.edition == feed.edition()) else { return Ok(()) };
        if feed.acknowledge(&copy) > 0 {
            (self.report.problem, self.stuck) = (None, 0);
        }
        if feed.is_overgrown(&copy) {
            self.begin_behind(engine, copy.edition)?;
        }
        Ok(())
    }

    /// The copy goes on from the place that its last order proves.
    fn handle_octets(
        &mut self,
        engine: &dyn Engine,
        octets: &[u8],
        (own, now_s): (&mut OwnWord, u64),
    ) -> Result<(), Failure> {
        let Stage::Proving(proof) = &mut self.stage else {
            self.rest = self.rest.max(1);
            return Ok(());
        };
        match proof.handle(octets, own, now_s) {
            Proved::NotYet => {}
            Proved::Yes(at) => {
                let latest = Reader::new(engine, &Caller::Head)?.last_transaction()?;
                self.stage = Stage::Feeding(Box::new(Feed::resume(proof.edition(), at, latest)));
            }
            Proved::No => {
                tracing::warn!(disk = self.name.id.0, "a disk's copy is not what it was told");
                let edition = proof.edition_max();
                self.begin_behind(engine, edition)?;
            }
        }
        Ok(())
    }

    /// Goes on with the copy that is there, or begins a new one.
    fn decide(&mut self, engine: &dyn Engine, state: &CopyState) -> Result<(), Failure> {
        let reader = Reader::new(engine, &Caller::Head)?;
        let latest = reader.last_transaction()?;
        let Some(copy) = state.complete else { return self.begin(engine, state) };
        if copy.through > latest {
            // What it has may be all that is left of these transactions.
            tracing::warn!(disk = self.name.id.0, "a disk has rows of a later catalog than this");
            self.report.problem = Some("it has rows of a later catalog".to_owned());
            self.rest = REST_ROUNDS;
            return Ok(());
        }
        let next = reader.log_after(copy.through, 1)?;
        let follows = next.first().is_none_or(|it| it.number.0 == copy.through.0 + 1);
        let proof = Proof::begin(copy, edition_max(state));
        match proof.filter(|_| follows && (copy.through == latest || !next.is_empty())) {
            Some(proof) => self.stage = Stage::Proving(proof),
            None => self.begin(engine, state)?,
        }
        Ok(())
    }

    fn begin(&mut self, engine: &dyn Engine, state: &CopyState) -> Result<(), Failure> {
        self.begin_behind(engine, edition_max(state))
    }

    /// Begins a new copy behind an edition. One that nothing can be behind is what no head has told
    /// the disk.
    fn begin_behind(&mut self, engine: &dyn Engine, edition: u64) -> Result<(), Failure> {
        match edition.checked_add(1) {
            Some(next) => self.stage = Stage::Feeding(Box::new(Feed::begin(engine, next)?)),
            None => {
                self.report.problem = Some("it has a copy that cannot be".to_owned());
                (self.rest, self.stage) = (REST_ROUNDS, Stage::Unknown);
            }
        }
        Ok(())
    }

    fn begin_anew(&mut self, engine: &dyn Engine) -> Result<(), Failure> {
        match &self.stage {
            Stage::Feeding(feed) => self.begin_behind(engine, feed.edition()),
            _ => Ok(()),
        }
    }
}

/// The highest edition that a disk has.
fn edition_max(state: &CopyState) -> u64 {
    let copies = [state.complete, state.building].into_iter().flatten();
    copies.map(|copy| copy.edition).max().unwrap_or_default()
}

impl From<SignError> for FeedError {
    fn from(error: SignError) -> Self {
        Self::Unsigned(error)
    }
}

/// Disks that are to have copies: those that answer, on different servers first.
fn chosen(disks: Vec<(DiskId, Disk)>) -> Vec<(DiskId, Disk)> {
    let is_asked = |disk: &Disk| disk.is_up && disk.state != DiskState::Off;
    let mut servers = BTreeSet::new();
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for (id, disk) in disks.into_iter().filter(|(_, disk)| is_asked(disk)) {
        match servers.insert(disk.server.clone()) {
            true => first.push((id, disk)),
            false => others.push((id, disk)),
        }
    }
    first.extend(others);
    first.truncate(DISKS_MAX);
    first
}
