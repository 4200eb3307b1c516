//! Orders to keep rows of the catalog, and to give back what it is made again from.

use byname_packet::{Interest, NameRef, SignError};
use byname_site::{Check, CopyAnswer, CopyState, DiskRefusal, DiskView, Keep, KeptRecord, Recall};

use super::{Decided, Handled, Orders, refusal};
use crate::copies::{Editions, KeepOrder};
use crate::copying::{Copied, CopyWork};
use crate::machine::{Machine, Refusal};
use crate::record::Record;

impl Orders {
    pub(super) fn keep(
        &mut self,
        interest: &Interest<'_>,
        machine: &Machine,
        unix_s: u64,
    ) -> Decided {
        let Ok((_, order)) = Keep::decode(&self.site, interest) else {
            return Decided::RefusedCopy(DiskRefusal::Malformed);
        };
        let (name, generation, epoch) = (&self.disk, self.generation, machine.epoch());
        let view = DiskView { name, generation, epoch };
        let checked = order.check(&self.site, interest, view, (&mut self.validator, unix_s));
        let wire = interest.wire().to_vec();
        copying(checked, || CopyWork::Keep(Box::new(KeepOrder { order, wire })))
    }

    pub(super) fn recall(&mut self, interest: &Interest<'_>, unix_s: u64) -> Decided {
        let Ok((_, order)) = Recall::decode(&self.site, interest) else {
            return Decided::RefusedCopy(DiskRefusal::Malformed);
        };
        let checked = Recall::check(&self.site, interest, (&mut self.validator, unix_s));
        copying(checked, || match order {
            Recall::State => CopyWork::Look,
            Recall::Copy { edition, offset } => CopyWork::Read { edition, offset },
            Recall::Record(content) => CopyWork::Record(content),
        })
    }

    /// The answer to an order of which this came.
    ///
    /// # Errors
    /// [`SignError`] of the disk's key.
    pub fn answer_copy(
        &self,
        name: NameRef<'_>,
        machine: &Machine,
        copied: Copied,
    ) -> Result<Vec<u8>, SignError> {
        let answer = match copied {
            Copied::Editions(Editions { complete, building }) => CopyAnswer::State(CopyState {
                epoch: machine.epoch(),
                generation: self.generation,
                highest: machine.highest(),
                complete,
                building,
            }),
            Copied::Octets(octets) => CopyAnswer::Octets(octets),
            Copied::Record(Some(record)) => {
                let Record { is_settled, checksums, ticket, claim, .. } = *record;
                let kept = KeptRecord { is_settled, checksums, ticket, claim };
                CopyAnswer::Record(Box::new(kept))
            }
            Copied::Record(None) => CopyAnswer::Refused(DiskRefusal::Dropped),
            Copied::Failed(why) => CopyAnswer::Refused(refusal(Refusal::Store(why))),
        };
        answer.encode(name, &*self.signer)
    }

    /// Refuses an order for which there is no room now.
    ///
    /// # Errors
    /// [`SignError`] of the disk's key.
    pub fn busy_copy(&self, name: NameRef<'_>) -> Result<Vec<u8>, SignError> {
        CopyAnswer::Refused(DiskRefusal::Busy).encode(name, &*self.signer)
    }
}

fn copying(checked: Check<(), DiskRefusal>, work: impl FnOnce() -> CopyWork) -> Decided {
    match checked {
        Check::Accepted(()) => Decided::Handled(Handled::Copy(work())),
        Check::NeedCertificate(name) => Decided::Handled(Handled::NeedCertificate(name)),
        Check::Refused(why) => Decided::RefusedCopy(why),
    }
}
