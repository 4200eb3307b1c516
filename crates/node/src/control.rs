//! The handle of other threads: read the configuration anew, report how things stand.
//!
//! An order is a message and a wake; the data path takes no lock for it and pays nothing while
//! there is none.

use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

use byname_io::Waker;

use crate::config::{Changes, NodeConfig};
use crate::error::NodeError;
use crate::metrics::Snapshot;

/// Orders that may wait. Further ones are refused, not kept.
const ORDERS_MAX: usize = 16;

/// Time that an answer may take; a node that is busy answers between two bursts.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The node does not run, or not any more.
    #[error("the forwarder does not run")]
    Gone,
    /// Too many orders wait already, or the answer took too long.
    #[error("the forwarder is busy")]
    Busy,
    /// The order was refused; nothing has changed.
    #[error(transparent)]
    Refused(#[from] NodeError),
}

/// An order to the node, and where its answer goes.
pub(crate) enum ControlOrder {
    Reload(Box<NodeConfig>, Sender<Result<Changes, NodeError>>),
    Snapshot(Sender<Snapshot>),
}

/// Gives orders to a running node, from any thread.
#[derive(Debug, Clone)]
pub struct Control {
    orders: SyncSender<ControlOrder>,
    waker: Waker,
}

impl Control {
    pub(crate) fn new(waker: Waker) -> (Self, Receiver<ControlOrder>) {
        let (orders, receiver) = sync_channel(ORDERS_MAX);
        (Self { orders, waker }, receiver)
    }

    /// Lets the node go on with another configuration. Faces stay, unless they are static ones
    /// that the new configuration does not name.
    ///
    /// # Errors
    /// [`ControlError::Refused`] when the new one cannot be had; the old one stays.
    pub fn reload(&self, config: NodeConfig) -> Result<Changes, ControlError> {
        let (sender, receiver) = channel();
        self.give(ControlOrder::Reload(Box::new(config), sender))?;
        Ok(receiver.recv_timeout(PATIENCE).map_err(|_| ControlError::Busy)??)
    }

    /// Takes a snapshot of the figures.
    ///
    /// # Errors
    /// When the node is gone or does not get to it.
    pub fn snapshot(&self) -> Result<Snapshot, ControlError> {
        let (sender, receiver) = channel();
        self.give(ControlOrder::Snapshot(sender))?;
        receiver.recv_timeout(PATIENCE).map_err(|_| ControlError::Busy)
    }

    fn give(&self, order: ControlOrder) -> Result<(), ControlError> {
        self.orders.try_send(order).map_err(|error| match error {
            TrySendError::Full(_) => ControlError::Busy,
            TrySendError::Disconnected(_) => ControlError::Gone,
        })?;
        self.waker.wake();
        Ok(())
    }
}
