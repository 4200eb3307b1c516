//! The interface between the forwarder and an algorithm.

use std::sync::Arc;

use super::measurements::Namespace;
use crate::face::FaceId;
use crate::records::Records;
use crate::rib::NextHop;

/// Input of a strategy.
#[derive(Debug)]
pub struct Context<'a> {
    /// The records of the pending Interest.
    pub records: &'a mut Records,
    /// Eligible next hops, lowest cost first.
    pub hops: &'a [NextHop],
    /// The time.
    pub now_ns: u64,
    /// A number that is another one each time.
    pub random: u64,
    /// Measurements of the paths to this part of the name space. `None` for a strategy that does
    /// not measure these names, and when the table of measurements is full.
    pub namespace: Option<&'a mut Namespace>,
    /// Time to call [`Strategy::on_timeout`]; not at all unless the strategy sets it.
    pub wake_at_ns: Option<u64>,
}

/// Decision about an Interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Send it to the faces collected.
    Forward,
    /// Send it to the faces collected, and to the last of them with a nonce of its own: a probe
    /// that meets the Interest itself must not be taken for a loop.
    Probe,
    /// Nothing now: the answer is expected from what was sent before.
    Suppress,
    /// There is no way: answer every face that waits with a Nack of this reason.
    Reject(u64),
}

/// Data that has come for an Interest.
#[derive(Debug)]
pub struct Answer<'a> {
    /// The records of the Interest, about to end.
    pub records: &'a Records,
    /// Face that answered.
    pub face: FaceId,
    /// Time it took since this face was asked last.
    pub rtt_ns: u64,
    /// The time.
    pub now_ns: u64,
    /// Measurements of the paths.
    pub namespace: &'a mut Namespace,
}

/// The names that share measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measures {
    /// There are no measurements.
    Nothing,
    /// Those of one route.
    PerRoute,
    /// Those of one route, while there is a choice between eligible next hops.
    PerChoice,
    /// Those that differ in the last component only, as segments do; while there is no room for
    /// them, those of one route.
    PerObject,
}

/// An algorithm that chooses next hops.
pub trait Strategy: std::fmt::Debug + Send + Sync {
    /// The name and version of the algorithm, e.g. `best-route` and 5.
    fn label(&self) -> (&'static str, u64);

    /// Its parameters that are not as they are by default, as in the instance name.
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Returns whether it needs measurements, answers and timeouts, and for which names together.
    fn measures(&self) -> Measures {
        Measures::Nothing
    }

    /// A face asks, for the first time or again. Faces to send to go into `send`.
    fn on_interest(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision;

    /// A face that was asked has answered with a Nack, already noted in its out-record.
    fn on_nack(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision;

    /// Data has come.
    fn on_data(&self, _answer: Answer<'_>) {}

    /// The time that [`Context::wake_at_ns`] named has come and there is no answer.
    fn on_timeout(&self, _context: &mut Context<'_>, _send: &mut Vec<FaceId>) -> Decision {
        Decision::Suppress
    }
}

/// A strategy that was chosen for a prefix.
pub type Chosen = Arc<dyn Strategy>;
