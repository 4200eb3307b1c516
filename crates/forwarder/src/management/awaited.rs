//! Data that the forwarder itself has asked for: certificates and answers of the routing daemon.

use std::collections::BTreeMap;

use byname_packet::Name;

/// Answers are awaited for this long.
pub(super) const PATIENCE_NS: u64 = 4_000_000_000;

/// Reason why the forwarder asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A command to the routing daemon.
    Readvertise,
    /// A certificate; the answer's name may be longer.
    Certificate,
}

/// Names that are awaited, why and until when.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    names: BTreeMap<Name, (Purpose, u64)>,
}

impl Awaited {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn add(&mut self, name: Name, purpose: Purpose, now_ns: u64) {
        self.names.insert(name, (purpose, now_ns.saturating_add(PATIENCE_NS)));
    }

    pub(super) fn purpose(&self, name: &Name) -> Option<Purpose> {
        self.names.get(name).map(|(purpose, _)| *purpose)
    }

    pub(super) fn remove(&mut self, name: &Name) {
        self.names.remove(name);
    }

    pub(super) fn expire(&mut self, now_ns: u64) {
        self.names.retain(|_, (_, until_ns)| *until_ns > now_ns);
    }
}
