//! One's own keys: an identity per published name, a current key per identity.
//!
//! ```text
//! keys/                        0700
//!   lock                       held while anything below is changed
//!   <identity>/                32 hex digits: SHA-256 of the name, first half
//!     identity                 the name in URI form
//!     current                  key that signs (16 hex digits, its key id component)
//!     <key>.pk8                private key, PKCS#8 DER
//!     <key>.revoked            empty; this key must not be used any more
//!     <digest>.ndncert         a certificate of one of the keys, base64 in lines of 64
//! ```
//! The private key of a rotated identity is written before the certificate that the old key
//! gives it, and `current` last: until then the old key signs.

mod error;
mod exchange;
mod folder;
mod serving;
mod unstored;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use byname_packet::{Name, NameRef, ValidityPeriod, sha256};
use byname_security::base64;
use byname_security::cert::{
    Certificate, CertificateRequest, IssueError, KEY_COMPONENT, SELF_ISSUER,
};
use byname_security::key::{Algorithm, KeyId, KeyPair, KeySigner};
use byname_security::trust::{TrustPolicy, UnknownKeys};

use crate::files::{self, DirLock, FileError, OTHERS_ANY};
use crate::trust_store::TrustStore;
use folder::{Folder, StoredKey, certificate_file, component_text, key_file};

pub use error::{Damage, KeychainError};
pub use exchange::Import;

/// Validity of own certificates: ten years, in seconds.
pub const VALIDITY_S: u64 = 10 * 365 * 86_400;

/// Certificates begin this long before they are made, so that readers whose clock is a little
/// behind do not see one from the future.
const BACKDATE_S: u64 = 3600;

/// Most identities in a keychain.
const IDENTITIES_MAX: usize = 4096;

/// Octets of the component that tells apart the keys of an identity.
const KEY_COMPONENT_BYTES: usize = 8;

/// A name to publish under, and the key that signs for it.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The name; the key may sign everything under it.
    pub prefix: Name,
    /// Signs, and points to `certificate`.
    pub signer: KeySigner,
    /// The certificate of the current key.
    pub certificate: Certificate,
    /// `certificate`, that of its issuer if that is an own key too, and so on.
    pub chain: Vec<Certificate>,
}

/// Facts of one key.
#[derive(Debug, Clone)]
pub struct KeyInfo {
    /// The identity it signs for.
    pub identity: Name,
    /// `/<identity>/KEY/<component>`.
    pub key_name: Name,
    /// Its digest.
    pub key_id: KeyId,
    /// Its kind.
    pub algorithm: Algorithm,
    /// True if it is the one that signs now.
    pub is_current: bool,
    /// True if it was revoked.
    pub is_revoked: bool,
    /// Its certificates.
    pub certificates: Vec<Certificate>,
}

/// A directory of keys.
#[derive(Debug, Clone)]
pub struct Keychain {
    dir: PathBuf,
}

impl Keychain {
    /// Opens a keychain, creating an empty one if there is none.
    ///
    /// # Errors
    /// [`FileError`] if the directory cannot be used or other users could look into it.
    pub fn open(dir: &Path) -> Result<Self, KeychainError> {
        files::ensure_dir(dir, OTHERS_ANY)?;
        Ok(Self { dir: dir.to_owned() })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The identity named exactly `prefix`; `None` if there is none, or its key was revoked.
    ///
    /// # Errors
    /// [`KeychainError`] if what is there cannot be read.
    pub fn identity(&self, prefix: NameRef<'_>) -> Result<Option<Identity>, KeychainError> {
        match self.folder(prefix)? {
            Some(folder) => identity_of(&folder),
            None => Ok(None),
        }
    }

    /// The identity with the longest name that `name` is under.
    ///
    /// # Errors
    /// [`KeychainError`] if what is there cannot be read.
    pub fn identity_for(&self, name: NameRef<'_>) -> Result<Option<Identity>, KeychainError> {
        for count in (0..=name.count()).rev() {
            if let Some(identity) = self.identity(name.prefix(count))? {
                return Ok(Some(identity));
            }
        }
        Ok(None)
    }

    /// Makes an identity with a new key and a self-signed certificate.
    ///
    /// If the identity is there already, it is returned unchanged, so that two processes that
    /// start at once end up with the same key. If its key was revoked it gets a new one.
    ///
    /// # Errors
    /// [`KeychainError`] if the key cannot be made or stored; nothing is left then.
    pub fn create_identity(
        &self,
        prefix: NameRef<'_>,
        algorithm: Algorithm,
        now_unix_ns: u64,
    ) -> Result<Identity, KeychainError> {
        let validity = default_validity(now_unix_ns);
        self.create_identity_with(prefix, algorithm, validity, now_unix_ns)
    }

    /// As [`Keychain::create_identity`], with a certificate that is valid at other times.
    ///
    /// # Errors
    /// [`KeychainError`] if the key cannot be made or stored; nothing is left then.
    pub fn create_identity_with(
        &self,
        prefix: NameRef<'_>,
        algorithm: Algorithm,
        validity: ValidityPeriod,
        now_unix_ns: u64,
    ) -> Result<Identity, KeychainError> {
        let _lock = DirLock::take(&self.dir)?;
        if let Some(identity) = self.identity(prefix)? {
            return Ok(identity);
        }
        let made = new_key(prefix, algorithm, None, validity, now_unix_ns)?;
        let (component, key, certificate) = made;
        let text = component_text(&component);
        let (cert_file, cert_text) = certificate_file(&certificate);
        match self.folder(prefix)? {
            Some(folder) => folder.add_current(&component, &key, &certificate)?,
            None => {
                let files = [
                    ("identity".to_owned(), format!("{prefix}\n").into_bytes()),
                    ("current".to_owned(), format!("{text}\n").into_bytes()),
                    (key_file(&component), key.to_pkcs8()?),
                    (cert_file, cert_text.into_bytes()),
                ];
                files::create_dir_whole(&self.dir, &folder_name(prefix), &files)?;
            }
        }
        self.identity(prefix)?.ok_or_else(|| no_identity(prefix))
    }

    /// Gives an identity a new key, certified by the old one, which stays to be served.
    ///
    /// # Errors
    /// [`KeychainError::NoIdentity`], or whatever keeps the key from being made or stored; the
    /// old key is then still current.
    pub fn rotate(&self, prefix: NameRef<'_>, now_unix_ns: u64) -> Result<Identity, KeychainError> {
        let _lock = DirLock::take(&self.dir)?;
        let folder = self.folder(prefix)?.ok_or_else(|| no_identity(prefix))?;
        let old = identity_of(&folder)?.ok_or_else(|| no_identity(prefix))?;
        let algorithm = old.signer.key().algorithm();
        let validity = default_validity(now_unix_ns);
        let made = new_key(prefix, algorithm, Some(&old), validity, now_unix_ns)?;
        let (component, key, certificate) = made;
        folder.add_current(&component, &key, &certificate)?;
        self.identity(prefix)?.ok_or_else(|| no_identity(prefix))
    }

    /// Marks an own key as not to be used any more. Its identity has no signer until it is
    /// created or given another key again.
    ///
    /// # Errors
    /// [`KeychainError::NoSuchKey`] if it is not here.
    pub fn revoke(&self, key_id: KeyId) -> Result<KeyInfo, KeychainError> {
        let _lock = DirLock::take(&self.dir)?;
        for folder in self.folders()? {
            let keys = folder.keys()?;
            let found = keys.iter().find(|stored| stored.key.key_id() == key_id);
            if let Some(stored) = found {
                folder.mark_revoked(&stored.component)?;
                let mut info = key_info(&folder, stored, &folder.certificates()?)?;
                info.is_revoked = true;
                return Ok(info);
            }
        }
        Err(KeychainError::NoSuchKey { key_id })
    }

    /// Takes back [`Keychain::revoke`]; `None` if the key was not revoked. It signs again if its
    /// identity has got no other key meanwhile.
    ///
    /// # Errors
    /// [`KeychainError::NoSuchKey`] if it is not here.
    pub fn unrevoke(&self, key_id: KeyId) -> Result<Option<KeyInfo>, KeychainError> {
        let _lock = DirLock::take(&self.dir)?;
        for folder in self.folders()? {
            let keys = folder.keys()?;
            let found = keys.iter().find(|stored| stored.key.key_id() == key_id);
            if let Some(stored) = found {
                if !stored.is_revoked {
                    return Ok(None);
                }
                folder.unmark_revoked(&stored.component)?;
                let mut info = key_info(&folder, stored, &folder.certificates()?)?;
                info.is_revoked = false;
                return Ok(Some(info));
            }
        }
        Err(KeychainError::NoSuchKey { key_id })
    }

    /// All keys, by identity.
    ///
    /// # Errors
    /// [`KeychainError`] if something there cannot be read.
    pub fn list(&self) -> Result<Vec<KeyInfo>, KeychainError> {
        let mut infos = Vec::new();
        for folder in self.folders()? {
            let certificates = folder.certificates()?;
            for stored in folder.keys()? {
                infos.push(key_info(&folder, &stored, &certificates)?);
            }
        }
        infos.sort_by(|a, b| a.key_name.cmp(&b.key_name));
        Ok(infos)
    }

    /// The certificate of a key as text that other NDN software reads: the one its packets point
    /// to.
    ///
    /// # Errors
    /// [`KeychainError::NoSuchKey`] if it is not here or has no certificate.
    pub fn export_certificate(&self, key_id: KeyId) -> Result<String, KeychainError> {
        let infos = self.list()?;
        let info = infos.iter().find(|info| info.key_id == key_id);
        let certificate = info.and_then(|info| preferred(&info.certificates));
        let certificate = certificate.ok_or(KeychainError::NoSuchKey { key_id })?;
        Ok(base64::encode_lines(certificate.wire()))
    }

    /// Stores a certificate of one of the keys here; its packets will point to it if somebody else
    /// issued it.
    fn add_certificate(&self, certificate: &Certificate) -> Result<Name, KeychainError> {
        let name = certificate.name().to_name();
        let _lock = DirLock::take(&self.dir)?;
        let folder = self.folder(certificate.identity())?;
        let folder = folder.ok_or_else(|| KeychainError::NotOurs { name: name.clone() })?;
        let component = certificate.key_component().value.to_vec();
        let ours = folder.keys()?.into_iter().any(|stored| {
            stored.component == component && stored.key.key_id() == certificate.key_id()
        });
        if !ours {
            return Err(KeychainError::NotOurs { name });
        }
        folder.add_certificate(certificate)?;
        Ok(name)
    }

    /// The policy of this user: what the trust store says, and own keys for their own names.
    ///
    /// # Errors
    /// [`KeychainError`] if a key here cannot be read.
    pub fn trust_policy(
        &self,
        store: &TrustStore,
        unknown_keys: UnknownKeys,
    ) -> Result<TrustPolicy, KeychainError> {
        let mut policy = store.policy();
        policy.unknown_keys = unknown_keys;
        for info in self.list()? {
            if info.is_revoked {
                policy.revoked.insert(info.key_id);
            } else {
                policy.add_anchor(info.identity, info.key_id);
            }
        }
        Ok(policy)
    }

    fn folder(&self, prefix: NameRef<'_>) -> Result<Option<Folder>, KeychainError> {
        Folder::open(&self.dir.join(folder_name(prefix)))
    }

    fn folders(&self) -> Result<Vec<Folder>, KeychainError> {
        let mut folders = Vec::new();
        for name in files::list(&self.dir, IDENTITIES_MAX)? {
            if is_folder_name(&name) {
                folders.extend(Folder::open(&self.dir.join(name))?);
            }
        }
        Ok(folders)
    }
}

fn folder_name(prefix: NameRef<'_>) -> String {
    component_text(&sha256(&[prefix.value()])[..16])
}

fn is_folder_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn no_identity(prefix: NameRef<'_>) -> KeychainError {
    KeychainError::NoIdentity { prefix: prefix.to_name() }
}

/// Default validity of own certificates: from an hour ago, for ten years.
pub fn default_validity(now_unix_ns: u64) -> ValidityPeriod {
    let now_s = now_unix_ns / 1_000_000_000;
    ValidityPeriod {
        not_before_s: now_s.saturating_sub(BACKDATE_S),
        not_after_s: now_s.saturating_add(VALIDITY_S),
    }
}

/// Makes a key and its certificate, signed by itself or by the current key of `issuer`.
fn new_key(
    prefix: NameRef<'_>,
    algorithm: Algorithm,
    issuer: Option<&Identity>,
    validity: ValidityPeriod,
    now_unix_ns: u64,
) -> Result<([u8; KEY_COMPONENT_BYTES], Arc<KeyPair>, Certificate), KeychainError> {
    let mut component = [0; KEY_COMPONENT_BYTES];
    fill_random(&mut component)?;
    let key = Arc::new(KeyPair::generate(algorithm)?);
    let mut key_name = prefix.to_name();
    key_name.push_generic(KEY_COMPONENT);
    key_name.push_generic(&component);
    let public_key = key.public_key();
    let issuer_id = match issuer {
        Some(issuer) => issuer.certificate.key_component().value,
        None => SELF_ISSUER,
    };
    // spec: NDN naming conventions: a version made from the time is in microseconds.
    let version = now_unix_ns / 1000;
    let public_key = &public_key;
    let request =
        CertificateRequest { key_name: key_name.view(), public_key, issuer_id, version, validity };
    let issued: Result<Certificate, IssueError> = match issuer {
        Some(issuer) => request.issue(&issuer.signer),
        None => request.issue(&KeySigner::new(key.clone(), request.certificate_name())),
    };
    Ok((component, key, issued?))
}

/// A certificate of a key under its own name, signed by itself.
fn self_signed(
    key_name: NameRef<'_>,
    key: &Arc<KeyPair>,
    now_unix_ns: u64,
) -> Result<Certificate, IssueError> {
    let request = CertificateRequest {
        key_name,
        public_key: &key.public_key(),
        issuer_id: SELF_ISSUER,
        version: now_unix_ns / 1000,
        validity: default_validity(now_unix_ns),
    };
    request.issue(&KeySigner::new(key.clone(), request.certificate_name()))
}

fn fill_random(bytes: &mut [u8]) -> Result<(), FileError> {
    let random = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty());
    random.map_err(|error| files::io_error("read", Path::new("/dev/urandom"))(error.into()))?;
    Ok(())
}

fn identity_of(folder: &Folder) -> Result<Option<Identity>, KeychainError> {
    let Some(StoredKey { key, component, is_revoked: false }) = folder.current()? else {
        return Ok(None);
    };
    let certificates = folder.certificates()?;
    let own: Vec<Certificate> = certificates
        .iter()
        .filter(|certificate| certificate.key_component().value == component)
        .cloned()
        .collect();
    let certificate = preferred(&own).ok_or_else(|| folder.damaged(Damage::NoCertificate))?.clone();
    let signer = KeySigner::new(key, certificate.name().to_name());
    let mut chain = vec![certificate.clone()];
    while let Some(issuer) = next_issuer(&chain, &certificates) {
        chain.push(issuer.clone());
    }
    Ok(Some(Identity { prefix: folder.identity().clone(), signer, certificate, chain }))
}

/// The certificate that the last of `chain` points to, unless the chain has it already.
fn next_issuer<'a>(chain: &[Certificate], all: &'a [Certificate]) -> Option<&'a Certificate> {
    let issuer = chain.last()?.issuer()?;
    let mut found = all.iter().filter(|certificate| issuer.is_prefix_of(certificate.name()));
    found.find(|certificate| !chain.contains(certificate))
}

/// The certificate that packets should point to: one that somebody else issued leads further than
/// a self-signed one, and a later one replaces an earlier one.
fn preferred(certificates: &[Certificate]) -> Option<&Certificate> {
    certificates.iter().max_by_key(|certificate| {
        let version = certificate.name().last().and_then(|component| component.version());
        (!certificate.is_self_signed(), version)
    })
}

fn key_info(
    folder: &Folder,
    stored: &StoredKey,
    certificates: &[Certificate],
) -> Result<KeyInfo, KeychainError> {
    let mut key_name = folder.identity().clone();
    key_name.push_generic(KEY_COMPONENT);
    key_name.push_generic(&stored.component);
    let own = certificates.iter().filter(|cert| cert.key_component().value == stored.component);
    let certificates = own.cloned().collect();
    let is_current = folder.current_component()?.as_deref() == Some(&stored.component[..]);
    Ok(KeyInfo {
        identity: folder.identity().clone(),
        key_name,
        key_id: stored.key.key_id(),
        algorithm: stored.key.algorithm(),
        is_current,
        is_revoked: stored.is_revoked,
        certificates,
    })
}
