//! Computing the checksums that other storage systems compare, several in one pass.
//!
//! They say nothing about integrity here, only a content root does. Octets must come in order.

use std::fmt;

use sha2::Digest;

pub use crate::attributes::Algorithm;
use crate::attributes::Checksums;

/// Checksums of what has come so far.
#[derive(Debug, Clone)]
pub struct Summing(Vec<State>);

#[derive(Clone)]
enum State {
    Adler32(simd_adler32::Adler32),
    Crc32(crc32fast::Hasher),
    Crc32c(u32),
    Md5(md5::Md5),
    Sha256(sha2::Sha256),
}

impl Summing {
    /// Of nothing yet.
    pub fn new(algorithms: &[Algorithm]) -> Self {
        Self(algorithms.iter().map(|algorithm| State::new(*algorithm)).collect())
    }

    /// Takes the next octets.
    pub fn update(&mut self, octets: &[u8]) {
        self.0.iter_mut().for_each(|state| state.update(octets));
    }

    /// The checksums of all octets.
    pub fn finish(self) -> Checksums {
        let mut sums = Checksums::default();
        for state in self.0 {
            match state {
                State::Adler32(sum) => sums.adler32 = Some(sum.finish().to_be_bytes()),
                State::Crc32(sum) => sums.crc32 = Some(sum.finalize().to_be_bytes()),
                State::Crc32c(sum) => sums.crc32c = Some(sum.to_be_bytes()),
                State::Md5(sum) => sums.md5 = Some(sum.finalize().into()),
                State::Sha256(sum) => sums.sha256 = Some(sum.finalize().into()),
            }
        }
        sums
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Adler32(_) => "Adler32",
            Self::Crc32(_) => "Crc32",
            Self::Crc32c(_) => "Crc32c",
            Self::Md5(_) => "Md5",
            Self::Sha256(_) => "Sha256",
        })
    }
}

impl State {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Adler32 => Self::Adler32(simd_adler32::Adler32::new()),
            Algorithm::Crc32 => Self::Crc32(crc32fast::Hasher::new()),
            Algorithm::Crc32c => Self::Crc32c(0),
            Algorithm::Md5 => Self::Md5(md5::Md5::new()),
            Algorithm::Sha256 => Self::Sha256(sha2::Sha256::new()),
        }
    }

    fn update(&mut self, octets: &[u8]) {
        match self {
            Self::Adler32(sum) => sum.write(octets),
            Self::Crc32(sum) => sum.update(octets),
            Self::Crc32c(sum) => *sum = crc32c::crc32c_append(*sum, octets),
            Self::Md5(sum) => sum.update(octets),
            Self::Sha256(sum) => sum.update(octets),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(octets: &[u8]) -> String {
        octets.iter().map(|octet| format!("{octet:02x}")).collect()
    }

    #[test]
    fn known_sums_of_123456789_in_one_pass() {
        let mut summing = Summing::new(&Algorithm::ALL);
        summing.update(b"1234");
        summing.update(b"56789");
        let sums = summing.finish();
        for (algorithm, expected) in [
            (Algorithm::Adler32, "091e01de"),
            (Algorithm::Crc32, "cbf43926"),
            (Algorithm::Crc32c, "e3069283"),
            (Algorithm::Md5, "25f9e794323b453885f5181f1b624d0b"),
            (Algorithm::Sha256, "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"),
        ] {
            assert_eq!(hex(sums.get(algorithm).unwrap()), expected, "{algorithm}");
            assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        }
    }

    /// Octets as large as they can be, in pieces of any length.
    #[test]
    fn adler32_is_that_of_a_plain_loop_for_all_lengths() {
        let mixed: Vec<u8> = (0..70_000_u32).map(|at| (at * 7 + at / 251) as u8).collect();
        for content in [vec![0xff; 70_000], mixed] {
            for piece in [1, 15, 16, 31, 33, 63, 65, 5551, 5553, 8192, 70_000] {
                let mut summing = Summing::new(&[Algorithm::Adler32]);
                content.chunks(piece).for_each(|octets| summing.update(octets));
                let expected = adler2::adler32_slice(&content).to_be_bytes();
                assert_eq!(summing.finish().adler32, Some(expected), "{piece}");
            }
        }
    }

    #[test]
    fn only_what_is_wanted_is_computed() {
        let mut summing = Summing::new(&[Algorithm::Crc32c]);
        summing.update(b"x");
        let sums = summing.finish();
        assert!(sums.have_all(&[Algorithm::Crc32c]));
        assert!(!sums.have_all(&Algorithm::ALL));
        assert_eq!(sums.get(Algorithm::Md5), None);
    }
}
