//! Keys of a session between two who have signed what they said to each other: X25519 and HKDF with
//! SHA-256.
//!
//! Each side draws a private number for one agreement, sends its *share*, and derives keys from
//! both shares and from a digest of all that was said. Nothing here proves who the other side is:
//! the packets that carry the shares are signed, and their digest is the salt, so that keys are
//! equal only where both have seen the same signed packets.

use std::fmt;

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk, Salt};
use aws_lc_rs::rand;

use crate::key::KeyError;

/// Octets of a share.
pub const SHARE_BYTES: usize = 32;

/// Octets that a private number is drawn from.
pub const EXCHANGE_SEED_BYTES: usize = 32;

/// One side of one agreement.
pub struct Exchange {
    private: PrivateKey,
    share: [u8; SHARE_BYTES],
}

/// What both sides have in common; keys are derived from it, each under a label of its own.
pub struct SharedSecret(Prk);

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").finish_non_exhaustive()
    }
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSecret")
    }
}

/// Octets of the cryptographic library's random source.
///
/// # Errors
/// [`KeyError::Generate`] when the library fails.
pub fn random_seed() -> Result<[u8; EXCHANGE_SEED_BYTES], KeyError> {
    let mut seed = [0; EXCHANGE_SEED_BYTES];
    rand::fill(&mut seed).map_err(|_| KeyError::Generate)?;
    Ok(seed)
}

impl Exchange {
    /// The side that has this private number.
    ///
    /// # Errors
    /// [`KeyError::Generate`] when the library fails.
    pub fn from_seed(seed: &[u8; EXCHANGE_SEED_BYTES]) -> Result<Self, KeyError> {
        let private =
            PrivateKey::from_private_key(&X25519, seed).map_err(|_| KeyError::Generate)?;
        let share = private.compute_public_key().map_err(|_| KeyError::Generate)?;
        let share = share.as_ref().try_into().map_err(|_| KeyError::Generate)?;
        Ok(Self { private, share })
    }

    /// What the other side has to know.
    pub fn share(&self) -> &[u8; SHARE_BYTES] {
        &self.share
    }

    /// The common secret, salted with a digest of what was said; `None` for a share that leads to
    /// no secret whoever is asked (a point of small order).
    pub fn agree(self, peer: &[u8; SHARE_BYTES], salt: &[u8; 32]) -> Option<SharedSecret> {
        let peer = UnparsedPublicKey::new(&X25519, peer);
        let extract = |secret: &[u8]| Ok(Salt::new(HKDF_SHA256, salt).extract(secret));
        agree(&self.private, peer, (), extract).ok().map(SharedSecret)
    }
}

impl SharedSecret {
    /// Octets for one purpose.
    ///
    /// # Errors
    /// [`KeyError::Generate`] when the library fails.
    pub fn derive(&self, label: &[u8]) -> Result<[u8; 32], KeyError> {
        let mut octets = [0; 32];
        let labels = [label];
        let derived = self.0.expand(&labels, HKDF_SHA256);
        derived.and_then(|key| key.fill(&mut octets)).map_err(|_| KeyError::Generate)?;
        Ok(octets)
    }
}
