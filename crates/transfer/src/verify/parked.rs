//! Units that wait until a node has come, and where they came from.

/// Where a unit came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// From the source of this number.
    Network(usize),
    /// The owner has it where it belongs.
    Local,
    /// The owner has it somewhere else and wants it handed out.
    Candidate,
}

impl Origin {
    pub(super) fn is_local(self) -> bool {
        !matches!(self, Origin::Network(_))
    }
}

#[derive(Debug)]
pub(super) struct Parked {
    pub(super) bytes: Box<[u8]>,
    pub(super) origin: Origin,
}
