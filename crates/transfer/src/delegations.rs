//! Delegations: where the replicas of a content lie, and which of them an Interest names.
//!
//! Metadata lists them; a reader puts one into the ForwardingHint of each Interest. All readers
//! choose alike, so that their Interests aggregate on the path and caches near a replica hold its
//! part of the content.

use byname_packet::{DecodeError, Name, NameRef, tlv, types};
use byname_security::tree::Hash;

use crate::numbers::FORWARDING_HINT;

/// Delegations in one metadata packet.
pub const DELEGATIONS_MAX: usize = 16;
/// Segments in a row that are asked of one replica.
pub const RUN_SEGMENTS: u64 = 2048;

const WITHIN: &str = "ForwardingHint";

/// Appends the element; nothing for an empty list.
pub fn encode(delegations: &[Name], out: &mut Vec<u8>) {
    if delegations.is_empty() {
        return;
    }
    let len = delegations.iter().map(|name| name.view().wire_len()).sum();
    tlv::write_tl(out, FORWARDING_HINT, len);
    delegations.iter().for_each(|name| name.view().encode(out));
}

/// Reads the value of the element: 1 to [`DELEGATIONS_MAX`] names. The empty name and names of
/// one host or one link lead nowhere for other readers and are refused.
///
/// # Errors
/// `Missing`, `BadValue`, `BadLength` for too many, `UnknownCritical`, or broken TLVs.
pub fn decode(value: &[u8]) -> Result<Vec<Name>, DecodeError> {
    let mut found = Vec::new();
    let mut reader = tlv::Reader::new(value);
    while let Some(element) = reader.read()? {
        match element.typ {
            types::NAME => {
                let name = NameRef::from_value(element.value)?;
                if !is_routable(name) {
                    return Err(DecodeError::BadValue { element: WITHIN });
                }
                if found.len() == DELEGATIONS_MAX {
                    return Err(DecodeError::BadLength { element: WITHIN, len: value.len() });
                }
                found.push(name.to_name());
            }
            typ if types::is_critical(typ) => {
                return Err(DecodeError::UnknownCritical { typ, within: WITHIN });
            }
            _ => {}
        }
    }
    match found.is_empty() {
        true => Err(DecodeError::Missing { element: "Name", within: WITHIN }),
        false => Ok(found),
    }
}

fn is_routable(name: NameRef<'_>) -> bool {
    let first = name.components().next();
    first.is_some_and(|first| !matches!(first.value, b"localhost" | b"localhop"))
}

/// Index of the delegation, of `count`, that the first Interest for a segment names. After a Nack
/// or a time-out the next one in the list is named, after the last the first.
///
/// The first eight octets, big endian, of the BLAKE3 hash of id and run (8 octets each, big
/// endian), modulo `count`.
pub fn preferred(id: u64, segment: u64, count: usize) -> Option<usize> {
    let run = segment / RUN_SEGMENTS;
    let input = (u128::from(id) << 64 | u128::from(run)).to_be_bytes();
    let hash = Hash::of(&input);
    let first = hash.0.first_chunk::<8>().map_or(0, |octets| u64::from_be_bytes(*octets));
    usize::try_from(first.checked_rem(count as u64)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    fn decoded(names: &[Name]) -> Result<Vec<Name>, DecodeError> {
        let mut out = Vec::new();
        encode(names, &mut out);
        let value = tlv::Reader::new(&out).read().unwrap().map_or(&[][..], |element| element.value);
        decode(value)
    }

    #[test]
    fn delegations_are_read_back_up_to_their_bound() {
        let names: Vec<Name> = (0..17).map(|number| name("/site").with_version(number)).collect();
        assert_eq!(decoded(&names[..1]).unwrap(), names[..1]);
        assert_eq!(decoded(&names[..16]).unwrap(), names[..16]);
        assert!(matches!(decoded(&names), Err(DecodeError::BadLength { .. })));
        assert!(matches!(decoded(&[]), Err(DecodeError::Missing { .. })));
    }

    #[test]
    fn delegations_that_lead_nowhere_for_others_are_refused() {
        for uri in ["/", "/localhost", "/localhost/disk", "/localhop/disk"] {
            let error = decoded(&[name("/site"), name(uri)]);
            assert_eq!(error, Err(DecodeError::BadValue { element: WITHIN }), "{uri}");
        }
        assert!(decoded(&[name("/site/localhost")]).is_ok());
    }

    #[test]
    fn runs_of_segments_spread_over_all_replicas_alike_for_every_reader() {
        assert_eq!(preferred(7, 0, 0), None);
        assert_eq!(preferred(7, 5, 1), Some(0));
        let of = |segment| preferred(7, segment, 3).unwrap();
        assert!((0..RUN_SEGMENTS).all(|segment| of(segment) == of(0)));
        let mut counts = [0; 3];
        (0..300).for_each(|run| counts[of(run * RUN_SEGMENTS)] += 1);
        assert!(counts.iter().all(|count| (70..130).contains(count)), "{counts:?}");
    }
}
