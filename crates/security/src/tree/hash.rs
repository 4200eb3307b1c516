//! A 32-octet BLAKE3 value, and the few `hazmat` calls of the crate.
//!
//! Everything that could make `hazmat` panic (empty input, unaligned offset, a subtree longer
//! than its offset allows) is excluded by the checks of [`Shape`](super::Shape) before these
//! functions are called; they are private to the tree.

use std::fmt;
use std::str::FromStr;

use blake3::hazmat::{self, HasherExt, Mode};

use super::{FANOUT, HASH_BYTES, UNIT_BYTES};

/// The root of a file's hash tree, or the chaining value of one of its subtrees.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; HASH_BYTES]);

/// Why a text is no [`struct@Hash`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseHashError {
    /// The text does not have 64 characters.
    #[error("a BLAKE3 hash has 64 hexadecimal digits, not {length} characters")]
    Length {
        /// Characters found.
        length: usize,
    },
    /// A character is no hexadecimal digit.
    #[error("character {position} of the BLAKE3 hash is no hexadecimal digit")]
    Digit {
        /// Zero-based position of the first bad character.
        position: usize,
    },
}

impl Hash {
    /// The ordinary BLAKE3 hash of `content`, as `b3sum` prints it.
    pub fn of(content: &[u8]) -> Self {
        Self(*blake3::hash(content).as_bytes())
    }

    /// The value as octets.
    pub fn as_bytes(&self) -> &[u8; HASH_BYTES] {
        &self.0
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

impl FromStr for Hash {
    type Err = ParseHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let length = text.chars().count();
        if length != 2 * HASH_BYTES {
            return Err(ParseHashError::Length { length });
        }
        let mut hash = [0; HASH_BYTES];
        for (position, character) in text.chars().enumerate() {
            let digit = character.to_digit(16).ok_or(ParseHashError::Digit { position })?;
            hash[position / 2] = hash[position / 2] << 4 | digit as u8;
        }
        Ok(Self(hash))
    }
}

/// The chaining value of the complete subtree `bytes` that starts at unit `unit_index`.
///
/// `bytes` is one unit or an aligned power of two of units (the last may be short), not empty.
pub(super) fn subtree(unit_index: u64, bytes: &[u8]) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(unit_index * UNIT_BYTES as u64);
    hasher.update(bytes).finalize_non_root()
}

/// The parent of two neighbouring subtrees.
pub(super) fn parent(left: &[u8; HASH_BYTES], right: &[u8; HASH_BYTES]) -> [u8; HASH_BYTES] {
    hazmat::merge_subtrees_non_root(left, right, Mode::Hash)
}

/// Folds 1 to 256 values into the value one level up. One value folds to itself.
///
/// Joining neighbours pass by pass, an odd last one moving up unchanged, is the same tree as
/// "the left part is the largest power of two below the count".
pub(super) fn fold(node: &[u8]) -> [u8; HASH_BYTES] {
    let mut values = [[0; HASH_BYTES]; FANOUT];
    let mut count = load(node, &mut values);
    while count > 1 {
        count = halve(&mut values, count);
    }
    values[0]
}

/// Folds the 2 to 256 values of the top level into the root.
pub(super) fn fold_root(node: &[u8]) -> Hash {
    let mut values = [[0; HASH_BYTES]; FANOUT];
    let mut count = load(node, &mut values);
    debug_assert!(count >= 2, "a file of one unit has no levels");
    while count > 2 {
        count = halve(&mut values, count);
    }
    Hash(*hazmat::merge_subtrees_root(&values[0], &values[1], Mode::Hash).as_bytes())
}

fn load(node: &[u8], values: &mut [[u8; HASH_BYTES]; FANOUT]) -> usize {
    let (chunks, rest) = node.as_chunks::<HASH_BYTES>();
    debug_assert!(rest.is_empty() && !chunks.is_empty());
    values[..chunks.len()].copy_from_slice(chunks);
    chunks.len()
}

fn halve(values: &mut [[u8; HASH_BYTES]; FANOUT], count: usize) -> usize {
    for pair in 0..count / 2 {
        values[pair] = parent(&values[2 * pair], &values[2 * pair + 1]);
    }
    if count % 2 == 1 {
        values[count / 2] = values[count - 1];
    }
    count.div_ceil(2)
}
