//! Replicas that are made elsewhere: those of disks that are drained, that have not answered for a
//! while, or were turned off; those that a file lacks; and those that operators want to be on other
//! disks, one by one or to have disks as full as each other. Without I/O.
//!
//! The head orders a disk to pull what another one has, as a writer orders it, by a ticket for a
//! key of its own; the source is in the order's hint, and each unit is verified by the root that
//! the catalog has. When the receipt is there, one transaction counts the new replica and lets the
//! old one go. Which disks are emptied is in the catalog, and what is left to do is what the
//! catalog has on them: a head that is killed leaves nothing behind but copies that their disks ask
//! about, and the next one goes on.
//!
//! What was asked for by name comes first, then what leaves disks, then what files lack, then
//! balance. Octets are bounded in time, and contents in flight in number; a disk that is busy says
//! so, and is asked again.

mod allowance;
mod desk;
mod files;
mod fill;
mod leaving;
mod source;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use byname_catalog::id::{ContentId, DiskId, LeaseEpoch};
use byname_catalog::{Command, Content, Disk, Failure, MoveReplica, Policy, Reader, Receipt};
use byname_security::key::{Algorithm, KeyPair, KeySigner};
use byname_site::{Claim, DiskName, Insert, SiteName, Stamp, Terms, TermsDisk, Ticket};
use byname_transfer::server::SharedSigner;

use allowance::Allowance;
use files::Files;
use source::source_of;

pub(crate) use desk::{BalanceWish, FilesReport, RepairDesk, RepairReport, Wish};
pub(crate) use fill::Fill;

const SECOND_NS: u64 = 1_000_000_000;
/// Contents in flight.
const IN_FLIGHT_MAX: usize = 32;
/// Rows of a disk that one look takes.
const PAGE_ROWS: usize = 256;
/// Time in which nothing comes after which another disk is asked.
const PATIENCE_NS: u64 = 120 * SECOND_NS;
/// Octets a second that come at least: for a content's time is measured by it, which a ticket of
/// the head's is good for.
const LEAST_BYTES_PER_S: u64 = 4 << 20;
/// Time in which a transaction is done that was handed over.
const SETTLING_NS: u64 = 30 * SECOND_NS;
/// Pause after a disk was looked through in vain.
const LOOK_AGAIN_NS: u64 = 5 * SECOND_NS;
/// Disks that did not take a content that are remembered.
const REFUSED_MAX: usize = 65_536;

/// How replicas are made elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairConfig {
    /// Octets a second, in all.
    pub bytes_per_s: u64,
    /// Time for which a disk does not answer, or is off, until its replicas are made elsewhere.
    pub after_ns: u64,
}

impl Default for RepairConfig {
    fn default() -> Self {
        Self { bytes_per_s: 100_000_000, after_ns: 3600 * SECOND_NS }
    }
}

/// The head as it signs orders.
pub(crate) struct Orderer<'a> {
    pub(crate) site: &'a SiteName,
    pub(crate) signer: &'a SharedSigner,
    pub(crate) epoch: LeaseEpoch,
}

/// The site at one moment.
struct Scene<'a> {
    reader: &'a Reader<'a>,
    orderer: &'a Orderer<'a>,
    disks: BTreeMap<DiskId, Disk>,
    /// Disks that are to be emptied.
    leaving: Vec<DiskId>,
    now_ns: u64,
    unix_ns: u64,
}

/// A content that a disk is ordered to pull from another one.
struct Journey {
    claim: Claim,
    source: DiskName,
    to: DiskName,
    /// Of the disk that it goes to.
    generation: u64,
}

/// Why a replica is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Wish(Wish),
    Leaving,
    Short,
    Balance,
}

/// A replica that is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Task {
    content: ContentId,
    /// The disk that it leaves.
    from: Option<DiskId>,
    why: Why,
}

/// A content on its way to another disk.
struct Copying {
    task: Task,
    size: u64,
    to: DiskName,
    wire: Vec<u8>,
    /// What has come, by the disk's word.
    received_bytes: u64,
    /// When another disk is asked, if nothing more comes,
    stalled_ns: u64,
    /// and however much has come.
    until_ns: u64,
}

/// A content whose transaction was handed over.
struct Settling {
    from: Option<DiskId>,
    to: DiskId,
    size: u64,
    until_ns: u64,
}

/// Where a replica goes.
struct Home<'a> {
    found: &'a Content,
    to: DiskId,
    disk: Disk,
}

/// What came of the attempt to begin something.
enum Begun {
    Yes,
    /// There is nothing to do, or no more.
    Needless,
    /// Nobody has it, or nobody takes it.
    Impossible(&'static str),
}

/// An order to a disk, whose answer [`Repairs::handle`] takes.
pub(crate) struct RepairOrder {
    pub(crate) content: ContentId,
    pub(crate) to: DiskName,
    pub(crate) wire: Vec<u8>,
}

/// What came of an order.
pub(crate) enum Told {
    /// It is there.
    Stored(Receipt),
    /// So much of it is there.
    Pulling(u64),
    /// Nothing was heard, or not now.
    Wait,
    /// This disk does not take it.
    Refused,
}

/// What there is to do.
pub(crate) enum Due {
    /// Nothing.
    Nothing,
    /// These orders, or none until there is more allowance.
    Orders(Vec<RepairOrder>),
}

/// See the module.
pub(crate) struct Repairs {
    config: RepairConfig,
    desk: RepairDesk,
    key: Option<Arc<KeyPair>>,
    /// Since when disks have not answered, or are off.
    away_since: BTreeMap<DiskId, u64>,
    in_flight: BTreeMap<ContentId, Copying>,
    settling: BTreeMap<ContentId, Settling>,
    refused: BTreeSet<(ContentId, DiskId)>,
    /// Where the look through a disk's replicas goes on, or when it begins again.
    looks: BTreeMap<DiskId, Look>,
    /// The same for balance.
    balance_looks: BTreeMap<DiskId, Look>,
    /// The look through all files.
    files: Files,
    allowance: Allowance,
    balance_allowance: Allowance,
    /// Of disks that are drained at a rate of their own.
    drain_allowances: BTreeMap<DiskId, Allowance>,
}

#[derive(Debug, Clone, Copy)]
enum Look {
    After(Option<ContentId>),
    Again { at_ns: u64 },
}

impl Repairs {
    pub(crate) fn new(config: RepairConfig, desk: RepairDesk) -> Self {
        Self {
            config,
            desk,
            key: KeyPair::generate(Algorithm::Ed25519).ok().map(Arc::new),
            away_since: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            settling: BTreeMap::new(),
            refused: BTreeSet::new(),
            looks: BTreeMap::new(),
            balance_looks: BTreeMap::new(),
            files: Files::default(),
            allowance: Allowance::default(),
            balance_allowance: Allowance::default(),
            drain_allowances: BTreeMap::new(),
        }
    }

    /// What is to be sent now: everything in flight, and what may begin.
    ///
    /// # Errors
    /// [`Failure`] of the catalog.
    pub(crate) fn due(
        &mut self,
        reader: &Reader<'_>,
        orderer: &Orderer<'_>,
        (now_ns, unix_ns): (u64, u64),
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<Due, Failure> {
        self.settle(reader, now_ns)?;
        self.give_up_late(now_ns);
        self.allowance.refill(self.config.bytes_per_s, now_ns);
        let disks: BTreeMap<DiskId, Disk> = reader.disks()?.into_iter().collect();
        let leaving = self.leaving(&disks, now_ns);
        let is_wanted = |task: &Task| match (task.why, task.from) {
            (Why::Leaving, Some(from)) => leaving.contains(&from),
            _ => true,
        };
        self.in_flight.retain(|_, copying| is_wanted(&copying.task));
        let scene = Scene { reader, orderer, disks, leaving, now_ns, unix_ns };
        self.refill_drains(&scene);
        self.begin_wishes(&scene, stamp)?;
        let mut is_more = false;
        for from in &scene.leaving {
            is_more |= self.begin(*from, &scene, stamp)?;
        }
        is_more |= self.begin_short(&scene, stamp)?;
        is_more |= self.begin_balance(&scene, stamp)?;
        let in_flight = self.in_flight.len();
        self.desk.tell(|report| report.in_flight = in_flight);
        if self.in_flight.is_empty() && !is_more {
            return Ok(Due::Nothing);
        }
        let orders = self.in_flight.iter().map(|(content, copying)| RepairOrder {
            content: *content,
            to: copying.to.clone(),
            wire: copying.wire.clone(),
        });
        Ok(Due::Orders(orders.collect()))
    }

    /// What a disk has answered; the command that counts the replica, if it is there.
    pub(crate) fn handle(
        &mut self,
        order: &RepairOrder,
        told: Told,
        now_ns: u64,
    ) -> Option<Command> {
        match told {
            Told::Wait => None,
            Told::Pulling(received_bytes) => {
                let copying = self.in_flight.get_mut(&order.content)?;
                if received_bytes > copying.received_bytes {
                    copying.received_bytes = received_bytes;
                    copying.stalled_ns = now_ns.saturating_add(PATIENCE_NS);
                }
                None
            }
            Told::Refused => {
                let copying = self.in_flight.remove(&order.content)?;
                self.refuse(order.content, order.to.id);
                if let Why::Wish(wish) = copying.task.why
                    && wish.to.is_some()
                {
                    self.desk.fail(&wish, "the disk does not take it");
                }
                None
            }
            Told::Stored(receipt) => {
                let Copying { task, size, to, .. } = self.in_flight.remove(&order.content)?;
                let until_ns = now_ns.saturating_add(SETTLING_NS);
                let settling = Settling { from: task.from, to: to.id, size, until_ns };
                self.settling.insert(order.content, settling);
                self.desk.tell(|report| {
                    report.moved += 1;
                    report.moved_bytes += size;
                    report.balanced_bytes += if task.why == Why::Balance { size } else { 0 };
                });
                Some(Command::MoveReplica(MoveReplica { receipt, from: task.from }))
            }
        }
    }

    /// Forgets what the catalog has by now.
    fn settle(&mut self, reader: &Reader<'_>, now_ns: u64) -> Result<(), Failure> {
        let mut done = Vec::new();
        for (content, settling) in &self.settling {
            let current = reader.current(*content)?;
            let is_there = current.is_none_or(|(it, _)| it.replicas.contains(&settling.to));
            if is_there || settling.until_ns <= now_ns {
                done.push(*content);
            }
        }
        self.settling.retain(|content, _| !done.contains(content));
        Ok(())
    }

    fn may_begin(&self) -> bool {
        self.in_flight.len() < IN_FLIGHT_MAX && self.allowance.is_left()
    }

    /// Orders a disk to pull a content, if there is one that may and somebody who has it.
    fn begin_one(
        &mut self,
        task: Task,
        found: &(Content, Policy),
        scene: &Scene<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<Begun, Failure> {
        let refused: Vec<DiskId> = self.refused_by(task.content);
        let without = [&scene.leaving[..], &refused, task.from.as_slice()].concat();
        let home = scene.reader.home_for(task.content, (&found.0, &found.1), &without)?;
        let Some(home) = home else {
            // Those who did not take it are asked again, later.
            for disk in refused {
                self.refused.remove(&(task.content, disk));
            }
            return Ok(Begun::Impossible("no other disk takes it"));
        };
        let (to, disk) = home;
        Ok(self.send(task, Home { found: &found.0, to, disk }, scene, stamp()))
    }

    /// Orders a disk to pull a content from one that has it.
    fn send(
        &mut self,
        task: Task,
        Home { found, to, disk }: Home<'_>,
        scene: &Scene<'_>,
        stamp: Stamp,
    ) -> Begun {
        let content = task.content;
        if self.in_flight.contains_key(&content) || self.settling.contains_key(&content) {
            return Begun::Needless;
        }
        let attempts = self.refused_by(content).len();
        let rotten = match task.why {
            Why::Wish(wish) if wish.is_rotten => wish.from,
            _ => None,
        };
        let Some(source) = source_of(content, found, &scene.disks, (attempts, rotten)) else {
            return Begun::Impossible("no other disk that answers has it");
        };
        let to = DiskName { place: disk.label, id: to };
        let claim = Claim { content, size: found.size, root: found.root };
        let journey = Journey { claim, source, to, generation: disk.generation };
        let Some(wire) = self.order(scene, &journey, stamp) else {
            return Begun::Impossible("the order cannot be signed");
        };
        let (to, size) = (journey.to, found.size);
        self.allowance.take(size);
        if let (Why::Leaving, Some(from)) = (task.why, task.from)
            && let Some(allowance) = self.drain_allowances.get_mut(&from)
        {
            allowance.take(size);
        }
        let stalled_ns = scene.now_ns.saturating_add(PATIENCE_NS);
        let until_ns = scene.now_ns.saturating_add(time_for(size));
        let copying = Copying { task, size, to, wire, received_bytes: 0, stalled_ns, until_ns };
        self.in_flight.insert(content, copying);
        Begun::Yes
    }

    fn refused_by(&self, content: ContentId) -> Vec<DiskId> {
        let all = (content, DiskId(0))..=(content, DiskId(u64::MAX));
        self.refused.range(all).map(|(_, disk)| *disk).collect()
    }

    /// The order, by a ticket of the site for the head's own key.
    fn order(
        &self,
        scene: &Scene<'_>,
        &Journey { claim, ref source, ref to, generation }: &Journey,
        stamp: Stamp,
    ) -> Option<Vec<u8>> {
        let key = self.key.clone()?;
        let (orderer, unix_ns) = (scene.orderer, scene.unix_ns);
        let terms = Terms {
            content: claim.content,
            epoch: orderer.epoch,
            size_max: claim.size,
            receipt_count: 1,
            expires_ns: unix_ns.saturating_add(time_for(claim.size)),
            disks: vec![TermsDisk { name: to.clone(), generation }],
            origin: None,
        };
        let made = || {
            let (site, now_s) = (orderer.site, unix_ns / SECOND_NS);
            let ticket = Ticket::issue(site, terms, &key.public_key(), now_s, &**orderer.signer)?;
            let signer = KeySigner::new(key, ticket.certificate().name().to_name());
            let claim = claim.encode(site, &signer)?;
            let order = Insert { ticket, claim, hint: site.disk(source) };
            order.encode(site, to, &signer, stamp)
        };
        made().map_err(|error| tracing::warn!(%error, "cannot sign an order to copy")).ok()
    }

    fn give_up_late(&mut self, now_ns: u64) {
        let is_late = |copying: &Copying| copying.until_ns.min(copying.stalled_ns) <= now_ns;
        let late = self.in_flight.extract_if(.., |_, copying| is_late(copying));
        for (content, copying) in late.collect::<Vec<_>>() {
            self.refuse(content, copying.to.id);
        }
    }

    fn refuse(&mut self, content: ContentId, disk: DiskId) {
        self.desk.count_failure(disk);
        if self.refused.len() >= REFUSED_MAX {
            self.refused.clear();
        }
        self.refused.insert((content, disk));
    }
}

/// Time that a content of this size may take.
fn time_for(size: u64) -> u64 {
    PATIENCE_NS.saturating_add((size / LEAST_BYTES_PER_S).saturating_mul(SECOND_NS))
}
