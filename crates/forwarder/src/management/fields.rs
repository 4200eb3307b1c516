//! Which fields of ControlParameters each command takes.
//!
//! One table says it all: a field that is required must be there, one that is neither required nor
//! optional must not; Flags and Mask come together where both are optional. As ndn-cxx does on both
//! sides of the protocol.

use byname_packet::mgmt::ControlParameters;

/// The fields, one bit each.
macro_rules! fields {
    ($($bit:ident = $index:literal, $field:ident, $name:literal;)*) => {
        $(pub(super) const $bit: u32 = 1 << $index;)*

        /// Names of the fields, for people.
        const NAMES: &[(u32, &str)] = &[$(($bit, $name)),*];

        /// The fields that are there.
        pub(super) fn present(parameters: &ControlParameters) -> u32 {
            0 $(| if parameters.$field.is_some() { $bit } else { 0 })*
        }
    };
}

fields! {
    NAME = 0, name, "Name";
    FACE_ID = 1, face_id, "FaceId";
    URI = 2, uri, "Uri";
    LOCAL_URI = 3, local_uri, "LocalUri";
    ORIGIN = 4, origin, "Origin";
    COST = 5, cost, "Cost";
    CAPACITY = 6, capacity, "Capacity";
    COUNT = 7, count, "Count";
    FLAGS = 8, flags, "Flags";
    MASK = 9, mask, "Mask";
    STRATEGY = 10, strategy, "Strategy";
    EXPIRATION = 11, expiration_period_ms, "ExpirationPeriod";
    PERSISTENCY = 12, face_persistency, "FacePersistency";
    MARKING_INTERVAL = 13, base_congestion_marking_interval_ns, "BaseCongestionMarkingInterval";
    THRESHOLD = 14, default_congestion_threshold_bytes, "DefaultCongestionThreshold";
    MTU = 15, mtu, "Mtu";
}

/// Fields that can be set on a face.
const FACE_PROPERTIES: u32 = PERSISTENCY | MARKING_INTERVAL | THRESHOLD | MTU | FLAGS | MASK;

/// Fields that a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Takes {
    pub(super) required: u32,
    pub(super) optional: u32,
}

/// Every command of the protocol that carries ControlParameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    RibRegister,
    RibUnregister,
    FaceCreate,
    FaceUpdate,
    FaceDestroy,
    FibAdd,
    FibRemove,
    CsConfig,
    CsErase,
    StrategySet,
    StrategyUnset,
}

impl Command {
    /// Module, verb and fields of each.
    pub(super) const ALL: [(&'static [u8], &'static [u8], Command, Takes); 11] = [
        (
            b"rib",
            b"register",
            Self::RibRegister,
            Takes { required: NAME, optional: FACE_ID | ORIGIN | COST | FLAGS | EXPIRATION },
        ),
        (
            b"rib",
            b"unregister",
            Self::RibUnregister,
            Takes { required: NAME, optional: FACE_ID | ORIGIN },
        ),
        (
            b"faces",
            b"create",
            Self::FaceCreate,
            Takes { required: URI, optional: LOCAL_URI | FACE_PROPERTIES },
        ),
        (
            b"faces",
            b"update",
            Self::FaceUpdate,
            Takes { required: 0, optional: FACE_ID | FACE_PROPERTIES },
        ),
        (b"faces", b"destroy", Self::FaceDestroy, Takes { required: FACE_ID, optional: 0 }),
        (b"fib", b"add-nexthop", Self::FibAdd, Takes { required: NAME, optional: FACE_ID | COST }),
        (b"fib", b"remove-nexthop", Self::FibRemove, Takes { required: NAME, optional: FACE_ID }),
        (
            b"cs",
            b"config",
            Self::CsConfig,
            Takes { required: 0, optional: CAPACITY | FLAGS | MASK },
        ),
        (b"cs", b"erase", Self::CsErase, Takes { required: NAME, optional: COUNT }),
        (
            b"strategy-choice",
            b"set",
            Self::StrategySet,
            Takes { required: NAME | STRATEGY, optional: 0 },
        ),
        (b"strategy-choice", b"unset", Self::StrategyUnset, Takes { required: NAME, optional: 0 }),
    ];

    /// The command of this name, and what it takes.
    pub(super) fn find(module: &[u8], verb: &[u8]) -> Option<(Self, Takes)> {
        let found = Self::ALL.iter().find(|(m, v, ..)| *m == module && *v == verb)?;
        Some((found.2, found.3))
    }
}

impl Takes {
    /// Complaint about the fields, for people; `None` if nothing is.
    pub(super) fn complaint(self, parameters: &ControlParameters) -> Option<String> {
        let present = present(parameters);
        let named = |bits: u32| NAMES.iter().find(|(bit, _)| bits & bit != 0).map(|(_, name)| name);
        if let Some(name) = named(self.required & !present) {
            return Some(format!("failed in validating parameters: {name} is missing"));
        }
        if let Some(name) = named(present & !(self.required | self.optional)) {
            return Some(format!("failed in validating parameters: {name} does not belong here"));
        }
        let takes_mask = self.optional & MASK != 0;
        if takes_mask && parameters.flags.is_some() != parameters.mask.is_some() {
            let text = "failed in validating parameters: Flags and Mask come together";
            return Some(text.to_owned());
        }
        None
    }
}

/// The bits of `parameters` that Mask covers laid over `current`.
pub(super) fn masked(current: u64, parameters: &ControlParameters) -> u64 {
    let mask = parameters.mask.unwrap_or(0);
    current & !mask | parameters.flags.unwrap_or(0) & mask
}
