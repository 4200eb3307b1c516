//! Challenges to disks, a step between two rounds of orders.

use byname_catalog::id::{ContentId, DiskId};
use byname_catalog::{Caller, Failure, Reader};
use byname_site::{DiskName, ProveAnswer, SeedSource, Stamp};

use super::{SECOND_NS, Watch};
use crate::keys::Keys;
use crate::observations::Observation;
use crate::proving::{Asker, Proof, Proving, Wanted};

/// An order to prove something.
pub struct ProveOrder {
    disk: DiskId,
    name: DiskName,
    wire: Vec<u8>,
}

impl ProveOrder {
    /// The Interest, which has no Nonce.
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }
}

impl Watch {
    /// Draws challenges from somewhere else than the cryptographic library.
    pub fn draw_challenges_from(&mut self, seeds: SeedSource) {
        self.seeds = seeds;
    }

    /// Has a disk prove so many of its replicas; false if something else is being proved.
    pub fn challenge(&self, disk: DiskId, count: usize) -> bool {
        self.observations.proofs.begin(Wanted::OfDisk(disk, count))
    }

    /// What was proved and what was not, once it has come to its end.
    pub fn proved(&self) -> Option<Vec<(ContentId, bool)>> {
        self.observations.proofs.read(|report| {
            let outcome = |proof: &Proof| (proof.content, proof.outcome.is_ok());
            (!report.is_running).then(|| report.proofs.iter().map(outcome).collect())
        })
    }

    /// Goes on with what somebody wants to be proved: orders to be sent, whose answers
    /// [`Watch::handle_proofs`] takes. `None` if there is nothing to prove.
    pub fn proofs(&mut self, stamp: &mut dyn FnMut() -> Stamp) -> Option<Vec<ProveOrder>> {
        let asked = self.begin_proving().and_then(|()| {
            let Some(proving) = &mut self.proving else { return Ok(None) };
            let reader = Reader::new(&*self.engine, &Caller::Head)?;
            let (site, epoch, signer) = (&self.site, self.epoch, &self.signer);
            let asker = Asker { site, epoch, signer };
            proving.orders(&reader, asker, stamp, &mut self.seeds).map(Some)
        });
        let orders = self.unless_unproved(asked).flatten()?;
        self.tell_proofs();
        let order = |(disk, name, wire)| ProveOrder { disk, name, wire };
        Some(orders.into_iter().map(order).collect())
    }

    fn begin_proving(&mut self) -> Result<(), Failure> {
        if self.proving.is_none()
            && let Some(wanted) = self.observations.proofs.take_wanted()
        {
            let reader = Reader::new(&*self.engine, &Caller::Head)?;
            self.proving = Some(Proving::new(&reader, &wanted)?);
        }
        Ok(())
    }

    /// What the disks have answered, in the order of the orders.
    pub fn handle_proofs(&mut self, answers: Vec<(ProveOrder, Option<Vec<u8>>)>, unix_ns: u64) {
        let handled = answers.into_iter().try_for_each(|(order, wire)| {
            let reader = Reader::new(&*self.engine, &Caller::Head)?;
            let keys = Keys::new(&self.site, &reader, unix_ns / SECOND_NS);
            let answer = wire.and_then(|wire| verified(&keys, &order.name, &wire));
            let is_well =
                matches!(self.observations.get(order.disk), Some(Observation::Well { .. }));
            match &mut self.proving {
                Some(proving) => proving.handle(&reader, (order.disk, is_well), answer),
                None => Ok(()),
            }
        });
        self.unless_unproved(handled);
        self.tell_proofs();
    }

    /// It ends if the catalog cannot be read.
    fn unless_unproved<T>(&mut self, outcome: Result<T, Failure>) -> Option<T> {
        outcome
            .map_err(|error| {
                tracing::warn!(%error, "disks cannot be asked for proofs");
                self.proving = None;
                self.observations.proofs.fail(error.to_string());
            })
            .ok()
    }

    fn tell_proofs(&mut self) {
        if let Some(proving) = &self.proving {
            self.observations.proofs.set(proving.report());
            if proving.is_done() {
                self.proving = None;
            }
        }
    }
}

fn verified(keys: &Keys<'_>, disk: &DiskName, wire: &[u8]) -> Option<ProveAnswer> {
    keys.prove_answer(disk, wire)
        .inspect_err(|error| tracing::warn!(%error, disk = disk.id.0, "an answer does not count"))
        .ok()
}
