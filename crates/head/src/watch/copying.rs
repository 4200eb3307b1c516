//! Copies of the catalog's rows, looked after between two rounds of orders.

use byname_catalog::{Caller, Failure, Reader};
use byname_site::Stamp;

use super::{SECOND_NS, Watch};
use crate::copies::{CopyOrder, Sender};
use crate::keys::Keys;

/// An order about a copy of the catalog's rows.
pub struct CopyOrders(pub(crate) Vec<CopyOrder>);

impl CopyOrders {
    /// The Interests, which have no Nonce.
    pub fn wires(&self) -> Vec<Vec<u8>> {
        self.0.iter().map(|order| order.wire.clone()).collect()
    }
}

impl Watch {
    /// A round begins.
    ///
    /// # Errors
    /// [`Failure`] of the catalog.
    pub fn begin_copying(&mut self) -> Result<(), Failure> {
        self.copies.begin_round(&*self.engine)
    }

    /// Orders about copies, whose answers [`Watch::handle_copies`] takes; none if there is nothing
    /// to do in this round.
    ///
    /// # Errors
    /// [`Failure`] of the catalog.
    pub fn copy_orders(
        &mut self,
        stamp: &mut dyn FnMut() -> Stamp,
    ) -> Result<Option<CopyOrders>, Failure> {
        let sender = Sender { site: &self.site, epoch: self.epoch, signer: &self.signer };
        let orders = self.copies.orders(&*self.engine, &sender, stamp)?;
        Ok(Some(CopyOrders(orders)).filter(|orders| !orders.0.is_empty()))
    }

    /// What the disks have answered, in the order of the orders.
    ///
    /// # Errors
    /// [`Failure`] of the catalog.
    pub fn handle_copies(
        &mut self,
        orders: CopyOrders,
        answers: impl IntoIterator<Item = Option<Vec<u8>>>,
        unix_ns: u64,
    ) -> Result<(), Failure> {
        for (order, wire) in orders.0.into_iter().zip(answers) {
            let reader = Reader::new(&*self.engine, &Caller::Head)?;
            let keys = Keys::new(&self.site, &reader, unix_ns / SECOND_NS);
            let answer = wire.and_then(|wire| match keys.copy_answer(&order.name, &wire) {
                Ok(answer) => Some(answer),
                Err(error) => {
                    tracing::warn!(%error, disk = order.disk.0, "an answer does not count");
                    None
                }
            });
            let now_s = unix_ns / SECOND_NS;
            self.copies.handle(&*self.engine, (order.disk, answer), now_s)?;
        }
        self.observations.set_copies(self.copies.reports());
        Ok(())
    }
}
