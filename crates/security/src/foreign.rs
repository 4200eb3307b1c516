//! Keys and certificates as other NDN software keeps them in files.
//!
//! | software | file | holds |
//! |---|---|---|
//! | ndn-cxx, python-ndn | base64 in lines (`.ndncert`) | a certificate |
//! | ndn-cxx | base64 in lines (`ndnsec export`) | a SafeBag |
//! | ndn-cxx, python-ndn | base64 of PKCS#1 or SEC1 (`.privkey`) | a private key without name |
//! | NDNd | PEM `NDN CERT`, `NDN KEY` | certificates, private keys in Data packets |
//! | openssl | PEM or DER | a private key without name |
//!
//! A file is recognised by its octets; its name does not matter. Several PEM blocks may follow
//! each other.

use byname_packet::{Data, DataBuilder, DecodeError, Name, NameRef, SignError, types};
use thiserror::Error;

use crate::base64::{self, Base64Error};
use crate::cert::{Certificate, CertificateError};
use crate::key::{KeyError, KeyPair, KeySigner};
use crate::safe_bag::{SAFE_BAG, SafeBag, SafeBagError};

/// Longest file that is read.
pub const FILE_BYTES_MAX: usize = 256 << 10;

/// ContentType of a Data packet that holds a private key (NDNd).
pub const CONTENT_TYPE_SIGNING_KEY: u64 = 9;

/// First octet of a DER sequence, which private keys are.
const DER_SEQUENCE: u8 = 0x30;

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ForeignError {
    /// It is longer than any key.
    #[error("it is longer than {FILE_BYTES_MAX} octets")]
    TooLong,
    /// It is nothing known.
    #[error("it is no certificate, key or SafeBag")]
    Unknown,
    /// It looks like base64 and is not.
    #[error("it is no certificate, key or SafeBag: {0}")]
    Base64(#[from] Base64Error),
    /// A PEM block does not end.
    #[error("a PEM block has no end")]
    Unfinished,
    /// A packet is malformed.
    #[error("it holds a malformed packet: {0}")]
    Packet(#[from] DecodeError),
    /// A certificate cannot be used.
    #[error("{0}")]
    Certificate(#[from] CertificateError),
    /// A SafeBag cannot be used.
    #[error("{0}")]
    SafeBag(#[from] SafeBagError),
    /// A private key cannot be used.
    #[error("{0}")]
    Key(#[from] KeyError),
}

/// Something found in a file.
#[derive(Debug)]
pub enum Item {
    /// A certificate.
    Certificate(Certificate),
    /// A certificate with its private key, to be opened with a passphrase.
    SafeBag(SafeBag),
    /// A private key, and its name if the file says so.
    Key {
        /// `/<identity>/KEY/<keyId>`.
        name: Option<Name>,
        /// The key.
        key: KeyPair,
    },
}

/// Reads all that a file holds.
///
/// # Errors
/// [`ForeignError`] if any of it cannot be read, or it holds nothing.
pub fn read(file: &[u8]) -> Result<Vec<Item>, ForeignError> {
    if file.len() > FILE_BYTES_MAX {
        return Err(ForeignError::TooLong);
    }
    let Some(text) = std::str::from_utf8(file).ok().filter(|_| file.is_ascii()) else {
        return read_binary(file).map(|item| vec![item]);
    };
    if !text.contains("-----BEGIN ") {
        return read_binary(&base64::decode_lines(text)?).map(|item| vec![item]);
    }
    let mut items = Vec::new();
    for block in text.split("-----BEGIN ").skip(1) {
        let (label, rest) = block.split_once("-----").ok_or(ForeignError::Unfinished)?;
        let (body, _) = rest.split_once("-----END ").ok_or(ForeignError::Unfinished)?;
        // Parameters of a key say nothing that the key does not.
        if label.ends_with("PARAMETERS") {
            continue;
        }
        let is_base64 = |line: &&str| !line.contains(':');
        let body: String = body.lines().filter(is_base64).flat_map(|line| [line, "\n"]).collect();
        items.push(read_binary(&base64::decode_lines(&body)?)?);
    }
    if items.is_empty() { Err(ForeignError::Unknown) } else { Ok(items) }
}

fn read_binary(octets: &[u8]) -> Result<Item, ForeignError> {
    let first = octets.first().copied().ok_or(ForeignError::Unknown)?;
    match u32::from(first) {
        SAFE_BAG => Ok(Item::SafeBag(SafeBag::decode(octets)?)),
        types::DATA => {
            let data = Data::decode(octets)?;
            if data.meta.content_type != CONTENT_TYPE_SIGNING_KEY {
                return Ok(Item::Certificate(Certificate::decode(octets)?));
            }
            let key = KeyPair::from_der(data.content)?;
            Ok(Item::Key { name: Some(data.name.to_name()), key })
        }
        _ if first == DER_SEQUENCE => Ok(Item::Key { name: None, key: KeyPair::from_der(octets)? }),
        _ => Err(ForeignError::Unknown),
    }
}

/// A certificate as NDNd writes it.
pub fn certificate_to_pem(certificate: &Certificate) -> String {
    pem("NDN CERT", certificate.name(), certificate.wire())
}

/// A private key as NDNd writes it: in the clear.
///
/// # Errors
/// [`SignError`] if the key cannot sign the packet it is in.
pub fn key_to_pem(name: NameRef<'_>, key: std::sync::Arc<KeyPair>) -> Result<String, SignError> {
    let content = key.to_traditional_der().map_err(|_| SignError::Failed)?;
    let signer = KeySigner::new(key, name.to_name());
    let mut wire = Vec::new();
    DataBuilder::new(name)
        .content_type(CONTENT_TYPE_SIGNING_KEY)
        .encode(&content, &signer, &mut wire)?;
    Ok(pem("NDN KEY", name, &wire))
}

fn pem(label: &str, name: NameRef<'_>, octets: &[u8]) -> String {
    let body = base64::encode_lines(octets);
    format!("-----BEGIN {label}-----\nName: {name}\n\n{body}-----END {label}-----\n")
}
