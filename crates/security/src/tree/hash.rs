//! A 32-octet BLAKE3 value, and the few `hazmat` calls of the crate.
//!
//! Everything that could make `hazmat` panic (empty input, unaligned offset, a subtree longer
//! than its offset allows) is excluded by the checks of [`Shape`](super::Shape) before these
//! functions are called; they are private to the tree.

use std::fmt;
use std::str::FromStr;

use blake3::hazmat::{self, HasherExt, Mode};
use blake3::platform::Platform;
use blake3::{CHUNK_LEN, IncrementCounter};

use super::{FANOUT, HASH_BYTES, UNIT_BYTES};

/// Two values, from which their parent is made.
const PAIR_BYTES: usize = 2 * HASH_BYTES;
/// BLAKE3 §2.2: the key words of the plain hash mode, which are those of SHA-256.
const INITIAL_VALUES: [u32; 8] = [
    0x6A09_E667,
    0xBB67_AE85,
    0x3C6E_F372,
    0xA54F_F53A,
    0x510E_527F,
    0x9B05_688C,
    0x1F83_D9AB,
    0x5BE0_CD19,
];
/// BLAKE3 §2.2: the flags of the first and the last block of a chunk.
const CHUNK_START: u8 = 1 << 0;
const CHUNK_END: u8 = 1 << 1;
/// BLAKE3 §2.2: the flag of nodes with two children.
const PARENT_FLAG: u8 = 1 << 2;
/// Chunks in a unit.
const UNIT_CHUNKS: usize = UNIT_BYTES / CHUNK_LEN;
/// Units that are hashed together: their chunks, and the parents of these, fill vector units.
const RUN_UNITS: usize = FANOUT / UNIT_CHUNKS;

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

/// Appends the values of whole units, of which the first is `unit_index`.
///
/// The same as [`subtree`] of each, whose eight chunks fill half of the lanes of AVX-512 only: here
/// chunks of several units are hashed together.
pub(super) fn units(unit_index: u64, units: &[[u8; UNIT_BYTES]], out: &mut Vec<u8>) {
    for (index, run) in (unit_index..).step_by(RUN_UNITS).zip(units.chunks(RUN_UNITS)) {
        let (chunks, _) = run.as_flattened().as_chunks::<CHUNK_LEN>();
        let (mut one, mut other) = ([[0; HASH_BYTES]; FANOUT], [[0; HASH_BYTES]; FANOUT / 2]);
        hash_chunks(index * UNIT_CHUNKS as u64, chunks, one.as_flattened_mut());
        let mut count = halve(&one[..chunks.len()], &mut other);
        let (mut here, mut there) = (&mut other, &mut [[0; HASH_BYTES]; FANOUT / 2]);
        while count > run.len() {
            count = halve(&here[..count], there);
            std::mem::swap(&mut here, &mut there);
        }
        out.extend_from_slice(here[..count].as_flattened());
    }
}

/// The values of up to 256 chunks, of which the first is `chunk_index`.
fn hash_chunks(chunk_index: u64, chunks: &[[u8; CHUNK_LEN]], values: &mut [u8]) {
    let mut inputs = [&[0; CHUNK_LEN]; FANOUT];
    let inputs = &mut inputs[..chunks.len()];
    inputs.iter_mut().zip(chunks).for_each(|(input, chunk)| *input = chunk);
    let values = &mut values[..chunks.len() * HASH_BYTES];
    Platform::detect().hash_many(
        inputs,
        &INITIAL_VALUES,
        chunk_index,
        IncrementCounter::Yes,
        0,
        CHUNK_START,
        CHUNK_END,
        values,
    );
}

/// Folds 1 to 256 values into the value one level up. One value folds to itself.
///
/// Joining neighbours pass by pass, an odd last one moving up unchanged, is the same tree as
/// "the left part is the largest power of two below the count".
pub(super) fn fold(node: &[u8]) -> [u8; HASH_BYTES] {
    narrow(node, 1)[0]
}

/// Folds the 2 to 256 values of the top level into the root.
pub(super) fn fold_root(node: &[u8]) -> Hash {
    debug_assert!(node.len() >= 2 * HASH_BYTES, "a file of one unit has no levels");
    let [left, right] = narrow(node, 2);
    Hash(*hazmat::merge_subtrees_root(&left, &right, Mode::Hash).as_bytes())
}

/// Joins neighbours until `count_max` values are left, 1 or 2.
fn narrow(node: &[u8], count_max: usize) -> [[u8; HASH_BYTES]; 2] {
    let (values, rest) = node.as_chunks::<HASH_BYTES>();
    debug_assert!(rest.is_empty() && !values.is_empty());
    let mut left = [[0; HASH_BYTES]; 2];
    if values.len() <= count_max {
        left[..values.len()].copy_from_slice(values);
        return left;
    }
    let (mut one, mut other) = ([[0; HASH_BYTES]; FANOUT / 2], [[0; HASH_BYTES]; FANOUT / 2]);
    let (mut here, mut there) = (&mut one, &mut other);
    let mut count = halve(values, here);
    while count > count_max {
        count = halve(&here[..count], there);
        std::mem::swap(&mut here, &mut there);
    }
    left.copy_from_slice(&here[..2]);
    left
}

/// Joins each two neighbours and returns how many values that makes.
fn halve(values: &[[u8; HASH_BYTES]], into: &mut [[u8; HASH_BYTES]; FANOUT / 2]) -> usize {
    let (pairs, odd) = values.as_flattened().as_chunks::<PAIR_BYTES>();
    join(pairs, into.as_flattened_mut());
    if !odd.is_empty() {
        into[pairs.len()].copy_from_slice(odd);
    }
    values.len().div_ceil(2)
}

/// The parents of many pairs of neighbouring subtrees.
///
/// One call of `merge_subtrees_non_root` for each does the same, but fills one lane of sixteen of
/// the vector units: 15 µs for a node of 256 values instead of 6 (2026-11-21, AVX-512). The
/// crate shows what joins many for its benchmarks only, so a new release may take it away; a test
/// holds it against the documented call.
fn join(pairs: &[[u8; PAIR_BYTES]], parents: &mut [u8]) {
    let mut inputs = [&[0; PAIR_BYTES]; FANOUT / 2];
    let inputs = &mut inputs[..pairs.len()];
    inputs.iter_mut().zip(pairs).for_each(|(input, pair)| *input = pair);
    let parents = &mut parents[..pairs.len() * HASH_BYTES];
    let (start, end) = (0, 0);
    Platform::detect().hash_many(
        inputs,
        &INITIAL_VALUES,
        0,
        IncrementCounter::No,
        PARENT_FLAG,
        start,
        end,
        parents,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of the standard, with the documented calls only.
    fn fold_by_the_book(values: &[[u8; HASH_BYTES]]) -> [u8; HASH_BYTES] {
        if let [one] = values {
            return *one;
        }
        let (left, right) = values.split_at(1 << (values.len() - 1).ilog2());
        let (left, right) = (fold_by_the_book(left), fold_by_the_book(right));
        hazmat::merge_subtrees_non_root(&left, &right, Mode::Hash)
    }

    #[test]
    fn many_units_at_once_are_those_of_the_documented_call() {
        let octets = (0..67 * UNIT_BYTES as u32).map(|at| (at * 7 + at / 251) as u8);
        let content: Vec<u8> = octets.collect();
        let (all, _) = content.as_chunks::<UNIT_BYTES>();
        for count in [0, 1, 2, 3, 31, 32, 33, 64, 67] {
            for first in [0, 1, 255, u64::from(u32::MAX), 1 << 40] {
                let mut found = Vec::new();
                units(first, &all[..count], &mut found);
                let each = (first..).zip(&all[..count]);
                let by_the_book: Vec<_> = each.map(|(index, unit)| subtree(index, unit)).collect();
                assert_eq!(found, by_the_book.as_flattened(), "{count} from {first}");
            }
        }
    }

    #[test]
    fn many_parents_at_once_are_those_of_the_documented_call() {
        let values: Vec<[u8; HASH_BYTES]> =
            (0..FANOUT as u64).map(|at| Hash::of(&at.to_le_bytes()).0).collect();
        for count in 1..=FANOUT {
            let node = values[..count].as_flattened();
            assert_eq!(fold(node), fold_by_the_book(&values[..count]), "{count} values");
        }
        for count in 2..=FANOUT {
            let (left, right) = values[..count].split_at(1 << (count - 1).ilog2());
            let (left, right) = (fold_by_the_book(left), fold_by_the_book(right));
            let root = *hazmat::merge_subtrees_root(&left, &right, Mode::Hash).as_bytes();
            assert_eq!(fold_root(values[..count].as_flattened()), Hash(root), "{count} values");
        }
    }
}
