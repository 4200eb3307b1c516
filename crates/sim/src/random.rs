//! Chance that repeats itself: everything random in the model comes from one seed.

/// A small generator (xorshift), good enough to drop packets with.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Equal seeds give equal sequences.
    pub fn new(seed: u64) -> Self {
        // Seeds that follow each other must not give sequences that do.
        let mut state = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        for factor in [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB] {
            state = (state ^ (state >> 29)).wrapping_mul(factor);
        }
        Random((state ^ (state >> 32)) | 1)
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Octets that a private number may be made from.
    pub fn seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        seed.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&self.draw().to_be_bytes()));
        seed
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && (self.draw() >> 11) as f64 / ((1u64 << 53) as f64) < probability
    }

    /// Below `end`, or 0.
    pub fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.draw() % end }
    }
}
