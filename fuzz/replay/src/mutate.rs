//! A small mutator with a fixed seed, for machines without a fuzzer.
//!
//! It knows nothing of coverage; what it finds beyond the corpora are mistakes in lengths, order
//! and arithmetic near the packets that are there.

/// Inputs longer than this are not made.
pub const INPUT_BYTES_MAX: usize = 10_000;

/// Octets at which encodings change.
const EDGES: [u8; 12] = [0, 1, 2, 7, 8, 31, 32, 127, 128, 0xFC, 0xFD, 0xFF];

/// Makes inputs out of others. The same seed gives the same inputs.
#[derive(Debug, Clone)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// A mutator; `seed` may be anything.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number below `end`; 0 when `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A new input from one of `corpus`.
    pub fn input(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut octets = corpus.get(self.below(corpus.len())).cloned().unwrap_or_default();
        for _ in 0..=self.below(4) {
            self.alter(&mut octets, corpus);
        }
        octets.truncate(INPUT_BYTES_MAX);
        octets
    }

    fn alter(&mut self, octets: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let at = self.below(octets.len());
        let end = at + self.below(octets.len() - at.min(octets.len())).min(64);
        match self.below(9) {
            0 => self.change(octets, at, |octet, random| octet ^ 1 << (random & 7)),
            1 => self.change(octets, at, |_, random| EDGES[random as usize % EDGES.len()]),
            2 => self.change(octets, at, |octet, _| octet.wrapping_add(1)),
            3 => self.change(octets, at, |octet, _| octet.wrapping_sub(1)),
            4 => octets.insert(at, EDGES[self.below(EDGES.len())]),
            5 => drop(octets.drain(at..end)),
            6 => {
                let copy = octets[at..end].to_vec();
                let target = self.below(octets.len());
                octets.splice(target..target, copy);
            }
            7 => octets.truncate(at),
            _ => self.splice(octets, at, corpus),
        }
    }

    fn change(&mut self, octets: &mut [u8], at: usize, new: impl Fn(u8, u64) -> u8) {
        let random = self.next();
        if let Some(octet) = octets.get_mut(at) {
            *octet = new(*octet, random);
        }
    }

    /// Puts a part of another input in the place of the rest of this one, or in its middle.
    fn splice(&mut self, octets: &mut Vec<u8>, at: usize, corpus: &[Vec<u8>]) {
        let Some(other) = corpus.get(self.below(corpus.len())) else { return };
        let start = self.below(other.len());
        let end = start + self.below(other.len() - start);
        let keeps_rest = self.below(2) == 0;
        let target = if keeps_rest { at..at } else { at..octets.len() };
        octets.splice(target, other[start..end].iter().copied());
    }
}
