//! Orders as they come from the network: verified, handed to the [`Machine`], answered by packets
//! that the disk signs. Without I/O.
//!
//! A receipt is signed anew whenever its order is repeated: what it says is in the record.

mod copies;
mod proofs;

use byname_catalog::id::LeaseEpoch;
use byname_catalog::{Answer, Receipt, Resolution};
use byname_packet::{Data, Interest, Name, NameRef, SignError};
use byname_security::trust::Validator;
use byname_site::{
    Authentic, Check, Claim, CopyAnswer, DiskName, DiskRefusal, DiskView, Drop, DropAnswer,
    Identity, Insert, InsertAnswer, LISTED_MAX, List, ListAnswer, Listed, Outcome, ProveAnswer,
    Reply, ScrubState, SignedReceipt, SiteAnswer, SiteName, check_data,
};
use byname_transfer::server::SharedSigner;

use crate::copying::CopyWork;
use crate::error::StoreFailure;
use crate::machine::{DropId, DropOutcome, Machine, Progress, Refusal};
use crate::proving::ProofWork;
use crate::pull::{Kept, Pull};

/// The disk as its orders name it, and whom it believes.
pub struct Orders {
    /// The site.
    pub site: SiteName,
    /// The disk.
    pub disk: DiskName,
    /// Its generation.
    pub generation: u64,
    /// Its key.
    pub signer: SharedSigner,
    /// Has the site's key as the only anchor.
    pub validator: Validator,
}

/// What is to be done with an Interest.
#[derive(Debug, PartialEq, Eq)]
pub enum Handled {
    /// Send this Data.
    Answer(Vec<u8>),
    /// The same; it says that the order is not carried out.
    Refused(Vec<u8>),
    /// The order is not carried out, and no signature is spent on saying so.
    Unsigned,
    /// Answer when this drop has come to its end ([`Orders::answer_drop`]).
    Later(DropId),
    /// Answer when this content is stored, or cannot be, or after a while
    /// ([`Orders::answer_insert`]).
    Pulling(Claim),
    /// Read these contents anew, and answer with what they are ([`Orders::page`]); the flag says
    /// that none come after them.
    Reread(Vec<Listed>, bool),
    /// Make this proof, and answer with it ([`Orders::answer_proof`]).
    Prove(ProofWork),
    /// Do this with the copies, and answer with what came of it ([`Orders::answer_copy`]).
    Copy(CopyWork),
    /// Fetch this certificate, add it to the validator, and hand the Interest over again.
    NeedCertificate(Name),
    /// It is no order to this disk.
    NotForUs,
}

/// The same before a refusal is signed.
enum Decided {
    Handled(Handled),
    RefusedInsert(DiskRefusal),
    RefusedDrop(DiskRefusal),
    RefusedList(DiskRefusal),
    RefusedCopy(DiskRefusal),
    RefusedProof(DiskRefusal),
}

impl Orders {
    /// Takes an Interest at a monotonic time and a time of day in seconds. A refusal is signed only
    /// if it may be.
    ///
    /// # Errors
    /// [`SignError`] of the disk's key.
    pub fn handle(
        &mut self,
        interest: &Interest<'_>,
        machine: &mut Machine,
        (now_ns, unix_s): (u64, u64),
        may_sign_refusal: bool,
    ) -> Result<Handled, SignError> {
        let handled = self.decide(interest, machine, (now_ns, unix_s))?;
        let refusal = match handled {
            Decided::Handled(handled) => return Ok(handled),
            _ if !may_sign_refusal => return Ok(Handled::Unsigned),
            Decided::RefusedInsert(why) => {
                InsertAnswer::Refused(why).encode(interest.name, &*self.signer)
            }
            Decided::RefusedDrop(why) => {
                DropAnswer::Refused(why).encode(interest.name, &*self.signer)
            }
            Decided::RefusedList(why) => {
                ListAnswer::Refused(why).encode(interest.name, &*self.signer)
            }
            Decided::RefusedCopy(why) => {
                CopyAnswer::Refused(why).encode(interest.name, &*self.signer)
            }
            Decided::RefusedProof(why) => {
                ProveAnswer::Refused(why).encode(interest.name, &*self.signer)
            }
        };
        refusal.map(Handled::Refused)
    }

    fn decide(
        &mut self,
        interest: &Interest<'_>,
        machine: &mut Machine,
        (now_ns, unix_s): (u64, u64),
    ) -> Result<Decided, SignError> {
        if self.site.parse_insert(interest.name).as_ref() == Some(&self.disk) {
            return self.insert(interest, machine, (now_ns, unix_s));
        }
        if self.site.parse_drop(interest.name).as_ref() == Some(&self.disk) {
            return Ok(self.drop(interest, machine, unix_s));
        }
        if self.site.parse_list(interest.name).as_ref() == Some(&self.disk) {
            return self.list(interest, machine, unix_s);
        }
        if self.site.parse_prove(interest.name).as_ref() == Some(&self.disk) {
            return Ok(self.prove(interest, machine, unix_s));
        }
        if self.site.parse_keep(interest.name).as_ref() == Some(&self.disk) {
            return Ok(self.keep(interest, machine, unix_s));
        }
        if self.site.parse_recall(interest.name).as_ref() == Some(&self.disk) {
            return Ok(self.recall(interest, unix_s));
        }
        Ok(Decided::Handled(Handled::NotForUs))
    }

    fn insert(
        &mut self,
        interest: &Interest<'_>,
        machine: &mut Machine,
        (now_ns, unix_s): (u64, u64),
    ) -> Result<Decided, SignError> {
        let Ok((_, order)) = Insert::decode(&self.site, interest) else {
            return Ok(Decided::RefusedInsert(DiskRefusal::Malformed));
        };
        let (name, generation, epoch) = (&self.disk, self.generation, machine.epoch());
        let view = DiskView { name, generation, epoch };
        let validator = (&mut self.validator, unix_s);
        let claim = match order.check(&self.site, interest, view, validator) {
            Check::Accepted(claim) => claim,
            Check::NeedCertificate(name) => {
                return Ok(Decided::Handled(Handled::NeedCertificate(name)));
            }
            Check::Refused(why) => return Ok(Decided::RefusedInsert(why)),
        };
        let pull = self.pull_of(order, &claim);
        let answer = match machine.handle_insert(pull, now_ns) {
            Progress::Pulling { .. } => return Ok(Decided::Handled(Handled::Pulling(claim))),
            Progress::Stored(kept) => InsertAnswer::Stored(self.receipt(&claim, &kept)?),
            Progress::Refused(why) => return Ok(Decided::RefusedInsert(refusal(why))),
        };
        let answer = answer.encode(interest.name, &*self.signer)?;
        Ok(Decided::Handled(Handled::Answer(answer)))
    }

    /// Says how an insert goes that was taken: stored, refused, or that it is being done.
    ///
    /// # Errors
    /// [`SignError`] of the disk's key.
    pub fn answer_insert(
        &self,
        name: NameRef<'_>,
        claim: &Claim,
        (machine, now_ns): (&Machine, u64),
    ) -> Result<Vec<u8>, SignError> {
        let answer = match machine.progress_of(claim, now_ns) {
            Progress::Pulling { received_bytes, again_ms } => {
                InsertAnswer::Pulling { received_bytes, again_ms }
            }
            Progress::Stored(kept) => InsertAnswer::Stored(self.receipt(claim, &kept)?),
            Progress::Refused(why) => InsertAnswer::Refused(refusal(why)),
        };
        answer.encode(name, &*self.signer)
    }

    fn pull_of(&self, order: Insert, claim: &Claim) -> Pull {
        Pull {
            content: claim.content,
            name: self.site.content(claim.content),
            size: claim.size,
            root: claim.root,
            segment_size: self.site.segment_size(claim.content) as u64,
            hint: order.hint,
            writer: order.ticket.certificate().key_id(),
            ticket: order.ticket.wire().to_vec(),
            claim: order.claim,
            older: None,
        }
    }

    fn receipt(&self, claim: &Claim, kept: &Kept) -> Result<Vec<u8>, SignError> {
        let receipt = Receipt {
            site: self.site.octets().to_vec(),
            disk: self.disk.id,
            generation: self.generation,
            content: claim.content,
            size: kept.size,
            root: kept.root,
            checksums: kept.checksums,
        };
        SignedReceipt { disk: self.disk.clone(), receipt }.encode(&self.site, &*self.signer)
    }

    fn drop(&mut self, interest: &Interest<'_>, machine: &mut Machine, unix_s: u64) -> Decided {
        let Ok((_, order)) = Drop::decode(&self.site, interest) else {
            return Decided::RefusedDrop(DiskRefusal::Malformed);
        };
        let (name, generation, epoch) = (&self.disk, self.generation, machine.epoch());
        let view = DiskView { name, generation, epoch };
        match order.check(&self.site, interest, view, (&mut self.validator, unix_s)) {
            Check::Accepted(()) => match machine.handle_drop(order.epoch, &order.contents) {
                Ok(id) => {
                    let (term, count) = (order.epoch.0, order.contents.len());
                    tracing::debug!(term, count, "a head is obeyed");
                    Decided::Handled(Handled::Later(id))
                }
                Err(why) => Decided::RefusedDrop(refusal(why)),
            },
            Check::NeedCertificate(name) => Decided::Handled(Handled::NeedCertificate(name)),
            Check::Refused(why) => {
                tracing::debug!(term = order.epoch.0, %why, "a head is not obeyed");
                Decided::RefusedDrop(why)
            }
        }
    }

    fn list(
        &mut self,
        interest: &Interest<'_>,
        machine: &Machine,
        unix_s: u64,
    ) -> Result<Decided, SignError> {
        let Ok((_, order)) = List::decode(&self.site, interest) else {
            return Ok(Decided::RefusedList(DiskRefusal::Malformed));
        };
        let (name, generation, epoch) = (&self.disk, self.generation, machine.epoch());
        let view = DiskView { name, generation, epoch };
        match order.check(&self.site, interest, view, (&mut self.validator, unix_s)) {
            Check::Accepted(()) => {}
            Check::NeedCertificate(name) => {
                return Ok(Decided::Handled(Handled::NeedCertificate(name)));
            }
            Check::Refused(why) => return Ok(Decided::RefusedList(why)),
        }
        let (contents, is_last) = machine.list(order.after, LISTED_MAX);
        if order.is_reread && !contents.is_empty() {
            return Ok(Decided::Handled(Handled::Reread(contents, is_last)));
        }
        let answer = self.page(interest.name, epoch, (contents, is_last))?;
        Ok(Decided::Handled(Handled::Answer(answer)))
    }

    /// The answer to an order to list: contents, and whether none come after them.
    ///
    /// # Errors
    /// [`SignError`] of the disk's key.
    pub fn page(
        &self,
        name: NameRef<'_>,
        epoch: LeaseEpoch,
        (contents, is_last): (Vec<Listed>, bool),
    ) -> Result<Vec<u8>, SignError> {
        ListAnswer::Page { epoch, contents, is_last }.encode(name, &*self.signer)
    }

    /// Refuses an order to list for which there is no room now.
    ///
    /// # Errors
    /// [`SignError`] of the disk's key.
    pub fn busy(&self, name: NameRef<'_>) -> Result<Vec<u8>, SignError> {
        ListAnswer::Refused(DiskRefusal::Busy).encode(name, &*self.signer)
    }

    /// The answer to a drop that has come to its end, with the load in hundredths.
    ///
    /// # Errors
    /// [`SignError`] of the disk's key.
    pub fn answer_drop(
        &self,
        name: NameRef<'_>,
        outcome: DropOutcome,
        (load, scrub): (u64, Option<ScrubState>),
    ) -> Result<Vec<u8>, SignError> {
        let answer = match outcome {
            Ok(epoch) => DropAnswer::Done { epoch, load, scrub },
            Err(why) => DropAnswer::Refused(refusal(Refusal::Store(why))),
        };
        answer.encode(name, &*self.signer)
    }

    /// Epoch and resolution in the head's reply to a question whose Interest had this name; `None`
    /// if the head settles nothing. Refused unless the site's key has signed it.
    pub fn resolution(
        &mut self,
        data: &Data<'_>,
        unix_s: u64,
    ) -> Check<Option<(LeaseEpoch, Resolution)>, ()> {
        match check_data(&self.site, data, &mut self.validator, unix_s) {
            Check::Accepted(Authentic { identity: Identity::Site, .. }) => {}
            Check::Accepted(_) | Check::Refused(_) => return Check::Refused(()),
            Check::NeedCertificate(name) => return Check::NeedCertificate(name),
        }
        let Ok(Reply { epoch, outcome }) = Reply::decode(&self.site, data) else {
            return Check::Refused(());
        };
        let Outcome::Done(answer) = outcome else { return Check::Accepted(None) };
        Check::Accepted(match *answer {
            SiteAnswer::Plain(Answer::Resolved(resolution)) => Some((epoch, resolution)),
            _ => None,
        })
    }
}

fn refusal(why: Refusal) -> DiskRefusal {
    match why {
        Refusal::OtherClaim => DiskRefusal::OtherClaim,
        Refusal::Dropped => DiskRefusal::Dropped,
        Refusal::Busy => DiskRefusal::Busy,
        Refusal::OldEpoch => DiskRefusal::OldEpoch,
        Refusal::Store(StoreFailure::Full) => DiskRefusal::Full,
        Refusal::Store(StoreFailure::ReadOnly) => DiskRefusal::ReadOnly,
        Refusal::Store(StoreFailure::Failing) => DiskRefusal::Failing,
        Refusal::Store(StoreFailure::Unreachable) => DiskRefusal::Unreachable,
        Refusal::Store(StoreFailure::Slow) => DiskRefusal::Slow,
        Refusal::Store(StoreFailure::Mismatch) => DiskRefusal::Mismatch,
        Refusal::Store(StoreFailure::Stopped) => DiskRefusal::Dropped,
    }
}
