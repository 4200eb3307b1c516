//! A private key in transit between machines: encrypted with a passphrase, beside its certificate.
//!
//! ```text
//! SafeBag = 128 LENGTH Data(certificate) EncryptedKey
//! EncryptedKey = 129 LENGTH (PKCS#8 EncryptedPrivateKeyInfo)
//! ```
//! We write PBES2 with PBKDF2 (HMAC-SHA-256) and AES-256-CBC, which ndn-cxx, python-ndn and
//! NDNts read. What we read may also be older (SHA-1) or scrypt. Key derivation that would take
//! minutes or gigabytes is refused before it starts.
//!
//! spec: ndn-cxx "SafeBag Format"; RFC 5958, RFC 8018.

use aws_lc_rs::rand;
use byname_packet::{DecodeError, tlv, types};
use pkcs8::pkcs5::{EncryptionScheme, pbes2};
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef};
use thiserror::Error;

use crate::cert::{Certificate, CertificateError};
use crate::key::{KeyError, KeyPair};

/// TYPE of a SafeBag.
pub const SAFE_BAG: u32 = 128;
/// TYPE of the encrypted key in it.
const ENCRYPTED_KEY: u32 = 129;

/// Rounds of PBKDF2 that we ask for: about a twentieth of a second.
const ITERATIONS: u32 = 100_000;
/// Rounds of PBKDF2 that we are ready to do.
const ITERATIONS_MAX: u32 = 10_000_000;
/// Octets that scrypt may need.
const SCRYPT_BYTES_MAX: u64 = 256 << 20;
const SALT_BYTES: usize = 16;
const IV_BYTES: usize = 16;

/// Why a SafeBag cannot be read or made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SafeBagError {
    /// It is no SafeBag.
    #[error("it is no SafeBag: {0}")]
    Packet(#[from] DecodeError),
    /// The certificate in it cannot be used.
    #[error("the certificate in the SafeBag cannot be used: {0}")]
    Certificate(#[from] CertificateError),
    /// The key is not encrypted as PKCS#8 says, or by a scheme that is not known here.
    #[error("the key in the SafeBag is encrypted by an unknown scheme")]
    Encryption,
    /// The derivation of the key asks for too much time or memory.
    #[error("the key in the SafeBag asks for unreasonably much work to decrypt")]
    TooMuchWork,
    /// The passphrase is wrong, or the bag is damaged.
    #[error("the passphrase is wrong (or the SafeBag is damaged)")]
    Passphrase,
    /// The private key is of no known kind.
    #[error("the key in the SafeBag: {0}")]
    Key(#[from] KeyError),
    /// The private key does not belong to the certificate.
    #[error("the key in the SafeBag is not that of the certificate in it")]
    OtherKey,
    /// The cryptographic library failed.
    #[error("the key could not be encrypted")]
    Failed,
}

/// A certificate with its private key, encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeBag {
    certificate: Certificate,
    encrypted_key: Vec<u8>,
}

impl SafeBag {
    /// Reads a bag. The key stays closed.
    ///
    /// # Errors
    /// [`SafeBagError`] if it is none.
    pub fn decode(wire: &[u8]) -> Result<Self, SafeBagError> {
        const WITHIN: &str = "SafeBag";
        let outer = tlv::read_only(wire, SAFE_BAG, WITHIN)?;
        let mut reader = tlv::Reader::new(outer.value);
        let start = reader.position();
        let data = reader.read()?.filter(|element| element.typ == types::DATA);
        data.ok_or(DecodeError::Missing { element: "Data", within: WITHIN })?;
        let certificate = Certificate::decode(&outer.value[start..reader.position()])?;
        let key = reader.read()?.filter(|element| element.typ == ENCRYPTED_KEY);
        let key = key.ok_or(DecodeError::Missing { element: "EncryptedKey", within: WITHIN })?;
        Ok(Self { certificate, encrypted_key: key.value.to_vec() })
    }

    /// The bag.
    pub fn encode(&self) -> Vec<u8> {
        let data = self.certificate.wire();
        let len = data.len() + tlv::element_len(ENCRYPTED_KEY, self.encrypted_key.len());
        let mut out = Vec::new();
        tlv::write_tl(&mut out, SAFE_BAG, len);
        out.extend_from_slice(data);
        tlv::write_element(&mut out, ENCRYPTED_KEY, &self.encrypted_key);
        out
    }

    /// Puts the key of `certificate` into a bag.
    ///
    /// # Errors
    /// [`SafeBagError::OtherKey`] if it is another's, [`SafeBagError::Failed`] if the library
    /// fails.
    pub fn seal(
        certificate: Certificate,
        key: &KeyPair,
        passphrase: &[u8],
    ) -> Result<Self, SafeBagError> {
        if key.key_id() != certificate.key_id() {
            return Err(SafeBagError::OtherKey);
        }
        let (mut salt, mut iv) = ([0; SALT_BYTES], [0; IV_BYTES]);
        rand::fill(&mut salt).map_err(|_| SafeBagError::Failed)?;
        rand::fill(&mut iv).map_err(|_| SafeBagError::Failed)?;
        let parameters = pbes2::Parameters::generate_pbkdf2_sha256_aes256cbc(ITERATIONS, &salt, iv);
        let parameters = parameters.map_err(|_| SafeBagError::Failed)?;
        let der = key.to_pkcs8()?;
        let info = PrivateKeyInfoRef::try_from(&der[..]).map_err(|_| SafeBagError::Failed)?;
        let sealed = info.encrypt_with_params(parameters, passphrase);
        let encrypted_key = sealed.map_err(|_| SafeBagError::Failed)?.as_bytes().to_vec();
        Ok(Self { certificate, encrypted_key })
    }

    /// The certificate; anybody can look at it.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Takes the key out.
    ///
    /// # Errors
    /// [`SafeBagError`]: most often the passphrase is wrong.
    pub fn open(&self, passphrase: &[u8]) -> Result<KeyPair, SafeBagError> {
        let info = EncryptedPrivateKeyInfoRef::try_from(&self.encrypted_key[..])
            .map_err(|_| SafeBagError::Encryption)?;
        check_work(&info.encryption_algorithm)?;
        let der = info.decrypt(passphrase).map_err(|_| SafeBagError::Passphrase)?;
        let key = KeyPair::from_pkcs8(der.as_bytes())?;
        if key.key_id() != self.certificate.key_id() {
            return Err(SafeBagError::OtherKey);
        }
        Ok(key)
    }
}

fn check_work(scheme: &EncryptionScheme) -> Result<(), SafeBagError> {
    let EncryptionScheme::Pbes2(parameters) = scheme else { return Err(SafeBagError::Encryption) };
    let is_much = match &parameters.kdf {
        pbes2::Kdf::Pbkdf2(kdf) => kdf.iteration_count > ITERATIONS_MAX,
        pbes2::Kdf::Scrypt(kdf) => {
            let block_bytes = 128 * u64::from(kdf.block_size);
            let lanes = u64::from(kdf.parallelization);
            kdf.cost_parameter.saturating_mul(block_bytes).saturating_mul(lanes) > SCRYPT_BYTES_MAX
        }
        _ => return Err(SafeBagError::Encryption),
    };
    if is_much { Err(SafeBagError::TooMuchWork) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreasonable_work_is_refused_before_it_starts() {
        let pbkdf2 = |rounds| {
            let made =
                pbes2::Parameters::generate_pbkdf2_sha256_aes256cbc(rounds, &[1; 16], [2; 16]);
            check_work(&EncryptionScheme::Pbes2(made.unwrap()))
        };
        assert_eq!(pbkdf2(ITERATIONS_MAX), Ok(()));
        assert_eq!(pbkdf2(ITERATIONS_MAX + 1), Err(SafeBagError::TooMuchWork));
        let scrypt = |log_n| {
            let params = pkcs8::pkcs5::scrypt::Params::new(log_n, 8, 1).unwrap();
            let made = pbes2::Parameters::generate_scrypt_aes256cbc(params, &[1; 16], [2; 16]);
            check_work(&EncryptionScheme::Pbes2(made.unwrap()))
        };
        assert_eq!(scrypt(17), Ok(()));
        assert_eq!(scrypt(18), Ok(()), "just what may be asked for");
        assert_eq!(scrypt(19), Err(SafeBagError::TooMuchWork));
    }
}
