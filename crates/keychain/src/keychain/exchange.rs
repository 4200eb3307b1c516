//! Keys that come from other software, and keys that go there.
//!
//! An imported key keeps its name: its certificates say it, so what was signed before and elsewhere
//! keeps counting. No key is ever overwritten by another.

use std::sync::Arc;

use byname_packet::{Name, NameRef};
use byname_security::cert::{Certificate, KEY_COMPONENT};
use byname_security::key::{KeyId, KeyPair};

use super::folder::Folder;
use super::{
    Damage, KEY_COMPONENT_BYTES, Keychain, KeychainError, certificate_file, component_text,
    fill_random, folder_name, key_file, preferred, self_signed,
};
use crate::files::{self, DirLock};

/// Keys and certificates to import.
#[derive(Debug, Default)]
pub struct Import {
    /// Certificates: of the keys that come with them, or of keys that are here.
    pub certificates: Vec<Certificate>,
    /// Private keys, with the name their file gives them.
    pub keys: Vec<(Option<Name>, KeyPair)>,
    /// Identity of keys without name and certificate.
    pub identity: Option<Name>,
    /// True if an imported key signs from now on, if its identity has another that does. One whose
    /// identity has none does in any case.
    pub make_current: bool,
}

impl Keychain {
    /// Takes in keys and certificates. Returns the names of the keys, then of the certificates of
    /// keys that were here.
    ///
    /// # Errors
    /// [`KeychainError`]; what came before in the list is kept then.
    pub fn import(&self, import: Import, now_unix_ns: u64) -> Result<Vec<Name>, KeychainError> {
        let mut names = Vec::new();
        let (mut certificates, identity) = (import.certificates, import.identity);
        for certificate in certificates.iter().filter(|it| it.is_self_signed()) {
            let verified = certificate.verify_signed_by(certificate.public_key());
            verified.map_err(|_| {
                let name = certificate.name().to_name();
                KeychainError::Import(Damage::Forged { name })
            })?;
        }
        for (name, key) in import.keys {
            let key = Arc::new(key);
            let is_own = |certificate: &Certificate| certificate.key_id() == key.key_id();
            let (mut own, others) = certificates.into_iter().partition::<Vec<_>, _>(is_own);
            certificates = others;
            if own.is_empty() {
                let name = key_name(name, identity.as_ref())?;
                own.push(self_signed(name.view(), &key, now_unix_ns)?);
            }
            names.push(own[0].key_name().to_name());
            self.store(&key, &own, import.make_current)?;
        }
        for certificate in certificates {
            names.push(self.add_certificate(&certificate)?);
        }
        Ok(names)
    }

    fn store(
        &self,
        key: &KeyPair,
        certificates: &[Certificate],
        make_current: bool,
    ) -> Result<(), KeychainError> {
        let first = &certificates[0];
        let component = first.key_component().value;
        let _lock = DirLock::take(&self.dir)?;
        let Some(folder) = self.folder(first.identity())? else {
            let mut contents = vec![
                ("identity".to_owned(), format!("{}\n", first.identity()).into_bytes()),
                ("current".to_owned(), format!("{}\n", component_text(component)).into_bytes()),
                (key_file(component), key.to_pkcs8()?),
            ];
            for certificate in certificates {
                let (file, text) = certificate_file(certificate);
                contents.push((file, text.into_bytes()));
            }
            files::create_dir_whole(&self.dir, &folder_name(first.identity()), &contents)?;
            return Ok(());
        };
        let known = folder.keys()?.into_iter().find(|stored| stored.component == component);
        if known.is_some_and(|stored| stored.key.key_id() != key.key_id()) {
            return Err(KeychainError::Taken { name: first.key_name().to_name() });
        }
        for certificate in certificates {
            folder.add_certificate(certificate)?;
        }
        if make_current || !has_current(&folder)? {
            folder.add_current(component, key, first)
        } else {
            folder.add_key(component, key)
        }
    }

    /// The private key with this id and the certificate its packets point to, to be exported.
    ///
    /// # Errors
    /// [`KeychainError::NoSuchKey`] if it is not here or has no certificate.
    pub fn key_pair(&self, key_id: KeyId) -> Result<(Arc<KeyPair>, Certificate), KeychainError> {
        for folder in self.folders()? {
            let keys = folder.keys()?;
            let Some(stored) = keys.into_iter().find(|stored| stored.key.key_id() == key_id) else {
                continue;
            };
            let mut own = folder.certificates()?;
            own.retain(|certificate| certificate.key_id() == key_id);
            let certificate = preferred(&own).ok_or(KeychainError::NoSuchKey { key_id })?.clone();
            return Ok((stored.key, certificate));
        }
        Err(KeychainError::NoSuchKey { key_id })
    }
}

fn has_current(folder: &Folder) -> Result<bool, KeychainError> {
    if folder.current_component()?.is_none() {
        return Ok(false);
    }
    Ok(folder.current()?.is_some_and(|stored| !stored.is_revoked))
}

/// The name of a key that came without certificate.
fn key_name(name: Option<Name>, identity: Option<&Name>) -> Result<Name, KeychainError> {
    if let Some(name) = name {
        let is_key = |name: NameRef<'_>| {
            let marker = name.get(name.count().checked_sub(2)?)?;
            (marker.value == KEY_COMPONENT && !name.last()?.value.is_empty()).then_some(())
        };
        let is_key = is_key(name.view()).is_some();
        return if is_key {
            Ok(name)
        } else {
            Err(KeychainError::Import(Damage::KeyName { name }))
        };
    }
    let mut component = [0; KEY_COMPONENT_BYTES];
    fill_random(&mut component)?;
    let identity = identity.ok_or(KeychainError::Nameless)?;
    Ok(identity.with_generic(KEY_COMPONENT).with_generic(&component))
}
