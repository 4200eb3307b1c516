//! Looking after disks: each is asked again and again whether it answers, and told what to drop.
//!
//! One order says both: it names what the disk may drop, which is mostly nothing. The disk's answer
//! is signed and comes when all of it is gone for good; only then does the catalog forget that it
//! had to be dropped, so a disk that was away is cleaned when it is back. Orders carry the head's
//! term, so a head that has lost the lease learns it from the first disk.
//!
//! [`Watch`] is without I/O; [`DiskWatch`] runs it on a thread of its own.

mod comparing;
mod copying;
mod proving;
mod repairing;
mod turns;

pub use comparing::ListOrder;
pub use copying::CopyOrders;
pub use proving::ProveOrder;
pub use repairing::RepairOrders;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use byname_catalog::engine::Engine;
use byname_catalog::id::{ContentId, DiskId, LeaseEpoch};
use byname_catalog::{
    Caller, Command, DISK_LOAD_MAX, Disk, DiskChanges, DiskState, Failure, Reader,
};
use byname_face::{CommandClock, Exchange, Reply, random_u64};
use byname_io::{Clock, ConnectError, Connection};
use byname_site::{
    CONTENTS_MAX, DiskName, DiskRefusal, Drop, DropAnswer, ScrubState, SeedSource, SiteName, Stamp,
    library_seeds,
};
use byname_transfer::server::SharedSigner;

use crate::copies::{Copies, OwnWord};
use crate::execute::Executor;
use crate::fsck::Fsck;
use crate::keys::Keys;
use crate::observations::{DiskTally, Observation, Observations};
use crate::own::OwnCommands;
use crate::proving::Proving;
use crate::reading::steady;
use crate::repair::{RepairConfig, Repairs, Wish};

const SECOND_NS: u64 = 1_000_000_000;
/// Pause between two rounds.
const ROUND_PAUSE: Duration = Duration::from_secs(2);
/// Time that disks have for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Orders in a row without answer after which a disk is down.
const MISSES_MAX: u32 = 2;

/// An order to one disk.
pub struct Order {
    id: DiskId,
    name: DiskName,
    is_up: bool,
    load: u8,
    contents: Vec<ContentId>,
    wire: Vec<u8>,
}

impl Order {
    /// The Interest, which has no Nonce.
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }
}

/// Makes orders from the catalog, and commands to the catalog from answers.
pub struct Watch {
    site: SiteName,
    engine: Arc<dyn Engine>,
    signer: SharedSigner,
    /// The head's term.
    epoch: LeaseEpoch,
    observations: Observations,
    /// Orders in a row without answer.
    misses: BTreeMap<DiskId, u32>,
    /// The comparison that is being made.
    fsck: Option<Fsck>,
    /// What is to be done about what the last comparison has found.
    remedies: Vec<Command>,
    copies: Copies,
    repairs: Repairs,
    /// What the disks are being asked to prove.
    proving: Option<Proving>,
    seeds: SeedSource,
}

impl Watch {
    /// Looks after the disks during the executor's term. `signer` is the site's key, and that key's
    /// certificate is among `certificates`.
    pub fn new(
        site: SiteName,
        engine: Arc<dyn Engine>,
        (signer, certificates): (SharedSigner, &[Vec<u8>]),
        executor: &Executor,
    ) -> Self {
        let (epoch, observations) = (executor.epoch(), executor.observations());
        let own = OwnWord::new(site.clone(), &signer, certificates);
        let repairs = Repairs::new(RepairConfig::default(), observations.repairs.clone());
        Self {
            site,
            engine,
            signer,
            epoch,
            observations,
            misses: BTreeMap::new(),
            fsck: None,
            remedies: Vec::new(),
            copies: Copies::new(own),
            repairs,
            proving: None,
            seeds: library_seeds(),
        }
    }

    /// Makes replicas elsewhere in this way.
    #[must_use]
    pub fn repairing(self, config: RepairConfig) -> Self {
        let repairs = Repairs::new(config, self.observations.repairs.clone());
        Self { repairs, ..self }
    }

    /// Orders of one round: one to each disk that people want to be asked.
    ///
    /// # Errors
    /// [`Failure`] of the catalog.
    pub fn orders(&self, stamp: &mut dyn FnMut() -> Stamp) -> Result<Vec<Order>, Failure> {
        let with_drops = |reader: &Reader<'_>| {
            let of_disk = |(id, disk)| Ok((id, disk, reader.drops(id, CONTENTS_MAX)?));
            reader.disks()?.into_iter().map(of_disk).collect::<Result<Vec<_>, Failure>>()
        };
        let (mut orders, mut to_drop) = (Vec::new(), BTreeMap::new());
        for (id, disk, contents) in steady(&*self.engine, with_drops)? {
            to_drop.insert(id, contents.len());
            if disk.state != DiskState::Off {
                orders.extend(self.order(id, disk, contents, stamp()));
            }
        }
        self.observations.set_disks(&to_drop);
        Ok(orders)
    }

    fn order(
        &self,
        id: DiskId,
        disk: Disk,
        contents: Vec<ContentId>,
        stamp: Stamp,
    ) -> Option<Order> {
        let Disk { label: place, generation, is_up, load, .. } = disk;
        let name = DiskName { place, id };
        let drop = Drop { epoch: self.epoch, generation, contents };
        match drop.encode(&self.site, &name, &*self.signer, stamp) {
            Ok(wire) => Some(Order { id, name, is_up, load, contents: drop.contents, wire }),
            Err(error) => {
                tracing::warn!(%error, disk = id.0, "cannot sign an order");
                None
            }
        }
    }

    /// What the catalog is told after an answer, or none.
    pub fn handle(&mut self, order: Order, data: Option<&[u8]>, unix_ns: u64) -> Vec<Command> {
        let Order { id, name, is_up, load, contents, .. } = order;
        let answer = data.and_then(|wire| self.verified(&name, wire, unix_ns));
        let observation = match answer {
            Some(DropAnswer::Done { load, scrub, .. }) => {
                self.hear_of_scrub(id, scrub);
                Observation::Well { load }
            }
            Some(DropAnswer::Refused(why)) => Observation::Refuses(why),
            None => Observation::Silent,
        };
        self.observations.count(id, |DiskTally { errors, .. }| match observation {
            Observation::Well { .. } => {}
            Observation::Refuses(_) => errors.refused += 1,
            Observation::Silent => errors.unanswered += 1,
        });
        let misses = self.misses.entry(id).or_default();
        *misses = if observation == Observation::Silent { *misses + 1 } else { 0 };
        let is_up_now = if is_up { *misses < MISSES_MAX } else { *misses == 0 };
        if observation != Observation::Silent || *misses >= MISSES_MAX {
            self.observations.set(id, observation);
        }
        if observation == Observation::Refuses(DiskRefusal::OldEpoch) {
            tracing::warn!(disk = id.0, "a disk has heard of a later head than this one");
        }
        let is_well = matches!(observation, Observation::Well { .. });
        let load_now = match observation {
            Observation::Well { load: hundredths } => load_step(load, hundredths),
            _ => load,
        };
        let mut commands = Vec::new();
        if is_up_now != is_up || load_now != load {
            let changes = DiskChanges {
                is_up: Some(is_up_now).filter(|is_up_now| *is_up_now != is_up),
                load: Some(load_now).filter(|load_now| *load_now != load),
                ..DiskChanges::default()
            };
            commands.push(Command::SetDisk { disk: id, changes });
        }
        if is_well && !contents.is_empty() {
            commands.push(Command::Dropped { disk: id, contents });
        }
        commands
    }

    /// A disk has said how far it is in reading what it has. What has rotted is made anew elsewhere
    /// and goes from there: asked for again with every answer, until the disk has it no more.
    fn hear_of_scrub(&self, disk: DiskId, scrub: Option<ScrubState>) {
        let Some(scrub) = scrub else { return };
        for content in &scrub.rotten {
            let wish = Wish::rotten(*content, disk);
            if let Some(Some(why)) = self.observations.repairs.ask(wish) {
                let name = format!("{}-{}", content.inode.0, content.version.0);
                tracing::debug!(content = name, disk = disk.0, why, "rot is not made good");
            }
        }
        self.observations.set_scrub(disk, scrub);
    }

    fn verified(&self, disk: &DiskName, wire: &[u8], unix_ns: u64) -> Option<DropAnswer> {
        let reader = Reader::new(&*self.engine, &Caller::Head).ok()?;
        let keys = Keys::new(&self.site, &reader, unix_ns / SECOND_NS);
        match keys.drop_answer(disk, wire) {
            Ok(answer) => Some(answer),
            Err(error) => {
                tracing::warn!(%error, disk = disk.id.0, "an answer does not count");
                None
            }
        }
    }
}

/// Step of a disk's load, of which it says the hundredths: it goes up at these, and down again
/// where it is clearly less, so that the catalog is not changed for nothing.
fn load_step(step: u8, hundredths: u64) -> u8 {
    const UP: [u64; DISK_LOAD_MAX as usize] = [50, 150, 300, 600];
    let reached = |bounds: &dyn Fn(u64) -> u64| {
        UP.iter().filter(|bound| hundredths >= bounds(**bound)).count() as u8
    };
    let (up, down) = (reached(&|bound| bound), reached(&|bound| bound * 2 / 3));
    step.clamp(up, down)
}

/// True if a disk has dropped as much as one order names, so that there may be more for it. One
/// that does not answer, or refuses, has time until the next round, however much it has to drop.
pub fn has_more(command: &Command) -> bool {
    matches!(command, Command::Dropped { contents, .. } if contents.len() == CONTENTS_MAX)
}

/// What a head looks after the disks with, during a term.
pub(crate) struct WatchTerm {
    pub(crate) watch: Watch,
    /// To the catalog's thread.
    pub(crate) own: OwnCommands,
}

/// Looks after the disks of a site while its head leads.
pub struct DiskWatch {
    pub(crate) terms: Receiver<WatchTerm>,
}

impl DiskWatch {
    /// Starts the thread, which ends with the head's server. `connect` leads to a forwarder.
    ///
    /// # Errors
    /// [`std::io::Error`] if there can be no thread.
    pub fn start(
        self,
        mut connect: impl FnMut() -> Result<Connection, ConnectError> + Send + 'static,
    ) -> std::io::Result<()> {
        let work = move || self.terms.iter().for_each(|term| term.run(&mut connect));
        std::thread::Builder::new().name("disks".into()).spawn(work).map(std::mem::drop)
    }
}

impl WatchTerm {
    fn run(mut self, mut connect: impl FnMut() -> Result<Connection, ConnectError>) {
        let (clock, command_clock) = (Clock::new(), CommandClock::new());
        let mut stamp = || Stamp {
            time_ms: command_clock.next_ms(clock.unix_ns()),
            nonce: random_u64().to_be_bytes(),
        };
        let mut exchange = None;
        while self.own.term.strong_count() > 0 {
            let orders = self.watch.orders(&mut stamp).unwrap_or_else(|error| {
                tracing::warn!(%error, "the disks cannot be read from the catalog");
                Vec::new()
            });
            let wires: Vec<Vec<u8>> = orders.iter().map(|order| order.wire().to_vec()).collect();
            let replies = ask(&wires, &mut exchange, &mut connect);
            let mut is_more = false;
            for (order, reply) in orders.into_iter().zip(replies) {
                let data = match &reply {
                    Reply::Data { wire, .. } => Some(wire.as_slice()),
                    Reply::Nack(_) | Reply::Silence => None,
                };
                for command in self.watch.handle(order, data, clock.unix_ns()) {
                    is_more |= has_more(&command);
                    // If the term is over, the loop ends.
                    let _ = self.own.commands.send(command);
                }
            }
            self.copy(&mut stamp, &clock, &mut |wires| ask(wires, &mut exchange, &mut connect));
            let compares = self
                .compare(&mut stamp, &clock, &mut |wires| ask(wires, &mut exchange, &mut connect));
            let proves = self
                .prove(&mut stamp, &clock, &mut |wires| ask(wires, &mut exchange, &mut connect));
            let repairs = self
                .repair(&mut stamp, &clock, &mut |wires| ask(wires, &mut exchange, &mut connect));
            if !(compares || proves || repairs || is_more) {
                std::thread::sleep(ROUND_PAUSE);
            }
        }
    }
}

/// Replies to orders; none at all while there is no forwarder: that says nothing of the disks.
fn ask(
    wires: &[Vec<u8>],
    exchange: &mut Option<Exchange>,
    connect: &mut impl FnMut() -> Result<Connection, ConnectError>,
) -> Vec<Reply> {
    let connected = exchange.take().or_else(|| Exchange::new(connect().ok()?).ok());
    let Some(mut connected) = connected else { return Vec::new() };
    match connected.ask(wires, PATIENCE) {
        Ok(replies) => {
            *exchange = Some(connected);
            replies
        }
        Err(error) => {
            tracing::info!(%error, "the connection to the forwarder is lost");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::load_step;

    #[test]
    fn a_load_that_wavers_changes_nothing() {
        let follow = |loads: &[u64]| {
            let steps = loads.iter().scan(0, |step, load| {
                *step = load_step(*step, *load);
                Some(*step)
            });
            steps.collect::<Vec<_>>()
        };
        assert_eq!(follow(&[0, 49, 50, 49, 40, 34, 33, 32]), [0, 0, 1, 1, 1, 1, 1, 0]);
        assert_eq!(follow(&[149, 150, 120, 100, 99, 10_000, 399, 0]), [1, 2, 2, 2, 1, 4, 3, 0]);
        assert_eq!(load_step(u8::MAX, u64::MAX), 4);
    }
}
