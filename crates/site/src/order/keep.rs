//! Orders to keep rows of the catalog, by the head, and what they look like on the disk.
//!
//! ```text
//! Interest  <disk>/keep/<digest>, signed by the site's key
//! parameters = LeaseEpoch Generation Edition Offset CopyDigest Since [Through] Rows
//! frame      = length:4 check:8 Interest       (numbers big endian)
//! ```
//! A disk keeps a *copy* of the catalog's rows: the orders themselves, one frame behind the other,
//! so that what it gives back is proved by the site's signature, and not by the disk's. An order
//! says what is before its rows, by digest: none can be left out or come from another copy, and the
//! last one proves to a head what there is. What the rows are is the catalog's matter; an order
//! carries octets of them, cut anywhere.

use byname_catalog::id::{LeaseEpoch, TransactionNumber};
use byname_packet::{DecodeError, Interest, InterestBuilder, SignError, Signer};
use byname_security::tree::Hash;
use byname_security::trust::Validator;

use super::{DiskRefusal, DiskView, signed_by_head};
use crate::authentic::Check;
use crate::codec::{Fields, Writer, bad_length, bad_value};
use crate::names::{DiskName, SiteName};
use crate::numbers as tag;
use crate::stamp::Stamp;

/// Most octets of rows in an order.
pub const ROWS_BYTES_MAX: usize = 6144;
/// Octets before the packet in a frame.
const HEADER_BYTES: usize = 12;
/// No frame is longer.
pub const FRAME_BYTES_MAX: usize = HEADER_BYTES + byname_packet::MAX_PACKET_BYTES;

/// A place in a copy, and all that is before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyPoint {
    /// Octets of rows before it.
    pub length: u64,
    /// Digest of these: BLAKE3 of the digest before the last order and that order's rows; zeros at
    /// the beginning.
    pub digest: [u8; 32],
    /// The transaction of the last complete state before it; 0 if there is none.
    pub through: TransactionNumber,
}

/// An order to keep rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// Term of the head.
    pub epoch: LeaseEpoch,
    /// Generation of the disk.
    pub generation: u64,
    /// Number of the copy: a later one is a new one from its beginning.
    pub edition: u64,
    /// Where in the copy these rows belong.
    pub at: CopyPoint,
    /// The rows up to and with these are those of the catalog after this transaction.
    pub through: Option<TransactionNumber>,
    /// The rows.
    pub rows: Vec<u8>,
}

impl Keep {
    /// The place behind these rows.
    pub fn end(&self) -> CopyPoint {
        let CopyPoint { length, digest, through } = self.at;
        CopyPoint {
            length: length.saturating_add(self.rows.len() as u64),
            digest: Hash::of(&[&digest, self.rows.as_slice()].concat()).0,
            through: self.through.unwrap_or(through),
        }
    }

    /// The Interest to one disk, signed by the site's key.
    ///
    /// # Errors
    /// [`SignError`]; `TooLarge` for what fits no packet.
    pub fn encode(
        &self,
        site: &SiteName,
        disk: &DiskName,
        signer: &dyn Signer,
        stamp: Stamp,
    ) -> Result<Vec<u8>, SignError> {
        let mut writer = Writer::default();
        writer.number(tag::LEASE_EPOCH, self.epoch);
        writer.number(tag::GENERATION, self.generation);
        writer.number(tag::EDITION, self.edition);
        writer.number(tag::OFFSET, self.at.length);
        writer.octets(tag::COPY_DIGEST, &self.at.digest);
        writer.number(tag::SINCE, self.at.through);
        if let Some(through) = self.through {
            writer.number(tag::THROUGH, through);
        }
        writer.octets(tag::ROWS, &self.rows);
        let name = site.keep(disk);
        let builder = InterestBuilder::new(name.view()).application_parameters(&writer.0);
        stamp.sign(&builder, signer)
    }

    /// Takes an order apart. Nothing is verified.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that is no such order to a disk of this site.
    pub fn decode(
        site: &SiteName,
        interest: &Interest<'_>,
    ) -> Result<(DiskName, Self), DecodeError> {
        let disk = site.parse_keep(interest.name).ok_or(bad_value(tag::NAME))?;
        let mut fields = Fields::new(interest.application_parameters.unwrap_or_default(), "keep");
        let epoch = LeaseEpoch(fields.number(tag::LEASE_EPOCH)?);
        let generation = fields.number(tag::GENERATION)?;
        let edition = fields.number(tag::EDITION)?;
        let at = CopyPoint {
            length: fields.number(tag::OFFSET)?,
            digest: fields.array(tag::COPY_DIGEST)?,
            through: TransactionNumber(fields.number(tag::SINCE)?),
        };
        let through = fields.optional_number(tag::THROUGH)?.map(TransactionNumber);
        let rows = fields.octets(tag::ROWS)?;
        fields.end()?;
        if rows.len() > ROWS_BYTES_MAX {
            return Err(bad_length(rows, tag::ROWS));
        }
        let rows = rows.to_vec();
        Ok((disk, Self { epoch, generation, edition, at, through, rows }))
    }

    /// Everything that can be checked without a look at the copy: that the site's key signed it,
    /// for this generation, by a head that has not lost the lease.
    pub fn check(
        &self,
        site: &SiteName,
        interest: &Interest<'_>,
        disk: DiskView<'_>,
        (validator, now_s): (&mut Validator, u64),
    ) -> Check<(), DiskRefusal> {
        match signed_by_head(site, interest, validator, now_s) {
            Check::Accepted(()) => disk.check_term(self.epoch, self.generation),
            other => other,
        }
    }

    /// The same for an order that was kept, whenever that was: that the site's key signed it.
    pub fn check_kept(
        site: &SiteName,
        interest: &Interest<'_>,
        validator: (&mut Validator, u64),
    ) -> Check<(), DiskRefusal> {
        signed_by_head(site, interest, validator.0, validator.1)
    }
}

/// An order as it is kept.
pub fn frame(order: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES + order.len());
    out.extend((order.len() as u32).to_be_bytes());
    out.extend_from_slice(&Hash::of(order).0[..HEADER_BYTES - 4]);
    out.extend_from_slice(order);
    out
}

/// Beginning of octets in which frames lie one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// An order, and what is behind it.
    Order(&'a [u8], &'a [u8]),
    /// The rest of it is missing.
    Cut,
    /// It is none.
    Torn,
}

impl<'a> Frame<'a> {
    /// Looks at the first frame.
    pub fn first(octets: &'a [u8]) -> Self {
        let Some((header, rest)) = octets.split_first_chunk::<HEADER_BYTES>() else {
            return Self::Cut;
        };
        let [a, b, c, d, check @ ..] = header;
        let len = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        if len == 0 || len > FRAME_BYTES_MAX - HEADER_BYTES {
            return Self::Torn;
        }
        let Some((order, rest)) = rest.split_at_checked(len) else { return Self::Cut };
        match Hash::of(order).0.starts_with(check) {
            true => Self::Order(order, rest),
            false => Self::Torn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_in_their_order_and_torn_ones_do_not() {
        let octets = [frame(b"one"), frame(b"another")].concat();
        let Frame::Order(b"one", rest) = Frame::first(&octets) else { panic!("the first") };
        assert_eq!(Frame::first(rest), Frame::Order(b"another", b""));
        for len in 0..frame(b"one").len() {
            assert_eq!(Frame::first(&octets[..len]), Frame::Cut, "{len} octets");
        }
        for at in 0..frame(b"one").len() {
            let mut changed = octets.clone();
            changed[at] ^= 1;
            assert!(!matches!(Frame::first(&changed), Frame::Order(b"one", _)), "octet {at}");
        }
        assert_eq!(Frame::first(&[0; 64]), Frame::Torn, "what a power cut leaves");
    }
}
