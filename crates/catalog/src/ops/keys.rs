//! Keys: which signatures count as whose. Verifying them is for whoever carries commands in.

use crate::command::{AddKey, Answer};
use crate::execution::Execution;
use crate::record::{Door, Key, KeyHolder, User};
use crate::refusal::{Failure, Refusal};

/// Longest name of a key, in octets.
const KEY_NAME_BYTES_MAX: usize = 1024;
/// Longest certificate: what fits a packet.
const CERTIFICATE_BYTES_MAX: usize = 8800;

impl Execution<'_> {
    pub(super) fn add_key(&mut self, add: &AddKey) -> Result<Answer, Failure> {
        let AddKey { holder, name, certificate } = add;
        let is_small = (1..=KEY_NAME_BYTES_MAX).contains(&name.len())
            && (1..=CERTIFICATE_BYTES_MAX).contains(&certificate.len());
        if !is_small {
            return Err(Refusal::BadKey.into());
        }
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
        let key = Key { holder: holder.clone(), certificate: certificate.clone() };
        self.view.set(name.clone(), &key);
        Ok(Answer::Done)
    }

    pub(super) fn remove_key(&mut self, name: &[u8]) -> Result<Answer, Failure> {
        self.view.record::<Key>(name)?.ok_or(Refusal::UnknownKey)?;
        self.view.delete(crate::engine::Table::Key, name.to_vec());
        Ok(Answer::Done)
    }
}
