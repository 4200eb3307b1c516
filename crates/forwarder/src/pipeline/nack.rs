//! The Nack pipeline: the strategy of a pending Interest is asked again.

use byname_packet::Interest;

use super::{Arrival, Pipeline};
use crate::counters::DropReason;
use crate::face::LinkType;
use crate::pit::{PitIndex, Selectors};
use crate::tx::Tx;

impl Pipeline {
    pub(super) fn on_nack(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        reason: u64,
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        let mut prefixes = std::mem::take(&mut self.scratch.prefixes);
        self.hasher.prefixes(interest.name, &mut prefixes);
        let selectors = Selectors::of(interest, &self.hasher);
        let index = self.pit.find(prefixes.whole(), interest.name, selectors);
        let result = index
            .ok_or(DropReason::UnexpectedNack)
            .and_then(|index| self.note_nack(index, arrival, interest, reason).map(|()| index));
        self.scratch.prefixes = prefixes;
        self.reconsider(result?, arrival.now_ns, tx, |strategy, context, send| {
            strategy.on_nack(context, send)
        });
        Ok(())
    }

    fn note_nack(
        &mut self,
        index: PitIndex,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        reason: u64,
    ) -> Result<(), DropReason> {
        // On a link with several peers another one may still have the Data.
        if self.link_type(arrival.face) != LinkType::PointToPoint {
            return Err(DropReason::UnexpectedNack);
        }
        let entry = self.pit.get_mut(index).ok_or(DropReason::UnexpectedNack)?;
        let record =
            entry.records.out_record_mut(arrival.face).ok_or(DropReason::UnexpectedNack)?;
        if interest.nonce != Some(record.nonce) {
            return Err(DropReason::UnexpectedNack);
        }
        record.nacked = Some(reason);
        Ok(())
    }
}
