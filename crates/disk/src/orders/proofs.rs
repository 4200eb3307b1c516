//! Orders to prove that a content is there.

use byname_packet::{Interest, NameRef, SignError};
use byname_site::{Check, DiskRefusal, DiskView, Prove, ProveAnswer};

use super::{Decided, Handled, Orders};
use crate::machine::Machine;
use crate::proving::ProofWork;

impl Orders {
    pub(super) fn prove(
        &mut self,
        interest: &Interest<'_>,
        machine: &Machine,
        unix_s: u64,
    ) -> Decided {
        let Ok((_, order)) = Prove::decode(&self.site, interest) else {
            return Decided::RefusedProof(DiskRefusal::Malformed);
        };
        let (name, generation, epoch) = (&self.disk, self.generation, machine.epoch());
        let view = DiskView { name, generation, epoch };
        match order.check(&self.site, interest, view, (&mut self.validator, unix_s)) {
            Check::Accepted(()) => {}
            Check::NeedCertificate(name) => {
                return Decided::Handled(Handled::NeedCertificate(name));
            }
            Check::Refused(why) => return Decided::RefusedProof(why),
        }
        let Some(stored) = machine.stored(order.content) else {
            return Decided::RefusedProof(DiskRefusal::Missing);
        };
        Decided::Handled(Handled::Prove(ProofWork {
            name: interest.name.to_name(),
            content: order.content,
            size: stored.size,
            challenge: order.challenge,
        }))
    }

    /// The answer to a challenge: the proof, if one could be made.
    ///
    /// # Errors
    /// [`SignError`] of the disk's key.
    pub fn answer_proof(
        &self,
        name: NameRef<'_>,
        machine: &Machine,
        proof: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, SignError> {
        let answer = match proof {
            Some(proof) => ProveAnswer::Proof { epoch: machine.epoch(), proof },
            None => ProveAnswer::Refused(DiskRefusal::Missing),
        };
        answer.encode(name, &*self.signer)
    }

    /// Refuses a challenge for which there is no room now.
    ///
    /// # Errors
    /// [`SignError`] of the disk's key.
    pub fn busy_proof(&self, name: NameRef<'_>) -> Result<Vec<u8>, SignError> {
        ProveAnswer::Refused(DiskRefusal::Busy).encode(name, &*self.signer)
    }
}
