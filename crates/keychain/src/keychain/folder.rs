//! The folder of one identity: reading what is there, adding to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use byname_packet::{Name, sha256};
use byname_security::base64;
use byname_security::cert::Certificate;
use byname_security::key::KeyPair;

use super::{Damage, KeychainError};
use crate::files::{self, OTHERS_ANY};

/// Most files in a folder; an identity that is rotated monthly reaches it after a century.
const FILES_MAX: usize = 4096;

/// Longest file: a certificate in base64 of the largest packet there is.
const FILE_BYTES_MAX: u64 = 16_384;

const KEY_SUFFIX: &str = ".pk8";
const REVOKED_SUFFIX: &str = ".revoked";
const CERTIFICATE_SUFFIX: &str = ".ndncert";

/// A private key in the folder.
pub(super) struct StoredKey {
    pub(super) component: Vec<u8>,
    pub(super) key: Arc<KeyPair>,
    pub(super) is_revoked: bool,
}

/// The folder of one identity.
pub(super) struct Folder {
    path: PathBuf,
    identity: Name,
}

impl Folder {
    /// Opens a folder; `None` if there is none.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, KeychainError> {
        let file = path.join("identity");
        let Some(text) = read_text(&file)? else {
            let exists = path.symlink_metadata().is_ok();
            let damage = Damage::Missing { file: "identity".to_owned() };
            return if exists { Err(damaged(path, damage)) } else { Ok(None) };
        };
        let identity = text.trim().parse::<Name>().map_err(|error| damaged(&file, error.into()))?;
        Ok(Some(Self { path: path.to_owned(), identity }))
    }

    pub(super) fn identity(&self) -> &Name {
        &self.identity
    }

    pub(super) fn damaged(&self, damage: Damage) -> KeychainError {
        damaged(&self.path, damage)
    }

    /// The component of the current key.
    pub(super) fn current_component(&self) -> Result<Option<Vec<u8>>, KeychainError> {
        let file = self.path.join("current");
        let Some(text) = read_text(&file)? else { return Ok(None) };
        parse_component(&file, text.trim()).map(Some)
    }

    /// The current key.
    pub(super) fn current(&self) -> Result<Option<StoredKey>, KeychainError> {
        match self.current_component()? {
            Some(component) => self.key(component).map(Some),
            None => Err(self.damaged(Damage::Missing { file: "current".to_owned() })),
        }
    }

    /// All keys.
    pub(super) fn keys(&self) -> Result<Vec<StoredKey>, KeychainError> {
        let mut keys = Vec::new();
        for file in files::list(&self.path, FILES_MAX)? {
            if let Some(text) = file.strip_suffix(KEY_SUFFIX) {
                keys.push(self.key(parse_component(&self.path.join(&file), text)?)?);
            }
        }
        Ok(keys)
    }

    fn key(&self, component: Vec<u8>) -> Result<StoredKey, KeychainError> {
        let name = key_file(&component);
        let path = self.path.join(&name);
        let der = files::read(&path, FILE_BYTES_MAX, OTHERS_ANY)?;
        let der = der.ok_or_else(|| self.damaged(Damage::Missing { file: name }))?;
        let key = KeyPair::from_pkcs8(&der).map_err(|error| damaged(&path, error.into()))?;
        let is_revoked = self.path.join(revoked_file(&component)).exists();
        Ok(StoredKey { component, key: Arc::new(key), is_revoked })
    }

    /// All certificates.
    pub(super) fn certificates(&self) -> Result<Vec<Certificate>, KeychainError> {
        let mut certificates = Vec::new();
        for file in files::list(&self.path, FILES_MAX)? {
            if !file.ends_with(CERTIFICATE_SUFFIX) {
                continue;
            }
            let path = self.path.join(&file);
            // Removed since it was listed: then it is not there.
            let Some(text) = read_text(&path)? else { continue };
            let wire = base64::decode_lines(&text).map_err(|error| damaged(&path, error.into()))?;
            let certificate = Certificate::decode(&wire);
            certificates.push(certificate.map_err(|error| damaged(&path, error.into()))?);
        }
        Ok(certificates)
    }

    /// Stores a key with its certificate and makes it the current one, in an order that leaves
    /// the old one current if it is cut short.
    pub(super) fn add_current(
        &self,
        component: &[u8],
        key: &KeyPair,
        certificate: &Certificate,
    ) -> Result<(), KeychainError> {
        self.add_key(component, key)?;
        self.add_certificate(certificate)?;
        let text = format!("{}\n", component_text(component));
        self.write("current", text.as_bytes())
    }

    /// Stores a key that does not sign for now.
    pub(super) fn add_key(&self, component: &[u8], key: &KeyPair) -> Result<(), KeychainError> {
        self.write(&key_file(component), &key.to_pkcs8()?)
    }

    pub(super) fn add_certificate(&self, certificate: &Certificate) -> Result<(), KeychainError> {
        let (name, text) = certificate_file(certificate);
        self.write(&name, text.as_bytes())
    }

    pub(super) fn mark_revoked(&self, component: &[u8]) -> Result<(), KeychainError> {
        self.write(&revoked_file(component), b"")
    }

    pub(super) fn unmark_revoked(&self, component: &[u8]) -> Result<(), KeychainError> {
        Ok(files::remove(&self.path, &revoked_file(component))?)
    }

    /// Replaces a file. The caller holds the keychain's lock, so temporary files are left-overs.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), KeychainError> {
        files::clean(&self.path)?;
        Ok(files::replace(&self.path, name, bytes)?)
    }
}

/// File name of a private key.
pub(super) fn key_file(component: &[u8]) -> String {
    component_text(component) + KEY_SUFFIX
}

fn revoked_file(component: &[u8]) -> String {
    component_text(component) + REVOKED_SUFFIX
}

/// File name and text of a certificate. The name is a digest, so storing one twice is harmless.
pub(super) fn certificate_file(certificate: &Certificate) -> (String, String) {
    let digest = sha256(&[certificate.wire()]);
    let name = component_text(&digest[..8]) + CERTIFICATE_SUFFIX;
    (name, base64::encode_lines(certificate.wire()))
}

/// Octets in hexadecimal.
pub(super) fn component_text(component: &[u8]) -> String {
    component.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse_component(path: &Path, text: &str) -> Result<Vec<u8>, KeychainError> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let octets = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    let component: Option<Vec<u8>> = octets.collect();
    component
        .filter(|component| rest.is_empty() && !component.is_empty())
        .ok_or_else(|| damaged(path, Damage::Component { text: text.chars().take(80).collect() }))
}

fn read_text(path: &Path) -> Result<Option<String>, KeychainError> {
    let Some(bytes) = files::read(path, FILE_BYTES_MAX, OTHERS_ANY)? else { return Ok(None) };
    String::from_utf8(bytes).map(Some).map_err(|_| damaged(path, Damage::NotText))
}

fn damaged(path: &Path, damage: Damage) -> KeychainError {
    KeychainError::Damaged { path: path.to_owned(), damage }
}
