//! A comparison of the catalog with the disks, a step between two rounds of orders.

use byname_catalog::id::DiskId;
use byname_catalog::{Caller, Command, Failure, Reader};
use byname_site::{DiskName, ListAnswer, Stamp};

use super::{SECOND_NS, Watch};
use crate::fsck::Fsck;
use crate::keys::Keys;
use crate::observations::Observation;

/// An order to list what a disk has.
pub struct ListOrder {
    disk: DiskId,
    name: DiskName,
    wire: Vec<u8>,
}

impl ListOrder {
    /// The Interest, which has no Nonce.
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }
}

impl Watch {
    /// Goes on with the comparison that somebody has asked for: orders to be sent, whose answers
    /// [`Watch::handle_lists`] takes. `None` if there is nothing to compare.
    pub fn lists(&mut self, stamp: &mut dyn FnMut() -> Stamp) -> Option<Vec<ListOrder>> {
        let begun = self.begin_comparing().and_then(|()| {
            let Some(fsck) = &mut self.fsck else { return Ok(None) };
            let reader = Reader::new(&*self.engine, &Caller::Head)?;
            let orders = fsck.orders(&reader, (&self.site, self.epoch, &self.signer), stamp)?;
            if orders.is_empty() {
                fsck.step(&reader, &self.site)?;
            }
            Ok(Some(orders))
        });
        let orders = self.unless_failed(begun).flatten()?;
        let order = |(disk, name, wire)| ListOrder { disk, name, wire };
        self.tell();
        Some(orders.into_iter().map(order).collect())
    }

    fn begin_comparing(&mut self) -> Result<(), Failure> {
        if self.fsck.is_none()
            && let Some(wanted) = self.observations.fsck.take_wanted()
        {
            let reader = Reader::new(&*self.engine, &Caller::Head)?;
            self.fsck = Some(Fsck::new(&reader, wanted)?);
        }
        Ok(())
    }

    /// What the disks have answered, in the order of the orders.
    pub fn handle_lists(&mut self, answers: Vec<(ListOrder, Option<Vec<u8>>)>, unix_ns: u64) {
        let handled = answers.into_iter().try_for_each(|(order, wire)| {
            let reader = Reader::new(&*self.engine, &Caller::Head)?;
            let keys = Keys::new(&self.site, &reader, unix_ns / SECOND_NS);
            let answer = wire.and_then(|wire| verified(&keys, &order.name, &wire));
            let is_well =
                matches!(self.observations.get(order.disk), Some(Observation::Well { .. }));
            match &mut self.fsck {
                Some(fsck) => fsck.handle(&reader, (order.disk, is_well), answer),
                None => Ok(()),
            }
        });
        self.unless_failed(handled);
        self.tell();
    }

    /// The comparison ends if the catalog cannot be read.
    fn unless_failed<T>(&mut self, outcome: Result<T, Failure>) -> Option<T> {
        outcome
            .map_err(|error| {
                tracing::warn!(%error, "the catalog cannot be compared with the disks");
                self.fsck = None;
                self.observations.fsck.fail(error.to_string());
            })
            .ok()
    }

    /// What the catalog is told of a comparison that has come to its end, once.
    pub fn remedies(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.remedies)
    }

    fn tell(&mut self) {
        if let Some(fsck) = &mut self.fsck {
            // Who hears that it is over finds that what is to be done was begun.
            if fsck.is_done() && fsck.is_repaired {
                self.remedies = fsck.remedies();
            }
            self.observations.fsck.set(fsck.report());
            if fsck.is_done() {
                self.fsck = None;
            }
        }
    }
}

fn verified(keys: &Keys<'_>, disk: &DiskName, wire: &[u8]) -> Option<ListAnswer> {
    match keys.list_answer(disk, wire) {
        Ok(answer) => Some(answer),
        Err(error) => {
            tracing::warn!(%error, disk = disk.id.0, "an answer does not count");
            None
        }
    }
}
