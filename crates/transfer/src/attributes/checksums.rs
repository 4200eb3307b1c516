//! Checksums of a content by the algorithms that other storage systems compare.

use std::fmt;

use byname_packet::{DecodeError, tlv, types};

use crate::numbers::{ADLER32, CHECKSUMS, CRC32, CRC32C, MD5, SHA256};

const WITHIN: &str = "Checksums";

/// A checksum algorithm that metadata can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Adler-32 (RFC 1950).
    Adler32,
    /// CRC-32 (IEEE 802.3, as `gzip` has it).
    Crc32,
    /// CRC-32C (Castagnoli, RFC 3720).
    Crc32c,
    /// MD5 (RFC 1321).
    Md5,
    /// SHA-256 (FIPS 180-4).
    Sha256,
}

impl Algorithm {
    /// All of them, in the order of their elements.
    pub const ALL: [Self; 5] = [Self::Adler32, Self::Crc32, Self::Crc32c, Self::Md5, Self::Sha256];

    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Adler32 => "adler32",
            Self::Crc32 => "crc32",
            Self::Crc32c => "crc32c",
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
        }
    }

    /// The algorithm with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// At most one checksum of each algorithm, octets in the order in which they are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Checksums {
    /// Adler-32 (RFC 1950).
    pub adler32: Option<[u8; 4]>,
    /// CRC-32 (IEEE 802.3, as `gzip` has it).
    pub crc32: Option<[u8; 4]>,
    /// CRC-32C (Castagnoli, RFC 3720).
    pub crc32c: Option<[u8; 4]>,
    /// MD5 (RFC 1321).
    pub md5: Option<[u8; 16]>,
    /// SHA-256 (FIPS 180-4).
    pub sha256: Option<[u8; 32]>,
}

impl Checksums {
    /// The checksum of one algorithm.
    pub fn get(&self, algorithm: Algorithm) -> Option<&[u8]> {
        match algorithm {
            Algorithm::Adler32 => self.adler32.as_ref().map(<[u8; 4]>::as_slice),
            Algorithm::Crc32 => self.crc32.as_ref().map(<[u8; 4]>::as_slice),
            Algorithm::Crc32c => self.crc32c.as_ref().map(<[u8; 4]>::as_slice),
            Algorithm::Md5 => self.md5.as_ref().map(<[u8; 16]>::as_slice),
            Algorithm::Sha256 => self.sha256.as_ref().map(<[u8; 32]>::as_slice),
        }
    }

    /// True if none of these is missing.
    pub fn have_all(&self, algorithms: &[Algorithm]) -> bool {
        algorithms.iter().all(|algorithm| self.get(*algorithm).is_some())
    }

    /// Appends the element; nothing if there is no checksum.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let list = Algorithm::ALL.map(|algorithm| (element_type(algorithm), self.get(algorithm)));
        let list = list.iter().filter_map(|(typ, value)| Some((*typ, (*value)?)));
        let len: usize = list.clone().map(|(typ, value)| tlv::element_len(typ, value.len())).sum();
        if len > 0 {
            tlv::write_tl(out, CHECKSUMS, len);
            list.for_each(|(typ, value)| tlv::write_element(out, typ, value));
        }
    }

    /// Reads the value of the element: known algorithms in ascending order of their TYPEs, each at
    /// most once; algorithms of the future are passed over.
    ///
    /// # Errors
    /// `OutOfOrder`, `BadLength`, `UnknownCritical`, or broken TLVs.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let (mut found, mut last) = (Checksums::default(), 0);
        let mut reader = tlv::Reader::new(value);
        while let Some(tlv::Element { typ, value, .. }) = reader.read()? {
            match typ {
                ADLER32 => found.adler32 = Some(octets(value, "Adler32")?),
                CRC32 => found.crc32 = Some(octets(value, "Crc32")?),
                CRC32C => found.crc32c = Some(octets(value, "Crc32c")?),
                MD5 => found.md5 = Some(octets(value, "Md5")?),
                SHA256 => found.sha256 = Some(octets(value, "Sha256")?),
                _ if types::is_critical(typ) => {
                    return Err(DecodeError::UnknownCritical { typ, within: WITHIN });
                }
                _ => continue,
            }
            if typ <= last {
                return Err(DecodeError::OutOfOrder { typ, within: WITHIN });
            }
            last = typ;
        }
        Ok(found)
    }
}

fn element_type(algorithm: Algorithm) -> u32 {
    match algorithm {
        Algorithm::Adler32 => ADLER32,
        Algorithm::Crc32 => CRC32,
        Algorithm::Crc32c => CRC32C,
        Algorithm::Md5 => MD5,
        Algorithm::Sha256 => SHA256,
    }
}

fn octets<const N: usize>(value: &[u8], element: &'static str) -> Result<[u8; N], DecodeError> {
    value.try_into().map_err(|_| DecodeError::BadLength { element, len: value.len() })
}
