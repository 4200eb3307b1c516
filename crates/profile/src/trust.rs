//! Whom one user believes: keys of the trust store, own keys for their own names, and what to say
//! and do about a key that is not known.

use std::fmt;
use std::path::Path;

use byname_client::ClientError;
use byname_keychain::{Keychain, TrustStore};
use byname_packet::Name;
use byname_security::key::KeyId;
use byname_security::trust::{TrustError, TrustPolicy, UnknownKeys};
use byname_transfer::error::ReadError;

use crate::error::ProfileError;
use crate::link::Link;
use crate::paths::Paths;

/// The policy of a user. A reader needs no state of its own: it may run where it cannot write.
pub(crate) fn policy(
    paths: &Paths,
    unknown_keys: UnknownKeys,
) -> Result<TrustPolicy, ProfileError> {
    let is_absent = |dir: &Path| matches!(dir.try_exists(), Ok(false));
    if is_absent(&paths.keys) && is_absent(&paths.trust) {
        return Ok(TrustPolicy { unknown_keys, ..TrustPolicy::default() });
    }
    let keychain = Keychain::open(&paths.keys)?;
    let store = TrustStore::open(&paths.trust)?;
    Ok(keychain.trust_policy(&store, unknown_keys)?)
}

/// A key that signs what was asked for, soundly, and that nobody here has said to trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// The packet.
    pub name: Name,
    /// The key that signed it.
    pub key_id: KeyId,
    /// The key's namespace, for which it would be trusted.
    pub identity: Name,
}

impl UnknownKey {
    /// The key that a call failed for, if that is why it failed.
    pub fn of(error: &ClientError) -> Option<Self> {
        match error {
            ClientError::Read(ReadError::Trust(TrustError::UnknownKey {
                name,
                key_id,
                identity,
            })) => {
                let (name, identity) = (name.clone(), identity.clone());
                Some(UnknownKey { name, key_id: *key_id, identity })
            }
            _ => None,
        }
    }

    /// The line to run if the publisher confirms the key.
    pub fn command(&self) -> String {
        let link = Link { name: self.identity.clone(), via: Vec::new(), key: Some(self.key_id) };
        format!("byname trust add '{link}'")
    }
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, key_id) = (self.name.view().to_user(), self.key_id);
        write!(
            out,
            "{name} is signed by {key_id}, a key that is not trusted here. If the publisher \
             confirms this key, run: {}",
            self.command()
        )
    }
}
