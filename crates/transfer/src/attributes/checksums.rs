//! Checksums of a content by the algorithms that other storage systems compare.

use byname_packet::{DecodeError, tlv, types};

use crate::numbers::{ADLER32, CHECKSUMS, CRC32, CRC32C, MD5, SHA256};

const WITHIN: &str = "Checksums";

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
    /// Appends the element; nothing if there is no checksum.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let list = [
            (ADLER32, self.adler32.as_ref().map(<[u8; 4]>::as_slice)),
            (CRC32, self.crc32.as_ref().map(<[u8; 4]>::as_slice)),
            (CRC32C, self.crc32c.as_ref().map(<[u8; 4]>::as_slice)),
            (MD5, self.md5.as_ref().map(<[u8; 16]>::as_slice)),
            (SHA256, self.sha256.as_ref().map(<[u8; 32]>::as_slice)),
        ];
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

fn octets<const N: usize>(value: &[u8], element: &'static str) -> Result<[u8; N], DecodeError> {
    value.try_into().map_err(|_| DecodeError::BadLength { element, len: value.len() })
}
