//! The changes and answers that management returns; the forwarder carries them out in order.

use byname_packet::lp::LpHeader;
use byname_packet::{Name, NameRef};

use super::view::View;
use crate::face::{FaceId, FaceOptions, Persistency};
use crate::records::PitToken;
use crate::rib::Route;
use crate::strategy::Chosen;

/// Destination of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) face: FaceId,
    pub(crate) token: PitToken,
}

impl Asker {
    /// The sender of a packet; `None` when its token is longer than allowed.
    pub(crate) fn of(face: FaceId, header: &LpHeader<'_>) -> Option<Self> {
        Some(Self { face, token: PitToken::new(header.pit_token)? })
    }
}

/// A `cs/erase` that is answered when it is known how many packets went.
#[derive(Debug, Clone)]
pub(crate) struct Erasure {
    pub(crate) prefix: Name,
    /// Packets that go at most.
    pub(crate) packets_max: usize,
    pub(super) asker: Asker,
    /// Name of the command.
    pub(super) name: Name,
    /// Packets that were to go.
    pub(super) wanted: u64,
}

/// One thing that management wants done.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// Send Data to whoever asked.
    Reply { asker: Asker, packet: Vec<u8> },
    /// Send an Interest from the forwarder's own face, over `next_hop` if one is given. Data comes
    /// back by [`Management::handle_answer`](super::Management::handle_answer).
    Express { interest: Vec<u8>, next_hop: Option<FaceId> },
    /// Add or replace a route. There is room: management has looked.
    AddRoute { prefix: Name, route: Route },
    /// Remove a route, if there is such a one.
    RemoveRoute { prefix: Name, face: FaceId, origin: u64 },
    /// Choose a strategy for a prefix.
    SetStrategy { prefix: Name, strategy: Chosen },
    /// Let a prefix have the strategy of the next shorter one.
    UnsetStrategy { prefix: Name },
    /// Configure the content stores; the capacity is that of all shards together.
    ConfigureStore { capacity: Option<usize>, admits: bool, serves: bool },
    /// Remove packets, then report to
    /// [`Management::handle_erased`](super::Management::handle_erased).
    Erase(Erasure),
    /// Set options and persistency of a face.
    SetFace { face: FaceId, options: FaceOptions, persistency: Persistency },
}

/// One call of management: what it sees, the time, and the list of what it wants done.
pub(crate) struct Turn<'a> {
    pub(crate) view: &'a dyn View,
    pub(crate) now_ns: u64,
    /// Time of day.
    pub(crate) unix_ns: u64,
    pub(crate) actions: &'a mut Vec<Action>,
}

impl Turn<'_> {
    pub(super) fn unix_ms(&self) -> u64 {
        self.unix_ns / 1_000_000
    }

    pub(super) fn reply(&mut self, asker: Asker, packet: Vec<u8>) {
        self.actions.push(Action::Reply { asker, packet });
    }

    pub(super) fn express(&mut self, interest: Vec<u8>, next_hop: Option<FaceId>) {
        self.actions.push(Action::Express { interest, next_hop });
    }

    /// Removes a route of exactly `prefix`.
    pub(super) fn remove_route(&mut self, prefix: NameRef<'_>, face: FaceId, origin: u64) {
        self.actions.push(Action::RemoveRoute { prefix: prefix.to_name(), face, origin });
    }
}
