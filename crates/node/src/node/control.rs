//! Orders from other threads: read the configuration anew, say how things stand.
//!
//! An order is a message and a wake; the data path takes no lock for it and pays nothing while
//! there is none.

use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

use byname_forwarder::FaceId;
use byname_io::{DatagramCounters, Waker};

use super::Node;
use super::reload::Changes;
use crate::config::NodeConfig;
use crate::error::NodeError;
use crate::links::Carrier;
use crate::metrics::{FaceSnapshot, Snapshot};

/// Orders that may wait. Further ones are refused, not kept.
const ORDERS_MAX: usize = 16;

/// How long an answer may take; a node that is busy answers between two bursts.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no answer.
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

pub(super) enum Order {
    Reload(Box<NodeConfig>, Sender<Result<Changes, NodeError>>),
    Snapshot(Sender<Snapshot>),
}

/// Gives orders to a running node, from any thread.
#[derive(Debug, Clone)]
pub struct Control {
    orders: SyncSender<Order>,
    waker: Waker,
}

impl Control {
    pub(super) fn new(waker: Waker) -> (Self, Receiver<Order>) {
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
        self.give(Order::Reload(Box::new(config), sender))?;
        Ok(receiver.recv_timeout(PATIENCE).map_err(|_| ControlError::Busy)??)
    }

    /// How things stand.
    ///
    /// # Errors
    /// When the node is gone or does not get to it.
    pub fn snapshot(&self) -> Result<Snapshot, ControlError> {
        let (sender, receiver) = channel();
        self.give(Order::Snapshot(sender))?;
        receiver.recv_timeout(PATIENCE).map_err(|_| ControlError::Busy)
    }

    fn give(&self, order: Order) -> Result<(), ControlError> {
        self.orders.try_send(order).map_err(|error| match error {
            TrySendError::Full(_) => ControlError::Busy,
            TrySendError::Disconnected(_) => ControlError::Gone,
        })?;
        self.waker.wake();
        Ok(())
    }
}

impl Node {
    /// A handle for orders from other threads.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Does what was ordered. Whoever has given up waiting is not told.
    pub(super) fn serve_orders(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Reload(config, reply) => {
                    let _ = reply.send(self.reload(*config));
                }
                Order::Snapshot(reply) => {
                    let _ = reply.send(self.snapshot());
                }
            }
        }
    }

    /// How things stand now.
    pub fn snapshot(&self) -> Snapshot {
        let face = |face: &FaceId| {
            Some(FaceSnapshot {
                face: Some(*face),
                remote_uri: self.forwarder.face_info(*face)?.remote_uri.clone(),
                is_up: !matches!(self.links.faces.get(face)?.carrier, Carrier::Down),
                counters: self.forwarder.total_face_counters(*face)?,
            })
        };
        let uptime_ns = self.clock.now_ns().saturating_sub(self.config.forwarder.start_now_ns);
        let mut udp = DatagramCounters::default();
        for socket in self.links.shared.iter().filter_map(|shared| shared.socket.as_ref()) {
            udp += socket.counters();
        }
        let mut snapshot = Snapshot {
            udp,
            counters: self.forwarder.total_counters(),
            pending: self.forwarder.total_pending(),
            faces: self.links.faces.keys().filter_map(face).collect(),
            face_count: self.links.faces.len(),
            queue_full: self.links.dropped_full + self.forwarder.dropped(),
            unsendable: self.links.dropped_other,
            surplus_connections: self.surplus_count,
            wakeups: self.wakeup_count,
            uptime_s: uptime_ns / 1_000_000_000,
        };
        snapshot.bound_faces();
        snapshot
    }
}
