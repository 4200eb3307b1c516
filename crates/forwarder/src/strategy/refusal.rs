//! Decisions where no face is left to be asked.

use byname_packet::lp::nack_reason;

use super::api::{Context, Decision};
use crate::records::{OutRecord, Records};

/// The reason to pass on when every face asked has answered with a Nack, or not in time: the
/// mildest of them, because it is the one that leaves most hope. `None` while an answer is still
/// possible.
pub(super) fn common_nack(records: &Records, now_ns: u64) -> Option<u64> {
    let severity = |reason: u64| match reason {
        nack_reason::NONE => u64::MAX,
        other => other,
    };
    let mut mildest = None;
    let is_silent = |record: &&OutRecord| record.nacked.is_none() && record.expires_ns <= now_ns;
    for record in records.outgoing.iter().filter(|record| !is_silent(record)) {
        let reason = record.nacked?;
        if mildest.is_none_or(|known| severity(reason) < severity(known)) {
            mildest = Some(reason);
        }
    }
    mildest
}

/// Decision when nobody may be asked: wait for whom was asked before, or give up.
pub(super) fn without_hops(context: &Context<'_>) -> Decision {
    if context.records.is_awaited(context.now_ns) {
        Decision::Suppress
    } else {
        Decision::Reject(nack_reason::NO_ROUTE)
    }
}
