//! Proofs that somebody has the octets of a file, for who knows its size and root only.
//!
//! A nonce draws a few of BLAKE3's chunks (1 KiB). The proof is the tree, from left to right, of
//! which only what leads to them is taken apart: octets of a drawn chunk, the chaining value of any
//! subtree without one. Whoever checks it folds it in the same way and compares the root. Nobody
//! can make one who has not the drawn octets, and which they are is known with the nonce alone: of
//! who has lost one octet in ten a proof fails once in four times, and once in two if he lost one
//! in five.
//!
//! Nothing is allocated by a length that a peer chose, and [`hazmat`] is called with offsets and
//! lengths of the file's own tree.

use blake3::hazmat::{self, HasherExt, Mode};

use super::{HASH_BYTES, Hash};

/// Octets of a chunk.
const CHUNK_BYTES: u64 = 1024;
/// Chunks that a nonce draws; some may be the same.
const DRAWN: usize = 3;
/// Depth of the tree of the largest file, 32 TiB.
const DEPTH_MAX: usize = 35;
/// Octets that are read at once.
const READ_BYTES: usize = 256 << 10;

/// Octets of the longest proof.
pub const PROOF_BYTES_MAX: usize = DRAWN * (CHUNK_BYTES as usize + DEPTH_MAX * HASH_BYTES);

/// Fills a buffer with the octets from an offset on.
pub type ReadAt<'a, E> = dyn FnMut(u64, &mut [u8]) -> Result<(), E> + 'a;

/// A subtree, by the octets below it.
#[derive(Clone, Copy)]
struct Part {
    offset: u64,
    length: u64,
}

impl Part {
    fn whole(size: u64) -> Self {
        Self { offset: 0, length: size }
    }

    fn is_chunk(self) -> bool {
        self.length <= CHUNK_BYTES
    }

    /// Its two children; it is longer than a chunk.
    fn split(self) -> [Self; 2] {
        let left = hazmat::left_subtree_len(self.length);
        let right = Self { offset: self.offset + left, length: self.length - left };
        [Self { length: left, ..self }, right]
    }

    fn has_one_of(self, chunks: &[u64]) -> bool {
        let end = self.offset + self.length;
        chunks.iter().any(|chunk| (self.offset..end).contains(&(chunk * CHUNK_BYTES)))
    }

    fn hasher(self) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new();
        hasher.set_input_offset(self.offset);
        hasher
    }
}

/// The chunks of a file of this size that a nonce draws, in ascending order.
fn drawn(nonce: &[u8; HASH_BYTES], size: u64) -> Vec<u64> {
    let count = u128::from(size.div_ceil(CHUNK_BYTES).max(1));
    let mut stream = blake3::Hasher::new_keyed(nonce).finalize_xof();
    let mut next = || {
        let mut octets = [0; 16];
        stream.fill(&mut octets);
        u64::try_from(u128::from_be_bytes(octets) % count).unwrap_or_default()
    };
    let mut chunks: Vec<u64> = (0..DRAWN).map(|_| next()).collect();
    chunks.sort_unstable();
    chunks.dedup();
    chunks
}

/// Makes the proof of a file that a nonce wants. All of the file is read once, from its beginning
/// to its end: `read` fills a buffer from an offset.
///
/// # Errors
/// Those of `read`.
pub fn prove<E>(
    nonce: &[u8; HASH_BYTES],
    size: u64,
    read: &mut ReadAt<'_, E>,
) -> Result<Vec<u8>, E> {
    let mut proof = Vec::new();
    write(Part::whole(size), &drawn(nonce, size), read, &mut proof)?;
    Ok(proof)
}

fn write<E>(
    part: Part,
    chunks: &[u64],
    read: &mut ReadAt<'_, E>,
    proof: &mut Vec<u8>,
) -> Result<(), E> {
    if !part.has_one_of(chunks) && part.length > 0 {
        proof.extend_from_slice(&value(part, read)?);
        return Ok(());
    }
    if part.is_chunk() {
        let mut octets = [0; CHUNK_BYTES as usize];
        let octets = &mut octets[..part.length as usize];
        read(part.offset, octets)?;
        proof.extend_from_slice(octets);
        return Ok(());
    }
    part.split().into_iter().try_for_each(|child| write(child, chunks, read, proof))
}

/// The chaining value of a subtree that is not the whole tree.
fn value<E>(part: Part, read: &mut ReadAt<'_, E>) -> Result<[u8; HASH_BYTES], E> {
    let mut hasher = part.hasher();
    let mut buffer = vec![0; READ_BYTES.min(part.length as usize)];
    let mut done = 0;
    while done < part.length {
        let length = buffer.len().min((part.length - done) as usize);
        read(part.offset + done, &mut buffer[..length])?;
        hasher.update(&buffer[..length]);
        done += length as u64;
    }
    Ok(hasher.finalize_non_root())
}

/// True if this is the proof that a nonce wants of a file of this size and root.
pub fn is_proof(nonce: &[u8; HASH_BYTES], (size, root): (u64, Hash), proof: &[u8]) -> bool {
    let whole = Part::whole(size);
    if whole.is_chunk() {
        return proof.len() as u64 == size && Hash::of(proof) == root;
    }
    let (chunks, mut left) = (drawn(nonce, size), proof);
    let [one, other] = whole.split().map(|part| folded(part, &chunks, &mut left));
    match (one, other) {
        (Some(one), Some(other)) if left.is_empty() => {
            Hash(*hazmat::merge_subtrees_root(&one, &other, Mode::Hash).as_bytes()) == root
        }
        _ => false,
    }
}

/// The chaining value of a subtree by what is next in a proof.
fn folded(part: Part, chunks: &[u64], left: &mut &[u8]) -> Option<[u8; HASH_BYTES]> {
    if !part.has_one_of(chunks) {
        let (value, behind) = left.split_first_chunk()?;
        *left = behind;
        return Some(*value);
    }
    if part.is_chunk() {
        let (octets, behind) = left.split_at_checked(part.length as usize)?;
        *left = behind;
        return Some(part.hasher().update(octets).finalize_non_root());
    }
    let [one, other] = part.split();
    let (one, other) = (folded(one, chunks, left)?, folded(other, chunks, left)?);
    Some(hazmat::merge_subtrees_non_root(&one, &other, Mode::Hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(size: usize) -> Vec<u8> {
        (0..size).map(|at| (at as u32).wrapping_mul(2_654_435_761) as u8).collect()
    }

    fn proof_of(nonce: &[u8; 32], octets: &[u8]) -> Vec<u8> {
        let mut end = 0;
        let mut read = |offset: u64, buffer: &mut [u8]| {
            assert_eq!(offset, end, "from the beginning to the end, once");
            end += buffer.len() as u64;
            buffer.copy_from_slice(&octets[offset as usize..][..buffer.len()]);
            Ok::<(), std::convert::Infallible>(())
        };
        let proof = prove(nonce, octets.len() as u64, &mut read).unwrap();
        assert_eq!(end, octets.len() as u64);
        proof
    }

    #[test]
    fn who_has_a_file_proves_it_whatever_its_size() {
        for size in [0, 1, 1023, 1024, 1025, 2048, 8192, 8193, 100_000, (1 << 20) + 1] {
            let octets = file(size);
            for nonce in [[0; 32], [7; 32], [255; 32]] {
                let proof = proof_of(&nonce, &octets);
                assert!(proof.len() <= PROOF_BYTES_MAX, "{size}: {}", proof.len());
                assert!(is_proof(&nonce, (size as u64, Hash::of(&octets)), &proof), "{size}");
            }
        }
    }

    #[test]
    fn a_proof_counts_for_its_nonce_its_tree_and_its_root_alone() {
        let octets = file(100_000);
        let (nonce, root) = ([3; 32], Hash::of(&octets));
        let proof = proof_of(&nonce, &octets);
        assert!(!is_proof(&[4; 32], (100_000, root), &proof), "one that was kept from before");
        // A length that ends in the same chunk is told apart only where that one is drawn: the root
        // says which it is.
        assert!(!is_proof(&nonce, (200_000, root), &proof));
        assert!(!is_proof(&nonce, (100_000, Hash::of(b"other")), &proof));
        assert!(!is_proof(&nonce, (100_000, root), &[&proof[..], &[0]].concat()));
        assert!(!is_proof(&nonce, (100_000, root), &[]));
    }

    #[test]
    fn the_longest_proof_is_of_the_largest_file() {
        let chunks = drawn(&[1; 32], 32 << 40);
        assert_eq!(chunks.len(), DRAWN);
        let (mut part, mut depth) = (Part::whole(32 << 40), 0);
        while !part.is_chunk() {
            (part, depth) = (part.split()[0], depth + 1);
        }
        assert_eq!(depth, DEPTH_MAX);
    }

    proptest! {
        #[test]
        fn nobody_proves_what_he_has_not(
            size in 1usize..60_000, nonce: [u8; 32], gone in 0usize..60_000, at in 0usize..9000,
        ) {
            let octets = file(size);
            let root = (size as u64, Hash::of(&octets));
            let mut lacking = octets.clone();
            lacking[gone % size] ^= 1;
            let proof = proof_of(&nonce, &lacking);
            // The value of what is not drawn is wrong as well: he has lost that, too.
            prop_assert!(!is_proof(&nonce, root, &proof));
            let mut altered = proof_of(&nonce, &octets);
            prop_assert!(is_proof(&nonce, root, &altered));
            let at = at % altered.len();
            altered[at] ^= 1;
            prop_assert!(!is_proof(&nonce, root, &altered));
            prop_assert!(!is_proof(&nonce, root, &altered[..at]));
        }
    }
}
