//! Content that follows from a name: both sides know it, neither has to store it.
//!
//! All content is cut from one pool of noise small enough to stay in the processor's cache; where a
//! packet's content begins in it follows from the last component of its name.

use byname_packet::{MAX_PACKET_BYTES, NameRef};

use crate::error::TrafficError;
use crate::numbers::mix;

/// Places where content can begin.
const STARTS: u64 = 16 << 10;

/// Octets of content that leave room for name and signature in a packet.
pub const CONTENT_BYTES_MAX: usize = 8500;

/// The pool of noise.
#[derive(Debug, Clone)]
pub struct Payload {
    pool: Vec<u8>,
}

impl Default for Payload {
    fn default() -> Self {
        let words = (STARTS as usize + MAX_PACKET_BYTES).div_ceil(8) as u64;
        Self { pool: (1..=words).flat_map(|word| mix(word).to_le_bytes()).collect() }
    }
}

impl Payload {
    /// The `len` octets of content that belong to `key`; fewer if no packet is that long.
    pub fn content(&self, key: u64, len: usize) -> &[u8] {
        let start = (mix(key) % STARTS) as usize;
        &self.pool[start..start + len.min(MAX_PACKET_BYTES)]
    }

    /// True if `content` belongs to `key`.
    pub fn is_content(&self, key: u64, content: &[u8]) -> bool {
        self.content(key, content.len()) == content
    }
}

/// The key of a name: the number in its last component, or a hash of that component.
pub fn key_of(name: NameRef<'_>) -> u64 {
    let Some(last) = name.last() else { return 0 };
    match last.value.try_into() {
        Ok(octets) => u64::from_be_bytes(octets),
        Err(_) => last.value.iter().fold(0, |key, octet| mix(key ^ u64::from(*octet))),
    }
}

/// Lengths of contents: ranges with weights. The length, too, follows from the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    /// Shortest, longest, and the weight up to here.
    ranges: Vec<(usize, usize, u64)>,
    weight: u64,
}

impl Sizes {
    /// Always `bytes`.
    ///
    /// # Errors
    /// As [`Sizes::weighted`].
    pub fn fixed(bytes: usize) -> Result<Self, TrafficError> {
        Self::weighted(&[(bytes, bytes, 1)])
    }

    /// Ranges of (shortest, longest, weight), lengths within a range being equally frequent.
    ///
    /// # Errors
    /// [`TrafficError::BadSize`] for an empty range or more than [`CONTENT_BYTES_MAX`], and
    /// [`TrafficError::NoPattern`] when there is no weight at all.
    pub fn weighted(ranges: &[(usize, usize, u32)]) -> Result<Self, TrafficError> {
        let mut weight = 0;
        let mut taken = Vec::with_capacity(ranges.len());
        for (shortest, longest, share) in ranges.iter().copied() {
            if shortest > longest || longest > CONTENT_BYTES_MAX {
                return Err(TrafficError::BadSize { shortest, longest, max: CONTENT_BYTES_MAX });
            }
            weight += u64::from(share);
            taken.push((shortest, longest, weight));
        }
        if weight == 0 {
            return Err(TrafficError::NoPattern);
        }
        Ok(Self { ranges: taken, weight })
    }

    /// The length of the content that belongs to `key`.
    pub fn of(&self, key: u64) -> usize {
        if let [(shortest, longest, _)] = self.ranges[..]
            && shortest == longest
        {
            return shortest;
        }
        let noise = mix(key ^ 0x5EED);
        let share = (noise >> 32) % self.weight;
        let found = self.ranges.iter().find(|(_, _, up_to)| share < *up_to);
        let (shortest, longest, _) = *found.expect("the last one reaches up to the weight");
        shortest + (noise & 0xFFFF_FFFF) as usize % (longest - shortest + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_packet::Name;

    #[test]
    fn content_is_known_by_its_key_and_by_no_other() {
        let payload = Payload::default();
        for len in [0, 1, 100, 8192, MAX_PACKET_BYTES] {
            let content = payload.content(5, len).to_vec();
            assert_eq!(content.len(), len);
            assert!(Payload::default().is_content(5, &content));
        }
        let content = payload.content(5, 100).to_vec();
        let strangers = (0..1000).filter(|key| payload.is_content(*key, &content)).count();
        assert_eq!(strangers, 1);
        assert_eq!(payload.content(5, usize::MAX).len(), MAX_PACKET_BYTES);
    }

    #[test]
    fn the_key_is_the_last_number_or_a_hash() {
        let name = Name::new().with_generic(&7u64.to_be_bytes());
        assert_eq!(key_of(name.view()), 7);
        let [a, b] =
            ["a", "b"].map(|text| key_of(Name::new().with_generic(text.as_bytes()).view()));
        assert_ne!(a, b);
        assert_eq!(key_of(Name::new().view()), 0);
    }

    #[test]
    fn lengths_follow_their_weights() {
        let sizes = Sizes::weighted(&[(100, 100, 3), (1000, 1999, 1)]).unwrap();
        let lengths: Vec<usize> = (0..4000).map(|key| sizes.of(key)).collect();
        let short = lengths.iter().filter(|len| **len == 100).count();
        assert!((2850..3150).contains(&short), "{short}");
        assert!(lengths.iter().all(|len| *len == 100 || (1000..2000).contains(len)));
        assert!(lengths.iter().any(|len| *len > 1900));
        assert_eq!(Sizes::fixed(8192).unwrap().of(3), 8192);
        assert!(Sizes::fixed(9000).is_err());
        assert!(Sizes::weighted(&[(2, 1, 1)]).is_err());
        assert!(Sizes::weighted(&[(1, 1, 0)]).is_err());
    }
}
