//! Keys: which signatures count as whose. Verifying them is for whoever carries commands in.

use crate::command::{AddKey, Answer, LendKey};
use crate::engine::Table;
use crate::execution::Execution;
use crate::record::{Door, Key, KeyHolder, Loan, User};
use crate::refusal::{Failure, Refusal};
use crate::view::decoded;

/// Longest name of a key, in octets.
const KEY_NAME_BYTES_MAX: usize = 1024;
/// Longest certificate: what fits a packet.
const CERTIFICATE_BYTES_MAX: usize = 8800;
/// Longest time for which a key is lent, in nanoseconds.
pub const LOAN_NS_MAX: u64 = 7 * 24 * 3_600_000_000_000;
/// Keys that are lent by one user at a time, at most.
const LOANS_PER_USER_MAX: usize = 64;

impl Execution<'_> {
    pub(super) fn add_key(&mut self, add: &AddKey) -> Result<Answer, Failure> {
        let AddKey { holder, name, certificate } = add;
        check_size(name, certificate)?;
        match holder {
            KeyHolder::User(user) => {
                let user: Option<User> = self.view.record(user.as_bytes())?;
                user.ok_or(Refusal::UnknownUser)?;
            }
            KeyHolder::Disk(disk) => drop(self.disk(*disk)?),
            KeyHolder::Door(door) => {
                let door: Option<Door> = self.view.record(door.as_bytes())?;
                door.ok_or(Refusal::UnknownDoor)?;
            }
        }
        let old: Option<Key> = self.view.record(name)?;
        if old.is_some_and(|old| old.holder != *holder) {
            return Err(Refusal::KeyOfAnother.into());
        }
        let key = Key { holder: holder.clone(), certificate: certificate.clone(), loan: None };
        self.view.set(name.clone(), &key);
        Ok(Answer::Done)
    }

    /// Removes a key and all that it has lent.
    pub(super) fn remove_key(&mut self, name: &[u8]) -> Result<Answer, Failure> {
        self.view.record::<Key>(name)?.ok_or(Refusal::UnknownKey)?;
        for (lent, key) in self.keys_beside(name)? {
            if key.loan.is_some_and(|loan| loan.lender == name) {
                self.view.delete(Table::Key, lent);
            }
        }
        self.view.delete(Table::Key, name.to_vec());
        Ok(Answer::Done)
    }

    /// Lends a key to the caller, or lends it for longer. A key of another user can neither lend
    /// nor be lent, and one that is lent lends none.
    pub(super) fn lend_key(&mut self, lend: &LendKey) -> Result<Answer, Failure> {
        let LendKey { lender, name, certificate, expires_ns } = lend;
        check_size(name, certificate)?;
        let is_soon = *expires_ns <= self.now_ns.saturating_add(LOAN_NS_MAX);
        if *expires_ns <= self.now_ns || !is_soon {
            return Err(Refusal::BadLoan.into());
        }
        let holder = KeyHolder::User(self.caller.user.clone());
        let own: Key = self.view.record(lender)?.ok_or(Refusal::UnknownKey)?;
        let is_own = own.holder == holder && own.loan.is_none();
        if !is_own || beside(name).is_none() || beside(name) != beside(lender) {
            return Err(Refusal::NotLendable.into());
        }
        let mut lent = 0;
        for (other, key) in self.keys_beside(name)? {
            match &key.loan {
                Some(_) if other == *name => {}
                None if other == *name => return Err(Refusal::KeyOfAnother.into()),
                Some(_) if !key.counts_at(self.now_ns) => self.view.delete(Table::Key, other),
                Some(_) => lent += 1,
                None => {}
            }
        }
        if lent >= LOANS_PER_USER_MAX {
            return Err(Refusal::TooManyLoans.into());
        }
        let loan = Some(Loan { lender: lender.clone(), expires_ns: *expires_ns });
        self.view.set(name.clone(), &Key { holder, certificate: certificate.clone(), loan });
        Ok(Answer::Done)
    }

    /// Ends a loan of the caller's.
    pub(super) fn recall_key(&mut self, name: &[u8]) -> Result<Answer, Failure> {
        let key: Key = self.view.record(name)?.ok_or(Refusal::UnknownKey)?;
        let is_own = key.holder == KeyHolder::User(self.caller.user.clone());
        if key.loan.is_none() || !is_own && !self.caller.is_operator {
            return Err(Refusal::NotLendable.into());
        }
        self.view.delete(Table::Key, name.to_vec());
        Ok(Answer::Done)
    }

    /// All keys whose names differ from one only in their last component: those of one holder.
    fn keys_beside(&self, name: &[u8]) -> Result<Vec<(Vec<u8>, Key)>, Failure> {
        let Some(prefix) = beside(name) else { return Ok(Vec::new()) };
        let rows = self.view.prefixed(Table::Key, prefix, usize::MAX)?;
        let decoded = rows.into_iter().map(|(name, value)| Ok((name, decoded(&value)?)));
        decoded.collect()
    }
}

fn check_size(name: &[u8], certificate: &[u8]) -> Result<(), Refusal> {
    let is_small = (1..=KEY_NAME_BYTES_MAX).contains(&name.len())
        && (1..=CERTIFICATE_BYTES_MAX).contains(&certificate.len());
    if is_small { Ok(()) } else { Err(Refusal::BadKey) }
}

/// What a name is without its last component; `None` for what is no name.
fn beside(name: &[u8]) -> Option<&[u8]> {
    let mut rest = name;
    loop {
        let (_, behind) = number(rest)?;
        let (length, behind) = number(behind)?;
        let behind = behind.get(length..)?;
        if behind.is_empty() {
            return Some(&name[..name.len() - rest.len()]);
        }
        rest = behind;
    }
}

/// A type or length of a component, and what is behind it. Names are short.
fn number(octets: &[u8]) -> Option<(usize, &[u8])> {
    match octets {
        [253, high, low, behind @ ..] => {
            Some((usize::from(u16::from_be_bytes([*high, *low])), behind))
        }
        [octet @ 0..=252, behind @ ..] => Some(((*octet).into(), behind)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_before_its_last_component() {
        assert_eq!(beside(b"\x08\x01a\x08\x02bc"), Some(&b"\x08\x01a"[..]));
        assert_eq!(beside(b"\x08\x01a\xfd\x01\x00\x00"), Some(&b"\x08\x01a"[..]));
        assert_eq!(beside(b"\x08\x01a"), Some(&b""[..]));
        for torn in [&b""[..], b"\x08", b"\x08\x02a", b"\x08\x01a\xfd", b"\xfe\x00"] {
            assert_eq!(beside(torn), None, "{torn:?}");
        }
    }
}
