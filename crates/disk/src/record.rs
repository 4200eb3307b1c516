//! Records: what is kept beside each replica, so that a catalog can be rebuilt from its disks.
//!
//! ```text
//! record = digest:32 version:1 settled:1 size:8 root:32 adler32:4 crc32c:4 ticket claim
//! ticket, claim = length:4 packet
//! ```
//! Numbers are big endian; the digest is the BLAKE3 hash of all that follows. The ticket says where
//! the file was and whose; the claim is the writer's signed word, which outlives the catalog.

use byname_catalog::Checksums;

const VERSION: u8 = 1;
const DIGEST_BYTES: usize = 32;
/// Longest packet.
const PACKET_BYTES_MAX: usize = byname_packet::MAX_PACKET_BYTES;
/// No record is longer.
pub(crate) const RECORD_BYTES_MAX: u64 = 2 * PACKET_BYTES_MAX as u64 + 128;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Octets of the content.
    pub size: u64,
    /// Root of its hash tree.
    pub root: [u8; 32],
    /// Checksums of the whole, computed when it came.
    pub checksums: Checksums,
    /// The head has said that it is part of the site.
    pub is_settled: bool,
    /// The ticket it was written by.
    pub ticket: Vec<u8>,
    /// The writer's claim.
    pub claim: Vec<u8>,
}

impl Record {
    /// The octets to keep.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; DIGEST_BYTES];
        out.extend([VERSION, u8::from(self.is_settled)]);
        out.extend(self.size.to_be_bytes());
        out.extend(self.root);
        out.extend(self.checksums.adler32.to_be_bytes());
        out.extend(self.checksums.crc32c.to_be_bytes());
        for packet in [&self.ticket, &self.claim] {
            out.extend((packet.len() as u32).to_be_bytes());
            out.extend_from_slice(packet);
        }
        let digest = *blake3::hash(&out[DIGEST_BYTES..]).as_bytes();
        out[..DIGEST_BYTES].copy_from_slice(&digest);
        out
    }

    /// Reads them back; `None` if they are torn, or of another version.
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let (digest, body) = octets.split_first_chunk::<DIGEST_BYTES>()?;
        if blake3::hash(body).as_bytes() != digest {
            return None;
        }
        let mut rest = body;
        if take::<1>(&mut rest)? != [VERSION] {
            return None;
        }
        let is_settled = match take::<1>(&mut rest)? {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        let size = u64::from_be_bytes(take(&mut rest)?);
        let root = take(&mut rest)?;
        let adler32 = u32::from_be_bytes(take(&mut rest)?);
        let crc32c = u32::from_be_bytes(take(&mut rest)?);
        let checksums = Checksums { adler32, crc32c };
        let (ticket, claim) = (packet(&mut rest)?, packet(&mut rest)?);
        let record = Self { size, root, checksums, is_settled, ticket, claim };
        rest.is_empty().then_some(record)
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(*taken)
}

fn packet(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let len = usize::try_from(u32::from_be_bytes(take(rest)?)).ok()?;
    if len > PACKET_BYTES_MAX {
        return None;
    }
    let (packet, left) = rest.split_at_checked(len)?;
    *rest = left;
    Some(packet.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            size: 1 << 40,
            root: [7; 32],
            checksums: Checksums { adler32: 1, crc32c: 2 },
            is_settled: true,
            ticket: vec![1; 700],
            claim: vec![2; 300],
        }
    }

    #[test]
    fn records_are_read_back() {
        for is_settled in [false, true] {
            let record = Record { is_settled, ..record() };
            assert_eq!(Record::decode(&record.encode()), Some(record));
        }
    }

    #[test]
    fn a_record_that_was_cut_or_changed_anywhere_is_none() {
        let octets = record().encode();
        assert!((0..octets.len()).all(|len| Record::decode(&octets[..len]).is_none()));
        for at in 0..octets.len() {
            let mut changed = octets.clone();
            changed[at] ^= 1;
            assert_eq!(Record::decode(&changed), None, "octet {at}");
        }
    }

    #[test]
    fn the_longest_record_is_within_the_bound_for_reading() {
        let packet = vec![0; PACKET_BYTES_MAX];
        let record = Record { ticket: packet.clone(), claim: packet, ..record() };
        assert!(record.encode().len() as u64 <= RECORD_BYTES_MAX);
    }
}
