//! Replicas that leave their disks, looked after between two rounds of orders.

use byname_catalog::{Caller, Command, Failure, Reader};
use byname_site::{InsertAnswer, Stamp};

use super::{SECOND_NS, Watch};
use crate::keys::Keys;
use crate::repair::{Due, Orderer, RepairOrder, Told};

/// Orders to pull what another disk has.
pub struct RepairOrders(pub(crate) Vec<RepairOrder>);

impl RepairOrders {
    /// The Interests, which have no Nonce.
    pub fn wires(&self) -> Vec<Vec<u8>> {
        self.0.iter().map(|order| order.wire.clone()).collect()
    }

    /// True if it is only time that is waited for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Watch {
    /// Orders about replicas that leave their disks, whose answers [`Watch::handle_repairs`] takes;
    /// none at all if there is nothing to do.
    ///
    /// # Errors
    /// [`Failure`] of the catalog.
    pub fn repair_orders(
        &mut self,
        stamp: &mut dyn FnMut() -> Stamp,
        clocks: (u64, u64),
    ) -> Result<Option<RepairOrders>, Failure> {
        let reader = Reader::new(&*self.engine, &Caller::Head)?;
        let orderer = Orderer { site: &self.site, signer: &self.signer, epoch: self.epoch };
        Ok(match self.repairs.due(&reader, &orderer, clocks, stamp)? {
            Due::Nothing => None,
            Due::Orders(orders) => Some(RepairOrders(orders)),
        })
    }

    /// What the disks have answered, in the order of the orders; what the catalog is told.
    ///
    /// # Errors
    /// [`Failure`] of the catalog.
    pub fn handle_repairs(
        &mut self,
        orders: RepairOrders,
        answers: impl IntoIterator<Item = Option<Vec<u8>>>,
        (now_ns, unix_ns): (u64, u64),
    ) -> Result<Vec<Command>, Failure> {
        let reader = Reader::new(&*self.engine, &Caller::Head)?;
        let keys = Keys::new(&self.site, &reader, unix_ns / SECOND_NS);
        let mut commands = Vec::new();
        for (order, wire) in orders.0.into_iter().zip(answers) {
            let told = wire.map_or(Told::Wait, |wire| told(&keys, &order, &wire));
            commands.extend(self.repairs.handle(&order, told, now_ns));
        }
        Ok(commands)
    }
}

fn told(keys: &Keys<'_>, order: &RepairOrder, wire: &[u8]) -> Told {
    let answer = match keys.insert_answer(&order.to, wire) {
        Ok(answer) => answer,
        Err(error) => {
            tracing::warn!(%error, disk = order.to.id.0, "an answer does not count");
            return Told::Wait;
        }
    };
    match answer {
        InsertAnswer::Pulling { received_bytes, .. } => Told::Pulling(received_bytes),
        InsertAnswer::Refused(why) if why.is_retryable() => Told::Wait,
        InsertAnswer::Refused(why) => {
            tracing::info!(%why, disk = order.to.id.0, "a disk does not take a replica");
            Told::Refused
        }
        InsertAnswer::Stored(receipt) => match keys.receipt(&receipt) {
            Ok(receipt) if receipt.content == order.content && receipt.disk == order.to.id => {
                Told::Stored(receipt)
            }
            Ok(_) => Told::Refused,
            // Anybody on the path may have said that.
            Err(error) => {
                tracing::warn!(%error, disk = order.to.id.0, "a receipt does not count");
                Told::Wait
            }
        },
    }
}
