//! Slots of a session: each has one command in flight, and counts its commands.

use byname_catalog::SLOT_COUNT;
use byname_catalog::id::SessionId;
use byname_site::RequestId;

/// The session's slots.
#[derive(Debug)]
pub(crate) struct Slots {
    session: SessionId,
    sequences: Vec<u64>,
    free: Vec<u16>,
}

impl Slots {
    pub(crate) fn new(session: SessionId) -> Self {
        let sequences = vec![0; usize::from(SLOT_COUNT)];
        Self { session, sequences, free: (0..SLOT_COUNT).rev().collect() }
    }

    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    /// An identity for the next command; `None` while all slots are taken.
    pub(crate) fn take(&mut self) -> Option<RequestId> {
        let slot = self.free.pop()?;
        let sequence = self.sequences.get_mut(usize::from(slot))?;
        *sequence += 1;
        Some(RequestId { session: self.session, slot, sequence: *sequence })
    }

    /// The command has an outcome. A slot whose command has none is never used again: whether the
    /// head saw it is not known.
    pub(crate) fn give_back(&mut self, request: RequestId) {
        self.free.push(request.slot);
    }
}
