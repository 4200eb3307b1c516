//! Reasons and counts of dropped packets: the same names in logs, metrics and tests.

/// Reason why the forwarder did nothing more with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The face is not (any more) known.
    UnknownFace,
    /// Not an NDN packet, or a malformed one.
    Malformed,
    /// A link header field that does not belong to this kind of packet.
    ForbiddenHeader,
    /// `NextHopFaceId` on a face where local fields are not enabled.
    LocalFieldsDisabled,
    /// An Interest arrived with HopLimit 0.
    HopLimitReached,
    /// `/localhost` from another machine.
    ScopeViolation,
    /// An Interest came back (also answered with a Nack on point-to-point links).
    LoopedInterest,
    /// The PIT is full, or the face's share of it.
    PitFull,
    /// A pending Interest that had waited for long was given up for a newer one of its face, which
    /// had used up its share of the PIT.
    PitShed,
    /// No next hop (also answered with a Nack on point-to-point links).
    NoRoute,
    /// Not sent on, because an answer to what was sent before is awaited: another face asked for
    /// the same, or a retransmission came early. The face is remembered and gets the answer.
    Suppressed,
    /// Data that no pending Interest asked this face for.
    UnsolicitedData,
    /// A Nack that answers no pending Interest sent to this face.
    UnexpectedNack,
    /// A request below a management prefix that cannot be answered.
    UnansweredManagement,
}

impl DropReason {
    /// Every reason, in the order of [`Counters::drops`].
    pub const ALL: [DropReason; 14] = [
        DropReason::UnknownFace,
        DropReason::Malformed,
        DropReason::ForbiddenHeader,
        DropReason::LocalFieldsDisabled,
        DropReason::HopLimitReached,
        DropReason::ScopeViolation,
        DropReason::LoopedInterest,
        DropReason::PitFull,
        DropReason::PitShed,
        DropReason::NoRoute,
        DropReason::Suppressed,
        DropReason::UnsolicitedData,
        DropReason::UnexpectedNack,
        DropReason::UnansweredManagement,
    ];
}

/// Number of packets that led to nothing, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops([u64; DropReason::ALL.len()]);

impl Drops {
    /// Packets dropped for `reason`.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    pub(crate) fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }
}

/// Totals since the forwarder was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name says it all")]
pub struct Counters {
    pub in_interests: u64,
    pub in_data: u64,
    pub in_nacks: u64,
    pub out_interests: u64,
    pub out_data: u64,
    pub out_nacks: u64,
    pub satisfied_interests: u64,
    pub unsatisfied_interests: u64,
    pub cs_hits: u64,
    pub cs_misses: u64,
    drops: Drops,
}

impl Counters {
    /// Packets dropped for `reason`.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.drops.get(reason)
    }

    /// Adds what another shard has counted.
    pub fn add(&mut self, other: &Self) {
        self.in_interests += other.in_interests;
        self.in_data += other.in_data;
        self.in_nacks += other.in_nacks;
        self.out_interests += other.out_interests;
        self.out_data += other.out_data;
        self.out_nacks += other.out_nacks;
        self.satisfied_interests += other.satisfied_interests;
        self.unsatisfied_interests += other.unsatisfied_interests;
        self.cs_hits += other.cs_hits;
        self.cs_misses += other.cs_misses;
        for (sum, count) in self.drops.0.iter_mut().zip(other.drops.0) {
            *sum += count;
        }
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        self.drops.count(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_counter() {
        let mut counters = Counters::default();
        for (index, reason) in DropReason::ALL.into_iter().enumerate() {
            for _ in 0..=index {
                counters.count_drop(reason);
            }
        }
        for (index, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(counters.drops(reason), index as u64 + 1);
        }
    }
}
